"""How near released rows come to real ones: distance to the closest record, beside what real rows do.

A diagnostic: a table can pass it and still be open to membership inference [Yao et al. 2025, "The DCR Delusion"].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.columns import Cells
from sfumato.assess.findings import Direction, Family, Finding, not_run
from sfumato.assess.intervals import crowd, crowded, median_interval
from sfumato.assess.keys import bits_of, row_keys
from sfumato.assess.neighbours import TREE, nearest
from sfumato.assess.study import sample

__all__ = ["QUERIES", "Closest", "closest_findings", "measure_closest", "verbatim_finding"]

QUERIES = 5000
"""Most rows whose neighbour is looked up."""

_PAIRS = 2_500_000_000  # most comparisons in one search without a tree: fewer rows are looked up in a larger table
_FEWEST = 500

_Matrix = NDArray[np.float64]
_Places = NDArray[np.int64]
_ABSENT = np.uint64(0x7FF8_0000_0000_0001)  # the bits of no number
_WARNING = "passing this proves nothing, for tables that pass have still given people away (Yao et al. 2025)"
_NO_HOLDOUT = "no rows were held out"


@dataclass(frozen=True, eq=False, repr=False)
class Closest:
    """Distances to the nearest row.

    ``released`` and ``original`` are the distances of released and of original rows to their nearest (other) original
    row, ``nearest`` the places of those that the first lead to. ``held_out`` are the distances of released rows to
    their nearest held-out row, and ``alike`` to the nearest of as many original rows as were held out; ``decided`` is
    the place of the nearer of the two, among the held-out rows and after them the original ones.
    """

    released: _Matrix
    original: _Matrix
    nearest: _Places
    held_out: _Matrix | None = None
    alike: _Matrix | None = None
    decided: _Places | None = None


def measure_closest(original: _Matrix, released: _Matrix, holdout: _Matrix | None, rng: np.random.Generator) -> Closest:
    """Look up the nearest rows of a sample of at most `QUERIES` rows, exactly and in blocks."""
    most = QUERIES if original.shape[1] <= TREE else min(QUERIES, max(_FEWEST, _PAIRS // len(original)))
    queries = released[sample(len(released), most, rng)]
    own = sample(len(original), most, rng)
    (place, near), (_, alone) = _look_up(original, queries), _look_up(original, original[own], own)
    if holdout is None or len(holdout) == 0:
        return Closest(near, alone, place)
    alike = original[sample(len(original), len(holdout), rng)]
    fair = holdout[sample(len(holdout), len(alike), rng)]
    (other, away), (inside, beside) = _look_up(fair, queries), _look_up(alike, queries)
    return Closest(near, alone, place, away, beside, np.where(away < beside, other, len(fair) + inside))


def _look_up(rows: _Matrix, queries: _Matrix, own: _Places | None = None) -> tuple[_Places, _Matrix]:
    places, distances = nearest(rows, queries, own=own)
    return places[:, 0], distances[:, 0]


def closest_findings(closest: Closest | None, rows: tuple[int, int], because: str = "") -> tuple[Finding, ...]:
    """State medians, the share of released rows nearer than real neighbours are, and the fair comparison with control.

    Parameters
    ----------
    closest : Closest or None
        None where it could not be measured.
    rows : tuple of int
        Rows of the original and of the released table, to say how many were looked up.
    because : str
        Why it could not be measured, or why no control was.
    """
    if closest is None:
        return tuple(
            not_run(name, Family.PRIVACY, _DIRECTIONS[name], _MEANINGS[name] + ".", because) for name in _MEANINGS
        )
    threshold = float(np.median(closest.original))
    count = len(closest.released)
    whole = rows == (len(closest.original), count)
    note = "" if whole else f"; counted on {count} rows drawn at random"
    control = None if closest.held_out is None else float(np.median(closest.held_out))
    missing = "" if control is not None else f"; control not run because {because or _NO_HOLDOUT}"
    inside = float((closest.released <= threshold).sum())
    return (
        _finding(
            "closest-record-distance",
            float(np.median(closest.released)),
            (0.0, None),
            note + missing,
            interval=median_interval(closest.released),
            baseline=threshold,
            control=control,
        ),
        _finding(
            "closer-than-real-neighbours",
            inside / count,
            (0.0, 1.0),
            note,
            interval=crowded(inside / count, count, crowd(closest.nearest)),
            baseline=float((closest.original <= threshold).mean()),
            unit="share",
        ),
        _against_control(closest, note, because or _NO_HOLDOUT),
    )


def _against_control(closest: Closest, note: str, because: str) -> Finding:
    name = "closer-to-originals-than-to-held-out"
    if closest.held_out is None or closest.alike is None or closest.decided is None:
        return not_run(name, Family.PRIVACY, Direction.LOWER, _MEANINGS[name] + ".", because)
    ahead = float((closest.alike < closest.held_out).sum() + 0.5 * (closest.alike == closest.held_out).sum())
    count = len(closest.alike)
    interval = crowded(ahead / count, count, crowd(closest.decided))
    return _finding(name, ahead / count, (0.0, 1.0), note, interval=interval, baseline=0.5, unit="share")


_MEANINGS = {
    "closest-record-distance": (
        "How far a released row typically is from the nearest original row, beside how far original rows are from one "
        "another (baseline) and released rows from rows held out (control); " + _WARNING
    ),
    "closer-than-real-neighbours": (
        "The share of released rows that are as near to an original row as the nearer half of original rows are to "
        "one another; much above the baseline means that rows were copied, and " + _WARNING
    ),
    "closer-to-originals-than-to-held-out": (
        "The share of released rows that are nearer to the original than to as many people held out of it; one half "
        "means that it does not show who was in, and " + _WARNING
    ),
}
_DIRECTIONS = {name: Direction.HIGHER if name.endswith("distance") else Direction.LOWER for name in _MEANINGS}


def _finding(
    name: str,
    value: float,
    bounds: tuple[float, float | None],
    note: str,
    *,
    interval: tuple[float, float],
    baseline: float,
    control: float | None = None,
    unit: str = "",
) -> Finding:
    return Finding(
        name,
        Family.PRIVACY,
        value,
        _DIRECTIONS[name],
        bounds,
        _MEANINGS[name] + note + ".",
        interval=interval,
        baseline=baseline,
        control=control,
        unit=unit,
    )


def verbatim_finding(original: Sequence[Cells], released: Sequence[Cells]) -> Finding:
    """Count the released rows that equal an original row in every column; the baseline is original rows' own twins."""
    count, others = len(original[0].values), len(released[0].values)
    again, twins = _count_equal(original, released)
    return Finding(
        "verbatim-rows",
        Family.PRIVACY,
        again / others,
        Direction.LOWER,
        (0.0, 1.0),
        "The share of released rows that equal an original row in every column, beside the share of original rows "
        "that another original row equals.",
        baseline=twins / count,
        unit="share",
    )


def _count_equal(original: Sequence[Cells], released: Sequence[Cells]) -> tuple[int, int]:
    """Count the released rows that equal an original one, and the original rows that equal another.

    Rows whose hash nobody shares have no equal; only the others are compared cell by cell.
    """
    hashes = np.concatenate([_hash_rows(original), _hash_rows(released)])
    ordered = np.sort(hashes)
    shared = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    place = np.searchsorted(shared, hashes)
    alike = place < len(shared)
    alike[alike] = shared[place[alike]] == hashes[alike]
    count = len(original[0].values)
    ours, theirs = np.flatnonzero(alike[:count]), np.flatnonzero(alike[count:])
    keys = np.zeros(len(ours) + len(theirs), dtype=np.int64)
    for here, there in zip(original, released, strict=True):
        values = np.concatenate([here.values[ours], there.values[theirs]])
        codes = np.unique(values, return_inverse=True)[1].astype(np.int64) + 1
        codes[np.concatenate([here.absent[ours], there.absent[theirs]])] = 0
        keys = np.unique(keys * (codes.max(initial=0) + 1) + codes, return_inverse=True)[1].astype(np.int64)
    held = np.bincount(keys[: len(ours)], minlength=int(keys.max(initial=0)) + 1)
    return int((held[keys[len(ours) :]] > 0).sum()), int((held[keys[: len(ours)]] > 1).sum())


def _hash_rows(cells: Sequence[Cells]) -> NDArray[np.uint64]:
    """Mix the cells of each row into one number; equal rows have equal numbers."""
    return row_keys(np.where(column.absent, _ABSENT, bits_of(column.values)) for column in cells)
