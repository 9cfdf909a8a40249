"""Domain of an answer: its possible values, numbered 0, 1, 2, ..."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.core.arrays import Floats, Ints
from sfumato.core.distributions.noise import check_codes, decimals, exact, short
from sfumato.core.documents import plain
from sfumato.core.errors import OptionError, SchemaError

__all__ = [
    "DATE",
    "UNITS",
    "Dates",
    "Integers",
    "Labels",
    "Reals",
    "Universe",
    "domain_from_document",
    "domain_to_document",
]

_LARGEST = 2**48  # places: noise of laws.exact.LARGEST on top still fits into 64 bits
_LARGEST_DOUBLE = 2**53  # whole numbers below it are doubles
_NEAR = 1e-6  # of a step: how far a released number may lie from its place, for it was written and read as decimals


@dataclass(frozen=True)
class Integers:
    """Integers from low to high.

    Examples
    --------
    >>> Integers(10, 12).encode([12, 10]), Integers(10, 12).decode([0, 5])
    (array([2, 0]), array([10, 15]))
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            object.__setattr__(self, name, _whole(name, getattr(self, name)))
        _check_size(self.size)
        if max(abs(self.low), abs(self.high)) >= _LARGEST_DOUBLE:
            raise OptionError("low and high are so large that doubles do not tell neighbours apart; count from nearer")

    @property
    def size(self) -> int:
        """Number of values."""
        return self.high - self.low + 1

    @property
    def step(self) -> int:
        """Distance between neighbouring values."""
        return 1

    def encode(self, values: ArrayLike) -> Ints:
        """Code of each value.

        Raises
        ------
        SchemaError
            For values that are no whole numbers from low to high, with their count.
        """
        numbers = _numbers(values)
        with np.errstate(invalid="ignore"):
            bad = ~((numbers >= self.low) & (numbers <= self.high) & (np.rint(numbers) == numbers))
        _refuse(int(bad.sum()), f"are not whole numbers from {self.low} to {self.high}")
        return np.asarray(numbers.astype(np.int64) - self.low)

    def decode(self, codes: ArrayLike) -> Ints:
        """Value of each code, including codes that noise moved beyond the ends."""
        return np.asarray(np.asarray(codes, dtype=np.int64) + self.low)

    def places(self, values: ArrayLike) -> Ints:
        """Code of each released number, including those beyond the ends."""
        numbers = _numbers(values)
        bad = ~(np.isfinite(numbers) & (np.rint(numbers) == numbers) & (np.abs(numbers) < _LARGEST_DOUBLE))
        _refuse(int(bad.sum()), "are not whole numbers")
        return np.asarray(numbers.astype(np.int64) - self.low)

    def describe(self) -> str:
        """Description in words."""
        return f"a whole number from {self.low} to {self.high}"


@dataclass(frozen=True)
class Reals:
    """Numbers from low to high on a grid that begins at low.

    Released numbers are places of the grid, whatever the number was: no digit below the grid survives.

    Examples
    --------
    >>> Reals(0.0, 1.0, 0.1).encode([0.32, 1.0]), Reals(0.0, 1.0, 0.1).decode([3, 12])
    (array([ 3, 10]), array([0.3, 1.2]))
    """

    low: float
    high: float
    grid: float

    def __post_init__(self) -> None:
        for name in ("low", "high", "grid"):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
                raise OptionError(f"{name} of a domain of reals must be a number")
            object.__setattr__(self, name, float(number))
        if self.grid <= 0:
            raise OptionError("the grid of a domain of reals must be above 0")
        steps = (exact(self.high) - exact(self.low)) / exact(self.grid)
        if steps.denominator != 1:
            raise OptionError("high must lie a whole number of grid steps above low; change high or grid")
        _check_size(self.size)
        if max(abs(self.low), abs(self.high)) / self.grid >= _LARGEST:
            raise OptionError("the grid is too fine for numbers of this size; choose a coarser one")

    @property
    def size(self) -> int:
        """Number of grid points."""
        return int((exact(self.high) - exact(self.low)) / exact(self.grid)) + 1

    @property
    def step(self) -> float:
        """Distance between neighbouring grid points."""
        return self.grid

    def encode(self, values: ArrayLike) -> Ints:
        """Nearest grid point of each value.

        Raises
        ------
        SchemaError
            For values that are no numbers from low to high, with their count.
        """
        numbers = _numbers(values)
        with np.errstate(invalid="ignore"):
            bad = ~((numbers >= self.low) & (numbers <= self.high))
        _refuse(int(bad.sum()), f"are not numbers from {self.low:g} to {self.high:g}")
        return np.minimum(np.rint((numbers - self.low) / self.grid).astype(np.int64), self.size - 1)

    def decode(self, codes: ArrayLike) -> Floats:
        """Number at each grid point, including those beyond the ends.

        A number depends on its place alone, and is the double nearest to its decimals where those are few.
        """
        numbers = self.low + np.asarray(codes, dtype=np.int64) * self.grid
        digits = decimals(self.low, self.grid)
        return np.asarray(np.round(numbers, digits) if digits is not None else numbers, dtype=np.float64)

    def places(self, values: ArrayLike) -> Ints:
        """Grid point of each released number, including those beyond the ends."""
        numbers = _numbers(values)
        with np.errstate(invalid="ignore", over="ignore"):
            steps = (numbers - self.low) / self.grid
            slack = _NEAR + np.abs(numbers / self.grid) * 2.0**-50  # what doubles of this size are off by
            bad = ~((np.abs(steps - np.rint(steps)) <= slack) & (np.abs(steps) < _LARGEST))
        _refuse(int(bad.sum()), f"are not on the grid of {self.grid:g}")
        return np.asarray(np.rint(steps).astype(np.int64))

    def describe(self) -> str:
        """Description in words."""
        return f"a number from {self.low:g} to {self.high:g} in steps of {self.grid:g}"


@dataclass(frozen=True)
class Labels:
    """A list of unordered labels.

    Examples
    --------
    >>> Labels(("no", "yes")).encode(["yes", "no"]), Labels(("no", "yes")).decode([1])
    (array([1, 0]), array(['yes'], dtype=object))
    """

    values: tuple[str, ...]

    def __post_init__(self) -> None:
        if not all(isinstance(value, str) for value in self.values):
            raise OptionError("the values of a domain of labels must be a list of texts")
        object.__setattr__(self, "values", tuple(self.values))
        if not all(value.isprintable() for value in self.values):
            raise OptionError("the values of a domain of labels must be printable texts of one line")
        if len(set(self.values)) < len(self.values):
            raise OptionError("the values of a domain of labels must be different; name each one once")
        _check_size(self.size)

    @property
    def size(self) -> int:
        """Number of labels."""
        return len(self.values)

    @property
    def step(self) -> int:
        """Distance between neighbouring codes."""
        return 1

    def encode(self, values: ArrayLike) -> Ints:
        """Code of each label.

        Raises
        ------
        SchemaError
            For values that are not labels of the domain, with their count.
        """
        index = {value: place for place, value in enumerate(self.values)}
        given = np.asarray(values, dtype=object)
        flat = (index.get(value, -1) if isinstance(value, str) else -1 for value in given.ravel())
        codes = np.fromiter(flat, dtype=np.int64, count=given.size)
        _refuse(int((codes < 0).sum()), f"are none of the {self.size} labels of the domain")
        return codes.reshape(given.shape)

    def decode(self, codes: ArrayLike) -> NDArray[np.object_]:
        """Label of each code."""
        return np.array(self.values, dtype=object)[check_codes(np.asarray(codes), self.size)]

    def places(self, values: ArrayLike) -> Ints:
        """Code of each released label."""
        return self.encode(values)

    def describe(self) -> str:
        """Description in words."""
        return f"one of {self.size} labels"


UNITS = {
    "month": "M",
    "day": "D",
    "hour": "h",
    "minute": "m",
    "second": "s",
    "millisecond": "ms",
    "microsecond": "us",
}
"""Units that dates are counted in, and NumPy's names for them."""

DATE = r"\d{4}-\d{2}(?:-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)?)?"
"""A date, month or moment as a regular expression."""

_FORM = re.compile(DATE)


@dataclass(frozen=True)
class Dates(Integers):
    """Dates from low to high in a unit; as numbers they count units since 1970.

    Laws count in the unit: a scale of 30 on days is thirty days. ``low`` and ``high`` are given as ISO texts, dates, or
    counts.

    Examples
    --------
    >>> days = Dates("2020-01-30", "2020-02-02", "day")
    >>> days.size, days.encode(["2020-02-01"]), days.written([0, 5])
    (4, array([2]), ['2020-01-30', '2020-02-04'])
    """

    low: Any
    high: Any
    unit: str

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise OptionError(f"dates are counted in one of {', '.join(UNITS)}; choose a unit")
        for name in ("low", "high"):
            object.__setattr__(self, name, self.count(getattr(self, name)))
        super().__post_init__()

    def count(self, date: Any) -> int:
        """Units from 1970 to a date given as ISO text, date, timestamp or count.

        Raises
        ------
        OptionError
            For what is no date, or lies between two units.
        """
        if isinstance(date, int) and not isinstance(date, bool):
            return date
        if isinstance(date, datetime.datetime):
            date = date.replace(tzinfo=None).isoformat()
        text = date.isoformat() if isinstance(date, datetime.date) else date
        if not isinstance(text, str) or not _FORM.fullmatch(text):
            raise OptionError("a date is written as 2020-01-31, 2020-01 or 2020-01-31 08:30; correct it")
        try:
            exact = np.datetime64(text.replace(" ", "T"), "us")
        except ValueError:
            raise OptionError("a date is none of the calendar; correct it") from None
        counted = exact.astype(f"datetime64[{UNITS[self.unit]}]")
        if counted.astype("datetime64[us]") != exact:
            raise OptionError(f"a date lies between two steps of a {self.unit}; choose a finer unit, or another date")
        return int(counted.astype(np.int64))

    def counts(self, moments: Ints) -> Ints:
        """Units from 1970 to timestamps in microseconds, rounded down."""
        units = np.asarray(moments, dtype=np.int64).view("datetime64[us]").astype(f"datetime64[{UNITS[self.unit]}]")
        return np.asarray(units.astype(np.int64))

    def moments(self, counts: ArrayLike) -> Ints:
        """Microseconds from 1970 to dates counted in the unit."""
        units = np.asarray(counts, dtype=np.int64).view(f"datetime64[{UNITS[self.unit]}]")
        return np.asarray(units.astype("datetime64[us]").view(np.int64))

    def encode(self, values: ArrayLike) -> Ints:
        """Code of each date, given as text or count.

        Raises
        ------
        SchemaError
            For values that are no dates from low to high, with their count.
        """
        return super().encode(self._counted(values))

    def places(self, values: ArrayLike) -> Ints:
        """Code of each released date, including those beyond the ends."""
        return super().places(self._counted(values))

    def written(self, codes: ArrayLike) -> list[str]:
        """ISO text of the date of each code, including those beyond the ends; hours include minutes."""
        units = (np.asarray(codes, dtype=np.int64) + self.low).view(f"datetime64[{UNITS[self.unit]}]")
        return [str(text) for text in np.datetime_as_string(units, "m" if self.unit == "hour" else None)]

    def describe(self) -> str:
        """Description in words."""
        first, last = self.written([0, self.size - 1])
        return f"a date from {first} to {last}, by {self.unit}"

    def _counted(self, values: ArrayLike) -> Any:
        given = np.asarray(values)
        if given.dtype.kind == "M":
            return self.counts(given.astype("datetime64[us]").view(np.int64))
        if given.dtype.kind not in "OU":
            return given
        counts, strange = [], 0
        for value in given.ravel():
            try:
                counts.append(self.count(value.item() if isinstance(value, np.generic) else value))
            except OptionError:
                strange += 1
        if strange:
            raise SchemaError(f"{strange} values are no dates such as 2020-01-31; correct them")
        return np.array(counts, dtype=np.int64).reshape(given.shape)


Universe = Integers | Reals | Labels
_KINDS: dict[str, type[Universe]] = {"integers": Integers, "reals": Reals, "labels": Labels, "dates": Dates}


def domain_to_document(domain: Universe) -> dict[str, object]:
    """Domain as plain values.

    Examples
    --------
    >>> domain_to_document(Reals(0.0, 1.0, 0.5))
    {'kind': 'reals', 'low': 0, 'high': 1, 'grid': 0.5}
    """
    if isinstance(domain, Dates):
        low, high = domain.written([0, domain.size - 1])
        return {"kind": "dates", "low": low, "high": high, "unit": domain.unit}
    entries = {key: short(value) if isinstance(value, float) else value for key, value in plain(domain).items()}
    return {"kind": type(domain).__name__.lower(), **entries}


def domain_from_document(document: Mapping[str, Any]) -> Universe:
    """Domain from the plain values of ``domain_to_document``."""
    if not isinstance(document, Mapping) or str(document.get("kind")) not in _KINDS:
        raise OptionError(f"the domain needs a kind, one of {', '.join(_KINDS)}")
    given = dict(document)
    shape = _KINDS[str(given.pop("kind"))]
    keys = shape.__dataclass_fields__
    if set(given) != set(keys):
        raise OptionError(f"a domain of {document['kind']} has the keys kind, {', '.join(keys)} and no other")
    if shape is Labels and not isinstance(given["values"], list | tuple):
        raise OptionError("the values of a domain of labels must be a list of texts")
    if shape is Dates and any(isinstance(given[key], int | float) for key in ("low", "high")):
        raise OptionError("low and high of a domain of dates are dates such as 2020-01-31; write them so")
    return shape(**given)


def _whole(name: str, number: Any) -> int:
    if isinstance(number, bool) or not isinstance(number, int | float) or number != number // 1:
        raise OptionError(f"{name} of a domain of integers must be a whole number")
    return int(number)


def _check_size(size: int) -> None:
    if size < 2:
        raise OptionError("a domain needs at least two values, else there is nothing to hide; widen it")
    if size > _LARGEST:
        raise OptionError("the domain has too many values; choose a coarser grid or narrower bounds")


def _numbers(values: ArrayLike) -> Floats:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        count = np.asarray(values, dtype=object).size
        raise SchemaError(f"some of {count} values are not numbers; check that data and domain fit") from None


def _refuse(count: int, words: str) -> None:
    if count:
        raise SchemaError(f"{count} values {words}; correct them or declare another domain")
