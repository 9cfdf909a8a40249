"""Singling out: predicates read off the released table that fit exactly one person of the original.

[Giomi et al. 2023; Cohen & Nissim 2020]. A predicate is a conjunction of conditions on single columns. Only one that
fits exactly one released row is put forward, and each that is put forward counts as an attempt.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.attacks.predicates import AT_LEAST, AT_MOST, EQUAL, MISSING, Predicates, Rows, find_fits
from sfumato.assess.findings import Family
from sfumato.assess.frame import Measure, Need, NotRun, Number, Stated, Values, success
from sfumato.assess.intervals import Tries, crowd, crowded, worth
from sfumato.assess.stand_ins import split_in_two
from sfumato.assess.study import Study, sample

__all__ = ["SINGLING_OUT", "conjunctions", "guesses_like", "single_conditions"]

_Matrix = NDArray[np.float64]
_MOST_COLUMNS = 5  # conditions in a predicate
_TRIES = 100  # candidates for each predicate that is wanted
_WORK = 100_000_000_000  # candidates times rows beyond which no more are tried


def _run(study: Study) -> Iterator[Stated]:
    rng = study.generator("singling-out")
    ordered = np.array([pair.is_number for pair in study.pairs])
    original = Rows.of([pair.original for pair in study.pairs])
    released = Rows.of([pair.released for pair in study.pairs])
    held = None if study.held is None else Rows.of(study.held)
    for name, describe in (("univariate", single_conditions), ("multivariate", conjunctions)):
        if describe is conjunctions and len(ordered) < 2:
            yield f"singling-out-{name}", NotRun(Need.COLUMNS.value, applies=False)
            continue
        predicates = describe(released, ordered, study.sizes.attempts, rng)
        lacking = NotRun("no description fits exactly one released row, so none was put forward", applies=False)
        found = _fitting(predicates, original, held, ordered, rng) if len(predicates) else lacking
        yield f"singling-out-{name}", found


def _fitting(
    predicates: Predicates, original: Rows, held: Rows | None, ordered: NDArray[np.bool_], rng: np.random.Generator
) -> Values:
    """Successes among the originals, and of the control where held-out people sit among them."""
    guess = float((find_fits(guesses_like(predicates, original, ordered, rng), original)[0] == 1).mean())
    counts, places = find_fits(predicates, original)
    attack = Tries(int((counts == 1).sum()), len(predicates))
    hanging, n = crowd(places[counts == 1]), len(original)
    if held is None or n < 2:
        values = success(attack, guess=guess, control=None)
        interval = crowded(attack.share, len(predicates), hanging)
        return dataclasses.replace(values, interval=interval, inside=_independent(attack, hanging))
    seats = rng.permutation(n)[: min(len(held), n // 2)]
    guests = Rows.of_matrix(held.cells[:, sample(len(held), len(seats), rng)])
    counts, places = find_fits(predicates, guests)
    alone = (counts == 1) & (find_fits(predicates, original, np.isin(np.arange(n), seats))[0] == 0)
    outside = Tries(int(alone.sum()), len(predicates))
    hanging = max(hanging, crowd(places[alone]))
    scale = n / len(seats)  # so many times as often, were all seats theirs
    control = Tries(min(outside.hits * scale, outside.of), outside.of)
    low, high = crowded(outside.share, len(predicates), hanging)
    return dataclasses.replace(
        success(attack, guess=guess, control=control),
        interval=crowded(attack.share, len(predicates), hanging),
        control_interval=(min(low * scale, control.share), min(high * scale, 1.0)),
        inside=_independent(attack, hanging),
        outside=_independent(outside, hanging, scale),
    )


def _independent(tries: Tries, hanging: float, scale: float = 1.0) -> Tries:
    """As many tries as are left where so many hang on the same thing."""
    count = worth(int(tries.of), hanging)
    return Tries(tries.share * count, count, scale)


def single_conditions(released: Rows, ordered: NDArray[np.bool_], most: int, rng: np.random.Generator) -> Predicates:
    """Conditions on single columns that fit exactly one released row, of which at most so many are drawn.

    They are the values that one row alone has, the least and the greatest where one row alone has it, and to be the
    only row with a missing cell.
    """
    parts: list[tuple[int, int, _Matrix]] = []
    for column in range(len(ordered)):
        values, counts = np.unique(released.known(column), return_counts=True)
        parts.append((column, EQUAL, values[counts == 1]))
        if ordered[column]:
            parts.append((column, AT_MOST, values[:1][counts[:1] == 1]))
            parts.append((column, AT_LEAST, values[-1:][counts[-1:] == 1]))
        if released.present[column] == len(released) - 1:
            parts.append((column, MISSING, np.zeros(1)))
    lengths = [len(values) for _, _, values in parts]
    kept = sample(sum(lengths), most, rng)
    columns, ways = (np.repeat([part[item] for part in parts], lengths)[kept, None] for item in (0, 1))
    values = np.concatenate([values for _, _, values in parts])[kept, None]
    return Predicates(columns.astype(np.int64), ways.astype(np.int64), values)


def conjunctions(released: Rows, ordered: NDArray[np.bool_], most: int, rng: np.random.Generator) -> Predicates:
    """Random released rows described by random columns, until so many different descriptions fit one row alone.

    An ordered cell becomes "at least" or "at most" it, away from the released median; a category or a missing cell
    stands for itself.
    """
    known = [released.known(column) for column in range(len(ordered))]
    medians = np.array([np.median(values) if len(values) else 0.0 for values in known])
    kept, tried, count = None, 0, most
    while tried < min(_TRIES * most, max(10 * most, _WORK // len(released))):
        batch = _describe(released, ordered, medians, count, rng)
        batch = batch.take(find_fits(batch, released)[0] == 1)
        before = 0 if kept is None else len(kept)
        kept = (batch if kept is None else kept.join(batch)).distinct()
        tried += count
        if len(kept) >= most or (len(kept) == before and tried > 10 * most):  # enough, or nothing new to say
            break
        count = min(10 * most, (most - len(kept)) * tried // max(len(kept), 1) + most // 4 + 1)
    assert kept is not None
    return kept.take(sample(len(kept), most, rng))


def _describe(
    released: Rows, ordered: NDArray[np.bool_], medians: _Matrix, count: int, rng: np.random.Generator
) -> Predicates:
    """So many random rows described by two to five random columns each."""
    columns = len(ordered)
    widest = min(_MOST_COLUMNS, columns)
    chosen = np.sort(rng.permuted(np.tile(np.arange(columns), (count, 1)), axis=1)[:, :widest], axis=1)
    left_out = np.arange(widest) >= rng.integers(2, widest + 1, size=count)[:, None]
    chosen = np.where(rng.permuted(left_out, axis=1), -1, chosen)
    cells = released.cells[chosen, rng.integers(0, len(released), size=count)[:, None]]
    ways = np.where(ordered[chosen], np.where(cells >= medians[chosen], AT_LEAST, AT_MOST), EQUAL)
    ways = np.where(np.isnan(cells), MISSING, ways)
    return Predicates(chosen, ways, np.where(np.isnan(cells), 0.0, cells))


def guesses_like(
    predicates: Predicates, original: Rows, ordered: NDArray[np.bool_], rng: np.random.Generator
) -> Predicates:
    """As many predicates on the same columns that owe nothing to the released table.

    The conditions keep their ways; numbers are drawn between the least and the greatest of the column, whole where all
    of it are whole, and categories from those there are, all equally.
    """
    values = np.zeros(predicates.values.shape)
    for column in range(len(ordered)):
        here = predicates.columns == column
        known = original.known(column)
        if not here.any() or not len(known):
            continue
        if ordered[column]:
            drawn = rng.uniform(known[0], known[-1], size=int(here.sum()))
            values[here] = np.rint(drawn) if (known == np.rint(known)).all() else drawn
        else:
            values[here] = rng.choice(np.unique(known), size=int(here.sum()))
    return Predicates(predicates.columns, predicates.ways, values)


_HELD_OUT = "less is better, and what fits held-out people as often is not due to being in the table"
SINGLING_OUT = Measure(
    "singling-out",
    Family.ATTACK,
    "Giomi, Boenisch, Wehmeyer & Tasnádi 2023; Cohen & Nissim 2020",
    (
        Number(
            "singling-out-univariate",
            "The share of the extreme or unique values of single released columns that fit exactly one person of the "
            f"original; {_HELD_OUT}",
            "Singling out by one column",
            unit="share",
        ),
        Number(
            "singling-out-multivariate",
            "The share of the descriptions by two to five columns, made from a released row that alone fits them, that "
            f"fit exactly one person of the original; {_HELD_OUT}",
            "Singling out by several columns",
            unit="share",
        ),
    ),
    _run,
    stand_ins=split_in_two,
)
