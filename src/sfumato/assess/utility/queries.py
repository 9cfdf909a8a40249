"""Statistical queries: how wrong a count is that is asked of the released table instead of the original.

Random range-count queries as in the literature on release of histograms [Xiao, Wang and Gehrke 2011].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import Measure, NotRun, Number, Scale, Stated, Values
from sfumato.assess.findings import Family
from sfumato.assess.intervals import redraw_interval
from sfumato.assess.study import Column, ColumnPair, Matrix, Places, Study, sample

__all__ = ["QUERIES", "Query", "count_rows", "draw_queries", "relative_errors"]

_Values = Matrix | Places
FLOOR = 0.001
"""Share of the original's rows: a count below it is held for so many when the error is put in relation to it."""
_COLUMNS = 3  # most columns that a query asks about
_SELECTIVE = 0.01  # share of the rows that a query matches at least
_TRIES = 30  # for each query that is kept
_SKETCH = 20_000  # rows on which it is seen how many rows a query matches
_BLOCK = 65_536  # rows of which a column fits into a fast memory
_REDRAWS = 200
_QUANTILES = {
    "query-error": (0.5, "half of the", "Error of counting queries"),
    "query-error-largest": (0.95, "95 of 100", "Error of counting queries, largest"),
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
            passed &= _passes(values[column], test)
        return passed


def _passes(cells: _Values, test: Matrix | NDArray[np.bool_]) -> NDArray[np.bool_]:
    if test.dtype == np.bool_:
        return np.asarray(test[cells.astype(np.int64, copy=False)], dtype=np.bool_)
    return np.asarray((cells >= test[0]) & (cells <= test[1]))


def draw_queries(pairs: Sequence[ColumnPair], count: int, rng: np.random.Generator) -> list[Query]:
    """Random queries over one to three columns that match at least one in a hundred rows of the original, but not all.

    A range runs between the cells of two rows drawn at random; of categories each is asked for or not with even
    chances. There are fewer where so many are hard to find.
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
        asked = rng.choice(places, rng.integers(1, min(_COLUMNS, len(places)) + 1), replace=False)
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


def _run(study: Study) -> Iterator[Stated]:
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


QUERIES = Measure("queries", Family.UTILITY, "Xiao, Wang and Gehrke 2011", _run).finds(
    *(
        Number(name, spoken, Scale((0.0, None), "share")).means(
            f"Ask both tables how many rows fall into ranges of one to three columns: {part} answers from the released "
            "table are wrong by at most this share of the true count; 0 is best"
        )
        for name, (_, part, spoken) in _QUANTILES.items()
    )
)
