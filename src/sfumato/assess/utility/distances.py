"""How far the release changes the distances between rows, on which clustering rests [OZ03, sec. 1, 5.2].

The distances of two rows before, a, and after, b, differ by |b - a| / max(a, b): 0 where it stayed, 1 where one of them
is 0. Being bounded it is averaged: a median would not see that a tenth of the rows moved. Far pairs shape the clusters
of K-means, near ones those of methods that look at density.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.findings import Direction, Family, Finding
from sfumato.assess.frame import Measure, Need
from sfumato.assess.intervals import holding
from sfumato.assess.neighbours import nearest
from sfumato.assess.study import Study, sample

__all__ = ["DISTANCES", "distortion"]

_REDRAWS = 200
_NEAR = 1_000  # rows whose nearest neighbour is sought
_ROUNDING = 1e-12  # part of a distance up to which a change is a matter of the last digits

_Values = NDArray[np.float64]
_Places = NDArray[np.int64]
_Pairs = tuple[_Places, _Places]

_BASELINE = "beside the same had the released rows been shuffled among people (baseline); 0 is best"
_ANY = (
    "By how much the distance between two people changes in the release, as a part of the longer of both, on "
    f"average, {_BASELINE}"
)
_SCALE = (
    "By how much the distance between two people changes in the release once all distances are stretched by one common "
    f"factor, which most clusterings do not feel, on average, {_BASELINE}"
)
_CLOSE = (
    "By how much the distance between a person and the one nearest to them changes in the release, which clusterings "
    f"by density feel first, on average, {_BASELINE}"
)
_FINDINGS = {
    "distance-distortion": _ANY,
    "distance-distortion-any-scale": _SCALE,
    "distance-distortion-near": _CLOSE,
}


def distortion(before: _Values, after: _Values) -> _Values:
    """Measure the change of each distance, as a part of the longer of both; 0 where they are equal but for rounding.

    Examples
    --------
    >>> distortion(np.array([2.0, 1.0, 0.0]), np.array([1.0, 1.0, 0.0])).tolist()
    [0.5, 0.0, 0.0]
    """
    longer, change = np.maximum(before, after), np.abs(after - before)
    return np.divide(change, longer, out=np.zeros_like(longer), where=change > _ROUNDING * longer)


def _run(study: Study) -> Iterable[Finding]:
    rng = study.generator(DISTANCES.name)
    people, heirs = _known(study)
    if len(people) < 2:
        return DISTANCES.not_run("fewer than two released rows descend from different original rows")
    pairs = _random_pairs(len(people), study.sizes.testing, rng)
    far = _lengths(study.original, people, pairs), _lengths(study.released, heirs, pairs)
    mixed = _lengths(study.released, rng.permutation(heirs), pairs)
    close = _near_pairs(study.original[people], min(_NEAR, study.sizes.attempts), rng)
    near = _lengths(study.original, people, close), _lengths(study.released, heirs, close)
    strange = _lengths(study.released, rng.permutation(heirs), close)
    whole = 2 * len(pairs[0]) >= len(study.released) - 1
    notes = (_note("pairs", len(pairs[0]), whole), _note("people", len(close[0]), len(close[0]) == len(study.released)))
    return (
        _finding("distance-distortion", *far, mixed, notes[0], rng),
        _finding("distance-distortion-any-scale", *far, mixed, notes[0], rng),
        _finding("distance-distortion-near", *near, strange, notes[1], rng),
    )


def _known(study: Study) -> _Pairs:
    """Give the original rows that have a descendant, and one released row that descends from each."""
    assert study.workings is not None
    assert study.workings.origin is not None
    origin = study.workings.origin[: len(study.released)]
    known = np.flatnonzero((origin >= 0) & (origin < len(study.original)))
    people, first = np.unique(origin[known], return_index=True)
    return people, known[first]


def _random_pairs(rows: int, most: int, rng: np.random.Generator) -> _Pairs:
    """Pair rows at random, none twice: the pairs are independent of one another."""
    order = rng.permutation(rows)
    count = min(rows // 2, most)
    return order[:count], order[count : 2 * count]


def _near_pairs(rows: _Values, most: int, rng: np.random.Generator) -> _Pairs:
    """Pair some rows with the row nearest to each."""
    chosen = sample(len(rows), most, rng)
    return chosen, nearest(rows, rows[chosen], own=chosen)[0][:, 0]


def _lengths(rows: _Values, places: _Places, pairs: _Pairs) -> _Values:
    first, second = (rows[places[side]] for side in pairs)
    return np.asarray(np.sqrt(((first - second) ** 2).sum(axis=1)))


def _stretched(before: _Values, after: _Values) -> _Values:
    """Stretch the distances of the release so that the median one is as before; as they are where it is 0."""
    middle = np.median(after, axis=-1, keepdims=True)
    factor = np.divide(np.median(before, axis=-1, keepdims=True), middle, out=np.ones_like(middle), where=middle > 0)
    return np.asarray(after * factor)


def _mean(name: str, before: _Values, after: _Values) -> _Values:
    """Average the change along the last axis."""
    if name.endswith("any-scale"):
        after = _stretched(before, after)
    return np.asarray(distortion(before, after).mean(axis=-1))


def _finding(
    name: str, before: _Values, after: _Values, shuffled: _Values, note: str, rng: np.random.Generator
) -> Finding:
    value = float(_mean(name, before, after))
    again = rng.integers(0, len(before), size=(_REDRAWS, len(before)))
    return Finding(
        name,
        Family.UTILITY,
        value,
        Direction.LOWER,
        (0.0, 1.0),
        f"{_FINDINGS[name]}; {note}.",
        interval=holding(value, _mean(name, before[again], after[again])),
        baseline=float(_mean(name, before, shuffled)),
        attempts=len(before),
        unit="share",
    )


def _note(what: str, count: int, whole: bool) -> str:
    return f"counted on {count} {what}" + ("" if whole else " drawn at random")


DISTANCES = Measure(
    name="distances",
    family=Family.UTILITY,
    source="after Oliveira & Zaiane 2003, section 1",
    findings={name: meaning + "." for name, meaning in _FINDINGS.items()},
    run=_run,
    needs=(Need.ORIGIN,),
)
