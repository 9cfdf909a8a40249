"""Numbers and dates out of coordinates and back, as the domain of a noise specification counts them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import OptionError, SchemaError
from sfumato.core.laws.dates import UNITS, Dates
from sfumato.core.laws.domains import Integers, Labels, Reals
from sfumato.core.laws.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.core.laws.operators import Additive
from sfumato.core.laws.spec import NoiseSpec
from sfumato.core.records import Block, Extent

__all__ = ["check_dates", "dates_between", "read_numbers", "write_numbers"]

_NEAR = 1e-9  # part of the range by which arithmetic may carry a number beyond its bound
_WHOLE = 1e-6  # how far from a whole number arithmetic may carry one
_SCALES, _DEVIATIONS = 8.0, 5.0  # of noise that dates have room for beyond their bounds: all but 2 in 10,000 answers


def read_numbers(
    coordinates: NDArray[np.float64], block: Block, domain: Integers | Reals
) -> NDArray[np.float64] | NDArray[np.int64]:
    """Numbers behind coordinates; dates are counted in the unit of the domain, and what is below it is cut off."""
    if not isinstance(domain, Dates):
        numbers = coordinates * float(block.scale or 1.0) + float(block.centre or 0.0)
        return _settle(numbers, domain)
    extent = _extent(block)
    counts = np.rint(coordinates * extent.unit + extent.origin).astype(np.int64)
    return domain.counts(_as_moments(counts, extent))


def write_numbers(
    numbers: NDArray[np.float64] | NDArray[np.int64], block: Block, domain: Integers | Reals
) -> NDArray[np.float64]:
    """Coordinates of numbers; of dates that a column cannot hold, those of the first or the last that it can."""
    if not isinstance(domain, Dates):
        return np.asarray((numbers - float(block.centre or 0.0)) / float(block.scale or 1.0))
    extent = _extent(block)
    first, last = _room(domain, extent)
    moments = domain.moments(np.clip(np.rint(numbers).astype(np.int64), first, last))
    counts = moments.view("datetime64[us]").astype(f"datetime64[{_unit(extent)}]").view(np.int64)
    return np.asarray((counts - extent.origin) / extent.unit)


def dates_between(extent: Extent) -> Dates:
    """Domain of the dates of a column between its bounds, by its step."""
    assert extent.low is not None
    assert extent.high is not None
    counts = np.array([extent.low, extent.high], dtype=np.int64)
    low, high = Dates(0, 1, extent.dates).counts(_as_moments(counts, extent)).tolist()
    return Dates(low, high, extent.dates)


def check_dates(block: Block, spec: NoiseSpec) -> None:
    """Refuse a specification that does not fit a column of dates, or one of dates for another column.

    Raises
    ------
    SchemaError
        Where the one counts in numbers and the other in dates.
    OptionError
        Where answers lie between two steps of the column, or outside what it can hold.
    """
    domain, extent, name = spec.domain, _extent(block), block.column
    if isinstance(domain, Dates) != bool(extent.dates):
        raise SchemaError(
            f"column {name!r} holds dates and its specification none; give its domain the kind dates"
            if extent.dates
            else f"the specification of column {name!r} is of dates and the column holds none; specify numbers"
        )
    if not isinstance(domain, Dates):
        return
    units = list(UNITS)
    if units.index(domain.unit) > units.index(extent.dates):
        raise OptionError(
            f"the specification of column {name!r} counts in {domain.unit}s and the column in {extent.dates}s; take "
            f"the unit {extent.dates}"
        )
    released = spec.released
    if not spec.recodes and not isinstance(released, Labels) and float(released.step) % 1.0:
        raise OptionError(f"the law of column {name!r} rounds to parts of a {domain.unit}; take a whole number of them")
    first, last = _room(domain, extent)
    reach = _reach(spec)
    if domain.low - reach < first or domain.high + reach > last:
        raise OptionError(
            f"the noise of column {name!r} would carry dates beyond what the column can hold (years 1 to 9999, or the "
            "hours of a day); use less noise, or a law that stays inside, such as keep-or-replace or shift-modulo"
        )


def _reach(spec: NoiseSpec) -> float:
    """How far beyond the domain answers must have room."""
    operator = spec.operator
    if not isinstance(operator, Additive):
        return 0.0
    law = operator.law
    if isinstance(law, DiscreteLaplace):
        return _SCALES * law.scale
    return _DEVIATIONS * law.sd if isinstance(law, DiscreteGaussian) else float(law.steps)


def _room(domain: Dates, extent: Extent) -> tuple[int, int]:
    """First and last date that a column can hold, as the domain counts."""
    first, last = domain.counts(_as_moments(np.array([extent.first, extent.last], dtype=np.int64), extent)).tolist()
    return int(first) + 1 if domain.unit == "month" else int(first), int(last)


def _as_moments(counts: NDArray[np.int64], extent: Extent) -> NDArray[np.int64]:
    return np.asarray(counts.view(f"datetime64[{_unit(extent)}]").astype("datetime64[us]").view(np.int64))


def _unit(extent: Extent) -> str:
    """NumPy's name of what a column of dates counts in: days also where it is by months."""
    return UNITS["day" if extent.dates == "month" else extent.dates]


def _extent(block: Block) -> Extent:
    assert block.extent is not None
    return block.extent


def _settle(numbers: NDArray[np.float64], domain: Integers | Reals) -> NDArray[np.float64]:
    """Undo what arithmetic in coordinates did to numbers: a hair beyond a bound is the bound."""
    if isinstance(domain, Integers):
        whole = np.rint(numbers)
        return np.where(np.abs(numbers - whole) <= _WHOLE, whole, numbers)
    hair = _NEAR * (domain.high - domain.low)
    near = (numbers >= domain.low - hair) & (numbers <= domain.high + hair)
    return np.where(near, np.clip(numbers, domain.low, domain.high), numbers)
