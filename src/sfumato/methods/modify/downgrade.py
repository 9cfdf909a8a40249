"""Parsimonious downgrading: hide a private label and the cells from which rules infer it [JS07, sec. 2.2.1.3]."""

from __future__ import annotations

import dataclasses
import math
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.errors import LevelError, Notice, OptionError
from sfumato.core.option import offered
from sfumato.core.records import CATEGORY_SCALE, Block, BlockKind, Records
from sfumato.methods.modify import ColumnCells, columns_of_layout, modifiable, named_columns, people_of, released
from sfumato.methods.modify.facts import Downgraded
from sfumato.methods.modify.swap import people_drawn
from sfumato.methods.protocol import MethodResult, Traits, check_parameters

if TYPE_CHECKING:
    from sfumato.methods.modify.rules import InferenceChannel

__all__ = ["RULES_FILE", "Downgrading"]

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

    private: str = field(default="", metadata=offered("downgrade: column of the label to hide."))
    limit: float = field(
        default=0.3,
        metadata=offered("downgrade: largest information gain of a rule about it, in bits.  [default: 0.3]"),
    )
    hidden: float = field(
        default=1.0, metadata=offered("downgrade: share of the people whose label is hidden.  [default: 1]")
    )
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
            raise OptionError("a rule of fewer than 2 persons tells of one alone; try --leaf 50")

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
        raise OptionError(f"column {private.name!r} is the only one, so nothing can tell it; provide others too")


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
        f"Rules that tell {first.grown.told.name!r}, for the owner alone: they were grown on the original.",
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
