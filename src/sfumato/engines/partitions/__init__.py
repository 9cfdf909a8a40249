"""Tables in cells: cut by the top of the tree that groups are made with, sanitized one after the other or side by side.

A file goes through twice: once to learn what holds for all its rows, once to be cut. Every engine calls the same
function on the same cells, so that a seed gives the same table in memory, out of core and on a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.tables.cells import plain

__all__ = ["PartitionTree", "Tree", "grow_partition_tree", "grow_tree", "leaf_in", "leaves_of", "merge_leaves"]


_AXIS_ROWS = 4_096  # rows of a node that its axis is computed from
_ROUNDS = 12

Matrix = NDArray[np.float64]
Places = NDArray[np.int64]


class _Leaf(NamedTuple):
    number: int


class _Cut(NamedTuple):
    """Rows whose coordinate along the axis lies below the threshold go left, all others right."""

    axis: Matrix
    threshold: float
    left: _Cut | _Leaf
    right: _Cut | _Leaf


Tree = _Cut | _Leaf


@dataclass(frozen=True, eq=False, repr=False)
class PartitionTree:
    """A tree for each part of the table that must not mix with another; leaves are numbered through."""

    columns: tuple[str, ...]
    parts: pa.Array
    trees: tuple[Tree, ...]
    leaves: int

    def leaf_of(self, table: pa.Table, values: Matrix) -> Places:
        """Leaf of each row, from its columns and its coordinates; -1 for one of a part that the table does not have."""
        part = self.part_of(table)
        leaf = np.full(len(values), -1, dtype=np.int64)
        for number, tree in enumerate(self.trees):
            rows = np.flatnonzero(part == number)
            leaf[rows] = leaf_in(tree, values, rows)
        return leaf

    def part_of(self, table: pa.Table) -> Places:
        """Part of each row; -1 if there is none."""
        if not self.columns:
            return np.zeros(table.num_rows, dtype=np.int64)
        found = pc.fill_null(pc.index_in(_keys(table, self.columns), value_set=self.parts), -1)
        return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)

    def with_parts_of(self, table: pa.Table) -> PartitionTree:
        """The same cuts with further parts that a table has, a leaf each."""
        if not self.columns:
            return self
        keys = pc.unique(_keys(table, self.columns))
        more = keys.filter(pc.invert(pc.is_in(keys, value_set=self.parts)))
        trees = (*self.trees, *(_Leaf(self.leaves + place) for place in range(len(more))))
        return PartitionTree(self.columns, pa.concat_arrays([self.parts, more]), trees, self.leaves + len(more))

    def __repr__(self) -> str:
        return f"PartitionTree({self.leaves} leaves)"


def grow_partition_tree(table: pa.Table, values: Matrix, columns: Sequence[str], rows: int, most: int) -> PartitionTree:
    """Partition tree with leaves of at most about ``most`` rows, fitted to a sample of the rows."""
    parts = pc.unique(_keys(table, columns)) if columns else pa.array([""])
    uncut = PartitionTree(tuple(columns), parts, (), 0)
    part, trees, leaves = uncut.part_of(table), list[Tree](), 0
    for number in range(len(parts)):
        tree, count = grow_tree(values[part == number], max(1.0, most * len(values) / max(rows, 1)), leaves)
        trees.append(tree)
        leaves += count
    return PartitionTree(tuple(columns), parts, tuple(trees), leaves)


def _keys(table: pa.Table, columns: Sequence[str]) -> pa.Array:
    """What the rows of a part have in common, as texts."""
    texts = [pc.fill_null(plain(table.column(name)).cast(pa.string()), "") for name in columns]
    return texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, "\x1f")


def grow_tree(values: Matrix, most: float, first: int = 0) -> tuple[Tree, int]:
    """Tree of cuts at medians until no leaf holds more than ``most`` rows, and how many leaves it has."""
    if len(values) <= most or len(values) < 2:
        return _Leaf(first), 1
    axis = _principal_axis(values[:: max(1, len(values) // _AXIS_ROWS)])
    places = _along(values, axis)
    threshold = float(np.median(places))
    below = places < threshold
    if not below.any():  # half of the rows or more are alike: the others are cut off
        threshold = float(places[places > threshold].min(initial=np.inf))
        below = places < threshold
        if below.all():
            return _Leaf(first), 1
    left, count = grow_tree(values[below], most, first)
    right, more = grow_tree(values[~below], most, first + count)
    return _Cut(axis, threshold, left, right), count + more


def _along(values: Matrix, axis: Matrix) -> Matrix:
    """Coordinates along an axis, summed column by column, so that a row has one coordinate in whatever company."""
    total = np.zeros(len(values))
    for column in np.flatnonzero(axis):
        total += values[:, column] * axis[column]
    return total


def _principal_axis(values: Matrix) -> Matrix:
    """Direction of greatest variance by power iteration, as the grouping's own tree finds it."""
    centred = values - values.mean(axis=0)
    spread = (centred**2).sum(axis=0)
    axis = np.full(values.shape[1], 1e-3)
    axis[int(np.argmax(spread))] = 1.0
    for _ in range(_ROUNDS):
        turned = (_along(centred, axis)[:, None] * centred).sum(axis=0)
        length = float(np.sqrt((turned**2).sum()))
        if length <= 0.0:
            break
        axis = turned / length
    return axis


def leaf_in(tree: Tree, values: Matrix, rows: Places) -> Places:
    """Leaf of a tree that each of some rows falls into."""
    leaf = np.empty(len(rows), dtype=np.int64)
    stack = [(tree, np.arange(len(rows)))]
    while stack:
        node, places = stack.pop()
        if isinstance(node, _Leaf):
            leaf[places] = node.number
        elif len(places):
            below = _along(values[rows[places]], node.axis) < node.threshold
            stack += [(node.left, places[below]), (node.right, places[~below])]
    return leaf


def merge_leaves(
    cuts: PartitionTree, rows: Sequence[int], persons: Sequence[int] | None, least: int
) -> list[tuple[int, ...]]:
    """Cells as sets of leaves: leaves side by side become one cell where one of them has too few people.

    ``rows`` of each leaf, the ``persons`` in each where rows are none, and ``least``, the highest privacy level.
    """
    cells = [cell for tree in cuts.trees for cell in _joined(tree, rows, persons, least)]
    return [cell for cell in cells if sum(rows[leaf] for leaf in cell)]


def _joined(tree: Tree, rows: Sequence[int], persons: Sequence[int] | None, least: int) -> list[tuple[int, ...]]:
    if isinstance(tree, _Leaf):
        return [(tree.number,)]
    for side in (tree.left, tree.right):
        leaves = list(leaves_of(side))  # one person may be in several of them
        people = sum(rows[leaf] for leaf in leaves) if persons is None else max(persons[leaf] for leaf in leaves)
        if people < least:
            return [tuple(leaves_of(tree))]
    return [*_joined(tree.left, rows, persons, least), *_joined(tree.right, rows, persons, least)]


def leaves_of(tree: Tree) -> Iterator[int]:
    """Numbers of the leaves of a tree, from left to right."""
    if isinstance(tree, _Leaf):
        yield tree.number
    else:
        yield from leaves_of(tree.left)
        yield from leaves_of(tree.right)
