"""Single numbers that analysts ask for, with standard errors: the mean and the quantiles behind randomized values.

Numbers of each released record that average to what is asked of the truth, whatever its distribution is.

For a function f of the true value, g(released) is such that the mean of g given the truth is f. Then means of g are
unbiased for means of f, and as randomized columns are independent given the truth, a product of two is unbiased for the
product.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import OptionError
from sfumato.core.laws.dates import Dates
from sfumato.core.laws.domains import Labels
from sfumato.core.laws.operators import Additive
from sfumato.core.laws.spec import NoiseSpec
from sfumato.mine.reconstruct.bands import Bands
from sfumato.mine.reconstruct.cells import Cells, cut_outputs
from sfumato.mine.reconstruct.chances import summed

__all__ = ["SHARES", "Answer", "Moments", "mean_and_quantiles", "moments_of"]

SHARES = (0.25, 0.5, 0.75)
"""Quantiles that are told."""


@dataclass(frozen=True)
class Answer:
    """A number with its band; not-a-number where nothing can be said.

    Parameters
    ----------
    name : str
    value : float
    standard_error : float
        Half the band over the normal quantile of its level.
    lower, upper : float
    dates : Dates or None
        Whose counts value, lower and upper are, where they are dates.
    """

    name: str
    value: float
    standard_error: float
    lower: float
    upper: float
    dates: Dates | None = None

    def to_document(self) -> dict[str, str | float | None]:
        """The same in plain JSON types; dates as texts, their standard error in their unit."""
        numbers = {"value": self.value, "standard_error": self.standard_error, "lower": self.lower, "upper": self.upper}
        told: dict[str, str | float | None] = {key: None if math.isnan(each) else each for key, each in numbers.items()}
        if self.dates is not None:
            told |= {key: self._date(key) for key in ("value", "lower", "upper") if told[key] is not None}
        return {"name": self.name, **told}

    def _date(self, key: str) -> str:
        """A number as a date; bands are rounded outwards."""
        assert self.dates is not None
        number = float(getattr(self, key))
        near = math.floor(number) if key == "lower" else math.ceil(number) if key == "upper" else round(number)
        return self.dates.written([near - self.dates.low])[0]

    def describe(self) -> str:
        """The number, its standard error and its band in words."""
        if self.dates is not None:
            if math.isnan(self.lower):
                return f"{self.name}: {self._date('value')}, without a band"
            error = f"standard error {self.standard_error:.2g} {self.dates.unit}s"
            return f"{self.name}: {self._date('value')} ({self._date('lower')} to {self._date('upper')}, {error})"
        if math.isnan(self.lower):
            return f"{self.name}: {self.value:.4g}, without a band"
        band = f"{self.lower:.4g} to {self.upper:.4g}, standard error {self.standard_error:.2g}"
        return f"{self.name}: {self.value:.4g} ({band})"


def mean_and_quantiles(
    bands: Bands,
    parts: Cells,
    quantile: Callable[[float], float],
    numbers: NDArray[np.float64] | None,
    *,
    classes: bool = False,
) -> tuple[Answer, ...]:
    """Mean and quartiles of the true values.

    The mean is that of unbiased numbers, not of the estimate, which is smoothed. Where a law has none, or none of use,
    it is the middle of all means that fit. A quantile lies above a value where all distributions that fit have less
    than its share there.

    Parameters
    ----------
    bands : Bands
    parts : Cells
        The inputs that the bands were made with.
    quantile : callable
        Of the estimate.
    numbers : ndarray of shape (n,) or None
        For each record a number whose mean given the true value is that value [`Moments`].
    classes : bool
        Nothing is told of where in a part a value lies, so that the mean may be anywhere between its ends.
    """
    cuts = parts.cuts[np.r_[bands.blocks, len(parts)]]
    blocks = Cells(parts.universe, cuts, False)
    centres, edges = blocks.centres, blocks.edges
    assert edges is not None
    normal = math.sqrt(bands.known.radius)
    if numbers is not None and len(numbers) > 1:
        mean, reach = float(numbers.mean()), normal * float(numbers.std(ddof=1)) / math.sqrt(len(numbers))
        found = mean - reach, mean + reach
    else:
        found = bands.known.range(centres) or (math.nan, math.nan)
        mean = sum(found) / 2.0
        if classes:
            below, above = (bands.known.range(each) for each in blocks.ends)
            found = (below[0], above[1]) if below and above else (math.nan, math.nan)
    low, mean, high = (float(np.clip(each, edges[0], edges[-1])) for each in (found[0], mean, found[1]))
    answers = [_answer("mean", mean, low, high, normal)]
    for share in SHARES:
        low, high = _quantile_band(bands, edges, share)
        answers.append(_answer(f"quantile {share:g}", quantile(share), low, high, normal))
    if isinstance(parts.universe, Dates):
        return tuple(replace(answer, dates=parts.universe) for answer in answers)
    return tuple(answers)


def _answer(name: str, value: float, low: float, high: float, normal: float) -> Answer:
    if math.isnan(low):
        return Answer(name, value, math.nan, math.nan, math.nan)
    low, high = min(low, value), max(high, value)
    return Answer(name, value, (high - low) / (2.0 * normal), low, high)


def _quantile_band(bands: Bands, edges: NDArray[np.float64], share: float) -> tuple[float, float]:
    """Edges between which the quantile lies under every distribution that fits."""
    blocks = len(edges) - 1

    @cache  # both ends are looked for among the same numbers
    def below(many: int) -> tuple[float, float]:
        weights = np.zeros(blocks)
        weights[:many] = 1.0
        return (0.0, 0.0) if not many else bands.known.range(weights) or (0.0, 1.0)

    # the first so many blocks that may hold the share, and the first that must
    first = _bisect(lambda many: below(many)[1] >= share, blocks)
    must = _bisect(lambda many: below(many)[0] >= share, blocks)
    return float(edges[max(first - 1, 0)]), float(edges[must])


def _bisect(holds: Callable[[int], bool], most: int) -> int:
    """Least number of 0 to most that a rising property holds for; the most where it holds for none below."""
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return high


_CELLS = 400  # that a domain is cut into
_EXACT = 1e-4  # of the range: how far the mean of g may be from f

_Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Moments:
    """For each record a number whose mean given the truth is the true value, and one for its square."""

    first: _Vector
    second: _Vector


def moments_of(codes: NDArray[np.int64], spec: NoiseSpec) -> Moments | None:
    """Unbiased numbers for the value and its square; None where the law does not tell them.

    Labels count as 0 and 1, where there are two. Additive noise has mean 0 and a known variance. For other laws g has
    the least variance of all that are unbiased: it solves A g = f by least squares, weighted by the counts.

    Parameters
    ----------
    codes : ndarray of int
        Output of each record.
    spec : NoiseSpec
    """
    operator, domain = spec.operator, spec.domain
    if isinstance(domain, Labels) and domain.size != 2:
        raise OptionError(f"a label with {domain.size} values is no number; take a column of numbers or of two labels")
    if isinstance(operator, Additive):
        assert not isinstance(domain, Labels)
        values = np.asarray(domain.low + codes * float(domain.step), dtype=np.float64)
        return Moments(values, np.asarray(values**2 - operator.law.variance * float(domain.step) ** 2))
    count = min(domain.size, _CELLS)
    cuts = np.array([domain.size * each // count for each in range(count + 1)], dtype=np.int64)
    cells = Cells(domain, cuts, False)
    outputs = cut_outputs(cells, operator, codes)
    chances = summed(operator, cuts, outputs)
    places = codes if outputs is None else np.searchsorted(outputs, codes, side="right") - 1
    centres = np.arange(2.0) if isinstance(domain, Labels) else cells.centres
    found = [_unbiased(chances, places, each) for each in (centres, centres**2)]
    if found[0] is None or found[1] is None:
        return None
    return Moments(*(np.asarray(each[places]) for each in (found[0], found[1])))


def _unbiased(chances: NDArray[np.float64], places: NDArray[np.int64], wanted: _Vector) -> _Vector | None:
    outputs = chances.shape[1]
    weight = len(places) / (np.bincount(places, minlength=outputs) + 1.0)
    solution = np.linalg.lstsq((chances * weight) @ chances.T, wanted, rcond=1e-12)[0]
    found = weight * (solution @ chances)
    off = float(np.abs(chances @ found - wanted).max())
    return None if off > _EXACT * float(np.ptp(wanted)) else np.asarray(found)
