"""Regressions of smooth columns on the preceding ones, solved from one Gram matrix of all regressors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.core.compiled import compiled
from sfumato.methods.chain.columns import FEW_CLASSES, ChainColumn

__all__ = ["ColumnRegression", "Predictors", "Regressions"]

_EXPLAINED = 0.1  # share of a column's variance from which a regression is worth while
_MOST_BEFORE, _MOST_LOOKED, _GROUPS = 50, 10_000, 16
_PEOPLE_EACH = 10  # people that a regressor needs; with fewer there are slopes alone
_FEW = 12  # categories that enter a regression
_CELLS = 1 << 22  # regressors of a block of rows, so that memory stays bounded
_MOST_REGRESSORS = 4096  # of the shared Gram matrix; with more each column has one of its own


_Cells = Sequence[NDArray[np.float64]] | Mapping[int, NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class ColumnRegression:
    """Linear regression of a column on preceding ones, their squares, and their products with classes.

    ``slopes`` are those of a preceding number and its square, for each class of the column ``by``, or the weights of
    its categories; ``explained`` is the share of the column's variance that it explains.
    """

    before: Mapping[int, ChainColumn]
    by: int | None
    intercept: float
    slopes: Mapping[int, NDArray[np.float64]]
    explained: float

    def at(self, cells: _Cells, codes: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Fitted values at cells of the preceding columns and their bins, both by index."""
        fitted = np.full(len(codes), self.intercept)
        group = np.zeros(len(codes), dtype=np.uint8) if self.by is None else np.ascontiguousarray(codes[:, self.by])
        for place, column in self.before.items():
            if column.is_classes:
                fitted += self.slopes[place][codes[:, place]]
            else:
                _add_number(fitted, cells[place], group, self.slopes[place], *column.bend)
        return fitted


@compiled
def _add_number(
    fitted: NDArray[np.float64],
    cells: NDArray[np.float64],
    group: NDArray[np.uint8],
    slopes: NDArray[np.float64],
    low: float,
    middle: float,
    high: float,
) -> None:
    """Add what a number and its square contribute, by the class of each row."""
    for row in range(len(fitted)):
        x = 0.0 if np.isnan(cells[row]) else cells[row]
        bent = min(max(x, low), high) - middle
        fitted[row] += slopes[group[row], 0] * x + slopes[group[row], 1] * bent * bent


@dataclass(frozen=True, eq=False)
class _Gram:
    """Sums of squares and products of regressors around their means.

    ``spans`` are the places of a column's regressors: its indicators, or the number and its square, and both once more
    for each class but one.
    """

    spans: Mapping[int, range]
    mean: NDArray[np.float64]
    products: NDArray[np.float64]

    @classmethod
    def of(cls, columns: Mapping[int, ChainColumn], by: int | None, codes: NDArray[np.uint8]) -> _Gram:
        """Moments of the regressors of columns, numbers also by the classes of one of them."""
        spans, width = dict[int, range](), 0
        for place, column in columns.items():
            many = _width(column, 1 if by is None else columns[by].bins)
            spans[place], width = range(width, width + many), width + many
        shift, total, products = np.zeros(width), np.zeros(width), np.empty((0, 0))
        rows = max(1, _CELLS // max(1, width))
        for start in range(0, len(codes), rows):
            block = codes[start : start + rows]
            x = np.empty((width, len(block)))
            for place, column in columns.items():
                its = x[spans[place].start : spans[place].stop]
                if column.is_classes:
                    its[:] = block[:, place] == np.arange(len(its))[:, None]
                    continue
                low, middle, high = column.bend
                its[0] = np.nan_to_num(column.cells[start : start + rows])
                its[1] = (np.clip(its[0], low, high) - middle) ** 2
                for each in range(1, len(its) // 2):
                    its[2 * each : 2 * each + 2] = its[:2] * (block[:, by] == each)
            if start == 0:
                shift = x.mean(axis=1)
            x -= shift[:, None]
            total += x.sum(axis=1)
            if start == 0:
                products = x @ x.T
            else:
                products += x @ x.T
        for row in range(width):  # a matrix of them all would take as much memory again
            products[row] -= total[row] / len(codes) * total
        return cls(spans, shift + total / len(codes), products)


def _width(column: ChainColumn, groups: int) -> int:
    """Regressors of a column: of categories none if they are many, of numbers two for each group."""
    if column.is_classes:
        return column.bins if column.bins <= _FEW else 0
    return 2 * groups


class Predictors:
    """The preceding columns that say most about a column, all if they are few.

    How much one says is the share of its variance between few groups of the column's scores, over some records.
    """

    def __init__(self, codes: NDArray[np.uint8]) -> None:
        self.some = np.linspace(0, len(codes) - 1, min(len(codes), _MOST_LOOKED)).astype(np.int64)
        self.bins = np.empty((0, 0), dtype=np.float32)
        if codes.shape[1] > _MOST_BEFORE:
            bins = codes[self.some].T.astype(np.float32)
            self.bins = bins - bins.mean(axis=1, keepdims=True)
            self.spread = np.maximum((self.bins**2).sum(axis=1), 1e-9)

    def most_predictive(self, scored: Callable[[], tuple[NDArray[np.int64], int]], before: Sequence[int]) -> list[int]:
        """Places of the columns that predict a score and its classes best among those at ``before``, in order."""
        if len(before) <= _MOST_BEFORE:
            return list(before)
        score, classes = scored()
        high = max(1, int(score.max()) + 1)
        groups = score[self.some] if classes else score[self.some] * _GROUPS // high
        within = (np.unique(groups)[:, None] == groups).astype(np.float32)
        places = np.array(before)
        between = ((within @ self.bins[: places.max() + 1].T) ** 2 / within.sum(axis=1)[:, None]).sum(axis=0)
        share = between[places] / self.spread[places]
        return [int(place) for place in places[np.sort(np.argsort(-share, kind="stable")[:_MOST_BEFORE])]]


class Regressions:
    """Regressions between the columns of a table, solved from a Gram matrix that is computed when it is first needed.

    Parameters
    ----------
    columns : sequence of ChainColumn
    codes : ndarray of shape (n, columns)
        Bins of their cells.
    predictors : Predictors
        Of the same codes.
    """

    def __init__(self, columns: Sequence[ChainColumn], codes: NDArray[np.uint8], predictors: Predictors) -> None:
        self.columns, self.codes, self.predictors = columns, codes, predictors
        self._shared: dict[int | None, _Gram] = {}

    def fit(self, place: int, before: Sequence[int]) -> tuple[ChainColumn, ColumnRegression] | None:
        """Residuals of a regression of a column on preceding ones, and the regression.

        None if the column has heaps or missing cells, or the regression explains less than a tenth of its variance.
        """
        column, n = self.columns[place], len(self.codes)
        if not before or not column.is_smooth:
            return None
        chosen = self.predictors.most_predictive(column.score, before)
        first = self.columns[before[0]]
        by = before[0] if first.is_classes and first.bins <= FEW_CLASSES else None
        gram = self._gram([*chosen, place], by)
        by = by if by in chosen else None
        most = None if by is not None else 2
        if _PEOPLE_EACH * sum(len(self._regressors(gram, each, most)) for each in chosen) > n:
            by, most = None, 1
        spans = {each: self._regressors(gram, each, most) for each in chosen}
        rows, own = [row for span in spans.values() for row in span], gram.spans[place][0]
        square, product, whole = gram.products[np.ix_(rows, rows)], gram.products[rows, own], gram.products[own, own]
        solved = np.linalg.solve(square + np.eye(len(rows)), product)
        explained = float((2.0 * product - square @ solved) @ solved / whole)
        if explained < _EXPLAINED:
            return None
        parts = np.split(solved, np.cumsum([len(span) for span in spans.values()])[:-1])
        slopes = {each: self._by_class(each, part) for each, part in zip(spans, parts, strict=True) if len(part)}
        regression = ColumnRegression(
            {each: self.columns[each] for each in slopes}, by, float(gram.mean[own] - gram.mean[rows] @ solved),
            slopes, explained,
        )  # fmt: skip
        rest = column.cells - regression.at({each: self.columns[each].cells for each in slopes}, self.codes)
        return replace(column, cells=rest, rare=np.ones(n, dtype=np.bool_)), regression

    def _gram(self, wanted: Sequence[int], by: int | None) -> _Gram:
        """The Gram matrix that all regressions share, or in very wide tables that of the wanted columns."""
        if by not in self._shared:
            width = sum(_width(column, 1 if by is None else self.columns[by].bins) for column in self.columns)
            if width > min(_MOST_REGRESSORS, len(self.codes)):  # it would be larger than what it is made of
                return _Gram.of({each: self.columns[each] for each in wanted}, by if by in wanted else None, self.codes)
            self._shared[by] = _Gram.of(dict(enumerate(self.columns)), by, self.codes)
        return self._shared[by]

    def _regressors(self, gram: _Gram, place: int, most: int | None) -> range:
        return gram.spans[place] if self.columns[place].is_classes else gram.spans[place][:most]

    def _by_class(self, place: int, solved: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weights of categories, or slopes of a number and its square in each class."""
        if self.columns[place].is_classes:
            return solved
        slopes = np.append(solved, np.zeros(len(solved) % 2)).reshape(-1, 2)
        slopes[1:] += slopes[0]
        return slopes
