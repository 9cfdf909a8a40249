"""How people stand in a whole file that goes through in cells: some are drawn before, and every cell counts for them.

Who is alone with a number among the rows that are measured need not be alone in the file, and a category that few of
them hold may have many holders. So each cell counts who holds the numbers of people drawn at random from the whole
file, and those next to them, and who holds each category. Added up, that is exact; only where a person may be in
several cells, of numbers it is told whether nobody, one person or more hold them, and of categories up to 1,000.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.assess.standing import CATEGORIES, NEAR, Standing, Steps, chance_of
from sfumato.assess.study import Column, read_column
from sfumato.engines.cells.reading import Chance
from sfumato.tables.codec import Codec
from sfumato.tables.frames import to_arrow

if TYPE_CHECKING:
    from sfumato.engines.cells.learn import Learned

__all__ = ["Asked", "ask", "count_in_cell", "standings_of"]

_PEOPLE = 5_000  # of whom it is counted
_TOLD_APART = 1_000  # persons of a category in a cell who are told apart from those of other cells

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class _Grid:
    """Steps of a column of numbers, and the places on them that are asked for."""

    steps: Steps
    places: Numbers

    def among(self, values: Numbers) -> NDArray[np.bool_]:
        """Which numbers lie at places that are asked for."""
        wanted = self.steps.places(values)
        found = np.searchsorted(self.places, wanted).clip(max=max(0, len(self.places) - 1))
        return self.places[found] == wanted if len(self.places) else np.zeros(len(values), dtype=np.bool_)


@dataclass(frozen=True, eq=False, repr=False)
class Asked:
    """What every cell counts: of columns of numbers those that are asked for, of categories all; and who is who."""

    grids: Mapping[str, _Grid]
    chance: Chance

    def __repr__(self) -> str:
        return "Asked(owner only)"


@dataclass(frozen=True, eq=False, repr=False)
class _People:
    """People drawn from the whole file, and from those held out."""

    inside: pa.Table
    outside: pa.Table | None
    persons: NDArray[np.int64] | None
    held_persons: NDArray[np.int64] | None


def ask(learned: Learned) -> tuple[Asked, _People]:
    """People drawn at random, and what must be counted to know how they stand; the same whenever it is asked."""
    rng, job = learned.plan.randomness.generator("standing"), learned.job
    seen = learned.seen.table if job.shared is None else job.shared.table
    sample = seen.take(pa.array(np.flatnonzero(learned.sampled)))
    inside, outside = _some(sample, rng), learned.look.outside.table
    if learned.plan.holdout is not None and not isinstance(learned.plan.holdout, float):
        outside = to_arrow(learned.plan.holdout)[0]
    if outside.num_rows:
        outside = _some(outside if job.shared is None else job.shared.like(outside), rng)
    grids = {}
    for field in job.codec.schema.encoded:
        if field.kind in CATEGORIES:
            continue
        steps = Steps.of(field, read_column(sample, job.codec, field).present)
        tables = (inside, outside) if outside.num_rows else (inside,)
        own = np.concatenate([steps.places(read_column(table, job.codec, field).present) for table in tables])
        near = np.unique(own)[:, None] + np.arange(-NEAR, NEAR + 1.0)
        grids[field.name] = _Grid(steps, np.unique(near))
    who = [
        None if persons is None else persons.view(np.int64)
        for persons in (learned.chance.of_persons(table) if table.num_rows else None for table in (inside, outside))
    ]
    return Asked(grids, learned.chance), _People(inside, outside if outside.num_rows else None, *who)


def _some(table: pa.Table, rng: np.random.Generator) -> pa.Table:
    places = np.sort(rng.permutation(table.num_rows)[:_PEOPLE])
    return table.take(pa.array(places)).combine_chunks()


def count_in_cell(
    asked: Asked, codec: Codec, original: pa.Table, rows: NDArray[np.int64], released: pa.Table
) -> pa.Table:
    """Who holds what is asked for in a cell, and what its released rows show of it.

    A row of the table that comes back is a value of a column and one of its holders, who is told apart by a number,
    with how ``many`` there are; or a value that is ``shown``.
    """
    persons = asked.chance.of_persons(original)
    who = rows.astype(np.uint64) if persons is None else persons
    found = []
    for place, field in enumerate(codec.schema.encoded):
        grid, column = asked.grids.get(field.name), read_column(original, codec, field)
        values, holders = column.present, who[~column.absent]
        shown = np.unique(read_column(released, codec, field).present)
        if grid is not None:
            near = grid.among(values)
            values, holders, shown = values[near], holders[near], shown[grid.among(shown)]
        order = np.lexsort((holders, values))
        values, holders = values[order], holders[order]
        new = np.append(True, (values[1:] != values[:-1]) | (holders[1:] != holders[:-1]))[: len(values)]
        values, holders = values[new], holders[new]
        first, many = np.unique(values, return_index=True, return_counts=True)[1:]
        rank = np.arange(len(values)) - np.repeat(first, many)
        kept = rank < (2 if grid is not None else _TOLD_APART)
        found.append(_part(place, values[kept], holders[kept], np.repeat(many, many)[kept], shown=False))
        none = np.zeros(len(shown), dtype=np.int64)
        found.append(_part(place, shown, none.astype(np.uint64), none, shown=True))
    return pa.concat_tables(found).combine_chunks()


def _part(place: int, values: Numbers, who: NDArray[np.uint64], many: NDArray[np.int64], *, shown: bool) -> pa.Table:
    places, told = np.full(len(values), place, dtype=np.int32), np.full(len(values), shown)
    return pa.table({"place": places, "value": values, "who": who, "many": many, "shown": told})


@dataclass(frozen=True, eq=False, repr=False)
class _Whole:
    """What all cells counted of a column: values with their holders, and values that are shown."""

    values: Numbers
    holders: NDArray[np.int64]
    shown: Numbers

    def holders_of(self, values: Numbers) -> NDArray[np.int64]:
        """How many hold each value; none where no cell knows it."""
        if not len(self.values):
            return np.zeros(len(values), dtype=np.int64)
        found = np.searchsorted(self.values, values).clip(max=len(self.values) - 1)
        return np.where(self.values[found] == values, self.holders[found], 0)


def standings_of(learned: Learned, counted: Sequence[pa.Table]) -> tuple[Standing, ...]:
    """How the people who were drawn stand in the whole file, column by column, by what its cells counted."""
    asked, people = ask(learned)
    codec, found = learned.job.codec, []
    for place, field in enumerate(codec.schema.encoded):
        parts = [part.filter(pa.compute.equal(part.column("place"), place)) for part in counted]
        whole = _added(parts, rows_are_people=people.persons is None)
        inside = read_column(people.inside, codec, field)
        outside = Column(np.empty(0), np.empty(0, dtype=np.bool_))
        if people.outside is not None:
            outside = read_column(people.outside, codec, field)
        holders = np.where(inside.absent, -1, whole.holders_of(inside.values))
        grid, chance, fewest = asked.grids.get(field.name), np.zeros(len(holders)), None
        if grid is None:
            shown = whole.holders[np.isin(whole.values, whole.shown)]
            fewest = int(shown.min()) if len(shown) else None, int(whole.holders.min(initial=learned.look.rows))
        elif (holders == 1).any():
            chance[holders == 1] = chance_of(grid.steps, inside.values[holders == 1], whole.values, whole.shown)
        held = np.where(outside.absent, -1, whole.holders_of(outside.values))
        shows = [np.isin(side.values, whole.shown) & ~side.absent for side in (inside, outside)]
        found.append(Standing(holders, shows[0], chance, held, shows[1], fewest, people.persons, people.held_persons))
    return tuple(found)


def _added(parts: Sequence[pa.Table], *, rows_are_people: bool) -> _Whole:
    """What parts counted of one column; a person may be in several of them."""
    cells = np.repeat(np.arange(len(parts)), [part.num_rows for part in parts])
    whole = pa.concat_tables(parts)
    value, who, many, shown = (whole.column(name).to_numpy() for name in ("value", "who", "many", "shown"))
    values, which = np.unique(value[~shown], return_inverse=True)
    pairs = np.unique(np.column_stack([which.astype(np.uint64), who[~shown]]), axis=0)
    holders = np.bincount(pairs[:, 0].astype(np.int64), minlength=len(values))
    first = np.unique(np.column_stack([which, cells[~shown]]), axis=0, return_index=True)[1]
    if rows_are_people:
        holders = np.bincount(which[first], many[~shown][first], minlength=len(values)).astype(np.int64)
    else:  # no fewer than in the cell that has most
        np.maximum.at(holders, which[first], many[~shown][first])
    return _Whole(values, holders, np.unique(value[shown]))
