"""Synthetic rows under construction, column after column; optionally only rows that meet a condition.

The likelihood of a person under the leaves that rows were drawn from is that of an attacker who knows the algorithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import OptionError
from sfumato.core.records import CellsByColumn, Layout, Records, RowRequest, cells_of_block, smallest_codes
from sfumato.methods.chain.columns import ChainColumn, read_columns
from sfumato.methods.chain.draw import ColumnStep, DrawnCells, SourceRecords, grow_on
from sfumato.methods.chain.facts import ChainSynthesis
from sfumato.methods.chain.trees import MOST_BINS, Tree

__all__ = ["MOST_GROWN", "ChainRows", "LeafLikelihood", "RegrownTrees", "begin_rows", "draw_head", "without_cells"]

_FEWEST = 1 << 12  # rows of a batch that is tried
_MOST_TRIES = 200  # rows that may be tried for one that is wanted


class ChainRows:
    """Rows with the cells of the columns drawn so far.

    Parameters
    ----------
    strata : ndarray of shape (n,)
        Of each row.
    width : int
        How many columns they will have.
    """

    def __init__(self, strata: NDArray[np.int64], width: int) -> None:
        self.strata = strata
        self.columns: list[ChainColumn] = []
        self.drawn: list[DrawnCells] = []
        self.codes = np.empty((len(strata), width), dtype=np.uint8)

    def __len__(self) -> int:
        return len(self.strata)

    def add(self, step: ColumnStep, rng: np.random.Generator) -> None:
        """Draw the cells of the next column."""
        made = step.draw([each.cells for each in self.drawn], self.codes, self.strata, rng)
        self.codes[:, len(self.columns)] = step.column.codes(made.cells)
        self.columns.append(step.column)
        self.drawn.append(made)

    def redraw(self, place: int, step: ColumnStep, rng: np.random.Generator) -> None:
        """Redraw the cells of a column given all others."""
        made = step.draw([each.cells for each in self.drawn], self.codes, self.strata, rng)
        self.codes[:, place], self.drawn[place] = step.column.codes(made.cells), made

    def take(self, places: NDArray[np.int64]) -> ChainRows:
        """A subset of the rows."""
        some = ChainRows(self.strata[places], self.codes.shape[1])
        some.codes[:] = self.codes[places]
        some.columns, some.drawn = list(self.columns), [each.take(places) for each in self.drawn]
        return some

    def values(self, width: int) -> NDArray[np.float64]:
        """Their coordinates; 0 for columns that are not drawn yet."""
        values = np.zeros((len(self), width))
        for column, made in zip(self.columns, self.drawn, strict=True):
            column.write(made.cells, values)
        return values

    def shuffled(self, layout: Layout, rng: np.random.Generator) -> CellsByColumn:
        """Their coordinates in random order; releases the cells to save memory."""
        order, columns = rng.permutation(len(self)), dict[str, NDArray[Any]]()
        for column in self.columns:
            cells = self.drawn.pop(0).cells[order]
            if not column.is_number:
                cells = smallest_codes(np.where(np.isnan(cells), -1.0, cells), column.block)
            columns[column.name] = cells
        return CellsByColumn(layout, columns)

    @property
    def copied(self) -> int:
        """Count of numbers copied from the original."""
        return sum(int(each.copied.sum()) for each in self.drawn)

    @property
    def moved(self) -> int:
        """Count of numbers that were moved."""
        return sum(int(each.moved.sum()) for each in self.drawn)


def begin_rows(strata: NDArray[np.int64], rows: int, width: int, rng: np.random.Generator) -> ChainRows:
    """Rows without cells, in the strata of the records; resampled if more or fewer rows are requested."""
    return ChainRows(strata if rows == len(strata) else strata[rng.integers(0, len(strata), rows)], width)


def draw_head(
    steps: Sequence[ColumnStep],
    strata: NDArray[np.int64],
    wanted: RowRequest,
    shape: tuple[int, int],
    rng: np.random.Generator,
) -> ChainRows:
    """Rows with the first columns drawn, repeated until enough rows meet the condition.

    ``shape`` gives the columns and coordinates of the complete rows.

    Raises
    ------
    OptionError
        If too few rows do.
    """
    assert wanted.meets is not None
    parts, got, tried = list[ChainRows](), 0, 0
    while got < wanted.rows:
        if tried > _MOST_TRIES * max(wanted.rows, _FEWEST):
            raise OptionError(
                f"of {tried} rows that were drawn {got} satisfy --where; draw fewer rows, or use a rule that more "
                "people satisfy"
            )
        batch = begin_rows(strata, max(_FEWEST, 2 * (wanted.rows - got)), shape[0], rng)
        for step in steps:
            batch.add(step, rng)
        tried += len(batch)
        parts.append(batch.take(np.flatnonzero(wanted.meets(batch.values(shape[1])))))
        got += len(parts[-1])
    return _joined(parts).take(np.arange(wanted.rows))


def _joined(parts: Sequence[ChainRows]) -> ChainRows:
    whole = ChainRows(np.concatenate([part.strata for part in parts]), parts[0].codes.shape[1])
    whole.codes[:] = np.concatenate([part.codes for part in parts])
    whole.columns = list(parts[0].columns)
    whole.drawn = [
        DrawnCells(*(np.concatenate([getattr(each, name) for each in drawn]) for name in ("cells", "copied", "moved")))
        for drawn in zip(*(part.drawn for part in parts), strict=True)
    ]
    return whole


_MOST_ROWS = 200_000  # released rows that are looked at

MOST_GROWN = 50_000
"""Released rows that trees are grown on again."""


def without_cells(step: ColumnStep) -> tuple[ChainColumn, Tree]:
    """Column and tree of a step, without original cells."""
    nothing = np.empty(0)
    column = replace(step.column, cells=nothing, rare=nothing.astype(np.bool_))
    return column, replace(step.tree, labels=nothing.astype(np.int64))


@dataclass(frozen=True, eq=False, repr=False)
class LeafLikelihood:
    """Likelihood score of an attacker who knows the trees and estimates the leaves from the release.

    For each column, how often the released rows of a person's leaf have their bin, against how often all rows have it;
    the logarithms of all columns add up. More is likelier in the table, since a leaf gives back what its people have.
    """

    steps: tuple[tuple[ChainColumn, Tree], ...]
    codes: NDArray[np.uint8]

    @classmethod
    def of(cls, steps: list[tuple[ChainColumn, Tree]], rows: ChainRows) -> LeafLikelihood | None:
        """Scores of people by these rows; None if strata have separate trees."""
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
class RegrownTrees:
    """Likelihood score of an attacker who knows the algorithm and regrows the trees on the release."""

    columns: tuple[ChainColumn, ...]
    codes: NDArray[np.uint8]
    leaf: int
    again: int | None
    apart: bool

    @classmethod
    def of(cls, rows: ChainRows, leaf: int, again: int | None, *, apart: bool) -> RegrownTrees:
        """Scores of people by trees regrown on the rows as the original trees were grown."""
        some = rows.take(np.arange(min(len(rows), MOST_GROWN)))
        never = np.zeros(len(some), dtype=np.bool_)
        columns = (
            replace(each, cells=made.cells, rare=never) for each, made in zip(some.columns, some.drawn, strict=True)
        )
        return cls(tuple(columns), some.codes, leaf, again, apart)

    @classmethod
    def on(cls, released: Records, stated: ChainSynthesis) -> RegrownTrees:
        """The same from released records and the certificate's statements alone."""
        names, twice = stated.columns, bool(stated.twice)
        by_name = {column.name: column for column in read_columns(released, 0)}
        columns = tuple(by_name[name] for name in ((*names[-1:], *names[:-1]) if twice else names))
        codes = np.column_stack([column.codes(column.cells) for column in columns])
        apart = not twice and names[0] == released.target and columns[0].is_told_apart
        return cls(columns, codes, stated.leaf, 0 if twice else None, apart)

    def __call__(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores of people by their coordinates."""
        nothing = np.zeros(len(self.codes), dtype=np.int64)
        people = SourceRecords(
            self.columns, self.codes, nothing, nothing, None, 0, min(self.leaf, len(nothing)), self.apart
        )
        steps = []
        for place, each in enumerate(self.columns):
            last = len(self.columns) if place == self.again else place
            steps.append((each, grow_on(each, [other for other in range(last) if other != place], people)))
        return LeafLikelihood(tuple(steps), self.codes)(values)

    def __repr__(self) -> str:
        return "Regrown(owner only)"
