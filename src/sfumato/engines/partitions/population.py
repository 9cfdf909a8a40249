"""How people stand in a whole file that goes through in cells: some are drawn before, and every cell counts for them.

Who is alone with a number among the rows that are measured need not be alone in the file, and a category that few of
them hold may be frequent. So each partition counts who holds the numbers of people drawn at random from the whole
file, whether those next to them are held and shown, and who holds each category. Added up, that is exact; only if a
person may be in several cells, the persons who hold a number are counted up to 21, and those who hold a category up to
1,000.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.assess.attacks.rare_combinations import MOST_PERSONS
from sfumato.assess.risk.uniqueness import NEAR, NumberSteps, PopulationUniqueness, chance_of
from sfumato.assess.study import CATEGORIES, Column, read_column
from sfumato.engines.partitions.first_pass import RowHash
from sfumato.tables.codec import Codec
from sfumato.tables.frames import to_arrow

if TYPE_CHECKING:
    from sfumato.engines.partitions.first_pass import Preparation

__all__ = ["PopulationCounts", "Probes", "choose_probes", "count_in_partition"]

_PEOPLE = 5_000  # of whom it is counted
_DISTINGUISHED = 1_000  # most persons of a category who are distinguished
_NUMBER_HOLDERS = MOST_PERSONS + 1  # the same of a number

Numbers = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class _Grid:
    """Numbers of a column whose frequencies are requested, and the places next to them on its steps."""

    steps: NumberSteps
    own: Numbers
    places: Numbers


@dataclass(frozen=True, eq=False, repr=False)
class Probes:
    """What every partition counts: requested columns of numbers, all categories, and persons."""

    grids: Mapping[str, _Grid]
    row_hash: RowHash

    def __repr__(self) -> str:
        return "Probes(owner only)"


@dataclass(frozen=True, eq=False, repr=False)
class _People:
    """People drawn from the whole file, and from those held out."""

    inside: pa.Table
    outside: pa.Table | None
    persons: NDArray[np.int64] | None
    held_persons: NDArray[np.int64] | None


def choose_probes(prepared: Preparation) -> tuple[Probes, _People]:
    """People drawn at random, and what must be counted to know how they stand; the same whenever it is asked."""
    rng, job = prepared.plan.randomness.generator("standing"), prepared.job
    seen = prepared.seen.table if job.shared is None else job.shared.table
    sample = seen.take(pa.array(np.flatnonzero(prepared.sampled)))
    inside, outside = _some(sample, rng), prepared.first_pass.outside.table
    if prepared.plan.options.holdout is not None and not isinstance(prepared.plan.options.holdout, float):
        outside = to_arrow(prepared.plan.options.holdout)[0]
    if outside.num_rows:
        outside = _some(outside if job.shared is None else job.shared.like(outside, rng), rng)
    grids = {}
    for field in job.codec.schema.encoded:
        if field.kind in CATEGORIES:
            continue
        tables = (inside, outside) if outside.num_rows else (inside,)
        own = np.unique(np.concatenate([read_column(table, job.codec, field).present for table in tables]))
        steps = NumberSteps.of(field, read_column(sample, job.codec, field).present)
        near = steps.places(own)[:, None] + np.arange(-NEAR, NEAR + 1.0)
        grids[field.name] = _Grid(steps, own, np.unique(near))
    who = [
        None if persons is None else persons.view(np.int64)
        for persons in (prepared.row_hash.of_persons(table) if table.num_rows else None for table in (inside, outside))
    ]
    return Probes(grids, prepared.row_hash), _People(inside, outside if outside.num_rows else None, *who)


def _some(table: pa.Table, rng: np.random.Generator) -> pa.Table:
    places = np.sort(rng.permutation(table.num_rows)[:_PEOPLE])
    return table.take(pa.array(places)).combine_chunks()


@dataclass(frozen=True, eq=False, repr=False)
class _ValuePersons:
    """Values of a column, one of the persons who hold each (0 if rows are people), and how many do."""

    values: Numbers
    who: NDArray[np.uint64]
    many: NDArray[np.int64]

    @classmethod
    def of(cls, values: Numbers, who: NDArray[np.uint64] | None, most: int) -> _ValuePersons:
        """Counts of a column's values; at most ``most`` persons of a value are distinguished."""
        if who is None:
            found, many = np.unique(values, return_counts=True)
            return cls(found, np.zeros(len(found), dtype=np.uint64), many)
        return cls(values, who, np.ones(len(values), dtype=np.int64)).capped(most)

    def capped(self, most: int) -> _ValuePersons:
        """Each pair of value and person once, at most ``most`` for a value; counts never fall below known ones."""
        order = np.lexsort((self.who, self.values))
        values, who, many = self.values[order], self.who[order], self.many[order]
        new = np.append(True, (values[1:] != values[:-1]) | (who[1:] != who[:-1]))[: len(values)]
        first = np.append(True, values[1:] != values[:-1])[: len(values)].nonzero()[0]
        known = np.maximum.reduceat(many, first) if len(values) else many
        values, who = values[new], who[new]
        starts, persons = np.unique(values, return_index=True, return_counts=True)[1:]
        kept = np.arange(len(values)) - np.repeat(starts, persons) < most
        return _ValuePersons(values[kept], who[kept], np.repeat(np.maximum(known, persons), persons)[kept])

    def with_more(self, other: _ValuePersons, most: int, *, persons: bool) -> _ValuePersons:
        """Those of other rows too."""
        values, who, many = (
            np.concatenate([getattr(self, name), getattr(other, name)]) for name in ("values", "who", "many")
        )
        if persons:
            return _ValuePersons(values, who, many).capped(most)
        found, which = np.unique(values, return_inverse=True)
        sums = np.bincount(which, many, minlength=len(found)).astype(np.int64)
        return _ValuePersons(found, np.zeros(len(found), dtype=np.uint64), sums)

    def frequencies_of(self, values: Numbers) -> NDArray[np.int64]:
        """How many hold each value; none if it is not known."""
        if not len(self.values):
            return np.zeros(len(values), dtype=np.int64)
        found = np.searchsorted(self.values, values).clip(max=len(self.values) - 1)
        return np.where(self.values[found] == values, self.many[found], 0)


def count_in_partition(probes: Probes, codec: Codec, original: pa.Table, released: pa.Table) -> pa.Table:
    """Who holds what is asked for in a cell, and what its released rows show of it; a row for each column."""
    persons = probes.row_hash.of_persons(original)
    rows = []
    for field in codec.schema.encoded:
        grid, column = probes.grids.get(field.name), read_column(original, codec, field)
        who, values = None if persons is None else persons[~column.absent], column.present
        shown, near = np.unique(read_column(released, codec, field).present), {"held": b"", "shown": b""}
        if grid is not None:
            near["held"] = np.packbits(np.isin(grid.places, grid.steps.places(values))).tobytes()
            near["shown"] = np.packbits(np.isin(grid.places, grid.steps.places(shown, exact=True))).tobytes()
            mine = np.isin(values, grid.own)
            values, who, shown = values[mine], None if who is None else who[mine], shown[np.isin(shown, grid.own)]
        held = _ValuePersons.of(values, who, _DISTINGUISHED if grid is None else _NUMBER_HOLDERS)
        entries = {"values": held.values, "who": held.who, "many": held.many, "there": shown}
        rows.append({"near_held": near["held"], "near_shown": near["shown"]} | entries)
    kinds = {"values": pa.float64(), "who": pa.uint64(), "many": pa.int64(), "there": pa.float64()}
    columns = {name: pa.array([row[name] for row in rows], pa.large_list(kind)) for name, kind in kinds.items()}
    for name in ("near_held", "near_shown"):
        columns[name] = pa.array([row[name] for row in rows], pa.binary())
    return pa.table(columns)


@dataclass
class _Sum:
    """What cells counted of a column so far."""

    held: _ValuePersons
    shown: Numbers
    near_held: Mask
    near_shown: Mask


class PopulationCounts:
    """Adds up what cells count; mutable for the sake of one pass over them."""

    def __init__(self, prepared: Preparation) -> None:
        self._prepared = prepared
        self._probes, self._people = choose_probes(prepared)
        self._sums: dict[str, _Sum] = {}

    def add(self, counted: pa.Table) -> None:
        """Take in what one cell counted."""
        for place, field in enumerate(self._prepared.job.codec.schema.encoded):
            row = {name: counted.column(name)[place] for name in counted.column_names}
            values, who, many, shown = (
                row[name].values.to_numpy(zero_copy_only=False) for name in ("values", "who", "many", "there")
            )
            held, grid = _ValuePersons(values, who, many), self._probes.grids.get(field.name)
            size = 0 if grid is None else len(grid.places)
            near = [
                np.unpackbits(np.frombuffer(row[name].as_py(), dtype=np.uint8), count=size).astype(np.bool_)
                for name in ("near_held", "near_shown")
            ]
            if (own := self._sums.get(field.name)) is None:
                self._sums[field.name] = _Sum(held, shown, near[0], near[1])
                continue
            most = _DISTINGUISHED if grid is None else _NUMBER_HOLDERS
            own.held = own.held.with_more(held, most, persons=self._people.persons is not None)
            own.shown = np.union1d(own.shown, shown)
            own.near_held, own.near_shown = own.near_held | near[0], own.near_shown | near[1]

    def standings(self) -> tuple[PopulationUniqueness, ...]:
        """How the people who were drawn stand in the whole file, column by column."""
        codec, people, found = self._prepared.job.codec, self._people, []
        for field in codec.schema.encoded:
            whole, grid = self._sums[field.name], self._probes.grids.get(field.name)
            inside, outside = read_column(people.inside, codec, field), Column(np.empty(0), np.empty(0, dtype=np.bool_))
            if people.outside is not None:
                outside = read_column(people.outside, codec, field)
            frequencies, held = (
                np.where(side.absent, -1, whole.held.frequencies_of(side.values)) for side in (inside, outside)
            )
            chance, fewest, alone = np.zeros(len(frequencies)), None, frequencies == 1
            if grid is None:
                shown = whole.held.frequencies_of(whole.shown)
                shown = shown[shown > 0]
                least = int(whole.held.many.min(initial=self._prepared.first_pass.rows))
                fewest = int(shown.min()) if len(shown) else None, least
            elif alone.any():
                own, near = grid.steps.places(inside.values[alone]), (whole.near_held, whole.near_shown)
                chance[alone] = chance_of(own, *(grid.places[each] for each in near))
            shows = [np.isin(side.values, whole.shown) & ~side.absent for side in (inside, outside)]
            whose = (people.persons, people.held_persons)
            found.append(PopulationUniqueness(frequencies, shows[0], chance, held, shows[1], fewest, *whose))
        return tuple(found)
