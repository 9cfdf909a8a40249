"""What the columns of a table are and what will happen to each: kinds, roles, domains."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from sfumato.errors import OptionError, SchemaError

__all__ = ["Bound", "Category", "DateStep", "Domain", "Field", "Kind", "Role", "Schema"]

Bound = int | float | datetime.datetime
Category = str | int | float | bool


class Kind(StrEnum):
    """How the values of a column behave."""

    CONTINUOUS = "continuous"
    INTEGER = "integer"
    ORDINAL = "ordinal"
    NOMINAL = "nominal"
    BOOLEAN = "boolean"
    DATE = "date"


class Role(StrEnum):
    """What happens to a column."""

    IDENTIFIER = "identifier"
    CONFIDENTIAL = "confidential"
    TARGET = "target"
    LEVEL = "level"
    PUBLIC = "public"


class DateStep(StrEnum):
    """The grid of a date column."""

    DAY = "day"
    SECOND = "second"
    MILLISECOND = "millisecond"
    MICROSECOND = "microsecond"


FATE = {
    Role.IDENTIFIER: "dropped",
    Role.CONFIDENTIAL: "sanitized",
    Role.TARGET: "sanitized; the class or response that will be mined",
    Role.LEVEL: "read as privacy level, then dropped",
    Role.PUBLIC: "passed through unchanged",
}


@dataclass(frozen=True, repr=False)
class Domain:
    """The values that a column may take.

    A *declared* domain is public knowledge and leaves with the release. An *observed* one was read off the data: its
    bounds are somebody's cells, so it stays with the owner.

    Parameters
    ----------
    declared : bool
    low, high : number or datetime, optional
    step : float or DateStep, optional
        The grid of the values, counted from ``low`` (from 0 without it).
    categories : tuple, optional
        In order, for ordinal columns.
    units : str, optional
    """

    declared: bool = False
    low: Bound | None = None
    high: Bound | None = None
    step: float | DateStep | None = None
    categories: tuple[Category, ...] | None = None
    units: str | None = None

    def __repr__(self) -> str:
        return f"Domain({'declared' if self.declared else 'observed'})"

    def describe(self) -> str:
        """Say the domain in a few words; shows bounds, so it is for the owner."""
        parts = []
        if self.categories is not None:
            parts.append(f"{len(self.categories)} categories")
        if self.low is not None or self.high is not None:
            parts.append(f"{_bound(self.low, '-inf')} to {_bound(self.high, 'inf')}")
        if self.step is not None:
            parts.append(f"step {self.step:g}" if isinstance(self.step, int | float) else f"by {self.step}")
        if self.units:
            parts.append(self.units)
        return ", ".join([*parts, "declared" if self.declared else "observed"])


def _bound(value: Bound | None, missing: str) -> str:
    if value is None:
        return missing
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
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
        Texts that mean a missing cell, the most frequent first; real nulls always do.
    format : str, optional
        How cells are written as text: a date format, or ``"0.00"`` for a fixed number of decimals.
    reason : str
        Why the column was taken so.
    """

    name: str
    kind: Kind
    role: Role = Role.CONFIDENTIAL
    domain: Domain = dataclasses.field(default_factory=Domain)
    missing: tuple[str, ...] = ()
    format: str | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        low, high = self.domain.low, self.domain.high
        if low is not None and high is not None and low > high:  # type: ignore[operator]
            raise SchemaError(f"column {self.name!r} has a lower bound above its upper bound; swap them")

    def __repr__(self) -> str:
        return f"Field({self.name!r}, {self.kind.value}, {self.role.value})"


_ENCODED = (Role.CONFIDENTIAL, Role.TARGET)


@dataclass(frozen=True, repr=False)
class Schema:
    """The columns of a table, in order.

    Its printed form says what will happen to each column and why; it shows no observed bound or category.

    Examples
    --------
    >>> print(Schema((Field("age", Kind.INTEGER, reason="whole numbers"),)))
    column  role          kind     what happens  why
    age     confidential  integer  sanitized     whole numbers
    """

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        names = [field.name for field in self.fields]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise SchemaError(f"column {twice[0]!r} stands {names.count(twice[0])} times in the schema; name it once")
        for role in (Role.TARGET, Role.LEVEL):
            having = [field.name for field in self.fields if field.role is role]
            if len(having) > 1:
                raise SchemaError(f"{len(having)} columns have the role {role.value}; give it to one only")

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __getitem__(self, name: str) -> Field:
        for field in self.fields:
            if field.name == name:
                return field
        raise OptionError(f"there is no column {name!r}; the columns are {', '.join(map(repr, self.names))}")

    def __repr__(self) -> str:
        return f"Schema({len(self)} columns)"

    def __str__(self) -> str:
        return self.describe()

    @property
    def names(self) -> tuple[str, ...]:
        """The column names."""
        return tuple(field.name for field in self.fields)

    @property
    def encoded(self) -> tuple[Field, ...]:
        """The columns that a mechanism transforms."""
        return tuple(field for field in self.fields if field.role in _ENCODED)

    @property
    def released(self) -> tuple[Field, ...]:
        """The columns of the release."""
        return tuple(field for field in self.fields if field.role not in (Role.IDENTIFIER, Role.LEVEL))

    @property
    def target(self) -> Field | None:
        """The class or response, if one is marked."""
        return next((field for field in self.fields if field.role is Role.TARGET), None)

    def with_role(self, role: Role, *names: str) -> Schema:
        """Give a role to columns; a target or level that another column had becomes confidential there."""
        chosen = [self[name].name for name in names]
        single = role in (Role.TARGET, Role.LEVEL) and bool(chosen)
        fields = []
        for field in self.fields:
            if field.name in chosen:
                fields.append(dataclasses.replace(field, role=role, reason=f"{role.value}, as told"))
            elif single and field.role is role:
                fields.append(dataclasses.replace(field, role=Role.CONFIDENTIAL))
            else:
                fields.append(field)
        return Schema(tuple(fields))

    def public_part(self) -> Schema:
        """Give what leaves with the release: released columns with declared domains only."""
        return Schema(
            tuple(
                dataclasses.replace(field, domain=field.domain if field.domain.declared else Domain(), reason="")
                for field in self.released
            )
        )

    def describe(self, *, domains: bool = False) -> str:
        """Lay out the columns as a table of text.

        Parameters
        ----------
        domains : bool
            Show bounds too. Observed bounds are data: only for the owner's eyes.
        """
        head = ["column", "role", "kind", *(["domain"] if domains else []), "what happens", "why"]
        rows = [
            [
                field.name,
                field.role.value,
                field.kind.value,
                *([field.domain.describe()] if domains else []),
                FATE[field.role],
                field.reason,
            ]
            for field in self.fields
        ]
        widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
        return "\n".join(
            "  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip()
            for row in [head, *rows]
        )

    @property
    def digest(self) -> str:
        """SHA-256 of the schema's TOML form."""
        return hashlib.sha256(self.to_toml().encode()).hexdigest()

    def to_toml(self) -> str:
        """Write the schema as TOML with comments that a person can edit."""
        from sfumato.tables.toml import schema_to_toml

        return schema_to_toml(self)

    @classmethod
    def from_toml(cls, text: str) -> Schema:
        """Read a schema from TOML."""
        from sfumato.tables.toml import schema_from_toml

        return schema_from_toml(text)

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema from a TOML file."""
        try:
            return cls.from_toml(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise OptionError(f"there is no schema file {str(path)!r}; write one with 'sfumato inspect'") from None
        except (UnicodeDecodeError, IsADirectoryError):
            raise OptionError(f"the schema file {str(path)!r} is not UTF-8 text; write one with inspect") from None

    @classmethod
    def infer(cls, frame: Any, *, identifiers: Iterable[str] = (), target: str | None = None) -> Schema:
        """Propose a schema for a pandas, polars or pyarrow table, with the reason of each decision."""
        from sfumato.tables.frames import to_arrow
        from sfumato.tables.infer import infer_schema

        schema = infer_schema(to_arrow(frame)[0]).with_role(Role.IDENTIFIER, *identifiers)
        return schema.with_role(Role.TARGET, target) if target is not None else schema
