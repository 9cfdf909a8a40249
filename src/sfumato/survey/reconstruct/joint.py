"""Two columns together, each randomized by itself: their cross table with bands, and how the one depends on the other.

Given both truths the two released values are independent, so the chances of a pair are products: one matrix, the
Kronecker product of the two, leads from pairs of cells of the truth to pairs of what was released.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core.arrays import Floats, Ints
from sfumato.core.distributions.domains import Labels
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.documents import plain
from sfumato.core.errors import BadInput, DoesNotFit, OptionError, TooFew
from sfumato.core.threads import one_thread
from sfumato.survey.reconstruct.answers import Answer, moments_of
from sfumato.survey.reconstruct.bands import LEAST, cell_bands, check_precision, refuse_too_few
from sfumato.survey.reconstruct.channel import (
    Channel,
    DomainCells,
    cut_domain,
    cut_outputs,
    output_cells,
    refine,
    summed,
)
from sfumato.survey.reconstruct.estimate import DOUBTFUL, ReleasedCounts, doubt, solve
from sfumato.survey.reconstruct.iterate import LIMIT

__all__ = ["CrossTable", "Regression", "cross_table", "regress"]

_INTERVALS = 5  # of a column of numbers, if none were asked for
_MOST = 400  # pairs that are estimated
_PARTS = 24  # of a column, that pairs are estimated with
_PAIRS = 240  # of parts, that bands are made with
_OUTPUTS = 24

Intervals = int | Sequence[float] | None


@dataclass(frozen=True, eq=False)
class CrossTable:
    """Shares of the pairs of two columns' true values.

    Parameters
    ----------
    probability, lower, upper : ndarray of shape (rows, columns)
        Shares of all, and their bands; not-a-number where none can be given.
    level : float
        Of each band.
    fit : float
        P-value of the released pairs under both laws.
    records : int
    method, stopped_by : str
    notes : tuple of str
    rows, columns : Cells
    missing : int
        Records without one of the two values.
    """

    probability: Floats
    lower: Floats
    upper: Floats
    level: float
    fit: float
    records: int
    method: str
    stopped_by: str
    notes: tuple[str, ...]
    rows: DomainCells = field(repr=False)
    columns: DomainCells = field(repr=False)
    missing: int = 0

    def to_document(self) -> Mapping[str, Any]:
        """The same in plain JSON types."""
        fields = ("level", "fit", "records", "method", "stopped_by", "notes", "missing")
        tables = {
            name: [[None if math.isnan(each) else each for each in row] for row in getattr(self, name).tolist()]
            for name in ("probability", "lower", "upper")
        }
        sides = {name: _cells_document(getattr(self, name)) for name in ("rows", "columns")}
        return {**sides, **tables, **{name: plain(getattr(self, name)) for name in fields}}

    def describe(self) -> str:
        """The table in percent, a band under each share."""
        heads, sides = self.columns.names(), self.rows.names()
        shares = [[f"{100 * each:.1f}" for each in row] for row in self.probability]
        bands = [
            ["no band" if math.isnan(low) else f"{100 * low:.0f}-{100 * up:.0f}" for low, up in zip(*pair, strict=True)]
            for pair in zip(self.lower, self.upper, strict=True)
        ]
        wide = max(map(len, [*heads, *(cell for row in (*shares, *bands) for cell in row)])) + 2
        side = max(map(len, sides))
        lines = [" " * side + "".join(f"{head:>{wide}}" for head in heads)]
        for name, share, band in zip(sides, shares, bands, strict=True):
            lines.append(f"{name:>{side}}" + "".join(f"{cell:>{wide}}" for cell in share))
            lines.append(" " * side + "".join(f"{cell:>{wide}}" for cell in band))
        words = f"below each share where the truth lies, {100 * self.level:g} % of the time"
        lines.append(f"Percent of {self.records} records; {words}.")
        return "\n".join([*lines, *(f"Note: {note}." for note in self.notes)])


@one_thread()
def cross_table(
    first: ArrayLike,
    first_spec: NoiseSpec,
    second: ArrayLike,
    second_spec: NoiseSpec,
    *,
    intervals: tuple[Intervals, Intervals] = (None, None),
    bands: float = 0.95,
    least: float = LEAST,
    strict: bool = False,
) -> CrossTable:
    """Joint distribution of two columns that were randomized independently of each other.

    Parameters
    ----------
    first, second : array of shape (n,)
        Released values of the same records, in the same order.
    first_spec, second_spec : NoiseSpec
    intervals : pair
        Number of intervals or edges for each; None: labels one by one, numbers in 5.
    bands : float
        Level of the band of each pair.
    least : float
        As for one column: refuse if the coarsest feature is estimated less precisely than from this many records.
    strict : bool
        Refuse values that do not fit the laws.

    Raises
    ------
    TooFew, DoesNotFit, BadInput, OptionError, SchemaError
        As for one column; for columns of unequal length; for more than 400 pairs of cells.

    Examples
    --------
    >>> spec = NoiseSpec(Labels(("no", "yes")), {"name": "keep-or-replace", "keep": 0.75})
    >>> cross_table(["no"] * 400 + ["yes"] * 600, spec, ["no"] * 500 + ["yes"] * 500, spec).probability.round(1)
    array([[0.4, 0. ],
           [0. , 0.6]])
    """
    check_precision(bands, least)
    sides = [
        _JointColumn.of(values, spec, wish)
        for values, spec, wish in zip((first, second), (first_spec, second_spec), intervals, strict=True)
    ]
    n = len(sides[0].places)
    if n != len(sides[1].places):
        raise BadInput("the two columns are not equally long; provide both values of every record")
    cells = [len(side.cells) for side in sides]
    if math.prod(cells) > _MOST:
        raise OptionError(f"{cells[0]} times {cells[1]} pairs are more than {_MOST}; ask for fewer intervals")
    coarse = Channel(np.asarray(np.kron(sides[0].of_cells(), sides[1].of_cells()), dtype=np.float64))
    refuse_too_few(coarse, n, least)
    seen = _pairs(sides)
    solved = solve(seen, None, "auto", ordered=False, limit=LIMIT)
    known = cell_bands(seen.counts, seen.channel, seen.begins, bands, most=_PAIRS)
    if strict and known.fit < DOUBTFUL:
        raise DoesNotFit(doubt(known.fit))
    probability = np.add.reduceat(solved.probability, seen.begins)
    shape = (cells[0], cells[1])
    return CrossTable(
        probability=probability.reshape(shape),
        lower=np.minimum(known.lower, probability).reshape(shape),
        upper=np.maximum(known.upper, probability).reshape(shape),
        level=bands,
        fit=known.fit,
        records=n,
        method=solved.method,
        stopped_by=solved.ended,
        notes=(doubt(known.fit),) if known.fit < DOUBTFUL else (),
        rows=sides[0].cells,
        columns=sides[1].cells,
    )


@dataclass(frozen=True, eq=False, repr=False)
class _JointColumn:
    """One of the two columns: its cells and their parts, chances of outputs, and the output of each record."""

    cells: DomainCells
    begins: Ints
    chances: Floats
    places: Ints

    @classmethod
    def of(cls, values: ArrayLike, spec: NoiseSpec, wish: Intervals) -> _JointColumn:
        codes = spec.encode_output(values).ravel()
        operator = spec.operator
        if wish is None and not isinstance(spec.domain, Labels):
            wish = min(_INTERVALS, spec.domain.size)
        cells = cut_domain(spec.domain, operator, wish)
        parts, begins = refine(cells, operator, most=_PARTS)
        outputs = cut_outputs(parts, operator, codes)
        chances = summed(operator, parts.cuts, outputs)
        places = output_cells(codes, outputs, operator)
        if outputs is not None and chances.shape[1] > _OUTPUTS:  # neighbours together
            step = -(-chances.shape[1] // _OUTPUTS)
            chances = np.add.reduceat(chances, np.arange(0, chances.shape[1], step), axis=1)
            places = places // step
        return cls(cells, begins, chances, places)

    def of_cells(self) -> Floats:
        """Chances of the output cells given the cells, their parts as equally likely."""
        sizes = np.diff(np.r_[self.begins, len(self.chances)])
        return np.asarray(np.add.reduceat(self.chances, self.begins, axis=0) / sizes[:, None])


def _pairs(sides: list[_JointColumn]) -> ReleasedCounts:
    """Counts of pairs of outputs, and the chances of these given pairs of parts, those of a pair of cells in a row."""
    one, other = sides
    counts = np.bincount(
        one.places * other.chances.shape[1] + other.places, minlength=one.chances.shape[1] * other.chances.shape[1]
    )
    cell = [np.repeat(np.arange(len(side.begins)), np.diff(np.r_[side.begins, len(side.chances)])) for side in sides]
    pair = (cell[0][:, None] * len(other.begins) + cell[1][None, :]).ravel()
    order = np.argsort(pair, kind="stable")
    chances = np.kron(one.chances, other.chances)[order]
    begins = np.searchsorted(pair[order], np.arange(len(one.begins) * len(other.begins)))
    return ReleasedCounts(counts.astype(np.float64), Channel(np.ascontiguousarray(chances)), one.cells, begins)


@dataclass(frozen=True)
class Regression:
    """A straight line through the true values.

    Parameters
    ----------
    slope : Answer
        How much the response changes with one of the predictor.
    intercept : Answer
        The response where the predictor is 0.
    records : int
    missing : int
    """

    slope: Answer
    intercept: Answer
    records: int
    missing: int = 0

    def to_document(self) -> Mapping[str, Any]:
        """The same in plain JSON types."""
        entries = {"slope": self.slope.to_document(), "intercept": self.intercept.to_document()}
        return {**entries, "records": self.records, "missing": self.missing}

    def describe(self) -> str:
        """The line in words."""
        return f"{self.slope.describe()}; {self.intercept.describe()}; {self.records} records."


def regress(
    response: ArrayLike,
    response_spec: NoiseSpec,
    predictor: ArrayLike,
    predictor_spec: NoiseSpec,
    *,
    level: float = 0.95,
) -> Regression:
    """Line of least squares through the true values of two columns, from randomized ones.

    Noise in the predictor would flatten a line through the released values. Sums of products and squares are taken from
    unbiased numbers instead [`Moments`], the band of the slope is Fieller's: all slopes b for which the covariance less
    b times the variance is no further from 0 than chance brings it.

    Parameters
    ----------
    response, predictor : array of shape (n,)
        Released values of the same records; of two labels the second counts 1.
    response_spec, predictor_spec : NoiseSpec
    level : float

    Raises
    ------
    TooFew
        If the variance of the predictor does not differ significantly from 0, so that any slope would do.
    OptionError
        For labels of more than two values, and laws that do not tell the mean.

    Examples
    --------
    >>> spec = NoiseSpec(Labels(("no", "yes")), {"name": "keep-or-replace", "keep": 1.0})
    >>> answers = ["no"] * 60 + ["yes"] * 40
    >>> regress(answers, spec, answers, spec).slope.value
    1.0
    """
    if not 0 < level < 1:
        raise OptionError("the level of a band must lie between 0 and 1")
    from scipy.special import ndtri

    found = [
        moments_of(spec.encode_output(each).ravel(), spec)
        for each, spec in ((response, response_spec), (predictor, predictor_spec))
    ]
    if found[0] is None or found[1] is None:
        raise OptionError("a law does not determine the mean of its column, so there is no line; use a law that does")
    y, x, square = found[0].first, found[1].first, found[1].second
    n = len(y)
    if len(x) != n:
        raise BadInput("the two columns are not equally long; provide both values of every record")
    normal = float(ndtri((1.0 + level) / 2.0))
    joint = x * y - x.mean() * y - y.mean() * x + x.mean() * y.mean()  # of each record, to the covariance
    own = square - 2.0 * x.mean() * x + x.mean() ** 2
    spread = np.cov(np.stack([joint, own])) / n
    covariance, variance = float(joint.mean()), float(own.mean())
    low, high = _fieller(covariance, variance, spread, normal)
    slope = covariance / variance
    error = math.sqrt(max(spread[0, 0] - 2 * slope * spread[0, 1] + slope**2 * spread[1, 1], 0.0)) / variance
    intercept = float(y.mean() - slope * x.mean())
    moved = y - slope * x - x.mean() * (joint - slope * own) / variance  # its change with each record
    off = float(np.std(moved, ddof=1)) / math.sqrt(n)
    return Regression(
        Answer("slope", slope, error, low, high),
        Answer("intercept", intercept, off, intercept - normal * off, intercept + normal * off),
        n,
    )


def _fieller(covariance: float, variance: float, spread: Floats, normal: float) -> tuple[float, float]:
    """Slopes b with (covariance - b variance)^2 <= normal^2 Var(covariance - b variance)."""
    a = variance**2 - normal**2 * float(spread[1, 1])
    if a <= 0.0 or variance <= 0.0:
        raise TooFew(
            "the records are too few for this noise: the variance of the predictor does not differ from 0, so any "
            "slope would do; collect more, or use a weaker noise"
        )
    b = -2.0 * (covariance * variance - normal**2 * float(spread[0, 1]))
    c = covariance**2 - normal**2 * float(spread[0, 0])
    root = math.sqrt(max(b * b - 4.0 * a * c, 0.0))
    return (-b - root) / (2.0 * a), (-b + root) / (2.0 * a)


def _cells_document(cells: DomainCells) -> Mapping[str, object]:
    edges = cells.written_edges
    return {"edges": edges} if edges is not None else {"values": list(cells.values or ())}
