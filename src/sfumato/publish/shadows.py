"""The shadow audit: the method is run again on most of the people, and everybody is attacked as member and as control.

The plan of the release is kept as it is, so that shadow releases differ in the people and in the draws alone.
"""

from __future__ import annotations

import math
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sfumato.assess.audit.attacks import AttackedPeople, shadow_findings
from sfumato.assess.audit.intervals import MEMBERS, PILOT, Estimate, Series, error_of_look, inflation, is_look
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

__all__ = ["FEWEST_PEOPLE", "MOST_ROWS", "ShadowAudit", "audit", "can_be_audited", "draw_members", "shadows_needed"]

FEWEST_PEOPLE, MOST_ROWS = 200, 100_000
"""People and rows between which a table is audited; of more rows a hold-out set costs next to nothing."""

_SECONDS = 60.0  # of CPU time, without a time limit
_ENDLESS = 1_000  # times as many releases as there were, if an estimate is at its limit
_LUCK = 2.0  # standard errors
_STAGE = "shadow releases"


@dataclass(frozen=True)
class ShadowAudit:
    """What came of an audit: findings with intervals, from how many releases, and how many would decide."""

    findings: tuple[Finding, ...]
    releases: int
    seconds: float  # of CPU time
    needed: int | None = None  # releases that would decide every limit, if some are open
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
    watch: Watch | None = None,
) -> ShadowAudit:
    """Release most of the people again and again, and attack all of them, until the limits are decided.

    Without a time limit it stops after a minute of CPU time, and in any case after ``most`` counted releases. Members
    are drawn from ``coins``, so that audits of several methods can have the same.
    """
    begin, wall = time.process_time(), time.monotonic()
    people = AttackedPeople.of(run.job.original, run.job.codec, run.job.records.persons)
    if people.persons < FEWEST_PEOPLE:
        return ShadowAudit((), 0, 0.0, reason=f"fewer than {FEWEST_PEOPLE} people are too few for shadow releases")
    series = {name: each for name, each in people.series().items() if _limit_of(name, policy) is not None}
    limits = Counter(_limit_of(name, policy) for name in series)  # each has the same part of the error
    looks = 0
    estimates: dict[str, Estimate] = {}

    def spent() -> float:
        return (
            (time.process_time() - begin) / _SECONDS if time_limit is None else (time.monotonic() - wall) / time_limit
        )

    with one_thread(), warnings.catch_warnings(action="ignore"):
        turn = 0
        while True:
            try:
                with listening(None):
                    member = draw_members(people.persons, rng if coins is None else coins)
                    released = _attack(run, people, series, member, rng, count=turn >= PILOT)
            except SfumatoError as refused:
                reason = (
                    f"the method refuses a release without {1.0 - MEMBERS:.0%} of the people ({type(refused).__name__})"
                )
                return ShadowAudit((), 0, time.process_time() - begin, reason=reason)
            if watch is not None:
                watch(released, member[people.whose])
            turn += 1
            counted = turn - PILOT
            late = spent() * (turn + 1) / turn >= 1.0 or counted == most
            tell(_STAGE, spent())
            if counted < 2 or not (late or is_look(counted)):
                if late and counted < 2 and spent() >= 1.0:
                    break
                continue
            looks += 1
            error = error_of_look(looks, ERROR) / len(limits)
            inflated = inflation(series.values())
            estimates = {
                name: each.estimate(error / limits[_limit_of(name, policy)], inflated)
                for name, each in series.items()
                if each.values
            }
            if late or _decided(estimates, policy):
                break
            if looks > 1 and _out_of_reach(estimates, policy, counted / max(spent(), 1e-9)):
                break
    tell(_STAGE, 1.0)
    if not estimates:
        return ShadowAudit(
            (), 0, time.process_time() - begin, reason="the time limit was too short for shadow releases"
        )
    counted = turn - PILOT
    return ShadowAudit(
        shadow_findings(estimates), counted, time.process_time() - begin, shadows_needed(estimates, policy, counted)
    )


def _attack(
    run: ResolvedRun,
    people: AttackedPeople,
    series: Mapping[str, Series],
    member: Bools,
    rng: np.random.Generator,
    *,
    count: bool,
) -> pa.Table:
    """One shadow release, attacked by everything."""
    released = run.shadow(np.flatnonzero(member[people.whose]), rng)
    for name, rows, score in people.attack(released, people.attacked(member, rng), rng):
        if name in series:
            whose = people.whose[rows]
            inside = member[whose]
            if inside.any() and not inside.all():
                series[name].add(whose, inside, score, count=count)
    return released


def _limit_of(name: str, policy: Policy) -> str | None:
    return next((limit for limit in policy.limits if FAMILIES[limit](name)), None)


def _decided(estimates: Mapping[str, Estimate], policy: Policy) -> bool:
    """Whether some attack exceeds its limit, or every limit is kept by all attacks."""
    ends = [(policy.limits[limit], *each.table) for limit, each in _by_limit(estimates, policy)]
    return any(low > allowed for allowed, low, _ in ends) or all(high <= allowed for allowed, _, high in ends)


def _out_of_reach(estimates: Mapping[str, Estimate], policy: Policy, affordable: float) -> bool:
    """Whether some limit would stay open after all releases that there is time for, even if its estimate is in luck.

    Luck moves an estimate away from its limit by `_LUCK` standard errors; a limit that is likely to be found exceeded
    decides alone.
    """
    open_ones = []
    for limit, each in _by_limit(estimates, policy):
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
        for limit, each in _by_limit(estimates, policy)
        if each.table[1] > policy.limits[limit]
    )


def _by_limit(estimates: Mapping[str, Estimate], policy: Policy) -> list[tuple[str, Estimate]]:
    return [(limit, each) for name, each in estimates.items() if (limit := _limit_of(name, policy)) is not None]
