"""The whole tuning: splits, sizes, searches, and the recommendation [KCG12]."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from sfumato.assess.study import Study, study_of
from sfumato.core.errors import LevelError, OptionError
from sfumato.core.progress import tell
from sfumato.core.randomness import Randomness
from sfumato.engines.plan import Plan, check_people, prepare, schema_of
from sfumato.engines.recipe import Recipe
from sfumato.mechanisms.condense.classwise import ClasswiseCondensation, choose_size, classes_of
from sfumato.mechanisms.condense.layers import first_of_person
from sfumato.mechanisms.condense.mechanism import Condensation
from sfumato.mechanisms.protocol import Mechanism
from sfumato.tables.frames import to_arrow
from sfumato.tables.rare import check_way
from sfumato.tables.schema import Schema
from sfumato.tables.weights import check_weights
from sfumato.tuning.metrics import Metric, Score, choose_metric, has_classes
from sfumato.tuning.model import Mark, SearchPlan, Tuning
from sfumato.tuning.search import brute_force, equal_steps, frontier, recommend, rule_based_search
from sfumato.tuning.trials import Split, Trial, try_size
from sfumato.version import __version__

__all__ = ["tune"]

_STAGE = "tuning"
_FLOOR = 5  # the smallest group size that is tried unless a level or k asks for more
_SHARE = 0.1  # the paper's t as a share of the smallest class, and of the rows held out
_STEPS = 10
_FEWEST_STEPS = 4
_METHODS: dict[str, Callable[[int], Mechanism]] = {
    "classwise": lambda size: ClasswiseCondensation(k=size),
    "condense": lambda size: Condensation(k=size),
}


def tune(
    table: Any,
    *,
    target: str | None = None,
    method: str | None = None,
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
    holdout: float = _SHARE,
    repeats: int = 5,
    metric: str | None = None,
    budget: float | None = None,
    seed: int | None = None,
) -> Tuning:
    """Try group sizes on a table and recommend one.

    Every size is tried on the same splits: rows are held out, the others sanitized, and utility is what a model learns
    of the released rows and shows on the real rows held out. Attack success is how many people are linked to a
    released row.

    Parameters
    ----------
    table : pandas, polars or pyarrow table, or path
    target : str, optional
        The class or response that will be mined; without one utility is how well covariances are kept.
    method : {"classwise", "condense"}, optional
        By default class-wise where the target is a class.
    schema, level, strata, identifiers, person, rows_are_people, weight, no_rules, rare
        As in `sfumato.sanitize`.
    k : int, optional
        The smallest group size that is tried; by default 5, or the highest level where that is more.
    holdout : float
        Share of the rows held out in each split.
    repeats : int
        Splits on which each size is tried.
    metric : str, optional
        Which utility, see `sfumato.tuning.metrics.METRICS`.
    budget : float, optional
        Seconds that it may take; chooses fewer repeats, then fewer sizes.
    seed : int, optional
        Makes the tuning reproducible; the recipe holds no seed.
    """
    begin = perf_counter()
    _check(repeats, holdout, budget)
    arrow, _ = to_arrow(table)
    randomness = Randomness(seed)
    found = schema is None
    schema = schema_of(arrow, schema, target, identifiers, person=person, weight=weight, coarsens=True)
    schema = schema.without_rules() if no_rules else schema
    check_weights(arrow, schema)
    if found:
        check_people(arrow, schema, person=person, rows_are_people=rows_are_people)
    tell(_STAGE, 0.0)

    told: list[Schema] = []

    def split(number: int, crowd: int) -> Split:
        floor = Condensation(k=max(2, crowd))
        plan = Plan(floor, schema, level, strata, holdout, randomness, rare=check_way(rare))
        job = prepare(arrow, plan, purpose=f"split {number}")
        told.append(job.told)
        rng = randomness.generator(f"study {number}")
        study = study_of(job.original, job.original, job.codec, holdout=job.outside, rng=rng)
        return Split(job.codec, job.records, study)

    first = split(0, 2)
    chosen = choose_metric(first.study, metric)
    method = _method(first.study, method)
    low, least, high = _range(first, method, k)
    bench = _Bench(chosen, _METHODS[method], randomness, [first])
    plan, sizes = _plan(bench, (low, least, high), repeats, holdout, budget)
    bench.splits.extend(split(number, 2) for number in range(1, plan.repeats))
    bench.trials.clear()
    marks = _search(bench, plan, sizes, choose_size(_cells(first, method), least) if method == "classwise" else None)
    trials = tuple(bench.trials[size] for size in sorted(bench.trials))
    choice = recommend(trials, chosen.words)
    recipe = Recipe(
        method, {"k": choice.size}, told[0], level, strata, None, None, __version__, no_rules=no_rules, rare=rare
    )
    original = [chosen.run(each.study) for each in bench.splits] if chosen.of != "table" else []
    baseline = float(np.mean([score.value for score in original])) if original else None
    tell(_STAGE, 1.0)
    return Tuning(
        trials,
        choice,
        marks,
        frontier(trials),
        recipe,
        plan,
        chosen.name,
        chosen.words,
        baseline,
        perf_counter() - begin,
        _notes(plan, original),
    )


def _notes(plan: SearchPlan, original: list[Score]) -> tuple[str, ...]:
    """What a reader must know before taking the recommendation."""
    notes = []
    if plan.budget is not None and plan.estimate is not None:
        kept = "within" if plan.estimate <= plan.budget else "the fewest that still tell something, more than"
        notes.append(
            f"The budget chose {plan.repeats} splits and {plan.steps} steps (estimated {plan.estimate:g} s, {kept} the "
            f"{plan.budget:g} s granted)."
        )
    if plan.repeats == 1:
        notes.append("On a single split utility has no interval: small differences between sizes are chance.")
    if original and np.mean([score.value for score in original]) <= np.mean([score.guess for score in original]) + 0.02:
        notes.append(
            "The original itself teaches this model no more than guessing, so that utility says nothing here; take "
            "another --metric or another target."
        )
    return tuple(notes)


@dataclasses.dataclass(eq=False, repr=False)
class _Bench:
    """Tries sizes, each once."""

    metric: Metric
    make: Callable[[int], Mechanism]
    randomness: Randomness
    splits: list[Split]
    trials: dict[int, Trial] = dataclasses.field(default_factory=dict)

    def trial(self, size: int) -> Trial:
        if size not in self.trials:
            rngs = [self.randomness.generator(f"size {size} split {number}") for number in range(len(self.splits))]
            self.trials[size] = try_size(size, self.splits, self.make, self.metric, rngs)
        return self.trials[size]

    def utility(self, size: int) -> float:
        return self.trial(size).utility


def _check(repeats: int, holdout: float, budget: float | None) -> None:
    if repeats < 1:
        raise OptionError("repeats must be at least 1; the usual number is 5")
    if not 0.0 < holdout < 1.0:
        raise OptionError("the share of rows to hold out must lie between 0 and 1; the usual one is 0.1")
    if budget is not None and not budget > 0:
        raise OptionError("the budget is a number of seconds above 0")


def _method(study: Study, method: str | None) -> str:
    if method is None:
        return "classwise" if has_classes(study) else "condense"
    if method not in _METHODS:
        raise OptionError(f"group sizes are tuned for 'classwise' and 'condense'; there is none in {method!r}")
    if method == "classwise" and not has_classes(study):
        raise OptionError("class-wise condensation needs a target that is a class; name one, or take condense")
    return method


def _cells(split: Split, method: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Persons of each part that groups may not leave."""
    parts = [split.records.strata] if method != "classwise" else [split.records.strata, classes_of(split.records)[1]]
    codes = np.unique(np.column_stack(parts), axis=0, return_inverse=True)[1].ravel()
    return np.bincount(codes[first_of_person(codes, split.records.persons)])


def _range(split: Split, method: str, k: int | None) -> tuple[int, int, int]:
    """The least size tried, the paper's t, and the largest: the smallest class, or half of the records."""
    counts = _cells(split, method)
    asked = int(split.records.levels.max(initial=0))
    smallest = int(counts.min())
    # a split holds other rows out of the smallest class than the next: leave room for chance
    room = (
        smallest - math.ceil(3 * math.sqrt(smallest * _SHARE))
        if method == "classwise" or len(counts) > 1
        else smallest // 2
    )
    low = max(2, asked, _FLOOR if k is None else k)
    if room < low:
        raise LevelError(
            f"the smallest part that groups may not leave has {smallest} records, too few to try groups of {low}; "
            "pool small classes, lower --k, or take the method condense"
        )
    least = min(room, max(low, round(_SHARE * smallest)))
    return low, least, room


def _plan(
    bench: _Bench, ends: tuple[int, int, int], repeats: int, holdout: float, budget: float | None
) -> tuple[SearchPlan, tuple[int, ...]]:
    """Sizes and repeats; with a budget from the time of one pass at either end."""
    low, least, high = ends
    steps, estimate = _STEPS, None
    if budget is not None:
        begin = perf_counter()
        bench.trial(high)  # the first pass loads and compiles: it is not timed
        bench.trials.clear()
        seconds = (bench.trial(low).seconds + bench.trial(high).seconds) / 2
        left = max(0.0, 0.9 * (budget - (perf_counter() - begin)))
        while steps > _FEWEST_STEPS and _passes(low, least, high, steps) * seconds > left:
            steps -= 1
        repeats = max(1, min(repeats, int(left / max(1e-9, _passes(low, least, high, steps) * seconds))))
        if repeats > 1:
            fits = [s for s in range(_STEPS, 0, -1) if _passes(low, least, high, s) * seconds * repeats <= left]
            steps = max(fits[0] if fits else _FEWEST_STEPS, _FEWEST_STEPS)
        estimate = float(f"{_passes(low, least, high, steps) * seconds * repeats:.2g}")
    plan = SearchPlan(low, least, high, steps, repeats, holdout, budget, estimate)
    return plan, _geometric(low, high, steps)


def _passes(low: int, least: int, high: int, steps: int) -> int:
    searched = 2 + math.ceil(math.log2(high - least + 2))
    return len({*_geometric(low, high, steps), *equal_steps(least, high, steps)}) + searched


def _geometric(low: int, high: int, count: int) -> tuple[int, ...]:
    return tuple(dict.fromkeys(round(size) for size in np.geomspace(low, high, count)))


def _search(bench: _Bench, plan: SearchPlan, sizes: tuple[int, ...], divisor: int | None) -> tuple[Mark, ...]:
    """Run the paper's two searches and the frontier's sizes; whatever two of them share is measured once."""
    planned = _passes(plan.low, plan.least, plan.high, plan.steps)

    def measured(size: int) -> float:
        value = bench.utility(size)
        tell(_STAGE, min(0.99, len(bench.trials) / planned))
        return value

    ruled = rule_based_search(plan.least, plan.high, measured)
    forced = brute_force(equal_steps(plan.least, plan.high, plan.steps), measured)
    for size in sizes:
        measured(size)
    marks = []
    if divisor is not None and plan.low <= divisor <= plan.high:
        measured(divisor)
        marks.append(Mark("approximate GCD", divisor, (divisor,), _seconds(bench, (divisor,))))
    marks.append(Mark("rule-based", ruled.chosen, ruled.tried, _seconds(bench, ruled.tried)))
    marks.append(Mark("brute force", forced.chosen, forced.tried, _seconds(bench, forced.tried)))
    return tuple(marks)


def _seconds(bench: _Bench, sizes: Iterable[int]) -> float:
    return sum(len(bench.splits) * bench.trials[size].seconds for size in sizes)
