"""Claims about randomized transactions, and about association rules hidden or blocked in them [JS07, ch. 2, 3]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from sfumato.certificate.statements import SECRET_RANDOMNESS, Claim, ClaimsOf, Refused, Statements, at_most, counted
from sfumato.core.distributions.transaction_operators import MOST_SIZE, TransactionOperator
from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.core.facts import (
    Fact,
    RulesBlocked,
    RulesHidden,
    TransactionPersons,
    TransactionsRandomized,
    TransactionsReleased,
)

__all__ = ["CLAIMS", "is_possible_transaction_fact", "transactions_agree"]

_LARGEST = 1_000.0
"""Amplification above which a bound is refused."""

_TOLERANCE = 1e-9
_EGS = "[Evfimievski, Gehrke, Srikant 2003]"
_MULTIPLY = "The factors of several transactions multiply."
_COUNTABLE = "nothing: anyone who knows the rules can count them"


def _operator_agrees(fact: TransactionsRandomized) -> bool:
    """Whether there is such an operator, and its amplification is the one in the fact."""
    if fact.width < 1 or not 0 <= fact.longest <= min(MOST_SIZE, fact.width):
        return False
    try:
        law = TransactionOperator.of(fact)
    except (OptionError, PrivacyRefusal):
        return False
    if fact.chosen and fact.operator not in ("flip", "select-a-size"):
        return False
    if law.by_size != (fact.longest > 0) or (fact.operator == "uniform" and 2 * fact.longest > fact.width):
        return False
    true = law.epsilon_up_to(fact.longest)
    return math.isfinite(fact.epsilon) and math.isclose(fact.epsilon, true, rel_tol=_TOLERANCE)


def is_possible_transaction_fact(fact: Fact) -> bool:
    """Whether there can be such transactions, persons, operators or hidden rules."""
    match fact:
        case TransactionsReleased():
            return fact.items <= fact.entries + fact.unknown <= fact.transactions * fact.items
        case TransactionPersons():
            return min(fact.persons, fact.most) >= 1
        case TransactionsRandomized():
            return _operator_agrees(fact)
        case RulesHidden() | RulesBlocked():
            shares = fact.min_support, fact.min_confidence
            possible = fact.rules >= 1 and all(0 < share <= 1 for share in shares)
            if isinstance(fact, RulesBlocked):
                return possible and 0 <= fact.margin < 1
            return possible and (fact.added > 0 if fact.strategy == "antecedent" else fact.removed > 0 == fact.added)
        case _:
            return True


def transactions_agree(facts: Sequence[Fact]) -> bool:
    """Whether facts about transactions, their persons and their method agree, and do not stand alone."""
    released = [fact for fact in facts if isinstance(fact, TransactionsReleased)]
    done = [fact for fact in facts if isinstance(fact, TransactionsRandomized | RulesHidden | RulesBlocked)]
    persons = [fact for fact in facts if isinstance(fact, TransactionPersons)]
    if not released or not done:
        return not released and not done and not persons
    (counts,), way = released, done[0]
    return (
        all(fact.persons <= counts.transactions <= fact.persons * fact.most for fact in persons)
        and (counts.unknown > 0) == isinstance(way, RulesBlocked)
        and not (isinstance(way, TransactionsRandomized) and counts.items > way.width)
    )


def of_randomized_transactions(fact: TransactionsRandomized, facts: tuple[Fact, ...]) -> Statements:
    """State what the operator bounds for an item or a transaction, and what it does not."""
    law = TransactionOperator.of(fact)
    most = next((each.most for each in facts if isinstance(each, TransactionPersons)), 1)
    if law.name == "flip":
        yield from _of_items(fact, law, most)
    else:
        yield from _of_wholes(fact, law, most)
    if fact.declared:
        return
    yield Refused(
        "A reader cannot learn which items occur.",
        f"Inserted items are drawn from the {counted(fact.width, 'item', 'items')} of the original transactions, "
        "including "
        "items of a single transaction.",
    )


def _kind(fact: TransactionsRandomized) -> Literal["proved", "assumed"]:
    """Call a bound assumed if items were read from the transactions: an inserted item then reveals that it occurs."""
    return "proved" if fact.declared else "assumed"


def _assumes(fact: TransactionsRandomized) -> str:
    return SECRET_RANDOMNESS if fact.declared else f"the set of items was known before, and {SECRET_RANDOMNESS}"


def _choice(fact: TransactionsRandomized) -> str:
    """State why the operator is the default one, if none was asked for."""
    if not fact.chosen:
        return ""
    if fact.operator == "flip":
        return " This operator is the default if it inserts at most 10 entries for each true one."
    return " This operator is the default if flipping every item would insert more than 10 entries for each true one."


def _of_items(fact: TransactionsRandomized, law: TransactionOperator, most: int) -> Statements:
    done = (
        f"Each item stays with probability {law.keep:g}, and each other item is inserted with probability "
        f"{law.insert:g}, all independently.{_choice(fact)}"
    )
    yield Claim(
        "To anyone who knows all other items of a transaction, its release changes the odds of one more item by at "
        "most a "
        f"factor of {at_most(math.exp(min(700.0, law.item_epsilon)))}.",
        _kind(fact),
        done,
        _assumes(fact),
    )
    if most > 1:
        yield Claim(
            f"Over all transactions of one person, at most {most}, the odds that all rather than none contain an item "
            f"change by at most a factor of {at_most(math.exp(min(700.0, most * law.item_epsilon)))}.",
            _kind(fact),
            f"{done} {_MULTIPLY}",
            _assumes(fact),
        )
    yield Refused(
        "A reader cannot learn the content of a whole transaction.",
        f"The factors of its items multiply, and there are {counted(law.width, 'item', 'items')}. Supports estimated "
        "from all transactions reveal more.",
    )


def _of_wholes(fact: TransactionsRandomized, law: TransactionOperator, most: int) -> Statements:
    limit = math.log(_LARGEST)
    if fact.epsilon <= limit:
        yield Claim(
            "To anyone who knows the size of a transaction, its release changes the odds of any statement about its "
            "items "
            f"by at most a factor of {at_most(math.exp(fact.epsilon))}.",
            _kind(fact),
            f"The operator is {law.name}. For any two transactions of one size, the probabilities of a released "
            "transaction "
            f"differ by no larger factor {_EGS}.{_choice(fact)}",
            _assumes(fact),
        )
    else:
        yield Refused(
            "No statement about a transaction becomes nearly certain after its release.",
            f"The odds can change by a factor of e^{fact.epsilon:.1f}, the amplification {_EGS}.",
        )
    if most > 1:
        together = most * fact.epsilon
        if together <= limit:
            yield Claim(
                f"Over all transactions of one person, at most {most}, the odds of any statement change by at most a "
                "factor "
                f"of {at_most(math.exp(together))}.",
                _kind(fact),
                _MULTIPLY,
                _assumes(fact),
            )
        else:
            yield Refused(
                "No statement about all transactions of a person becomes nearly certain.",
                f"A person has up to {most} transactions, and the factors of these multiply.",
            )
    yield Refused(
        "The sizes of transactions are hidden.",
        "The true size is published with each transaction."
        if law.shows_size
        else "Randomized transactions have the sizes of the true ones.",
    )


def of_hidden_rules(fact: RulesHidden, facts: tuple[Fact, ...]) -> Statements:
    """State that the named rules do not hold, and that nothing else is protected."""
    yield Claim(
        f"None of the association rules that the data owner named ({fact.rules}) holds in the released transactions, "
        "at "
        f"support {fact.min_support:g} and confidence {fact.min_confidence:g}.",
        "proved",
        f"Rules were counted in the released transactions, after {counted(fact.removed, 'entry was', 'entries were')} "
        f"removed and {counted(fact.added, 'entry', 'entries')} inserted.",
        _COUNTABLE,
    )
    yield Refused(
        "No one can find out which rules were hidden.",
        "A hidden rule lies just below a threshold. Anyone who lowers it, or knows similar transactions, finds the "
        "rule.",
    )
    yield _as_they_are(facts, fact.removed + fact.added)


def of_blocked_rules(fact: RulesBlocked, facts: tuple[Fact, ...]) -> Statements:
    """State that the named rules need not hold, and what question marks do not hide."""
    yield Claim(
        f"None of the association rules that the data owner named ({fact.rules}) certainly holds in the released "
        f"transactions, at support {fact.min_support:g} and confidence {fact.min_confidence:g}.",
        "proved",
        "The lowest support or confidence that unknown entries allow was computed for each rule. It is below the "
        f"threshold by at least {100 * fact.margin:g} % of the threshold.",
        _COUNTABLE,
    )
    yield Refused(
        "No one can tell what a question mark stands for.",
        "The other items of a transaction reveal something about it, and the number of question marks is visible.",
    )
    released = next(each for each in facts if isinstance(each, TransactionsReleased))
    yield _as_they_are(facts, released.unknown)


def _as_they_are(facts: tuple[Fact, ...], changed: int) -> Refused:
    released = next(each for each in facts if isinstance(each, TransactionsReleased))
    return Refused(
        "The people behind the transactions are protected.",
        f"{counted(released.transactions, 'transaction is', 'transactions are')} released unchanged except for "
        f"{counted(changed, 'entry', 'entries')}. Anyone who knows some items of a transaction may find it.",
    )


CLAIMS: ClaimsOf = {
    TransactionsRandomized: of_randomized_transactions,
    RulesBlocked: of_blocked_rules,
    RulesHidden: of_hidden_rules,
}
