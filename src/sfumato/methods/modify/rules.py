"""Decision-tree rules about a private label, their information, and which to remove at least cost [JS07, sec. 2].

A tree grown on the original to tell one column from the others, for swapping in its leaves and for its rules.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Bools, Floats, Ints, count_persons
from sfumato.core.records import Records
from sfumato.methods.chain.columns import ChainColumn, read_columns
from sfumato.methods.chain.draw import LEAST_GAIN
from sfumato.methods.chain.trees import Tree, grow_tree

__all__ = ["InferenceChannel", "entropy_of", "grow_on"]


@dataclass(frozen=True, eq=False, repr=False)
class ColumnTree:
    """Tree for a column, its predictors, and the leaf of each record.

    ``asked`` are the other columns, ``codes`` their bins, by record; a missing cell has a bin to itself.
    """

    target: ChainColumn
    asked: tuple[ChainColumn, ...]
    codes: NDArray[np.uint8]
    tree: Tree
    labels: Ints

    def smallest(self, persons: Ints | None) -> int:
        """Persons in the smallest leaf."""
        places = np.unique(self.labels, return_inverse=True)[1]
        return int(count_persons(places, persons).min())


def grow_on(records: Records, column: str, leaf: int) -> ColumnTree:
    """Tree that predicts a column from all others, with a minimum number of persons per leaf.

    It is grown on the records that have a value there; the others fall into its leaves.
    """
    columns = {each.name: each for each in read_columns(records, 0)}
    target, asked = columns[column], tuple(each for name, each in columns.items() if name != column)
    codes = np.column_stack([each.codes(each.cells) for each in asked])
    having = np.flatnonzero(~np.isnan(target.cells))
    score, classes = target.score()
    if classes and len(having):  # classes are counted from 0 among those that there are
        score = np.unique(score[having], return_inverse=True)[1].astype(np.int64)
        classes = int(score.max()) + 1
    nothing = np.zeros(len(having), dtype=np.int64)
    who = None if records.persons is None else np.unique(records.persons[having], return_inverse=True)[1]
    tree = grow_tree(
        codes[having],
        np.array([each.bins for each in asked], dtype=np.int64),
        np.array([not each.is_number for each in asked], dtype=np.bool_),
        score,
        classes,
        nothing,
        nothing,
        who,
        leaf=leaf,
        least_gain=LEAST_GAIN,
    )
    return ColumnTree(target, asked, codes, tree, tree.leaves_of(codes, np.zeros(len(codes), dtype=np.int64)))


_ROUNDING = 1e-12  # of an entropy
_MOST_NAMED = 6  # categories of a condition that are written out
_LOOKED = 2_000  # records at least, if there are more, that the choice of a column looks at
_BLOCK = 1 << 22  # numbers that are held at once


def entropy_of(counts: Floats) -> Floats:
    """Entropy in bits of each row of counts or probabilities; 0 for empty rows.

    Examples
    --------
    >>> entropy_of(np.array([[5.0, 5.0], [4.0, 0.0], [0.0, 0.0]])).tolist()
    [1.0, 0.0, 0.0]
    """
    total = counts.sum(axis=-1, keepdims=True)
    share = np.divide(counts, total, out=np.zeros(counts.shape), where=total > 0)
    logs = np.log2(share, out=np.zeros(counts.shape), where=share > 0)
    return np.asarray(-(share * logs).sum(axis=-1)) + 0.0


@dataclass(frozen=True, eq=False, repr=False)
class PrunedTree:
    """Pruned tree: its current leaves, and what was given up at each.

    ``ends`` are these nodes, ``lost`` the columns whose cells the rows of each lose, ``of`` the end of each record.
    """

    ends: tuple[int, ...]
    lost: dict[int, frozenset[int]]
    of: Ints

    def blocked(self, columns: int) -> Bools:
        """Cells to set to missing, by record and column."""
        cells = np.zeros((len(self.of), columns), dtype=np.bool_)
        for end, lost in self.lost.items():
            cells[np.ix_(self.of == end, sorted(lost))] = True
        return cells


@dataclass(frozen=True, eq=False, repr=False)
class InferenceChannel:
    """An inference channel: a tree that predicts a label, with the labels at each node.

    ``counts`` are the labels of the records at each node, ``theta`` the share of them that goes to the first child:
    the probability that stands for an answer that is blocked.
    """

    grown: ColumnTree
    counts: Floats
    theta: Floats

    @classmethod
    def of(cls, grown: ColumnTree, classes: int) -> InferenceChannel:
        """The channel of a tree; labels are category codes, NaN if missing."""
        nodes = grown.tree.nodes
        counts = np.zeros((len(nodes), classes))
        having = ~np.isnan(grown.target.cells)
        np.add.at(counts, (grown.labels[having], grown.target.cells[having].astype(np.int64)), 1.0)
        theta = np.zeros(len(nodes))
        for node in range(len(nodes) - 1, -1, -1):
            _, left, right = (int(part) for part in nodes[node])
            if left >= 0:
                counts[node] = counts[left] + counts[right]
                theta[node] = counts[left].sum() / max(counts[node].sum(), 1.0)
        return cls(grown, counts, theta)

    @property
    def drops(self) -> Floats:
        """Reduction of the label's entropy at each node, in bits; negative if it rises."""
        entropies = entropy_of(self.counts)
        return np.asarray(entropies[0] - entropies)

    @property
    def leaves(self) -> tuple[int, ...]:
        """Leaf nodes, each of which is a rule."""
        return tuple(int(node) for node in np.flatnonzero(self.grown.tree.nodes[:, 0] < 0))

    def give_up(self, limit: float, hidden: Bools) -> PrunedTree:
        """Cells that hidden rows lose next, so that rules above ``limit`` bits become more general.

        A rule that tells too much is given up for a wider one, a node above it that does not; of all ways to cover the
        tree with such nodes the one of fewest cells is taken, by dynamic programming from the leaves up. The root,
        which contains no information, always serves. All hidden rows of the node lose one column, whatever their
        answer, so that the gap does not tell the answer: the one that raises the entropy of the label most for each
        cell lost, by the parametric base set.
        """
        nodes, drops = self.grown.tree.nodes, self.drops
        asked: list[frozenset[int]] = [frozenset() for _ in nodes]
        present = self._present(hidden)
        cost, cuts = np.zeros(len(nodes)), np.zeros(len(nodes), dtype=np.bool_)
        for node in range(len(nodes) - 1, -1, -1):
            column, left, right = (int(part) for part in nodes[node])
            serves = drops[node] <= limit + _ROUNDING
            if column < 0:
                cost[node], cuts[node] = (0.0 if serves else np.inf), True
                continue
            asked[node] = asked[left] | asked[right] | {column}
            apart, here = cost[left] + cost[right], float(present[node, column]) if serves else np.inf
            cuts[node] = here < apart or (np.isinf(apart) and serves)
            cost[node] = min(here, apart)
        ends, walk = [], [0]
        while walk:
            node = walk.pop()
            if cuts[node]:
                ends.append(node)
            else:
                walk += [int(nodes[node, 2]), int(nodes[node, 1])]
        of = self._ends(ends)
        lost = {
            end: self._most_telling(end, hidden & (of == end), [each for each in asked[end] if present[end, each]])
            for end in ends
            if asked[end]
        }
        return PrunedTree(tuple(ends), lost, of)

    def _most_telling(self, end: int, rows: Bools, columns: list[int]) -> frozenset[int]:
        """Column whose removal at a node raises the label's entropy most per lost cell."""
        columns.sort()
        if len(columns) < 2 or not rows.any():
            return frozenset(columns)
        places = np.flatnonzero(rows)
        places = places[:: max(1, len(places) // _LOOKED)]
        absent = np.column_stack([np.isnan(column.cells[places]) for column in self.grown.asked])
        before = entropy_of(self.posterior(np.zeros_like(absent), places, end)).sum()
        gains = {}
        for column in columns:
            blocked = np.zeros_like(absent)
            blocked[:, column] = True
            after = entropy_of(self.posterior(blocked, places, end)).sum()
            gains[column] = (after - before) / max(1, int((~absent[:, column]).sum()))
        return frozenset({max(columns, key=lambda column: gains[column])})

    def _present(self, hidden: Bools) -> Ints:
        """Non-missing cells of hidden rows, by node and column."""
        nodes, columns = self.grown.tree.nodes, self.grown.asked
        present = np.zeros((len(nodes), len(columns)), dtype=np.int64)
        for place, column in enumerate(columns):
            there = hidden & ~np.isnan(column.cells)
            present[:, place] = np.bincount(self.grown.labels[there], minlength=len(nodes))
        for node in range(len(nodes) - 1, -1, -1):
            if nodes[node, 0] >= 0:
                present[node] = present[nodes[node, 1]] + present[nodes[node, 2]]
        return present

    def _below(self, node: int) -> list[int]:
        """A node and its descendants, parents first."""
        nodes, found = self.grown.tree.nodes, [node]
        for each in found:
            if nodes[each, 0] >= 0:
                found += [int(nodes[each, 1]), int(nodes[each, 2])]
        return found

    def _ends(self, ends: list[int]) -> Ints:
        """Current leaf of each record: the lowest remaining ancestor of its leaf."""
        up = np.full(len(self.grown.tree.nodes), -1, dtype=np.int64)
        for node in ends:
            up[self._below(node)] = node
        return up[self.grown.labels]

    def posterior(self, blocked: Bools, records: Ints | None = None, root: int = 0) -> Floats:
        """Label probabilities of records, by the parametric base set below a node.

        If the answer to a question is blocked, a record goes both ways: to the first child with probability theta,
        to the second with 1 - theta.
        """
        nodes, lower, below = self.grown.tree.nodes, self.grown.tree.lower, self._below(root)
        leaf = self.counts / np.maximum(self.counts.sum(axis=1, keepdims=True), 1.0)
        found = np.zeros((len(blocked), self.counts.shape[1]))
        own = self.grown.codes if records is None else self.grown.codes[records]
        step = max(1, _BLOCK // len(below))
        for start in range(0, len(blocked), step):
            here = slice(start, start + step)
            codes, gone = own[here], blocked[here]
            reach = {root: np.ones(len(codes))}
            for node in below:
                column, left, right = (int(part) for part in nodes[node])
                chance = reach.pop(node)
                if column < 0:
                    found[here] += chance[:, None] * leaf[node]
                    continue
                code = codes[:, column]
                first = (lower[node, code >> 3] >> (code & 7) & 1).astype(np.float64)
                first = np.where(gone[:, column], self.theta[node], first)
                reach[left], reach[right] = chance * first, chance * (1.0 - first)
        return found

    def label_counts(self, blocked: Bools, hidden: Bools) -> Floats:
        """Labels of the hidden records, for each set of rules that blocked cells leave possible.

        Records to which the same rules may apply look alike to an attacker who applies them. Their labels are what the
        rules tell of each of them, so the mean entropy is never above that of all their labels, nor the mean
        confidence below the share of the commonest. The mixture of rules by theta [`posterior`] has no such bound: it
        takes a blocked answer for independent of those that are left.
        """
        nodes, lower = self.grown.tree.nodes, self.grown.tree.lower
        rows = np.flatnonzero(hidden & ~np.isnan(self.grown.target.cells))
        possible = np.zeros((len(rows), len(nodes)), dtype=np.bool_)
        possible[:, 0] = True
        for node, (column, left, right) in enumerate(nodes.tolist()):
            if column >= 0:
                code = self.grown.codes[rows, column]
                first, open_ = (lower[node, code >> 3] >> (code & 7) & 1).astype(np.bool_), blocked[rows, column]
                possible[:, left] = possible[:, node] & (first | open_)
                possible[:, right] = possible[:, node] & (~first | open_)
        packed = np.packbits(possible[:, list(self.leaves)], axis=1)
        kinds, kind = np.unique(packed, axis=0, return_inverse=True)
        counts = np.zeros((len(kinds), self.counts.shape[1]))
        np.add.at(counts, (kind.ravel(), self.grown.target.cells[rows].astype(np.int64)), 1.0)
        return counts

    def lines(self, ends: tuple[int, ...], lost: dict[int, frozenset[int]]) -> list[str]:
        """Each rule on a line: conditions, most likely label, confidence and entropy reduction."""
        labels, drops = _labels(self.grown.target), self.drops
        lines = []
        for end in ends:
            path, gone = self._path(end), lost.get(end, frozenset())
            words = [
                f"{self.grown.asked[column].name} ? (theta {theta:.2f})"
                if column in gone
                else _condition(self.grown.asked[column], goes)
                for column, (goes, theta) in path.items()
            ]
            words += [f"{self.grown.asked[column].name} ?" for column in sorted(gone - set(path))]
            counts = self.counts[end]
            best, rule = int(counts.argmax()), " and ".join(words) or "always"
            lines.append(
                f"{rule}: {self.grown.target.name} = {labels[best]} with confidence "
                f"{counts[best] / max(counts.sum(), 1.0):.3f} ({int(counts.sum())} records, entropy "
                f"{'falls' if drops[end] >= 0 else 'rises'} by {abs(drops[end]):.3f} bits)"
            )
        return lines

    def _path(self, end: int) -> dict[int, tuple[Bools, float]]:
        """Bins and theta of each column on the path to a node."""
        nodes, lower = self.grown.tree.nodes, self.grown.tree.lower
        above = {int(child): node for node, (column, *both) in enumerate(nodes) if column >= 0 for child in both}
        way = [end]
        while way[-1] in above:
            way.append(above[way[-1]])
        found: dict[int, tuple[Bools, float]] = {}
        for parent, child in zip(way[:0:-1], way[-2::-1], strict=True):
            column, first = int(nodes[parent, 0]), int(nodes[parent, 1]) == child
            bins = np.unpackbits(lower[parent], bitorder="little")[: self.grown.asked[column].bins].astype(np.bool_)
            if self.grown.asked[column].is_number:  # lower numbers that nobody here has would go the same way
                bins[: int(np.flatnonzero(bins)[-1])] = True
            share = self.theta[parent] if first else 1.0 - self.theta[parent]
            goes, theta = found.get(column, (np.ones_like(bins), 1.0))
            found[column] = goes & (bins if first else ~bins), theta * share
        return found


def _condition(column: ChainColumn, goes: Bools) -> str:
    """Condition that describes some bins of a column."""
    shift = int(column.missing is not None)
    gap = bool(shift and goes[0] and np.isnan(column.cells).any())
    if not goes[shift:].any():
        return f"{column.name} missing"
    words = _interval(column, np.flatnonzero(goes[shift:])) if column.is_number else _categories(column, goes[shift:])
    return f"{column.name} {words}{' or missing' if gap else ''}"


def _interval(column: ChainColumn, inside: Ints) -> str:
    low, high = int(inside[0]), int(inside[-1])
    words = [f"from {_edge(column, low - 1)}"] if low else []
    words += [f"below {_edge(column, high)}"] if high < len(column.edges) else []
    return " ".join(words) or "known"


def _categories(column: ChainColumn, goes: Bools) -> str:
    names = _labels(column)
    own = [names[place] for place, code in zip(column.commonest, goes, strict=False) if code]
    more = f" and {len(own) - _MOST_NAMED} more" if len(own) > _MOST_NAMED else ""
    rest = " or another" if goes[-1] and len(column.commonest) < column.block.stop - column.block.start else ""
    return f"in {{{', '.join(own[:_MOST_NAMED])}{more}}}{rest}"


def _labels(column: ChainColumn) -> list[str]:
    extent = column.block.extent
    if extent is not None and extent.labels:
        return list(extent.labels)
    return [f"category {place + 1}" for place in range(column.block.stop - column.block.start)]


def _edge(column: ChainColumn, place: int) -> str:
    """Upper edge of a numeric bin, in the column's units if known."""
    edge, block = float(column.edges[place]), column.block
    if block.scale is not None and block.centre is not None:
        return f"{edge * block.scale + block.centre:.6g}"
    if block.extent is not None and block.extent.labels:
        place = round(edge * block.extent.unit + block.extent.origin + 0.5)
        return repr(block.extent.labels[min(max(place, 0), len(block.extent.labels) - 1)])
    share = float(np.mean(column.cells[~np.isnan(column.cells)] < edge))
    return f"the first {100 * share:.0f} % in order"
