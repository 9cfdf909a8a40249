"""What is read off the columns: how far each one's distribution, their links, covariances and counts moved.

A column is compared by the Kolmogorov-Smirnov distance, or total variation for categories; covariances by their
compatibility mu [AY05, sec. 4]; counts by random range-count queries, as in the literature on release of histograms
[Xiao, Wang and Gehrke 2011].
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import SHARE, Measure, NotRun, Number, Scale, Stated, Values
from sfumato.assess.findings import Family, distance_interval, redraw_interval
from sfumato.assess.study import Column, ColumnPair, Matrix, Places, Study, once, sample
from sfumato.assess.utility.association import (
    AssociationMatrices,
    Coordinates,
    TableSums,
    association,
    association_alone,
    association_difference,
    covariance,
    gather,
    redraws,
)
from sfumato.tables.schema import Role

__all__ = [
    "COLUMNS",
    "QUERIES",
    "Query",
    "associations_of",
    "compatibility",
    "count_rows",
    "draw_queries",
    "marginal_distances",
    "relative_errors",
]

_Norm = Callable[[Matrix], Matrix]
_Counts = Places | Matrix
_REDRAWS = 200
_CELLS = 256  # values are binned for the redraws; the distance itself is exact
_TINY = 1e-12
_CATEGORIES = "The share of rows that would have to change category for {column} to have its original frequencies"


@once
def _compared(study: Study) -> tuple[tuple[Stated, ...], AssociationMatrices]:
    pairs, rng = study.pairs, study.generator("columns")
    marginals = marginal_distances(pairs, rng)
    coordinates = Coordinates.of(pairs)
    before, after = (
        gather(coordinates, [getattr(pair, side) for pair in pairs], rng) for side in ("original", "released")
    )
    mean, largest = association_difference([pair.name for pair in pairs], before, after, rng)
    links: tuple[Stated, ...] = (("association-difference", mean), ("association-difference-largest", largest))
    covariances = tuple(covariance_compatibility(before, after, rng))
    first, second = (association(sums.total, coordinates) for sums in (before, after))
    matrices = AssociationMatrices(first, second, association_alone(pairs))
    return (*marginals[:2], *links, *covariances, *marginals[2:]), matrices


def associations_of(study: Study) -> AssociationMatrices:
    """Association matrices of both tables of a study."""
    return _compared(study)[1]


def marginal_distances(pairs: Sequence[ColumnPair], rng: np.random.Generator) -> list[Stated]:
    """How far the distribution of each column moved: on average, at most, then column by column."""
    weight = next((pair for pair in pairs if pair.field.role is Role.WEIGHT), None)
    distances = [marginal_distance(pair, rng, None if pair is weight else weight) for pair in pairs]
    single: list[Stated] = []
    for pair, distance in zip(pairs, distances, strict=True):
        meaning = None if pair.is_number else _CATEGORIES.format(column=pair.name)
        single.append((f"marginal-distance/{pair.name}", dataclasses.replace(distance, meaning=meaning)))
        if pair.has_missing:
            single.append((f"missing-rate/{pair.name}", _missing_distance(pair, rng)))
    largest = int(np.argmax([distance.value for distance in distances]))
    worst = dataclasses.replace(distances[largest], note=f": {pairs[largest].name}")
    mean = _mean(distances)
    if weight is not None:
        mean = dataclasses.replace(mean, note=f"; every row counts by its weight, {weight.name}")
    return [("marginal-distance", mean), ("marginal-distance-largest", worst), *single]


def marginal_distance(pair: ColumnPair, rng: np.random.Generator, weight: ColumnPair | None = None) -> Values:
    """How far the present values of one column moved; 1 if no value is left. Rows count by a weight, if any."""
    first, second = pair.original.present, pair.released.present
    if not len(first) or not len(second):
        return Values(1.0, None, 0.0)
    values = np.unique(np.concatenate([first, second]))
    counts: _Counts
    others: _Counts
    if weight is None:
        counts, others = (_counts_of(values, side) for side in (first, second))
    else:
        sides = ((pair.original, weight.original), (pair.released, weight.released))
        counts, others = (_weighed_counts(values, side, by.values[~side.absent]) for side, by in sides)
    norm = _kolmogorov if pair.is_number else _variation
    value = float(norm(counts / counts.sum() - others / others.sum()))
    if pair.is_number:
        counts, others = _pool(counts, others)
    return _with_redraws(value, counts, others, norm, rng)


def _counts_of(values: Matrix, cells: Matrix) -> Places:
    """How often each value, in rising order, stands in the cells: sorting both is cheaper than ranking them."""
    return np.diff(np.searchsorted(np.sort(cells), values, side="right"), prepend=0)


def _weighed_counts(values: Matrix, cells: Column, weights: Matrix) -> Matrix:
    """Weight of each value, in rising order; in all as many rows of one weight as tell as much [Kish 1965, 11.7]."""
    sums = np.bincount(np.searchsorted(values, cells.present), weights=weights, minlength=len(values))
    return np.asarray(sums * (weights.sum() / (weights * weights).sum()))


def _with_redraws(value: float, counts: _Counts, others: _Counts, norm: _Norm, rng: np.random.Generator) -> Values:
    n, m = (max(1, round(float(side.sum()))) for side in (counts, others))
    p, q = counts / counts.sum(), others / others.sum()
    strays = (rng.multinomial(n, p, _REDRAWS) / n - p) - (rng.multinomial(m, q, _REDRAWS) / m - q)
    redraws = rng.multinomial(m, p, _REDRAWS) / m - p
    return Values(value, distance_interval(value, norm(strays), 0.0, 1.0), float(norm(redraws).mean()))


def _kolmogorov(difference: Matrix) -> Matrix:
    return np.asarray(np.abs(np.cumsum(difference, axis=-1)).max(axis=-1))


def _variation(difference: Matrix) -> Matrix:
    return np.asarray(np.abs(difference).sum(axis=-1) / 2)


def _pool(counts: _Counts, others: _Counts) -> tuple[_Counts, _Counts]:
    """Neighbouring values pooled into at most `_CELLS` cells of about equal weight."""
    if len(counts) <= _CELLS:
        return counts, others
    both = np.cumsum(counts + others)
    cells = np.maximum(both - 1, 0) * _CELLS // both[-1]
    starts = np.flatnonzero(np.diff(cells, prepend=-1))
    return np.add.reduceat(counts, starts), np.add.reduceat(others, starts)


def _missing_distance(pair: ColumnPair, rng: np.random.Generator) -> Values:
    sides = (pair.original.absent, pair.released.absent)
    counts, others = (np.array([int((~absent).sum()), int(absent.sum())]) for absent in sides)
    value = abs(float(sides[0].mean() - sides[1].mean()))
    return _with_redraws(value, counts, others, _variation, rng)


def _mean(distances: Sequence[Values]) -> Values:
    ends = [distance.interval or (distance.value, distance.value) for distance in distances]
    low, high = np.mean(ends, axis=0)
    value = float(np.mean([distance.value for distance in distances]))
    return Values(value, (float(low), float(high)), float(np.mean([distance.baseline for distance in distances])))


def compatibility(original: Matrix, released: Matrix) -> float | None:
    """Correlation of the entries of two covariance matrices, each unordered pair once and the variances too.

    This is mu [AY05, sec. 4]. Equal matrices give 1 as the paper says. Where the released entries are all equal, which
    is so for a constant table, no correlation exists and mu is set to 0. Where only the original's are, or there is
    a single entry, there is nothing to compare with.

    Examples
    --------
    >>> o = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> compatibility(o, 5 * o), compatibility(o, np.zeros((2, 2))), compatibility(o[:1, :1], o[:1, :1])
    (1.0, 0.0, None)
    """
    mu = float(_compatibilities(original[None], released[None])[0])
    return None if np.isnan(mu) else mu


def _compatibilities(originals: Matrix, releaseds: Matrix) -> Matrix:
    """Mu of each two matrices of two stacks, nan where it is undefined."""
    pairs = np.triu_indices(originals.shape[-1])
    first, second = np.broadcast_arrays(originals[:, *pairs], releaseds[:, *pairs])
    if first.shape[1] < 2:
        return np.full(len(first), np.nan)
    size, reach = (np.abs(side).max(axis=1) for side in (first, second))
    equal = (np.abs(first - second) <= _TINY * size[:, None] + 1e-9 * np.abs(second)).all(axis=1) & (size > 0)
    sides = np.ascontiguousarray(np.stack([first, second], axis=1))
    sides = sides - sides.mean(axis=2, keepdims=True)
    squares = sides @ sides.swapaxes(1, 2) * (1 / (first.shape[1] - 1))
    spread = np.sqrt(squares[:, [0, 1], [0, 1]])
    flat = spread <= _TINY * np.stack([size, reach], axis=1)
    spread[flat] = np.nan
    mu = np.round(np.clip(squares[:, 0, 1] / spread[:, 0] / spread[:, 1], -1.0, 1.0), 15)
    return np.asarray(np.where(equal, 1.0, np.where(flat[:, 1] & ~flat[:, 0], 0.0, mu)))


def covariance_compatibility(original: TableSums, released: TableSums, rng: np.random.Generator) -> Iterator[Stated]:
    """Mu of the columns in their own units and in the original's standard deviations."""
    scale = original.coordinates.scale / original.coordinates.scale.max(initial=1.0)  # mu does not mind, no overflow
    units = {"covariance-compatibility": np.outer(scale, scale), "covariance-compatibility-standardized": None}
    lacking = NotRun(f"the table has {len(scale)} columns with an order and a covariance needs two")
    before, after = original.of_ordered(), released.of_ordered()
    for name, unit in units.items():
        yield name, lacking if len(scale) < 2 else _mu(unit, before, after, rng)


def _mu(unit: Matrix | None, original: TableSums, released: TableSums, rng: np.random.Generator) -> Values | NotRun:
    def entries(sums: Matrix) -> Matrix:
        matrix = covariance(sums, original.coordinates)
        return matrix if unit is None else matrix * unit

    before, after = entries(original.total), entries(released.total)
    value = compatibility(before, after)
    if value is None:
        return NotRun("the variances and covariances of the original are all the same number")
    sources = ((original, original.rows), (released, released.rows), (original, released.rows))
    again, chance = [], []
    for drawn in zip(*(redraws(source, rows, _REDRAWS, rng) for source, rows in sources), strict=True):
        first, second, fresh = (entries(sums) for sums in drawn)
        again.append(_compatibilities(first, second))
        chance.append(_compatibilities(before[None], fresh))
    known, redrawn = (every[~np.isnan(every)] for every in map(np.concatenate, (again, chance)))
    interval = redraw_interval(value, known if len(known) else np.array([value]))
    return Values(value, interval, float(np.mean(redrawn)) if len(redrawn) else None)


def _mu_number(name: str, spoken: str, units: str) -> Number:
    meaning = (
        f"The correlation of the covariances of numeric columns in release and original, {units}: 1 is best, 0 or less "
        "means no agreement"
    )
    return Number(name, spoken, Scale((-1.0, 1.0)).more).means(meaning)


COLUMNS = Measure(
    "columns",
    Family.UTILITY,
    "Aggarwal & Yu 2005, section 4; Bergsma 2013",
    lambda study: _compared(study)[0],
    uncompared={
        "marginal-distance": "How much the columns changed on average.",
        "association-difference": "How much the associations between columns changed.",
        "covariance-compatibility": "How well variances and covariances agree.",
    },
).finds(
    Number("marginal-distance").means(
        "The mean difference between the distributions of single columns in original and release: 0 means equal, 1 "
        "means nothing in common"
    ),
    Number("marginal-distance-largest", "Marginal distance, largest").means(
        "The largest difference between the distributions of a single column"
    ),
    Number(
        "association-difference", "Association difference", Scale((0.0, 2.0)), figure="association/difference"
    ).means(
        "Mean absolute difference of the associations of two columns over all pairs; an association lies between 0 "
        "(none) and 1 (one column determines the other), and is negative if one falls as the other rises"
    ),
    Number(
        "association-difference-largest",
        "Association difference, largest",
        Scale((0.0, 2.0)),
        figure="association/difference",
    ).means("The largest difference of the association of two columns"),
    _mu_number("covariance-compatibility", "Covariance compatibility \u03bc", "each column in its own units"),
    _mu_number(
        "covariance-compatibility-standardized",
        "Covariance compatibility \u03bc, standardized",
        "each column counted in the original's standard deviations",
    ),
    Number("marginal-distance/", figure="marginals/COLUMN").means(
        "The largest difference between the original and the release in the share of rows at or below any value of "
        "{column}"
    ),
    Number("missing-rate/", scale=SHARE, figure="marginals/COLUMN").means(
        "The difference between the shares of missing cells in {column}"
    ),
)


_Values = Matrix | Places
FLOOR = 0.001
"""Share of the original's rows: the least denominator of a relative error, so that small counts do not dominate."""
_ASKED = 3  # most columns that a query asks about
_SELECTIVE = 0.01  # share of the rows that a query matches at least
_TRIES = 30  # for each query that is kept
_SKETCH = 20_000  # rows on which it is seen how many rows a query matches
_BLOCK = 65_536  # rows of which a column fits into a fast memory
_QUANTILES = {
    "query-error": (0.5, "median", "Error of counting queries"),
    "query-error-largest": (0.95, "95 % quantile of the", "Error of counting queries, largest"),
}


@dataclass(frozen=True, eq=False, repr=False)
class Query:
    """Count the rows that pass every test; a missing cell passes none.

    ``columns`` are places in the table. The test of an ordered column is its lowest and highest value, that of a
    column of categories which of them are asked for, with a last place for missing cells that never is.
    """

    columns: tuple[int, ...]
    tests: tuple[Matrix | NDArray[np.bool_], ...]

    def matches(self, values: Sequence[_Values]) -> NDArray[np.bool_]:
        """Whether each row passes, given the prepared values of all columns."""
        passed = np.ones(len(values[0]), dtype=np.bool_)
        for column, test in zip(self.columns, self.tests, strict=True):
            cells = values[column]
            if test.dtype == np.bool_:
                passed &= np.asarray(test[cells.astype(np.int64, copy=False)], dtype=np.bool_)
            else:
                passed &= (cells >= test[0]) & (cells <= test[1])
        return passed


def draw_queries(pairs: Sequence[ColumnPair], count: int, rng: np.random.Generator) -> list[Query]:
    """Random queries over one to three columns that match at least one in a hundred rows of the original, but not all.

    A range runs between the cells of two rows drawn at random; of categories each is asked for or not with even
    chances. There are fewer if enough are hard to find.
    """
    cells = [pair.original for pair in pairs]
    places = [place for place, column in enumerate(cells) if len(np.unique(column.present[:_SKETCH])) > 1]
    if not places:
        return []
    rows = sample(len(cells[0].values), _SKETCH, rng)
    widths = [_categories(pair) for pair in pairs]
    values = [_prepare(pair.original, size, rows) for pair, size in zip(pairs, widths, strict=True)]
    queries: list[Query] = []
    for _ in range(_TRIES * count):
        asked = rng.choice(places, rng.integers(1, min(_ASKED, len(places)) + 1), replace=False)
        query = Query(tuple(asked.tolist()), tuple(_test(values[place], widths[place], rng) for place in asked))
        matched = np.count_nonzero(query.matches(values))
        if _SELECTIVE * len(rows) <= matched < len(rows) and matched:
            queries.append(query)
        if len(queries) == count:
            break
    return queries


def _categories(pair: ColumnPair) -> int:
    """How many categories there are; 0 for an ordered column."""
    if pair.is_number:
        return 0
    return 1 + int(max(pair.original.values.max(initial=0), pair.released.values.max(initial=0)))


def _prepare(cells: Column, categories: int, rows: Places | slice) -> _Values:
    """Numbers with NaN where missing, which is in no range, or places in the categories with a last one."""
    values, absent = cells.values[rows], cells.absent[rows]
    if not categories:
        return np.where(absent, np.nan, values)
    return np.where(absent, categories, values).astype(np.int64)


def _test(values: _Values, categories: int, rng: np.random.Generator) -> Matrix | NDArray[np.bool_]:
    if categories:
        return np.append(rng.random(categories) < 0.5, False)
    ends = values[rng.integers(len(values), size=2)]
    return np.sort(ends).astype(np.float64)  # an end that is missing makes a range that nothing is in


def count_rows(queries: Sequence[Query], pairs: Sequence[ColumnPair], *, released: bool) -> Places:
    """Rows of one table that each query matches, counted exactly and in blocks of rows."""
    tables = [pair.released if released else pair.original for pair in pairs]
    widths = [_categories(pair) for pair in pairs]
    counts = np.zeros(len(queries), dtype=np.int64)
    for first in range(0, len(tables[0].values), _BLOCK):
        part = slice(first, first + _BLOCK)
        values = [_prepare(cells, size, part) for cells, size in zip(tables, widths, strict=True)]
        for place, query in enumerate(queries):
            counts[place] += np.count_nonzero(query.matches(values))
    return counts


def relative_errors(true: Places, found: Places, rows: int, others: int) -> Matrix:
    """Relative error of what was found among ``others`` rows, scaled to as many ``rows`` as the truth is of.

    Examples
    --------
    >>> relative_errors(np.array([50, 50]), np.array([25, 10]), 100, 50)
    array([0. , 0.6])
    """
    return np.asarray(np.abs(found * rows / others - true) / np.maximum(true, FLOOR * rows))


def _run_queries(study: Study) -> Iterator[Stated]:
    rng = study.generator("queries")
    queries = draw_queries(study.pairs, study.sizes.queries, rng)
    if not queries:
        raise NotRun("no column of the original varies, so that every count is of all rows or of none")
    true, found = (count_rows(queries, study.pairs, released=side) for side in (False, True))
    rows, others = len(study.original), len(study.released)
    errors = relative_errors(true, found, rows, others)
    # How many rows of a redraw a query matches is binomial, so that no redraw has to be made.
    chance = relative_errors(true, rng.binomial(others, true / rows, (_REDRAWS, len(true))), rows, others)
    again = errors[rng.integers(len(errors), size=(_REDRAWS, len(errors)))]
    for name, (quantile, _, _) in _QUANTILES.items():
        value = float(np.quantile(errors, quantile))
        interval = redraw_interval(value, np.quantile(again, quantile, axis=1))
        yield name, Values(value, interval, float(np.quantile(chance, quantile, axis=1).mean()), attempts=len(queries))


QUERIES = Measure("queries", Family.UTILITY, "Xiao, Wang and Gehrke 2011", _run_queries).finds(
    *(
        Number(name, spoken, Scale((0.0, None), "share")).means(
            f"The {part} relative error of counting queries on ranges of one to three columns; 0 is best"
        )
        for name, (_, part, spoken) in _QUANTILES.items()
    )
)
