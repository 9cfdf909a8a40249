"""How far the release moved people, and the distances between them on which clustering rests [OZ03; JS07, 2.6].

The distances of two rows before, a, and after, b, differ by |b - a| / max(a, b): 0 if it stayed, 1 where one of them
is 0. Being bounded it is averaged: a median would not see that a tenth of the rows moved. Far pairs shape the clusters
of K-means, near ones those of methods that look at density.

What a release costs: cells changed, seconds taken, bytes that owners exchanged [JS07, sec. 2.4].
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sfumato.assess.algebra import COUNT, SHARE, SIZE, Measure, Need, NotRun, Number, Scale, Stated, Values
from sfumato.assess.findings import Family, Finding, redraw_interval
from sfumato.assess.risk.estimates import number_columns
from sfumato.assess.study import ColumnPair, Matrix, Places, Study, drawn_note, sample
from sfumato.core.neighbours import nearest
from sfumato.tables.facts import Aggregated
from sfumato.tables.field import Kind

__all__ = [
    "CHANGES",
    "COSTS",
    "DISTANCES",
    "MEANS",
    "PERTURBATION",
    "SECURITY",
    "cost_findings",
    "distortion",
    "security",
]

_REDRAWS = 200
_NEAR = 1_000  # rows whose nearest neighbour is sought
_ROUNDING = 1e-12  # part of a distance up to which a change is a matter of the last digits
_ROWS = 20_000  # rows that are looked at
_Pairs = tuple[Places, Places]
_BASELINE = "0 is best. Baseline: rows shuffled among people"


def distortion(before: Matrix, after: Matrix) -> Matrix:
    """Change of each distance, as a part of the longer of both; 0 if they are equal but for rounding.

    Examples
    --------
    >>> distortion(np.array([2.0, 1.0, 0.0]), np.array([1.0, 1.0, 0.0])).tolist()
    [0.5, 0.0, 0.0]
    """
    longer, change = np.maximum(before, after), np.abs(after - before)
    return np.divide(change, longer, out=np.zeros_like(longer), where=change > _ROUNDING * longer)


def _run_distortion(study: Study) -> Iterator[Stated]:
    rng = study.generator("distances")
    known, origin = study.descent()
    people, first = np.unique(origin, return_index=True)
    heirs = known[first]  # one released row that descends from each
    if len(people) < 2:
        raise NotRun("fewer than two released rows descend from different original rows")
    order, count = rng.permutation(len(people)), min(len(people) // 2, study.sizes.testing)
    pairs = order[:count], order[count : 2 * count]  # none twice: the pairs are independent of one another
    far = _lengths(study.original, people, pairs), _lengths(study.released, heirs, pairs)
    mixed = _lengths(study.released, rng.permutation(heirs), pairs)
    rows, some = study.original[people], sample(len(people), min(_NEAR, study.sizes.attempts), rng)
    close = some, nearest(rows, rows[some], own=some)[0][:, 0]
    near = _lengths(study.original, people, close), _lengths(study.released, heirs, close)
    strange = _lengths(study.released, rng.permutation(heirs), close)
    whole = 2 * len(pairs[0]) >= len(study.released) - 1
    notes = (_note("pairs", len(pairs[0]), whole), _note("people", len(close[0]), len(close[0]) == len(study.released)))
    for name, (before, after), shuffled, note in (
        ("distance-distortion", far, mixed, notes[0]),
        ("distance-distortion-any-scale", far, mixed, notes[0]),
        ("distance-distortion-near", near, strange, notes[1]),
    ):
        again = rng.integers(0, len(before), size=(_REDRAWS, len(before)))
        value, chance = float(_mean(name, before, after)), float(_mean(name, before, shuffled))
        interval = redraw_interval(value, _mean(name, before[again], after[again]))
        yield name, Values(value, interval, chance, attempts=len(before), note=note)


def _lengths(rows: Matrix, places: Places, pairs: _Pairs) -> Matrix:
    first, second = (rows[places[side]] for side in pairs)
    return np.asarray(np.sqrt(((first - second) ** 2).sum(axis=1)))


def _stretched(before: Matrix, after: Matrix) -> Matrix:
    """Distances of the release stretched so that the median one is as before; as they are where it is 0."""
    middle = np.median(after, axis=-1, keepdims=True)
    factor = np.divide(np.median(before, axis=-1, keepdims=True), middle, out=np.ones_like(middle), where=middle > 0)
    return np.asarray(after * factor)


def _mean(name: str, before: Matrix, after: Matrix) -> Matrix:
    """Mean change along the last axis."""
    if name.endswith("any-scale"):
        after = _stretched(before, after)
    return np.asarray(distortion(before, after).mean(axis=-1))


def _note(what: str, count: int, whole: bool) -> str:
    return f"; counted on {count} {what}" + ("" if whole else " drawn at random")


DISTANCES = Measure(
    "distances", Family.UTILITY, "after Oliveira & Zaiane 2003, section 1", _run_distortion, needs=(Need.ORIGIN,)
).finds(
    Number("distance-distortion", scale=SHARE).means(
        f"The mean relative change of the distance between two people; {_BASELINE}"
    ),
    Number("distance-distortion-any-scale", scale=SHARE).means(
        "The mean relative change of the distance between two people after scaling all distances by one common factor, "
        f"which most clusterings ignore; {_BASELINE}"
    ),
    Number("distance-distortion-near", scale=SHARE).means(
        "The mean relative change of the distance between a person and the nearest one, which density clustering "
        f"depends on; {_BASELINE}"
    ),
)


def _run_perturbation(study: Study) -> Iterator[Stated]:
    if len(study.original) < 2:
        raise NotRun("the original has a single row and so no neighbours")
    rng, most, scale = study.generator("perturbation"), study.sizes.attempts, np.sqrt(len(study.pairs))
    if study.workings.origin is not None:
        released, people = study.descent()
        chosen = sample(len(released), most, rng)
        rows, people = released[chosen], people[chosen]
        moved = np.sqrt(((study.original[people] - study.released[rows]) ** 2).sum(axis=1))
        control = None
    else:
        people = sample(len(study.original), most, rng)
        moved, control = _to_nearest(study, people, rng)
    if not len(people):
        raise NotRun("no released row descends from an original one")
    others = nearest(study.original, study.original[people], own=people)[1][:, 0]
    (value, interval), note = _mean_moved(moved / scale, rng), drawn_note(len(moved), len(study.original))
    aside, limits = (None, None) if control is None else _mean_moved(control / scale, rng)
    baseline = float(others.mean() / scale)
    yield "perturbation", Values(value, interval, baseline, aside, len(moved), note, control_interval=limits)


def _to_nearest(study: Study, people: Places, rng: np.random.Generator) -> tuple[Matrix, Matrix | None]:
    """How far people, and the control group, are from the released row most like them, in one search."""
    if study.holdout is None:
        return nearest(study.released, study.original[people])[1][:, 0], None
    outside = study.holdout[sample(len(study.holdout), study.sizes.attempts, rng)]
    apart = nearest(study.released, np.concatenate([study.original[people], outside]))[1][:, 0]
    return apart[: len(people)], apart[len(people) :]


def _mean_moved(values: Matrix, rng: np.random.Generator) -> tuple[float, tuple[float, float]]:
    again = rng.integers(0, len(values), size=(_REDRAWS, len(values)))
    return float(values.mean()), redraw_interval(float(values.mean()), values[again].mean(axis=1))


PERTURBATION = Measure("perturbation", Family.UTILITY, "Jain & Sharma 2007, 2.6", _run_perturbation).finds(
    Number("perturbation", scale=SIZE).means(
        "The distance of a person to the most similar released row, or to the row made from theirs if known, in "
        "standard deviations per column. Compare the uncertainty of two methods only if this is equal"
    )
)


def security(original: Matrix, released: Matrix) -> float:
    """Sec = Var(X - Y) / Var(X) of a column whose rows correspond [OZ03]; the paper prints it in percent.

    0 for a translation by definition (errata OZ03.4).

    Examples
    --------
    >>> ages = np.array([20.0, 30.0, 40.0])
    >>> security(ages, ages + 5.0), security(ages, 0.5 * ages)
    (0.0, 0.25)
    """
    return float(np.var(original - released) / np.var(original))


def _run_security(study: Study) -> Iterator[Stated]:
    rng, (released, original) = study.generator("security"), study.descent()
    chosen = sample(len(released), _ROWS, rng)
    rows, people = released[chosen], original[chosen]
    note = drawn_note(len(rows), len(study.released))
    single: dict[str, tuple[Matrix, float, int]] = {}
    for pair in number_columns(study):
        here = ~pair.released.absent[rows] & ~pair.original.absent[people]
        x, y = pair.original.values[people[here]], pair.released.values[rows[here]]
        if len(x) < 2 or not np.var(x) > 0:
            continue
        single[f"security/{pair.name}"] = _security_draws(x, y, rng), 1.0 + float(np.var(y) / np.var(x)), len(x)
    if not single:
        raise NotRun("no column is a number that differs between people and is released")
    mean = np.mean([draws for draws, _, _ in single.values()], axis=0)
    apart = float(np.mean([each for _, each, _ in single.values()]))
    for name, (draws, baseline, count) in {"security": (mean, apart, len(rows)), **single}.items():
        value = float(draws[0])
        yield name, Values(value, redraw_interval(value, draws[1:]), baseline, attempts=count, note=note)


def _security_draws(x: Matrix, y: Matrix, rng: np.random.Generator) -> Matrix:
    """Sec and, behind it, that of redraws of the rows, from sums that each redraw weighs anew."""
    n, apart, own = len(x), x - y, x - x.mean()
    apart = apart - apart.mean()
    terms = np.column_stack([apart, apart * apart, own, own * own])
    sums = np.empty((_REDRAWS, 4))
    for place in range(_REDRAWS):
        sums[place] = np.bincount(rng.integers(0, n, size=n), minlength=n) @ terms / n
    upper, lower = sums[:, 1] - sums[:, 0] ** 2, sums[:, 3] - sums[:, 2] ** 2
    value = security(x, y)
    redraws = np.divide(upper, lower, out=np.full(_REDRAWS, value), where=lower > 0)
    return np.append(value, np.maximum(redraws, 0.0))


SECURITY = Measure("security", Family.PRIVACY, "Oliveira & Zaiane 2003", _run_security, needs=(Need.ORIGIN,)).finds(
    Number("security", "Security (Sec)", Scale((0.0, None), "share").more).means(
        "The variance of the difference between original and released numbers, as a share of the original variance, "
        "averaged over columns; more is better. It is 0 for a plain shift, and two known values undo a shift or a "
        "change of scale, so read it with the known-input attack"
    ),
    Number("security/", scale=Scale((0.0, None), "share").more).means(
        "The variance of the difference between original and released {column}, as a share of the original variance; "
        "more is better. It is 0 for a plain shift, and two known values undo a shift or a change of scale, so read "
        "it with the known-input attack"
    ),
)


_COSTS_SOURCE = "Jain and Sharma 2007, section 2.4"


def _changes(study: Study) -> Iterator[Stated]:
    known, origin = study.descent()
    if not len(known):
        raise NotRun("no released row descends from an original one")
    mixed, wider = study.generator("changes").permutation(origin), study.fact(Aggregated)
    coarsened = () if wider is None else wider.columns
    own, chance = (
        sum(_changed(pair, known, rows, widened=pair.name in coarsened) for pair in study.pairs)
        for rows in (origin, mixed)
    )
    cells = len(known) * len(study.pairs)
    yield "cells-changed", Values(own / cells, baseline=chance / cells, attempts=len(known))


def _changed(pair: ColumnPair, released: Places, original: Places, *, widened: bool) -> int:
    """Cells of released rows that are others than those of original rows; where all were widened, each that is there.

    A study compares a widened column with the original at the same level, so that equal values are no evidence.
    """
    here, there = pair.released.take(released), pair.original.take(original)
    both = ~here.absent & ~there.absent
    other = (here.absent != there.absent) | (both if widened else both & (here.values != there.values))
    return int(np.count_nonzero(other))


CHANGES = Measure("changes", Family.UTILITY, _COSTS_SOURCE, _changes, needs=(Need.ORIGIN,)).finds(
    Number("cells-changed", "Cells changed", SHARE).means(
        "The share of cells that differ from the original row that the released row was made from, became wider, or "
        "became missing. Baseline: rows shuffled among people"
    )
)

COSTS = Measure("costs", Family.UTILITY, _COSTS_SOURCE, lambda _: ()).finds(
    Number("seconds-taken", "Sanitizing time, seconds", SIZE.owners).means(
        "Time of the method on this machine in seconds, without reading and measuring"
    ),
    Number("bytes-exchanged", "Bytes exchanged by the parties", COUNT.owners).means(
        "Bytes that all parties of a joint run sent each other"
    ),
)


def cost_findings(seconds: float, sent: int | None) -> tuple[Finding, ...]:
    """What was measured of a run and not of its rows: seconds where they were taken, bytes where owners sent some."""
    stated: list[Stated] = []
    if seconds > 0:
        stated.append(("seconds-taken", Values(seconds)))
    if sent is not None:
        stated.append(("bytes-exchanged", Values(float(sent))))
    return COSTS.findings(stated)


_NORMAL = 1.96


def _run_means(study: Study) -> Iterator[Stated]:
    changes = []
    for pair in study.pairs:
        if pair.field.kind not in (Kind.CONTINUOUS, Kind.INTEGER):
            continue
        before, after = pair.original.present, pair.released.present
        if len(before) < 2 or len(after) < 2 or not (mean := float(before.mean())):
            continue
        moved = float(after.mean()) - mean
        change = abs(moved) / abs(mean)
        error = float(np.hypot(before.std() / len(before) ** 0.5, after.std() / len(after) ** 0.5)) / abs(mean)
        reach = _NORMAL * error
        changes.append((change, reach))
        note = f"; the mean of {pair.name} became {'larger' if moved > 0 else 'smaller'}" if moved else ""
        yield f"mean-change/{pair.name}", Values(change, (max(0.0, change - reach), change + reach), reach, note=note)
    if not changes:
        raise NotRun("no column holds numbers with a mean other than 0", applies=False)
    largest, reach = max(changes)
    yield "mean-change-largest", Values(largest, baseline=reach)


_CHANGE = Scale((0.0, None), "share", public=False)

MEANS = Measure("means", Family.UTILITY, "after Hundepool et al. 2012, section 3", _run_means, exact=True).finds(
    Number("mean-change-largest", "Change of a mean, largest", _CHANGE).means(
        "The largest relative change of the mean of a numeric column; sums over as many rows change alike. Baseline: "
        "chance alone"
    ),
    Number("mean-change/", "Change of the mean", _CHANGE).means(
        "The relative change of the mean of {column}. Top and bottom coding of a long tail lowers it. Baseline: "
        "chance alone"
    ),
)
