"""Reading numbers off a rare combination of categories, after the matching of uniques [Skinner & Elliot 2002].

Groups that keep the counts of their categories release the combination of a person who is alone with it, or one like
it. The attacker who knows the categories takes the numbers beside them for the person's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sfumato.assess.attacks.inference import CLOSE
from sfumato.assess.findings import Family
from sfumato.assess.frame import SHARE, SIZE, Measure, NotRun, Number, Stated, Values, success
from sfumato.assess.intervals import Tries, median_interval
from sfumato.assess.study import Column, Matrix, Places, Study, row_codes, sample

__all__ = ["RARE_COMBINATIONS"]

_RARE = 10  # people who hold a combination that is rare at all
_SLACK = 10  # where people share theirs with more, who would have shared it with a tenth more counts as well
_ENOUGH = 500  # people of the rarest combinations whose share is told


def _run(study: Study) -> Iterator[Stated]:
    rng = study.generator("rare-combinations")
    numbers = [place for place, pair in enumerate(study.pairs) if pair.is_number]
    categories = [place for place, pair in enumerate(study.pairs) if not pair.is_number]
    if not numbers or not categories:
        lacking = "ordered column" if categories else "column of categories"
        raise NotRun(f"the table has no {lacking}", applies=False)
    original, released = ([getattr(pair, side) for pair in study.pairs] for side in ("original", "released"))
    tables = [original, released, *([] if study.held is None else [study.held])]
    keys = _combinations([[table[place] for place in categories] for table in tables])
    scale = [_spread(original[place]) for place in numbers]
    units = [_in_units([table[place] for place in numbers], scale) for table in tables]
    counts = [np.bincount(codes, minlength=max(int(codes.max()) for codes in keys) + 1) for codes in keys]
    alone = np.flatnonzero((counts[0][keys[0]] == 1) & (counts[1][keys[0]] > 0))
    alone = alone[sample(len(alone), study.sizes.attempts, rng)]
    errors, guesses = _errors(units[0][alone], keys[0][alone], units[1], keys[1])
    if len(errors):
        yield "rare-combination-error", _median_error(study, errors, guesses, keys, units, counts, rng)
    else:
        why = "no released row has the categories of a person who is alone with theirs and of whom a number is known"
        yield "rare-combination-error", NotRun(why, applies=False)
    yield "rare-combination-found", _share_found(study, keys, units, counts, rng)


def _median_error(
    study: Study,
    errors: Matrix,
    guesses: Matrix,
    keys: Sequence[Places],
    units: Sequence[Matrix],
    counts: Sequence[Places],
    rng: np.random.Generator,
) -> Values:
    """How far off the numbers of people who are alone are, and those of people held out."""
    control = np.empty(0)
    if len(keys) > 2:
        outside = np.flatnonzero((counts[0][keys[2]] <= 1) & (counts[1][keys[2]] > 0))
        outside = outside[sample(len(outside), study.sizes.attempts, rng)]
        control = _errors(units[2][outside], keys[2][outside], units[1], keys[1])[0]
    total, any_held = int((counts[0] == 1).sum()), bool(len(control))
    lacking = "no held-out person has such a combination" if len(keys) > 2 else "no rows were held out"
    return Values(
        float(np.median(errors)),
        median_interval(errors),
        float(np.median(guesses)),
        float(np.median(control)) if any_held else None,
        len(errors),
        f"; {total} people are alone with their categories, and {len(errors)} of them were attacked",
        control_interval=median_interval(control) if any_held else None,
        aside="" if any_held else f" Control not run, because {lacking}.",
    )


def _share_found(
    study: Study,
    keys: Sequence[Places],
    units: Sequence[Matrix],
    counts: Sequence[Places],
    rng: np.random.Generator,
) -> Values | NotRun:
    """How often the numbers of people with rare combinations are found, and those of people held out.

    Combinations are rare that at most so many hold as it takes to have 500 people, or all there are. Somebody
    held out has a rare one if it were so with them in the table.
    """
    shared = counts[0][keys[0]]
    if shared.min() > _RARE:
        return NotRun(f"every combination of categories is held by more than {_RARE} people", applies=False)
    most = int(np.sort(shared)[min(_ENOUGH, len(shared)) - 1])
    tries, guessed = [], []
    for side, room in ((0, most), (2, most - 1 + most // _SLACK))[: len(keys) - 1]:
        people = np.flatnonzero(counts[0][keys[side]] <= room)
        people = people[sample(len(people), study.sizes.attempts, rng)]
        read, guess = (
            error <= CLOSE for error in _read_off(units[side][people], keys[side][people], units[1], keys[1])
        )
        tries.append(Tries(int(read.sum()), len(people)))
        guessed.append(float(guess.mean()) if len(people) else 0.0)
    control = tries[1] if len(tries) > 1 and tries[1].of else None
    held = "1 person of the table" if most == 1 else f"{most} people of the table"
    return success(tries[0], guess=guessed[0], control=control, note=f"; rare is here what at most {held} have")


def _combinations(tables: Sequence[Sequence[Column]]) -> list[Places]:
    """A number for each combination of categories, the same in all tables; a missing cell is a category."""
    ends = np.cumsum([len(table[0].values) for table in tables])
    cells = (np.concatenate([column.codes(None) + 1 for column in columns]) for columns in zip(*tables, strict=True))
    return np.split(row_codes(cells, int(ends[-1])), ends[:-1])


def _spread(cells: Column) -> float:
    present = cells.present
    return (float(present.std()) if len(present) else 0.0) or 1.0


def _in_units(columns: Sequence[Column], scale: Sequence[float]) -> Matrix:
    """Ordered columns stacked, in standard deviations of the original; missing cells are NaN."""
    return np.stack(
        [np.where(cells.absent, np.nan, cells.values / unit) for cells, unit in zip(columns, scale, strict=True)],
        axis=1,
    )


def _errors(people: Matrix, wanted: Places, released: Matrix, keys: Places) -> tuple[Matrix, Matrix]:
    """Each person's mean absolute error by the mean of the released rows of their combination, and by medians.

    Cells that are missing on either side are left out, and so are people of whom none is left.
    """
    found, guessed = _read_off(people, wanted, released, keys)
    some = ~np.isnan(found)
    return found[some], guessed[some]


def _read_off(people: Matrix, wanted: Places, released: Matrix, keys: Places) -> tuple[Matrix, Matrix]:
    """Errors as in `_errors`, of everybody; NaN where nothing can be compared."""
    known = ~np.isnan(released)
    filled, slots = np.where(known, released, 0.0), int(max(keys.max(), wanted.max(initial=0))) + 1
    read, guess = np.full(people.shape, np.nan), np.full(people.shape, np.nan)
    for column in range(people.shape[1]):
        sums = np.bincount(keys, filled[:, column], slots)[wanted]
        counts = np.bincount(keys, known[:, column], slots)[wanted]
        read[:, column] = np.divide(sums, counts, out=np.full(len(wanted), np.nan), where=counts > 0)
        if known[:, column].any():
            guess[:, column] = np.median(released[known[:, column], column])
    both = ~np.isnan(people - read)
    some = both.any(axis=1)
    cells = np.maximum(both.sum(axis=1), 1)
    found, guessed = (np.where(both, np.abs(people - way), 0.0).sum(axis=1) / cells for way in (read, guess))
    return np.where(some, found, np.nan), np.where(some, guessed, np.nan)


RARE_COMBINATIONS = Measure("rare-combinations", Family.ATTACK, "after Skinner & Elliot 2002", _run).finds(
    Number("rare-combination-error", "Error of numbers read off a rare combination", SIZE.more).means(
        "How far off, in standard deviations, the numbers are that an attacker reads from the released rows with "
        "the same categories as a person who is alone with theirs, in the median over such people; 0 gives them "
        "away, and more is better"
    ),
    Number("rare-combination-found", "Numbers read off a rare combination", SHARE).means(
        "The share of people with the rarest combinations of categories whose numbers an attacker reads, to a "
        "tenth of a standard deviation on average, from the released rows with the same categories; less is "
        "better, and what held-out people suffer too is not due to being in the table"
    ),
)
