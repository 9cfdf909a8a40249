"""What an intruder takes for a person's cells: those of the released rows that are nearest in all other columns.

Interval, entropy and perturbation are all read off the same released rows, so they are looked up once a study.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sfumato.assess.study import Column, ColumnPair, Matrix, Places, Study, once, sample
from sfumato.core.compiled import compiled, fixed, inner

__all__ = [
    "Guessed",
    "average",
    "first",
    "look_up",
    "nearest_but_one",
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
_CHUNK = 512  # rows whose distances are held at a time, so that they stay in the fastest memory


@dataclass(frozen=True, eq=False, repr=False)
class Guessed:
    """The people whose cells are guessed, and the released rows that speak of them.

    ``people`` and ``outside`` are places in the original and among the rows held out; ``outside`` is None where there
    is no control. ``near`` gives for each column and person the places of released rows, nearest first. Where rows
    ``descend`` it is the one row that descends from the person, whichever the column.
    """

    people: Places
    outside: Places | None
    near: dict[str, tuple[Places, Places | None]]
    descend: bool


@once
def look_up(study: Study) -> Guessed | None:
    """People drawn at random, and for each the released rows that an intruder would take for theirs.

    Where it is known which row descends from whom the intruder knows it too. Else the intruder knows all of a person's
    columns but one and takes the rows nearest in those. None where there is one column and so nothing to go by.
    """
    if study.workings.origin is None:
        return _nearest_by_column(study)
    released, original = study.descent()
    chosen = sample(len(released), study.sizes.attempts, study.generator("estimates"))
    rows = released[chosen].astype(np.int64)
    near: dict[str, tuple[Places, Places | None]] = {pair.name: (rows[:, None], None) for pair in study.pairs}
    return Guessed(original[chosen], None, near, descend=True)


def _nearest_by_column(study: Study) -> Guessed | None:
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
    return Guessed(people, outside, near, descend=False)


def _most(study: Study) -> int:
    """How many people, so that the look-ups of all columns together stay affordable."""
    each = len(study.released) * (study.released.shape[1] + _OVERHEAD * len(study.pairs))
    granted = _WORK * study.sizes.attempts / _USUAL / each / (1 if study.holdout is None else 2)
    return int(min(study.sizes.attempts, max(_FEWEST, granted)))


def first(cells: Column, places: Places) -> Matrix:
    """Number of the nearest row that has one; the column's median, which teaches nothing, where none has."""
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


def number_errors(study: Study, guessed: Guessed) -> Iterator[tuple[ColumnPair, Matrix, Matrix | None]]:
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


def sampling_note(study: Study, guessed: Guessed) -> str:
    """What the look-up did, to end a meaning with."""
    all_rows = len(study.released) if guessed.descend else len(study.original)
    drawn = f"; counted on {len(guessed.people)} rows drawn at random" if len(guessed.people) < all_rows else ""
    if guessed.descend:
        return drawn + "; each person is compared with the row that descends from theirs, so there is no control"
    return drawn + ("; control not run because no rows were held out" if guessed.outside is None else "")


def nearest_but_one(rows: Matrix, queries: Matrix, column_of: Places, count: int) -> Places:
    """For each column the nearest rows of each query in the coordinates of all other columns, exactly.

    A search for each column would sum the same squares again: here each column's part is summed once and taken off the
    whole. Rows at the same distance come in their order. ``column_of`` is the column of each coordinate, from 0; what
    comes out has the shape (columns, q, count).

    Examples
    --------
    >>> rows = np.array([[0.0, 5.0], [4.0, 0.0]])
    >>> nearest_but_one(rows, np.array([[0.0, 0.0]]), np.array([0, 1]), 1).ravel().tolist()
    [1, 0]
    """
    if not 0 < count <= len(rows):
        raise ValueError(f"{count} neighbours were asked of {len(rows)} rows")
    across, asked, owner = fixed(rows.T, np.float64), fixed(queries, np.float64), fixed(column_of, np.int64)
    found = np.zeros((int(column_of.max()) + 1, len(queries), count), dtype=np.int64)
    threads = min(os.cpu_count() or 1, 8)
    ends = np.linspace(0, len(queries), threads + 1).astype(int).tolist()
    with ThreadPoolExecutor(threads) as pool:
        jobs = [
            pool.submit(_search, across, asked, owner, found, begin, end)
            for begin, end in pairwise(ends)
            if begin < end
        ]
        for job in jobs:
            job.result()
    return found


@inner
def _keep(whole: Matrix, part: Matrix, least: Matrix, found: Places, start: int, width: int) -> None:
    """Sort those of a chunk's rows that are nearer than the farthest found so far into what was found."""
    last = len(least) - 1
    for r in range(width):
        apart = whole[r] - part[r]
        if apart < least[last]:
            at = last
            while at > 0 and least[at - 1] > apart:
                least[at], found[at] = least[at - 1], found[at - 1]
                at -= 1
            least[at], found[at] = apart, start + r


@compiled
def _search(across: Matrix, asked: Matrix, owner: Places, found: Places, begin: int, end: int) -> None:
    """Search for queries begin to end; ``across`` holds the rows as columns."""
    columns, _, count = found.shape
    d, m = across.shape
    part, whole = np.empty((columns, _CHUNK)), np.empty(_CHUNK)
    least = np.full((end - begin, columns, count), np.inf)
    for start in range(0, m, _CHUNK):  # all queries meet a chunk while it is at hand
        for i in range(begin, end):
            part[:] = 0.0
            for t in range(d):
                x, own, line = asked[i, t], part[owner[t]], across[t, start : start + _CHUNK]
                for r in range(len(line)):
                    gap = x - line[r]
                    own[r] += gap * gap
            whole[:] = 0.0
            for c in range(columns):
                for r in range(_CHUNK):
                    whole[r] += part[c, r]
            for c in range(columns):
                _keep(whole, part[c], least[i - begin, c], found[c, i], start, min(_CHUNK, m - start))
