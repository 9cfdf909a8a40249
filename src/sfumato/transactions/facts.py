"""Facts about randomized transactions, and about association rules hidden or blocked in them [JS07, ch. 2, 3]."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from sfumato.core.distributions.operators import MOST_SIZE, OperatorName, TransactionOperator
from sfumato.core.documents import plain
from sfumato.core.errors import OptionError, PrivacyRefusal, SfumatoError
from sfumato.core.facts import (
    SECRET_RANDOMNESS,
    Check,
    Claim,
    Context,
    Fact,
    Refused,
    Statements,
    at_most,
    counted,
    has_parameters,
)

__all__ = [
    "RulesBlocked",
    "RulesHidden",
    "TransactionPersons",
    "TransactionsRandomized",
    "TransactionsReleased",
]

_LARGEST = 1_000.0
"""Amplification above which a bound is refused."""
_TOLERANCE = 1e-9
_BYTES = 1 << 5  # of an item in a transaction, on average
_EGS = "[Evfimievski, Gehrke, Srikant 2003]"
_MULTIPLY = "The factors of several transactions multiply."
_COUNTABLE = "nothing: anyone who knows the rules can count them"


class _OfReleased:
    """What facts about how released transactions were made have in common."""

    def agrees(self, context: Context) -> bool:
        return context.has(TransactionsReleased)

    def fits(self, context: Context) -> bool:
        return _is_method(context, self)


@dataclass(frozen=True)
class TransactionsReleased(Fact):
    """Rows are transactions: ``entries`` in all, of ``items`` different items, and ``unknown`` ones."""

    methods = ("randomize-transactions", "hide-rules", "block-rules")

    transactions: int
    items: int
    entries: int
    unknown: int = 0

    def check(self) -> bool:
        return self.items <= self.entries + self.unknown <= self.transactions * self.items

    def agrees(self, context: Context) -> bool:
        randomized = context.one(TransactionsRandomized)
        return (
            context.has(TransactionsRandomized, RulesHidden, RulesBlocked)
            and (self.unknown > 0) == context.has(RulesBlocked)
            and (randomized is None or self.items <= randomized.width)
        )

    def table_checks(self, file: Path, most_bytes: int | None) -> Iterable[Check]:
        from sfumato.transactions.table import read_transactions

        try:
            found = read_transactions(file, most_bytes=most_bytes).counted()
        except SfumatoError:
            return (Check("transactions", False, "the table cannot be read as transactions"),)
        counts = f"{found.entries} entries of {found.items} items, {found.unknown} unknown"
        return (Check("transactions", found == self, counts if found == self else f"{counts}, not as certified"),)

    @property
    def rows_released(self) -> int:
        return self.transactions

    @property
    def shows_categories(self) -> bool:
        return True

    @property
    def most_bytes(self) -> int:
        return self.entries * _BYTES


@dataclass(frozen=True)
class TransactionPersons(Fact):
    """The transactions are of ``persons`` persons, none of whom has more than ``most``."""

    methods = ("randomize-transactions", "hide-rules", "block-rules")

    persons: int
    most: int

    def check(self) -> bool:
        return min(self.persons, self.most) >= 1

    def agrees(self, context: Context) -> bool:
        released = context.one(TransactionsReleased)
        return released is not None and self.persons <= released.transactions <= self.persons * self.most


@dataclass(frozen=True)
class TransactionsRandomized(_OfReleased, Fact):
    """Every transaction was randomized by itself over ``width`` items, by an operator and its parameters.

    ``longest`` is the size of the longest transaction where sizes show, else 0. ``epsilon`` is the logarithm of the
    amplification: over any two transactions for flip, and over two of one size for the others. ``declared`` where the
    owner said which items there are, so that they were not read off the transactions. ``chosen`` where the owner named
    no operator and it is the default for this number of items.
    """

    methods = ("randomize-transactions",)

    operator: str
    width: int
    keep: float | None
    insert: float | None
    cutoff: int | None
    gamma: float | None
    longest: int
    epsilon: float
    declared: bool = False
    chosen: bool = False

    def as_operator(self) -> TransactionOperator:
        """The operator with its parameters."""
        name = cast(OperatorName, self.operator)
        return TransactionOperator(name, self.width, self.keep, self.insert, self.cutoff, self.gamma)

    def claims(self, context: Context) -> Statements:
        """State what the operator bounds for an item or a transaction, and what it does not."""
        law = self.as_operator()
        most = next((each.most for each in context if isinstance(each, TransactionPersons)), 1)
        if law.name == "flip":
            yield from _of_items(self, law, most)
        else:
            yield from _of_wholes(self, law, most)
        if self.declared:
            return
        yield Refused(
            "A reader cannot learn which items occur.",
            f"Inserted items are drawn from the {counted(self.width, 'item', 'items')} of the original transactions, "
            "including "
            "items of a single transaction.",
        )

    def check(self) -> bool:
        """Whether there is such an operator, and its amplification is the one in the fact."""
        if self.width < 1 or not 0 <= self.longest <= min(MOST_SIZE, self.width):
            return False
        try:
            law = self.as_operator()
        except (OptionError, PrivacyRefusal):
            return False
        if self.chosen and self.operator not in ("flip", "select-a-size"):
            return False
        if law.by_size != (self.longest > 0) or (self.operator == "uniform" and 2 * self.longest > self.width):
            return False
        true = law.epsilon_up_to(self.longest)
        return math.isfinite(self.epsilon) and math.isclose(self.epsilon, true, rel_tol=_TOLERANCE)

    def fits(self, context: Context) -> bool:
        """Whether the operator is the one that was asked for, or one that is usual if none was."""
        from sfumato.transactions.mechanism import USUAL

        parameters = context.parameters
        if self.chosen != (parameters["operator"] == "usual"):
            return False
        stated = {**parameters, "operator": self.operator, **(USUAL[self.operator] if self.chosen else {})}
        if stated["insert"] is None and self.operator in ("cut-and-paste", "select-a-size"):
            stated["insert"] = self.insert if self.insert is not None and self.insert <= 0.1 else None
        same = all(stated[name] == getattr(self, name) for name in ("operator", "keep", "insert", "cutoff", "gamma"))
        return same and _is_method(context)


@dataclass(frozen=True)
class RulesHidden(_OfReleased, Fact):
    """Rules that the owner named were brought below a threshold by changing entries of transactions.

    Each of them holds for less than ``min_support`` of the transactions or is right in less than ``min_confidence`` of
    its cases. ``removed`` entries were taken out and ``added`` ones put in.
    """

    methods = ("hide-rules",)

    strategy: str
    rules: int
    min_support: float
    min_confidence: float
    removed: int
    added: int

    def claims(self, context: Context) -> Statements:
        """State that the named rules do not hold, and that nothing else is protected."""
        yield Claim(
            f"None of the association rules that the data owner named ({self.rules}) holds in the released "
            "transactions, at "
            f"support {self.min_support:g} and confidence {self.min_confidence:g}.",
            "Rules were counted in the released transactions, after "
            f"{counted(self.removed, 'entry was', 'entries were')} removed and "
            f"{counted(self.added, 'entry', 'entries')} inserted.",
            _COUNTABLE,
        )
        yield Refused(
            "No one can find out which rules were hidden.",
            "A hidden rule lies just below a threshold. Anyone who lowers it, or knows similar transactions, finds the "
            "rule.",
        )
        yield _as_they_are(context, self.removed + self.added)

    def check(self) -> bool:
        possible = self.rules >= 1 and 0 < self.min_support <= 1 and 0 < self.min_confidence <= 1
        if self.strategy == "antecedent":
            return possible and self.added > 0
        return possible and self.strategy in ("consequent", "itemsets") and self.removed > 0 == self.added


@dataclass(frozen=True)
class RulesBlocked(_OfReleased, Fact):
    """Rules that the owner named may be below a threshold, whatever the unknown entries are.

    The lowest support or the lowest confidence that each may have is below the threshold less ``margin``.
    """

    methods = ("block-rules",)

    rules: int
    min_support: float
    min_confidence: float
    margin: float

    def claims(self, context: Context) -> Statements:
        """State that the named rules need not hold, and what question marks do not hide."""
        yield Claim(
            f"None of the association rules that the data owner named ({self.rules}) certainly holds in the released "
            f"transactions, at support {self.min_support:g} and confidence {self.min_confidence:g}.",
            "The lowest support or confidence that unknown entries allow was computed for each rule. It is below the "
            f"threshold by at least {100 * self.margin:g} % of the threshold.",
            _COUNTABLE,
        )
        yield Refused(
            "No one can tell what a question mark stands for.",
            "The other items of a transaction reveal something about it, and the number of question marks is visible.",
        )
        released = context.the(TransactionsReleased)
        yield _as_they_are(context, released.unknown)

    def check(self) -> bool:
        possible = self.rules >= 1 and 0 < self.min_support <= 1 and 0 < self.min_confidence <= 1
        return possible and 0 <= self.margin < 1


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
        done,
        _assumes(fact),
        kind=_kind(fact),
    )
    if most > 1:
        yield Claim(
            f"Over all transactions of one person, at most {most}, the odds that all rather than none contain an item "
            f"change by at most a factor of {at_most(math.exp(min(700.0, most * law.item_epsilon)))}.",
            f"{done} {_MULTIPLY}",
            _assumes(fact),
            kind=_kind(fact),
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
            f"The operator is {law.name}. For any two transactions of one size, the probabilities of a released "
            "transaction "
            f"differ by no larger factor {_EGS}.{_choice(fact)}",
            _assumes(fact),
            kind=_kind(fact),
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
                _MULTIPLY,
                _assumes(fact),
                kind=_kind(fact),
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


def _as_they_are(context: Context, changed: int) -> Refused:
    released = context.the(TransactionsReleased)
    return Refused(
        "The people behind the transactions are protected.",
        f"{counted(released.transactions, 'transaction is', 'transactions are')} released unchanged except for "
        f"{counted(changed, 'entry', 'entries')}. Anyone who knows some items of a transaction may find it.",
    )


def _is_method(context: Context, fact: object = None) -> bool:
    """Whether the method has exactly these parameters, and a fact has the same values in entries of the same name."""
    from sfumato.transactions.verb import make_transaction_mechanism

    parameters = context.parameters
    mechanism = make_transaction_mechanism(context.method or "", dict(parameters))
    same = fact is None or all(parameters.get(name, value) == value for name, value in plain(fact).items())
    return same and has_parameters(mechanism, parameters)
