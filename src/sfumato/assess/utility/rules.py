"""Association rules: which of the original's rules the released table still has, and which it has only now.

Rules remaining, lost and new after sanitizing, and how their confidence changed [JS07, sec. 2.5]. Frequent sets of at
most three items are counted for blocks of rows in both tables, so that redraws cost no pass.

Rules between columns: how many rows of the released table obey those of the original.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import SHARE, Measure, Need, NotRun, Number, Stated, Values
from sfumato.assess.findings import Family, distance_interval, redraw_interval
from sfumato.assess.study import ColumnPair, Matrix, Places, Study, equivalence_classes
from sfumato.core.itemsets import Bitmaps, Transactions, least_count, partial_counts
from sfumato.core.itemsets.mining import Itemsets, frequent_itemsets
from sfumato.tables.dates import unit_of
from sfumato.tables.field import Kind
from sfumato.tables.rules import Cells, broken_rows, period_of, read_rules

__all__ = ["COLUMN_RULES", "CONFIDENCE", "RULES", "SUPPORT", "compare", "mine"]

SUPPORT = 0.05
"""Share of the rows that have all items of a rule, at least."""
CONFIDENCE = 0.6
"""Share of the rows with the items on the left of a rule that have the one on its right, at least."""
MOST = 80
"""Items that are looked at: the most frequent ones."""
_NEAR = 0.8  # of the support: what is below in both tables is no rule in a redraw either
_BLOCKS = 32
_TIMES = 20  # of the rows that models learn from
_REDRAWS = 100
_ABOUT = (
    f"Rules of at most three of the {MOST} most frequent items, support {SUPPORT:.0%}, confidence "
    f"{CONFIDENCE:.0%}, numbers in quartiles"
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
        """How often each rule is right; 0 if no row has the items on its left."""
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
        """Bootstrap counts of blocks drawn with replacement, about as many rows in each as in the table."""
        count = len(self.blocks)
        size = max(2, round(count * rows / float(self.total[-1]))) if count > 1 else 1
        for weights in rng.multinomial(size, np.full(count, 1 / count), times):
            yield np.asarray(weights @ self.blocks)


def mine(
    pairs: Sequence[ColumnPair], here: Places, there: Places, rng: np.random.Generator
) -> tuple[Rules, Counts, Counts]:
    """What rules are made of, in blocks of the rows ``here`` of the original and ``there`` of the released table.

    Items are a column's categories, and the quarters of an ordered one. Sets of two and three are counted where they
    are frequent in one of the tables, or nearly.
    """
    codes, others, columns = _items(pairs, here, there)
    if not columns:
        none, alone = np.empty(0, dtype=np.int64), (Counts(np.array([[float(len(rows))]])) for rows in (here, there))
        return Rules(none, none), next(alone), next(alone)
    sides = [_RowItems.of(table, columns, rng) for table in (codes, others)]
    found = [side.frequent() for side in sides]
    two, three = (np.unique(np.vstack([each.of_length(size)[0] for each in found]), axis=0) for size in (2, 3))
    counts = [side.count(len(columns), two, three) for side in sides]
    return _rules(len(columns), two, three), Counts(counts[0]), Counts(counts[1])


def _rules(items: int, two: Places, three: Places) -> Rules:
    """All rules with one item on their right; counts stand in the order items, pairs, triples, all rows."""
    place = np.zeros((items, items), dtype=np.int64)
    place[two[:, 0], two[:, 1]] = place[two[:, 1], two[:, 0]] = pairs = items + np.arange(len(two))
    triples = items + len(two) + np.arange(len(three))
    i, j, k = three.T
    whole = [pairs, pairs, triples, triples, triples]
    left = [two[:, 0], two[:, 1], place[i, j], place[i, k], place[j, k]]
    return Rules(np.concatenate(whole), np.concatenate(left))


@dataclass(frozen=True, eq=False, repr=False)
class _RowItems:
    """The items of each row of one table, and which block a row is of."""

    transactions: Transactions
    blocks: Places

    @classmethod
    def of(cls, codes: Places, columns: Sequence[tuple[int, int]], rng: np.random.Generator) -> _RowItems:
        rows = [np.flatnonzero(codes[:, column] == code) for column, code in columns]
        items = np.repeat(np.arange(len(columns)), [len(each) for each in rows])
        transactions = Transactions.from_pairs(np.concatenate(rows), items, len(codes), len(columns), distinct=True)
        blocks = np.empty(len(codes), dtype=np.int64)
        for block, members in enumerate(np.array_split(rng.permutation(len(codes)), min(_BLOCKS, len(codes)))):
            blocks[members] = block
        return cls(transactions, blocks)

    def frequent(self) -> Itemsets:
        """Sets of at most three items that are frequent, or nearly."""
        return frequent_itemsets(self.transactions, least_count(_NEAR * SUPPORT, len(self.transactions)), longest=3)

    def count(self, width: int, two: Places, three: Places) -> Matrix:
        """Rows of each block that have each item, each pair, each triple, and all rows."""
        bitmaps = Bitmaps.of(self.transactions, np.arange(width), self.blocks)
        held = [
            partial_counts(bitmaps, sets)[:, :, -1] for sets in (np.arange(width)[:, None], two, three) if len(sets)
        ]
        return np.vstack([*held, bitmaps.sizes]).T.astype(np.float64)


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
    here, there, note = equivalence_classes(study, _TIMES * study.sizes.training, rng)
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
    yield "rules-preserved", Values(kept, _centred(kept, again[:, 0]), fresh[0], attempts=ours, note=note)
    if theirs:
        yield "rules-new", Values(new, _centred(new, again[:, 1]), fresh[1], attempts=theirs, note=note)
    else:
        yield "rules-new", NotRun("the released table has no rule at all")
    interval = distance_interval(moved, again[:, 2], 0.0, 1.0)
    yield "rule-confidence-difference", Values(moved, interval, fresh[2], attempts=ours, note=note)


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
    Number("rules-preserved", "Association rules, preserved", SHARE.more).means(
        f"The share of association rules of the original that hold in the release, too; 1 is best. {_ABOUT}"
    ),
    Number("rules-new", "Association rules, new", SHARE).means(
        f"The share of association rules of the release that do not hold in the original; 0 is best. {_ABOUT}"
    ),
    Number("rule-confidence-difference", "Association rules, difference of confidence").means(
        f"The mean absolute change of the confidence of association rules of the original; 0 is best. {_ABOUT}"
    ),
)


def _run_columns(study: Study) -> Iterator[Stated]:
    names = [pair.name for pair in study.pairs]
    rules = [rule for rule in read_rules(study.rules, study.rule_names) if set(names).issuperset(rule.columns)]
    if not rules:
        return
    units = {pair.name: unit_of(pair.field) if pair.field.kind is Kind.DATE else None for pair in study.pairs}
    before, after = (
        {name: Cells(column.values, column.absent, units[name]) for name, column in zip(names, columns, strict=True)}
        for columns in ([pair.original for pair in study.pairs], [pair.released for pair in study.pairs])
    )
    shares = []
    for cells, rows in ((before, len(study.original)), (after, len(study.released))):
        broken = np.zeros(rows, dtype=np.bool_)
        for rule in rules:
            broken |= broken_rows(rule, cells, period_of(rule, before))
        shares.append(1.0 - float(broken.mean()) if rows else 1.0)
    note = f"; counted for {len(rules)} {'rule' if len(rules) == 1 else 'rules'}"
    yield "column-rules-satisfied", Values(shares[1], baseline=shares[0], attempts=len(study.released), note=note)


COLUMN_RULES = Measure(
    "rules between columns", Family.UTILITY, "Patki, Wedge and Veeramachaneni 2016", _run_columns, uncompared={}
).finds(
    Number("column-rules-satisfied", "Rows that satisfy all rules between columns", SHARE.more).means(
        "The share of released rows that satisfy every rule between columns, such as admission before discharge. "
        "Baseline: the original rows"
    ),
)
