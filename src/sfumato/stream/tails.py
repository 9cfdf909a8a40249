"""Tails of a stream: counts of its numbers by bins, kept as records are taken in, and the cut-offs that follow."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from sfumato.core.records import Block
from sfumato.stream.settings import StateEntry, StateError, StreamSettings
from sfumato.stream.state import State
from sfumato.tables.codec import Codec, EncodedColumn
from sfumato.tables.facts import TailsCoded
from sfumato.tables.field import Kind
from sfumato.tables.grid import cut_grid

__all__ = ["StreamTails", "counts_of_bins"]

_TAIL, _STEP, _DUE = "tail", "cut-off", "cut-offs-due"
_RENEWED = 1.1  # times as many records as at the last cut-offs
_NUMBER = np.dtype("<i8")
_CODED = (Kind.CONTINUOUS, Kind.INTEGER, Kind.DATE)
_SLOPE, _BINS = 4.0, 64.0  # bins are a 256th of a deviation wide in the middle, and a 64th of the value far out
_MOST_BINS = 1 << 18

Bins = NDArray[np.int64]
"""Numbers of bins in rising order, and how many records have a number in each."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class StreamTails:
    """How many records of a stream have their numbers in which bin, and the cut-offs that records are coded to.

    No cell can be read off the counts. A cut-off lies among the bins of the k-th to the (2k - 1)-th largest or smallest
    number; k counts rows, as many times the privacy level as rows of a person are taken in. Records join their groups
    with their numbers coded, so that no statistic of a group holds an extreme value. Cut-offs are renewed each time
    that a tenth more records have come, whatever batches they come in: ``steps`` holds those so far, low and high ends
    by column, and the next follow at ``due`` of the ``records``.
    """

    columns: tuple[EncodedColumn, ...]
    settings: StreamSettings
    counts: Mapping[str, Bins]
    steps: tuple[NDArray[np.float64], ...] = ()
    records: int = 0
    due: int = 0

    @classmethod
    def begun(cls, codec: Codec, settings: StreamSettings, values: NDArray[np.float64]) -> StreamTails:
        """Tails of the first records."""
        return cls._empty(codec, settings)._counted(values)._renewed()

    @classmethod
    def _empty(cls, codec: Codec, settings: StreamSettings) -> StreamTails:
        names = [] if settings.tails == "keep" else [each.field.name for each in codec.columns if _is_coded(each)]
        return cls(codec.columns, settings, {name: np.empty((2, 0), dtype=np.int64) for name in names})

    @classmethod
    def on_disk(cls, state: State, codec: Codec, settings: StreamSettings) -> StreamTails:
        """Tails of a state.

        Raises
        ------
        StateError
            If they are not those of its columns.
        """
        empty = cls._empty(codec, settings)
        counts = {key: counts_of_bins(state.body(_TAIL, key)) for key in state.keys(_TAIL)}
        if counts.keys() != empty.counts.keys():
            raise _unreadable()
        if not counts:
            return empty
        steps = tuple(_step_of_bytes(state.body(_STEP, key), len(counts)) for key in sorted(state.keys(_STEP)))
        body = state.body(_DUE)
        progress = np.frombuffer(body, dtype=_NUMBER).tolist() if len(body) == 16 else [0, 0]
        if not steps or not 0 < progress[0] < progress[1]:
            raise _unreadable()
        return cls(codec.columns, settings, {name: counts[name] for name in empty.counts}, steps, *progress)

    def entries(self, before: StreamTails | None = None) -> list[StateEntry]:
        """What is to be written, of the cut-offs only those that are new."""
        if not self.counts:
            return []
        known = 0 if before is None else len(before.steps)
        new = enumerate(self.steps[known:], start=known)
        return [
            *(StateEntry(_TAIL, name, bins.astype(_NUMBER).tobytes()) for name, bins in self.counts.items()),
            *(StateEntry(_STEP, f"{place:06d}", step.astype("<f8").tobytes()) for place, step in new),
            StateEntry(_DUE, "", np.array([self.records, self.due], dtype=_NUMBER).tobytes()),
        ]

    @property
    def fact(self) -> TailsCoded | None:
        """What is stated of the tails; None if no column has any."""
        settings, columns = self.settings, sum(map(_is_coded, self.columns))
        if not columns:
            return None
        persons = settings.k // settings.person_rows
        return TailsCoded(settings.tails, persons, columns, by_person=settings.person is not None)

    def admit(self, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64], StreamTails]:
        """Records that are taken in, with their numbers coded; the cut-offs of each; and the tails after them."""
        if not self.counts:
            return values, np.zeros(len(values), dtype=np.int64), self
        tails, steps, first = self, np.empty(len(values), dtype=np.int64), 0
        while first < len(values):
            last = min(len(values), first + tails.due - tails.records)
            steps[first:last] = len(tails.steps) - 1
            tails = tails._counted(values[first:last])
            tails, first = tails._renewed() if tails.records == tails.due else tails, last
        return tails.code(values, steps), steps, tails

    def code(self, values: NDArray[np.float64], steps: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """Records with their numbers coded to the cut-offs of their ``steps``, by default the last ones."""
        coded = values.copy()
        places = np.full(len(values), len(self.steps) - 1) if steps is None else steps
        for slot, column in enumerate(self._coded):
            ends = np.array([step[slot] for step in self.steps])[places]
            here, start = ~_missing(coded, column.blocks), column.blocks[0].start
            coded[here, start] = np.clip(coded[here, start], ends[here, 0], ends[here, 1])
        return coded

    @property
    def _coded(self) -> list[EncodedColumn]:
        return [column for column in self.columns if column.field.name in self.counts]

    def _counted(self, values: NDArray[np.float64]) -> StreamTails:
        counts = dict(self.counts)
        for column in self._coded:
            known = values[~_missing(values, column.blocks), column.blocks[0].start]
            bins = np.floor(_BINS * np.arcsinh(_SLOPE * known)).astype(np.int64)
            numbers, held = counts[column.field.name]
            found, places = np.unique(np.concatenate([numbers, bins]), return_inverse=True)
            weights = np.concatenate([held, np.ones(len(bins), dtype=np.int64)])
            totals = np.bincount(places, weights=weights, minlength=len(found)).astype(np.int64)
            counts[column.field.name] = np.vstack([found, totals])
        return dataclasses.replace(self, counts=counts, records=self.records + len(values))

    def _renewed(self) -> StreamTails:
        """The same with cut-offs of now."""
        if not self.counts:
            return self
        step = np.array([self._cut_offs(column.field.name, None) for column in self._coded])
        due = max(self.records + 1, math.ceil(_RENEWED * self.records))
        return dataclasses.replace(self, steps=(*self.steps, step), due=due)

    def release(self, codec: Codec, decimals: Mapping[str, int], rng: np.random.Generator) -> Codec:
        """The codec that writes released rows: its grids end at random cut-offs."""
        columns = []
        for column in codec.columns:
            name = column.field.name
            if name in self.counts and column.grid is not None:
                ends = np.array(self._cut_offs(name, rng))
                if not np.isfinite(ends).all():  # no record has a number yet
                    columns.append(column)
                    continue
                places = ends * column.scale + column.mean
                ends = column.grid.to_numbers(places)
                low, high = (_inwards(ends, decimals.get(name)) if column.grid.step is None else ends).tolist()
                column = dataclasses.replace(column, grid=cut_grid(column.grid, min(low, high), high))
            columns.append(column)
        return dataclasses.replace(codec, columns=tuple(columns))

    def _cut_offs(self, name: str, rng: np.random.Generator | None) -> tuple[float, float]:
        """Cut-offs of a column: weighted means of the ranks from k on, with random weights or equal ones."""
        numbers, held = self.counts[name]
        if not len(numbers):
            return -np.inf, np.inf
        low = self._weighted(numbers + 1, held, rng)  # the inner edge of each bin
        high = self._weighted(numbers[::-1], held[::-1], rng)
        return min(low, high), high

    def _weighted(self, numbers: Bins, held: Bins, rng: np.random.Generator | None) -> float:
        k, upto = self.settings.k, np.cumsum(held)
        ranks = np.arange(min(k, int(upto[-1])), min(2 * k, int(upto[-1]) + 1))
        edges = np.sinh(numbers[np.searchsorted(upto, ranks)] / _BINS) / _SLOPE
        weights = np.ones(len(ranks)) if rng is None else rng.dirichlet(np.ones(len(ranks)))
        return float(np.average(edges, weights=weights))


def _is_coded(column: EncodedColumn) -> bool:
    return column.field.kind in _CODED


def _missing(values: NDArray[np.float64], blocks: tuple[Block, ...]) -> NDArray[np.bool_]:
    return values[:, blocks[1].start] > 0.5 if len(blocks) > 1 else np.zeros(len(values), dtype=np.bool_)


def _inwards(numbers: NDArray[np.float64], decimals: int | None) -> NDArray[np.float64]:
    """A lower and an upper bound rounded up and down to the given number of decimals."""
    if decimals is None:
        return numbers
    scale = 10.0**decimals
    return np.array([np.ceil(numbers[0] * scale), np.floor(numbers[1] * scale)]) / scale


def counts_of_bins(body: bytes) -> Bins:
    """Counts of bins; raises StateError if the bytes hold no such counts."""
    if len(body) % 16 or len(body) > 16 * _MOST_BINS:
        raise _unreadable()
    numbers, held = bins = np.frombuffer(body, dtype=_NUMBER).astype(np.int64).reshape(2, -1)
    if (np.diff(numbers) <= 0).any() or (held <= 0).any() or (np.abs(numbers) > _MOST_BINS).any() or held.sum() > 2**50:
        raise _unreadable()
    return bins


def _step_of_bytes(body: bytes, columns: int) -> NDArray[np.float64]:
    if len(body) != 16 * columns:
        raise _unreadable()
    step = np.frombuffer(body, dtype="<f8").astype(np.float64).reshape(columns, 2)
    if not (step[:, 0] <= step[:, 1]).all():  # also if one is no number
        raise _unreadable()
    return step


def _unreadable() -> StateError:
    return StateError("the state does not hold the counts of its columns' tails; restore a complete copy of it")
