"""Association rules: which of the original's rules the released table still has, and which it has only now.

Rules remaining, lost and new after sanitizing, and how their confidence changed [JS07, sec. 2.5]. Frequent sets of at
most three items are counted for blocks of rows in both tables, so that redraws cost no pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import SHARE, Measure, Need, NotRun, Number, Stated, Values
from sfumato.assess.findings import Family
from sfumato.assess.intervals import distance_interval, redraw_interval
from sfumato.assess.study import ColumnPair, Matrix, Places, Study, rows_alike

__all__ = ["CONFIDENCE", "RULES", "SUPPORT", "compare", "mine"]

SUPPORT = 0.05
"""Share of the rows that have all items of a rule, at least."""
CONFIDENCE = 0.6
"""Share of the rows with the items on the left of a rule that have the one on its right, at least."""
MOST = 80
"""Items that are looked at: the most frequent ones."""
_NEAR = 0.8  # of the support: what is below in both tables is no rule in a redraw either
_BLOCKS = 32
_CHUNK = 4_000_000  # numbers of products of items held at once
_TIMES = 20  # of the rows that models learn from
_REDRAWS = 100
_ABOUT = (
    f"these link at most three of the {MOST} most frequent items, hold for {SUPPORT:.0%} of the rows and are right in "
    f"{CONFIDENCE:.0%} of cases, with numbers cut into quarters"
)


@dataclass(frozen=True, eq=False, repr=False)
class Rules:
    """Every rule that may hold, as places in a row of counts: all items of it, and those on its left."""

    whole: Places
    left: Places

    def support(self, counts: Matrix, rows: float) -> Matrix:
        """Share of rows that have all items of each rule."""
        return np.asarray(counts[self.whole] / rows)

    def confidence(self, counts: Matrix) -> Matrix:
        """How often each rule is right; 0 where no row has the items on its left."""
        return np.asarray(counts[self.whole] / np.maximum(counts[self.left], 1.0))

    def hold(self, counts: Matrix, rows: float) -> NDArray[np.bool_]:
        """Which rules hold; a hair's breadth of rounding is forgiven."""
        hair = 1e-12
        frequent = self.support(counts, rows) >= SUPPORT - hair
        return np.asarray(frequent & (self.confidence(counts) >= CONFIDENCE - hair))


@dataclass(frozen=True, eq=False, repr=False)
class Counts:
    """How many rows of each block have the items of each set; the last one is the empty set, which all rows have."""

    blocks: Matrix

    @property
    def total(self) -> Matrix:
        """The counts over all rows."""
        return np.asarray(self.blocks.sum(axis=0))

    def redraws(self, rows: float, times: int, rng: np.random.Generator) -> Iterator[Matrix]:
        """Draw blocks with replacement, as many as make about so many rows, and count; so many times over."""
        count = len(self.blocks)
        size = max(2, round(count * rows / float(self.total[-1]))) if count > 1 else 1
        for weights in rng.multinomial(size, np.full(count, 1 / count), times):
            yield np.asarray(weights @ self.blocks)


def mine(
    pairs: Sequence[ColumnPair], here: Places, there: Places, rng: np.random.Generator
) -> tuple[Rules, Counts, Counts]:
    """What rules are made of, in blocks of the rows ``here`` of the original and ``there`` of the released table.

    Items are a column's categories, and the quarters of an ordered one. Sets of three are looked at only where all
    their pairs are frequent in one of the tables, or nearly.
    """
    codes, others, columns = _items(pairs, here, there)
    if not columns:
        none, alone = np.empty(0, dtype=np.int64), (Counts(np.array([[float(len(rows))]])) for rows in (here, there))
        return Rules(none, none), next(alone), next(alone)
    sides = [_Side.of(table, columns, rng) for table in (codes, others)]
    ones = [side.total() for side in sides]
    near = np.maximum(*(each / side.rows for each, side in zip(ones, sides, strict=True))) >= _NEAR * SUPPORT
    np.fill_diagonal(near, False)
    first, second = np.nonzero(np.triu(near))
    triples = [
        (pair, third)
        for pair, (i, j) in enumerate(zip(first, second, strict=True))
        for third in np.flatnonzero(near[i] & near[j])
        if third > j
    ]
    pair, third = np.array(triples, dtype=np.int64).reshape(-1, 2).T
    counts = [side.count(first, second, pair, third) for side in sides]
    return _rules(len(columns), first, second, pair, third), Counts(counts[0]), Counts(counts[1])


def _rules(items: int, first: Places, second: Places, pair: Places, third: Places) -> Rules:
    """All rules with one item on their right; counts stand in the order items, pairs, triples, all rows."""
    place = np.zeros((items, items), dtype=np.int64)
    place[first, second] = place[second, first] = items + np.arange(len(first))
    two, three = items + np.arange(len(first)), items + len(first) + np.arange(len(pair))
    i, j = first[pair], second[pair]
    whole = [two, two, three, three, three]
    left = [first, second, place[i, j], place[i, third], place[j, third]]
    return Rules(np.concatenate(whole), np.concatenate(left))


@dataclass(frozen=True, eq=False, repr=False)
class _Side:
    """The items of one table as a matrix of 0 and 1, and which rows make a block."""

    items: NDArray[np.float32]
    blocks: list[Places]

    @property
    def rows(self) -> int:
        return len(self.items)

    @classmethod
    def of(cls, codes: Places, columns: Sequence[tuple[int, int]], rng: np.random.Generator) -> _Side:
        items = np.column_stack([codes[:, column] == code for column, code in columns]).astype(np.float32)
        return cls(items, np.array_split(rng.permutation(len(items)), min(_BLOCKS, len(items))))

    def total(self) -> Matrix:
        """Rows that have each pair of items; on the diagonal, each item."""
        return sum(
            ((part.T @ part).astype(np.float64) for part in np.array_split(self.items, 1 + len(self.items) // 100_000)),
            np.zeros((self.items.shape[1],) * 2),
        )

    def count(self, first: Places, second: Places, pair: Places, third: Places) -> Matrix:
        """Rows of each block that have each item, each pair, each triple, and all rows."""
        width = self.items.shape[1]
        counts = np.zeros((len(self.blocks), width + len(first) + len(pair) + 1))
        step = max(1, _CHUNK // max(1, len(first)))
        for block, members in zip(counts, self.blocks, strict=True):
            for start in range(0, len(members), step):
                rows = self.items[members[start : start + step]]
                both = rows[:, first] * rows[:, second]
                block[:width] += rows.sum(axis=0)
                block[width : width + len(first)] += both.sum(axis=0)
                block[width + len(first) : -1] += (both.T @ rows)[pair, third]
            block[-1] = len(members)
        return counts


def _items(pairs: Sequence[ColumnPair], here: Places, there: Places) -> tuple[Places, Places, list[tuple[int, int]]]:
    """Both tables as codes, -1 where missing, and the most frequent items as column and code.

    A column with a single item in the original is left out: it would stand in rules that say nothing.
    """
    coded = [
        (pair.original.codes(cuts)[here], pair.released.codes(cuts)[there]) for pair in pairs for cuts in [pair.cuts(4)]
    ]
    kept = [sides for sides in coded if len(np.unique(sides[0][sides[0] >= 0])) > 1]
    codes, others = (
        np.column_stack([sides[place] for sides in kept] or [np.full(len(rows), -1)])
        for place, rows in enumerate((here, there))
    )
    shares: list[tuple[float, int, int]] = []
    for column in range(codes.shape[1]):
        size = 1 + int(max(codes[:, column].max(initial=-1), others[:, column].max(initial=-1)))
        both = [np.bincount(table[:, column] + 1, minlength=size + 1)[1:] / len(table) for table in (codes, others)]
        often = np.flatnonzero(np.maximum(*both) >= _NEAR * SUPPORT)
        shares.extend((float(both[0][code] + both[1][code]), column, int(code)) for code in often)
    frequent = sorted(shares, key=lambda item: (-item[0], item[1:]))[:MOST]
    return codes, others, [(column, code) for _, column, code in frequent]


def compare(rules: Rules, before: Matrix, after: Matrix) -> tuple[float, float, float]:
    """Shares of rules kept and new, and the mean change in confidence; the counts end with those of all rows.

    With no rule on a side the shares are 1 kept and 0 new.
    """
    ours, theirs = rules.hold(before, before[-1]), rules.hold(after, after[-1])
    both = float((ours & theirs).sum())
    kept = both / ours.sum() if ours.any() else 1.0
    new = 1.0 - both / theirs.sum() if theirs.any() else 0.0
    moved = np.abs(rules.confidence(before) - rules.confidence(after))[ours]
    return float(kept), float(new), float(moved.mean()) if len(moved) else 0.0


def _run(study: Study) -> Iterator[Stated]:
    rng = study.generator("rules")
    here, there, note = rows_alike(study, _TIMES * study.sizes.training, rng)
    rules, original, released = mine(study.pairs, here, there, rng)
    before, after = original.total, released.total
    ours, theirs = (int(rules.hold(side, side[-1]).sum()) for side in (before, after))
    if not ours:
        raise NotRun(
            f"the original has no rule that holds for {SUPPORT:.0%} of its rows and in {CONFIDENCE:.0%} of cases"
        )
    kept, new, moved = compare(rules, before, after)
    again, chance = _redraw(rules, original, released, rng)
    fresh = chance.mean(axis=0).tolist()
    yield "rules-kept", Values(kept, _centred(kept, again[:, 0]), fresh[0], attempts=ours, note=note)
    if theirs:
        yield "rules-new", Values(new, _centred(new, again[:, 1]), fresh[1], attempts=theirs, note=note)
    else:
        yield "rules-new", NotRun("the released table has no rule at all")
    interval = distance_interval(moved, again[:, 2], 0.0, 1.0)
    yield "rule-confidence-shift", Values(moved, interval, fresh[2], attempts=ours, note=note)


def _centred(share: float, redraws: Matrix) -> tuple[float, float]:
    """Interval of a share from redraws of both tables, which the chance in them makes worse on average."""
    low, high = redraw_interval(share, share + redraws - redraws.mean())
    return max(0.0, low), min(1.0, high)


def _redraw(rules: Rules, original: Counts, released: Counts, rng: np.random.Generator) -> tuple[Matrix, Matrix]:
    """Redraws of both tables compared, and the original with redraws of itself.

    Of the first the last column is not the change in confidence but how far it strays from the measured one.
    """
    before, after = original.total, released.total
    ours = rules.hold(before, before[-1])
    moved = rules.confidence(before) - rules.confidence(after)
    sources = ((original, before[-1]), (released, after[-1]), (original, after[-1]))
    again, chance = [], []
    for first, second, fresh in zip(*(each.redraws(rows, _REDRAWS, rng) for each, rows in sources), strict=True):
        strays = np.abs(rules.confidence(first) - rules.confidence(second) - moved)[ours].mean()
        again.append((*compare(rules, first, second)[:2], float(strays)))
        chance.append(compare(rules, before, fresh))
    return np.array(again), np.array(chance)


RULES = Measure(
    "rules", Family.UTILITY, "JS07, sec. 2.5; Agrawal, Imielinski and Swami 1993", _run, needs=(Need.COLUMNS,)
).finds(
    Number("rules-kept", "Association rules kept", SHARE.more).means(
        "The share of the original's association rules that are rules of the released table too, which should be "
        f"all; {_ABOUT}"
    ),
    Number("rules-new", "Association rules that are new", SHARE).means(
        "The share of the released table's association rules that are none of the original, which should be none; "
        f"{_ABOUT}"
    ),
    Number("rule-confidence-shift", "Shift of the confidence of rules").means(
        "How much the confidence of an association rule of the original, which is how often it is right, changed "
        f"on average; 0 is best; {_ABOUT}"
    ),
)
