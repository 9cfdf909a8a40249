"""Categories of columns that have very many, counted in each group of a stream while records join and groups split.

A group's statistics hold one coordinate of such a column, which cannot tell its categories: they are counted beside.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.core.records import Block, BlockKind, Layout
from sfumato.mechanisms.condense.slots import Journal

__all__ = ["MISSING", "CategoryTally", "divide"]

MISSING = -1
"""Place of a cell that is missing, in a tally."""

Places = list[int]


class CategoryTally:
    """Places of the categories that the records of each group hold, by the id of the group and column after column.

    A group has as many places as records, missing cells counted as `MISSING`. A split shares them out between the
    pieces: nothing is lost, so over all pieces they stay those of the records that joined.

    Parameters
    ----------
    layout : tuple of Block
        Its blocks of `BlockKind.CODE` are counted.
    held : dict of int to list, optional
        What each group holds already.
    """

    def __init__(self, layout: Layout, held: dict[int, list[Places]] | None = None) -> None:
        marks = {block.column: block.start for block in layout if block.kind is BlockKind.MISSING}
        self.blocks = tuple(block for block in layout if block.kind is BlockKind.CODE)
        marked = [marks[block.column] for block in self.blocks if block.column in marks]
        self.followed = (*(block.start for block in self.blocks), *marked)
        self._indicators = [block.column in marks for block in self.blocks]
        self._held = {} if held is None else held

    def __repr__(self) -> str:
        return f"CategoryTally(groups={len(self._held)}, columns={len(self.blocks)})"

    def of(self, group: int) -> list[NDArray[np.int64]]:
        """Places of the categories of a group in each column, ascending, the missing first."""
        return [np.sort(np.array(places, dtype=np.int64)) for places in self._held[group]]

    def start(self, values: NDArray[np.float64], labels: NDArray[np.int64]) -> None:
        """Begin with records and the group of each."""
        places = self._places(values[:, self.followed])
        self._held = {group: [[] for _ in self.blocks] for group in np.unique(labels).tolist()}
        for place, group in enumerate(labels.tolist()):
            for held, column in zip(self._held[group], places, strict=True):
                held.append(column[place])

    def follow(self, journal: Journal, lines: int) -> None:
        """Let records join and groups split as the first lines of a journal tell."""
        places = self._places(journal.values[:lines])
        steps = zip(journal.ids[:lines].tolist(), journal.into[:lines].tolist(), strict=True)
        for line, (group, into) in enumerate(steps):
            if into < 0:
                for held, column in zip(self._held[group], places, strict=True):
                    held.append(column[line])
                continue
            parts = [
                divide(held, self._coordinates(block), float(gap))
                for held, block, gap in zip(self._held.pop(group), self.blocks, journal.values[line], strict=False)
            ]
            self._held[into], self._held[into + 1] = [part[0] for part in parts], [part[1] for part in parts]

    def _places(self, followed: NDArray[np.float64]) -> list[Places]:
        """Places that each record holds in each column, from the coordinates that are followed."""
        found, mark = [], len(self.blocks)
        for place, (block, indicated) in enumerate(zip(self.blocks, self._indicators, strict=True)):
            column = dataclasses.replace(block, start=place, stop=place + 1).places(followed)
            if indicated:
                column = np.where(followed[:, mark] > 0.5, MISSING, column)
                mark += 1
            found.append(column.tolist())
        return found

    @staticmethod
    def _coordinates(block: Block) -> Callable[[NDArray[np.int64]], NDArray[np.float64]]:
        return lambda places: np.where(places == MISSING, block.fill[0], block.coordinates(places))

    @classmethod
    def of_groups(cls, layout: Layout, groups: Iterable[tuple[int, Sequence[NDArray[np.int64]]]]) -> CategoryTally:
        """A tally of groups whose places are known, by id."""
        return cls(layout, {group: [places.tolist() for places in held] for group, held in groups})


def divide(
    held: Sequence[int], coordinates: Callable[[NDArray[np.int64]], NDArray[np.float64]], gap: float
) -> tuple[Places, Places]:
    """Share out the categories of a group that splits, n // 2 of them to the first piece.

    The second piece's mean lies ``gap`` above the first's by the statistics of the split. So many of the lowest go to
    one piece and as many of the highest to the other that the means come closest to it; those between are dealt out
    evenly.

    Examples
    --------
    >>> divide([0, 1, 2, 3], lambda places: places.astype(float), 2.0)
    ([0, 1], [2, 3])
    >>> divide([0, 1, 2, 3], lambda places: places.astype(float), -2.0)
    ([3, 2], [1, 0])
    """
    places = np.array(held, dtype=np.int64)
    where = coordinates(places) if gap >= 0 else -coordinates(places)
    order = np.argsort(where, kind="stable")
    places, where = places[order], where[order]
    size, half = len(places), len(places) // 2
    if half == 0:
        return [], places.tolist()

    def first(ends: int) -> NDArray[np.bool_]:
        mask = np.zeros(size, dtype=np.bool_)
        mask[:ends] = True
        between, lacking = size - 2 * ends, half - ends
        mask[ends + (np.arange(lacking) * 2 + 1) * between // (2 * max(1, lacking))] = True
        return mask

    def apart(ends: int) -> float:
        mask = first(ends)
        return float(where[~mask].mean() - where[mask].mean())

    low, high = 0, half
    while low < high:
        middle = (low + high) // 2
        if apart(middle) < abs(gap):
            low = middle + 1
        else:
            high = middle
    if low and abs(apart(low - 1) - abs(gap)) <= abs(apart(low) - abs(gap)):
        low -= 1
    mask = first(low)
    return places[mask].tolist(), places[~mask].tolist()
