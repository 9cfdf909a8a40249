"""Trees that group similar records: grown on at most 256 bins, with integer histograms.

All sums are of whole numbers, so that histograms of parts of a table add up to those of the whole in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.core.compiled import compiled, inner
from sfumato.core.compiled import whole as whole_number

__all__ = ["MOST_BINS", "Tree", "grow_tree"]

MOST_BINS = 256
"""Bins of a column that trees are grown on; a code is a byte."""

_FEATURE, _LEFT, _RIGHT = range(3)
_ROUNDING = 1e-9
_SHIFT, _PACKED = 40, 1 << 22  # bits of a sum of scores, and how many records' scores go into them
_ONE = 1 << _SHIFT


@dataclass(frozen=True, eq=False)
class Tree:
    """Nodes in order of creation, so that children follow their parents.

    ``nodes`` holds the column that a node is cut by (-1: a leaf) and its children; the bits of ``lower[node]`` tell
    which codes go to the first child. The first nodes are the roots, one a stratum. ``labels`` is the leaf of each
    record that the tree was grown on.
    """

    nodes: NDArray[np.int32]
    lower: NDArray[np.uint8]
    labels: NDArray[np.int64]

    def leaves_of(self, codes: NDArray[np.uint8], roots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Leaf that each row falls into by its codes, from the root of its stratum."""
        leaves = np.empty(len(codes), dtype=np.int64)
        _descend(codes, roots, self.nodes, self.lower, leaves)
        return leaves


def grow_tree(
    codes: NDArray[np.uint8],
    bins: NDArray[np.int64],
    nominal: NDArray[np.bool_],
    score: NDArray[np.int64],
    classes: int,
    levels: NDArray[np.int64],
    strata: NDArray[np.int64],
    persons: NDArray[np.int64] | None = None,
    *,
    leaf: int,
    least_gain: float,
    apart: bool = False,
) -> Tree:
    """A tree for a column, cut by the columns before it.

    Parameters
    ----------
    codes : ndarray of shape (n, columns)
        Bin of each cell; the first columns are those before.
    bins : ndarray of shape (columns before,)
        How many bins each of them has.
    nominal : ndarray of shape (columns before,)
        Those whose bins have no order.
    score : ndarray of shape (n,)
        What leaves shall be alike in: a whole number below 4096, or a class where there are ``classes``.
    classes : int
        How many classes; 0 where scores are numbers.
    levels : ndarray of shape (n,)
        Level of each record. A cut leaves as many persons on both sides as the highest level there.
    strata : ndarray of shape (n,)
        Stratum of each record, from 0; each has a root of its own.
    persons : ndarray of shape (n,), optional
        Whom each record is about, from 0; without it each is a person of its own.
    leaf : int
        Fewest persons on a side of a cut.
    least_gain : float
        A cut must lower the spread inside by this multiple of the spread of one record: one that lowers it less shows
        these people, and not of others.
    apart : bool
        Whether bins of the first column are separated first, whatever a cut gains.
    """
    order = np.argsort(strata, kind="stable").astype(np.int64)
    who = np.empty(0, dtype=np.int64) if persons is None else persons[order]
    rows = _Rows(
        np.ascontiguousarray(codes[order, : len(bins)].T), score[order], levels[order].astype(np.int64), who, order
    )
    starts = np.concatenate([[0], np.cumsum(np.bincount(strata))])
    most = 2 * max(1, len(codes) // leaf) + len(starts)
    nodes, spans = np.full((most, 3), -1, dtype=np.int32), np.empty((most, 2), dtype=np.int64)
    lower = np.zeros((most, MOST_BINS // 8), dtype=np.uint8)
    spans[: len(starts) - 1, 0], spans[: len(starts) - 1, 1] = starts[:-1], starts[1:]
    people = 0 if persons is None else int(persons.max()) + 1
    roots = len(starts) - 1
    made = _grow(rows, bins, nominal, classes, people, roots, leaf, least_gain, apart, nodes, spans, lower)
    leaves = np.flatnonzero(nodes[:made, _FEATURE] < 0)
    leaves = leaves[np.argsort(spans[leaves, 0], kind="stable")]
    labels = np.empty(len(codes), dtype=np.int64)
    labels[rows.place] = np.repeat(leaves, spans[leaves, 1] - spans[leaves, 0])
    return Tree(nodes[:made], lower[:made], labels)


class _Rows(NamedTuple):
    """Records in node order, so that each node's records are contiguous.

    Bins by column, what leaves shall be alike in, levels, their persons (empty: a person each), and the place of
    each in the table.
    """

    codes: NDArray[np.uint8]
    score: NDArray[np.int64]
    levels: NDArray[np.int64]
    persons: NDArray[np.int64]
    place: NDArray[np.int64]


class _Bins(NamedTuple):
    """Bins of one column among a node's records; ``held`` lists the non-empty ones in order.

    Of each bin how many records, their highest level and the sum of their scores, or how many there are of each class.
    Of a cut after each bin of ``held``, how many persons are on its left and on its right. The rest is room to count:
    the place of a bin in ``held``, the highest level from there on, and the sums of what is to the left.
    """

    counts: NDArray[np.int64]
    high: NDArray[np.int64]
    total: NDArray[np.int64]
    held: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    at: NDArray[np.int64]
    above: NDArray[np.int64]
    part: NDArray[np.int64]
    packed: NDArray[np.int64]


@compiled
def _grow(
    rows: _Rows,
    bins: NDArray[np.int64],
    nominal: NDArray[np.bool_],
    classes: int,
    people: int,
    roots: int,
    leaf: int,
    least_gain: float,
    apart: bool,
    nodes: NDArray[np.int32],
    spans: NDArray[np.int64],
    lower: NDArray[np.uint8],
) -> int:
    """Split nodes in order of creation while a cut gains enough and leaves enough persons on both sides."""
    width = max(classes, 1)
    found = _Bins(
        np.empty(256, dtype=np.int64),
        np.empty(256, dtype=np.int64),
        np.empty((256, width), dtype=np.int64),
        np.empty(256, dtype=np.int64),
        np.empty(256, dtype=np.int64),
        np.empty(256, dtype=np.int64),
        np.empty(256, dtype=np.int64),
        np.empty(257, dtype=np.int64),
        np.empty(width, dtype=np.int64),
        np.empty(256, dtype=np.int64),
    )
    ends, whole = np.empty((people, 2), dtype=np.int64), np.empty(width, dtype=np.int64)
    aside, aside_codes = np.empty(len(rows.place), dtype=np.int64), np.empty(len(rows.place), dtype=np.uint8)
    goes_left, made, node = np.zeros(256, dtype=np.bool_), roots, 0
    while node < made:
        first, last = spans[node, 0], spans[node, 1]
        n, chosen = last - first, whole_number(-1)  # a plain -1 would compile what it is passed to twice
        together, spread = _spread(rows.score[first:last], classes, whole)
        best = together + spread * (least_gain / max(n, 1)) + _ROUNDING * together
        if n >= 2 * leaf and spread > 0.0:
            levelled = rows.levels[first] > leaf
            for place in range(first + 1, last):
                levelled = levelled or rows.levels[place] > leaf
            for column in range(len(bins)):
                held = _fill_bins(rows, column, first, last, bins[column], classes, levelled, found)
                if nominal[column]:
                    _order_bins(found, held, int(np.argmax(whole)))
                _count_people(rows, column, first, last, held, ends, found)
                first_of_all = apart and column == 0
                reached, cut = _best_cut(found, held, whole, n, leaf, -1.0 if first_of_all else best)
                if cut >= 0:
                    best, chosen = reached, column
                    goes_left[:] = False
                    for place in range(cut + 1):
                        goes_left[found.held[place]] = True
                    if first_of_all:
                        break
        if chosen >= 0:
            for code in range(256):
                if goes_left[code]:
                    lower[node, code >> 3] |= np.uint8(1 << (code & 7))
            nodes[node, _FEATURE], nodes[node, _LEFT], nodes[node, _RIGHT] = chosen, made, made + 1
            middle = _partition_node(rows, chosen, goes_left, first, last, leaf, aside, aside_codes)
            spans[made, 0], spans[made, 1], spans[made + 1, 0], spans[made + 1, 1] = first, middle, middle, last
            made += 2
        node += 1
    return made


@inner
def _spread(score: NDArray[np.int64], classes: int, whole: NDArray[np.int64]) -> tuple[float, float]:
    """Mean and dispersion of a node's records; ``whole`` receives their sums."""
    whole[:] = 0
    square = 0.0
    for its in score:
        if classes:
            whole[its] += 1
        else:
            whole[0] += its
            square += float(its) * float(its)
    together = 0.0
    for total in whole:
        together += float(total) * float(total)
    together /= max(len(score), 1)
    return together, (float(len(score)) if classes else square) - together


@inner
def _fill_bins(
    rows: _Rows, column: int, first: int, last: int, bins: int, classes: int, levelled: bool, found: _Bins
) -> int:
    """Count a node's records by the bins of a column; return the number of non-empty bins."""
    count, high, total = found.counts, found.high, found.total
    count[:bins] = 0
    if classes:
        for place in range(first, last):
            x = rows.codes[column, place]
            if count[x] == 0:
                total[x] = 0
            count[x] += 1
            total[x, rows.score[place]] += 1
    else:
        total[:bins, 0] = 0
        for start in range(first, last, _PACKED):  # count and sum in one word
            stop, packed = min(start + _PACKED, last), found.packed
            packed[:bins] = 0
            for place in range(start, stop):
                packed[rows.codes[column, place]] += _ONE + rows.score[place]
            for x in range(bins):
                count[x] += packed[x] >> _SHIFT
                total[x, 0] += packed[x] & (_ONE - 1)
    high[:bins] = 0
    if levelled:
        for place in range(first, last):
            x = rows.codes[column, place]
            high[x] = max(high[x], rows.levels[place])
    held = whole_number(0)
    for x in range(bins):
        found.held[held] = x
        held += whole_number(count[x] > 0)
    return held


@inner
def _order_bins(found: _Bins, held: int, major: int) -> None:
    """Order categorical bins by the share of the largest class, or by their mean score."""
    order = found.held
    for place in range(1, held):
        mine = order[place]
        share, before = found.total[mine, major] / found.counts[mine], place - 1
        while before >= 0 and found.total[order[before], major] / found.counts[order[before]] > share:
            order[before + 1] = order[before]
            before -= 1
        order[before + 1] = mine


@inner
def _count_people(
    rows: _Rows, column: int, first: int, last: int, held: int, ends: NDArray[np.int64], found: _Bins
) -> None:
    """Count the persons on both sides of each cut."""
    left, right = found.left, found.right
    if not len(rows.persons):
        got = 0
        for place in range(held):
            got += found.counts[found.held[place]]
            left[place], right[place] = got, last - first - got
        return
    for place in range(held):
        found.at[found.held[place]] = place
        left[place] = right[place] = 0
    for row in range(first, last):
        ends[rows.persons[row], 0], ends[rows.persons[row], 1] = 256, -1
    for row in range(first, last):
        place, its = found.at[rows.codes[column, row]], ends[rows.persons[row]]
        its[0], its[1] = min(its[0], place), max(its[1], place)
    for row in range(first, last):
        its = ends[rows.persons[row]]
        if its[1] >= 0:  # not counted yet
            left[its[0]] += 1
            right[its[1]] += 1
            its[1] = -1
    after = 0
    for place in range(1, held):
        left[place] += left[place - 1]
    for place in range(held - 1, -1, -1):
        right[place], after = after, after + right[place]


@inner
def _best_cut(found: _Bins, held: int, whole: NDArray[np.int64], n: int, leaf: int, best: float) -> tuple[float, int]:
    """Best cut of a column if it beats the best so far: its gain, and the last bin on its left.

    The bin is -1 if there is none.
    """
    count, high, total, part = found.counts, found.high, found.total, found.part
    above = found.above
    above[held] = 0
    for place in range(held - 1, -1, -1):
        above[place] = max(above[place + 1], high[found.held[place]])
    part[:] = 0
    got, below, cut = 0, 0, -1
    for place in range(held - 1):
        x = found.held[place]
        got += count[x]
        below = max(below, high[x])
        for t in range(len(whole)):
            part[t] += total[x, t]
        if found.right[place] < leaf:
            break
        if found.left[place] < max(leaf, below) or found.right[place] < above[place + 1]:
            continue
        if len(whole) == 1:
            one, other = float(part[0]) * float(part[0]), float(whole[0] - part[0]) * float(whole[0] - part[0])
        else:
            one, other = 0.0, 0.0
            for t in range(len(whole)):
                one += float(part[t]) * float(part[t])
                other += float(whole[t] - part[t]) * float(whole[t] - part[t])
        apart = one / got + other / (n - got)
        if apart > best:
            best, cut = apart, place
    return best, cut


@inner
def _partition_node(
    rows: _Rows,
    column: int,
    goes_left: NDArray[np.bool_],
    first: int,
    last: int,
    leaf: int,
    aside: NDArray[np.int64],
    aside_codes: NDArray[np.uint8],
) -> int:
    """Partition a node's records, stably, into those of its first and second child."""
    side = np.empty(last - first, dtype=np.bool_)
    for place in range(first, last):
        side[place - first] = goes_left[rows.codes[column, place]]
    middle = int(first + _stable_partition(rows.place[first:last], side, aside))
    if max(middle - first, last - middle) < 2 * leaf:  # no child is looked at
        return middle
    for each in range(len(rows.codes)):
        _stable_partition(rows.codes[each, first:last], side, aside_codes)
    if len(rows.persons):
        _stable_partition(rows.persons[first:last], side, aside)
    _stable_partition(rows.score[first:last], side, aside)
    _stable_partition(rows.levels[first:last], side, aside)
    return middle


@inner
def _stable_partition(line: NDArray[Any], side: NDArray[np.bool_], aside: NDArray[Any]) -> int:
    """Move the records of the first child to the front; return their number."""
    low, put = whole_number(0), whole_number(0)
    for place in range(len(line)):  # written twice, because a branch would be mispredicted every other time
        mine, here = whole_number(side[place]), line[place]
        line[low] = aside[put] = here
        low += mine
        put += 1 - mine
    for place in range(put):  # a slice would compile what to say where lengths differ
        line[low + place] = aside[place]
    return low


@compiled
def _descend(
    codes: NDArray[np.uint8],
    roots: NDArray[np.int64],
    nodes: NDArray[np.int32],
    lower: NDArray[np.uint8],
    leaves: NDArray[np.int64],
) -> None:
    """Write the leaf of each row."""
    for row in range(len(leaves)):
        node = roots[row]
        while nodes[node, _FEATURE] >= 0:
            code = codes[row, nodes[node, _FEATURE]]
            side = _LEFT if lower[node, code >> 3] >> (code & 7) & 1 else _RIGHT
            node = np.int64(nodes[node, side])
        leaves[row] = node
