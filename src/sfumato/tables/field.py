"""One column of a table: its kind, its role and its domain."""

from __future__ import annotations

import dataclasses
import datetime
import math
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.core.documents import UNLESS_DEFAULT
from sfumato.core.errors import SchemaError
from sfumato.tables.hierarchies import parse_hierarchy

__all__ = [
    "DURATION_FORMATS",
    "FATE",
    "NO_COMMON_VALUE",
    "Bound",
    "Category",
    "DateStep",
    "Domain",
    "Field",
    "Kind",
    "Role",
]

DURATION_FORMATS = ("h:mm:ss", "hh:mm:ss", "d days, h:mm:ss", "d days hh:mm:ss")
"""Ways of writing a duration: hours that go on beyond 24, or days as Python writes them, or as pandas does."""

Bound = int | float | datetime.datetime
Category = str | int | float | bool


class Kind(StrEnum):
    """Kind of values in a column."""

    CONTINUOUS = "continuous"
    INTEGER = "integer"
    ORDINAL = "ordinal"
    NOMINAL = "nominal"
    BOOLEAN = "boolean"
    DATE = "date"


class Role(StrEnum):
    """Role of a column in a release."""

    IDENTIFIER = "identifier"
    PERSON = "person"
    CONFIDENTIAL = "confidential"
    TARGET = "target"
    LEVEL = "level"
    WEIGHT = "weight"
    PUBLIC = "public"


class DateStep(StrEnum):
    """Resolution of a date column; a month counts as its first day."""

    MONTH = "month"
    DAY = "day"
    HOUR = "hour"
    MINUTE = "minute"
    SECOND = "second"
    MILLISECOND = "millisecond"
    MICROSECOND = "microsecond"


FATE = {
    Role.IDENTIFIER: "dropped",
    Role.PERSON: "person identifier: counts persons, then dropped",
    Role.CONFIDENTIAL: "sanitized",
    Role.TARGET: "sanitized like the others; the column to predict",
    Role.WEIGHT: "sanitized like a number, then scaled to the total of all rows",
    Role.LEVEL: "read as privacy level, then dropped",
    Role.PUBLIC: "released unchanged",
}

NO_COMMON_VALUE = "no value of at least {} persons"
"""Why a column is dropped in a run although its role is another."""

_DROPPED_IN_RUN = re.compile(NO_COMMON_VALUE.format(r"\d+") + "$")
_NUMERIC = (Kind.CONTINUOUS, Kind.INTEGER)
_LISTED = (Kind.ORDINAL, Kind.NOMINAL, Kind.BOOLEAN)
_FIXED_DECIMALS = re.compile(r"0\.0+")


@dataclass(frozen=True, repr=False)
class Domain:
    """Values that a column may take.

    A *declared* domain is public knowledge and is released. An *observed* one was read off the data: its
    bounds are cells of single persons, so it stays with the owner.

    Parameters
    ----------
    declared : bool
    low, high : number, date or datetime, optional
        A moment with a time zone is kept as UTC without one.
    step : float or DateStep, optional
        The grid of the values, counted from ``low`` (from 0 without it).
    categories : tuple, optional
        In order, for ordinal columns.
    units : str, optional
    """

    declared: bool = False
    low: Bound | None = dataclasses.field(default=None, metadata=UNLESS_DEFAULT)
    high: Bound | None = dataclasses.field(default=None, metadata=UNLESS_DEFAULT)
    step: float | DateStep | None = dataclasses.field(default=None, metadata=UNLESS_DEFAULT)
    categories: tuple[Category, ...] | None = dataclasses.field(default=None, metadata=UNLESS_DEFAULT)
    units: str | None = dataclasses.field(default=None, metadata=UNLESS_DEFAULT)

    def __post_init__(self) -> None:
        for name in ("low", "high", "step"):
            object.__setattr__(self, name, _python_value(getattr(self, name)))
        if self.categories is not None:
            object.__setattr__(self, "categories", tuple(_python_value(category) for category in self.categories))

    def __repr__(self) -> str:
        return f"Domain({'declared' if self.declared else 'observed'})"

    def describe(self) -> str:
        """Describe the domain in a few words; it shows bounds and is for the owner."""
        parts = []
        if self.categories is not None:
            parts.append("1 category" if len(self.categories) == 1 else f"{len(self.categories)} categories")
        if self.low is not None or self.high is not None:
            parts.append(f"{_domain_text(self.low, '-inf')} to {_domain_text(self.high, 'inf')}")
        if self.step is not None:
            parts.append(f"step {self.step:g}" if isinstance(self.step, int | float) else f"by {self.step}")
        if self.units:
            parts.append(self.units)
        return ", ".join([*parts, "declared" if self.declared else "observed"])


def _python_value(value: Any) -> Any:
    """NumPy scalars, dates and zoned timestamps as plain Python values."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, datetime.datetime):
        try:
            zoned = value if value.tzinfo is None else value.astimezone(datetime.UTC)
        except OverflowError:
            raise SchemaError("a date of the schema leaves the years 1 to 9999 in UTC; write another") from None
        return datetime.datetime.combine(zoned.date(), zoned.time())
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day)
    return value


def _domain_text(value: Bound | None, missing: str) -> str:
    if value is None:
        return missing
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ").removesuffix(" 00:00:00")
    return f"{value:.12g}"


@dataclass(frozen=True, repr=False)
class Field:
    """One column.

    Parameters
    ----------
    name : str
    kind : Kind
    role : Role
    domain : Domain
    missing : tuple of str
        Texts that mean a missing cell; real nulls always do.
    format : str, optional
        How cells are written as text: a date format, or ``"0.00"`` for a fixed number of decimals.
    hierarchy : str, optional
        Wider labels of its values: ``"prefix"``, ``"icd10"``, ``"calendar"``, ``"intervals 10 50"`` or
        ``"file NAME"``, see `sfumato.tables.hierarchies`.
    coarsened : int
        Level of the hierarchy that the column is released at; 0 leaves values as they are.
    reason : str
        Why the column was taken so.
    repair : bool
        Cells that do not fit the column are repaired: those of another form become missing, finer ones are rounded to
        the step, those that break a rule follow it. Otherwise they are an error.

    Raises
    ------
    SchemaError
        If the domain or the format makes no sense for the kind.
    """

    name: str
    kind: Kind
    role: Role = Role.CONFIDENTIAL
    domain: Domain = dataclasses.field(default_factory=Domain)
    missing: tuple[str, ...] = dataclasses.field(default=(), metadata=UNLESS_DEFAULT)
    format: str | None = dataclasses.field(default=None, metadata=UNLESS_DEFAULT)
    reason: str = dataclasses.field(default="", metadata=UNLESS_DEFAULT)
    hierarchy: str | None = dataclasses.field(default=None, metadata=UNLESS_DEFAULT)
    coarsened: int = dataclasses.field(default=0, metadata=UNLESS_DEFAULT)
    repair: bool = dataclasses.field(default=False, metadata=UNLESS_DEFAULT)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise SchemaError("a column's name is not text; name columns by text")
        _check_bounds(self)
        _check_step(self)
        _check_categories(self)
        _check_format(self)
        _check_hierarchy(self)

    def __repr__(self) -> str:
        return f"Field({self.name!r}, {self.kind.value}, {self.role.value})"

    def of_domain(self, domain: Domain) -> Field:
        """The column with another domain, and nothing else that was read off its values."""
        return dataclasses.replace(self, domain=domain, hierarchy=None, coarsened=0, repair=False, reason="")

    @property
    def is_dropped(self) -> bool:
        """Whether the column is left out of the release, by its role or because all its values are rare."""
        released = self.role not in (Role.IDENTIFIER, Role.PERSON, Role.LEVEL)
        return not released or (self.role is not Role.PUBLIC and bool(_DROPPED_IN_RUN.search(self.reason)))

    @property
    def fate(self) -> str:
        """What happens to the column, in words."""
        role = Role.IDENTIFIER if self.is_dropped and self.role not in (Role.PERSON, Role.LEVEL) else self.role
        return FATE[role]


def _check_bounds(field: Field) -> None:
    bounds = [bound for bound in (field.domain.low, field.domain.high) if bound is not None]
    if field.kind in _LISTED and bounds:
        raise SchemaError(f"column {field.name!r} is {field.kind.value} and has bounds; list its categories instead")
    if field.kind is Kind.DATE and not all(isinstance(bound, datetime.datetime) for bound in bounds):
        raise SchemaError(f"a bound of the date column {field.name!r} is not a date; write it as 2020-01-31")
    if field.kind in _NUMERIC and not all(_is_number(bound) for bound in bounds):
        raise SchemaError(f"a bound of column {field.name!r} is not a finite number; write one, or leave it out")
    if len(bounds) == 2 and bounds[0] > bounds[1]:  # type: ignore[operator]
        raise SchemaError(f"column {field.name!r} has a lower bound above its upper bound; swap them")
    if len(bounds) == 2 and field.kind is Kind.INTEGER and math.ceil(bounds[0]) > bounds[1]:  # type: ignore[operator,arg-type]
        raise SchemaError(f"column {field.name!r} has no whole number between its bounds; widen them")


def _check_step(field: Field) -> None:
    step = field.domain.step
    if step is None:
        return
    if field.kind in _LISTED:
        raise SchemaError(f"column {field.name!r} is {field.kind.value} and has a step; list its categories instead")
    if field.kind is Kind.DATE:
        if not isinstance(step, DateStep):
            choices = ", ".join(word.value for word in DateStep)
            raise SchemaError(f"the step of the date column {field.name!r} is not known; choose one of {choices}")
    elif isinstance(step, DateStep) or not _is_number(step) or step <= 0:
        raise SchemaError(f"the step of column {field.name!r} is not a number above 0; write one, or leave it out")
    elif field.kind is Kind.INTEGER and step != math.floor(step):
        raise SchemaError(f"the step of the integer column {field.name!r} is not whole; declare the column continuous")


def _check_categories(field: Field) -> None:
    categories = field.domain.categories
    if categories is None:
        return
    if field.kind not in _LISTED:
        raise SchemaError(f"column {field.name!r} is {field.kind.value} and has categories; give it bounds instead")
    types = {
        str if isinstance(category, str) else bool if isinstance(category, bool) else float for category in categories
    }
    readable = all(isinstance(category, str | bool) or _is_number(category) for category in categories)
    if not readable or len(types) != 1 or len(set(categories)) != len(categories):
        raise SchemaError(
            f"the categories of column {field.name!r} are not a list of different texts, or of different numbers; "
            "fix the list"
        )
    if field.kind is Kind.BOOLEAN and len(categories) > 2:
        raise SchemaError(f"the boolean column {field.name!r} lists {len(categories)} categories; declare it nominal")


def _check_format(field: Field) -> None:
    if field.format is None:
        return
    if field.kind in _LISTED:
        raise SchemaError(f"column {field.name!r} is {field.kind.value} and has a format; remove it")
    if field.kind is Kind.DATE and "%" not in field.format:
        raise SchemaError(f"the format of the date column {field.name!r} is not one; write it as %Y-%m-%d")
    if field.format in DURATION_FORMATS and field.kind is Kind.INTEGER:
        return
    if field.kind in _NUMERIC and not _FIXED_DECIMALS.fullmatch(field.format):
        raise SchemaError(
            f"the format of column {field.name!r} is not a number of decimals; write it as 0.00, or for whole seconds "
            f"as one of {'; '.join(DURATION_FORMATS)}"
        )


def _check_hierarchy(field: Field) -> None:
    if field.hierarchy is None:
        if field.coarsened:
            raise SchemaError(f"column {field.name!r} is coarsened by no hierarchy; give it one")
        return
    found = parse_hierarchy(field.hierarchy, field.kind.value, field.name)
    most = None if isinstance(found, Path) else found.levels
    if not isinstance(field.coarsened, int) or field.coarsened < 0 or (most is not None and field.coarsened > most):
        raise SchemaError(f"column {field.name!r} is coarsened to a level that its hierarchy does not have; lower it")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
