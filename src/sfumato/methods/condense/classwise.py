"""Layers of levels, and class-wise condensation with a group size that divides all classes [KCG12, fig. 5]."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sfumato.core.arguments import option
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.errors import LevelError, OptionError, PrivacyRefusal, SchemaError
from sfumato.core.records import Block, BlockKind, Layout, Records
from sfumato.methods.condense import ALGORITHMS, check_k, check_options, effective_levels
from sfumato.methods.condense.compact import CompactSearch
from sfumato.methods.condense.facts import ClassPure, PersonsInDistinctGroups
from sfumato.methods.condense.partition import can_begin, partition
from sfumato.methods.condense.synthesize import group_facts, redraw_coded
from sfumato.methods.protocol import MethodResult, OwnerDetails, Traits, check_parameters

__all__ = [
    "FLOOR",
    "MOST_CLASSES",
    "ClasswiseCondensation",
    "GroupSize",
    "approximate_gcd",
    "check_persons",
    "check_pure",
    "choose_size",
    "classes_of",
    "first_of_person",
    "layers_of",
    "partition_layers",
    "synthesize_linked",
    "units_of",
]

FLOOR = 5
"""Smallest group where no k is given: a tenth of a class of a few records would be no group at all."""

MOST_CLASSES = 20
"""Most distinct values of a numeric target that is taken as a class; more are a response."""

_TOLERANCES = (0.05, 0.2)
"""Shares of the smallest class between which the paper took t."""


@dataclass(frozen=True)
class GroupSize:
    """Group size g* chosen from the class sizes, and the unit t in which classes were counted."""

    size: int
    unit: int


@dataclass(frozen=True)
class ClasswiseCondensation:
    """Separate condensation of each class, so that no group mixes classes.

    The target of the records is the class. It is certain for each group (l = 1), and the certificate says so.

    Parameters
    ----------
    k : int, optional
        The floor: a record's level is max(k, the level it asks for). Without it the group size is the approximate
        greatest common divisor of the classes, which is large: a twentieth of the smallest class or more, and never
        less than 5. A group is larger if a record inside asks for a higher level.
    tolerance : float, optional
        The unit t that classes are counted in, as a share of the smallest class, as figure 5 has it; it is raised to 5.
        By default the unit between 0.05 and 0.2, the shares that the paper took, with which the divisor is largest.
        Not used if k is given.
    grouping : {"compact", "mdav", "paper", "modified", "holistic"}, optional
        As in `Condensation`, but compact groups may differ in width, so that dense regions of a class stay whole.
        Without it whichever of ``"compact"`` and the paper's own ``"modified"`` does better in a trial on the records
        themselves (`methods.condense.partition`); the certificate says which, and that it was chosen so.
    effort : {"fast", "default", "thorough"}
        How long the compact grouping searches.
    allow_level_1 : bool
        Level 1 is no protection: such a record may stand alone and is then published as it is.

    Examples
    --------
    >>> ClasswiseCondensation(k=5).method
    'classwise'
    """

    method: ClassVar[str] = "classwise"

    k: int | None = None
    tolerance: float | None = option(
        None, "classwise: unit of the GCD, as a share of the smallest class.  [default: the best of 0.05 to 0.2]"
    )
    grouping: str | None = None
    effort: str = "default"
    allow_level_1: bool = False

    def __post_init__(self) -> None:
        check_parameters(self)
        check_k(FLOOR if self.k is None else self.k, allow_level_1=self.allow_level_1)
        check_options(self.grouping or "compact", self.effort)
        if self.tolerance is not None and not 0.0 < self.tolerance <= 1.0:
            raise OptionError("tolerance is a share of the smallest class, above 0 and at most 1; try 0.1")

    @property
    def traits(self) -> Traits:
        """Properties that an engine needs to know."""
        floor = FLOOR if self.k is None else self.k
        return Traits(
            synthetic=True,
            floor=floor,
            level_1=self.allow_level_1,
            codes=True,
            classed=True,
            grouped=True,
            chooses_size=self.k is None,
        )

    def sanitize(self, records: Records, *, rng: np.random.Generator) -> MethodResult:
        """Replace the records by as many synthetic ones of the same classes.

        Implements [KCG12, fig. 5]. Where the records have strata too, a group crosses neither.
        """
        from sfumato.methods.condense.partition import better_grouping, can_try
        from sfumato.methods.condense.synthesize import synthesize
        from sfumato.methods.condense.warm import compile_ahead

        compile_ahead()
        block, classes = classes_of(records)
        cells = np.unique(np.column_stack([classes, records.strata]), axis=0, return_inverse=True)[1].ravel()
        floor = FLOOR if self.k is None else self.k
        levels = effective_levels(records.levels, floor, allow_level_1=self.allow_level_1)
        first = first_of_person(cells, records.persons)
        _check_sizes(block.column, cells[first], levels[first])
        size = None if self.k is not None else choose_size(np.bincount(cells[first]), floor, self.tolerance)
        least = levels if size is None else np.maximum(levels, size.size)
        grouping, chosen = self.grouping, ""
        if grouping is None:
            layers = layers_of(cells, records.persons, least)
            rows = np.flatnonzero(layers.begins) if not layers.begins.all() else slice(None)
            parts = np.unique(layers.code[rows], return_inverse=True)[1].ravel()
            tried = (records.values[rows], least[rows], classes[rows], parts)
            grouping = better_grouping(*tried, records.layout, rng, shared=block.where)
            chosen = ", chosen by trial" if can_try(*tried) else ""
        labels, kept = partition_layers(
            records.values,
            least,
            cells,
            records.persons,
            rng,
            grouping=grouping,
            effort=self.effort,
            search=CompactSearch(widths=True, among=records.among),
        )  # the nearest of several classes is asked for: dense regions stay whole
        check_pure(labels, cells if kept is None else cells[kept])
        algorithm = f"class-wise: {ALGORITHMS[grouping]}{chosen}"
        sanitized = synthesize(records, labels, levels, algorithm, rng, shared=block.where, kept=kept)
        chosen_size = {} if size is None else dataclasses.asdict(size)
        pure = ClassPure(block.column, int(classes.max()) + 1, **chosen_size)
        return dataclasses.replace(sanitized, facts=(pure, *sanitized.facts))


def classes_of(records: Records) -> tuple[Block, Ints]:
    """Block of the class, and the class number of each record.

    A numeric target is a class too if it has few distinct values.
    """
    if records.target is None:
        raise OptionError("class-wise condensation needs a class; name the target column")
    blocks = {block.kind: block for block in records.layout if block.column == records.target}
    absent = blocks.pop(BlockKind.MISSING, None)
    if absent is not None and (missing := int(records.values[:, absent.start].sum())):
        raise SchemaError(
            f"column {records.target!r} has {missing} missing cells, so the class of those records is unknown; fill "
            "them in or leave those rows out"
        )
    (block,) = blocks.values()
    if block.kind is BlockKind.CATEGORY:
        codes = np.argmax(records.values[:, block.where], axis=1)
        return block, np.unique(codes, return_inverse=True)[1].astype(np.int64)
    distinct, codes = np.unique(records.values[:, block.start], return_inverse=True)
    if len(distinct) > MOST_CLASSES:
        raise OptionError(
            f"column {records.target!r} is numeric with {len(distinct)} distinct values, which is a response and not a "
            "class; use the method condense, or declare the column nominal"
        )
    return block, codes.astype(np.int64)


def choose_size(counts: Ints, floor: int, tolerance: float | None = None) -> GroupSize:
    """Choose the group size from the sizes of the classes [KCG12, fig. 5, step 1].

    The unit t is the share ``tolerance`` of the smallest class and at least the floor. Without a tolerance it is the
    unit of 5 to 20 % of the smallest class with which the size is largest, the smallest of equally good ones.

    Notes
    -----
    The paper sets t to 5 to 20 % of the smallest class and does not say to which. One fixed share falls back to t if
    the numbers of units have no common divisor: of classes of 49, 50 and 51 a tenth gives 5, the choice gives 49
    (errata KCG12.4).

    Examples
    --------
    >>> choose_size(np.array([49, 50, 51]), 5), choose_size(np.array([49, 50, 51]), 5, 0.1)
    (GroupSize(size=49, unit=7), GroupSize(size=5, unit=5))
    """
    smallest = int(counts.min())
    if tolerance is not None:
        unit = max(floor, round(tolerance * smallest))
        return GroupSize(approximate_gcd(counts.tolist(), unit), unit)
    low, high = (share * smallest for share in _TOLERANCES)
    first = max(floor, math.ceil(low))
    units = np.arange(first, max(first, math.floor(high)) + 1)
    divisor = np.zeros(len(units), dtype=np.int64)
    for count in counts.tolist():
        divisor = np.gcd(divisor, count // units)
    unit = int(units[np.argmax(units * divisor)])
    return GroupSize(approximate_gcd(counts.tolist(), unit), unit)


def check_pure(labels: Ints, cells: Ints) -> None:
    """Fail closed if a group mixes two classes or two strata."""
    pairs = np.unique(np.column_stack([labels, cells]), axis=0)
    mixed = len(pairs) - len(np.unique(labels))
    if mixed:
        raise PrivacyRefusal(f"{mixed} groups mix classes; nothing is released. Please report this as a defect")


def _check_sizes(column: str, cells: Ints, levels: Ints) -> None:
    """Refuse levels that exceed the number of persons in a class, given one record of each."""
    sizes = np.bincount(cells)
    highest = np.zeros(len(sizes), dtype=np.int64)
    np.maximum.at(highest, cells, levels)
    short = np.flatnonzero(sizes < highest)
    if len(short):
        worst = short[np.argmin(sizes[short])]
        raise LevelError(
            f"{len(short)} of {len(sizes)} classes of column {column!r} (within strata, if there are some) have "
            f"fewer records than the highest privacy level in them ({int(sizes[short].sum())} records in all; the "
            f"smallest has {sizes[worst]} and level {highest[worst]}); recode them into one class or leave those rows "
            "out, lower the level (--k), or use the method condense, whose groups may mix classes"
        )


def approximate_gcd(counts: Sequence[int], tolerance: int) -> int:
    """Largest multiple of t that divides every class, up to fewer than t records per group.

    Implements g* = t * GCD(floor(|C_1|/t), ..., floor(|C_m|/t)) [KCG12, fig. 5, theorem 1]: class i makes
    ``units_of(counts, t)[i] * t / g*`` groups, each of at least g* records.

    Parameters
    ----------
    counts : sequence of int
        Records of each class.
    tolerance : int
        The paper's t: the smallest group size, and the unit in which classes are counted. It sets t to 5 to 20 % of
        the smallest class.

    Raises
    ------
    LevelError
        If a class is smaller than t: it has no unit, so that the divisor would ignore it (errata KCG12.2).

    Notes
    -----
    Where the numbers of units have no common divisor the result is t itself, and it jumps as counts or t change by one
    (50 and 25 units give 25 t, 50 and 24 give 2 t, 50 and 23 give t). Of one class it is all its units: one group, or
    nearly so. It is never below t and never above the smallest class.

    Examples
    --------
    >>> approximate_gcd([15, 10], 5), approximate_gcd([1001, 501], 20)
    (5, 500)
    """
    return tolerance * math.gcd(*units_of(counts, tolerance))


def units_of(counts: Sequence[int], tolerance: int) -> tuple[int, ...]:
    """Number of units of t records in each class, floor(|C_i|/t) [KCG12, fig. 5, step 1-2].

    Examples
    --------
    >>> units_of([1001, 501], 20)
    (50, 25)
    """
    if tolerance < 1:
        raise OptionError("the tolerance t must be a whole number of records, at least 1; try a tenth of a class")
    if not len(counts):
        raise LevelError("there are 0 classes; provide records of at least one")
    smallest = min(range(len(counts)), key=lambda place: counts[place])
    if counts[smallest] < tolerance:
        raise LevelError(
            f"class {smallest + 1} of {len(counts)} has {counts[smallest]} records, fewer than the smallest group of "
            f"{tolerance}; lower the level or the tolerance, or pool classes"
        )
    return tuple(int(count) // tolerance for count in counts)


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
    grouping: str = "compact",
    effort: str = "default",
    search: CompactSearch | None = None,
) -> tuple[Ints, Ints | None]:
    """Group of each kept record, and which records are kept; None if all are.

    A record of a layer that is too thin for its level goes to the nearest group of its stratum that is large enough
    with it and does not hold its person; where there is none it is left out.

    Parameters
    ----------
    values, levels, strata, rng, grouping, effort, search
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
    grouped = functools.partial(partition, rng=rng, grouping=grouping, effort=effort, search=search)
    begin = np.flatnonzero(layers.begins)
    if persons is None or len(begin) == len(values):
        labels = grouped(values, levels, layers.code)
        check_persons(labels, persons)
        return labels, None
    labels = np.full(len(values), -1, dtype=np.int64)
    labels[begin] = grouped(values[begin], levels[begin], layers.code[begin])
    _join(values, levels, strata, persons, labels, layers)
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
    rng: np.random.Generator,
    *,
    weights: Floats | None = None,
    grouping: str = "compact",
    effort: str = "default",
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
        scale = 1.0 if weights is None else wide.joined(np.tile(np.sqrt(weights), (1, times, 1)))[0]
        strata = records.strata[places[:, 0]]
        own = partition(rows * scale, asked[who], strata, rng, grouping=grouping, effort=effort)
        drawn = wide.parted(redraw_coded(rows, own, wide.blocks(times), rng), times)
        kept.append(places.ravel())
        labels.append((group + own[:, None] * times + np.arange(times)).ravel())
        values.append(drawn.reshape(-1, records.values.shape[1]))
        sizes = np.bincount(own)
        made = np.repeat(np.arange(len(sizes)), sizes)  # group of each person who was drawn
        drawn_from = (group + made[:, None] * times + np.arange(times)).ravel()
        dealt.append(np.column_stack([np.repeat(person + np.arange(len(who)), times), drawn_from]))
        person, group = person + len(who), group + len(sizes) * times
    algorithm = ALGORITHMS[grouping]
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
    released = dataclasses.replace(records.made(values[shuffle]), persons=number[drawn[shuffle, 0]], linked=True)
    facts = (
        *group_facts(algorithm, records, sizes, levels, group, len(values)),
        PersonsInDistinctGroups(len(np.unique(records.persons))),
    )
    left_out = rows if len(rows) < whole else None
    return MethodResult(released, facts, OwnerDetails(group, levels, drawn[shuffle, 1], kept=left_out))
