"""Rows drawn column by column: each cell from the leaf of a tree that its row falls into by the columns before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.chain.columns import Column, count_persons
from sfumato.mechanisms.chain.trees import grow_tree

__all__ = ["DrawnColumn", "draw_column", "regress"]

_EXPLAINED = 0.25  # share of a column's variance from which a regression is worth while
_MOST_REGRESSORS = 50
_LEAST_GAIN = 3.0  # chosen on Adult and Abalone: with less leaves remember people, with far more use is lost


@dataclass(frozen=True, eq=False)
class DrawnColumn:
    """Cells that were drawn for a column, and the leaves that they came from.

    ``smallest`` are the persons of the smallest leaf; ``short`` records are in leaves below their level, ``alike``
    leaves hold one value alone. ``kept`` drawn numbers are as people have them, ``moved`` ones are not. ``left_out``
    cells were not drawn from, since their persons supply enough of their leaves without them.
    """

    cells: NDArray[np.float64]
    leaves: int
    smallest: int
    short: int
    alike: int
    kept: int
    moved: int
    left_out: int


@dataclass(frozen=True, eq=False)
class _Leaves:
    """Cells to draw, leaf after leaf and sorted inside; of each leaf where it begins and how many it has."""

    cells: NDArray[np.float64]
    rare: NDArray[np.bool_]
    labels: NDArray[np.int64]
    first: NDArray[np.int64]
    sizes: NDArray[np.int64]


def regress(
    column: Column, before: Sequence[Column], drawn: Sequence[NDArray[np.float64]]
) -> tuple[Column, NDArray[np.float64]] | None:
    """What people have beyond a linear regression on the columns before, and the regression at the drawn cells.

    None where the column has heaps or missing cells, or the regression explains less than a fourth of its variance.
    """
    if not before or not column.is_smooth:
        return None
    centre = column.cells.mean()
    y = column.cells - centre
    chosen = _most_telling(before, y)
    x = np.hstack([before[place].design(before[place].cells) for place in chosen])
    mean = x.mean(axis=0)
    x -= mean
    slopes = np.linalg.solve(x.T @ x + np.eye(x.shape[1]), x.T @ y)
    rest = y - x @ slopes
    if rest @ rest > (1 - _EXPLAINED) * (y @ y):
        return None
    at = np.hstack([before[place].design(drawn[place]) for place in chosen])
    everyone = np.ones(len(rest), dtype=np.bool_)
    return replace(column, cells=rest, rare=everyone), centre + (at - mean) @ slopes


def _most_telling(before: Sequence[Column], y: NDArray[np.float64]) -> list[int]:
    """Places of the columns that enter a regression: all, or of many those most correlated with the new one."""
    if len(before) <= _MOST_REGRESSORS:
        return list(range(len(before)))
    telling = []
    for each in before:
        x = each.design(each.cells)
        x = x - x.mean(axis=0)
        telling.append(float(((y @ x) ** 2 / np.maximum((x * x).sum(axis=0), 1e-300)).sum()))
    return sorted(np.argsort(-np.array(telling), kind="stable")[:_MOST_REGRESSORS].tolist())


def draw_column(
    column: Column,
    before: Sequence[Column],
    codes: NDArray[np.uint8],
    drawn: NDArray[np.uint8],
    levels: NDArray[np.int64],
    strata: NDArray[np.int64],
    drawn_strata: NDArray[np.int64],
    persons: NDArray[np.int64] | None = None,
    *,
    k: int,
    leaf: int,
    rng: np.random.Generator,
) -> DrawnColumn:
    """Draw one cell for each row.

    Parameters
    ----------
    column : Column
        What is drawn.
    before : sequence of Column
        What was drawn before.
    codes, drawn : ndarray of shape (n, columns)
        Bins of the people and of the rows that are being drawn; the first columns are those before.
    levels, strata : ndarray of shape (n,)
        Of the people.
    drawn_strata : ndarray of shape (n,)
        Of the rows.
    persons : ndarray of shape (n,), optional
        Whom each record is about, from 0; without it each is a person of its own.
    k, leaf : int
        How far a rare number moves, and the fewest persons of a leaf.
    rng : numpy.random.Generator
    """
    bins = np.array([each.bins for each in before], dtype=np.int64)
    nominal = np.array([not each.is_number for each in before], dtype=np.bool_)
    score, classes = column.score()
    tree = grow_tree(codes, bins, nominal, score, classes, levels, strata, persons, leaf=leaf, least_gain=_LEAST_GAIN)
    labels, supplies = tree.labels, None if persons is None else _bounded(tree.labels, persons, leaf, rng)
    leaves = _sort_into_leaves(column, labels, len(tree.nodes), supplies)
    asked = tree.leaves_of(drawn, drawn_strata)
    chosen = leaves.first[asked] + rng.integers(0, leaves.sizes[asked])
    cells, moves = leaves.cells[chosen].copy(), leaves.rare[chosen]
    if moves.any():
        cells[moves] = _moved(leaves, chosen[moves], k, rng)
    used = leaves.sizes > 0
    people = np.bincount(labels) if persons is None else count_persons(labels, persons)
    kept = int((~np.isnan(cells) & ~moves).sum()) if column.is_number else 0
    ends = leaves.first[used] + leaves.sizes[used] - 1
    low, high = leaves.cells[leaves.first[used]], leaves.cells[ends]
    return DrawnColumn(
        cells=cells,
        leaves=int(used.sum()),
        smallest=int(people[labels].min()),
        short=int((people[labels] < np.maximum(levels, leaf)).sum()),
        alike=int(((low == high) | (np.isnan(low) & np.isnan(high))).sum()),
        kept=kept,
        moved=int((moves & ~np.isnan(cells)).sum()),
        left_out=0 if supplies is None else int((~supplies).sum()),
    )


def _bounded(
    labels: NDArray[np.int64], persons: NDArray[np.int64], leaf: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Records that supply their leaves: of each person at most two in ``leaf`` of what supplies the same, by chance.

    A leaf of as many persons can be supplied so: with two records of each at most it always is.
    """
    people = int(persons.max()) + 1
    pairs, pair, many = np.unique(labels * people + persons, return_inverse=True, return_counts=True)
    inside, most = pairs // people, np.zeros(int(labels.max()) + 1, dtype=np.int64)
    np.maximum.at(most, inside, many)
    while True:
        supply = np.bincount(inside, weights=np.minimum(many, most[inside])).astype(np.int64)
        over = leaf * most > 2 * supply
        if not over.any():
            break
        most[over] = 2 * supply[over] // leaf
    if (many <= most[inside]).all():
        return np.ones(len(labels), dtype=np.bool_)
    order = np.lexsort((rng.random(len(labels)), pair))
    rank = np.empty(len(labels), dtype=np.int64)
    rank[order] = np.arange(len(labels)) - np.repeat(np.cumsum(many) - many, many)
    return rank < most[labels]


def _sort_into_leaves(
    column: Column, labels: NDArray[np.int64], nodes: int, supplies: NDArray[np.bool_] | None
) -> _Leaves:
    order = np.argsort(column.cells)
    if supplies is not None:
        order = order[supplies[order]]
    order = order[np.argsort(labels[order], kind="stable")]
    sizes = np.bincount(labels[order], minlength=nodes)
    return _Leaves(column.cells[order], column.rare[order], labels[order], np.cumsum(sizes) - sizes, sizes)


def _moved(leaves: _Leaves, chosen: NDArray[np.int64], k: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Numbers moved towards a neighbour of another value in the same leaf, sooner towards the nearer one.

    The neighbour is a fiftieth of the leaf's values away, in smaller leaves up to k / 2 values, but at most a tenth:
    far enough that rounding does not bring the number back, near enough that the leaf keeps its shape. It goes no
    further than k values of the table, or a fiftieth of them: the one large amount among zeros stays large. The only
    number of a leaf moves towards those of the table, and the only one of a table becomes a missing cell.
    """
    new = np.ones(len(leaves.cells), dtype=np.bool_)
    new[1:] = (leaves.cells[1:] != leaves.cells[:-1]) | (leaves.labels[1:] != leaves.labels[:-1])
    new &= ~np.isnan(leaves.cells)
    run = np.cumsum(new) - 1
    values, labels = leaves.cells[new], leaves.labels[new]
    count = np.bincount(labels, minlength=len(leaves.sizes))
    begin = np.cumsum(count) - count
    at, own = run[chosen], leaves.labels[chosen]
    reach = np.maximum(np.clip(count[own] // 10, 1, max(1, k // 2)), count[own] // 50)
    low = values[np.maximum(at - reach, begin[own])]
    high = values[np.minimum(at + reach, begin[own] + count[own] - 1)]
    here = values[at]
    everywhere, ranks = np.unique(values, return_inverse=True)
    place, far, alone = ranks[at], max(k, len(everywhere) // 50), low == high
    lowest = everywhere[np.maximum(place - far, 0)]
    highest = everywhere[np.minimum(place + far, len(everywhere) - 1)]
    low = np.where(alone, lowest, np.maximum(low, lowest))
    high = np.where(alone, highest, np.minimum(high, highest))
    down = (rng.random(len(at)) * (high - low) < high - here) & (low < here) | (high == here)
    moved = here + rng.random(len(at)) * (np.where(down, low, high) - here)
    return np.where(low == high, np.nan, moved)
