"""Differential privacy: what the budget of a method bounds, for any attacker [Bun and Steinke 2016].

Kairouz, Oh and Viswanath, *The composition theorem for differential privacy*, ICML 2015, for beliefs and odds; the
terms are those of NIST SP 800-226.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from sfumato.core.distributions.amplification import loss_bound, membership_bounds, rho_of, upward_bound
from sfumato.core.facts import (
    SECRET_RANDOMNESS,
    Claim,
    Context,
    Fact,
    Refused,
    Statements,
    at_most,
    counted,
    joined,
    quoted,
    whom_rows_describe,
)

__all__ = ["PrivatelyMeasured"]

_PRIOR = 0.1
_CHOSEN = "the settings and declared domains do not depend on the data"


@dataclass(frozen=True)
class PrivatelyMeasured(Fact):
    """All that was learnt of the records are counts with discrete Gaussian noise, over ``columns`` columns.

    ``rho`` is the budget of zero-concentrated differential privacy that ``epsilon`` and ``delta`` allow, less the part
    of delta that ``thresholds`` of categories may cost; of the ``steps`` each ``spent`` its share. Neighbouring tables
    differ in all rows of one person, ``shared`` if a column says whose a row is.

    People of the ``epsilons`` count as 64ths of a person, given in ``weights``, as ``level_rule`` says of whom. The
    domains of the columns ``bought`` were not declared. Releases of a ``dataset`` have a budget together; other
    settings may have been ``measured_before`` on it.
    """

    methods = ("private",)
    resized = True

    epsilon: float
    delta: float
    rho: float
    steps: tuple[str, ...]
    spent: tuple[float, ...]
    columns: int
    unit: Literal["person"] = "person"
    neighbours: Literal["add or remove one person"] = "add or remove one person"
    thresholds: float = 0.0
    shared: bool = False
    level_rule: str = ""
    epsilons: tuple[float, ...] = ()
    weights: tuple[int, ...] = ()
    bought: tuple[str, ...] = ()
    dataset: str = ""
    dataset_epsilon: float | None = None
    dataset_delta: float | None = None
    measured_before: bool = False

    def claims(self, context: Context) -> Statements:
        """State the guarantee, what it means for membership inference and for beliefs, and what it does not cover."""
        kind: Literal["proved", "assumed"] = "assumed" if self.measured_before else "proved"
        assumes = _assumptions(self)
        for claim, basis in (*_guarantee(self), *_levels(self), *_membership(self), *_beliefs(self), *_dataset(self)):
            yield Claim(claim, basis, assumes, kind=kind)
        yield Refused(
            "Nothing can be inferred about a person.",
            "Patterns of the population remain, and they apply to people whose records were not used. The guarantee "
            "bounds what a person's own record adds.",
        )
        if self.epsilons:
            yield Refused(
                "A smaller epsilon hides what it is set by.",
                "The guarantee compares with a table without the person. It does not compare with one in which the "
                "person has another epsilon, so what sets it must be public.",
            )
        yield Refused(
            "The table may be released again with new randomness.",
            "Each release spends its own budget; the budgets of all releases add up.",
        )

    def check(self) -> bool:
        """Whether the budget gives the stated epsilon, and the steps stay within it."""
        known = self.epsilon > 0 and 0 < self.delta < 1 and self.columns >= 1 and len(self.steps) == len(self.spent) > 0
        return (
            known
            and 0 <= self.thresholds < self.delta
            and 0 < self.rho <= rho_of(self.epsilon, self.delta - self.thresholds)
            and all(rho > 0 for rho in self.spent)
            and math.fsum(self.spent) <= self.rho * (1 + 1e-9)
            and self._are_levels()
            and bool(self.dataset) == (self.dataset_epsilon is not None) == (self.dataset_delta is not None)
        )

    def _are_levels(self) -> bool:
        """Whether nobody's weight gives them more than their epsilon."""
        paired = len(self.epsilons) == len(self.weights) and bool(self.epsilons) == bool(self.level_rule)
        return paired and all(
            0 < epsilon <= self.epsilon
            and 0 < weight <= 64
            and (weight / 64) ** 2 * self.rho <= rho_of(epsilon, self.delta - self.thresholds) * (1 + 1e-9)
            for epsilon, weight in zip(self.epsilons, self.weights, strict=True)
        )

    def fits(self, context: Context) -> bool:
        return (self.epsilon, self.delta) == (context.parameters["epsilon"], context.parameters["delta"])

    @property
    def privacy(self) -> dict[str, Any]:  # read before `check`, so that lengths may differ
        ledger = [{"step": step, "rho": rho} for step, rho in zip(self.steps, self.spent, strict=False)]
        stated = {name: getattr(self, name) for name in ("epsilon", "delta", "rho", "unit", "neighbours")}
        levels = [
            {"epsilon": epsilon, "weight": weight / 64}
            for epsilon, weight in zip(self.epsilons, self.weights, strict=False)
        ]
        return {**stated, "ledger": ledger} | ({"levels": levels} if levels else {})


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
