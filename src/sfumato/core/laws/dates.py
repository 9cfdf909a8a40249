"""A domain of dates: counted in months, days, hours or finer units since 1970, written as ISO texts."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.core.errors import OptionError, SchemaError
from sfumato.core.laws.domains import Integers

__all__ = ["DATE", "UNITS", "Dates"]

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
    """The dates from low to high by a unit; as numbers they count units since 1970.

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
        """Units from 1970 to a date that is given as ISO text, date, moment or count.

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

    def counts(self, moments: NDArray[np.int64]) -> NDArray[np.int64]:
        """Units from 1970 to moments that are given in microseconds; what is below the unit is cut off."""
        units = np.asarray(moments, dtype=np.int64).view("datetime64[us]").astype(f"datetime64[{UNITS[self.unit]}]")
        return np.asarray(units.astype(np.int64))

    def moments(self, counts: ArrayLike) -> NDArray[np.int64]:
        """Microseconds from 1970 to dates that are counted in the unit."""
        units = np.asarray(counts, dtype=np.int64).view(f"datetime64[{UNITS[self.unit]}]")
        return np.asarray(units.astype("datetime64[us]").view(np.int64))

    def encode(self, values: ArrayLike) -> NDArray[np.int64]:
        """Place of each date, given as text or count.

        Raises
        ------
        SchemaError
            For values that are no dates from low to high, with their count.
        """
        return super().encode(self._counted(values))

    def places(self, values: ArrayLike) -> NDArray[np.int64]:
        """Place of each released date, also beyond the ends."""
        return super().places(self._counted(values))

    def written(self, codes: ArrayLike) -> list[str]:
        """ISO text of the date at each place, also beyond the ends; hours have their minutes."""
        units = (np.asarray(codes, dtype=np.int64) + self.low).view(f"datetime64[{UNITS[self.unit]}]")
        return [str(text) for text in np.datetime_as_string(units, "m" if self.unit == "hour" else None)]

    def describe(self) -> str:
        """Say it in words."""
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
