"""What an intruder takes for a person's cells: those of the released rows that are nearest in all other columns.

Interval, entropy and perturbation are all read off the same released rows, so they are looked up once a study.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.columns import Cells, ColumnPair
from sfumato.assess.risk.all_but_one import nearest_but_one
from sfumato.assess.study import Study, sample

__all__ = ["NEIGHBOURS", "Crowd", "average", "first", "look_up", "number_columns", "number_errors", "sampling_note"]

NEIGHBOURS = 10
"""Released rows that an intruder looks at for each person and column."""

_WORK = 1.2e10  # coordinate differences that the look-ups may cost
_OVERHEAD = 3.0  # what keeping the nearest costs for each pair and column, in coordinate differences
_USUAL = 2000  # attempts for which that much work is right
_FEWEST = 100

_Places = NDArray[np.int64]
_Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Crowd:
    """The people who are looked at, and the released rows that speak of them.

    ``people`` and ``outside`` are places in the original and among the rows held out; ``outside`` is None where there
    is no control. ``near`` gives for each column and person the places of released rows, nearest first. Where rows
    ``descend`` it is the one row that descends from the person, whichever the column.
    """

    people: _Places
    outside: _Places | None
    near: dict[str, tuple[_Places, _Places | None]]
    descend: bool


_seen: WeakKeyDictionary[Study, Crowd | None] = WeakKeyDictionary()


def look_up(study: Study) -> Crowd | None:
    """Find for people, drawn at random, the released rows that an intruder would take for theirs.

    Where it is known which row descends from whom the intruder knows it too. Else the intruder knows all of a person's
    columns but one and takes the rows nearest in those. None where there is one column and so nothing to go by.
    """
    if study not in _seen:
        _seen[study] = _descending(study) if _has_origin(study) else _nearest_by_column(study)
    return _seen[study]


def _has_origin(study: Study) -> bool:
    return study.workings is not None and study.workings.origin is not None


def _descending(study: Study) -> Crowd:
    assert study.workings is not None
    assert study.workings.origin is not None
    origin = study.workings.origin
    known = np.flatnonzero((origin >= 0) & (origin < len(study.original))).astype(np.int64)
    rows = known[sample(len(known), study.sizes.attempts, study.generator("estimates"))]
    near: dict[str, tuple[_Places, _Places | None]] = {pair.name: (rows[:, None], None) for pair in study.pairs}
    return Crowd(origin[rows], None, near, descend=True)


def _nearest_by_column(study: Study) -> Crowd | None:
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
    places = nearest_but_one(study.released, queries, column_of, min(NEIGHBOURS, len(study.released)))
    inside, beyond = places[:, : len(people)], places[:, len(people) :]
    near = {name: (inside[at], None if outside is None else beyond[at]) for at, name in enumerate(names)}
    return Crowd(people, outside, near, descend=False)


def _most(study: Study) -> int:
    """Choose how many people, so that the look-ups of all columns together stay affordable."""
    each = len(study.released) * (study.released.shape[1] + _OVERHEAD * len(study.pairs))
    arms = 1 if study.holdout is None else 2
    granted = _WORK * study.sizes.attempts / _USUAL / each / arms
    return int(min(study.sizes.attempts, max(_FEWEST, granted)))


def first(cells: Cells, places: _Places) -> _Values:
    """Take the number of the nearest row that has one; the column's median, which teaches nothing, where none has."""
    has = ~cells.absent[places]
    place = places[np.arange(len(places)), has.argmax(axis=1)]
    return np.where(has.any(axis=1), cells.values[place], _middle(cells))


def average(cells: Cells, places: _Places) -> _Values:
    """Take the mean of the numbers that the nearest rows have; the column's median where none has."""
    has = ~cells.absent[places]
    count = has.sum(axis=1)
    total = np.where(has, cells.values[places], 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), _middle(cells))


def _middle(cells: Cells) -> float:
    return float(np.median(cells.present)) if len(cells.present) else 0.0


def number_columns(study: Study) -> list[ColumnPair]:
    """List the columns of numbers that differ between people; what does not differ cannot be estimated."""
    numbers = [pair for pair in study.pairs if pair.is_number and len(pair.original.present)]
    return [pair for pair in numbers if pair.original.present.min() < pair.original.present.max()]


def number_errors(study: Study, crowd: Crowd) -> Iterator[tuple[ColumnPair, _Values, _Values | None]]:
    """Give each column's errors on the original's people and on those held out; NaN where the cell is missing."""
    held = dict(zip((pair.name for pair in study.pairs), study.held or (), strict=False))
    for pair in number_columns(study):
        inside, beyond = crowd.near[pair.name]
        outside = None
        if crowd.outside is not None and beyond is not None:
            outside = error_of(held[pair.name], crowd.outside, first(pair.released, beyond))
        yield pair, error_of(pair.original, crowd.people, first(pair.released, inside)), outside


def error_of(cells: Cells, people: _Places, estimate: _Values) -> _Values:
    """Subtract the estimate from the people's own numbers; NaN where these are missing."""
    return np.where(cells.absent[people], np.nan, cells.values[people] - estimate)


def sampling_note(study: Study, crowd: Crowd) -> str:
    """Say what the look-up did, to end a meaning with."""
    all_rows = len(study.released) if crowd.descend else len(study.original)
    drawn = f"; counted on {len(crowd.people)} rows drawn at random" if len(crowd.people) < all_rows else ""
    if crowd.descend:
        return drawn + "; each person is compared with the row that descends from theirs, so there is no control"
    return drawn + ("; control not run because no rows were held out" if crowd.outside is None else "")
