"""Persons made anew with all their rows: people who have as many rows are condensed by all of them together."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import LevelError
from sfumato.core.facts import PersonsApart
from sfumato.core.records import Layout, Records
from sfumato.mechanisms.condense.layers import check_persons
from sfumato.mechanisms.condense.partition import can_begin, partition
from sfumato.mechanisms.condense.synthesize import group_facts, redraw_coded
from sfumato.mechanisms.protocol import Sanitized, Workings

__all__ = ["synthesize_linked"]

Places = NDArray[np.int64]
Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class _Wide:
    """How the rows of a person lie side by side: columns that never change within a person once, others row by row."""

    same: Places  # coordinates of the columns that never change within a person
    changing: Places
    layout: Layout

    @classmethod
    def of(cls, records: Records, starts: Places) -> _Wide:
        """Layout of records that stand person by person, from each of these starts on."""
        moved = np.zeros(records.values.shape[1], dtype=np.bool_)
        if len(records) > len(starts):
            least, most = (each.reduceat(records.values, starts, axis=0) for each in (np.minimum, np.maximum))
            moved = (least != most).any(axis=0)
        columns = {block.column for block in records.layout if moved[block.where].any()}
        changing = np.zeros(records.values.shape[1], dtype=np.bool_)
        for block in records.layout:
            changing[block.where] = block.column in columns
        return cls(np.flatnonzero(~changing), np.flatnonzero(changing), records.layout)

    def blocks(self, times: int) -> Layout:
        """Blocks of persons with so many rows; a column stands once for each place that it has."""
        order = {int(place): number for number, place in enumerate(np.concatenate([self.same, self.changing]))}
        there = set(self.changing.tolist())
        blocks = []
        for turn in range(times):
            for block in self.layout:
                moves = block.start in there
                if turn and not moves:
                    continue
                start = order[block.start] + (turn * len(self.changing) if moves else 0)
                blocks.append(
                    dataclasses.replace(
                        block, column=f"{block.column} {turn}", start=start, stop=start + block.stop - block.start
                    )
                )
        return tuple(sorted(blocks, key=lambda block: block.start))

    def joined(self, rows: Matrix) -> Matrix:
        """Persons (p, times, d) as one row each."""
        people, times, _ = rows.shape
        return np.hstack([rows[:, 0, self.same], rows[:, :, self.changing].reshape(people, times * len(self.changing))])

    def parted(self, people: Matrix, times: int) -> Matrix:
        """Rows (p, times, d) of persons that lie side by side."""
        rows = np.empty((len(people), times, len(self.same) + len(self.changing)))
        rows[:, :, self.same] = people[:, None, : len(self.same)]
        rows[:, :, self.changing] = people[:, len(self.same) :].reshape(len(people), times, len(self.changing))
        return rows


def synthesize_linked(
    records: Records,
    levels: Places,
    algorithm: str,
    rng: np.random.Generator,
    *,
    weights: Matrix | None = None,
    **options: Any,
) -> Sanitized:
    """Draw as many persons as there are, each with all rows, from groups of persons who have as many rows.

    The first rows of such a group's members are a group of records, their second rows another, and so on: none holds
    two records of one person, and all are drawn together, so that what a person's rows have in common lasts. Columns
    that never change within a person are drawn once for each. Where fewer persons have as many rows as a level asks
    for, they count with those of one row less, and their last row is left out; who is still among too few with one row
    is left out as a whole.

    Raises
    ------
    LevelError
        Where nobody is left.
    """
    assert records.persons is not None
    order = np.lexsort((np.arange(len(records)), records.persons))
    starts, counts = np.unique(records.persons[order], return_index=True, return_counts=True)[1:]
    asked = np.maximum.reduceat(levels[order], starts)
    length = _lengths(counts, asked, records.strata[order[starts]])
    if not length.any():
        raise LevelError(
            f"in no part are enough of the {len(starts)} persons for their privacy levels to keep rows together; lower "
            "the level, or leave out --keep-persons"
        )
    wide = _Wide.of(records.take(order), starts)
    kept, labels, values, dealt, person, group = [], [], [], [], 0, 0
    for times in np.unique(length[length > 0]).tolist():
        who = np.flatnonzero(length == times)
        places = order[starts[who, None] + np.arange(times)]  # of rows: (persons, times)
        rows = wide.joined(records.values[places])
        wider = None if weights is None else wide.joined(np.tile(weights, (1, times, 1)))[0]
        own = partition(rows, asked[who], records.strata[places[:, 0]], rng, weights=wider, **options)
        drawn = wide.parted(redraw_coded(rows, own, wide.blocks(times), rng), times)
        kept.append(places.ravel())
        labels.append((group + own[:, None] * times + np.arange(times)).ravel())
        values.append(drawn.reshape(-1, records.values.shape[1]))
        sizes = np.bincount(own)
        made = np.repeat(np.arange(len(sizes)), sizes)  # group of each person who was drawn
        drawn_from = (group + made[:, None] * times + np.arange(times)).ravel()
        dealt.append(np.column_stack([np.repeat(person + np.arange(len(who)), times), drawn_from]))
        person, group = person + len(who), group + len(sizes) * times
    return _shuffled(records, levels, algorithm, rng, kept, labels, np.concatenate(values), np.concatenate(dealt))


def _lengths(counts: Places, levels: Places, strata: Places) -> Places:
    """How many rows each person keeps, so that as many in the stratum keep as many; 0 where there are too few."""
    length = counts.astype(np.int64)
    for stratum in np.unique(strata):
        inside = np.flatnonzero(strata == stratum)
        for times in range(int(length[inside].max()), 0, -1):
            those = inside[length[inside] == times]
            if len(those):
                length[those[~can_begin(levels[those])]] -= 1
    return length


def _shuffled(
    records: Records,
    levels: Places,
    algorithm: str,
    rng: np.random.Generator,
    kept: list[Places],
    labels: list[Places],
    values: Matrix,
    drawn: Places,
) -> Sanitized:
    """Rows in random order under random numbers of persons, with the facts; ``drawn`` are persons and groups."""
    whole, rows = len(records), np.concatenate(kept)
    order = np.argsort(rows)
    rows, group = rows[order], np.concatenate(labels)[order]
    records, levels = records.take(rows), levels[rows]
    check_persons(group, records.persons)
    assert records.persons is not None
    sizes = np.bincount(group)
    shuffle, number = rng.permutation(len(values)), rng.permutation(int(drawn[:, 0].max()) + 1) + 1
    nothing = np.zeros(len(values), dtype=np.int64)
    released = Records(
        values[shuffle],
        records.layout,
        nothing,
        nothing.copy(),
        records.target,
        persons=number[drawn[shuffle, 0]],
        linked=True,
    )
    facts = (
        *group_facts(algorithm, records, sizes, levels, group, len(values)),
        PersonsApart(len(np.unique(records.persons)), whole - len(records)),
    )
    left_out = rows if len(rows) < whole else None
    return Sanitized(released, facts, Workings(group, levels, drawn[shuffle, 1], kept=left_out))
