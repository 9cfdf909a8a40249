"""Baskets before and after, measured: what mining them still gives, and what somebody who knows some items learns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import SCORE, SHARE, Measure, NotRun, Number, Stated, Values
from sfumato.assess.attacks.known_items import attack_baskets, origins_told
from sfumato.assess.findings import Family
from sfumato.assess.report import Report
from sfumato.core.errors import TooFew
from sfumato.core.facts import BasketsRandomized, Fact, RulesBlocked, RulesHidden
from sfumato.core.itemsets.baskets import Baskets, Bitmaps, are_within, partial_counts
from sfumato.core.itemsets.estimate import estimate_itemsets, least_told, merged
from sfumato.core.itemsets.mining import Itemsets, frequent_itemsets, least_count, rules_of
from sfumato.core.laws.basket_operators import BasketOperator

__all__ = ["BASKETS", "BASKET_ATTACKS", "BasketPair", "assess_baskets", "breach_level"]

Places = NDArray[np.int64]
Rule = tuple[tuple[int, ...], tuple[int, ...]]
_LONGEST = 3  # items of the sets that are compared
_CONFIDENCE = 0.5
_ENOUGH, _LOWEST = 100, 0.005  # sets of two items or more to compare, and the support below which none is looked for


@dataclass(frozen=True, eq=False, repr=False)
class BasketPair:
    """Baskets that were sanitized and what became of them, by the same numbers of items; at the owner's.

    Parameters
    ----------
    original, released : Baskets
    unknown : Baskets, optional
        Entries of the released ones that are blocked.
    sizes : array, optional
        True sizes of the released ones, where they show.
    origin : array
        Original basket of each released one.
    persons, outside_persons : array, optional
        Whom the original baskets and those held out are of.
    outside : Baskets, optional
        Held out.
    at_random : Baskets, optional
        The original changed at random to the same end.
    secret : tuple
        Left and right side of each rule that was to be hidden.
    """

    original: Baskets
    released: Baskets
    unknown: Baskets | None
    sizes: Places | None
    origin: Places
    persons: Places | None = None
    outside: Baskets | None = None
    outside_persons: Places | None = None
    at_random: Baskets | None = None
    secret: tuple[Rule, ...] = ()

    def __repr__(self) -> str:
        return "BasketPair(owner only)"


@dataclass(frozen=True)
class _Limits:
    support: float
    confidence: float


def assess_baskets(
    pair: BasketPair, facts: Sequence[Fact], *, judged: bool = False, rng: np.random.Generator
) -> Report:
    """Report of what the released baskets still give and what they give away."""
    begin = perf_counter()
    limits = _limits(pair, facts)
    findings = [*BASKETS.findings(_mined(pair, facts, limits))]
    seconds = {"baskets": perf_counter() - begin}
    middle = perf_counter()
    findings += BASKET_ATTACKS.findings(_attacked(pair, facts, judged=judged, rng=rng))
    seconds |= {"basket attacks": perf_counter() - middle, "all": perf_counter() - begin}
    order = list(Family)
    held = 0 if pair.outside is None else len(pair.outside)
    return Report(
        tuple(sorted(findings, key=lambda finding: order.index(finding.family))),
        (),
        len(pair.original),
        len(pair.released),
        seconds=seconds,
        notes=(
            *_told(pair, facts),
            f"Sets of at most {_LONGEST} items that {limits.support:.3g} of the baskets hold were compared.",
        ),
        rows_held_out=held,
    )


def _told(pair: BasketPair, facts: Sequence[Fact]) -> Iterator[str]:
    """From which support on randomized baskets tell of an item."""
    for fact in facts:
        if isinstance(fact, BasketsRandomized):
            least = least_told(BasketOperator.of(fact), pair.original.sizes)
            if least >= 1:
                yield "So few baskets, so randomized, tell no support; bring more, or randomize less."
            else:
                yield f"Supports of single items can be told from about {least:.2g} on, those of larger sets from more."


def _limits(pair: BasketPair, facts: Sequence[Fact]) -> _Limits:
    """Thresholds that rules were hidden by; else a support at which there is something to compare."""
    for fact in facts:
        if isinstance(fact, RulesHidden | RulesBlocked):
            return _Limits(fact.min_support, fact.min_confidence)
    support, lowest = 0.5, _LOWEST
    for fact in facts:
        if isinstance(fact, BasketsRandomized):  # below, nothing can be estimated and so nothing compared
            lowest = max(lowest, least_told(BasketOperator.of(fact), pair.original.sizes))
    while support / 2 >= lowest:
        found = frequent_itemsets(pair.original, least_count(support, len(pair.original)), longest=_LONGEST)
        if (found.lengths > 1).sum() >= _ENOUGH:
            break
        support /= 2
    return _Limits(support, _CONFIDENCE)


def _mined(pair: BasketPair, facts: Sequence[Fact], limits: _Limits) -> Iterator[Stated]:
    yield from _hidden(pair, limits)
    before = _mine(pair.original, limits)
    secret = {tuple(sorted((*left, *right))) for left, right in pair.secret}
    randomized = next((fact for fact in facts if isinstance(fact, BasketsRandomized)), None)
    if randomized is not None:
        yield from _estimated(pair, BasketOperator.of(randomized), before, limits)
    else:
        after = _mine(pair.released, limits)
        chance = None if pair.at_random is None else _mine(pair.at_random, limits)
        lost, new = _changed(before, after, secret)
        aside = (None, None) if chance is None else _changed(before, chance, secret)
        yield "itemsets-lost", Values(lost, baseline=aside[0], attempts=len(before))
        yield "itemsets-new", Values(new, baseline=aside[1], attempts=len(after))
        rules = [rules_of(each, limits.confidence).keys for each in (before, after)]
        hidden = len(pair.secret)
        yield "basket-rules-lost", _lost_rules(rules[0], rules[1], hidden, chance, limits)
        yield "basket-rules-ghost", Values(_share(~are_within(rules[1], np.sort(rules[0]))), attempts=len(rules[1]))
        yield "itemset-support-error", _support_error(pair, before)
        changed = _entries_changed(pair)
        aside_changed = None
        if pair.at_random is not None:
            aside_changed = _apart(pair.original, pair.at_random) / len(pair.original.items)
        yield "entries-changed", Values(changed, baseline=aside_changed)


def _mine(baskets: Baskets, limits: _Limits) -> Itemsets:
    return frequent_itemsets(baskets, least_count(limits.support, len(baskets)), longest=_LONGEST)


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

    def lost(kept: NDArray[np.uint64]) -> float:
        return max(0, int((~are_within(ours, np.sort(kept))).sum()) - hidden) / open_

    aside = None if chance is None else lost(rules_of(chance, limits.confidence).keys)
    return Values(lost(theirs), baseline=aside, attempts=len(ours))


def _support_error(pair: BasketPair, before: Itemsets) -> Values:
    error, count = 0.0, len(pair.original)
    bitmaps = Bitmaps.of(pair.released, np.unique(before.items).astype(np.int64))
    for length in np.unique(before.lengths).tolist():
        sets, places = before.of_length(length)
        error += float(np.abs(partial_counts(bitmaps, sets)[:, 0, -1] - before.counts[places]).sum())
    return Values(error / max(len(before), 1) / count, attempts=len(before))


def _estimated(pair: BasketPair, law: BasketOperator, before: Itemsets, limits: _Limits) -> Iterator[Stated]:
    try:
        found = estimate_itemsets(law, pair.released, pair.sizes, limits.support, longest=_LONGEST)
    except TooFew:
        raise NotRun("the baskets are too few for their noise to estimate a support") from None
    true = dict(zip(before.as_tuples(), before.counts / len(pair.original), strict=True))
    ours, theirs = set(true), set(found.sets)
    yield "itemsets-lost", Values(len(ours - theirs) / max(len(ours), 1), attempts=len(ours))
    yield "itemsets-new", Values(len(theirs - ours) / max(len(theirs), 1), attempts=len(theirs))
    for name in ("basket-rules-lost", "basket-rules-ghost"):
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


def _entries_changed(pair: BasketPair) -> float:
    """Entries that are other than they were, unknown ones too, for each entry that there was; at most 1."""
    original = pair.original.take(pair.origin)
    unknown = 0 if pair.unknown is None else int((~are_within(pair.unknown.keys(), original.keys())).sum())
    return min(1.0, (_apart(original, pair.released) + unknown) / len(original.items))


def _apart(one: Baskets, other: Baskets) -> int:
    """Entries that stand in one of both alone."""
    keys = one.keys(), other.keys()
    return int((~are_within(*keys)).sum() + (~are_within(keys[1], keys[0])).sum())


def _hidden(pair: BasketPair, limits: _Limits) -> Iterator[Stated]:
    """How many of the secret rules still hold for sure, and how far below a threshold the nearest of them is."""
    if not pair.secret:
        lacking = NotRun("no rule was to be hidden", applies=False)
        yield from (("hidden-rules-left", lacking), ("hidden-rule-margin", lacking))
        return
    margins = _margins(pair.released, pair.unknown, pair.secret, limits)
    yield "hidden-rules-left", Values(_share(margins <= 0), baseline=1.0, attempts=len(margins))
    chance = None
    if pair.at_random is not None:
        chance = float(_margins(pair.at_random, None, pair.secret, limits).min())
    yield "hidden-rule-margin", Values(float(margins.min()), baseline=chance, attempts=len(margins))


def _margins(baskets: Baskets, unknown: Baskets | None, secret: Sequence[Rule], limits: _Limits) -> NDArray[np.float64]:
    """How far the support or the confidence of each rule is below its threshold, as a share of it; 0 where it holds."""
    possible, bitmaps = baskets if unknown is None else merged(baskets, unknown), {}
    items = np.unique([item for rule in secret for side in rule for item in side])
    for name, each in (("sure", baskets), ("possible", possible)):
        bitmaps[name] = Bitmaps.of(each, items)

    def count(name: str, some: tuple[int, ...]) -> int:
        return int(partial_counts(bitmaps[name], [sorted(some)])[0, 0, -1]) if some else len(baskets)

    margins = []
    for left, right in secret:
        whole = count("sure", (*left, *right))
        below = [1 - whole / len(baskets) / limits.support]
        if left:
            below.append(1 - whole / max(count("possible", left), 1) / limits.confidence)
        margins.append(max(0.0, *below))
    return np.array(margins)


def _attacked(pair: BasketPair, facts: Sequence[Fact], *, judged: bool, rng: np.random.Generator) -> Iterator[Stated]:
    yield from _learnt(pair, facts, rng)
    yield from attack_baskets(pair.original, pair.released, pair, judged=judged, rng=rng)


def _learnt(pair: BasketPair, facts: Sequence[Fact], rng: np.random.Generator) -> Iterator[Stated]:
    """What randomized baskets tell of an item that they show, and what a question mark tells."""
    randomized = next((fact for fact in facts if isinstance(fact, BasketsRandomized)), None)
    if randomized is None:
        yield "basket-breach", NotRun("the baskets were not randomized", applies=False)
    else:
        limits = _limits(pair, facts)
        level, prior, sets = breach_level(BasketOperator.of(randomized), pair.original, _mine(pair.original, limits))
        if level:
            yield "basket-breach", Values(level, baseline=prior, attempts=sets)
        else:
            yield "basket-breach", NotRun("every frequent item is in more than half of the baskets")
    if pair.unknown is None:
        yield "blocked-origin", NotRun("no entry was blocked", applies=False)
    else:
        yield "blocked-origin", origins_told(pair.original.take(pair.origin), pair.released, pair.unknown, rng)


def breach_level(law: BasketOperator, original: Baskets, found: Itemsets) -> tuple[float, float, int]:
    """How sure it can be made that an item is in a basket that shows a frequent set with it [EGSA02, sec. 2.2].

    The largest, over the sets and their items, of the chance that the item was there given that the randomized basket
    holds the set, for items that at most half of the baskets hold; how often that item is there at all; and how many
    sets were looked at. Reckoned from the true
    baskets and the operator, without drawing.
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


BASKETS = Measure("baskets", Family.UTILITY, "JS07, sec. 2.2.1, 2.5, 2.9", lambda _: ()).finds(
    Number("itemsets-lost", "Frequent sets that are lost", SHARE).means(
        "The share of the frequent sets of items, but for those that were to be hidden, that are not frequent in the "
        "released baskets, or are estimated not to be, which should be none; beside a change of entries at random to "
        "the same end (baseline)"
    ),
    Number("itemsets-new", "Frequent sets that are new", SHARE).means(
        "The share of the frequent sets of the released baskets, or of those estimated to be, that were not frequent, "
        "which should be none; beside a change of entries at random (baseline)"
    ),
    Number("basket-rules-lost", "Rules of baskets that are lost", SHARE).means(
        "The share of the rules with one item on their right that do not hold in the released baskets, beyond as many "
        "as were to be hidden, which should be none; beside a change of entries at random (baseline)"
    ),
    Number("basket-rules-ghost", "Ghost rules of baskets", SHARE).means(
        "The share of the rules of the released baskets that did not hold before, which should be none"
    ),
    Number("itemset-support-error", "Error of supports", SHARE).means(
        "How far the support of a frequent set of items, as mined or estimated from the released baskets, is from the "
        "true one, on average; 0 is best"
    ),
    Number("entries-changed", "Entries of baskets that were changed", SHARE).means(
        "Entries that were taken out, put in or made unknown, for each entry that there was; beside a change at random "
        "to the same end (baseline)"
    ),
    Number("hidden-rules-left", "Rules to hide that still hold", SHARE, family=Family.PRIVACY).means(
        "The share of the rules that were to be hidden and that surely hold in the released baskets, which must be none"
    ),
    Number("hidden-rule-margin", "Distance of hidden rules below the threshold", SHARE.more.owners,
           family=Family.PRIVACY).means(
        "How far the hidden rule that is nearest to holding is below its threshold of support or confidence, as a "
        "share of it: just below, somebody who lowers the threshold a little finds it; beside a change at random "
        "(baseline)"
    ),
)  # fmt: skip

_KNOWS = "knows three items of a basket"
BASKET_ATTACKS = Measure(
    "basket-attacks", Family.ATTACK, "EGSA02; Narayanan and Shmatikov 2008", lambda _: ()
).finds(
    Number("own-row-linkage-baskets", "Own basket found by some of its items", SHARE).means(
        f"How often somebody who {_KNOWS} finds that basket among the released ones, as the one that holds most of "
        "them; beside one guess among all baskets (baseline)"
    ),
    Number("singling-out-baskets", "Baskets singled out by some of their items", SHARE).means(
        f"How often exactly one released basket holds what somebody who {_KNOWS} knows, and it shows at least half of "
        "the person's other items; the control are baskets that were held out"
    ),
    Number("attribute-inference-items/", "A further item told by", SHARE).means(
        "How often somebody who knows {column} of a basket rightly names a further one, as the one that most of the "
        "released baskets with these hold; beside naming the most frequent item (baseline), and the control are "
        "baskets that were held out"
    ),
    Number("membership-baskets", "Membership told by the nearest basket", SCORE).means(
        "Shown a basket of the original and one that was held out, how often an attacker tells which is which by the "
        "more similar released basket; one half is a coin, and the control plays the game with held-out baskets only"
    ),
    Number("membership-at-1-percent-baskets", "Membership of baskets told at 1\u00a0% false alarms", SHARE).means(
        "The share of baskets whose owners an attacker rightly accuses of being in, by the most similar released "
        "basket, if of those who were not only 1 % may be accused; 1 % is guessing, and the control is how many "
        "held-out ones were accused"
    ),
    Number("basket-breach", "Certainty of an item that a randomized basket shows", SCORE).means(
        "How sure somebody who knows all supports can be that an item was in a basket which, randomized, shows a "
        "frequent set with that item: the largest such chance of an item that at most half of "
        "the baskets hold; beside how often the item is in a basket at all (baseline)"
    ),
    Number("blocked-origin", "What a question mark stood for", SCORE).means(
        "Shown an unknown entry that was an item and one that was none, how often an attacker tells which is which by "
        "the other items of the two baskets; one half is a coin"
    ),
)  # fmt: skip
