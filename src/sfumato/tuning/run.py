"""tune: the most useful release that meets a policy, searched for as long as there is time."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.assess.utility.prediction import is_class
from sfumato.core.errors import OptionError, SfumatoError
from sfumato.core.progress import OutOfTime, stopping_at, tell
from sfumato.core.randomness import Randomness
from sfumato.engines.columns import check_people, schema_of
from sfumato.engines.plan import smallest_class
from sfumato.engines.private import to_buy
from sfumato.methods.catalogue import default_k
from sfumato.methods.chain import Chain
from sfumato.options import PublishOptions, RunOptions, options_from
from sfumato.publish.attainable import PlannedRun, refuse_unattainable
from sfumato.publish.policy import USUAL as USUAL_POLICY
from sfumato.publish.policy import Policy
from sfumato.publish.shadows import FEWEST_PEOPLE
from sfumato.publish.suggest import changes_for
from sfumato.publish.trial import ShadowTrial
from sfumato.tables.frames import to_arrow
from sfumato.tables.grid import repair_table
from sfumato.tables.levels import levels_of_table
from sfumato.tables.persons import RowsByPerson, check_weights, persons_of_table
from sfumato.tables.reading import FileReading
from sfumato.tables.recoding import known_columns
from sfumato.tables.schema import Schema, missing_marks
from sfumato.tables.tails import check_rare_treatment
from sfumato.tuning.candidates import (
    USUAL,
    Candidate,
    brute_force,
    check_methods,
    equal_steps,
    first_tried,
    grid,
    rule_based_search,
)
from sfumato.tuning.halving import STAGE, Clock, Confirmation, NoTime, choose, confirm, confirm_one, halve, narrow
from sfumato.tuning.model import SizeSearch, StopReason, Tuning
from sfumato.tuning.trials import Part, Reading, TableOptions, TrialRunner, check_metric, draw_part

__all__ = ["check_tuning", "tune"]

SEARCHES = ("halving", "rule-based", "brute-force")
"""Ways to search; the last two are the paper's, for the group size of one method [KCG12]."""

MOST_PEOPLE = 20_000
"""People of a larger table who are looked at."""

_HOLD_OUT = 0.3
_USUAL_SECONDS, _LONGEST, _TRIALS = 45.0, 600.0, 8  # default seconds: those of eight trials of all candidates
_FINISH = 1.5  # seconds kept to write down what was found
_FIRST, _MOST_FIRST, _TIMES = 500, 2_000, 3  # people of the first sample, and how samples grow
_SHADOWS = 6  # counted shadow releases of a setting that is tried
_SPLITS = 3  # more splits on which the use of the last candidates is compared
_LEAST = 3  # smallest size that is tried
_SHARE = 0.1  # the least size of the paper's searches, t, as a share of the smallest class


def tune(
    table: Any,
    *,
    target: str | None = None,
    policy: Policy | str | Path = USUAL_POLICY,
    methods: Iterable[str] | str | None = None,
    time_limit: float | None = None,
    search: str = "halving",
    metric: str | None = None,
    holdout: float | Any | None = None,
    schema: Schema | str | Path | None = None,
    level: str | int | None = None,
    strata: str | None = None,
    identifiers: Iterable[str] = (),
    person: str | None = None,
    rows_are_people: bool = False,
    weight: str | None = None,
    no_rules: bool = False,
    rare: str | None = None,
    k: int | None = None,
    quasi_identifiers: Iterable[str] = (),
    accurate_within: float | None = None,
    missing: Iterable[str] = (),
    seed: int | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
    read: FileReading | None = None,
    command: Sequence[str] = (),
    watch: Callable[[Reading], None] | None = None,
) -> Tuning:
    """The most useful release that meets a policy, what the alternatives trade, and the command line that makes it.

    Methods and sizes are tried on all people by a few shadow releases each, with the same members for all of them, and
    judged as `sanitize` will judge them. The choice is confirmed on shadow releases that the search has not used. With
    ``holdout``, or of fewer than 200 people, they are tried on samples that grow, and the choice is confirmed with a
    control group that the search has not used. When the time is up, or at Ctrl-C, it ends with what was measured by
    then.

    Parameters
    ----------
    table : pandas, polars or pyarrow table, or path
    target : str, optional
        The class or response that will be mined; without one, use is how hard released rows are to tell from others.
    policy : Policy, str or path
        What the release must meet; its ``keep`` says how much use may be lost.
    methods : names, optional
        By default chain, condense, for a class classwise, and private with the epsilon and delta of the policy.
    time_limit : float, optional
        Seconds after which it ends; by default 600, and with a control group what eight trials on the whole table take.
    search : {"halving", "rule-based", "brute-force"}
        The last two are the searches of KCG12 for the group size of one method.
    metric : str, optional
        Which use, see `sfumato.tuning.trials.METRICS`.
    holdout : float or table, optional
        Share of held-out people, or the hold-out set; by default nobody is held out.
    schema, level, strata, identifiers, person, rows_are_people, weight, no_rules, rare, quasi_identifiers, missing
        As in `sfumato.sanitize`.
    accurate_within : float, optional
        Largest error at which a predicted response counts as right, for the metrics ``response-accuracy-...``.
    k : int, optional
        The smallest size that is tried, and the floor of a chain, where it is more than the policy asks.
    seed : int, optional
        Makes the search reproducible as far as time does not end it; what it recommends is run without one.
    encoding, sheet, header_row : optional
        How a file is read: the encoding of CSV, the sheet of a workbook, and the row or line that names the columns,
        counted from 1. By default they are detected; what was detected is reported as a warning.
    read : FileReading, optional
        How the file was read that the table came from, for the recipe; by default as the three say.
    command : sequence of str
        Words of the command line that asked for it, for the one that it prints.
    watch : callable, optional
        Is given what each setting gave as soon as it is measured.
    """
    arguments = dict(locals())
    clock = Clock(monotonic(), _LONGEST if time_limit is None else time_limit)
    named = check_methods(methods)
    asked = check_tuning(policy, time_limit=time_limit, search=search, metric=metric, methods=named, rare=rare)
    if isinstance(holdout, float) and not 0.0 < holdout < 1.0:
        raise OptionError("the share of the hold-out set must lie between 0 and 1; the default is 0.3")
    options = options_from(RunOptions, arguments)
    arrow, origin = to_arrow(table, missing_marks(schema, options.missing), options_from(FileReading, arguments))
    arrow, settled = _settled(arrow, options)
    randomness, everybody = Randomness(seed), RowsByPerson.of(arrow, settled)
    known = known_columns(quasi_identifiers, settled)
    publishing = PublishOptions(policy=asked, quasi_identifiers=known, accurate_within=accurate_within)
    kept = RunOptions(level=level, strata=strata, no_rules=no_rules, rare=check_rare_treatment(rare))
    table_options = TableOptions(settled, publishing, schema is None, kept, _floor(k, level, asked, everybody.count))
    bench = TrialRunner(table_options, metric, randomness, watch=watch)
    people = everybody.some(MOST_PEOPLE, randomness.generator("sample"))
    few = people.count < FEWEST_PEOPLE or search != "halving"  # the paper's searches compare utility alone
    holdout = _HOLD_OUT if holdout is None and few else holdout
    part, inner = _parted(people, holdout, randomness)
    highest = int(levels_of_table(level, arrow, settled, allow_level_1=False)[0].max(initial=0))
    low = max(_LEAST, k or 0, highest, int(asked.require.get("min_group_size", 1)))
    candidates = _candidates(named or _usual(settled, part), low, inner.count, asked, settled)
    job = _Job(bench, clock, candidates, part, people, inner, search, given=time_limit is not None)
    stopped = job.run()
    return Tuning(
        bench=bench,
        confirmed=tuple(job.confirmed),
        changed=tuple(job.changed),
        refused=job.refused,
        stopped=stopped,
        search=search,
        searched=job.searched,
        people=(people.count, everybody.count),
        holdout=holdout if isinstance(holdout, float) else None,
        time_limit=clock.time_limit,
        seconds=monotonic() - clock.begin,
        read=read or origin.reading,
        command=tuple(command),
    )


def _usual(schema: Schema, part: Part) -> list[str]:
    """The usual methods that apply: classes need a target, and a proof is compared with shadow releases."""
    lacking = {"classwise": schema.target is None, "private": part.outside is not None}
    return [each for each in USUAL if not lacking.get(each)]


def _candidates(methods: Iterable[str], low: int, people: int, policy: Policy, schema: Schema) -> list[Candidate]:
    """Settings to try of some methods."""
    inside = int(people * (1.0 - _HOLD_OUT))
    sizes = grid(low, inside // 2)  # leaves two groups where people are held out once more
    if not sizes:
        raise OptionError(
            f"the smallest size that may be tried is {low}, and {inside} people are too few for two such groups; lower "
            "the level, or add more people"
        )
    found = [Candidate(each, size) for each in methods if each != "private" for size in sizes]
    return [*found, *(_proved(policy, schema) if "private" in methods else ())]


def _proved(policy: Policy, schema: Schema) -> list[Candidate]:
    """The private chain with the budget that a policy accepts, if it accepts any; nothing else of it is tuned."""
    if not policy.proof:
        return []
    try:
        lacking = bool(to_buy(schema))
    except SfumatoError:  # the trial says why
        lacking = False
    return [Candidate("private", policy.proof["epsilon"], policy.proof["delta"], lacking)]


def _settled(arrow: pa.Table, options: RunOptions) -> tuple[pa.Table, Schema]:
    """A table with its cells repaired, and its schema; refuses weights and people that are unclear."""
    schema = schema_of(arrow, options, coarsens=True)
    arrow = repair_table(arrow, schema, level=options.level)
    schema = schema.without_rules() if options.no_rules else schema
    check_weights(arrow, schema)
    if options.schema is None:
        check_people(arrow, schema, person=options.person, rows_are_people=options.rows_are_people)
    return arrow, schema


def check_tuning(
    policy: Policy | str | Path,
    *,
    time_limit: float | None,
    search: str,
    metric: str | None,
    methods: Iterable[str] | str | None,
    rare: str | None,
) -> Policy:
    """Policy of a search, if nothing is chosen that is impossible whatever the table holds."""
    asked = Policy.load(policy)
    if time_limit is not None and not (math.isfinite(time_limit) and time_limit > 0):
        raise OptionError("the time limit is a number of seconds above 0; try 60")
    if search not in SEARCHES:
        raise OptionError(f"there is no search {search!r}; choose one of {', '.join(SEARCHES)}")
    check_metric(metric)
    check_methods(methods)
    refuse_unattainable(asked, PlannedRun(control=True, rare=check_rare_treatment(rare)), despite=None)
    return asked


def _floor(k: int | None, level: str | int | None, policy: Policy, people: int) -> int | None:
    """Fewest persons behind a value of a chain; None where `sanitize` takes as many by itself."""
    usual, few = Chain.k if level is None else 2, level is None and default_k(people // 2) > Chain.k
    wanted = max(k or usual, int(policy.require.get("min_group_size", 1)))
    return wanted if k is not None or wanted != usual or few else None


def _parted(people: RowsByPerson, holdout: Any, randomness: Randomness) -> tuple[Part, RowsByPerson]:
    """The part that the choice is confirmed on, and the people in it whom the search may use."""
    rng = randomness.generator("holdout")
    if holdout is None:
        return _everybody("confirmation", people, rng, ShadowTrial()), people
    if not isinstance(holdout, float):
        outside = to_arrow(holdout)[0]
        return Part("confirmation", people.table, outside, people.count, int(rng.integers(2**31))), people
    stay, out = people.parted(holdout, rng)
    return Part("confirmation", stay.table, out.table, stay.count, int(rng.integers(2**31))), stay


def _everybody(name: str, people: RowsByPerson, rng: np.random.Generator, trial: ShadowTrial) -> Part:
    """All people, tried on shadow releases of their own."""
    seed = int(rng.integers(2**31))
    return Part(name, people.table, None, people.count, seed, dataclasses.replace(trial, seed=seed))


@dataclass(eq=False, repr=False)
class _Job:
    """A search and what follows it; whatever ends it, what was measured stands."""

    bench: TrialRunner
    clock: Clock
    candidates: list[Candidate]
    part: Part
    people: RowsByPerson
    inner: RowsByPerson
    search: str
    given: bool  # whether a time limit was given
    confirmed: list[Confirmation] = field(default_factory=list)
    changed: list[tuple[Reading, Reading]] = field(default_factory=list)
    refused: dict[Candidate, SfumatoError] = field(default_factory=dict)
    searched: SizeSearch | None = None  # what a search of the paper chose

    def run(self) -> StopReason:
        """Search, confirm and look at columns until all is done or the time is up."""
        stopped = self._run()
        tell(STAGE, 1.0)
        return stopped

    def _run(self) -> StopReason:
        try:
            with stopping_at(lambda: self.clock.end - _FINISH, STAGE):
                self._work()
        except (OutOfTime, KeyboardInterrupt) as stop:
            if not self.bench.readings:
                if isinstance(stop, KeyboardInterrupt):
                    raise
                raise OptionError(
                    f"the time limit of {self.clock.time_limit:g} s was over before one setting could be tried; give "
                    "more"
                ) from None
            return StopReason.DEADLINE if isinstance(stop, OutOfTime) else StopReason.INTERRUPTED
        if not self.bench.readings:
            raise next(iter(self.refused.values()))
        return (
            StopReason.DONE
            if not any(isinstance(each, NoTime) for each in self.refused.values())
            else StopReason.DEADLINE
        )

    def _work(self) -> None:
        parts = self._samples()
        if self.part.outside is None:
            self.clock.time_limit = self.clock.time_limit if self.given else _LONGEST
            self.clock.reserve = 0.5 * self.clock.time_limit
        else:
            self._first(parts[0])
        if self.part.outside is None:
            left = narrow(self.bench, self.candidates, parts[0], self.clock, self.refused)
        elif self.search == "halving":
            left = halve(self.bench, self.candidates, parts, self.clock, self.refused)
            self._more_splits(left)
        else:
            left = self._by_the_paper(parts[-1])
        order = choose(self.bench, left)
        self.clock.reserve = 0.0
        confirm(self.bench, order, self.candidates, self.part, self.people, self.clock, self.confirmed)
        self._columns(parts[0])

    def _samples(self) -> list[Part]:
        """Samples of the people whom the search may use, each with some held out, from a small one to all."""
        count, rng = self.inner.count, self.bench.randomness.generator("samples")
        if self.part.outside is None:
            return [_everybody("search", self.inner, rng, ShadowTrial(most=_SHADOWS))]
        size = int(np.clip(count / 8, _FIRST, _MOST_FIRST))
        sizes = []
        while size < 0.6 * count:
            sizes.append(size)
            size *= _TIMES
        shuffled = [self.inner.some(size, rng) for size in sizes]
        return [draw_part(each, f"sample of {each.count}", _HOLD_OUT, rng) for each in (*shuffled, self.inner)]

    def _first(self, part: Part) -> None:
        """Try two candidates, to know how long one takes and, without a time limit, how long all may take."""
        for candidate in first_tried([each for each in self.candidates if 2 * each.size <= part.people]):
            try:
                reading = self.bench.read(candidate, part)
            except SfumatoError as reason:
                self.refused[candidate] = reason
                continue
            self.clock.saw(candidate.method, part.people, reading.seconds)
            if len(self.bench.readings) > 1:  # the first one loads and compiles
                break
        whole = self.clock.estimate("chain", self.part.people)
        if not self.given:
            self.clock.time_limit = min(_LONGEST, max(_USUAL_SECONDS, _TRIALS * whole))
        self.clock.reserve = _FINISH + max(1.5 * whole, min(3.0 * whole, 0.3 * self.clock.time_limit))

    def _more_splits(self, left: Sequence[Candidate]) -> None:
        """Compare the use of what is left on more splits, as far as time allows for all of them alike."""
        rng = self.bench.randomness.generator("splits")
        known = [each for each in left if each in self.bench.uses]
        for number in range(_SPLITS):
            part = draw_part(self.inner, f"split {number + 1}", _HOLD_OUT, rng)
            if 0.4 * sum(self.clock.estimate(each.method, part.people) for each in known) > self.clock.left:
                break
            for candidate in known:
                self.bench.score(candidate, part)
                tell(STAGE, min(0.99, (monotonic() - self.clock.begin) / self.clock.time_limit))

    def _by_the_paper(self, part: Part) -> list[Candidate]:
        """The size that a search of the paper chooses for the first method that is a condensation [KCG12]."""
        method = next((each.method for each in self.candidates if each.method != "chain"), None)
        if method is None:
            raise OptionError("the paper's searches are for group sizes; name condense or classwise with --methods")
        high = self._largest_size(part)
        least = min(int(each.size) for each in self.candidates if each.method == method)
        if least > high:
            raise OptionError(
                f"the smallest class has {high} people and the smallest size is {least}, so that no group size is left "
                "to search; lower the level, or pool small classes"
            )
        low = max(least, round(_SHARE * high))

        def utility(size: int) -> float:
            reading = self.bench.read(Candidate(method, size), part)
            self.clock.saw(method, part.people, reading.seconds)
            return reading.use.value

        if self.search == "rule-based":
            found = rule_based_search(low, high, utility)
        else:
            found = brute_force(equal_steps(low, high, 10), utility)
        self.searched = SizeSearch(Candidate(method, found.chosen), low, high, found.tried)
        return [self.searched.candidate]

    def _largest_size(self, part: Part) -> int:
        """Persons of the smallest class, the largest size at which no group mixes classes; without classes a half."""
        schema = self.bench.table.schema
        target = schema.target
        if target is None or not is_class(target):
            return max(1, part.people // 2)
        return smallest_class(part.inside, target, persons_of_table(part.inside, schema))

    def _columns(self, part: Part) -> None:
        """Try on a sample what dropping or coarsening the columns that contribute most to the risk would do."""
        best = next((each for each in self.confirmed if each.holds), None)
        nearest = best or max(self.confirmed, key=lambda each: each.chance, default=None)
        if nearest is None:
            return
        reading, table = nearest.reading, self.bench.table
        base = self.bench.reading_of(reading.candidate, part.name)
        for change in changes_for(reading.columns, table.schema, table.options):
            needed = self.clock.estimate(reading.candidate.method, part.people) * (1 if base else 2)
            if needed > self.clock.left:
                return
            try:
                base = base or self.bench.read(reading.candidate, part)
                self.changed.append((base, self.bench.read(reading.candidate, part, change)))
            except SfumatoError:
                continue
        if best is None:
            self._without_a_column()

    def _without_a_column(self) -> None:
        """Where nothing holds, confirm the change that leaks least of those that a command line can say."""
        better = [after for before, after in self.changed if after.outlook.leak < min(1.0, before.outlook.leak)]
        useful_changes = [each for each in better if each.change is not None and each.change.options]
        for after in sorted(useful_changes, key=lambda each: each.outlook.leak)[:1]:
            if self.clock.estimate(after.candidate.method, self.part.people) < self.clock.left:
                found = confirm_one(self.bench, after.candidate, self.part, self.people, self.clock, after.change)
                self.confirmed.append(found)
