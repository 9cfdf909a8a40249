"""The shadow audit: the method is run again on most of the people, and everybody is attacked as member and as control.

The plan of the release is kept as it is, so that shadow releases differ in the people and in the draws alone.
"""

from __future__ import annotations

import math
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sfumato.assess.algebra import Values
from sfumato.assess.audit.attacks import EXPOSED, SHADOWS, AttackedPeople, shadow_findings
from sfumato.assess.audit.exposure import exposure_findings
from sfumato.assess.audit.few_shadows import FEW, STRICTER
from sfumato.assess.audit.intervals import (
    MEMBERS,
    PILOT,
    Estimate,
    RateSeries,
    Series,
    error_of_look,
    inflation,
    is_look,
)
from sfumato.assess.audit.likelihood import LikelihoodSeries, empirical_epsilon
from sfumato.assess.findings import Finding
from sfumato.assess.verdict import FAMILIES
from sfumato.core.arrays import Bools
from sfumato.core.errors import SfumatoError
from sfumato.core.progress import listening, tell
from sfumato.core.threads import one_thread
from sfumato.engines.memory import ResolvedRun
from sfumato.methods.protocol import Mechanism
from sfumato.publish.judge import ERROR
from sfumato.publish.policy import Policy
from sfumato.tables.recoding import column_and_level

__all__ = [
    "FEWEST_PEOPLE",
    "MOST_ROWS",
    "ShadowAudit",
    "audit",
    "can_be_audited",
    "draw_members",
    "out_of_reach",
    "shadows_needed",
]

FEWEST_PEOPLE, MOST_ROWS = 200, 100_000
"""People and rows between which a table is audited; of more rows a hold-out set costs next to nothing."""

_SECONDS = 60.0  # of CPU time, without a time limit
_ENDLESS = 1_000  # times as many releases as there were, if an estimate is at its limit
_OF_FEW = 0.2  # of the error of a limit
_DELTA = 1e-5
_LUCK = 2.0  # standard errors
_STAGE = "shadow releases"


@dataclass(frozen=True)
class ShadowAudit:
    """What came of an audit: findings with intervals, from how many releases, and how many would decide."""

    findings: tuple[Finding, ...]
    releases: int
    seconds: float  # of CPU time
    needed: int | None = None  # releases that would decide every limit, if some are open
    people_needed: int | None = None  # with whom the releases that there is time for would decide them
    reason: str = ""  # why it was not run


def can_be_audited(mechanism: Mechanism) -> bool:
    """Whether a method is judged on shadow releases: it proves nothing and has no control group of its own."""
    return not (mechanism.traits.declared or mechanism.traits.control)


Watch = Callable[[pa.Table, Bools], None]
"""Is given each shadow release and which rows of the original were in it."""


def draw_members(persons: int, rng: np.random.Generator) -> Bools:
    """Who is in a shadow release: each person with the same probability, independently."""
    return np.asarray(rng.random(persons) < MEMBERS)


def audit(
    run: ResolvedRun,
    policy: Policy,
    rng: np.random.Generator,
    *,
    coins: np.random.Generator | None = None,
    time_limit: float | None = None,
    most: int | None = None,
    number: int | None = None,
    watch: Watch | None = None,
    declared: Sequence[str] = (),
) -> ShadowAudit:
    """Release most of the people again and again, and attack all of them, until the limits are decided.

    Without a time limit it stops after a minute of CPU time, and in any case after ``most`` counted releases. With a
    ``number`` it counts that many releases, decided or not, and only a time limit stops it earlier. Members are drawn
    from ``coins``, so that audits of several methods can have the same. ``declared`` are the columns that the owner
    says an outsider knows.
    """
    begin, wall = time.process_time(), time.monotonic()
    known = [column_and_level(each, run.job.codec.schema.names)[0] for each in declared]
    people = AttackedPeople.of(run.job.original, run.job.codec, run.job.records.persons, known)
    if people.persons < FEWEST_PEOPLE:
        return ShadowAudit((), 0, 0.0, reason=f"fewer than {FEWEST_PEOPLE} people are too few for shadow releases")
    series = {
        name: each
        for name, each in people.series().items()
        if _limit_of(name, policy) is not None or name.startswith(EXPOSED)
    }
    parts = _error_parts(series, policy)
    looks = 0
    estimates: dict[str, Estimate] = {}

    def spent() -> float:
        if time_limit is not None:
            return (time.monotonic() - wall) / time_limit
        return (time.process_time() - begin) / _SECONDS if number is None else 0.0

    with one_thread(), warnings.catch_warnings(action="ignore"):
        turn = 0
        while True:
            try:
                with listening(None):
                    member = draw_members(people.persons, rng if coins is None else coins)
                    released = _attack(
                        run, people, series, member, rng, count=turn >= PILOT, few=0 <= turn - PILOT < FEW
                    )
            except SfumatoError as refused:
                reason = (
                    f"the method refuses a release without {1.0 - MEMBERS:.0%} of the people ({type(refused).__name__})"
                )
                return ShadowAudit((), 0, time.process_time() - begin, reason=reason)
            if watch is not None:
                watch(released, member[people.whose])
            turn += 1
            counted = turn - PILOT
            late = spent() * (turn + 1) / turn >= 1.0 or counted in (most, number)
            tell(_STAGE, spent() if number is None else max(spent(), turn / (PILOT + number)))
            if counted < 2 or not (late or (number is None and is_look(counted))):
                if late and counted < 2 and spent() >= 1.0:
                    break
                continue
            looks += 1
            for each in series.values():
                each.settle()
            error = error_of_look(looks, ERROR)
            inflated = inflation(series.values())
            estimates = {
                name: each.estimate(error * parts[name], inflated)
                for name, each in series.items()
                if len(each.values) > 1
            }
            if late or (_decided(estimates, policy) and _learned(series, estimates, policy)):
                break
            if looks > 1 and out_of_reach(estimates, policy, counted / max(spent(), 1e-9)):
                break
    tell(_STAGE, 1.0)
    seconds = time.process_time() - begin
    if not estimates:
        return ShadowAudit((), 0, seconds, reason="the time limit was too short for shadow releases")
    counted = turn - PILOT
    affordable = counted / (1.0 if number is not None else min(1.0, max(spent(), 1e-9)))
    return _conclude(series, estimates, policy, counted, seconds, people_per_release=people.persons / affordable)


def _conclude(
    series: Mapping[str, Series],
    estimates: Mapping[str, Estimate],
    policy: Policy,
    counted: int,
    seconds: float,
    *,
    people_per_release: float,
) -> ShadowAudit:
    """Findings of all attacks, and how many releases or people would decide the limits that are open."""
    rates = {name: each for name, each in series.items() if isinstance(each, RateSeries)}
    findings = (*shadow_findings(estimates), *_epsilon(series), *exposure_findings(rates))
    needed = shadows_needed(estimates, policy, counted)
    if needed is None or needed >= _ENDLESS * counted:
        return ShadowAudit(findings, counted, seconds, needed)
    return ShadowAudit(findings, counted, seconds, needed, _rounded_up(people_per_release * needed))


def _rounded_up(number: float) -> int:
    """Two digits of a number, no smaller than it."""
    step = int(10.0 ** max(0, math.floor(math.log10(max(1.0, number))) - 1))
    return math.ceil(number / step) * step


def _error_parts(series: Iterable[str], policy: Policy) -> dict[str, float]:
    """Part of the error of each attack: the same for each limit, a fifth of it for attacks that can only exceed it."""
    kinds = Counter((_limit_of(name, policy), name.startswith(STRICTER)) for name in series)
    limits = {limit for limit, _ in kinds}
    return {
        name: (_OF_FEW if name.startswith(STRICTER) else 1.0 - _OF_FEW)
        / (len(limits) * kinds[_limit_of(name, policy), name.startswith(STRICTER)])
        for name in series
    }


def _learned(series: Mapping[str, Series], estimates: Mapping[str, Estimate], policy: Policy) -> bool:
    """Whether an attack exceeds its limit, or those that learn from shadow releases have learned from enough."""
    if any(each.table[0] > policy.limits[limit] for limit, each in _by_limit(estimates, policy)):
        return True
    return all(name in estimates for name, each in series.items() if isinstance(each, LikelihoodSeries))


def _epsilon(series: Mapping[str, Series]) -> tuple[Finding, ...]:
    """What the attack on the most exposed people shows of epsilon."""
    exposed = series.get(f"{EXPOSED}auc")
    if not isinstance(exposed, LikelihoodSeries) or not len(exposed.scores):
        return ()
    value = empirical_epsilon(exposed.scores, exposed.member, delta=_DELTA)
    return tuple(SHADOWS.findings([(f"{EXPOSED}epsilon", Values(value, attempts=exposed.controls))]))


def _attack(
    run: ResolvedRun,
    people: AttackedPeople,
    series: Mapping[str, Series],
    member: Bools,
    rng: np.random.Generator,
    *,
    count: bool,
    few: bool,
) -> pa.Table:
    """One shadow release, attacked by everything; by what costs much only if it is one of ``few``."""
    released = run.shadow(np.flatnonzero(member[people.whose]), rng)
    for name, rows, score in people.attack(released, people.attacked(member, rng), rng, all_of_them=few):
        if name in series:
            whose = people.whose[rows]
            inside = member[whose]
            if inside.any() and not inside.all():
                series[name].add(whose, inside, score, count=count)
    return released


def _limit_of(name: str, policy: Policy) -> str | None:
    return next((limit for limit in policy.limits if FAMILIES[limit](name)), None)


def _decided(estimates: Mapping[str, Estimate], policy: Policy) -> bool:
    """Whether some attack exceeds its limit, or every limit is kept by all attacks that can keep it open."""
    if any(each.table[0] > policy.limits[limit] for limit, each in _by_limit(estimates, policy)):
        return True
    return all(each.table[1] <= policy.limits[limit] for limit, each in _deciding(estimates, policy))


def out_of_reach(estimates: Mapping[str, Estimate], policy: Policy, affordable: float) -> bool:
    """Whether some limit would stay open after all releases that there is time for, even if its estimate is in luck.

    Luck moves an estimate away from its limit by `_LUCK` standard errors; a limit that is likely to be found exceeded
    decides alone.
    """
    open_ones = []
    for limit, each in _deciding(estimates, policy):
        allowed, (low, high) = policy.limits[limit], each.table
        if low <= allowed < high:
            luck = _LUCK * each.spread / math.sqrt(each.releases)
            open_ones.append((each.value > allowed, each.releases_needed(allowed, luck) or math.inf))
    return any(needed > affordable for _, needed in open_ones) and not any(
        above and needed <= affordable for above, needed in open_ones
    )


def shadows_needed(estimates: Mapping[str, Estimate], policy: Policy, counted: int) -> int | None:
    """Releases after which all limits would be decided; None if they are."""
    if _decided(estimates, policy):
        return None
    return max(
        each.releases_needed(policy.limits[limit]) or _ENDLESS * counted
        for limit, each in _deciding(estimates, policy)
        if each.table[1] > policy.limits[limit]
    )


def _deciding(estimates: Mapping[str, Estimate], policy: Policy) -> list[tuple[str, Estimate]]:
    return _by_limit({name: each for name, each in estimates.items() if not name.startswith(STRICTER)}, policy)


def _by_limit(estimates: Mapping[str, Estimate], policy: Policy) -> list[tuple[str, Estimate]]:
    return [(limit, each) for name, each in estimates.items() if (limit := _limit_of(name, policy)) is not None]
