"""Groups without two records of one person: everybody's first record is one layer, the second the next.

Synthetic persons with all their rows: people with equally many rows are condensed by all of them together.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.errors import LevelError, PrivacyRefusal
from sfumato.core.records import Layout, Records
from sfumato.methods.condense.facts import PersonsApart
from sfumato.methods.condense.partition import can_begin, partition
from sfumato.methods.condense.synthesize import group_facts, redraw_coded
from sfumato.methods.protocol import MethodResult, OwnerDetails

__all__ = ["Layers", "check_persons", "first_of_person", "layers_of", "partition_layers", "synthesize_linked"]

_CELLS = 1 << 22  # distances that are held at a time


@dataclass(frozen=True, eq=False, repr=False)
class Layers:
    """Layers of the records in each stratum, each with at most one record per person.

    ``code`` is the layer of each record, those of one stratum apart from those of another; ``begins`` marks the records
    whose layer is large enough for their levels. The others join groups afterwards.
    """

    code: Ints
    begins: Bools

    def __repr__(self) -> str:
        return "Layers(owner only)"


def layers_of(strata: Ints, persons: Ints | None, levels: Ints) -> Layers:
    """Layers of the records in table order; the strata themselves if each row is a person.

    All records of a first layer begin, so that levels which it cannot meet are refused.

    Examples
    --------
    >>> layers = layers_of(np.zeros(5, dtype=int), np.array([0, 1, 0, 2, 0]), np.full(5, 2))
    >>> layers.code.tolist(), layers.begins.tolist()
    ([0, 0, 1, 0, 2], [True, True, False, True, False])
    """
    begins = np.ones(len(strata), dtype=np.bool_)
    if persons is None:
        return Layers(strata, begins)
    rank = _rank(strata, persons)
    code = np.unique(np.column_stack([strata, rank]), axis=0, return_inverse=True)[1].ravel().astype(np.int64)
    order = np.argsort(code, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(code[order])) + 1):
        if len(rows) and rank[rows[0]] > 0:
            begins[rows] = can_begin(levels[rows])
    return Layers(code, begins)


def _rank(strata: Ints, persons: Ints) -> Ints:
    """Number of earlier records of the same person and stratum."""
    order = np.lexsort((persons, strata))
    changes = np.flatnonzero((np.diff(strata[order]) != 0) | (np.diff(persons[order]) != 0)) + 1
    starts = np.concatenate([[0], changes]).astype(np.int64)
    sizes = np.diff(np.concatenate([starts, [len(order)]]))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(starts, sizes)
    return rank


def partition_layers(
    values: Floats,
    levels: Ints,
    strata: Ints,
    persons: Ints | None,
    rng: np.random.Generator,
    *,
    weights: Floats | None = None,
    **options: Any,
) -> tuple[Ints, Ints | None]:
    """Group of each kept record, and which records are kept; None if all are.

    A record of a layer that is too thin for its level goes to the nearest group of its stratum that is large enough
    with it and does not hold its person; where there is none it is left out.

    Parameters
    ----------
    values, levels, strata, rng, weights, **options
        As in `partition`.
    persons : ndarray of shape (n,), optional
        Person of each record; without it each record is a person.

    Raises
    ------
    LevelError
        If a stratum has fewer persons than the highest level among the first records of each.
    PrivacyRefusal
        If a group came out with two records of one person, or smaller than a level inside it.
    """
    _check_enough(strata, persons, levels)
    layers = layers_of(strata, persons, levels)
    begin = np.flatnonzero(layers.begins)
    if persons is None or len(begin) == len(values):
        labels = partition(values, levels, layers.code, rng, weights=weights, **options)
        check_persons(labels, persons)
        return labels, None
    labels = np.full(len(values), -1, dtype=np.int64)
    labels[begin] = partition(values[begin], levels[begin], layers.code[begin], rng, weights=weights, **options)
    scaled = values if weights is None else values * np.sqrt(weights)
    _join(scaled, levels, strata, persons, labels, layers)
    kept = np.flatnonzero(labels >= 0)
    check_persons(labels[kept], persons[kept])
    return labels[kept], kept if len(kept) < len(values) else None


def first_of_person(strata: Ints, persons: Ints | None) -> Ints:
    """Indices of the first record of each person in each stratum."""
    return np.arange(len(strata)) if persons is None else np.flatnonzero(_rank(strata, persons) == 0)


def _check_enough(strata: Ints, persons: Ints | None, levels: Ints) -> None:
    """Refuse strata with fewer persons than the highest requested level."""
    if persons is None:
        return
    codes = np.unique(strata, return_inverse=True)[1].ravel()
    many = np.bincount(codes[first_of_person(strata, persons)])
    highest = np.zeros(len(many), dtype=np.int64)
    np.maximum.at(highest, codes, levels)
    short = np.flatnonzero(many < highest)
    if len(short):
        worst = short[np.argmin(many[short])]
        raise LevelError(
            f"{len(short)} of {len(many)} parts that groups may not leave have fewer persons than the highest privacy "
            f"level in them (the smallest has {many[worst]} and level {highest[worst]}); lower the level, pool small "
            "strata, or add more persons"
        )


def _join(values: Floats, levels: Ints, strata: Ints, persons: Ints, labels: Ints, layers: Layers) -> None:
    """Put the remaining records into the nearest eligible group, low levels first."""
    waiting = np.flatnonzero(~layers.begins)
    in_groups = np.flatnonzero(layers.begins)
    sizes = np.bincount(labels[in_groups])
    centres = np.zeros((len(sizes), values.shape[1]))
    np.add.at(centres, labels[in_groups], values[in_groups])
    centres /= sizes[:, None]
    stratum = np.zeros(len(sizes), dtype=np.int64)
    stratum[labels[in_groups]] = strata[in_groups]
    held: dict[int, list[int]] = {int(person): [] for person in persons[waiting]}
    for row in in_groups[np.isin(persons[in_groups], persons[waiting])].tolist():
        held[int(persons[row])].append(int(labels[row]))
    for each in np.unique(strata[waiting]):
        groups = np.flatnonzero(stratum == each)
        place = np.full(len(sizes), -1, dtype=np.int64)
        place[groups] = np.arange(len(groups))
        own = waiting[strata[waiting] == each]
        own = own[np.argsort(levels[own], kind="stable")]
        block = max(1, _CELLS // max(1, len(groups)))
        for first in range(0, len(own), block):
            rows = own[first : first + block]
            apart = (centres[groups] ** 2).sum(axis=1) - 2.0 * (values[rows] @ centres[groups].T)
            for row, distances in zip(rows.tolist(), apart, strict=True):
                theirs = held[int(persons[row])]
                taken = place[theirs] if theirs else np.empty(0, dtype=np.int64)
                distances[taken[taken >= 0]] = np.inf
                distances[sizes[groups] + 1 < levels[row]] = np.inf
                nearest = int(np.argmin(distances))
                if np.isfinite(distances[nearest]):
                    group = int(groups[nearest])
                    labels[row] = group
                    sizes[group] += 1
                    theirs.append(group)


def check_persons(labels: Ints, persons: Ints | None) -> None:
    """Fail closed if a group holds two records of one person."""
    if persons is None:
        return
    twice = len(labels) - len(np.unique(np.column_stack([labels, persons]), axis=0))
    if twice:
        raise PrivacyRefusal(
            f"{twice} records came out in a group that holds their person already; nothing is released. Please report "
            "this as a defect"
        )


@dataclass(frozen=True, eq=False, repr=False)
class _WideLayout:
    """Layout of a person's rows side by side: constant columns once, varying columns per row."""

    same: Ints  # coordinates of the columns that never change within a person
    changing: Ints
    layout: Layout

    @classmethod
    def of(cls, records: Records, starts: Ints) -> _WideLayout:
        """Layout of records sorted by person, from the start index of each person."""
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
        """Blocks of persons with equal numbers of rows; constant columns occur once."""
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

    def joined(self, rows: Floats) -> Floats:
        """Persons (p, times, d) as one wide row each."""
        people, times, _ = rows.shape
        return np.hstack([rows[:, 0, self.same], rows[:, :, self.changing].reshape(people, times * len(self.changing))])

    def parted(self, people: Floats, times: int) -> Floats:
        """Rows (p, times, d) of persons in wide form."""
        rows = np.empty((len(people), times, len(self.same) + len(self.changing)))
        rows[:, :, self.same] = people[:, None, : len(self.same)]
        rows[:, :, self.changing] = people[:, len(self.same) :].reshape(len(people), times, len(self.changing))
        return rows


def synthesize_linked(
    records: Records,
    levels: Ints,
    algorithm: str,
    rng: np.random.Generator,
    *,
    weights: Floats | None = None,
    **options: Any,
) -> MethodResult:
    """Draw as many persons as there are, with all their rows, from groups of persons with equal row counts.

    The first rows of such a group's members are a group of records, their second rows another, and so on: none holds
    two records of one person, and all are drawn together, so that what a person's rows have in common lasts. Columns
    that never change within a person are drawn once for each. Where fewer persons have as many rows as a level asks
    for, they count with those of one row less, and their last row is left out; who is still among too few with one row
    is left out as a whole.

    Raises
    ------
    LevelError
        If no one is left.
    """
    assert records.persons is not None
    order = np.lexsort((np.arange(len(records)), records.persons))
    starts, counts = np.unique(records.persons[order], return_index=True, return_counts=True)[1:]
    asked = np.maximum.reduceat(levels[order], starts)
    length = _lengths(counts, asked, records.strata[order[starts]])
    if not length.any():
        raise LevelError(
            f"in no part are enough of the {len(starts)} persons for their privacy levels to keep rows together; lower "
            "the level, or drop --keep-persons"
        )
    wide = _WideLayout.of(records.take(order), starts)
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


def _lengths(counts: Ints, levels: Ints, strata: Ints) -> Ints:
    """Number of rows kept per person, so that enough persons in the stratum keep as many; 0 if too few do."""
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
    levels: Ints,
    algorithm: str,
    rng: np.random.Generator,
    kept: list[Ints],
    labels: list[Ints],
    values: Floats,
    drawn: Ints,
) -> MethodResult:
    """Rows in random order under random person numbers, with the facts."""
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
        PersonsApart(len(np.unique(records.persons))),
    )
    left_out = rows if len(rows) < whole else None
    return MethodResult(released, facts, OwnerDetails(group, levels, drawn[shuffle, 1], kept=left_out))
