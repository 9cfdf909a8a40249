"""Draw a column: each cell comes from the leaf that its row falls into by the preceding columns.

Where a regression on those columns, over all people, explains much, only what it leaves of each is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import count_persons
from sfumato.core.compiled import compiled
from sfumato.methods.chain.columns import LARGEST_SHARE, ChainColumn, Ranking
from sfumato.methods.chain.regression import ColumnRegression, Predictors, Regressions
from sfumato.methods.chain.trees import Tree, grow_tree

__all__ = [
    "LEAST_GAIN",
    "ColumnStep",
    "DrawnCells",
    "LeafCounts",
    "SourceRecords",
    "grow_on",
    "prepare_step",
]

_BESIDE = 0.02  # share of a column's numbers that lie between a drawn one and what it becomes, at most
_FAR_FROM, _FAR_EACH = 100, 25  # people of a leaf up to which numbers move as far as ever, and how many more add that

LEAST_GAIN = 3.0
"""Chosen on Adult and Abalone: with less leaves remember people, with far more use is lost."""


@dataclass(frozen=True, eq=False)
class SourceRecords:
    """Options and data of the records that columns are drawn from.

    ``codes`` are the bins of their cells, column by column; ``persons`` tells whom each is about, from 0, None if each
    is about a person of its own. ``k`` is how far a rare number moves, ``leaf`` the fewest persons of a leaf; from 100
    on numbers move the further the more that is. ``apart`` tells whether the first column holds classes that leaves do
    not mix where they need not.
    """

    columns: Sequence[ChainColumn]
    codes: NDArray[np.uint8]
    levels: NDArray[np.int64]
    strata: NDArray[np.int64]
    persons: NDArray[np.int64] | None
    k: int
    leaf: int
    apart: bool = False

    @cached_property
    def predictors(self) -> Predictors:
        """Which of many columns predict another best."""
        return Predictors(self.codes)

    @cached_property
    def regressions(self) -> Regressions:
        """Regressions between the columns."""
        return Regressions(self.columns, self.codes, self.predictors)

    @property
    def reach_factor(self) -> float:
        """How far numbers move relative to the default leaf; large leaves are chosen to lower the risk."""
        return 1.0 + max(0, self.leaf - _FAR_FROM) / _FAR_EACH


@dataclass(frozen=True, eq=False)
class DrawnCells:
    """Drawn cells of a column; ``copied`` marks original numbers and ``moved`` changed ones."""

    cells: NDArray[np.float64]
    copied: NDArray[np.bool_]
    moved: NDArray[np.bool_]

    def take(self, rows: NDArray[np.int64]) -> DrawnCells:
        """A subset of the cells."""
        return DrawnCells(self.cells[rows], self.copied[rows], self.moved[rows])


@dataclass(frozen=True, eq=False)
class _Leaves:
    """Donor cells, leaf after leaf and sorted inside, with start and size of each leaf.

    A cell is given by the rank of its number among the distinct ``values``, the last of which is that of missing cells.
    ``counts`` tells how many cells of the column hold each number, ``supplied`` how many donors, and ``rare`` those
    that too few hold; ``cells`` is the number of cells of the column.
    """

    ranks: NDArray[np.int32]
    first: NDArray[np.int64]
    sizes: NDArray[np.int64]
    values: NDArray[np.float64]
    counts: NDArray[np.int64]
    supplied: NDArray[np.int64]
    rare: NDArray[np.bool_]
    cells: int

    @classmethod
    def of(
        cls,
        ranking: Ranking,
        rare: NDArray[np.bool_],
        labels: NDArray[np.int64],
        nodes: int,
        donors: NDArray[np.bool_] | None = None,
    ) -> _Leaves:
        """Leaves of ranked cells, of which some may be rare and some may not be donors."""
        order, counts = ranking.order, ranking.counts
        held, supplied = np.append(rare[order[np.cumsum(counts) - counts]], False), counts
        if donors is not None:
            order, supplied = order[donors[order]], np.bincount(ranking.ranks[donors], minlength=len(held))[:-1]
        sizes, ranks = np.bincount(labels[order], minlength=nodes), np.empty(len(order), dtype=np.int32)
        first = np.cumsum(sizes) - sizes
        _fill_leaves(order, labels, ranking.ranks, first.copy(), ranks)
        return cls(ranks, first, sizes, np.append(ranking.values, np.nan), counts, supplied, held, len(labels))


@compiled
def _fill_leaves(
    order: NDArray[np.int64],
    labels: NDArray[np.int64],
    ranks: NDArray[np.int32],
    at: NDArray[np.int64],
    filled: NDArray[np.int32],
) -> None:
    """Put cells, in order, into the leaves that begin at ``at``."""
    for place in order:
        leaf = labels[place]
        filled[at[leaf]] = ranks[place]
        at[leaf] += 1


@dataclass(frozen=True)
class LeafCounts:
    """Counts that are stated about the leaves of a column.

    ``smallest`` are the persons of the smallest of its ``leaves``; ``short`` records are in leaves below their level,
    ``alike`` leaves hold one value alone. ``regressed`` tells whether what is drawn is how far people lie from a
    regression.
    """

    leaves: int
    smallest: int
    short: int
    alike: int
    regressed: bool


@dataclass(frozen=True, eq=False)
class ColumnStep:
    """Donor leaves of a column, and the regression that is added to the drawn residuals, if there is one."""

    column: ChainColumn
    tree: Tree
    supply: _Leaves
    regression: ColumnRegression | None
    k: int
    reach_factor: float
    counts: LeafCounts

    def draw(
        self,
        drawn: Sequence[NDArray[np.float64]],
        codes: NDArray[np.uint8],
        strata: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> DrawnCells:
        """Draw one cell for each row, given its cells and bins of the preceding columns."""
        leaves = self.tree.leaves_of(codes, strata)
        chosen = self.supply.first[leaves] + rng.integers(0, self.supply.sizes[leaves])
        ranks = self.supply.ranks[chosen]
        cells, moves = self.supply.values[ranks], self.supply.rare[ranks]
        if moves.any():
            moved = _move_numbers(self.supply, chosen[moves], self.k, self.reach_factor, rng)
            if self.regression is None:
                moved = _off_the_original(self.supply, cells[moves], moved, self.column.step)
            cells[moves] = moved
        present = ~np.isnan(cells) & self.column.is_number
        if self.regression is not None:
            cells = np.nan_to_num(cells) + self.regression.at(drawn, codes)
        elif self.column.is_graded:
            copied = present & ~moves
            cells[copied] = _adjacent_numbers(self.supply, ranks[copied], rng)
        return DrawnCells(cells, present & ~moves, present & moves)


def prepare_step(place: int, before: Sequence[int], people: SourceRecords, rng: np.random.Generator) -> ColumnStep:
    """Prepare the drawing of a column given the preceding ones, all by index."""
    column = people.columns[place]
    regressed = people.regressions.fit(place, before)
    beyond, regression = (column, None) if regressed is None else regressed
    ranking = Ranking.of(beyond.cells)
    tree = grow_on(beyond, before, people, ranking)
    labels = tree.labels
    donors = None if people.persons is None else _bound_contributions(labels, people.persons, people.leaf, rng)
    supply = _Leaves.of(ranking, beyond.rare, labels, len(tree.nodes), donors)
    used = supply.sizes > 0
    size = count_persons(labels, people.persons)[labels]
    low, high = supply.ranks[supply.first[used]], supply.ranks[supply.first[used] + supply.sizes[used] - 1]
    counts = LeafCounts(
        leaves=int(used.sum()),
        smallest=int(size.min()),
        short=int((size < np.maximum(people.levels, people.leaf)).sum()),
        alike=int((low == high).sum()),
        regressed=regression is not None,
    )
    return ColumnStep(column, tree, supply, regression, people.k, people.reach_factor, counts)


def grow_on(column: ChainColumn, before: Sequence[int], people: SourceRecords, ranking: Ranking | None = None) -> Tree:
    """Tree for a column, with the ranking of its cells, on the preceding ones; of many, on the most predictive."""
    score, classes = column.score(ranking)
    chosen = people.predictors.most_predictive(lambda: (score, classes), before)
    apart = people.apart and 0 in before
    if apart and chosen[0] != 0:
        chosen = [0, *chosen]
    bins = np.array([people.columns[place].bins for place in chosen], dtype=np.int64)
    nominal = np.array([not people.columns[place].is_number for place in chosen], dtype=np.bool_)
    some = chosen != list(range(len(chosen)))
    tree = grow_tree(
        people.codes[:, chosen] if some else people.codes, bins, nominal, score, classes,
        people.levels, people.strata, people.persons, leaf=people.leaf, least_gain=LEAST_GAIN, apart=apart,
    )  # fmt: skip
    if not some:
        return tree
    nodes = tree.nodes.copy()
    cut = nodes[:, 0] >= 0
    nodes[cut, 0] = np.array(chosen)[nodes[cut, 0]]
    return replace(tree, nodes=nodes)


def _bound_contributions(
    labels: NDArray[np.int64], persons: NDArray[np.int64], leaf: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Records that act as donors: of each person at random at most two in ``leaf`` of the same donors.

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


def _move_numbers(
    leaves: _Leaves, chosen: NDArray[np.int64], k: int, reach_factor: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Replace rare numbers by the nearest common one in their leaf, and move the others towards a neighbour.

    Only a number between two that are not rare becomes one of these, so that small amounts do not all become nothing.
    Neither goes further than k cells of the table, or than a fiftieth of its values: the one large amount among zeros
    stays large. The neighbour is of another value in the same leaf, sooner the nearer one; it is a fiftieth of the
    leaf's values away, in smaller leaves up to k / 2 values, but at most a tenth: far enough that rounding does not
    bring the number back, near enough that the leaf keeps its shape. All this is ``reach_factor`` times as wide, up to
    a quarter of the leaf, where as many of its values lie on both sides. The only number of a leaf moves towards those
    of the table, and the only one of a table becomes a missing cell.
    """
    known = leaves.ranks < len(leaves.counts)
    new, starts = known.copy(), leaves.first[leaves.sizes > 0]
    new[1:] &= leaves.ranks[1:] != leaves.ranks[:-1]
    new[starts] = known[starts]
    until = np.append(0, np.cumsum(new))
    begin = until[leaves.first]
    count = until[leaves.first + leaves.sizes] - begin
    ranks, labels, at = leaves.ranks[new], np.repeat(np.arange(len(count)), count), until[chosen + 1] - 1
    values, own, common = leaves.values[ranks], labels[at], ~leaves.rare[:-1] & (leaves.supplied > 0)
    reach = np.maximum(np.clip(count[own] // 10, 1, max(1, k // 2)), count[own] // 50)
    end = begin[own] + count[own] - 1
    wider = np.minimum((reach * reach_factor).astype(np.int64), count[own] // 4)
    reach = np.maximum(reach, np.minimum(wider, np.minimum(at - begin[own], end - at)))
    low, high = values[np.maximum(at - reach, begin[own])], values[np.minimum(at + reach, end)]
    here = values[at]
    lowest, highest = (ends[ranks[at]] for ends in _numbers_around(leaves, k, reach_factor))
    shared = leaves.values[:-1][common]
    between = (here > shared.min(initial=np.inf)) & (here < shared.max(initial=-np.inf))
    nearest = _nearest_common(values, labels, common[ranks], at) if between.any() else np.full(len(at), np.nan)
    alone = low == high
    low = np.where(alone, lowest, np.maximum(low, lowest))
    high = np.where(alone, highest, np.minimum(high, highest))
    down = (rng.random(len(at)) * (high - low) < high - here) & (low < here) | (high == here)
    moved = here + rng.random(len(at)) * (np.where(down, low, high) - here)
    moved = np.where(low == high, np.nan, moved)
    return np.where(between & (nearest >= lowest) & (nearest <= highest), nearest, moved)


def _off_the_original(
    leaves: _Leaves, here: NDArray[np.float64], moved: NDArray[np.float64], step: float
) -> NDArray[np.float64]:
    """Moved numbers, one step further if rounding would restore the original; never beyond the table's range."""
    back = np.abs(moved - here) < 0.5 * step  # False for missing cells
    if not back.any():
        return moved
    low, high = leaves.values[np.flatnonzero(leaves.supplied)[[0, -1]]]
    down = np.where(here + step > high, True, (moved < here) & (here - step >= low))
    further = np.where(down, here - step, here + step)
    return np.where(back, np.where(further < low, np.nan, further), moved)


def _adjacent_numbers(leaves: _Leaves, drawn: NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.float64]:
    """Numbers adjacent to these, given by rank, in the table, none of them rare.

    So that people's own numbers are no likelier in the rows of their leaf than those around them. At most a fiftieth
    of the numbers lies between; one that many hold stays as it is, and none goes past it.
    """
    many = np.where(leaves.rare[:-1], 0, leaves.counts)
    heaped = many > LARGEST_SHARE * leaves.cells
    heaped |= many > LARGEST_SHARE * many[~heaped].sum()  # amounts beside many zeros have heaps of their own
    rest = np.repeat(leaves.values[:-1], np.where(heaped, 0, many))
    cells, reach, loose = leaves.values[drawn], int(_BESIDE * len(rest)), np.flatnonzero(~heaped[drawn])
    if not reach or not len(loose):
        return cells
    last = np.cumsum(np.where(heaped, 0, many))
    first, own = last - np.where(heaped, 0, many), drawn[loose]
    place = np.abs(rng.integers(first[own], last[own]) + rng.integers(-reach, reach + 1, len(loose)))
    beside, heaps = rest[np.minimum(place, 2 * (len(rest) - 1) - place)], leaves.values[:-1][heaped]
    cells[loose] = np.where(np.searchsorted(heaps, beside) == np.cumsum(heaped)[own], beside, cells[loose])
    return cells


def _numbers_around(leaves: _Leaves, k: int, reach_factor: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of each number the donors' numbers with k cells of others, or a fiftieth of all values, in between.

    For each time that ``reach_factor`` is beyond one, a fiftieth of all cells more.
    """
    held = leaves.supplied > 0
    values, upto = leaves.values[:-1][held], np.cumsum(leaves.supplied[held])
    under, at = upto - leaves.supplied[held], np.cumsum(held) - 1
    most = max(k, len(values) // 50) + int((reach_factor - 1.0) * upto[-1]) // 50
    low = np.searchsorted(under, under - most, side="right") - 1
    high = np.searchsorted(upto, upto + most)
    return values[np.maximum(low, 0)][at], values[np.minimum(high, len(values) - 1)][at]


def _nearest_common(
    values: NDArray[np.float64], labels: NDArray[np.int64], common: NDArray[np.bool_], at: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Nearest common value in the same leaf, from values sorted by leaf; NaN if there is none.

    Examples
    --------
    >>> leaf, common = np.array([0, 0, 0, 1]), np.array([True, False, True, False])
    >>> _nearest_common(np.array([1.0, 4.0, 6.0, 4.0]), leaf, common, np.array([1, 3])).tolist()
    [6.0, nan]
    """
    places = np.arange(len(values))
    before = np.maximum.accumulate(np.where(common, places, -1))[at]
    after = np.minimum.accumulate(np.where(common, places, len(values))[::-1])[::-1][at]
    padded, whose = np.append(values, np.nan), np.append(labels, -1)
    under = np.where(whose[before] == labels[at], padded[before], np.nan)
    over = np.where(whose[after] == labels[at], padded[after], np.nan)
    nearer = np.isnan(under) | (over - values[at] < values[at] - under)
    return np.where(nearer & ~np.isnan(over), over, under)
