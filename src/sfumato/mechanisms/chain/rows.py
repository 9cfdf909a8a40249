"""Rows in the making: cells drawn column after column, and only rows that fulfil a rule where one was told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.coordinates import CellsByColumn, smallest_places
from sfumato.core.errors import OptionError
from sfumato.core.records import Layout, Wanted
from sfumato.mechanisms.chain.columns import Column
from sfumato.mechanisms.chain.draw import Cells, Step

__all__ = ["Rows", "begin_rows", "draw_head"]

_FEWEST = 1 << 12  # rows of a batch that is tried
_MOST_TRIES = 200  # rows that may be tried for one that is wanted


class Rows:
    """Rows with the cells of some columns.

    Parameters
    ----------
    strata : ndarray of shape (n,)
        Of each row.
    width : int
        How many columns they will have.
    """

    def __init__(self, strata: NDArray[np.int64], width: int) -> None:
        self.strata = strata
        self.columns: list[Column] = []
        self.drawn: list[Cells] = []
        self.codes = np.empty((len(strata), width), dtype=np.uint8)

    def __len__(self) -> int:
        return len(self.strata)

    def add(self, step: Step, rng: np.random.Generator) -> None:
        """Draw their cells of one more column."""
        made = step.draw([each.cells for each in self.drawn], self.codes, self.strata, rng)
        self.codes[:, len(self.columns)] = step.column.codes(made.cells)
        self.columns.append(step.column)
        self.drawn.append(made)

    def draw_again(self, place: int, step: Step, rng: np.random.Generator) -> None:
        """Draw their cells of a column anew, by those of all others."""
        made = step.draw([each.cells for each in self.drawn], self.codes, self.strata, rng)
        self.codes[:, place], self.drawn[place] = step.column.codes(made.cells), made

    def take(self, places: NDArray[np.int64]) -> Rows:
        """Some of them."""
        some = Rows(self.strata[places], self.codes.shape[1])
        some.codes[:] = self.codes[places]
        some.columns, some.drawn = list(self.columns), [each.take(places) for each in self.drawn]
        return some

    def values(self, width: int) -> NDArray[np.float64]:
        """Their coordinates, of so many; 0 in those of columns that were not drawn yet."""
        values = np.zeros((len(self), width))
        for column, made in zip(self.columns, self.drawn, strict=True):
            column.write(made.cells, values)
        return values

    def shuffled(self, layout: Layout, rng: np.random.Generator) -> CellsByColumn:
        """Their coordinates in an order by chance; takes their cells away, so that they are not held twice."""
        order, columns = rng.permutation(len(self)), dict[str, NDArray[Any]]()
        for column in self.columns:
            cells = self.drawn.pop(0).cells[order]
            if not column.is_number:
                cells = smallest_places(np.where(np.isnan(cells), -1.0, cells), column.block)
            columns[column.name] = cells
        return CellsByColumn(layout, columns)

    @property
    def copied(self) -> int:
        """Numbers that are as people have them."""
        return sum(int(each.copied.sum()) for each in self.drawn)

    @property
    def moved(self) -> int:
        """Numbers that were moved."""
        return sum(int(each.moved.sum()) for each in self.drawn)


def begin_rows(strata: NDArray[np.int64], rows: int, width: int, rng: np.random.Generator) -> Rows:
    """Rows without cells: in the strata of the records, or drawn from these where there are more rows or fewer."""
    return Rows(strata if rows == len(strata) else strata[rng.integers(0, len(strata), rows)], width)


def draw_head(
    steps: Sequence[Step], strata: NDArray[np.int64], wanted: Wanted, shape: tuple[int, int], rng: np.random.Generator
) -> Rows:
    """Rows with the cells of the first columns, drawn until as many as are wanted fulfil their rule.

    The whole rows will have so many columns and coordinates, their ``shape``.

    Raises
    ------
    OptionError
        Where too few rows do.
    """
    assert wanted.meets is not None
    parts, got, tried = list[Rows](), 0, 0
    while got < wanted.rows:
        if tried > _MOST_TRIES * max(wanted.rows, _FEWEST):
            raise OptionError(
                f"of {tried} rows that were drawn {got} fulfil the rule of --where; ask for fewer rows, or for a rule "
                "that more people fulfil"
            )
        batch = begin_rows(strata, max(_FEWEST, 2 * (wanted.rows - got)), shape[0], rng)
        for step in steps:
            batch.add(step, rng)
        tried += len(batch)
        parts.append(batch.take(np.flatnonzero(wanted.meets(batch.values(shape[1])))))
        got += len(parts[-1])
    return _joined(parts).take(np.arange(wanted.rows))


def _joined(parts: Sequence[Rows]) -> Rows:
    whole = Rows(np.concatenate([part.strata for part in parts]), parts[0].codes.shape[1])
    whole.codes[:] = np.concatenate([part.codes for part in parts])
    whole.columns = list(parts[0].columns)
    whole.drawn = [
        Cells(*(np.concatenate([getattr(each, name) for each in drawn]) for name in ("cells", "copied", "moved")))
        for drawn in zip(*(part.drawn for part in parts), strict=True)
    ]
    return whole
