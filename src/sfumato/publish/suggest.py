"""What to try next where a policy is not met: settings that were tried on the table before they are named.

A trial measures nothing but what the policy judges, and writes nothing; its judge is the one of every release. Columns
that contribute most to the risk, dropped or coarsened: the change, its option, and its effect.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import monotonic

import numpy as np
import pyarrow as pa

from sfumato.assess.findings import ColumnRisk, Tries, difference_interval
from sfumato.assess.report import ChangeTried, Report, Verdict
from sfumato.core.errors import SfumatoError
from sfumato.core.progress import listening, tell
from sfumato.core.randomness import Randomness
from sfumato.engines.plan import Plan, with_default_k
from sfumato.methods.chain import Chain
from sfumato.methods.condense import Condensation
from sfumato.methods.protocol import Mechanism
from sfumato.options import PublishOptions, RunOptions
from sfumato.publish.assessment import Suggest
from sfumato.publish.judge import CONFIDENCE, confidence_of, is_audited, limit_checks
from sfumato.publish.policy import Policy, command_with, sanitize_words
from sfumato.publish.trial import SURE, Outlook, ShadowTrial, TrialResult, chance_of, try_on_shadows, try_plan
from sfumato.tables.persons import RowsByPerson, propose_person
from sfumato.tables.recoding import column_and_level, hierarchy_of
from sfumato.tables.schema import Field, Kind, Role, Schema

__all__ = [
    "ColumnChange",
    "can_be_told",
    "change_tried",
    "changes_for",
    "suggesting",
    "suggesting_another",
]

_MOST_RUNS, _FEWEST_RUNS = 5, 3  # of other settings
_CELLS = 750_000  # of all runs together, so that a large table is not attacked for long
_STAGE = "trying settings"
_OPEN = 0.4  # chance from which a setting is run again
_FEWEST_STAKES = 10  # gains and scores that a report has at least, whose intervals hold together
_MOST_PEOPLE = 20_000  # people of a larger table whom they are tried on
_HOLD_OUT = 0.3
_SAMPLE, _SAMPLE_CELLS = 4_000, 60_000  # people whose columns are changed to see what it does, and cells of them
_FEWEST_PEOPLE = 1_000  # of fewer nothing is clear
_FEW_SHADOWS, _SECONDS = 6, 40.0  # shadow releases of a column changed, and seconds of a setting tried on them
_LEAVES = (100, 400, 1_600)  # where few runs can be made, without the first
_STEPS = (4, 16)


def suggesting(arrow: pa.Table, plan: Plan, options: PublishOptions) -> Suggest:
    """A search for a few settings that meet a policy on this table, within the time limit of the options, if any.

    If a limit is exceeded, the columns that contribute most to the risk are also changed one at a time on a sample, and
    if no setting was found the change that helps most is tried on the table.
    """

    def suggest(report: Report, policy: Policy) -> Verdict:
        search = _Search(arrow, plan, dataclasses.replace(options, policy=policy), audited=is_audited(report))
        verdict = search.verdict(report)
        tell(_STAGE, 1.0)
        return verdict

    return suggest


def suggesting_another(arrow: pa.Table, schema: Schema, options: RunOptions, publishing: PublishOptions) -> Suggest:
    """The same for a table that another tool made: a chain that meets the policy in its place.

    No command is named if no chain could be made of the table with this schema.
    """

    def suggest(report: Report, policy: Policy) -> Verdict:
        roles = [field.role for field in schema]
        unknown = Role.PERSON not in roles and propose_person(arrow, schema) is not None  # person of a row
        assert report.verdict is not None
        if unknown or Role.PUBLIC in roles:
            return dataclasses.replace(report.verdict, to_try=())
        own, found = RunOptions(holdout=options.holdout), options.schema is None
        plan = with_default_k(Plan(Chain(), schema, own, Randomness(options.seed), found), arrow)
        words = tuple(sanitize_words(publishing.command))
        search = _Search(arrow, plan, dataclasses.replace(publishing, policy=policy, command=words), fresh=True)
        verdict = search.verdict(report)
        tell(_STAGE, 1.0)
        return verdict

    return suggest


class _Search:
    """Settings that are tried on a table until one meets a policy."""

    def __init__(
        self, arrow: pa.Table, plan: Plan, options: PublishOptions, *, fresh: bool = False, audited: bool = False
    ) -> None:
        self.arrow, self.plan, self.options, self.policy = arrow, plan, options, options.policy
        self.ends = math.inf if options.time_limit is None else monotonic() + options.time_limit / 2
        self.audited = audited  # other settings are judged by shadow releases too, and nobody is held out
        self.held = None if audited else _HOLD_OUT if plan.options.holdout is None else plan.options.holdout
        self.tried, self.runs, self.line = 0, 0, ""
        self.fresh = fresh  # whether the plan itself was not run yet
        self.nearest: tuple[float, Plan, tuple[str, ...]] | None = None

    def verdict(self, report: Report) -> Verdict:
        """Verdict of a report with a command that helps, if one was found, and with what changing a column does."""
        verdict = report.verdict
        assert verdict is not None
        table = _enough(self.arrow, self.plan, self.policy)
        compared = verdict.asked and report.rows_held_out  # with a policy everybody is attacked, as in the trials
        decidable = table is not None and (not compared or can_be_told(report, self.policy))
        if decidable:
            self._settings(table, compared=bool(report.rows_held_out) or self.audited)
        exceeded = any(each.limit in self.policy.limits for each in verdict.exceeded)
        changes = self._changes(report) if exceeded else []
        if decidable and not self.line and self.nearest is not None:
            self._changed(table, changes)
        found = (self.line,) if self.line else ()
        return dataclasses.replace(verdict, to_try=found, tried=self.tried, changes=tuple(each for _, each in changes))

    def _settings(self, table: pa.Table, *, compared: bool) -> None:
        """Try other settings from the nearest on, until one meets the policy or there were enough."""
        cells = table.num_rows * max(1, len(self.plan.schema.encoded))
        most = int(np.clip(_CELLS // max(1, cells), _FEWEST_RUNS, _MOST_RUNS))
        most = _FEWEST_RUNS if self.audited else most
        leaves = _LEAVES if most == _MOST_RUNS else _LEAVES[1:]
        shown = {name: getattr(self.plan.options, name) for name in ("rare", "tails")}
        hidden = {name: None for name, way in shown.items() if way == "keep" and name in self.policy.require}
        for mechanism, options in _settings(self.plan, self.policy, leaves, compared=compared and not self.fresh):
            if self.runs >= most or monotonic() > self.ends:
                return
            tell(_STAGE, 0.8 * self.runs / most)
            other = dataclasses.replace(self.plan, mechanism=mechanism).with_options(holdout=self.held, **hidden)
            found = self._try(table, other, options)
            if self.line or (found and not self.audited and not can_be_told(found[0].report, self.policy)):
                return

    def _try(
        self, table: pa.Table, plan: Plan, options: tuple[str, ...], changed: tuple[str, ...] = ()
    ) -> list[TrialResult]:
        """Try a plan; where it meets the policy in nearly every run, its command is the one that was looked for."""
        try:
            found = _runs(table, plan, self.options) if not self.audited else _audited(table, plan, self.options)
        except SfumatoError:
            return []
        self.tried, self.runs = self.tried + 1, self.runs + len(found)
        chance = chance_of(self.policy, [each.outlook.ends for each in found])
        if all(each.meets for each in found) and chance >= SURE and (len(found) > 1 or self.audited):
            share = self.held if isinstance(self.held, float) else None
            words = (*self.options.command, *changed)
            dropped = [f"--{name}" for name in ("rare", "tails") if getattr(plan.options, name) is None]
            self.line = command_with(words, options, self.policy, share, dropped=dropped)
        leak = min(each.outlook.leak for each in found)
        if self.nearest is None or leak < self.nearest[0]:
            self.nearest = leak, plan, options
        return found

    def _changes(self, report: Report) -> list[tuple[ColumnChange, ChangeTried]]:
        """Columns of the highest risk dropped or coarsened on a sample, the change that helps most first."""
        plan, schema = self.plan, self.plan.schema
        order = plan.mechanism.order if isinstance(plan.mechanism, Chain) else None
        outside = [column_and_level(name, schema.names)[0] for name in self.options.quasi_identifiers]
        changes = changes_for(report.columns, schema, plan.options, (*(order or ()), *outside))
        cells = max(1, len(schema.encoded))
        table, people = _some(self.arrow, plan, int(np.clip(_SAMPLE_CELLS // cells, _FEWEST_PEOPLE, _SAMPLE)))
        if people < _FEWEST_PEOPLE:
            return []
        base = plan.with_options(holdout=self.held)
        tried: list[tuple[ColumnChange, ChangeTried]] = []
        before = self._outlook(table, base) if changes else None
        for place, change in enumerate(changes):
            if before is None or monotonic() > self.ends:
                break
            tell(_STAGE, 0.8 + 0.2 * place / len(changes))
            after = self._outlook(table, dataclasses.replace(base, schema=change.applied(schema)))
            if after is not None:
                tried.append((change, change_tried(change, before, after, people)))
        return sorted(tried, key=lambda each: (not each[1].clear, each[1].after))

    def _outlook(self, table: pa.Table, plan: Plan) -> Outlook | None:
        """How near a plan comes to the limits on a table; None if it cannot be run."""
        try:
            with warnings.catch_warnings(action="ignore", category=UserWarning), listening(None):
                if self.audited:
                    trial = ShadowTrial(most=_FEW_SHADOWS, scored=0)
                    return try_on_shadows(table, plan, self.options, trial).outlook
                return try_plan(table, plan, self.options).outlook
        except SfumatoError:
            return None

    def _changed(self, table: pa.Table, changes: Sequence[tuple[ColumnChange, ChangeTried]]) -> None:
        """Try the setting that came nearest with the change that helps most, of those that a command line can say."""
        assert self.nearest is not None
        _, plan, options = self.nearest
        for change, tried in changes:
            if tried.clear and change.options and monotonic() < self.ends:
                self._try(table, dataclasses.replace(plan, schema=change.applied(plan.schema)), options, change.options)
                return


def _runs(table: pa.Table, plan: Plan, options: PublishOptions) -> list[TrialResult]:
    """One run of a plan, and another where it met the policy, unless by so little that most runs would not."""
    with warnings.catch_warnings(action="ignore", category=UserWarning), listening(None):
        first = try_plan(table, plan, options)
        if not first.meets or first.outlook.chance < _OPEN:
            return [first]
        seed = plan.randomness.seed
        again = dataclasses.replace(plan, randomness=Randomness(None if seed is None else seed + 1))
        return [first, try_plan(table, again, options)]


def _audited(table: pa.Table, plan: Plan, options: PublishOptions) -> list[TrialResult]:
    """A plan judged by shadow releases of its own, as `sanitize` will judge it."""
    with warnings.catch_warnings(action="ignore", category=UserWarning), listening(None):
        return [try_on_shadows(table, plan, options, ShadowTrial(time_limit=_SECONDS, scored=0))]


def can_be_told(report: Report, policy: Policy) -> bool:
    """Whether a release that gains nothing could meet the limits with as many people inside and outside."""
    checks, _ = limit_checks(report, policy)
    confidence = confidence_of(checks)
    for check in checks:
        if check.alone or not isinstance(check.outside, Tries):
            continue
        of, out = check.inside.of, check.outside
        nothing = dataclasses.replace(check, inside=Tries(of * out.hits / out.of, of, out.times))
        if nothing.interval(confidence)[1] > policy.limits[check.limit]:
            return False
    return True


def _settings(
    plan: Plan, policy: Policy, leaves: Sequence[int], *, compared: bool
) -> Iterator[tuple[Mechanism, tuple[str, ...]]]:
    """Other settings and their options, from the nearest on: the same one where it may do, then larger leaves."""
    now, asked = plan.mechanism, int(policy.require.get("min_group_size", 1))
    low = (now.traits.floor or 0) < asked
    if low and isinstance(now, Chain | Condensation):
        yield dataclasses.replace(now, k=asked), ("--k", str(asked))
    elif not low and not compared:
        yield now, ()
    k = max(now.k if isinstance(now, Chain) else Chain.k, asked)
    floor = () if isinstance(now, Chain) and k == now.k else ("--k", str(k))
    method = () if isinstance(now, Chain) else ("--method", "chain")
    for leaf in [now.leaf * step for step in _STEPS] if isinstance(now, Chain) else leaves:
        order = now.order if isinstance(now, Chain) else None
        yield Chain(k=k, leaf=max(leaf, k), order=order), (*method, *floor, "--leaf", str(max(leaf, k)))


def _enough(arrow: pa.Table, plan: Plan, policy: Policy) -> pa.Table | None:
    """Rows of at most `_MOST_PEOPLE`; None if there are too few to measure even attacks that never succeed."""
    table, count = _some(arrow, plan, _MOST_PEOPLE)
    held = plan.options.holdout if isinstance(plan.options.holdout, float) else _HOLD_OUT
    sides = [Tries(0.0, max(1.0, share * count)) for share in (1.0 - held, held)]
    least = difference_interval(sides[0], sides[1], 1.0 - (1.0 - CONFIDENCE) / _FEWEST_STAKES)[1]
    short = any(least > allowed for limit, allowed in policy.limits.items() if limit.endswith("-excess"))
    return None if short else table


def _some(arrow: pa.Table, plan: Plan, most: int) -> tuple[pa.Table, int]:
    """Rows of a random sample of people, and the number of people in it."""
    people = RowsByPerson.of(arrow, plan.schema).some(most, plan.randomness.generator("suggest"))
    return people.table, people.count


_MOST = 3  # columns that are looked at
_Z = 1.96
_PARTS = 10  # a number is coarsened to about ten intervals


@dataclass(frozen=True)
class ColumnChange:
    """One column dropped, or coarsened to a level of a hierarchy."""

    column: str
    hierarchy: str | None = None  # None if the column is dropped
    level: int = 0

    @property
    def words(self) -> str:
        """What is done."""
        if self.hierarchy is None:
            return f"without '{self.column}'"
        return f"with '{self.column}' coarsened ({self.hierarchy}, level {self.level})"

    @property
    def how(self) -> str:
        """The option of `sanitize` for it."""
        if self.hierarchy is None:
            return f"--identifier {self.column}"
        return f'in the schema: hierarchy = "{self.hierarchy}", coarsened = {self.level}'

    @property
    def options(self) -> tuple[str, ...]:
        """Words of the command line; none if it takes a schema."""
        return ("--identifier", self.column) if self.hierarchy is None else ()

    def applied(self, schema: Schema) -> Schema:
        """Schema with the change."""
        if self.hierarchy is None:
            return schema.with_role(Role.IDENTIFIER, self.column)
        fields = tuple(
            dataclasses.replace(field, hierarchy=self.hierarchy, coarsened=self.level)
            if field.name == self.column
            else field
            for field in schema
        )
        return dataclasses.replace(schema, fields=fields)


def changes_for(
    risks: Sequence[ColumnRisk], schema: Schema, options: RunOptions, spared: Sequence[str] = ()
) -> list[ColumnChange]:
    """Changes of the columns that carry most of the risk: each dropped, and coarsened if an option can express that.

    The target, the columns of strata and levels, and those ``spared`` stay as they are.
    """
    changes: list[ColumnChange] = []
    target = None if schema.target is None else schema.target.name
    fixed = {*spared, target, options.strata, str(options.level)}
    risky = [risk for risk in risks if risk.column not in fixed and (risk.certain or risk.alone > 0 or risk.rare)]
    for risk in risky[:_MOST]:
        changes.append(ColumnChange(risk.column))
        wider = _coarsened(schema[risk.column])
        if wider is not None:
            changes.append(wider)
    return changes


def _coarsened(field: Field) -> ColumnChange | None:
    if field.hierarchy is not None:
        levels = hierarchy_of(field).levels
        further = field.coarsened + 1
        return ColumnChange(field.name, field.hierarchy, further) if levels is None or further <= levels else None
    if field.kind is Kind.DATE:
        return ColumnChange(field.name, "calendar", 1)
    if field.kind not in (Kind.INTEGER, Kind.CONTINUOUS):
        return None
    low, high = field.domain.low, field.domain.high
    if not isinstance(low, int | float) or not isinstance(high, int | float) or not 0 < (span := high - low) < math.inf:
        return None
    width = 10.0 ** math.floor(math.log10(span / _PARTS))
    width *= next(step for step in (1, 2, 5, 10) if step * width * _PARTS >= span)
    return ColumnChange(field.name, f"intervals {width:g}", 1)


def change_tried(change: ColumnChange, before: Outlook, after: Outlook, people: int) -> ChangeTried:
    """What a change did on a sample; clear where the finding that was the worst fell by more than both runs vary."""
    clear = False
    if before.worst is not None and after.leak < before.leak:
        limit = before.worst.limit
        one, two = before.ends.get(limit), after.ends.get(limit)
        if one is not None and two is not None:
            clear = one.value - two.value > _Z * math.hypot(one.error, two.error)
    return ChangeTried(change.column, change.words, change.how, before.leak, after.leak, people, clear)
