"""Claims of differential privacy: what the budget of a method bounds, for any attacker [Bun and Steinke 2016].

Kairouz, Oh and Viswanath, *The composition theorem for differential privacy*, ICML 2015, for beliefs and odds; the
terms are those of NIST SP 800-226.
"""

from __future__ import annotations

import math

from sfumato.certificate.statements import (
    ONE_ROW,
    SECRET_RANDOMNESS,
    Claim,
    ClaimsOf,
    Refused,
    Statements,
    at_most,
    counted,
)
from sfumato.core.distributions.accounting import membership_bounds
from sfumato.core.facts import Fact, PrivatelyMeasured

__all__ = ["CLAIMS"]

_PRIOR = 0.1
_PUBLIC = "declared bounds and categories do not depend on the data"


def of_private_measurement(fact: PrivatelyMeasured, _: tuple[Fact, ...]) -> Statements:
    """State the guarantee, what it means for membership inference and for beliefs, and what it does not cover."""
    auc, rate = membership_bounds(fact.rho)
    assumes = f"{ONE_ROW}, {_PUBLIC}, there is one release, and {SECRET_RANDOMNESS}"
    spent = ", ".join(f"{step} {at_most(rho, 3)}" for step, rho in zip(fact.steps, fact.spent, strict=True))
    yield Claim(
        f"The release is ({at_most(fact.epsilon)}, {at_most(fact.delta)})-differentially private for each person.",
        "proved",
        f"Neighbouring tables: {fact.neighbours}. All statistics of {counted(fact.columns, 'column', 'columns')} are "
        f"whole numbers with discrete Gaussian noise, {at_most(fact.rho)}-zCDP together; rows follow from them alone. "
        f"Spent: {spent}.",
        assumes,
    )
    yield Claim(
        f"Membership inference: no attack has an AUC above {at_most(auc)}, or a true-positive rate above "
        f"{at_most(100 * rate, 3)} % at 1 % false positives.",
        "proved",
        f"The trade-off curve of {at_most(fact.rho)}-zCDP bounds every test of whether a person's record was used, "
        "whatever else the attacker knows.",
        assumes,
    )
    odds = math.exp(fact.epsilon)
    posterior = odds * _PRIOR / (1 - _PRIOR + odds * _PRIOR)
    yield Claim(
        f"A statement about a person with prior probability {_PRIOR:g} has posterior probability at most "
        f"{at_most(posterior)}, compared with a release without that person.",
        "proved",
        f"Its odds change by at most a factor of {at_most(odds)}, apart from a probability of {at_most(fact.delta)}.",
        assumes,
    )
    yield Refused(
        "Nothing can be inferred about a person.",
        "Patterns of the population remain, and they apply to people whose records were not used. The guarantee bounds "
        "what a person's own record adds.",
    )
    yield Refused(
        "The table may be released again with new randomness.",
        "Each release spends its own budget; the budgets of all releases add up.",
    )


CLAIMS: ClaimsOf = {PrivatelyMeasured: of_private_measurement}
