"""What to try next where a policy is not met: settings that were tried on the table before they are named."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterator, Sequence
from time import monotonic

import numpy as np
import pyarrow as pa

from sfumato.assess.findings import Tries
from sfumato.assess.intervals import difference_interval
from sfumato.assess.report import Report, Verdict
from sfumato.core.errors import SfumatoError
from sfumato.core.progress import listening, tell
from sfumato.core.randomness import Randomness
from sfumato.engines.plan import Plan
from sfumato.mechanisms.chain.mechanism import Chain
from sfumato.mechanisms.condense.mechanism import Condensation
from sfumato.mechanisms.protocol import Mechanism
from sfumato.publish.policy import Policy, command_with
from sfumato.publish.stakes import CONFIDENCE, confidence_of, stakes_of
from sfumato.publish.trial import SURE, Tried, chance_of, try_plan
from sfumato.tables.persons import persons_of_table
from sfumato.tables.rare import Way

__all__ = ["Suggest", "can_be_told", "suggesting"]

Suggest = Callable[[Report, Policy], Verdict]
"""Looks at a report with its verdict, and gives the verdict with what to try next."""

_MOST_RUNS, _FEWEST_RUNS = 5, 3  # of other settings
_CELLS = 750_000  # of all runs together, so that a large table is not attacked for long
_STAGE = "trying settings"
_OPEN = 0.4  # chance from which a setting is run again
_FEWEST_STAKES = 10  # gains and scores that a report has at least, whose intervals hold together
_MOST_PEOPLE = 20_000  # people of a larger table whom they are tried on
_HOLD_OUT = 0.3
_LEAVES = (100, 400, 1_600)
_STEPS = (4, 16)


def suggesting(
    arrow: pa.Table, plan: Plan, command: Sequence[str], seconds: float | None = None, known: Sequence[str] = ()
) -> Suggest:
    """A search for settings that meet a policy on this table, of at most a few, within some seconds where told."""

    def suggest(report: Report, policy: Policy) -> Verdict:
        verdict = report.verdict
        assert verdict is not None
        nothing = dataclasses.replace(verdict, to_try=(), tried=0)
        table = _some(arrow, plan, policy)
        if table is None or (report.rows_held_out and not can_be_told(report, policy)):
            return nothing
        tried, runs, begin = 0, 0, monotonic()
        cells = table.num_rows * max(1, len(plan.schema.encoded))
        most = int(np.clip(_CELLS // max(1, cells), _FEWEST_RUNS, _MOST_RUNS))
        for mechanism, options in _settings(plan, policy, compared=bool(report.rows_held_out)):
            late = seconds is not None and monotonic() - begin > seconds / 2
            if late or runs >= most:
                break
            tell(_STAGE, runs / most)
            held = _HOLD_OUT if plan.holdout is None else plan.holdout
            other = dataclasses.replace(plan, mechanism=mechanism, holdout=held, rare=_rare(plan, policy))
            try:
                found = _runs(table, other, policy, known)
            except SfumatoError:
                continue
            tried, runs = tried + 1, runs + len(found)
            chance = chance_of(policy, [each.outlook.ends for each in found])
            if len(found) > 1 and all(each.meets for each in found) and chance >= SURE:
                tell(_STAGE, 1.0)
                share = held if isinstance(held, float) else None
                line = command_with(command, options, policy, share, show_rare=other.rare is not None)
                return dataclasses.replace(verdict, to_try=(line,), tried=tried)
            if not can_be_told(found[0].report, policy):
                break
        tell(_STAGE, 1.0)
        return dataclasses.replace(nothing, tried=tried)

    return suggest


def _runs(table: pa.Table, plan: Plan, policy: Policy, known: Sequence[str]) -> list[Tried]:
    """One run of a plan, and another where it met the policy, unless by so little that most runs would not."""
    with warnings.catch_warnings(), listening(None):
        warnings.simplefilter("ignore")
        first = try_plan(table, plan, policy, known)
        if not first.meets or first.outlook.chance < _OPEN:
            return [first]
        seed = plan.randomness.seed
        again = dataclasses.replace(plan, randomness=Randomness(None if seed is None else seed + 1))
        return [first, try_plan(table, again, policy, known)]


def can_be_told(report: Report, policy: Policy) -> bool:
    """Whether a release that gains nothing could meet the limits with as many people inside and outside."""
    stakes, _ = stakes_of(report, policy)
    confidence = confidence_of(stakes)
    for stake in stakes:
        if stake.alone or not isinstance(stake.outside, Tries):
            continue
        of, out = stake.inside.of, stake.outside
        nothing = dataclasses.replace(stake, inside=Tries(of * out.hits / out.of, of, out.times))
        if nothing.interval(confidence)[1] > policy.limits[stake.limit]:
            return False
    return True


def _settings(plan: Plan, policy: Policy, *, compared: bool) -> Iterator[tuple[Mechanism, tuple[str, ...]]]:
    """Other settings and their options, from the nearest on: the same one where it may do, then larger leaves."""
    now, asked = plan.mechanism, int(policy.require.get("persons_per_group", 1))
    low = (now.traits.floor or 0) < asked
    if low and isinstance(now, Chain | Condensation):
        yield dataclasses.replace(now, k=asked), ("--k", str(asked))
    elif not low and not compared:
        yield now, ()
    k = max(now.k if isinstance(now, Chain) else Chain.k, asked)
    floor = () if isinstance(now, Chain) and k == now.k else ("--k", str(k))
    method = () if isinstance(now, Chain) else ("--method", "chain")
    for leaf in [now.leaf * step for step in _STEPS] if isinstance(now, Chain) else _LEAVES:
        order = now.order if isinstance(now, Chain) else None
        yield Chain(k=k, leaf=max(leaf, k), order=order), (*method, *floor, "--leaf", str(max(leaf, k)))


def _rare(plan: Plan, policy: Policy) -> Way | None:
    """What becomes of rare values: as told, unless the policy hides them and they were to be kept."""
    return None if plan.rare == "keep" and "rare" in policy.require else plan.rare


def _some(arrow: pa.Table, plan: Plan, policy: Policy) -> pa.Table | None:
    """Rows of at most `_MOST_PEOPLE`, drawn at random; None where even attacks that never succeed could not be told."""
    persons = persons_of_table(arrow, plan.schema)
    units = np.arange(arrow.num_rows) if persons is None else np.unique(persons, return_inverse=True)[1]
    count = int(units.max(initial=-1)) + 1
    held = plan.holdout if isinstance(plan.holdout, float) else _HOLD_OUT
    sides = [Tries(0.0, max(1.0, share * min(count, _MOST_PEOPLE))) for share in (1.0 - held, held)]
    least = difference_interval(sides[0], sides[1], 1.0 - (1.0 - CONFIDENCE) / _FEWEST_STAKES)[1]
    if any(least > allowed for limit, allowed in policy.limits.items() if limit.endswith("-gain")):
        return None
    if count <= _MOST_PEOPLE:
        return arrow
    drawn = plan.randomness.generator("suggest").permutation(count)[:_MOST_PEOPLE]
    return arrow.take(pa.array(np.flatnonzero(np.isin(units, drawn))))
