"""What an intruder takes for a person's cells: those of the released rows that are nearest in all other columns.

Interval, entropy and perturbation are all read off the same released rows, so they are looked up once a study.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sfumato.assess.study import Column, ColumnPair, Matrix, Places, Study, once, sample
from sfumato.core.neighbours import nearest_without_each_column

__all__ = [
    "InferenceTargets",
    "average",
    "first",
    "look_up",
    "number_columns",
    "number_errors",
    "sampling_note",
]

NEIGHBOURS = 10
"""Released rows that an intruder looks at for each person and column."""
_WORK = 1.2e10  # coordinate differences that the look-ups may cost
_OVERHEAD = 3.0  # what keeping the nearest costs for each pair and column, in coordinate differences
_USUAL = 2000  # attempts for which that much work is right
_FEWEST = 100


@dataclass(frozen=True, eq=False, repr=False)
class InferenceTargets:
    """The people whose cells are guessed, and the released rows that speak of them.

    ``people`` and ``outside`` are places in the original and among the rows held out; ``outside`` is None if there
    is no control. ``near`` gives for each column and person the places of released rows, nearest first. Where rows
    ``descend`` it is the one row that descends from the person, whichever the column.
    """

    people: Places
    outside: Places | None
    near: dict[str, tuple[Places, Places | None]]
    descend: bool


@once
def look_up(study: Study) -> InferenceTargets | None:
    """People drawn at random, and for each the released rows that an intruder would take for theirs.

    Where it is known which row descends from whom the intruder knows it too. Else the intruder knows all of a person's
    columns but one and takes the rows nearest in those. None if there is one column and so nothing to go by.
    """
    if study.workings.origin is None:
        return _nearest_by_column(study)
    released, original = study.descent()
    chosen = sample(len(released), study.sizes.attempts, study.generator("estimates"))
    rows = released[chosen].astype(np.int64)
    near: dict[str, tuple[Places, Places | None]] = {pair.name: (rows[:, None], None) for pair in study.pairs}
    return InferenceTargets(original[chosen], None, near, descend=True)


def _nearest_by_column(study: Study) -> InferenceTargets | None:
    if len(study.pairs) < 2:
        return None
    rng, most = study.generator("estimates"), _most(study)
    people = sample(len(study.original), most, rng)
    queries, outside = study.original[people], None
    if study.holdout is not None:
        outside = sample(len(study.holdout), most, rng)
        queries = np.concatenate([queries, study.holdout[outside]])
    names = [pair.name for pair in study.pairs]
    column_of = np.empty(study.released.shape[1], dtype=np.int64)
    for block in study.layout:
        column_of[block.where] = names.index(block.column)
    places = nearest_without_each_column(study.released, queries, column_of, min(NEIGHBOURS, len(study.released)))
    inside, beyond = places[:, : len(people)], places[:, len(people) :]
    near = {name: (inside[at], None if outside is None else beyond[at]) for at, name in enumerate(names)}
    return InferenceTargets(people, outside, near, descend=False)


def _most(study: Study) -> int:
    """How many people, so that the look-ups of all columns together stay affordable."""
    each = len(study.released) * (study.released.shape[1] + _OVERHEAD * len(study.pairs))
    granted = _WORK * study.sizes.attempts / _USUAL / each / (1 if study.holdout is None else 2)
    return int(min(study.sizes.attempts, max(_FEWEST, granted)))


def first(cells: Column, places: Places) -> Matrix:
    """Number of the nearest row that has one; the column's median, which teaches nothing, if none has."""
    has = ~cells.absent[places]
    place = places[np.arange(len(places)), has.argmax(axis=1)]
    return np.where(has.any(axis=1), cells.values[place], _middle(cells))


def average(cells: Column, places: Places) -> Matrix:
    """Mean of the numbers that the nearest rows have; the column's median where none has."""
    has = ~cells.absent[places]
    count = has.sum(axis=1)
    total = np.where(has, cells.values[places], 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), _middle(cells))


def _middle(cells: Column) -> float:
    return float(np.median(cells.present)) if len(cells.present) else 0.0


def number_columns(study: Study) -> list[ColumnPair]:
    """Columns of numbers that differ between people; what does not differ cannot be estimated."""
    numbers = [pair for pair in study.pairs if pair.is_number and len(pair.original.present)]
    return [pair for pair in numbers if pair.original.present.min() < pair.original.present.max()]


def number_errors(study: Study, guessed: InferenceTargets) -> Iterator[tuple[ColumnPair, Matrix, Matrix | None]]:
    """Each column's errors on the original's people and on those held out; NaN where the cell is missing."""
    held = dict(zip((pair.name for pair in study.pairs), study.held or (), strict=False))
    for pair in number_columns(study):
        inside, beyond = guessed.near[pair.name]
        outside = None
        if guessed.outside is not None and beyond is not None:
            outside = _error_of(held[pair.name], guessed.outside, first(pair.released, beyond))
        yield pair, _error_of(pair.original, guessed.people, first(pair.released, inside)), outside


def _error_of(cells: Column, people: Places, estimate: Matrix) -> Matrix:
    """The people's own numbers less the estimate; NaN where these are missing."""
    return np.where(cells.absent[people], np.nan, cells.values[people] - estimate)


def sampling_note(study: Study, guessed: InferenceTargets) -> str:
    """What the look-up did, to end a meaning with."""
    all_rows = len(study.released) if guessed.descend else len(study.original)
    drawn = f"; counted on {len(guessed.people)} rows drawn at random" if len(guessed.people) < all_rows else ""
    if guessed.descend:
        return drawn + "; each person is compared with the row that descends from theirs, so there is no control"
    return drawn + ("; control not run because no rows were held out" if guessed.outside is None else "")
