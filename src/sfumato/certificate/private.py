"""Claims of differential privacy: what the budget of a method bounds, for any attacker [Bun and Steinke 2016].

Kairouz, Oh and Viswanath, *The composition theorem for differential privacy*, ICML 2015, for beliefs and odds; the
terms are those of NIST SP 800-226.
"""

from __future__ import annotations

import math
from typing import Literal

from sfumato.certificate.statements import (
    SECRET_RANDOMNESS,
    Claim,
    ClaimsOf,
    Refused,
    Statements,
    at_most,
    counted,
    joined,
    quoted,
    whom_rows_describe,
)
from sfumato.core.distributions.accounting import loss_bound, membership_bounds
from sfumato.core.distributions.amplification import upward_bound
from sfumato.core.facts import Fact, PrivatelyMeasured

__all__ = ["CLAIMS"]

_PRIOR = 0.1
_CHOSEN = "the settings and declared domains do not depend on the data"


def of_private_measurement(fact: PrivatelyMeasured, _: tuple[Fact, ...]) -> Statements:
    """State the guarantee, what it means for membership inference and for beliefs, and what it does not cover."""
    kind: Literal["proved", "assumed"] = "assumed" if fact.measured_before else "proved"
    assumes = _assumptions(fact)
    for claim, basis in (*_guarantee(fact), *_levels(fact), *_membership(fact), *_beliefs(fact), *_dataset(fact)):
        yield Claim(claim, kind, basis, assumes)
    yield Refused(
        "Nothing can be inferred about a person.",
        "Patterns of the population remain, and they apply to people whose records were not used. The guarantee bounds "
        "what a person's own record adds.",
    )
    if fact.epsilons:
        yield Refused(
            "A smaller epsilon hides what it is set by.",
            "The guarantee compares with a table without the person. It does not compare with one in which the person "
            "has another epsilon, so what sets it must be public.",
        )
    yield Refused(
        "The table may be released again with new randomness.",
        "Each release spends its own budget; the budgets of all releases add up.",
    )


_Words = tuple[tuple[str, str], ...]  # claims, each with its basis


def _assumptions(fact: PrivatelyMeasured) -> str:
    releases = "there is one release"
    if fact.dataset:
        releases = f"every release about these people is charged to {fact.dataset!r}"
    chosen = f"{_CHOSEN}, although other settings were measured before" if fact.measured_before else _CHOSEN
    return f"{whom_rows_describe(by_person=fact.shared)}, {chosen}, {releases}, and {SECRET_RANDOMNESS}"


def _guarantee(fact: PrivatelyMeasured) -> _Words:
    spent = ", ".join(f"{step} {at_most(rho, 3)}" for step, rho in zip(fact.steps, fact.spent, strict=True))
    basis = (
        f"Neighbouring tables: {fact.neighbours}. All statistics of {counted(fact.columns, 'column', 'columns')} are "
        f"whole numbers with discrete Gaussian noise, {at_most(fact.rho)}-zCDP together; rows follow from them alone. "
        f"Spent: {spent}."
    )
    if fact.bought:
        cost = f"; a category of one person leaves with a probability of at most {at_most(fact.thresholds)}"
        basis += f" Domains of {quoted(fact.bought)} were bought as part of that{cost if fact.thresholds else ''}."
    guarantee = f"({at_most(fact.epsilon)}, {at_most(fact.delta)})-differentially private for each person"
    return ((f"The release is {guarantee}.", basis),)


def _levels(fact: PrivatelyMeasured) -> _Words:
    if not fact.epsilons:
        return ()
    pairs = zip(fact.epsilons, fact.weights, strict=True)
    levels = joined([f"{at_most(epsilon)} (weight {part}/64)" for epsilon, part in pairs])
    return (
        (
            f"Each person is protected by their own epsilon, set by {fact.level_rule!r}.",
            f"Epsilons: {levels}. A person of weight w changes each measurement by at most w times its sensitivity, "
            f"so that their cost is w^2 times {at_most(fact.rho)}.",
        ),
    )


def _membership(fact: PrivatelyMeasured) -> _Words:
    if fact.thresholds:
        return ()  # the trade-off curve is that of zCDP without a part of delta
    auc, rate = membership_bounds(fact.rho)
    return (
        (
            f"Membership inference: no attack has an AUC above {at_most(auc)}, or a true-positive rate above "
            f"{at_most(100 * rate, 3)} % at 1 % false positives.",
            f"The trade-off curve of {at_most(fact.rho)}-zCDP bounds every test of whether a person's record was used, "
            "whatever else the attacker knows.",
        ),
    )


def _beliefs(fact: PrivatelyMeasured) -> _Words:
    odds = math.exp(loss_bound(fact.rho, fact.delta - fact.thresholds))
    posterior = upward_bound(odds, _PRIOR)
    return (
        (
            f"A statement about a person with prior probability {_PRIOR:g} has posterior probability at most "
            f"{at_most(posterior)}, compared with a release without that person.",
            f"By the tail of its privacy loss, {at_most(fact.rho)}-zCDP changes odds by at most a factor of "
            f"{at_most(odds)}, apart from a probability of {at_most(fact.delta)}.",
        ),
    )


def _dataset(fact: PrivatelyMeasured) -> _Words:
    if fact.dataset_epsilon is None or fact.dataset_delta is None:
        return ()
    guarantee = f"({at_most(fact.dataset_epsilon)}, {at_most(fact.dataset_delta)})-differentially private"
    return (
        (
            f"All releases of the dataset {fact.dataset!r} together are {guarantee} for each person.",
            "Each is charged to the dataset's budget before it is made, and costs in zCDP add up.",
        ),
    )


CLAIMS: ClaimsOf = {PrivatelyMeasured: of_private_measurement}
