"""What a policy requires that a run cannot give, found before the table is read or before the method runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sfumato.assess.report import ExceededLimit, Ruling, UndecidedLimit, Verdict
from sfumato.methods.chain import Chain
from sfumato.methods.protocol import Mechanism
from sfumato.publish.judge import EXTREMES, LEAST_HELD_OUT, RAREST, TPR, PolicyNotMet, judge_proof
from sfumato.publish.policy import PURPOSES, Policy

__all__ = ["PlannedRun", "refuse_unattainable", "without_control"]

_HOLD_OUT = "add --holdout 0.3"
_NO_CONTROL = "use a policy with neither 'control' nor limits"


@dataclass(frozen=True)
class PlannedRun:
    """What is known of a run before it starts; what is not known yet refuses nothing.

    Parameters
    ----------
    control : bool
        There is a control group, whose rows are not in the release.
    how_to_control : str
        How to get one, as the end of a sentence.
    control_rows : int, optional
        Maximum number of rows in the control group.
    mechanism : Mechanism, optional
    level : str or int, optional
        Privacy levels, as `sfumato.sanitize` takes them.
    rare, tails : str, optional
        Treatment of rare categories and of extreme values, as `sfumato.sanitize` takes it.
    transactions : bool
        The table holds transactions, whose methods make no groups and show every item.
    audited : bool
        Shadow releases have control groups.
    k_option : str
        What sets the minimum group size.
    """

    control: bool
    how_to_control: str = _HOLD_OUT
    control_rows: int | None = None
    mechanism: Mechanism | None = None
    level: str | int | None = None
    rare: str | None = None
    tails: str | None = None
    transactions: bool = False
    audited: bool = False
    k_option: str = "--k"

    @property
    def compares(self) -> bool:
        """Whether attacks can be compared with a control group."""
        return self.control or (self.mechanism is not None and self.mechanism.traits.control)

    @property
    def makes_groups(self) -> bool:
        """Whether rows are made from groups, as far as is known."""
        return not self.transactions and (self.mechanism is None or self.mechanism.traits.grouped)

    @property
    def smallest_group(self) -> int | None:
        """Smallest group that the run allows; None if that is not known before the run."""
        traits = None if self.mechanism is None else self.mechanism.traits
        if traits is None or traits.floor is None or traits.chooses_size:
            return None
        if self.level is None:
            return traits.floor
        return max(traits.floor, int(self.level)) if str(self.level).isdecimal() else None


def without_control() -> PlannedRun:
    """Planned run of an engine that never has a control group."""
    return PlannedRun(control=False, how_to_control=_NO_CONTROL)


def refuse_unattainable(policy: Policy | None, run: PlannedRun, *, despite: bool | None = False) -> None:
    """Refuse a run whose release cannot meet its policy, whatever the table holds.

    Parameters
    ----------
    policy : Policy, optional
    run : PlannedRun
    despite : bool, optional
        Whether the caller goes on although the policy is not met; None if that cannot be chosen.

    Raises
    ------
    PolicyNotMet
        With a verdict, and without a report.
    """
    if policy is None or despite:
        return
    found = [*_control(policy, run), *_groups(policy, run), *_rare(policy, run), *_tails(policy, run)]
    if run.mechanism is not None and run.mechanism.traits.declared:
        found = _proof(policy, run.mechanism)
    if not found:
        return
    unmet = tuple(each for each, _, _ in found if isinstance(each, ExceededLimit))
    verdict = Verdict(
        policy.name,
        Ruling.DOES_NOT_MEET if unmet else Ruling.INCONCLUSIVE,
        unmet,
        tuple(each for each, _, _ in found if isinstance(each, UndecidedLimit)),
        purpose=PURPOSES.get(policy.title, ""),
        edited=policy.title != policy.name,
    )
    reasons = " and ".join(reason for _, reason, _ in found)
    ways = " and ".join(dict.fromkeys(way for _, _, way in found))
    otherwise = "" if despite is None else ", or add --despite-policy to release anyway"
    raise PolicyNotMet(verdict, f'this run cannot meet policy "{policy.title}": {reasons}; {ways}{otherwise}')


_Found = tuple[ExceededLimit | UndecidedLimit, str, str]  # the entry of the verdict, the reason, and what to do


def _proof(policy: Policy, mechanism: Any) -> list[_Found]:
    verdict = judge_proof(policy, mechanism.epsilon, mechanism.delta)
    if verdict.outcome is Ruling.MEETS:
        return []
    found: list[_Found] = []
    for each in verdict.exceeded:
        why = f"it accepts a proof with {each.limit} at most {each.allowed:g} and this run has {each.value:g}"
        found.append((each, why, f"use --{each.limit} {each.allowed:g}"))
    lacking = ((each, f"the proof does not bound {each.limit!r}") for each in verdict.missing)
    return found + [(each, why, "use a policy with a section [proof]") for each, why in lacking]


def _control(policy: Policy, run: PlannedRun) -> list[_Found]:
    """What compares with a control group: the requirement of one, and every limit."""
    required = bool(policy.require.get("control"))
    if not run.compares and not (run.audited and policy.limits) and (required or policy.limits):
        entry = (
            ExceededLimit("control", None, False, True)
            if required
            else UndecidedLimit(next(iter(policy.limits)), None, "no people were held out")
        )
        return [(entry, "there is no control group to compare attacks with", run.how_to_control)]
    if set(policy.limits) == {TPR} and run.control_rows is not None and run.control_rows < LEAST_HELD_OUT:
        why = f"its limit {TPR!r} needs a control group of {LEAST_HELD_OUT:,} people and at most "
        why += f"{run.control_rows:,} can be held out"
        return [(UndecidedLimit(TPR, None, why), why, "use another limit")]
    return []


def _groups(policy: Policy, run: PlannedRun) -> list[_Found]:
    asked = int(policy.require.get("min_group_size", 0))
    if not asked:
        return []
    if not run.makes_groups:
        method = "methods for transactions make" if run.mechanism is None else f"{run.mechanism.method!r} makes"
        way = "use a policy without 'min_group_size'" if run.transactions else "use --method chain"
        why = f"{method} no groups and the policy requires groups of {asked} people"
        return [(ExceededLimit("min_group_size", None, None, asked), why, way)]
    smallest = run.smallest_group
    if smallest is None or smallest >= asked:
        return []
    why = f"the policy requires groups of {asked} people and this run allows groups of {smallest}"
    option = "--leaf" if isinstance(run.mechanism, Chain) else run.k_option
    return [(ExceededLimit("min_group_size", None, smallest, asked), why, f"raise {option} to {asked}")]


def _rare(policy: Policy, run: PlannedRun) -> list[_Found]:
    if policy.require.get("rare") != "hidden":
        return []
    if run.transactions:
        why, way = (
            "every item shows and the policy requires rare categories to be hidden",
            "use a policy without 'rare'",
        )
    elif run.rare == "keep":
        why, way = "the policy requires rare categories to be hidden and --rare keep shows them", "drop --rare keep"
    else:
        return []
    return [(ExceededLimit("rare", RAREST, "shown", "hidden"), why, way)]


def _tails(policy: Policy, run: PlannedRun) -> list[_Found]:
    if policy.require.get("tails") != "hidden" or run.tails != "keep":
        return []
    why = "the policy requires extreme values to be hidden and --tails keep shows them"
    return [(ExceededLimit("tails", EXTREMES, "shown", "hidden"), why, "drop --tails keep")]
