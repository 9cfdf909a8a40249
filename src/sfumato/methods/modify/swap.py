"""Cells exchanged between rows, samples of people, and labels hidden with what tells them [JS07, sec. 2.1; OZ03, 2]."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sfumato.core.arguments import option
from sfumato.core.arrays import Bools, Floats, Ints, number_of_persons
from sfumato.core.errors import LevelError, Notice, OptionError, PrivacyRefusal
from sfumato.core.facts import Shuffled
from sfumato.core.records import CATEGORY_SCALE, Block, BlockKind, Records
from sfumato.methods.modify import (
    ColumnCells,
    columns_of_layout,
    modifiable,
    named_columns,
    names_of,
    people_of,
    released,
    shuffled,
    unchanged,
)
from sfumato.methods.modify.facts import Downgraded, Sampled, Swapped
from sfumato.methods.protocol import MethodResult, OwnerDetails, Traits, check_parameters

if TYPE_CHECKING:
    from sfumato.methods.modify.rules import InferenceChannel

__all__ = [
    "Downgrading",
    "Subsampling",
    "Swapping",
    "people_drawn",
    "swap_in_leaves",
    "swap_ranks",
]

WITHIN = ("window", "leaves")
"""Between which rows cells are exchanged."""

_TRIES = 32
_DRAWS = 1 << 14


@dataclass(frozen=True)
class Swapping:
    """Cells of some columns exchanged between rows; every column keeps its values.

    Parameters
    ----------
    within : {"window", "leaves"}
        Between rows that are near in rank, in pairs and for each column apart; or at random between the rows of a leaf
        of a tree that is grown to tell the target from all other columns.
    window : float
        How far two exchanged cells of a column may lie apart in rank, in percent of its cells.
    leaf : int
        Fewest persons of a leaf: the more, the less a row's own cell is known and the rules of the target are kept.
    columns : tuple of str
        Columns to exchange; by default all numbers, orders and dates, and in leaves the target alone.
    pass_categories : bool
        Window: publish categories as they are. They have no ranks, so without it they are refused.

    Examples
    --------
    >>> Swapping(window=10).method
    'swap'
    >>> Swapping(within="groups")
    Traceback (most recent call last):
        ...
    sfumato.core.errors.OptionError: there is no place 'groups' to swap within; choose one of window, leaves
    """

    method: ClassVar[str] = "swap"
    traits: ClassVar[Traits] = Traits(synthetic=False, codes=True)

    within: str = option(
        "window",
        "swap: between rows of similar rank, or in a leaf of a tree that predicts the target.  [default: window]",
        choices=WITHIN,
    )
    window: float = option(5.0, "swap: largest difference in rank, in percent of the rows.  [default: 5]")
    leaf: int = 50
    columns: tuple[str, ...] = option(
        (), "swap: column to swap; block: a quasi-identifier; repeatable.  [default: see the docs]"
    )
    pass_categories: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", names_of(self.columns, "columns"))
        check_parameters(self)
        if self.within not in WITHIN:
            raise OptionError(f"there is no place {self.within!r} to swap within; choose one of {', '.join(WITHIN)}")
        window = self.window
        if not 0.0 < window <= 100.0:
            raise OptionError("the window is a percentage above 0 and at most 100; try 5")
        if self.leaf < 2:
            raise OptionError("a leaf of fewer than 2 persons has nobody to swap with; try 50")

    def sanitize(self, records: Records, *, rng: np.random.Generator) -> MethodResult:
        """Exchange cells and shuffle the rows."""
        columns = modifiable(records, "swapping")
        values = records.values.copy()
        persons = people_of(records)
        if self.within == "window":
            chosen = self._with_ranks(columns)
            leaves, smallest = 0, 0
            for column in chosen:
                _exchange(column, values, swap_ranks(column, values, persons, self.window, rng))
        else:
            chosen = named_columns(columns, self.columns or _target(records), "columns")
            labels, leaves, smallest = self._leaves(records)
            for column in chosen:
                _exchange(column, values, swap_in_leaves(column, values, labels, rng))
        names = {column.name for column in chosen}
        fact = Swapped(
            "window" if self.within == "window" else "leaves",
            tuple(column.name for column in chosen),
            tuple(int((column.codes(values) != column.codes(records.values)).sum()) for column in chosen),
            len(records),
            self.window if self.within == "window" else None,
            records.target if self.within == "leaves" else None,
            leaves,
            smallest,
            sum(bool(column.absent(values).any()) for column in chosen),
        )
        left = [column for name, column in columns.items() if name not in names]
        return released(fact, records, values, left, rng)

    def _with_ranks(self, columns: dict[str, ColumnCells]) -> list[ColumnCells]:
        """Columns to exchange by rank."""
        if self.columns:
            chosen = named_columns(columns, self.columns, "columns")
            without = [column.name for column in chosen if not column.has_order]
            if without:
                raise OptionError(
                    f"column {without[0]!r} holds categories, which have no ranks; leave it out, or swap within leaves "
                    "(--within leaves)"
                )
            return chosen
        chosen = [column for column in columns.values() if column.has_order]
        if not chosen:
            raise OptionError("no column has ranks, so there is nothing to swap; use --within leaves or another method")
        categories = [column.block for column in columns.values() if not column.has_order]
        if categories and not self.pass_categories:
            raise PrivacyRefusal(
                f"{len(categories)} columns are categories, the first is {categories[0].named}: swapping by rank would "
                "publish them as they are; leave them out, swap within leaves, or allow it with --pass-categories"
            )
        return chosen

    def _leaves(self, records: Records) -> tuple[Ints, int, int]:
        """Leaf of each record, how many there are, and the persons of the smallest."""
        from sfumato.methods.modify.rules import grow_on

        (target,) = _target(records)
        people = number_of_persons(records.persons, np.arange(len(records)))
        if people < self.leaf:
            raise LevelError(f"there are {people} persons and a leaf needs {self.leaf}; lower the leaf or add more")
        if len(columns_of_layout(records.layout)) < 2:
            raise OptionError("the target is the only column, so no tree can predict it; swap within a window")
        who = None if records.persons is None else np.unique(records.persons, return_inverse=True)[1]
        grown = grow_on(records, target, self.leaf)
        return grown.labels, len(np.unique(grown.labels)), grown.smallest(who)


def _target(records: Records) -> tuple[str]:
    if records.target is None:
        raise OptionError("a tree that predicts the target needs one; name it with --target")
    return (records.target,)


def _exchange(column: ColumnCells, values: Floats, source: Ints) -> None:
    """Give every row the cell of another."""
    values[:, column.block.where] = values[source, column.block.where]
    if column.missing is not None:
        values[:, column.missing.where] = values[source, column.missing.where]


def swap_ranks(column: ColumnCells, values: Floats, persons: Ints, window: float, rng: np.random.Generator) -> Ints:
    """Donor of each row: a partner at most ``window`` percent of the cells away in rank.

    Cells are taken in the order of their ranks, equal ones in random order; each that has no partner yet gets one drawn
    from those above it, within the window, that have none and are of another person [Moore 1996]. Missing cells stay.
    """
    rows = np.flatnonzero(~column.absent(values))
    reach = math.floor(len(rows) * window / 100.0)
    if reach < 1:
        raise OptionError(
            f"a window of {window:g} percent of the {len(rows)} cells of column {column.name!r} holds no second one; "
            "widen it"
        )
    order = rng.permutation(len(rows))
    ranked = rows[order[np.argsort(values[rows[order], column.block.start], kind="stable")]]
    partner = _pair(persons[ranked].tolist(), reach, rng)
    source = np.arange(len(values))
    source[ranked] = ranked[partner]
    return source


def _pair(who: list[int], reach: int, rng: np.random.Generator) -> list[int]:
    """Partner of each rank, itself if none is left; partners are different persons."""
    partner, paired = list(range(len(who))), [False] * len(who)
    draws = _uniform(rng)
    for rank in range(len(who)):
        if paired[rank]:
            continue
        room = min(reach, len(who) - 1 - rank)
        found = -1
        for _ in range(_TRIES if room else 0):
            other = rank + 1 + int(next(draws) * room)
            if not paired[other] and who[other] != who[rank]:
                found = other
                break
        if found < 0:  # few are left: look at all of them
            left = [
                other for other in range(rank + 1, rank + 1 + room) if not paired[other] and who[other] != who[rank]
            ]
            if not left:
                continue
            found = left[int(next(draws) * len(left))]
        partner[rank], partner[found] = found, rank
        paired[rank] = paired[found] = True
    return partner


def _uniform(rng: np.random.Generator) -> Iterator[float]:
    while True:
        yield from rng.random(_DRAWS).tolist()


def swap_in_leaves(column: ColumnCells, values: Floats, labels: Ints, rng: np.random.Generator) -> Ints:
    """Donor of each row: a random permutation within each leaf. Missing cells stay."""
    rows = np.flatnonzero(~column.absent(values))
    by_leaf = rows[np.argsort(labels[rows], kind="stable")]
    drawn = rng.permutation(rows)
    mixed = drawn[np.argsort(labels[drawn], kind="stable")]
    source = np.arange(len(values))
    source[by_leaf] = mixed
    return source


def people_drawn(share: float, people: int) -> int:
    """Number of people in a share: rounded, at least one.

    Examples
    --------
    >>> people_drawn(0.1, 1234), people_drawn(0.01, 7)
    (123, 1)
    """
    return max(1, round(share * people))


@dataclass(frozen=True)
class Subsampling:
    """All rows of a random share of the people, unchanged.

    Parameters
    ----------
    share : float
        Share of the people who are drawn, without replacement and each with the same chance.

    Examples
    --------
    >>> Subsampling(share=0.2).method
    'subsample'
    >>> Subsampling(share=2)
    Traceback (most recent call last):
        ...
    sfumato.core.errors.OptionError: the share of people to draw must lie between 0 and 1; try 0.1
    """

    method: ClassVar[str] = "subsample"
    traits: ClassVar[Traits] = Traits(synthetic=False, codes=True, control=True)

    share: float = option(0.1, "subsample: share of the people in the sample.  [default: 0.1]")

    def __post_init__(self) -> None:
        check_parameters(self)
        if not 0.0 < self.share < 1.0:
            raise OptionError("the share of people to draw must lie between 0 and 1; try 0.1")

    def sanitize(self, records: Records, *, rng: np.random.Generator) -> MethodResult:
        """Draw people and shuffle their rows."""
        columns = modifiable(records, "sampling")
        by_person = records.persons is not None
        who = people_of(records)
        people = int(who.max()) + 1
        count = people_drawn(self.share, people)
        if count < 2:
            raise LevelError(f"a share of {self.share:g} of {people} people is one alone; draw more of them")
        chosen = np.zeros(people, dtype=np.bool_)
        chosen[rng.permutation(people)[:count]] = True
        kept = np.flatnonzero(chosen[who]).astype(np.int64)
        released, order = shuffled(records, records.values[kept], rng)
        facts = (
            Sampled(len(records), len(kept), people, count, by_person),
            *unchanged(columns.values(), released.values),
            Shuffled(len(kept)),
        )
        return MethodResult(released, facts, OwnerDetails(origin=order, sample=kept))


RULES_FILE = "rules.txt"
"""File of the owner that lists the rules before and after."""


@dataclass(frozen=True)
class Downgrading:
    """A private label set to missing, and as few other cells as needed so that no tree rule predicts it well.

    Parameters
    ----------
    private : str
        Column of the label: categories, truth values or places in an order.
    limit : float
        Bits by which a rule that is left may lower the entropy of the label, from what it is over all records. Below
        0.3, rules of 50 persons that chance makes are closed too.
    hidden : float
        Share of the people, drawn at random, whose label and telling cells become missing; all of them by default. The
        others are published as they are.
    leaf : int
        Fewest persons of a rule: rules of fewer are not looked for.

    Examples
    --------
    >>> Downgrading("illness", limit=0.05).method
    'downgrade'
    """

    method: ClassVar[str] = "downgrade"
    traits: ClassVar[Traits] = Traits(synthetic=False, gaps=True)

    private: str = option("", "downgrade: column of the label to hide.")
    limit: float = option(0.3, "downgrade: largest information gain of a rule about it, in bits.  [default: 0.3]")
    hidden: float = option(1.0, "downgrade: share of the people whose label is hidden.  [default: 1]")
    leaf: int = 50

    def __post_init__(self) -> None:
        check_parameters(self)
        if not isinstance(self.private, str) or not self.private:
            raise OptionError("downgrading hides a label and none is named; name its column with --private")
        limit, hidden = self.limit, self.hidden
        if not (math.isfinite(limit) and limit >= 0):
            raise OptionError("the limit is a number of bits from 0 on; try 0.3")
        if not 0.0 < hidden <= 1.0:
            raise OptionError("the share of people whose label is hidden must lie above 0 and at most at 1")
        if self.leaf < 2:
            raise OptionError("a rule of fewer than 2 persons discloses one person; try --leaf 50")

    def sanitize(self, records: Records, *, rng: np.random.Generator) -> MethodResult:
        """Grow rules, drop those that predict too well, set cells to missing and shuffle the rows."""
        columns = modifiable(records, "downgrading")
        (private,) = named_columns(columns, (self.private,), "private")
        classes = _classes(private)
        people = people_of(records)
        chosen = np.zeros(int(people.max()) + 1, dtype=np.bool_)
        chosen[rng.permutation(len(chosen))[: people_drawn(self.hidden, len(chosen))]] = True
        hidden = chosen[people]
        _check(private, people[hidden & ~private.absent(records.values)], self.leaf, len(columns))
        first, last, values = _downgrade(records, private, hidden, classes, self.limit, self.leaf)
        lost = {name: int((hidden & (column.absent(values) & ~column.absent(records.values))).sum())
                for name, column in columns.items() if name != self.private}  # fmt: skip
        lost = {name: cells for name, cells in lost.items() if cells}
        texts = {RULES_FILE: _page(first, last, columns, values, hidden, self.limit, sum(lost.values()))}
        private.clear(values, hidden)
        fact = Downgraded(
            self.private,
            len(records),
            int(hidden.sum()),
            float(self.limit),
            max(0.0, float(last.drops[list(last.leaves)].max())),
            len(first.leaves),
            len(last.leaves),
            tuple(lost),
            tuple(lost.values()),
        )
        left = [column for name, column in columns.items() if name != self.private or not hidden.all()]
        _warn(sum(lost.values()), int(hidden.sum()) * (len(columns) - 1), self.limit)
        return released(fact, records, values, left, rng, texts)


def _warn(lost: int, cells: int, limit: float) -> None:
    """Warn before anything is written if most cells would be missing."""
    if lost > cells / 2:
        words = (
            f"{lost} of {cells} other cells become missing so that no rule tells the label by more than {limit:g} "
            "bits: most columns tell it; allow more with --limit, leave columns out, or hide the label of a share with "
            "--hidden"
        )
        warnings.warn(Notice(words), stacklevel=2)


def _downgrade(
    records: Records, private: ColumnCells, hidden: Bools, classes: int, limit: float, leaf: int
) -> tuple[InferenceChannel, InferenceChannel, Floats]:
    """Block cells until a tree grown on the rest predicts no hidden label beyond the limit.

    The first tree is grown on all records, as whoever has the labels of others would; every further one on the hidden
    rows as they would leave, gaps and all, with their true labels: its rules include what a gap reveals. The guard
    looks at each of its rules, and the downgrader gives up those that tell too much. Each round blocks a cell, so that
    the rounds end. The first channel, the last, and the coordinates that are left.
    """
    from sfumato.methods.modify.rules import InferenceChannel, grow_on

    columns = columns_of_layout(records.layout)
    values, places = records.values.copy(), np.flatnonzero(hidden)
    first = InferenceChannel.of(grow_on(_as_class(records, private), private.name, leaf), classes)
    channel, rows, mine = first, np.arange(len(records)), hidden
    while True:
        kept = channel.give_up(limit, mine)
        blocked = kept.blocked(len(channel.grown.asked)) & mine[:, None]
        if not kept.lost and channel is not first:
            return first, channel, values
        for place, column in enumerate(channel.grown.asked):
            gone = np.zeros(len(values), dtype=np.bool_)
            gone[rows[blocked[:, place]]] = True
            columns[column.name].clear(values, gone)
        rows, mine = places, np.ones(len(places), dtype=np.bool_)
        part = dataclasses.replace(records, coordinates=values.copy()).take(rows)
        channel = InferenceChannel.of(grow_on(_as_class(part, private), private.name, leaf), classes)


def _classes(private: ColumnCells) -> int:
    """Number of possible labels."""
    block = private.block
    if not private.has_order:
        return block.stop - block.start
    if block.extent is None or not block.extent.labels:
        raise OptionError(
            f"column {private.name!r} is not a label but a number or a date; give it wider labels in the schema "
            "(hierarchy, coarsened), or take another"
        )
    return len(block.extent.labels)


def _check(private: ColumnCells, people: Ints, leaf: int, columns: int) -> None:
    """Refuse inputs without possible rules: too few people with a hidden label, or no other column."""
    count = len(np.unique(people))
    if count < leaf:
        raise LevelError(
            f"{count} persons have a label in column {private.name!r} that is to be hidden and a rule is of {leaf}; "
            "lower the leaf or add more"
        )
    if columns < 2:
        raise OptionError(f"column {private.name!r} is the only one, so nothing can predict it; provide others too")


def _as_class(records: Records, private: ColumnCells) -> Records:
    """Records with a categorical private label; an ordinal becomes categorical."""
    if not private.has_order:
        return records
    extent, block = private.block.extent, private.block
    assert extent is not None
    size = len(extent.labels)
    places = np.clip(np.rint(records.values[:, block.start] * extent.unit + extent.origin), 0, size - 1)
    coded = np.zeros((len(records), size))
    coded[np.arange(len(records)), places.astype(np.int64)] = CATEGORY_SCALE
    start, layout = records.values.shape[1], []
    for each in records.layout:
        if each.column == private.name and each.kind is not BlockKind.MISSING:
            each = Block(block.column, BlockKind.CATEGORY, start, start + size, (0.0,) * size, extent=extent)
        layout.append(each)
    filler = [each for each in layout if each.column != private.name or each.kind is BlockKind.MISSING]
    own = next(each for each in layout if each.column == private.name and each.kind is not BlockKind.MISSING)
    return dataclasses.replace(
        records, coordinates=np.hstack([records.values, coded]), layout=(*filler, own), target=None
    )


def _page(
    first: InferenceChannel,
    last: InferenceChannel,
    columns: dict[str, ColumnCells],
    values: Floats,
    hidden: Bools,
    limit: float,
    cells: int,
) -> str:
    """The owner's list of rules before and after blocking, with gain and loss."""
    from sfumato.methods.modify.rules import entropy_of

    blocked = np.column_stack([columns[column.name].absent(values) for column in first.grown.asked])
    blocked &= np.column_stack([~np.isnan(column.cells) for column in first.grown.asked])
    before, after = first.label_counts(np.zeros_like(blocked), hidden), first.label_counts(blocked, hidden)
    labels = before.sum(axis=0)
    kept = first.give_up(limit, hidden)
    lines = [
        f"Rules that tell {first.grown.target.name!r}, for the owner alone: they were grown on the original.",
        f"Entropy of the label over all records: {float(entropy_of(first.counts[:1])[0]):.3f} bits; a rule may lower "
        f"it by {limit:g}. Over the {int(labels.sum())} hidden labels: {float(entropy_of(labels)):.3f} bits.",
        f"Mean entropy of these to an attacker who applies the rules: {_mean_entropy(before):.3f} bits before, "
        f"{_mean_entropy(after):.3f} after.",
        f"Mean confidence of the likeliest label: {float(before.max(axis=1).sum() / labels.sum()):.3f} before, "
        f"{float(after.max(axis=1).sum() / labels.sum()):.3f} after, {float(labels.max() / labels.sum()):.3f} by "
        f"naming the commonest alone; {cells} cells were blocked for it.",
        "A blocked answer is marked ?, with theta, the probability that stands for it: the share of the records there.",
    ]
    parts = (
        (f"Before, {len(first.leaves)} rules:", first.lines(first.leaves, {})),
        (
            f"Given up first, to {len(kept.ends)} rules, wider ones where something is marked:",
            first.lines(kept.ends, kept.lost),
        ),
        (f"After, {len(last.leaves)} rules of a tree grown on the release:", last.lines(last.leaves, {})),
    )
    for title, rules in parts:
        lines += ["", title, *(f"- {rule}" for rule in rules)]
    return "\n".join([*lines, ""])


def _mean_entropy(counts: Floats) -> float:
    """Mean entropy of the records' label distributions."""
    from sfumato.methods.modify.rules import entropy_of

    of = counts.sum(axis=1)
    return float(entropy_of(counts) @ of / of.sum())
