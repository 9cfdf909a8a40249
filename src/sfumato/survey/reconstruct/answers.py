"""What a reconstruction says: probabilities with bands, and the mean and quantiles behind randomized values.

Where it can, single numbers come from numbers of each released record that average to what is asked of the truth,
whatever its distribution is. For a function f of the true value, g(released) is such that the mean of g given the truth
is f. Then means of g are unbiased for means of f, and as randomized columns are independent given the truth, a product
of two is unbiased for the product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Floats, Ints
from sfumato.core.distributions.domains import Dates, Labels
from sfumato.core.distributions.operators import Additive
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.documents import plain
from sfumato.core.errors import OptionError
from sfumato.survey.reconstruct.bands import Bands
from sfumato.survey.reconstruct.channel import DomainCells, cut_outputs, output_cells, summed

__all__ = [
    "SHARES",
    "Answer",
    "Reconstruction",
    "RecordMoments",
    "mean_and_quantiles",
    "moments_of",
]

_NUMBERS = ("probability", "lower", "upper", "level", "fit", "iterations")
_WRITTEN = (*_NUMBERS, "stopped_by", "method", "records", "effective_records", "resolved", "notes")
_ROWS, _WIDTH = 24, 40  # of a chart in the terminal


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """The estimated distribution of the true values.

    Parameters
    ----------
    probability : ndarray of shape (m,)
        Of each value or interval; non-negative, adds up to 1.
    lower, upper : ndarray of shape (m,)
        The band of each; not-a-number where none can be given.
    level : float
        Of the bands.
    fit : float
        P-value of the released values under the law and the distribution that fits them best.
    iterations : int
    stopped_by : str
        ``likelihood``, ``held-out`` (later than that), ``chi-square``, ``limit``, ``penalty`` (direct) or ``start``
        (one interval: nothing to do).
    records : int
        Released values that it is made from.
    effective_records : float
        Plain values that would tell the distribution as precisely.
    resolved : int
        Directions, of m - 1, in which the records tell as much as one plain record or more.
    method : str
    notes : tuple of str
    cells : Cells
        The domain and where it is cut.
    missing : int
        Cells that were skipped, because nothing was sent in them.
    answers : tuple of Answer
        Mean and quartiles with standard errors; none for labels.
    """

    probability: Floats
    lower: Floats
    upper: Floats
    level: float
    fit: float
    iterations: int
    stopped_by: str
    records: int
    effective_records: float
    resolved: int
    method: str
    notes: tuple[str, ...]
    cells: DomainCells = field(repr=False)
    missing: int = 0
    answers: tuple[Answer, ...] = ()

    @property
    def values(self) -> tuple[str | int | float, ...] | None:
        """The values, if they are estimated one by one."""
        return self.cells.values

    @property
    def edges(self) -> Floats | None:
        """The m + 1 edges of intervals, where values are not told one by one; between integers they end in .5."""
        return self.cells.edges

    def to_document(self) -> Mapping[str, Any]:
        """The same in plain JSON types."""
        edges = self.cells.written_edges
        where = {"edges": edges} if edges is not None else {"values": list(self.values or ())}
        entries = {name: plain(getattr(self, name)) for name in _WRITTEN}
        bands = {name: [None if value != value else value for value in entries[name]] for name in ("lower", "upper")}
        answers = [answer.to_document() for answer in self.answers]
        return {**where, **entries, **bands, "effective_records": round(self.effective_records, 1), "answers": answers}

    def mean(self) -> float:
        """Mean of the distribution; intervals count at their middle."""
        return float(self.probability @ self.cells.centres)

    def quantile(self, share: float) -> float:
        """Value below or at which a share of the distribution lies; inside intervals along a straight line."""
        if isinstance(share, bool) or not 0 <= share <= 1:
            raise OptionError("a quantile is for a share from 0 to 1")
        centres, edges = self.cells.centres, self.edges
        total = np.minimum(np.cumsum(self.probability), 1.0)
        total[-1] = 1.0
        place = min(int(np.searchsorted(total, share, side="left")), len(total) - 1)
        if edges is None:
            return float(centres[place])
        before = total[place - 1] if place else 0.0
        inside = (share - before) / self.probability[place] if self.probability[place] > 0 else 0.0
        return float(edges[place] + min(max(inside, 0.0), 1.0) * (edges[place + 1] - edges[place]))

    def sample(self, count: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw values of the domain from the distribution; inside an interval each place is as likely."""
        cuts = self.cells.cuts
        chosen = rng.choice(len(self.cells), size=count, p=self.probability / self.probability.sum())
        places = rng.integers(cuts[chosen], cuts[chosen + 1])
        universe = self.cells.universe
        return (
            np.array(universe.written(places)) if isinstance(universe, Dates) else np.asarray(universe.decode(places))
        )

    def describe(self) -> str:
        """Say in a few lines what was found."""
        cells = f"{len(self.cells)} {'values' if self.values is not None else 'intervals'}"
        lines = [
            f"{self.records} records, worth about {self.effective_records:.0f} without noise; {cells}; "
            f"{self.iterations} iterations, stopped by {self.stopped_by}."
        ]
        level = f"{100 * self.level:g} % of the time"
        if isinstance(self.cells.universe, Labels):
            named = zip(self.values or (), self.probability, self.lower, self.upper, strict=True)
            lines += [f"{value}: {100 * p:.1f} % ({_percents(low, up)})" for value, p, low, up in named]
            lines.append(f"In brackets where the truth lies, {level}.")
        else:
            lines += [f"{answer.describe()}." for answer in self.answers]
            lines.append(f"In brackets where the truth lies, {level}.")
        return "\n".join([*lines, *(f"Note: {note}." for note in self.notes)])

    def chart(self) -> str:
        """Bars of the distribution for a terminal, a line for each cell or for several together, with their bands."""
        cells = len(self.cells)
        first = np.arange(0, cells, -(-cells // _ROWS) if not isinstance(self.cells.universe, Labels) else 1)
        shares = np.add.reduceat(self.probability, first)
        names = self.cells.names(first)
        single = len(first) == cells
        wide, most = max(map(len, names)), max(float(shares.max()), 1e-12)
        lines = []
        for row, (name, share) in enumerate(zip(names, shares, strict=True)):
            band = f"  {_percents(self.lower[row], self.upper[row])}" if single else ""
            bar = "#" * round(_WIDTH * float(share) / most)
            lines.append(f"{name:>{wide}}  {100 * share:5.1f} %  {bar:<{_WIDTH if single else 0}}{band}")
        return "\n".join(lines)


def _percents(low: float, up: float) -> str:
    return "no band" if low != low else f"{100 * low:.1f} to {100 * up:.1f}"


SHARES = (0.25, 0.5, 0.75)
"""Quantiles that are reported."""


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
        entries: dict[str, str | float | None] = {
            key: None if math.isnan(each) else each for key, each in numbers.items()
        }
        if self.dates is not None:
            entries |= {key: self._date(key) for key in ("value", "lower", "upper") if entries[key] is not None}
        return {"name": self.name, **entries}

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
    parts: DomainCells,
    quantile: Callable[[float], float],
    numbers: Floats | None,
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
        For each record a number whose mean given the true value is that value [`RecordMoments`].
    classes : bool
        The position of a value within a part is unknown, so that the mean may be anywhere between its ends.
    """
    cuts = parts.cuts[np.r_[bands.blocks, len(parts)]]
    blocks = DomainCells(parts.universe, cuts, False)
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


def _quantile_band(bands: Bands, edges: Floats, share: float) -> tuple[float, float]:
    """Edges between which the quantile lies under every distribution that fits."""
    blocks = len(edges) - 1

    @cache  # both ends are looked for among the same numbers
    def below(many: int) -> tuple[float, float]:
        weights = np.zeros(blocks)
        weights[:many] = 1.0
        return (0.0, 0.0) if not many else bands.known.range(weights) or (0.0, 1.0)

    # the first number of blocks that may hold the share, and the first that must
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


@dataclass(frozen=True, eq=False, repr=False)
class RecordMoments:
    """For each record a number whose mean given the truth is the true value, and one for its square."""

    first: Floats
    second: Floats


def moments_of(codes: Ints, spec: NoiseSpec) -> RecordMoments | None:
    """Unbiased numbers for the value and its square; None where the law does not tell them.

    Labels count as 0 and 1, if there are two. Additive noise has mean 0 and a known variance. For other laws g has
    the least variance of all that are unbiased: it solves A g = f by least squares, weighted by the counts.

    Parameters
    ----------
    codes : ndarray of int
        Output of each record.
    spec : NoiseSpec
    """
    operator, domain = spec.operator, spec.domain
    if isinstance(domain, Labels) and domain.size != 2:
        raise OptionError(f"a label with {domain.size} values is no number; use a column of numbers or of two labels")
    if isinstance(operator, Additive):
        assert not isinstance(domain, Labels)
        values = np.asarray(domain.low + codes * float(domain.step), dtype=np.float64)
        return RecordMoments(values, np.asarray(values**2 - operator.law.variance * float(domain.step) ** 2))
    count = min(domain.size, _CELLS)
    cuts = np.array([domain.size * each // count for each in range(count + 1)], dtype=np.int64)
    cells = DomainCells(domain, cuts, False)
    outputs = cut_outputs(cells, operator, codes)
    chances = summed(operator, cuts, outputs)
    places = output_cells(codes, outputs, operator)
    centres = np.arange(2.0) if isinstance(domain, Labels) else cells.centres
    found = [_unbiased(chances, places, each) for each in (centres, centres**2)]
    if found[0] is None or found[1] is None:
        return None
    return RecordMoments(*(np.asarray(each[places]) for each in (found[0], found[1])))


def _unbiased(chances: Floats, places: Ints, wanted: Floats) -> Floats | None:
    outputs = chances.shape[1]
    weight = len(places) / (np.bincount(places, minlength=outputs) + 1.0)
    solution = np.linalg.lstsq((chances * weight) @ chances.T, wanted, rcond=1e-12)[0]
    found = weight * (solution @ chances)
    off = float(np.abs(chances @ found - wanted).max())
    return None if off > _EXACT * float(np.ptp(wanted)) else np.asarray(found)
