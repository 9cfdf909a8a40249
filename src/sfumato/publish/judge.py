"""The judge: what a policy says to a report and to what was done.

A gain is what an attack gets on people of the table less what it gets on people held out; membership attacks are judged
by their scores. Every gain and score has an interval, and all intervals of a verdict hold together with 95 %
(Bonferroni: each with a confidence of 1 - 0.05 / m, where m intervals are looked at). A share is held by Clopper and
Pearson's exact limits, a difference of two shares as `sfumato.assess.findings.difference_interval` has it. Of the
largest of several attacks the interval goes from their largest lower end to their largest upper end.

Links to one's own row have no people held out to be compared with, for nobody held out has a row: their gain is what
they get beyond guessing one row of all, which is reckoned and exact.

Singling out is one attack with two kinds of descriptions, by one column and by several. Both kinds are taken together,
for of one kind there may be so few that nothing could be told; a kind that alone is above the limit still exceeds it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.assess.plain import hundred
from sfumato.assess.report import Exceeded, Missing, Report, Ruling, Verdict
from sfumato.core.errors import OptionError, PrivacyRefusal, shown
from sfumato.core.facts import (
    BasketsReleased,
    Chained,
    CountsKept,
    DespitePolicy,
    DomainsObserved,
    Fact,
    Grouped,
    Maintained,
    RareValues,
    Untouched,
)
from sfumato.engines.recipe import Recipe
from sfumato.publish.policy import BUILT_IN, PURPOSES, USUAL, Policy, what_to_try
from sfumato.publish.stakes import CONFIDENCE, LEAST_HELD_OUT, Stake, confidence_of, stakes_of, times_allowed

if TYPE_CHECKING:
    from sfumato.publish.release import Release

__all__ = [
    "CONFIDENCE",
    "LEAST_HELD_OUT",
    "RAREST",
    "Exceeded",
    "Missing",
    "PolicyNotMet",
    "Ruling",
    "Verdict",
    "asked_policy",
    "despite_facts",
    "judge",
    "judge_report",
    "policy_of",
    "refuse_unmet",
]

RAREST, _USUAL_PERSONS = "rarest-category", 10


def judge(
    report: Report, policy: Policy, facts: Sequence[Fact] = (), *, command: Sequence[str] = (), asked: bool = True
) -> Verdict:
    """Verdict of a policy on a release; of limits that are exceeded the worst stands first, beside what it allows.

    *Does not meet* where a limit is exceeded or a requirement not met, else *cannot tell* where something lacks, else
    *meets*. ``facts`` are empty where they are not known, as of a table of another tool; ``command`` are the words that
    made or measured the table, for what to try next. ``asked`` is false where the owner named no policy.
    """
    stakes, missing = stakes_of(report, policy)
    exceeded, unsure = _limits(stakes, policy)
    unmet, unknown = _requirements(report, policy, facts)
    missing = sorted([*unsure, *missing, *unknown], key=lambda each: not each.needed)
    found = (*sorted(exceeded, key=_severity, reverse=True), *unmet)
    outcome = Ruling.MEETS
    if found:
        outcome = Ruling.DOES_NOT_MEET
    elif any(each.needed for each in missing):
        outcome = Ruling.CANNOT_TELL
    return Verdict(
        policy.name,
        outcome,
        found,
        tuple(missing),
        ()
        if outcome is Ruling.MEETS
        else what_to_try(report, policy, facts, found, unsure=bool(unsure), command=command, asked=asked),
        purpose=PURPOSES.get(policy.title, ""),
        edited=policy.title != policy.name,
        asked=asked,
    )


def _severity(each: Exceeded) -> float:
    return times_allowed(each.limit, float(each.value or 0.0), float(each.allowed))


def _limits(stakes: Sequence[Stake], policy: Policy) -> tuple[list[Exceeded], list[Missing]]:
    """Judge the ends of simultaneous intervals; of each limit the attack that says most."""
    confidence = confidence_of(stakes)
    exceeded: list[Exceeded] = []
    unsure: list[Missing] = []
    for limit, allowed in policy.limits.items():
        judged = [(stake, stake.interval(confidence)) for stake in stakes if stake.limit == limit]
        above = [(stake, ends) for stake, ends in judged if ends[0] > allowed]
        if above:
            stake, ends = max(above, key=lambda each: each[0].value)
            exceeded.append(Exceeded(limit, stake.finding, stake.value, allowed, ends))
            continue
        open_ = [(stake, ends) for stake, ends in judged if ends[1] > allowed and not stake.alone]
        if open_:
            stake, (low, high) = max(open_, key=lambda each: each[1][1])
            between = f"it may be {hundred(max(low, 0.0))} to {hundred(high)} of 100"
            told = f"{between} (measured: {hundred(max(stake.value, 0.0))}), and {hundred(allowed)} are allowed"
            unsure.append(Missing(limit, stake.finding, told))
    return exceeded, unsure


def _requirements(
    report: Report, policy: Policy, facts: Sequence[Fact]
) -> tuple[tuple[Exceeded, ...], tuple[Missing, ...]]:
    """List the requirements that are not met, and those that cannot be told of a table of unknown make."""
    unmet: list[Exceeded] = []
    unknown: list[Missing] = []
    for name, asked in policy.require.items():
        if name == "held_out":
            if asked and not report.rows_held_out:
                unmet.append(Exceeded(name, None, False, True))
        elif name == "persons_per_group" and facts:
            smallest = _smallest_group(facts)
            if smallest is None or smallest < int(asked):
                unmet.append(Exceeded(name, None, smallest, asked))
        elif name == "rare" and (shown := _shows_rare(report, policy, facts)) is not None:
            if shown:
                unmet.append(Exceeded(name, RAREST, "shown", asked))
        else:
            unknown.append(Missing(name, None, "no certificate says how the table was made"))
    return tuple(unmet), tuple(unknown)


def _smallest_group(facts: Sequence[Fact]) -> int | None:
    """Smallest group or leaf by its number of persons; None of a method without them."""
    sizes = [fact.smallest for fact in facts if isinstance(fact, Grouped | Maintained)]
    sizes += [min(fact.smallest) for fact in facts if isinstance(fact, Chained)]
    return min(sizes) if sizes else None


def _shows_rare(report: Report, policy: Policy, facts: Sequence[Fact]) -> bool | None:
    """Whether a category that fewer people have than a group must shows in the release; None where nobody knows.

    It is hidden where no category leaves as it is, whatever stands in the table, where as many persons were counted for
    each before anything was drawn, and where the rarest that does is held by enough people.
    """
    as_they_are = any(
        isinstance(fact, BasketsReleased | DomainsObserved)
        or (isinstance(fact, CountsKept | Maintained | Untouched) and fact.category_columns > 0)
        for fact in facts
    )
    least = int(policy.require.get("persons_per_group", _USUAL_PERSONS))
    counted = any(isinstance(fact, RareValues) and not fact.shown and fact.k >= least for fact in facts)
    if facts and (counted or not as_they_are):
        return False
    rarest = next((finding for finding in report.findings if finding.name == RAREST), None)
    if rarest is None or (rarest.value is None and rarest.applies):
        return True if facts else None
    return rarest.value is not None and rarest.value < least


# ------------------------------------------------------------------------------------------- before anything is written


class PolicyNotMet(PrivacyRefusal):
    """A release was not found to meet its policy, so nothing leaves; what the owner keeps of it can be saved."""

    def __init__(self, release: Release) -> None:
        assert release.report is not None
        assert release.report.verdict is not None
        self.verdict: Verdict = release.report.verdict
        self.report: Report = release.report
        self._kept = dataclasses.replace(release, table=None, workings=None)
        super().__init__(
            f"{self.verdict.clause}, for {self.verdict.reasons[0]}; nothing leaves, the owner's report says what to "
            "try, and --despite-policy releases it all the same and says so"
        )

    def save_owner(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write ``owner/`` alone: the report with the verdict, the recipe and the schema."""
        return self._kept.save_owner(folder, overwrite=overwrite)


def policy_of(recipe: Recipe) -> str | None:
    """Policy that a recipe was judged by; one that is built in is known by its name."""
    if recipe.policy is not None and recipe.policy not in BUILT_IN:
        words = f"the recipe was judged by the policy {shown(recipe.policy)}"
        raise OptionError(f"{words}; name its file with --policy")
    return recipe.policy


def asked_policy(policy: Policy | str | Path | None, *, report: bool = True, despite: bool = False) -> Policy | None:
    """Policy that a run is to be judged by, read before the work is done.

    Raises
    ------
    OptionError
        Where there is no such policy, or nothing is measured that it could judge.
    """
    if policy is None:
        if despite:
            raise OptionError("--despite-policy releases what a policy refuses; name the policy with --policy")
        return None
    if not report:
        raise OptionError("a policy judges what is measured; leave out --no-report, or the policy")
    return Policy.load(policy)


def judge_report(
    report: Report | None, facts: Sequence[Fact], policy: Policy | None, *, command: Sequence[str] = ()
) -> Report:
    """Report with the verdict of a policy on it; of the usual one where none was asked for, which refuses nothing.

    Raises
    ------
    PrivacyRefusal
        Where nothing was measured.
    """
    if report is None:
        raise PrivacyRefusal("nothing was measured that a policy could judge, so nothing leaves; leave the policy out")
    asked = policy is not None
    verdict = judge(report, policy or BUILT_IN[USUAL], facts, command=command, asked=asked)
    return dataclasses.replace(report, verdict=verdict)


def despite_facts(report: Report | None, *, despite: bool) -> tuple[Fact, ...]:
    """What the certificate must say of a release that leaves although it was not found to meet its policy."""
    verdict = None if report is None else report.verdict
    if verdict is None or not verdict.refuses or not despite:
        return ()
    return (DespitePolicy(verdict.title, verdict.outcome.value),)


def refuse_unmet(release: Release, *, despite: bool) -> Release:
    """The release, if it meets its policy, was asked to meet none, or is let go despite it.

    Raises
    ------
    PolicyNotMet
        Else.
    """
    verdict = None if release.report is None else release.report.verdict
    if verdict is None or not verdict.refuses or despite:
        return release
    raise PolicyNotMet(release)
