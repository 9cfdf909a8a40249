"""A regression of a column on those before it, over all people: only what is left of each is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.chain.columns import Column

__all__ = ["Regression", "most_telling", "regress"]

_EXPLAINED = 0.1  # share of a column's variance from which a regression is worth while
_MOST_BEFORE, _MOST_LOOKED, _GROUPS = 50, 10_000, 16
_FEW_CLASSES = 6  # classes of the first column that have slopes of their own
_PEOPLE_EACH = 10  # people that a regressor needs; with fewer there are slopes alone
_ROWS = 1 << 16  # rows of a block, so that memory stays bounded


@dataclass(frozen=True, eq=False)
class _Design:
    """Regressors of rows: of the columns before a number and its square, or an indicator of each of few categories.

    Where it is ``classed``, the numbers come once more for each class of the first column but one.
    """

    before: tuple[tuple[int, Column], ...]
    squares: bool
    classed: bool

    def blocks(self, cells: Mapping[int, NDArray[np.float64]]) -> Iterator[NDArray[np.float64]]:
        """Regressors of some rows at a time, by the places of their cells."""
        count = len(cells[self.before[0][0]])
        for start in range(0, max(count, 1), _ROWS):
            parts, numbers = list[NDArray[np.float64]](), list[NDArray[np.float64]]()
            for place, column in self.before:
                x = column.design(cells[place][start : start + _ROWS])
                if self.squares and column.is_number:
                    low, middle, high = column.bend
                    x = np.hstack([x, (np.clip(x, low, high) - middle) ** 2])
                (numbers if column.is_number else parts).append(x)
            if self.classed and numbers:
                products = [parts[0][:, [each]] * x for each in range(1, parts[0].shape[1]) for x in numbers]
                numbers = [*numbers, *products]
            yield np.hstack([*parts, *numbers])

    @property
    def width(self) -> int:
        """How many regressors there are."""
        return int(next(self.blocks({place: column.cells[:1] for place, column in self.before})).shape[1])


@dataclass(frozen=True, eq=False)
class Regression:
    """A linear regression of a column on some of those before it, their squares, and their products with classes.

    ``explained`` is the share of the column's variance that it explains.
    """

    design: _Design
    centre: float
    mean: NDArray[np.float64]
    slopes: NDArray[np.float64]
    explained: float

    def at(self, drawn: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """What it says at drawn cells of the columns before, which are found by their places."""
        cells = {place: drawn[place] for place, _ in self.design.before}
        return np.concatenate([self.centre + (x - self.mean) @ self.slopes for x in self.design.blocks(cells)])


def regress(column: Column, before: Mapping[int, Column], codes: NDArray[np.uint8]) -> tuple[Column, Regression] | None:
    """What people have beyond a regression on the columns before, and the regression.

    None where the column has heaps or missing cells, or the regression explains less than a tenth of its variance.
    """
    if not before or not column.is_smooth:
        return None
    chosen = most_telling(*column.score(), codes, before)
    first, n = next(iter(before)), len(column.cells)
    classed = first in chosen and not before[first].is_number and before[first].bins <= _FEW_CLASSES
    design = _Design(tuple((place, before[place]) for place in chosen), squares=True, classed=classed)
    if _PEOPLE_EACH * design.width > n:
        design = replace(design, squares=False, classed=False)
    cells = {place: before[place].cells for place in chosen}
    centre = float(column.cells.mean())
    y = column.cells - centre
    mean = np.sum([x.sum(axis=0) for x in design.blocks(cells)], axis=0) / n
    square, product = np.eye(len(mean)), np.zeros(len(mean))
    for block, x in enumerate(design.blocks(cells)):
        apart = x - mean
        square += apart.T @ apart
        product += apart.T @ y[block * _ROWS : (block + 1) * _ROWS]
    slopes = np.asarray(np.linalg.solve(square, product), dtype=np.float64)
    rest = column.cells - np.concatenate([centre + (x - mean) @ slopes for x in design.blocks(cells)])
    explained = 1.0 - float(rest @ rest) / float(y @ y)
    if explained < _EXPLAINED:
        return None
    regression = Regression(design, centre, mean, slopes, explained)
    return replace(column, cells=rest, rare=np.ones(n, dtype=np.bool_)), regression


def most_telling(
    score: NDArray[np.int64], classes: int, codes: NDArray[np.uint8], before: Mapping[int, Column]
) -> list[int]:
    """Places of the columns that a column is drawn by: all, or of many those whose bins differ most with its score.

    How much they differ is the share of a column's variance between few groups of scores, over some of the records.
    """
    places = np.array(list(before), dtype=np.int64)
    if len(places) <= _MOST_BEFORE:
        return [int(place) for place in places]
    some = np.linspace(0, len(codes) - 1, min(len(codes), _MOST_LOOKED)).astype(np.int64)
    high = max(1, int(score.max()) + 1)
    groups = score[some] if classes else score[some] * _GROUPS // high
    x = codes[some][:, places].astype(np.float32)
    x -= x.mean(axis=0)
    within = (groups[:, None] == np.unique(groups)).astype(np.float32)
    between = ((within.T @ x) ** 2 / within.sum(axis=0)[:, None]).sum(axis=0)
    share = between / np.maximum((x * x).sum(axis=0), 1e-9)
    return [int(place) for place in places[np.sort(np.argsort(-share, kind="stable")[:_MOST_BEFORE])]]
