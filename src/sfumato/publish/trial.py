"""One way to sanitize a table, tried: what a policy says to it, how near it comes, and whether another run would pass.

Nothing but what the policy judges is measured, and nothing is written. The judge is the one of every release.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from time import perf_counter

import pyarrow as pa

from sfumato.assess.algebra import Measure, run_measure
from sfumato.assess.findings import Finding
from sfumato.assess.measure import basic, catalogue
from sfumato.assess.report import Exceeded, Report, Ruling, Verdict
from sfumato.assess.study import Study, study_of
from sfumato.core.documents import plain
from sfumato.core.facts import Fact
from sfumato.core.progress import tell
from sfumato.core.threads import one_thread
from sfumato.engines.memory import run_in_memory
from sfumato.engines.outcome import Comparison
from sfumato.engines.plan import Plan
from sfumato.publish.judge import RAREST, judge
from sfumato.publish.policy import Policy
from sfumato.publish.stakes import FAMILIES, confidence_of, stakes_of, times_allowed
from sfumato.tables.coarsened import known_of

__all__ = ["SURE", "End", "Outlook", "Tried", "chance_of", "judged_measures", "outlook", "try_plan"]

_STAGE = "trying"
SURE = 0.95
"""Chance of another run to meet a policy, from which a setting is recommended: more than the 9 of 10 that are promised,
for what was chosen by it is flattered a little."""

_SPREAD = 1.0
"""How far the largest upper end of a limit moves from one run to another, in standard errors of a gain. On Magic chains
of leaves of 100 had a mean upper end of 0.042 and 24 of 28 runs met the limit of 0.05, at a standard error of 0.008."""


@dataclass(frozen=True)
class End:
    """The attack of a limit whose upper end is the largest: that end, the gain or score, and its standard error."""

    high: float
    value: float
    error: float


@dataclass(frozen=True)
class Outlook:
    """How near a release comes to what a policy allows.

    ``leak`` is the worst gain or score as a multiple of what is allowed, 1 at the limit; ``worst`` says which it is,
    with where it may lie; ``chance`` is that of another run, with other people held out and other draws, to meet it.
    """

    leak: float
    worst: Exceeded | None
    chance: float
    ends: Mapping[str, End]  # of every limit the attack that comes nearest to it


@dataclass(frozen=True, eq=False, repr=False)
class Tried:
    """What came of one way to sanitize, as far as a policy judges it; for the owner."""

    verdict: Verdict
    outlook: Outlook
    report: Report
    study: Study
    seconds: float

    @property
    def meets(self) -> bool:
        """Whether the judge says so."""
        return self.verdict.outcome is Ruling.MEETS


def judged_measures(policy: Policy) -> tuple[Measure, ...]:
    """Measures and attacks that a policy looks at, in the order of a report."""
    families = [FAMILIES[limit] for limit in policy.limits]

    def looked_at(measure: Measure) -> bool:
        names = [number.name for number in measure.numbers]
        return RAREST in names or any(family(name.rstrip("/")) for family in families for name in names)

    return tuple(measure for measure in (*basic(), *catalogue()) if looked_at(measure))


def try_plan(arrow: pa.Table, plan: Plan, policy: Policy, known: Sequence[str] = ()) -> Tried:
    """Sanitize a table in memory, attack what comes out, also with the columns that an outsider knows, and judge it."""
    begin = perf_counter()
    outcome = run_in_memory(arrow, plan)
    compared = outcome.comparison
    assert isinstance(compared, Comparison)
    study = study_of(
        compared.original,
        compared.released,
        compared.codec,
        facts=outcome.facts,
        workings=outcome.compared_workings,
        records=compared.records,
        holdout=compared.outside,
        judged=True,
        known=known_of(known, compared.codec.schema),
        rng=plan.randomness.generator("assess"),
    )
    import sklearn.ensemble  # noqa: F401 - a pool of threads can be held once it is loaded

    findings: list[Finding] = []
    measures = judged_measures(policy)
    with one_thread():
        for place, each in enumerate(measures, start=1):
            findings.extend(run_measure(each, study))
            tell(_STAGE, place / len(measures))
    held = 0 if study.holdout is None else len(study.holdout)
    report = Report(
        tuple(findings), (), len(study.original), len(study.released), plain(study.sizes), rows_held_out=held
    )
    verdict = judge(report, policy, outcome.facts)
    return Tried(verdict, outlook(report, policy, outcome.facts), report, study, perf_counter() - begin)


def outlook(report: Report, policy: Policy, facts: Sequence[Fact]) -> Outlook:
    """How near a release comes to what a policy allows, and the chance that another run meets it.

    Another run holds other people out and draws anew: the largest upper end of a limit's attacks then lies about the
    one that was found. Measured over runs it is spread by about `_SPREAD` standard errors of the gain, both runs
    together; limits are taken as independent of one another.
    """
    stakes, missing = stakes_of(report, policy)
    confidence = confidence_of(stakes)
    reach = NormalDist().inv_cdf((1.0 + confidence) / 2)
    worst, leak = None, 0.0
    ends: dict[str, End] = {}
    for stake in stakes:
        allowed, (low, high) = policy.limits[stake.limit], stake.interval(confidence)
        times = times_allowed(stake.limit, stake.value, allowed)
        if worst is None or times > leak:
            worst, leak = Exceeded(stake.limit, stake.finding, stake.value, allowed, (low, high)), times
        end = End(low if stake.alone else high, stake.value, max(1e-9, (high - stake.value) / reach))
        ends[stake.limit] = max(ends.get(stake.limit, end), end, key=lambda each: each.high)
    unmet = [each for each in judge(report, policy, facts).exceeded if each.limit not in policy.limits]
    if unmet or any(each.needed for each in missing):
        return Outlook(leak, worst, 0.0, ends)
    return Outlook(leak, worst, chance_of(policy, [ends]), ends)


def chance_of(policy: Policy, runs: Sequence[Mapping[str, End]]) -> float:
    """Chance that another run meets the limits, from what one run or several found.

    Examples
    --------
    >>> policy = Policy("ours", {"linkage-gain": 0.05})
    >>> round(chance_of(policy, [{"linkage-gain": End(0.04, 0.02, 0.01)}]), 2)
    0.84
    """
    chance = 1.0
    for limit in set[str]().union(*runs):
        found = [run[limit] for run in runs if limit in run]
        high, error = (sum(getattr(each, name) for each in found) / len(found) for name in ("high", "error"))
        spread = _SPREAD * error * math.sqrt((1.0 + 1.0 / len(found)) / 2)  # of what was found, and of what comes next
        chance *= NormalDist().cdf((policy.limits[limit] - high) / spread)
    return chance
