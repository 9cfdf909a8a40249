"""Which part of a large table is measured: whole neighbourhoods, drawn at random, with all rows made of them.

All people of a neighbourhood and all rows made of them are looked at, so that each is hidden among as many alike as in
the whole table, and the measuring takes as much memory for a million rows as for a hundred thousand.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sfumato.assess.risk.uniqueness import population_uniqueness
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.engines.outcome import Comparison
from sfumato.engines.partitions import Tree, grow_tree, leaf_in
from sfumato.methods.protocol import OwnerDetails
from sfumato.tables.codec import Codec
from sfumato.tables.persons import persons_of_table

__all__ = [
    "MEASURED_ROWS",
    "MEASURED_WHOLE",
    "MeasuredRows",
    "details_of_part",
    "draw_measured_rows",
    "measured_note",
    "measured_part",
]

MEASURED_WHOLE = 250_000
"""Rows of a table up to which all are measured."""

MEASURED_ROWS = 100_000
"""Rows, about, that are measured of a larger one."""

REGION_ROWS = 3_000
"""Original rows of a neighbourhood."""

_BLOCK_ROWS = 1 << 16  # that are encoded at a time


@dataclass(frozen=True, eq=False, repr=False)
class Regions:
    """Regions of space, some of which were drawn."""

    tree: Tree
    drawn: Bools

    def hold(self, points: Floats) -> Bools:
        """Whether each point lies in a region that was drawn."""
        return np.asarray(self.drawn[leaf_in(self.tree, points, np.arange(len(points)))])


def draw_regions(points: Floats, most: float, share: float, rng: np.random.Generator) -> Regions:
    """Regions of at most ``most`` of the points each, and about this share of the regions drawn at random."""
    tree, count = grow_tree(points, max(1.0, most))
    wanted = int(np.floor(share * count + rng.random()))
    return Regions(tree, np.isin(np.arange(count), rng.permutation(count)[:wanted]))


def measured_note(measured: int, whole: int) -> str:
    """What a reader must know of rows that were measured and are not all."""
    return (
        f"Measured on {measured} of the {whole} rows: whole neighbourhoods, drawn at random, with all rows that were "
        "made of them. Intervals count the people who were tried, and not that other neighbourhoods might have been "
        "drawn."
    )


@dataclass(frozen=True, eq=False, repr=False)
class MeasuredRows:
    """Places of the people who are measured, of the rows made of them, and of the control group."""

    inside: Ints
    made: Ints
    outside: Ints


def measured_part(compared: Comparison, workings: OwnerDetails, rng: np.random.Generator) -> Comparison:
    """The comparison itself, or of a large table that of some neighbourhoods, with the workings of those rows.

    Where rows of a person stay together the table is measured whole.
    """
    original, released, held = compared.original, compared.released, compared.outside
    most = max(original.num_rows, released.num_rows)
    if compared.linked is not None or most <= MEASURED_WHOLE or not original.num_rows:
        return compared
    rows = draw_measured_rows(compared, workings, MEASURED_ROWS / most, rng)
    schema, records = compared.codec.schema, compared.records
    persons = persons_of_table(original, schema) if records is None else records.persons
    whose = persons, None if held is None else persons_of_table(held, schema)
    return dataclasses.replace(
        compared,
        original=original.take(pa.array(rows.inside)),
        released=released.take(pa.array(rows.made)),
        records=None if records is None else records.take(rows.inside),
        outside=None if held is None else held.take(pa.array(rows.outside)),
        notes=(*compared.notes, measured_note(len(rows.inside), original.num_rows)),
        workings=details_of_part(workings, rows, original.num_rows),
        # who is alone among some need not be alone among all
        standings=population_uniqueness((original, released, held), compared.codec, whose, rows.inside, rows.outside),
    )


def draw_measured_rows(
    compared: Comparison, workings: OwnerDetails, share: float, rng: np.random.Generator
) -> MeasuredRows:
    """Rows of about this share of the neighbourhoods of a table, drawn at random.

    Groups stay whole, a row that descends from a person is where that one is, and others are where they lie.
    """
    original, codec = compared.original, compared.codec
    origin = workings.origin
    if workings.labels is not None and workings.drawn_from is not None:
        centres = _centres(original, codec, workings.labels)
        regions = draw_regions(centres, REGION_ROWS * len(centres) / original.num_rows, share, rng)
        chosen = regions.hold(centres)
        inside, made = chosen[workings.labels], chosen[workings.drawn_from]
    else:
        some = np.sort(rng.choice(original.num_rows, min(original.num_rows, MEASURED_ROWS), replace=False))
        points = codec.encode(original.take(pa.array(some)), unseen="mean").values
        regions = draw_regions(points, REGION_ROWS * len(some) / original.num_rows, share, rng)
        inside = _held(original, codec, regions)
        made = _held(compared.released, codec, regions) if origin is None else (origin >= 0) & inside[origin]
    outside = np.empty(0, dtype=np.bool_) if compared.outside is None else _held(compared.outside, codec, regions)
    return MeasuredRows(*(np.flatnonzero(each) for each in (inside, made, outside)))


def _blocks(table: pa.Table, codec: Codec) -> Iterator[tuple[int, Floats]]:
    """Coordinates of a table some rows at a time, with the place of the first of them."""
    names = [column.field.name for column in codec.columns]
    for start in range(0, table.num_rows, _BLOCK_ROWS):
        yield start, codec.encode(table.select(names).slice(start, _BLOCK_ROWS), unseen="mean").values


def _held(table: pa.Table, codec: Codec, regions: Regions) -> Bools:
    return np.concatenate([np.empty(0, dtype=np.bool_), *(regions.hold(rows) for _, rows in _blocks(table, codec))])


def _centres(table: pa.Table, codec: Codec, labels: Ints) -> Floats:
    """Mean coordinates of each group."""
    sizes = np.bincount(labels)
    sums = np.zeros((len(sizes), codec.layout[-1].stop))
    for start, values in _blocks(table, codec):
        order = np.argsort(labels[start : start + len(values)], kind="stable")
        own = labels[start : start + len(values)][order]
        first = np.flatnonzero(np.r_[True, own[1:] != own[:-1]])
        sums[own[first]] += np.add.reduceat(values[order], first, axis=0)
    return np.asarray(sums / np.maximum(sizes, 1)[:, None])


def details_of_part(workings: OwnerDetails, rows: MeasuredRows, many: int) -> OwnerDetails:
    """Details of some of the people and of some released rows."""
    labels, drawn, origin = workings.labels, workings.drawn_from, workings.origin
    if labels is not None:
        found, labels = np.unique(labels[rows.inside], return_inverse=True)
        drawn = None if drawn is None else np.searchsorted(found, drawn[rows.made])
    if origin is not None:
        place = np.full(many + 1, -1, dtype=np.int64)  # the last is for rows that descend from nobody
        place[rows.inside] = np.arange(len(rows.inside))
        origin = place[origin[rows.made]]
    redraw = workings.redraw
    return dataclasses.replace(
        workings,
        redraw=None if redraw is None else lambda some, cells, rng: redraw(rows.inside[some], cells, rng),
        labels=labels,
        levels=None if workings.levels is None else workings.levels[rows.inside],
        drawn_from=drawn,
        origin=origin,
        kept=None,
        sample=None,
        answers={name: codes[rows.made] for name, codes in workings.answers.items()},
    )
