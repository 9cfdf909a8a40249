"""The whole tuning: splits, sizes, searches, and the recommendation [KCG12]."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from sfumato.assess.study import study_of
from sfumato.core.errors import OptionError
from sfumato.core.progress import tell
from sfumato.core.randomness import Randomness
from sfumato.engines.plan import Plan, check_people, prepare, schema_of
from sfumato.engines.recipe import Recipe
from sfumato.mechanisms.chain.mechanism import Chain
from sfumato.mechanisms.condense.classwise import choose_size
from sfumato.mechanisms.condense.mechanism import Condensation
from sfumato.mechanisms.protocol import Mechanism
from sfumato.tables.frames import to_arrow
from sfumato.tables.rare import check_way
from sfumato.tables.schema import Schema
from sfumato.tables.weights import check_weights
from sfumato.tuning.metrics import Metric, Score, choose_metric
from sfumato.tuning.model import Mark, SearchPlan, Tuning
from sfumato.tuning.search import brute_force, equal_steps, frontier, recommend, rule_based_search
from sfumato.tuning.sizes import SHARE, check_method, floor_of_chain, maker, parts_of, range_of, usual_tuned
from sfumato.tuning.trials import Split, Trial, try_size
from sfumato.version import __version__

__all__ = ["tune"]

_STAGE = "tuning"
_STEPS = 10
_FEWEST_STEPS = 4


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
    holdout: float = SHARE,
    repeats: int = 5,
    metric: str | None = None,
    budget: float | None = None,
    seed: int | None = None,
) -> Tuning:
    """Try sizes of groups, or of a chain's leaves, on a table and recommend one.

    Every size is tried on the same splits: rows are held out, the others sanitized, and utility is what a model learns
    of the released rows and shows on the real rows held out. Attack success is how many people are linked to a
    released row.

    Parameters
    ----------
    table : pandas, polars or pyarrow table, or path
    target : str, optional
        The class or response that will be mined; without one utility is how well covariances are kept.
    method : {"chain", "classwise", "condense"}, optional
        By default the chain; with fewer than 200 rows class-wise where the target is a class, else condensation.
    schema, level, strata, identifiers, person, rows_are_people, weight, no_rules, rare
        As in `sfumato.sanitize`.
    k : int, optional
        The smallest group size that is tried; by default 5, or the highest level where that is more. Of a chain the
        fewest persons behind a value, as in `sfumato.sanitize`; its leaves are tried from 25, or from k or the highest
        level where that is more.
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
    named, least_held = check_method(method, arrow.num_rows), floor_of_chain(k, level)
    floor: Mechanism = Chain(k=least_held, leaf=least_held) if named == "chain" else Condensation(k=2)

    def split(number: int) -> Split:
        plan = Plan(floor, schema, level, strata, holdout, randomness, rare=check_way(rare))
        job = prepare(arrow, plan, purpose=f"split {number}")
        told.append(job.told)
        rng = randomness.generator(f"study {number}")
        study = study_of(job.original, job.original, job.codec, holdout=job.outside, rng=rng)
        return Split(job.codec, job.records, study)

    first = split(0)
    chosen = choose_metric(first.study, metric)
    method = usual_tuned(first.study, named)
    low, least, high = range_of(first, method, k)
    bench = _Bench(chosen, maker(method, least_held), randomness, [first])
    plan, sizes = _plan(bench, (low, least, high), repeats, holdout, budget)
    bench.splits.extend(split(number) for number in range(1, plan.repeats))
    bench.trials.clear()
    divisor = choose_size(parts_of(first, method), least) if method == "classwise" and least is not None else None
    marks = _search(bench, plan, sizes, divisor)
    trials = tuple(bench.trials[size] for size in sorted(bench.trials))
    choice = recommend(trials, chosen.words, name="leaf" if method == "chain" else "k")
    parameters = {"k": least_held, "leaf": choice.size} if method == "chain" else {"k": choice.size}
    recipe = Recipe(method, parameters, told[0], level, strata, None, None, __version__, no_rules=no_rules, rare=rare)
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


def _plan(
    bench: _Bench, ends: tuple[int, int | None, int], repeats: int, holdout: float, budget: float | None
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


def _passes(low: int, least: int | None, high: int, steps: int) -> int:
    if least is None:
        return len(_geometric(low, high, steps))
    searched = 2 + math.ceil(math.log2(high - least + 2))
    return len({*_geometric(low, high, steps), *equal_steps(least, high, steps)}) + searched


def _geometric(low: int, high: int, count: int) -> tuple[int, ...]:
    return tuple(dict.fromkeys(round(size) for size in np.geomspace(low, high, count)))


def _search(bench: _Bench, plan: SearchPlan, sizes: tuple[int, ...], divisor: int | None) -> tuple[Mark, ...]:
    """Run the paper's two searches, of groups, and the frontier's sizes; what two of them share is measured once."""
    planned = _passes(plan.low, plan.least, plan.high, plan.steps)

    def measured(size: int) -> float:
        value = bench.utility(size)
        tell(_STAGE, min(0.99, len(bench.trials) / planned))
        return value

    for size in sizes:
        measured(size)
    if plan.least is None:
        return ()
    ruled = rule_based_search(plan.least, plan.high, measured)
    forced = brute_force(equal_steps(plan.least, plan.high, plan.steps), measured)
    marks = []
    if divisor is not None and plan.low <= divisor <= plan.high:
        measured(divisor)
        marks.append(Mark("approximate GCD", divisor, (divisor,), _seconds(bench, (divisor,))))
    marks.append(Mark("rule-based", ruled.chosen, ruled.tried, _seconds(bench, ruled.tried)))
    marks.append(Mark("brute force", forced.chosen, forced.tried, _seconds(bench, forced.tried)))
    return tuple(marks)


def _seconds(bench: _Bench, sizes: Iterable[int]) -> float:
    return sum(len(bench.splits) * bench.trials[size].seconds for size in sizes)
