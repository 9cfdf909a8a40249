"""What to try next where a policy is not met: settings that were tried on the table before they are named.

A trial measures nothing but what the policy judges, and writes nothing; its judge is the one of every release. Columns
that contribute most to the risk, dropped or coarsened: the change, its option, and its effect.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from time import monotonic, perf_counter

import numpy as np
import pyarrow as pa

from sfumato.assess.algebra import Measure, run_measure
from sfumato.assess.findings import ColumnRisk, Finding, Tries, difference_interval
from sfumato.assess.measure import basic, catalogue
from sfumato.assess.report import ChangeTried, ExceededLimit, Report, Ruling, Verdict
from sfumato.assess.study import Study
from sfumato.core.documents import plain
from sfumato.core.errors import SfumatoError
from sfumato.core.facts import Fact
from sfumato.core.progress import listening, tell
from sfumato.core.randomness import Randomness
from sfumato.core.threads import one_thread
from sfumato.engines.memory import run_in_memory
from sfumato.engines.plan import Plan, for_few_people
from sfumato.methods.chain import Chain
from sfumato.methods.condense import Condensation
from sfumato.methods.protocol import Mechanism
from sfumato.options import PublishOptions, RunOptions
from sfumato.publish.assessment import Suggest, study_outcome
from sfumato.publish.judge import CONFIDENCE, FAMILIES, RAREST, confidence_of, judge, limit_checks, times_allowed
from sfumato.publish.policy import Policy, command_with, sanitize_words
from sfumato.tables.persons import RowsByPerson, propose_person
from sfumato.tables.recoding import column_and_level, hierarchy_of
from sfumato.tables.schema import Field, Kind, Role, Schema

__all__ = [
    "SURE",
    "ColumnChange",
    "End",
    "Outlook",
    "TrialResult",
    "can_be_told",
    "chance_of",
    "change_tried",
    "changes_for",
    "judged_measures",
    "outlook",
    "suggesting",
    "suggesting_another",
    "try_plan",
]

_TRIAL = "trying"
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
    with where it may lie; ``chance`` is that of another run, with another control group and other draws, to meet it.
    """

    leak: float
    worst: ExceededLimit | None
    chance: float
    ends: Mapping[str, End]  # of every limit the attack that comes nearest to it


@dataclass(frozen=True, eq=False, repr=False)
class TrialResult:
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


def try_plan(arrow: pa.Table, plan: Plan, options: PublishOptions) -> TrialResult:
    """Sanitize a table in memory, and run the attacks that the policy of the options judges on what comes out."""
    begin, policy = perf_counter(), options.policy
    options = dataclasses.replace(options, time_limit=None)
    outcome = run_in_memory(arrow, plan)
    study = study_outcome(outcome, options, plan.randomness.generator("assess"))
    import sklearn.ensemble  # noqa: F401 - a pool of threads can be held once it is loaded

    findings: list[Finding] = []
    measures = judged_measures(policy)
    with one_thread():
        for place, each in enumerate(measures, start=1):
            findings.extend(run_measure(each, study))
            tell(_TRIAL, place / len(measures))
    held = 0 if study.holdout is None else len(study.holdout)
    report = Report(
        tuple(findings), (), len(study.original), len(study.released), plain(study.sizes), rows_held_out=held
    )
    verdict = judge(report, policy, outcome.facts)
    return TrialResult(verdict, outlook(report, policy, outcome.facts), report, study, perf_counter() - begin)


def outlook(report: Report, policy: Policy, facts: Sequence[Fact]) -> Outlook:
    """How near a release comes to what a policy allows, and the chance that another run meets it.

    Another run holds other people out and draws anew: the largest upper end of a limit's attacks then lies about the
    one that was found. Measured over runs it is spread by about `_SPREAD` standard errors of the gain, both runs
    together; limits are taken as independent of one another.
    """
    checks, missing = limit_checks(report, policy)
    confidence = confidence_of(checks)
    reach = NormalDist().inv_cdf((1.0 + confidence) / 2)
    worst, leak = None, 0.0
    ends: dict[str, End] = {}
    for check in checks:
        allowed, (low, high) = policy.limits[check.limit], check.interval(confidence)
        times = times_allowed(check.limit, check.value, allowed)
        if worst is None or times > leak:
            worst, leak = ExceededLimit(check.limit, check.finding, check.value, allowed, (low, high)), times
        end = End(low if check.alone else high, check.value, max(1e-9, (high - check.value) / reach))
        ends[check.limit] = max(ends.get(check.limit, end), end, key=lambda each: each.high)
    unmet = [each for each in judge(report, policy, facts).exceeded if each.limit not in policy.limits]
    if unmet or any(each.needed for each in missing):
        return Outlook(leak, worst, 0.0, ends)
    return Outlook(leak, worst, chance_of(policy, [ends]), ends)


def chance_of(policy: Policy, runs: Sequence[Mapping[str, End]]) -> float:
    """Chance that another run meets the limits, from what one run or several found.

    Examples
    --------
    >>> policy = Policy("ours", {"linkage-excess": 0.05})
    >>> round(chance_of(policy, [{"linkage-excess": End(0.04, 0.02, 0.01)}]), 2)
    0.84
    """
    chance = 1.0
    for limit in set[str]().union(*runs):
        found = [run[limit] for run in runs if limit in run]
        high, error = (sum(getattr(each, name) for each in found) / len(found) for name in ("high", "error"))
        spread = _SPREAD * error * math.sqrt((1.0 + 1.0 / len(found)) / 2)  # of what was found, and of what comes next
        chance *= NormalDist().cdf((policy.limits[limit] - high) / spread)
    return chance


_MOST_RUNS, _FEWEST_RUNS = 5, 3  # of other settings
_CELLS = 750_000  # of all runs together, so that a large table is not attacked for long
_STAGE = "trying settings"
_OPEN = 0.4  # chance from which a setting is run again
_FEWEST_STAKES = 10  # gains and scores that a report has at least, whose intervals hold together
_MOST_PEOPLE = 20_000  # people of a larger table whom they are tried on
_HOLD_OUT = 0.3
_SAMPLE, _SAMPLE_CELLS = 4_000, 60_000  # people whose columns are changed to see what it does, and cells of them
_FEWEST_PEOPLE = 1_000  # of fewer nothing is clear
_LEAVES = (100, 400, 1_600)  # where few runs can be made, without the first
_STEPS = (4, 16)


def suggesting(arrow: pa.Table, plan: Plan, options: PublishOptions) -> Suggest:
    """A search for a few settings that meet a policy on this table, within the time limit of the options, if any.

    If a limit is exceeded, the columns that contribute most to the risk are also changed one at a time on a sample, and
    if no setting was found the change that helps most is tried on the table.
    """

    def suggest(report: Report, policy: Policy) -> Verdict:
        search = _Search(arrow, plan, dataclasses.replace(options, policy=policy))
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
        plan = for_few_people(Plan(Chain(), schema, own, Randomness(options.seed), found), arrow)
        words = tuple(sanitize_words(publishing.command))
        search = _Search(arrow, plan, dataclasses.replace(publishing, policy=policy, command=words), fresh=True)
        verdict = search.verdict(report)
        tell(_STAGE, 1.0)
        return verdict

    return suggest


class _Search:
    """Settings that are tried on a table until one meets a policy."""

    def __init__(self, arrow: pa.Table, plan: Plan, options: PublishOptions, *, fresh: bool = False) -> None:
        self.arrow, self.plan, self.options, self.policy = arrow, plan, options, options.policy
        self.ends = math.inf if options.time_limit is None else monotonic() + options.time_limit / 2
        self.held = _HOLD_OUT if plan.options.holdout is None else plan.options.holdout
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
            self._settings(table, compared=bool(report.rows_held_out))
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
        leaves = _LEAVES if most == _MOST_RUNS else _LEAVES[1:]
        shown = {name: getattr(self.plan.options, name) for name in ("rare", "tails")}
        hidden = {name: None for name, way in shown.items() if way == "keep" and name in self.policy.require}
        for mechanism, options in _settings(self.plan, self.policy, leaves, compared=compared and not self.fresh):
            if self.runs >= most or monotonic() > self.ends:
                return
            tell(_STAGE, 0.8 * self.runs / most)
            other = dataclasses.replace(self.plan, mechanism=mechanism).with_options(holdout=self.held, **hidden)
            found = self._try(table, other, options)
            if self.line or (found and not can_be_told(found[0].report, self.policy)):
                return

    def _try(
        self, table: pa.Table, plan: Plan, options: tuple[str, ...], changed: tuple[str, ...] = ()
    ) -> list[TrialResult]:
        """Try a plan; where it meets the policy in nearly every run, its command is the one that was looked for."""
        try:
            found = _runs(table, plan, self.options)
        except SfumatoError:
            return []
        self.tried, self.runs = self.tried + 1, self.runs + len(found)
        chance = chance_of(self.policy, [each.outlook.ends for each in found])
        if len(found) > 1 and all(each.meets for each in found) and chance >= SURE:
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
        target = None if schema.target is None else schema.target.name
        outside = [column_and_level(name, schema.names)[0] for name in self.options.quasi_identifiers]
        spared = (target, plan.options.strata, str(plan.options.level), *(order or ()), *outside)
        changes = changes_for(report.columns, schema, spared)
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


def changes_for(risks: Sequence[ColumnRisk], schema: Schema, spared: Sequence[str | None]) -> list[ColumnChange]:
    """Changes of the columns that carry most of the risk: each dropped, and coarsened if an option can express that."""
    changes: list[ColumnChange] = []
    risky = [risk for risk in risks if risk.column not in spared and (risk.certain or risk.alone > 0 or risk.rare)]
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
