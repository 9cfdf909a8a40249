"""How likely a person is under the leaves that rows were drawn from: what somebody sees who knows the algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.core.coordinates import cells_of_block
from sfumato.core.records import Records
from sfumato.mechanisms.chain.columns import Column, read_columns
from sfumato.mechanisms.chain.draw import People, Step, grow_on
from sfumato.mechanisms.chain.rows import Rows
from sfumato.mechanisms.chain.trees import MOST_BINS, Tree

__all__ = ["Likelihood", "Regrown", "without_cells"]

_MOST_ROWS, _MOST_GROWN = 200_000, 50_000  # released rows that are looked at, and that trees are grown on again


def without_cells(step: Step) -> tuple[Column, Tree]:
    """Column and tree of a step, without what people have."""
    nothing = np.empty(0)
    column = replace(step.column, cells=nothing, rare=nothing.astype(np.bool_))
    return column, replace(step.tree, labels=nothing.astype(np.int64))


@dataclass(frozen=True, eq=False, repr=False)
class Likelihood:
    """Score of people by the leaves that they fall into: the trees are known, the leaves by their released rows alone.

    For each column, how often the released rows of a person's leaf have their bin, against how often all rows have it;
    the logarithms of all columns add up. More is likelier in the table, since a leaf gives back what its people have.
    """

    steps: tuple[tuple[Column, Tree], ...]
    codes: NDArray[np.uint8]

    @classmethod
    def of(cls, steps: list[tuple[Column, Tree]], rows: Rows) -> Likelihood | None:
        """Score of people by these rows; None where strata have trees of their own."""
        return None if rows.strata.any() else cls(tuple(steps), rows.codes[:_MOST_ROWS].copy())

    def __call__(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores of people by their coordinates."""
        theirs = np.column_stack(
            [column.codes(cells_of_block(values, column.block, column.missing)) for column, _ in self.steps]
        )
        scores = np.zeros(len(values))
        nowhere, here = np.zeros(len(self.codes), dtype=np.int64), np.zeros(len(values), dtype=np.int64)
        for place, (_, tree) in enumerate(self.steps):
            released, asked = tree.leaves_of(self.codes, nowhere), tree.leaves_of(theirs, here)
            share = np.bincount(self.codes[:, place], minlength=MOST_BINS) + 0.5
            share = (share / share.sum())[theirs[:, place]]
            inside = np.bincount(released, minlength=len(tree.nodes))[asked]
            pairs, many = np.unique(released * MOST_BINS + self.codes[:, place], return_counts=True)
            wanted = asked * MOST_BINS + theirs[:, place]
            at = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
            alike = np.where(pairs[at] == wanted, many[at], 0)
            scores += np.log((alike + share) / (inside + 1)) - np.log(share)
        return scores

    def __repr__(self) -> str:
        return "Likelihood(owner only)"


@dataclass(frozen=True, eq=False, repr=False)
class Regrown:
    """The same score of somebody who knows the algorithm and the release alone, and grows the trees on that."""

    columns: tuple[Column, ...]
    codes: NDArray[np.uint8]
    leaf: int
    again: int | None

    @classmethod
    def of(cls, rows: Rows, leaf: int, again: int | None) -> Regrown:
        """Score of people by trees that are grown on some of these rows, of which a column was drawn ``again``."""
        some = rows.take(np.arange(min(len(rows), _MOST_GROWN)))
        never = np.zeros(len(some), dtype=np.bool_)
        columns = (
            replace(each, cells=made.cells, rare=never) for each, made in zip(some.columns, some.drawn, strict=True)
        )
        return cls(tuple(columns), some.codes, leaf, again)

    @classmethod
    def on(cls, released: Records, names: Sequence[str], leaf: int, *, twice: bool) -> Regrown:
        """The same by released records alone, whose columns were drawn in this order, the last one ``twice``."""
        some = released.take(np.arange(min(len(released), _MOST_GROWN)))
        by_name = {column.name: column for column in read_columns(some, 0)}
        columns = tuple(by_name[name] for name in ((*names[-1:], *names[:-1]) if twice else names))
        codes = np.column_stack([column.codes(column.cells) for column in columns])
        return cls(columns, codes, leaf, 0 if twice else None)

    def __call__(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores of people by their coordinates."""
        nothing = np.zeros(len(self.codes), dtype=np.int64)
        people = People(self.codes, nothing, nothing, None, 0, min(self.leaf, len(nothing)))
        steps = []
        for place, each in enumerate(self.columns):
            last = len(self.columns) if place == self.again else place
            before = {other: column for other, column in enumerate(self.columns[:last]) if other != place}
            steps.append((each, grow_on(each, before, people)))
        return Likelihood(tuple(steps), self.codes)(values)

    def __repr__(self) -> str:
        return "Regrown(owner only)"
