"""How near released rows come to real ones: verbatim rows, distance to the closest record and to the second closest.

A diagnostic: a table can pass it and still be open to membership inference [Yao et al. 2025, "The DCR Delusion"].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import SCORE, SHARE, SIZE, Measure, NotRun, Number, Stated, Values
from sfumato.assess.findings import Family, clustered_interval, mean_cluster, median_interval
from sfumato.assess.study import (
    Column,
    Matrix,
    Places,
    Study,
    bits_of,
    drawn_note,
    once,
    row_codes,
    row_keys,
    sample,
    value_codes,
)
from sfumato.core.neighbours import BOX_DIMENSIONS, nearest, nearest_persons

__all__ = [
    "CLOSEST",
    "NEIGHBOUR_RATIO",
    "QUERIES",
    "Closest",
    "closeness",
    "closest_of",
    "distance_ratio",
    "measure_closest",
    "verbatim_rows",
]

QUERIES = 5000
"""Most rows whose neighbour is looked up."""
_PAIRS = 2_500_000_000  # most comparisons in one search without a tree: fewer rows are looked up in a larger table
_FEWEST = 500
_ABSENT = np.uint64(0x7FF8_0000_0000_0001)  # the bits of no number
_WARNING = "A good value proves nothing: attacks succeeded on tables that had one (Yao et al. 2025)"
_NO_HOLDOUT = "no rows were held out"


@dataclass(frozen=True, eq=False, repr=False)
class Closest:
    """Distances to the nearest row.

    ``released`` and ``original`` are the distances of released and of original rows to their nearest (other) original
    row, ``nearest`` the persons of those that the first lead to. ``held_out`` are the distances of released rows to
    their nearest held-out row, and ``alike`` to the nearest of as many original rows as were held out; ``decided`` is
    the person of the nearer of the two. An original row's nearest is one of another person.
    """

    released: Matrix
    original: Matrix
    nearest: Places
    held_out: Matrix | None = None
    alike: Matrix | None = None
    decided: Places | None = None


def measure_closest(
    original: Matrix,
    released: Matrix,
    holdout: Matrix | None,
    rng: np.random.Generator,
    persons: Places | None = None,
    held_persons: Places | None = None,
) -> Closest:
    """Distances to the nearest rows of a sample of at most `QUERIES` rows, exactly and in blocks.

    ``persons`` and ``held_persons`` say whom rows are about, where several may be about one.
    """
    most = QUERIES if original.shape[1] <= BOX_DIMENSIONS else min(QUERIES, max(_FEWEST, _PAIRS // len(original)))
    queries = released[sample(len(released), most, rng)]
    own = sample(len(original), most, rng)
    place, near = _look_up(original, queries)
    alone = nearest_persons(original, original[own], persons, own=own)[1][:, 0]
    whose = np.arange(len(original)) if persons is None else persons
    if holdout is None or len(holdout) == 0:
        return Closest(near, alone, whose[place])
    here = sample(len(original), len(holdout), rng)
    there = sample(len(holdout), len(here), rng)
    (other, away), (inside, beside) = _look_up(holdout[there], queries), _look_up(original[here], queries)
    others = np.arange(len(holdout)) if held_persons is None else held_persons
    decided = np.where(away < beside, whose.max() + 1 + others[there][other], whose[here][inside])
    return Closest(near, alone, whose[place], away, beside, decided)


def _look_up(rows: Matrix, queries: Matrix) -> tuple[Places, Matrix]:
    places, distances = nearest(rows, queries)
    return places[:, 0], distances[:, 0]


@once
def closest_of(study: Study) -> Closest:
    """Distances to the nearest rows of a study."""
    persons, held = study.persons, study.held_persons
    return measure_closest(study.original, study.released, study.holdout, study.generator("closest"), persons, held)


def _run(study: Study) -> Iterator[Stated]:
    original, released = ([getattr(pair, side) for pair in study.pairs] for side in ("original", "released"))
    yield "verbatim-rows", verbatim_rows(original, released, study.persons)
    if study.people < 2:
        raise NotRun("the original is about a single person, who has no neighbours")
    yield from closeness(closest_of(study), (len(study.original), len(study.released)))


def closeness(closest: Closest, rows: tuple[int, int]) -> Iterator[Stated]:
    """Medians, the share of released rows nearer than real neighbours are, and the fair comparison with control.

    ``rows`` are those of the original and of the released table, to say how many were looked up.
    """
    threshold, count = float(np.median(closest.original)), len(closest.released)
    note = "" if rows == (len(closest.original), count) else f"; counted on {count} rows drawn at random"
    control = None if closest.held_out is None else float(np.median(closest.held_out))
    missing = "" if control is not None else f"; control not run because {_NO_HOLDOUT}"
    middle, limits = float(np.median(closest.released)), median_interval(closest.released)
    yield "closest-record-distance", Values(middle, limits, threshold, control, note=note + missing)
    inside = float((closest.released <= threshold).sum()) / count
    limits, usual = (
        clustered_interval(inside, count, mean_cluster(closest.nearest)),
        float((closest.original <= threshold).mean()),
    )
    yield "closer-than-original-neighbours", Values(inside, limits, usual, note=note)
    if closest.held_out is None or closest.alike is None or closest.decided is None:
        raise NotRun(_NO_HOLDOUT)
    ahead = float((closest.alike < closest.held_out).sum() + 0.5 * (closest.alike == closest.held_out).sum())
    share = ahead / len(closest.alike)
    limits = clustered_interval(share, len(closest.alike), mean_cluster(closest.decided))
    yield "closer-to-original-than-control", Values(share, limits, 0.5, note=note)


def verbatim_rows(original: Sequence[Column], released: Sequence[Column], persons: Places | None = None) -> Values:
    """Share of the released rows that equal an original row in every column, beside the original's own twins.

    Twins are rows of different persons, where ``persons`` says whom rows are about. Rows whose hash nobody shares have
    no equal; only the others are compared cell by cell.
    """
    hashes = np.concatenate([_hash_rows(original), _hash_rows(released)])
    ordered = np.sort(hashes)
    shared = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    place = np.searchsorted(shared, hashes)
    alike = place < len(shared)
    alike[alike] = shared[place[alike]] == hashes[alike]
    count = len(original[0].values)
    ours, theirs = np.flatnonzero(alike[:count]), np.flatnonzero(alike[count:])
    pairs = zip(original, released, strict=True)
    cells = (value_codes(here.take(ours), there.take(theirs)) for here, there in pairs)
    keys = row_codes(cells, len(ours) + len(theirs))
    mine = keys[: len(ours)]
    if persons is not None:
        mine = np.unique(np.column_stack([mine, persons[ours]]), axis=0)[:, 0]
    held = np.bincount(mine, minlength=int(keys.max(initial=0)) + 1)
    again, twins = int((held[keys[len(ours) :]] > 0).sum()), int((held[keys[: len(ours)]] > 1).sum())
    return Values(again / len(released[0].values), baseline=twins / count)


def _hash_rows(cells: Sequence[Column]) -> NDArray[np.uint64]:
    """Mix the cells of each row into one number; equal rows have equal numbers."""
    return row_keys(np.where(column.absent, _ABSENT, bits_of(column.values)) for column in cells)


_NUMBERS = (
    Number("verbatim-rows", "Rows identical to an original row", SHARE, figure="").means(
        "The share of released rows that equal an original row in every column. Baseline: the share of original rows "
        "that equal another original row"
    ),
    Number("closest-record-distance", "Distance to closest record", SIZE.more).means(
        "The median distance of a released row to the closest original record. Baseline: the distance between "
        f"original records; control: released rows to held-out rows. {_WARNING}"
    ),
    Number("closer-than-original-neighbours", "Rows closer than original neighbours", SHARE).means(
        "The share of released rows that are as close to an original row as the closer half of original rows are to "
        f"one another. Much above the baseline means that rows were copied. {_WARNING}"
    ),
    Number("closer-to-original-than-control", "Rows closer to the original than to the control group", SHARE).means(
        "The share of released rows that are closer to the original than to a hold-out set of the same size. One half "
        f"shows no membership. {_WARNING}"
    ),
)
CLOSEST = Measure(
    "closest",
    Family.PRIVACY,
    "Yao et al. 2025; the distance to the closest record of the literature on synthetic data",
    _run,
    uncompared={
        **{number.name: f"{number.meaning}." for number in _NUMBERS[1:]},
        "verbatim-rows": "The share of released rows that equal an original row.",
    },
    figure="distances/closest",
).finds(*_NUMBERS)


def distance_ratio(rows: Matrix, queries: Matrix, own: Places | None = None, persons: Places | None = None) -> Matrix:
    """Each query's distance to its nearest row divided by that to its second nearest, which is of another person.

    A row that equals two others has ratio 0: it is as near as can be.

    Examples
    --------
    >>> distance_ratio(np.array([[0.0], [3.0]]), np.array([[1.0], [0.0]])).tolist()
    [0.5, 0.0]
    """
    near, second = nearest_persons(rows, queries, persons, 2, own=own)[1].T
    return np.asarray(np.divide(near, second, out=np.zeros(len(near)), where=second > 0))


def _run_ratio(study: Study) -> Iterator[Stated]:
    if study.people < 3:
        raise NotRun("the original is about fewer than three persons, so that nobody has two neighbours")
    rng, most = study.generator("ratio"), study.sizes.attempts
    queries = study.released[sample(len(study.released), most, rng)]
    own = study.attacked(most, rng)
    outside = None if study.holdout is None else study.holdout[study.attacked_outside(most, rng)]
    asked = queries if outside is None else np.concatenate([queries, outside])
    both = distance_ratio(study.original, asked, persons=study.persons)
    baseline = distance_ratio(study.original, study.original[own], own, study.persons)
    ratios, control = both[: len(queries)], both[len(queries) :]
    note = drawn_note(len(queries), len(study.released))
    note += "" if len(control) else "; control not run because no rows were held out"
    aside, others = (float(np.median(control)), median_interval(control)) if len(control) else (None, None)
    middle, limits, usual = float(np.median(ratios)), median_interval(ratios), float(np.median(baseline))
    found = Values(middle, limits, usual, aside, len(ratios), note, control_interval=others)
    yield "neighbour-distance-ratio", found


NEIGHBOUR_RATIO = Measure("ratio", Family.PRIVACY, "Zhao et al. 2021; Yao et al. 2025", _run_ratio).finds(
    Number("neighbour-distance-ratio", "Nearest-neighbour distance ratio", SCORE.more).means(
        "The median ratio of a released row's distances to the nearest and the second nearest original row: 0 means a "
        f"copy of one person, 1 that it is like several. Baseline: original rows; control: held-out people. {_WARNING}"
    )
)
