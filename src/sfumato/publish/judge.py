"""The judge: applies a policy to a report and to the facts of a release.

An excess is the success of an attack on members minus its success on the control group; membership attacks are judged
by their scores. Every excess and score has an interval, and all intervals of a verdict hold simultaneously with 95 %
(Bonferroni: each with confidence 1 - 0.05 / m for m intervals). A share has Clopper and Pearson's exact limits, a
difference of two shares those of `sfumato.assess.findings.difference_interval`. The interval of the largest of several
attacks goes from their largest lower end to their largest upper end.

Record linkage to one's own row has no control group, because held-out people have no row in the release: its excess is
measured against guessing one row at random, which is exact. The excess of an attacker who knows a few rows of a table
that a key moved is measured against guessing the mean of each column.

Singling out is one attack with two kinds of descriptions, by one column and by several. Both are pooled, because one
kind may have too few attempts to decide; a kind that alone is above the limit still exceeds it. Extreme values are
tried on a few redraws of the table: they may exceed that limit too, but never leave it inconclusive.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.assess.audit.few_shadows import STRICTER
from sfumato.assess.findings import Finding, Tries, difference_interval, exact_interval
from sfumato.assess.report import ExceededLimit, LimitResult, Report, Ruling, UndecidedLimit, Verdict
from sfumato.assess.verdict import FAMILIES
from sfumato.core.distributions.amplification import membership_bounds, rho_of
from sfumato.core.errors import OptionError, PrivacyRefusal, shown
from sfumato.core.facts import Context, DespitePolicy, Fact
from sfumato.engines.outcome import Recipe
from sfumato.methods.private.facts import PrivatelyMeasured
from sfumato.methods.protocol import OwnerDetails
from sfumato.publish.policy import BUILT_IN, PURPOSES, USUAL, Policy, proof_to_try, what_to_try
from sfumato.tables.facts import RareValues, TailsCoded

if TYPE_CHECKING:
    from sfumato.publish.release import Release

__all__ = [
    "CONFIDENCE",
    "ERROR",
    "EXTREMES",
    "FAMILIES",
    "LEAST_HELD_OUT",
    "RAREST",
    "TPR",
    "ExceededLimit",
    "PolicyNotMet",
    "Ruling",
    "UndecidedLimit",
    "Verdict",
    "asked_policy",
    "confidence_of",
    "despite_facts",
    "judge",
    "judge_proof",
    "judge_report",
    "limit_checks",
    "policy_of",
    "refuse_unmet",
    "times_allowed",
]

CONFIDENCE = 0.95
"""Of all intervals of a verdict together."""

ERROR = 0.025
"""Chance that an interval of a shadow audit is wrong, all together and over all looks."""

LEAST_HELD_OUT = 1_000
"""Smallest control group for membership inference at 1 % FPR."""

_SHADOW = "shadow-"
_OWN_ROW = "own-row-linkage-"
_KNOWN_ROWS = "known-input-recovery"
_SINGLING = "singling-out-"
EXTREMES = "extreme-values-disclosed"
_SCORES = ("membership-auc", "membership-tpr")
TPR = "membership-tpr"
_FALSE_ALARMS, _LEAST_ALLOWED = 0.01, 0.001


@dataclass(frozen=True)
class LimitCheck:
    """One gain or score that is judged, of a finding against a limit, both by name.

    ``outside`` is the control, a number that is exact, or None of a score. One that is judged together with others
    besides stands ``alone``: it may only exceed the limit.
    """

    limit: str
    finding: str
    inside: Tries
    outside: Tries | float | None
    alone: bool = False

    @property
    def against(self) -> float | None:
        """Success on the control group, or the exact number; None of a score."""
        return _share(self.outside) if isinstance(self.outside, Tries) else self.outside

    @property
    def value(self) -> float:
        """The excess, or the score."""
        return _share(self.inside) - (self.against or 0.0)

    def interval(self, confidence: float) -> tuple[float, float]:
        """Where it may lie with this confidence."""
        if isinstance(self.outside, Tries):
            return difference_interval(self.inside, self.outside, confidence)
        low, high = exact_interval(min(self.inside.hits, self.inside.of), self.inside.of, confidence)
        against = 0.0 if self.outside is None else self.outside
        return low - against, high - against


@dataclass(frozen=True)
class AuditedCheck(LimitCheck):
    """An excess or score from shadow releases, with an interval that holds together with all others."""

    ends: tuple[float, float] = (0.0, 1.0)

    def interval(self, confidence: float) -> tuple[float, float]:  # noqa: ARG002
        """Where it may lie; the audit has shared its error out."""
        return self.ends


def confidence_of(checks: Sequence[LimitCheck]) -> float:
    """Confidence of each interval, so that all of them hold together; an audit has its own part of the error."""
    own = [check for check in checks if not isinstance(check, AuditedCheck)]
    error = 1.0 - CONFIDENCE - (ERROR if len(own) < len(checks) else 0.0)
    return 1.0 - error / max(1, len(own))


def times_allowed(limit: str, value: float, allowed: float) -> float:
    """How many times what the policy allows beyond a coin, or beyond the false alarms, was found.

    Examples
    --------
    >>> times_allowed("linkage-excess", 0.1, 0.05), round(times_allowed("membership-auc", 0.6, 0.55), 9)
    (2.0, 2.0)
    """
    nothing = {"membership-auc": 0.5, TPR: _FALSE_ALARMS}.get(limit, 0.0)
    return (value - nothing) / max(allowed - nothing, _LEAST_ALLOWED)


def limit_checks(report: Report, policy: Policy) -> tuple[list[LimitCheck], list[UndecidedLimit]]:
    """List what is judged under each limit, and what lacks."""
    checks: list[LimitCheck] = []
    missing: list[UndecidedLimit] = []
    for limit in policy.limits:
        if limit == TPR and report.rows_held_out < LEAST_HELD_OUT and not is_audited(report):
            held = report.rows_held_out
            hint = f"it needs a control group of {LEAST_HELD_OUT:,} records, and there are {held:,}"
            missing.append(UndecidedLimit(limit, None, hint, needed=set(policy.limits) == {TPR}))
            continue
        here, lacking = _of_limit(limit, report)
        checks += _together(here)
        missing += _merged(lacking)
    return checks, missing


def _merged(missing: Sequence[UndecidedLimit]) -> list[UndecidedLimit]:
    """Say a reason once for all attacks that it keeps from being judged."""
    reasons: dict[str, UndecidedLimit] = {}
    for each in missing:
        known = reasons.get(each.reason)
        reasons[each.reason] = each if known is None else dataclasses.replace(known, finding=None)
    return list(reasons.values())


def is_audited(report: Report) -> bool:
    """Whether shadow releases were attacked."""
    return any(finding.name.startswith(_SHADOW) for finding in report.findings)


def _audited(limit: str, finding: Finding) -> AuditedCheck:
    """What an audit found, as it is judged."""
    assert finding.value is not None
    assert finding.interval is not None
    control = None if limit in _SCORES else finding.control or 0.0
    low, high = (end - (control or 0.0) for end in finding.interval)
    alone = finding.name.startswith(STRICTER)
    return AuditedCheck(limit, finding.name, Tries(finding.value, 1.0), control, alone, ends=(low, high))


def _of_limit(limit: str, report: Report) -> tuple[list[LimitCheck], list[UndecidedLimit]]:
    family = [finding for finding in report.findings if FAMILIES[limit](finding.name)]
    shadows = [finding for finding in family if finding.name.startswith(_SHADOW)]
    if shadows:  # of other attacks those that need no control group
        found = [_audited(limit, finding) for finding in shadows if finding.value is not None]
        exact = tuple(each for each in family if each.name.startswith((_OWN_ROW, _KNOWN_ROWS, EXTREMES)))
        others, unknown = _of_limit(limit, dataclasses.replace(report, findings=exact))
        return [*found, *others], [each for each in unknown if each.finding is not None]
    if limit == "attribute-excess":  # one finding a column; those of a whole attacker say why there is none
        known = [finding for finding in family if finding.name == _KNOWN_ROWS]
        columns = [finding for finding in family if "/" in finding.name]
        family = known + (columns or [each for each in family if each.value is None and each not in known])
    checks: list[LimitCheck] = []
    missing: list[UndecidedLimit] = []
    for finding in family:
        if finding.value is None:
            if finding.applies and finding.name != EXTREMES:
                missing.append(UndecidedLimit(limit, finding.name, f"the attack was not run ({finding.reason})"))
            continue
        outside: Tries | float | None = finding.outside
        if limit in _SCORES:
            outside = None
        elif finding.name.startswith(_OWN_ROW) or finding.name == _KNOWN_ROWS:
            outside = finding.baseline
        if finding.inside is None or not finding.inside.of:
            missing.append(UndecidedLimit(limit, finding.name, "the number of attempts was not recorded"))
        elif outside is None and limit not in _SCORES:
            lacking = "no held-out record could be attacked" if report.rows_held_out else "there is no control group"
            missing.append(UndecidedLimit(limit, finding.name, lacking))
        else:
            checks.append(LimitCheck(limit, finding.name, finding.inside, outside, alone=finding.name == EXTREMES))
    if not missing and all(check.alone for check in checks):
        missing.append(UndecidedLimit(limit, None, "none of its attacks applies to this table"))
    return checks, missing


def _together(checks: Sequence[LimitCheck]) -> list[LimitCheck]:
    """Take the two kinds of singling out together; each may still exceed the limit by itself."""
    kinds = [check for check in checks if check.finding.startswith(_SINGLING)]
    if len(kinds) < 2:
        return list(checks)
    first, *others = kinds
    leading = max(kinds, key=lambda check: check.value).finding
    whole = LimitCheck(first.limit, leading, first.inside, first.outside)
    for other in others:
        assert isinstance(whole.outside, Tries)
        assert isinstance(other.outside, Tries)
        whole = LimitCheck(first.limit, leading, _sum(whole.inside, other.inside), _sum(whole.outside, other.outside))
    rest = [check for check in checks if check not in kinds]
    return [*rest, whole, *(dataclasses.replace(check, alone=True) for check in kinds)]


def _sum(one: Tries, other: Tries) -> Tries:
    return Tries(one.hits + other.hits, one.of + other.of, max(one.times, other.times))


def _share(tries: Tries) -> float:
    return min(1.0, tries.times * tries.hits / tries.of)


RAREST, _USUAL_PERSONS = "rarest-category", 10
_CONTROL = "name a policy to attack shadow releases, or hold out records"


def judge(
    report: Report, policy: Policy, facts: Sequence[Fact] = (), *, command: Sequence[str] = (), asked: bool = True
) -> Verdict:
    """Verdict of a policy on a release; of limits that are exceeded the worst stands first, beside what it allows.

    *Does not meet* where a limit is exceeded or a requirement not met, else *cannot tell* where something lacks, else
    *meets*. ``facts`` are empty if they are not known, as of a table of another tool; ``command`` are the words that
    made or measured the table, for what to try next. ``asked`` is false where the owner named no policy.
    """
    proved = next((fact for fact in facts if isinstance(fact, PrivatelyMeasured)), None)
    if proved is not None:
        return judge_proof(policy, proved.epsilon, proved.delta, command=command, asked=asked)
    checks, missing = limit_checks(report, policy)
    results = _results(checks, policy)
    exceeded, unsure = _exceeded(results), _undecided(results)
    unmet, unknown = _requirements(report, policy, facts, asked=asked)
    missing = sorted([*unsure, *missing, *unknown], key=lambda each: (not each.needed, each.limit != "control"))
    exceeded.sort(key=lambda each: -times_allowed(each.limit, float(each.value or 0.0), float(each.allowed)))
    found = (*exceeded, *unmet)
    outcome, to_try = Ruling.MEETS, tuple[str, ...]()
    if found or any(each.needed for each in missing):
        outcome = Ruling.DOES_NOT_MEET if found else Ruling.INCONCLUSIVE
        to_try = what_to_try(report, policy, facts, found, unsure=bool(unsure), command=command, asked=asked)
    return Verdict(
        policy.name,
        outcome,
        found,
        tuple(missing),
        to_try,
        purpose=PURPOSES.get(policy.title, ""),
        edited=policy.title != policy.name,
        asked=asked,
        limits=results,
        shadows=report.sizes.get("shadow_releases"),
        shadows_needed=report.sizes.get("shadow_releases_needed"),
        people_needed=report.sizes.get("people_needed"),
    )


def judge_proof(
    policy: Policy, epsilon: float, delta: float, *, command: Sequence[str] = (), asked: bool = True
) -> Verdict:
    """Verdict of a policy on a proof of differential privacy; no measured figure has a part in it.

    The policy's section on proofs decides, or its limits if the proof bounds all of them and nothing else is required.
    """
    stated = {"epsilon": epsilon, "delta": delta}
    exceeded = [
        ExceededLimit(name, None, stated[name], allowed)
        for name, allowed in policy.proof.items()
        if stated[name] > allowed
    ]
    missing: list[UndecidedLimit] = []
    if exceeded or not policy.proof:
        rates = (rate + 2 * delta for rate in membership_bounds(rho_of(epsilon, delta)))  # of thresholds, too
        bounds = dict(zip(_SCORES, rates, strict=True))
        required = [name for name, value in policy.require.items() if value is not False]
        open_limits = [name for name, allowed in policy.limits.items() if bounds.get(name, 1.0) > allowed]
        missing = [UndecidedLimit(name, None, "the proof does not bound it") for name in (*open_limits, *required)]
        exceeded = exceeded if missing else []
    outcome = Ruling.DOES_NOT_MEET if exceeded else Ruling.INCONCLUSIVE if missing else Ruling.MEETS
    to_try: tuple[str, ...] = ()
    if exceeded:
        missing = []
        to_try = proof_to_try(policy, command)
    return Verdict(
        policy.name,
        outcome,
        tuple(exceeded),
        tuple(missing),
        to_try,
        purpose=PURPOSES.get(policy.title, ""),
        edited=policy.title != policy.name,
        by="proof",
        asked=asked,
    )


def _results(checks: Sequence[LimitCheck], policy: Policy) -> tuple[LimitResult, ...]:
    """Compare the ends of simultaneous intervals with each limit; of its attacks the one that decides.

    That is the largest excess above the limit, else the largest upper end.
    """
    confidence = confidence_of(checks)
    results = []
    for limit, allowed in policy.limits.items():
        judged = [(check, check.interval(confidence)) for check in checks if check.limit == limit]
        above = [(check, ends) for check, ends in judged if ends[0] > allowed]
        deciding = [(check, ends) for check, ends in judged if not check.alone]
        if above:
            check, ends = max(above, key=lambda each: each[0].value)
            outcome = Ruling.DOES_NOT_MEET
        elif deciding:
            check, ends = max(deciding, key=lambda each: each[1][1])
            outcome = Ruling.INCONCLUSIVE if ends[1] > allowed else Ruling.MEETS
        else:
            continue
        members, control = _share(check.inside), check.against
        results.append(LimitResult(limit, check.finding, members, control, check.value, ends, allowed, outcome))
    return tuple(results)


def _exceeded(results: Sequence[LimitResult]) -> list[ExceededLimit]:
    return [
        ExceededLimit(each.limit, each.finding, each.value, each.allowed, each.interval)
        for each in results
        if each.outcome is Ruling.DOES_NOT_MEET
    ]


def _undecided(results: Sequence[LimitResult]) -> list[UndecidedLimit]:
    contains = "the confidence interval contains the limit"
    return [
        UndecidedLimit(
            each.limit, each.finding, contains, value=each.value, interval=each.interval, allowed=each.allowed
        )
        for each in results
        if each.outcome is Ruling.INCONCLUSIVE
    ]


def _requirements(
    report: Report, policy: Policy, facts: Sequence[Fact], *, asked: bool
) -> tuple[tuple[ExceededLimit, ...], tuple[UndecidedLimit, ...]]:
    """List the requirements that are not met, and those that are unknown.

    They are unknown for a table of another tool. If no policy was named, nobody decided against a control group.
    """
    unmet: list[ExceededLimit] = []
    unknown: list[UndecidedLimit] = []
    for name, required in policy.require.items():
        if name == "control":
            if required and not report.rows_held_out and not is_audited(report):
                if asked:
                    unmet.append(ExceededLimit(name, None, False, True))
                else:
                    unknown.append(UndecidedLimit(name, None, _CONTROL))
        elif name == "min_group_size" and facts:
            smallest = _smallest_group(facts)
            if smallest is None or smallest < int(required):
                unmet.append(ExceededLimit(name, None, smallest, required))
        elif name == "rare" and (shown := _shows_rare(report, policy, facts)) is not None:
            if shown:
                unmet.append(ExceededLimit(name, RAREST, "shown", required))
        elif name == "tails" and facts:
            if _shows_tails(report, policy, facts):
                unmet.append(ExceededLimit(name, EXTREMES, "shown", required))
        else:
            unknown.append(UndecidedLimit(name, None, "there is no certificate of the method"))
    return tuple(unmet), tuple(unknown)


def _smallest_group(facts: Sequence[Fact]) -> int | None:
    """Smallest group or leaf by its number of persons; None of a method without them."""
    return min((fact.group_sizes.smallest for fact in facts if fact.group_sizes is not None), default=None)


def _shows_rare(report: Report, policy: Policy, facts: Sequence[Fact]) -> bool | None:
    """Whether a category that fewer people have than a group must shows in the release; None if no one knows.

    It is hidden where no category leaves as it is, whatever stands in the table, where as many persons were counted for
    each before anything was drawn, and where the rarest that does is held by enough people.
    """
    as_they_are = any(fact.shows_categories for fact in facts)
    least = int(policy.require.get("min_group_size", _USUAL_PERSONS))
    counted = any(isinstance(fact, RareValues) and not fact.shown and fact.k >= least for fact in facts)
    if facts and (counted or not as_they_are):
        return False
    rarest = next((finding for finding in report.findings if finding.name == RAREST), None)
    if rarest is None or (rarest.value is None and rarest.applies):
        return True if facts else None
    return rarest.value is not None and rarest.value < least


def _shows_tails(report: Report, policy: Policy, facts: Sequence[Fact]) -> bool:
    """Whether a number or date beyond a cut-off of enough people may show in the release.

    Methods that make synthetic rows state how the ends of columns were treated, if there are numbers or dates. Another
    method hides them only if there are none, which the attack by extreme values knows.
    """
    least = min(int(policy.require.get("min_group_size", _USUAL_PERSONS)), _USUAL_PERSONS)
    treated = [fact for fact in facts if isinstance(fact, TailsCoded)]
    if treated:
        return any(fact.method == "keep" or fact.k < least for fact in treated)
    if any(fact.synthetic for fact in facts) or Context(tuple(facts)).has("transactions-released"):
        return False
    extremes = next((finding for finding in report.findings if finding.name == EXTREMES), None)
    return extremes is None or extremes.applies


# ------------------------------------------------------------------------------------------- before anything is written


class PolicyNotMet(PrivacyRefusal):
    """A release was not found to meet its policy, or cannot meet it whatever the table holds; nothing is released.

    ``report`` is None if the run was refused before it started. Otherwise the owner's part can be saved.
    """

    def __init__(self, verdict: Verdict, message: str, release: Release | None = None) -> None:
        self.verdict = verdict
        self.report: Report | None = None if release is None else release.report
        self.dropped = {} if release is None else release.dropped
        self._kept = None if release is None else dataclasses.replace(release, table=None, workings=OwnerDetails())
        super().__init__(message)

    def save_owner(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write ``owner/`` alone: the report with the verdict, the recipe and the schema."""
        if self._kept is None:
            raise OptionError("the run was refused before anything was measured, so there is nothing to save")
        return self._kept.save_owner(folder, overwrite=overwrite)


def _lower_first(text: str) -> str:
    return f"{text[:1].lower()}{text[1:]}"


def policy_of(recipe: Recipe | None) -> str | None:
    """Policy that a recipe was judged by; one that is built in is known by its name."""
    if recipe is None:
        return None
    if recipe.policy is not None and recipe.policy not in BUILT_IN:
        words = f"the recipe uses the policy {shown(recipe.policy)}, which is not built in"
        raise OptionError(f"{words}; name its file with --policy")
    return recipe.policy


def asked_policy(policy: Policy | str | Path | None, *, report: bool = True, despite: bool = False) -> Policy | None:
    """Policy that a run is to be judged by, read before the work is done.

    Raises
    ------
    OptionError
        If there is no such policy, or nothing is measured that it could judge.
    """
    if policy is None:
        if despite:
            raise OptionError("--despite-policy has no effect without a policy; name one with --policy")
        return None
    if not report:
        raise OptionError("--policy needs the report; drop --no-report or --policy")
    return Policy.load(policy)


def judge_report(
    report: Report | None, facts: Sequence[Fact], policy: Policy | None, *, command: Sequence[str] = ()
) -> Report:
    """Report with the verdict of a policy on it; of the usual one where none was asked for, which refuses nothing.

    Raises
    ------
    PrivacyRefusal
        If nothing was measured.
    """
    if report is None:
        raise PrivacyRefusal(
            "nothing was measured, so the policy cannot be checked and nothing was released; drop --policy"
        )
    asked = policy is not None
    verdict = judge(report, policy or BUILT_IN[USUAL], facts, command=command, asked=asked)
    return dataclasses.replace(report, verdict=verdict)


def despite_facts(report: Report | None, *, despite: bool) -> tuple[Fact, ...]:
    """What the certificate must say of a release that leaves although it was not found to meet its policy."""
    if report is None or report.verdict is None or not report.verdict.refuses or not despite:
        return ()
    return (DespitePolicy(report.verdict.title, report.verdict.outcome.value),)


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
    raise PolicyNotMet(
        verdict,
        f"{verdict.clause}: {_lower_first(verdict.reasons[0])}. Nothing was released; see what to change in the "
        "owner's report, or release it anyway with --despite-policy, which the certificate records",
        release,
    )
