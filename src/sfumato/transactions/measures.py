"""Measures of transactions before and after: utility for mining, and what an attacker who knows some items learns.

Who knows some items of a transaction finds it, singles it out, and names a further item.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import SCORE, SHARE, Measure, NotRun, Number, Stated, Values, success
from sfumato.assess.attacks.membership import area, area_tries
from sfumato.assess.findings import Family, Tries, privacy_first
from sfumato.assess.report import Report
from sfumato.core.distributions.operators import TransactionOperator
from sfumato.core.errors import TooFew
from sfumato.core.facts import Fact
from sfumato.core.itemsets import Bitmaps, Transactions, are_within, least_count, partial_counts
from sfumato.core.itemsets.mining import Itemsets, frequent_itemsets, rules_of
from sfumato.transactions.estimate import estimate_itemsets, least_significant, merged
from sfumato.transactions.facts import RulesBlocked, RulesHidden, TransactionsRandomized

__all__ = [
    "MEASURES",
    "TransactionPair",
    "assess_transactions",
    "breach_level",
    "infer_origins",
]

Places = NDArray[np.int64]
Rule = tuple[tuple[int, ...], tuple[int, ...]]
_LONGEST = 3  # items of the sets that are compared
_CONFIDENCE = 0.5
_ENOUGH, _LOWEST = 100, 0.005  # sets of two items or more to compare, and the support below which none is looked for


@dataclass(frozen=True, eq=False, repr=False)
class TransactionPair:
    """Transactions that were sanitized and what became of them, by the same numbers of items; at the owner's."""

    original: Transactions
    released: Transactions
    unknown: Transactions | None  # entries of the released ones that are blocked
    sizes: Places | None  # true sizes of the released ones, where they show
    origin: Places  # original transaction of each released one
    persons: Places | None = None  # whom the original transactions are of
    outside: Transactions | None = None  # held out
    outside_persons: Places | None = None  # whom those are of
    at_random: Transactions | None = None  # the original changed at random to the same end
    secret: tuple[Rule, ...] = ()  # left and right side of each rule that was to be hidden

    def __repr__(self) -> str:
        return "TransactionPair(owner only)"


@dataclass(frozen=True)
class _Limits:
    support: float
    confidence: float


def assess_transactions(
    pair: TransactionPair, facts: Sequence[Fact], *, judged: bool = False, rng: np.random.Generator
) -> Report:
    """Report of what the released transactions still give and what they give away."""
    begin = perf_counter()
    limits = _limits(pair, facts)
    findings = [*TRANSACTIONS.findings(_mined(pair, facts, limits))]
    seconds = {"transactions": perf_counter() - begin}
    middle = perf_counter()
    attacked = chain(_learnt(pair, facts, rng), attack_transactions(pair, judged=judged, rng=rng))
    findings += TRANSACTION_ATTACKS.findings(attacked)
    seconds |= {"transaction attacks": perf_counter() - middle, "all": perf_counter() - begin}
    return Report(
        privacy_first(findings),
        (),
        len(pair.original),
        len(pair.released),
        seconds=seconds,
        notes=(
            *_smallest_support(pair, facts),
            f"Compared: itemsets of at most {_LONGEST} items with a support of at least {limits.support:.3g}.",
        ),
        rows_held_out=0 if pair.outside is None else len(pair.outside),
    )


def _law(facts: Sequence[Fact]) -> TransactionOperator | None:
    """How transactions were randomized; None if they were not."""
    return next((fact.as_operator() for fact in facts if isinstance(fact, TransactionsRandomized)), None)


def _smallest_support(pair: TransactionPair, facts: Sequence[Fact]) -> Iterator[str]:
    """From which support on randomized transactions tell of an item."""
    if (law := _law(facts)) is not None:
        if (least := least_significant(law, pair.original.sizes)) >= 1:
            yield "The noise hides every support in so few transactions; use more transactions, or less noise."
        else:
            yield f"Smallest significant support: about {least:.2g} for single items, more for larger itemsets."


def _limits(pair: TransactionPair, facts: Sequence[Fact]) -> _Limits:
    """Thresholds that rules were hidden by; else a support at which there is something to compare."""
    for fact in facts:
        if isinstance(fact, RulesHidden | RulesBlocked):
            return _Limits(fact.min_support, fact.min_confidence)
    limits, law = _Limits(0.5, _CONFIDENCE), _law(facts)
    # below the smallest significant support nothing can be compared
    lowest = _LOWEST if law is None else max(_LOWEST, least_significant(law, pair.original.sizes))
    while limits.support / 2 >= lowest and (_mine(pair.original, limits).lengths > 1).sum() < _ENOUGH:
        limits = _Limits(limits.support / 2, _CONFIDENCE)
    return limits


def _mined(pair: TransactionPair, facts: Sequence[Fact], limits: _Limits) -> Iterator[Stated]:
    yield from _hidden(pair, limits)
    before = _mine(pair.original, limits)
    secret = {tuple(sorted((*left, *right))) for left, right in pair.secret}
    if (law := _law(facts)) is not None:
        yield from _estimated(pair, law, before, limits)
    else:
        after = _mine(pair.released, limits)
        chance = None if pair.at_random is None else _mine(pair.at_random, limits)
        lost, new = _changed(before, after, secret)
        aside = (None, None) if chance is None else _changed(before, chance, secret)
        yield "itemsets-lost", Values(lost, baseline=aside[0], attempts=len(before))
        yield "itemsets-new", Values(new, baseline=aside[1], attempts=len(after))
        rules = [rules_of(each, limits.confidence).keys for each in (before, after)]
        yield "transaction-rules-lost", _lost_rules(rules[0], rules[1], len(pair.secret), chance, limits)
        yield (
            "transaction-rules-ghost",
            Values(_share(~are_within(rules[1], np.sort(rules[0]))), attempts=len(rules[1])),
        )
        yield "itemset-support-error", _support_error(pair, before)
        usual = None if pair.at_random is None else _apart(pair.original, pair.at_random) / len(pair.original.items)
        yield "entries-changed", Values(_entries_changed(pair), baseline=usual)


def _mine(transactions: Transactions, limits: _Limits) -> Itemsets:
    return frequent_itemsets(transactions, least_count(limits.support, len(transactions)), longest=_LONGEST)


def _changed(before: Itemsets, after: Itemsets, secret: set[tuple[int, ...]]) -> tuple[float, float]:
    """Shares of the sets that were lost, but for the secret ones, and of those that are new."""
    ours, theirs = set(before.as_tuples()), set(after.as_tuples())
    open_ = ours - secret
    return len(open_ - theirs) / max(len(open_), 1), len(theirs - ours) / max(len(theirs), 1)


def _share(flags: NDArray[np.bool_]) -> float:
    return float(flags.mean()) if len(flags) else 0.0


def _lost_rules(
    ours: NDArray[np.uint64], theirs: NDArray[np.uint64], hidden: int, chance: Itemsets | None, limits: _Limits
) -> Values:
    """Share of the rules that were lost beyond those that were to be hidden."""
    if not len(ours):
        return Values(0.0, attempts=0)
    open_ = max(len(ours) - hidden, 1)

    def lost(left: NDArray[np.uint64]) -> float:
        return max(0, int((~are_within(ours, np.sort(left))).sum()) - hidden) / open_

    aside = None if chance is None else lost(rules_of(chance, limits.confidence).keys)
    return Values(lost(theirs), baseline=aside, attempts=len(ours))


def _support_error(pair: TransactionPair, before: Itemsets) -> Values:
    error, count = 0.0, len(pair.original)
    bitmaps = Bitmaps.of(pair.released, np.unique(before.items).astype(np.int64))
    for length in np.unique(before.lengths).tolist():
        sets, places = before.of_length(length)
        error += float(np.abs(partial_counts(bitmaps, sets)[:, 0, -1] - before.counts[places]).sum())
    return Values(error / max(len(before), 1) / count, attempts=len(before))


def _estimated(pair: TransactionPair, law: TransactionOperator, before: Itemsets, limits: _Limits) -> Iterator[Stated]:
    try:
        found = estimate_itemsets(law, pair.released, pair.sizes, limits.support, longest=_LONGEST)
    except TooFew:
        raise NotRun("the transactions are too few for their noise to estimate a support") from None
    true = dict(zip(before.as_tuples(), before.counts / len(pair.original), strict=True))
    ours, theirs = set(true), set(found.sets)
    yield "itemsets-lost", Values(len(ours - theirs) / max(len(ours), 1), attempts=len(ours))
    yield "itemsets-new", Values(len(theirs - ours) / max(len(theirs), 1), attempts=len(theirs))
    for name in ("transaction-rules-lost", "transaction-rules-ghost"):
        yield name, NotRun("rules are estimated from supports, which are compared", applies=False)
    errors = [
        abs(true[some] - min(max(support, 0.0), 1.0))
        for some, support in zip(found.sets, found.support, strict=True)
        if some in true
    ]
    if errors:
        yield "itemset-support-error", Values(float(np.mean(errors)), attempts=len(errors))
    else:
        yield "itemset-support-error", NotRun("no frequent set was found again")
    yield "entries-changed", Values(_entries_changed(pair))


def _entries_changed(pair: TransactionPair) -> float:
    """Entries that are other than they were, unknown ones too, for each entry that there was; at most 1."""
    original = pair.original.take(pair.origin)
    unknown = 0 if pair.unknown is None else int((~are_within(pair.unknown.keys(), original.keys())).sum())
    return min(1.0, (_apart(original, pair.released) + unknown) / len(original.items))


def _apart(one: Transactions, other: Transactions) -> int:
    """Entries that stand in one of both alone."""
    keys = one.keys(), other.keys()
    return int((~are_within(*keys)).sum() + (~are_within(keys[1], keys[0])).sum())


def _hidden(pair: TransactionPair, limits: _Limits) -> Iterator[Stated]:
    """How many of the secret rules still hold for sure, and how far below a threshold the nearest of them is."""
    if not pair.secret:
        lacking = NotRun("no rule was to be hidden", applies=False)
        yield from (("hidden-rules-left", lacking), ("hidden-rule-margin", lacking))
        return
    margins = _margins(pair.released, pair.unknown, pair.secret, limits)
    yield "hidden-rules-left", Values(_share(margins <= 0), baseline=1.0, attempts=len(margins))
    aside = pair.at_random
    chance = None if aside is None else float(_margins(aside, None, pair.secret, limits).min())
    yield "hidden-rule-margin", Values(float(margins.min()), baseline=chance, attempts=len(margins))


def _margins(
    transactions: Transactions, unknown: Transactions | None, secret: Sequence[Rule], limits: _Limits
) -> NDArray[np.float64]:
    """How far the support or the confidence of each rule is below its threshold, as a share of it; 0 if it holds."""
    items = np.unique([item for rule in secret for side in rule for item in side])
    sure = Bitmaps.of(transactions, items)
    possible = sure if unknown is None else Bitmaps.of(merged(transactions, unknown), items)

    def count(bitmaps: Bitmaps, some: tuple[int, ...]) -> int:
        return int(partial_counts(bitmaps, [sorted(some)])[0, 0, -1]) if some else len(transactions)

    margins = []
    for left, right in secret:
        whole = count(sure, (*left, *right))
        below = [1 - whole / len(transactions) / limits.support]
        if left:
            below.append(1 - whole / max(count(possible, left), 1) / limits.confidence)
        margins.append(max(0.0, *below))
    return np.array(margins)


def _learnt(pair: TransactionPair, facts: Sequence[Fact], rng: np.random.Generator) -> Iterator[Stated]:
    """What randomized transactions tell of an item that they show, and what a question mark tells."""
    if (law := _law(facts)) is None:
        yield "transaction-breach", NotRun("the transactions were not randomized", applies=False)
    else:
        level, prior, sets = breach_level(law, pair.original, _mine(pair.original, _limits(pair, facts)))
        if level:
            yield "transaction-breach", Values(level, baseline=prior, attempts=sets)
        else:
            yield "transaction-breach", NotRun("every frequent item is in more than half of the transactions")
    if pair.unknown is None:
        yield "blocked-entry-inference", NotRun("no entry was blocked", applies=False)
    else:
        yield (
            "blocked-entry-inference",
            infer_origins(pair.original.take(pair.origin), pair.released, pair.unknown, rng),
        )


def breach_level(law: TransactionOperator, original: Transactions, found: Itemsets) -> tuple[float, float, int]:
    """How sure it can be made that an item is in a transaction that shows a frequent set with it [EGSA02, sec. 2.2].

    The largest, over the sets and their items, of the chance that the item was there given that the randomized
    transaction holds the set, for items that at most half of the transactions hold; how often that item is there at
    all; and how many sets were looked at. Computed from the true
    transactions and the operator, without drawing.
    """
    kinds, classes = np.unique(original.sizes, return_inverse=True)
    bitmaps = Bitmaps.of(original, np.unique(found.items).astype(np.int64), classes.astype(np.int64))
    highest, prior = 0.0, 0.0
    for length in np.unique(found.lengths).tolist():
        sets, _ = found.of_length(length)
        shown = np.stack([law.transition(length, int(size))[length] for size in kinds])
        parts = partial_counts(bitmaps, sets).astype(np.float64)
        whole = np.einsum("scl,cl->s", parts, shown)
        for place in range(length):
            fewer = np.delete(sets, place, axis=1)
            rest = (
                partial_counts(bitmaps, fewer)
                if length > 1
                else np.tile(bitmaps.sizes[None, :, None], (len(sets), 1, 1))
            )
            inside, outside = np.zeros_like(parts), np.zeros_like(parts)
            outside[:, :, 0] = parts[:, :, 0]
            for held in range(length):
                inside[:, :, held + 1] = rest[:, :, held] - outside[:, :, held]
                outside[:, :, held + 1] = parts[:, :, held + 1] - inside[:, :, held + 1]
            posterior = np.einsum("scl,cl->s", inside, shown) / np.maximum(whole, 1e-300)
            posterior[original.counts[sets[:, place]] > len(original) / 2] = 0.0  # as good as known before
            best = int(posterior.argmax())
            if posterior[best] > highest:
                highest = float(min(1.0, posterior[best]))
                prior = float(original.counts[sets[best, place]] / len(original))
    return highest, prior, len(found)


KNOWN = 3
"""Items of a transaction that an attacker knows who wants to find it."""

_ATTEMPTS, _JUDGED = 400, 1_500
_WORK = 100_000_000  # transactions times attempts that are looked at
_VOTES = 2_000
_FALSE_ALARMS = 0.01
_FEWEST = 40


@dataclass(frozen=True, eq=False, repr=False)
class _Index:
    """The released transactions, and which of them hold each item."""

    released: Transactions
    occurrences: NDArray[np.int32]
    first: Places

    @classmethod
    def of(cls, released: Transactions) -> _Index:
        order = np.argsort(released.items, kind="stable")
        first = np.searchsorted(released.items[order], np.arange(released.width + 1))
        return cls(released, released.rows[order].astype(np.int32), first)

    def shared(self, items: NDArray[np.int32]) -> Places:
        """How many of the items each released transaction holds."""
        lists = [self.occurrences[self.first[item] : self.first[item + 1]] for item in items.tolist()]
        return np.bincount(np.concatenate([*lists, np.empty(0, dtype=np.int32)]), minlength=len(self.released))


def _targets(
    transactions: Transactions, persons: Places | None, least: int, most: int, rng: np.random.Generator
) -> Places:
    """Transactions to attack with a minimum number of items, at most one of a person."""
    order = rng.permutation(np.flatnonzero(transactions.sizes >= least))
    if persons is not None:
        order = order[np.sort(np.unique(persons[order], return_index=True)[1])]
    return order[:most]


def attack_transactions(pair: TransactionPair, *, judged: bool, rng: np.random.Generator) -> Iterator[Stated]:
    """Findings of all attacks; each on transactions of the original and, as a control, on those held out."""
    original, released, outside = pair.original, pair.released, pair.outside
    most = int(min(_JUDGED if judged else _ATTEMPTS, max(_FEWEST, _WORK // max(len(released), 1))))
    index = _Index.of(released)
    home = np.empty(len(original), dtype=np.int64)
    home[pair.origin] = np.arange(len(released))
    inside = _targets(original, pair.persons, KNOWN + 1, most, rng)
    lists = [original.transaction(place) for place in inside.tolist()]
    held: list[NDArray[np.int32]] | None = None
    if outside is not None:
        chosen = _targets(outside, pair.outside_persons, KNOWN + 1, most, rng)
        held = [outside.transaction(place) for place in chosen.tolist()]
    if not lists:
        raise NotRun(f"no transaction has more than {KNOWN} items")
    found, single = _find(index, lists, home[inside], rng)
    note = f"; tried on {len(lists)} transactions" + ("" if pair.persons is None else ", one of each person")
    yield "own-row-linkage-transactions", success(found, guess=1 / len(released), control=None, note=note)
    control = _find(index, held, None, rng)[1] if held else None
    yield "singling-out-transactions", success(single, guess=0.0, control=control, note=note)
    for known in range(1, KNOWN + 1):
        right, usual = _name_further(index, lists, known, rng)
        aside = _name_further(index, held, known, rng)[0] if held else None
        words = f"{known} item{'s' if known > 1 else ''}"
        yield f"attribute-inference-items/{words}", success(right, guess=usual, control=aside, note=note)
    yield from _membership(index, lists, held, rng)


def _find(
    index: _Index, lists: list[NDArray[np.int32]], home: Places | None, rng: np.random.Generator
) -> tuple[Tries, Tries]:
    """How often one's own transaction is the best match, ties shared; how often a match shows half of the rest."""
    own = single = 0.0
    for place, transaction in enumerate(lists):
        known = rng.choice(transaction, KNOWN, replace=False)
        shared = index.shared(known)
        best = np.flatnonzero(shared == shared.max())
        if home is not None and shared[home[place]] == shared.max():
            own += 1 / len(best)
        if shared.max() == KNOWN and len(best) == 1:
            rest = np.setdiff1d(transaction, known)
            single += np.isin(rest, index.released.transaction(int(best[0]))).mean() >= 0.5
    return Tries(own, len(lists)), Tries(float(single), len(lists))


def _name_further(
    index: _Index, lists: list[NDArray[np.int32]], known: int, rng: np.random.Generator
) -> tuple[Tries, Tries]:
    """How often a further item is named by the best matching transactions, and by the most frequent item."""
    right = usual = 0
    popular = np.argsort(-index.released.counts, kind="stable")[: KNOWN + 1]
    for transaction in lists:
        mine = rng.choice(transaction, known, replace=False)
        shared = index.shared(mine)
        best = np.flatnonzero(shared == shared.max())
        best = best if len(best) <= _VOTES else rng.choice(best, _VOTES, replace=False)
        votes = index.released.take(best).counts
        votes[mine] = -1
        right += int(votes.argmax()) in transaction
        usual += int(next(item for item in popular if item not in mine)) in transaction
    return Tries(right, len(lists)), Tries(usual, len(lists))


def _membership(
    index: _Index, lists: list[NDArray[np.int32]], held: list[NDArray[np.int32]] | None, rng: np.random.Generator
) -> Iterator[Stated]:
    """Areas of members against others, by the similarity of the most similar released transaction."""
    names = ("membership-auc-transactions", "membership-tpr-transactions")
    if not held or len(held) < _FEWEST:
        lacking = NotRun(
            "no transactions were held out (name some with --holdout)" if not held else "too few were held out"
        )
        yield from ((name, lacking) for name in names)
        return
    count = min(len(lists), len(held))
    members, others = (np.array([_nearest(index, each) for each in side[:count]]) for side in (lists, held))
    others = rng.permutation(others)
    half, rest = others[: count // 2], others[count // 2 :]
    tries, aside = area_tries(members, others), area_tries(half, rest)
    yield (
        names[0],
        Values(
            area(members, others), tries.interval, 0.5, area(half, rest), count,
            f"; counted on {count} transactions of each kind", control_interval=aside.interval, inside=tries,
        ),
    )  # fmt: skip
    line = np.sort(half)[::-1][max(1, int(_FALSE_ALARMS * (len(half) + 1))) - 1]
    caught, wrong = Tries(int((members > line).sum()), count), Tries(int((rest > line).sum()), len(rest))
    yield names[1], success(caught, guess=_FALSE_ALARMS, control=wrong)


def _nearest(index: _Index, transaction: NDArray[np.int32]) -> float:
    """Jaccard similarity of the most similar released transaction."""
    shared = index.shared(transaction)
    return float((shared / np.maximum(len(transaction) + index.released.sizes - shared, 1)).max())


def infer_origins(
    original: Transactions, released: Transactions, unknown: Transactions, rng: np.random.Generator
) -> Values | NotRun:
    """Area of unknown entries that were items against those that were none, by a naive Bayes model of what is known."""
    keys = unknown.keys()
    if len(keys) > _VOTES:
        keys = np.sort(rng.choice(keys, _VOTES, replace=False))
    width = np.int64(original.width)
    was = are_within(keys, original.keys())
    if was.all() or not was.any():
        return NotRun("all question marks stand for the same")
    rows, items = np.divmod(keys, width)
    scores, totals = np.empty(len(keys)), released.counts
    blocked = unknown.keys()
    for item in np.unique(items).tolist():
        hold = np.bincount(released.rows[released.items == item], minlength=len(released)) > 0
        doubt = np.zeros(len(released), dtype=np.bool_)
        doubt[blocked[blocked % width == item] // width] = True
        sides = [released.having((each & ~doubt)[released.rows]).counts + 1.0 for each in (hold, ~hold)]
        odds = np.log(sides[0] / (hold & ~doubt).sum().clip(1)) - np.log(sides[1] / (~hold & ~doubt).sum().clip(1))
        odds[totals == 0] = 0.0
        odds[item] = 0.0
        mine = np.flatnonzero(items == item)
        scores[mine] = [odds[released.transaction(row)].sum() for row in rows[mine].tolist()]
    if area(scores[was], scores[~was]) < 0.5:  # who knows how entries were chosen reads it the right way
        scores = -scores
    score, tries = area(scores[was], scores[~was]), area_tries(scores[was], scores[~was])
    return Values(score, tries.interval, 0.5, attempts=len(keys), inside=tries)


TRANSACTIONS = Measure("transactions", Family.UTILITY, "JS07, sec. 2.2.1, 2.5, 2.9", lambda _: ()).finds(
    Number("itemsets-lost", "Frequent itemsets, lost", SHARE).means(
        "The share of frequent itemsets, except those to be hidden, that are not frequent in the release or estimated "
        "not to be; 0 is best. Baseline: a random change of entries to the same end"
    ),
    Number("itemsets-new", "Frequent itemsets, new", SHARE).means(
        "The share of frequent itemsets of the release, or of those estimated to be frequent, that were not frequent; "
        "0 is best. Baseline: a random change of entries"
    ),
    Number("transaction-rules-lost", "Association rules of transactions, lost", SHARE).means(
        "The share of rules with one item on the right that do not hold in the release, beyond those to be hidden; 0 "
        "is best. Baseline: a random change of entries"
    ),
    Number("transaction-rules-ghost", "Association rules of transactions, ghost", SHARE).means(
        "The share of rules of the release that did not hold before; 0 is best"
    ),
    Number("itemset-support-error", "Support error", SHARE).means(
        "The mean error of the support of frequent itemsets, as mined or estimated from the release; 0 is best"
    ),
    Number("entries-changed", "Entries of transactions changed", SHARE).means(
        "Entries removed, added or blocked, per original entry. Baseline: a random change to the same end"
    ),
    Number("hidden-rules-left", "Hidden rules that still hold", SHARE, family=Family.PRIVACY).means(
        "The share of rules to be hidden that certainly still hold in the release; it must be 0"
    ),
    Number("hidden-rule-margin", "Margin of hidden rules below the threshold", SHARE.more.owners,
           family=Family.PRIVACY).means(
        "How far the hidden rule nearest to holding is below its threshold of support or confidence, as a share of "
        "it; just below, a slightly lower threshold reveals it. Baseline: a random change"
    ),
)  # fmt: skip

_KNOWS = "knows three items of a transaction"
TRANSACTION_ATTACKS = Measure(
    "transaction-attacks", Family.ATTACK, "EGSA02; Narayanan and Shmatikov 2008", lambda _: (), figure=""
).finds(
    Number("own-row-linkage-transactions", "Record linkage of transactions, three items known", SHARE).means(
        f"Record linkage: how often an attacker who {_KNOWS} picks its released transaction, the one that contains "
        "most of them. Baseline: guessing one transaction"
    ),
    Number("singling-out-transactions", "Singling out of transactions, three items known", SHARE).means(
        f"Singling out: how often exactly one released transaction contains what an attacker who {_KNOWS} knows, and "
        "shows at least half of the other items. Control: held-out transactions"
    ),
    Number("attribute-inference-items/", "Attribute inference of a further item", SHARE).means(
        "Attribute inference: how often an attacker who knows {column} of a transaction names a further item, the one "
        "that most released transactions with these contain. Baseline: the most frequent item; control: held-out "
        "transactions"
    ),
    Number("membership-auc-transactions", "Membership inference, nearest transaction", SCORE).means(
        "Membership inference: AUC of an attacker who separates used from held-out transactions by the most similar "
        "released one. 0.5 is guessing; the control separates held-out transactions"
    ),
    Number("membership-tpr-transactions", "Transaction membership, TPR at 1\u00a0% FPR", SHARE).means(
        "Membership inference: the share of transactions identified as used, by the most similar released one, at a "
        "false positive rate of 1 %. 1 % is guessing; the control is the share of held-out transactions named"
    ),
    Number("transaction-breach", "Posterior probability of an item, worst case", SCORE).means(
        "The posterior probability that an item was in a transaction whose randomized version contains a frequent "
        "itemset with it, for an attacker who knows all supports: the largest over items that at most half of the "
        "transactions contain. Baseline: the prior"
    ),
    Number("blocked-entry-inference", "Inference of blocked entries", SCORE).means(
        "Inference of blocked entries: AUC of an attacker who separates blocked items from blocked non-items by the "
        "rest of the transaction; 0.5 is guessing"
    ),
)  # fmt: skip

MEASURES = (TRANSACTIONS, TRANSACTION_ATTACKS)
