"""What follows from baskets that were randomized, and from rules hidden or blocked in them [JS07, ch. 2, 3]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.core.facts import BasketPersons, BasketsRandomized, BasketsReleased, Fact, RulesBlocked, RulesHidden
from sfumato.core.laws.basket_operators import MOST_SIZE, BasketOperator
from sfumato.privacy.statements import SECRET_RANDOMNESS, Claim, ClaimsOf, Refused, Statements, at_most, counted

__all__ = ["CLAIMS", "baskets_agree", "is_possible_basket_fact"]

_LARGEST = 1_000.0
"""Amplification above which a bound says nothing."""

_TOLERANCE = 1e-9
_EGS = "[Evfimievski, Gehrke, Srikant 2003]"


def _operator_agrees(fact: BasketsRandomized) -> bool:
    """Whether there is such an operator, and its amplification is the one that is told."""
    if fact.width < 1 or not 0 <= fact.longest <= min(MOST_SIZE, fact.width):
        return False
    try:
        law = BasketOperator.of(fact)
    except (OptionError, PrivacyRefusal):
        return False
    if fact.chosen and fact.operator not in ("flip", "select-a-size"):
        return False
    if law.by_size != (fact.longest > 0) or (fact.operator == "uniform" and 2 * fact.longest > fact.width):
        return False
    true = law.epsilon_up_to(fact.longest)
    return math.isfinite(fact.epsilon) and math.isclose(fact.epsilon, true, rel_tol=_TOLERANCE)


def is_possible_basket_fact(fact: Fact) -> bool:
    """Whether there can be such baskets, persons, operators or hidden rules."""
    match fact:
        case BasketsReleased():
            return fact.items <= fact.entries + fact.unknown <= fact.baskets * fact.items
        case BasketPersons():
            return min(fact.persons, fact.most) >= 1
        case BasketsRandomized():
            return _operator_agrees(fact)
        case RulesHidden() | RulesBlocked():
            shares = fact.min_support, fact.min_confidence
            possible = fact.rules >= 1 and all(0 < share <= 1 for share in shares)
            if isinstance(fact, RulesBlocked):
                return possible and 0 <= fact.margin < 1
            return possible and (fact.added > 0 if fact.strategy == "antecedent" else fact.removed > 0 == fact.added)
        case _:
            return True


def baskets_agree(facts: Sequence[Fact]) -> bool:
    """Whether baskets, persons and what was done to them go together, and there is nothing of them elsewhere."""
    released = [fact for fact in facts if isinstance(fact, BasketsReleased)]
    done = [fact for fact in facts if isinstance(fact, BasketsRandomized | RulesHidden | RulesBlocked)]
    persons = [fact for fact in facts if isinstance(fact, BasketPersons)]
    if not released or not done:
        return not released and not done and not persons
    (counts,), way = released, done[0]
    return (
        all(fact.persons <= counts.baskets <= fact.persons * fact.most for fact in persons)
        and (counts.unknown > 0) == isinstance(way, RulesBlocked)
        and not (isinstance(way, BasketsRandomized) and counts.items > way.width)
    )


def of_randomized_baskets(fact: BasketsRandomized, facts: tuple[Fact, ...]) -> Statements:
    """What the operator proves of an item or of a basket, and what it does not."""
    law = BasketOperator.of(fact)
    most = next((each.most for each in facts if isinstance(each, BasketPersons)), 1)
    if law.name == "flip":
        yield from _of_items(fact, law, most)
    else:
        yield from _of_wholes(fact, law, most)
    if fact.declared:
        return
    yield Refused(
        "A reader cannot learn which items there are.",
        f"what comes into baskets is drawn from the {counted(fact.width, 'item', 'items')} that the baskets held, "
        "also those that a single one did",
    )


def _kind(fact: BasketsRandomized) -> Literal["proved", "assumed"]:
    """An item that came in tells that somebody holds it, where the items were read off the baskets."""
    return "proved" if fact.declared else "assumed"


def _assumes(fact: BasketsRandomized) -> str:
    return SECRET_RANDOMNESS if fact.declared else f"which items there are was known before; {SECRET_RANDOMNESS}"


def _choice(fact: BasketsRandomized) -> str:
    """Why the operator is what it is, where none was asked for."""
    if not fact.chosen:
        return ""
    if fact.operator == "flip":
        return ", which is usual where it makes up at most 10 entries for each true one"
    return ", which is usual where flipping every item would make up more than 10 entries for each true one"


def _of_items(fact: BasketsRandomized, law: BasketOperator, most: int) -> Statements:
    done = (
        f"Each item stays with a chance of {law.keep:g} and each other comes in with {law.insert:g}, all by "
        f"themselves{_choice(fact)}."
    )
    yield Claim(
        "To somebody who knows all other items of a basket, seeing it changes the odds that one more item was in it by "
        f"a factor of at most {at_most(math.exp(min(700.0, law.item_epsilon)))}.",
        _kind(fact),
        done,
        _assumes(fact),
    )
    if most > 1:
        yield Claim(
            f"Over all baskets of one person, at most {most}, the odds that an item was in all of them rather than in "
            f"none change by a factor of at most {at_most(math.exp(min(700.0, most * law.item_epsilon)))}.",
            _kind(fact),
            f"{done} The factors of several baskets multiply.",
            _assumes(fact),
        )
    yield Refused(
        "A reader cannot learn what is in a basket as a whole.",
        f"the factors of its items multiply, and there are {counted(law.width, 'item', 'items')}; supports that can be "
        "estimated from all baskets tell more besides",
    )


def _of_wholes(fact: BasketsRandomized, law: BasketOperator, most: int) -> Statements:
    limit = math.log(_LARGEST)
    if fact.epsilon <= limit:
        yield Claim(
            "To somebody who knows the size of a basket, seeing it changes the odds of whatever may be said of its "
            f"items by a factor of at most {at_most(math.exp(fact.epsilon))}.",
            _kind(fact),
            f"No two baskets of one size become any basket with chances further apart {_EGS}; the operator is "
            f"{law.name}{_choice(fact)}.",
            _assumes(fact),
        )
    else:
        yield Refused(
            "Nothing that may be said of a basket becomes nearly certain to somebody who sees it.",
            f"odds can change by a factor of e^{fact.epsilon:.1f}, the amplification {_EGS}",
        )
    if most > 1:
        together = most * fact.epsilon
        if together <= limit:
            yield Claim(
                f"Over all baskets of one person, at most {most}, odds change by a factor of at most "
                f"{at_most(math.exp(together))}.",
                _kind(fact),
                "The factors of several baskets multiply.",
                _assumes(fact),
            )
        else:
            yield Refused(
                "Nothing that may be said of a person's baskets together becomes nearly certain.",
                f"persons have up to {most}, and the factors of their baskets multiply",
            )
    yield Refused(
        "The sizes of baskets are hidden.",
        "the true size stands beside each of them"
        if law.shows_size
        else "randomized baskets are as large as true ones",
    )


def of_hidden_rules(fact: RulesHidden, facts: tuple[Fact, ...]) -> Statements:
    """That the named rules do not hold, and that nothing else is protected."""
    yield Claim(
        f"None of the rules that the owner named, {fact.rules} in all, holds in the released baskets, at a support of "
        f"{fact.min_support:g} and a confidence of {fact.min_confidence:g}.",
        "proved",
        f"They were counted in the released baskets, after {counted(fact.removed, 'entry', 'entries')} had been taken "
        f"out and {counted(fact.added, 'entry', 'entries')} put in.",
        "nothing; whoever knows the rules can count them",
    )
    yield Refused(
        "Nobody can find out which rules were hidden.",
        "a hidden rule lies just below a threshold, where somebody who lowers it or knows similar baskets finds it",
    )
    yield _as_they_are(facts, fact.removed + fact.added)


def of_blocked_rules(fact: RulesBlocked, facts: tuple[Fact, ...]) -> Statements:
    """That the named rules may not hold, and what question marks do not hide."""
    yield Claim(
        f"None of the rules that the owner named, {fact.rules} in all, surely holds in the released baskets, at a "
        f"support of {fact.min_support:g} and a confidence of {fact.min_confidence:g}.",
        "proved",
        "The lowest support or the lowest confidence that unknown entries leave possible was counted for each: it is "
        f"below the threshold by {100 * fact.margin:g} % of it or more.",
        "nothing; whoever knows the rules can count them",
    )
    yield Refused(
        "Nobody can tell what a question mark stands for.",
        "the other items of a basket tell something of it, and how many question marks an item has is seen",
    )
    released = next(each for each in facts if isinstance(each, BasketsReleased))
    yield _as_they_are(facts, released.unknown)


def _as_they_are(facts: tuple[Fact, ...], changed: int) -> Refused:
    released = next(each for each in facts if isinstance(each, BasketsReleased))
    return Refused(
        "The people behind the baskets are protected.",
        f"the {counted(released.baskets, 'basket leaves', 'baskets leave')} as they are, but for "
        f"{counted(changed, 'entry', 'entries')}: whoever knows some items of one may find it",
    )


CLAIMS: ClaimsOf = {
    BasketsRandomized: of_randomized_baskets,
    RulesBlocked: of_blocked_rules,
    RulesHidden: of_hidden_rules,
}
