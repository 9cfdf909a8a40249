"""Where a stream keeps its groups and the records that wait: arrays with room to grow, written by compiled steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.compiled import fixed
from sfumato.core.errors import LevelError, OptionError, TableError
from sfumato.core.groups import check_values
from sfumato.core.records import Block, BlockKind, Layout

__all__ = [
    "ADMITTED",
    "GAPS",
    "GROUPS",
    "LEAST",
    "MISSING",
    "NEXT_ID",
    "NOTED",
    "NO_ROOM",
    "NUMBERS",
    "PENDING",
    "RIPE",
    "SPLITS",
    "STOPPED",
    "CategoryTally",
    "Journal",
    "Pool",
    "Slots",
    "as_batch",
    "as_strata",
    "check_options",
    "divide",
    "empty_journal",
    "empty_slots",
    "grown",
    "places_of",
]

GROUPS, NEXT_ID, SPLITS, PENDING, LEAST, RIPE, GAPS, ADMITTED, NOTED, STOPPED = range(10)
NUMBERS = 10
"""Length of the array of whole numbers that the steps count in, by the names above.

``LEAST`` is the lowest level that waits. ``RIPE`` is the size of a group that has grown, until the records that wait
have been looked at again; ``GAPS`` counts those of them that were taken in since, ``ADMITTED`` all of them.
``NOTED`` are the lines of the journal. ``STOPPED`` is `NO_ROOM` if a record must wait and the pool is full, and 1 more
than the stratum whose waiting records can form its first group.
"""

NO_ROOM = -1


class Slots(NamedTuple):
    """Groups in slots, the first ``numbers[GROUPS]`` of them in use; a group keeps its slot and changes its id.

    ``triangle`` is the upper triangle of the scatter about the mean, row after row: g * d * (d + 1) / 2 numbers, which
    is nearly all the memory that a stream takes.
    """

    ids: Ints
    count: Ints  # type: ignore[assignment]  # hides the method of tuples
    mean: Floats
    triangle: Floats
    level_sum: Floats
    level_max: Ints
    family: Ints
    fresh: Ints
    fresh_level_max: Ints
    pseudo: Bools
    stratum: Ints
    written: Bools


class Pool(NamedTuple):
    """Records that wait for a group large enough, in order of arrival; level 0 marks one that was just taken in."""

    values: Floats
    levels: Ints
    strata: Ints


class Journal(NamedTuple):
    """Which group each record joined and which split, in order; nothing is noted where no coordinate is ``followed``.

    A record that joins has ``into`` -1 and its followed coordinates as ``values``. Of a split ``into`` is the id of the
    first piece, the second has the next, and ``values`` are how far the second lies above the first.
    """

    followed: Ints
    ids: Ints
    into: Ints
    values: Floats


T = TypeVar("T", Slots, Pool)

_FARTHEST = 1e140  # of a coordinate: scatters of any number of records stay finite


def empty_slots(slots: int, d: int) -> Slots:
    """Make room for groups; the system gives memory only to slots that are written."""
    whole = [np.zeros(slots, dtype=np.int64) for _ in range(7)]
    pseudo, written = (np.zeros(slots, dtype=np.bool_) for _ in range(2))
    ids, count, level_max, family, fresh, fresh_level_max, stratum = whole
    mean, triangle, level_sum = np.zeros((slots, d)), np.zeros((slots, d * (d + 1) // 2)), np.zeros(slots)
    counted = level_sum, level_max, family, fresh, fresh_level_max
    return Slots(ids, count, mean, triangle, *counted, pseudo, stratum, written)


def empty_journal(followed: tuple[int, ...], records: int) -> Journal:
    """Reserve room for the given number of records, each of which may split its group."""
    lines = 2 * records if followed else 0
    ids, into = np.zeros(lines, dtype=np.int64), np.zeros(lines, dtype=np.int64)
    return Journal(np.array(followed, dtype=np.int64), ids, into, np.zeros((lines, len(followed))))


def grown(arrays: T, size: int) -> T:
    """Copy arrays into longer ones."""

    def lengthened(array: NDArray[Any]) -> NDArray[Any]:
        longer = np.zeros((size, *array.shape[1:]), dtype=array.dtype)
        longer[: len(array)] = array
        return longer

    return type(arrays)(*map(lengthened, arrays))


def as_batch(values: Floats, levels: Ints, d: int, k: int) -> tuple[Floats, Ints]:
    """Records in the form that the steps take, or an error that says what is wrong with them."""
    values, levels = np.asarray(values, dtype=np.float64), np.asarray(levels)
    if values.ndim != 2 or values.shape[1] != d:
        raise TableError(f"an array of shape {values.shape} came; give records of {d} coordinates, one a row")
    check_values(values)
    far = int((np.abs(values) > _FARTHEST).any(axis=1).sum())
    if far:
        raise TableError(f"{far} records hold a number beyond {_FARTHEST:g}, whose square cannot be kept; remove them")
    if levels.shape != (len(values),) or levels.dtype.kind not in "iu":
        raise LevelError(f"there are {len(values)} records; give each one privacy level, a whole number")
    low = int((levels < k).sum())
    if low:
        raise LevelError(f"{low} privacy levels lie below k={k}; give the higher of k and the record's own")
    return fixed(values, np.float64), fixed(levels, np.int64)


def as_strata(strata: Ints | None, records: int, *, stratified: bool) -> Ints:
    """Strata in the form that the steps take, all 0 if groups are not stratified."""
    if not stratified:
        if strata is not None:
            raise OptionError("strata were given to groups that are not stratified; begin with stratified=True")
        return fixed(np.zeros(records, dtype=np.int64), np.int64)
    codes = np.empty(0, dtype=np.int64) if strata is None else np.asarray(strata)
    if codes.shape != (records,) or codes.dtype.kind not in "iu" or (codes < 0).any():
        raise TableError(f"there are {records} records; give each one stratum, a whole number from 0")
    return fixed(codes, np.int64)


def check_options(d: int, k: int, split: str, pending_limit: int) -> None:
    """Refuse what no stream can be kept with."""
    if split not in ("paper", "strict"):
        raise OptionError(f"there is no split test {split!r}; choose paper or strict")
    if d < 1 or k < 1 or pending_limit < 0:
        raise OptionError("coordinates and k must be at least 1 and the limit of the pool at least 0; raise them")


def places_of(wanted: Ints, present: Ints) -> Ints:
    """Where ids stand among the present ones; both ascend."""
    if not np.isin(wanted, present).all():
        raise OptionError("some of these ids are of no present group; ask for those of `ids`")
    return np.searchsorted(present, wanted)


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

    def of(self, group: int) -> list[Ints]:
        """Places of the categories of a group in each column, ascending, the missing first."""
        return [np.sort(np.array(places, dtype=np.int64)) for places in self._held[group]]

    def start(self, values: Floats, labels: Ints) -> None:
        """Begin with records and the group of each."""
        places = self._places(values[:, self.followed])
        self._held = {group: [[] for _ in self.blocks] for group in np.unique(labels).tolist()}
        for place, group in enumerate(labels.tolist()):
            for held, column in zip(self._held[group], places, strict=True):
                held.append(column[place])

    def found(self, group: int, values: Floats) -> None:
        """Begin a new group with its records."""
        self._held[group] = self._places(values[:, self.followed])

    def replay(self, journal: Journal, lines: int) -> None:
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

    def _places(self, followed: Floats) -> list[Places]:
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
    def _coordinates(block: Block) -> Callable[[Ints], Floats]:
        return lambda places: np.where(places == MISSING, block.fill[0], block.coordinates(places))

    @classmethod
    def of_groups(cls, layout: Layout, groups: Iterable[tuple[int, Sequence[Ints]]]) -> CategoryTally:
        """A tally of groups whose places are known, by id."""
        return cls(layout, {group: [places.tolist() for places in held] for group, held in groups})


def divide(held: Sequence[int], coordinates: Callable[[Ints], Floats], gap: float) -> tuple[Places, Places]:
    """Share out the categories of a group that splits, n // 2 of them to the first piece.

    The second piece's mean lies ``gap`` above the first's by the statistics of the split. A number of the lowest go to
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

    def first(ends: int) -> Bools:
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
