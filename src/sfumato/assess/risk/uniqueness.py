"""Who is alone with a combination of coarse values, and whether the release has that combination once as well.

A combination that one person of the original has and one released row has is a match that an intruder believes in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.columns import Cells, ColumnPair
from sfumato.assess.findings import Direction, Family, Finding, not_run
from sfumato.assess.frame import Measure
from sfumato.assess.intervals import holding, wilson
from sfumato.assess.keys import row_keys
from sfumato.assess.study import Study

__all__ = ["UNIQUENESS", "coarse", "matched"]

_PARTS = 10  # numbers are known to the tenth of the table that they lie in
_FEW = 3
_DRAWS = 10
_REDRAWS = 200

_Keys = NDArray[np.uint64]
_Codes = NDArray[np.int64]

_MEANINGS = {
    "unique-rows": (
        "The share of people in the original who are alone with their combination of categories and of tenths that "
        "their numbers lie in, beside the share of released rows that are alone with theirs (baseline); such people "
        "can be told apart by what others know of them, and less is better."
    ),
    "unique-rows-on-three-columns": (
        f"The same where only {_FEW} columns are known, on average over columns drawn at random; less is better."
    ),
    "unique-matches": (
        "The share of people alone with their combination of coarse values whose combination is found in exactly one "
        "released row, beside a release whose columns are shuffled (baseline) and people held out (control); above the "
        "control, rows show who was in, and less is better."
    ),
}
_NOBODY = "nobody in the original is alone with a combination of coarse values"


def coarse(pair: ColumnPair) -> NDArray[np.float64] | None:
    """Give the cuts between the tenths of a column of numbers; None for categories, which are known as they are."""
    if not pair.is_number:
        return None
    present = pair.original.present
    return np.unique(np.quantile(present, np.arange(1, _PARTS) / _PARTS)) if len(present) else np.empty(0)


def _code(cells: Cells, cuts: NDArray[np.float64] | None) -> _Codes:
    """Place cells in tenths or categories, from 1; a missing cell is 0."""
    codes = cells.values.astype(np.int64) if cuts is None else np.searchsorted(cuts, cells.values, side="left")
    return np.where(cells.absent, 0, codes + 1)


def _keys(columns: Sequence[_Codes]) -> _Keys:
    return row_keys(codes.astype(np.uint64) for codes in columns)


def _count(keys: _Keys, among: _Keys) -> _Codes:
    """Count how often each key occurs among others; both are sorted."""
    return np.asarray(np.searchsorted(among, keys, "right") - np.searchsorted(among, keys, "left"))


def matched(keys: _Keys, original: _Keys, released: _Keys, *, inside: bool) -> tuple[int, int]:
    """Count the people whom nobody else in the original equals, and those of them who equal exactly one released row.

    Examples
    --------
    >>> keys = np.array([1, 2, 3, 3], dtype=np.uint64)
    >>> matched(keys, keys, np.array([1, 1, 2], dtype=np.uint64), inside=True)
    (2, 1)
    """
    people = np.sort(keys)  # sorted keys are looked up fast
    alone = people[_count(people, np.sort(original)) == (1 if inside else 0)]
    return len(alone), int((_count(alone, np.sort(released)) == 1).sum())


def _run(study: Study) -> Iterable[Finding]:
    rng = study.generator("uniqueness")
    cuts = [coarse(pair) for pair in study.pairs]
    before = [_code(pair.original, cut) for pair, cut in zip(study.pairs, cuts, strict=True)]
    after = [_code(pair.released, cut) for pair, cut in zip(study.pairs, cuts, strict=True)]
    held = None if study.held is None else [_code(cells, cut) for cells, cut in zip(study.held, cuts, strict=True)]
    yield _unique("unique-rows", [_share_alone(before)], [_share_alone(after)], rng)
    if len(before) > _FEW:
        some = [rng.choice(len(before), _FEW, replace=False) for _ in range(_DRAWS)]
        mine, theirs = ([_share_alone([codes[at] for at in few]) for few in some] for codes in (before, after))
        yield _unique("unique-rows-on-three-columns", mine, theirs, rng)
    else:
        yield _nothing("unique-rows-on-three-columns", f"the table has no more than {_FEW} columns")
    yield _matches(before, after, held, rng)


def _share_alone(columns: Sequence[_Codes]) -> float:
    keys = np.sort(_keys(columns))
    apart = np.concatenate([[True], keys[1:] != keys[:-1], [True]])
    return float((apart[1:] & apart[:-1]).mean())


def _redrawn_means(shares: Sequence[float], rng: np.random.Generator) -> NDArray[np.float64]:
    return np.asarray(rng.choice(shares, size=(_REDRAWS, len(shares))).mean(axis=1))


def _unique(name: str, mine: Sequence[float], theirs: Sequence[float], rng: np.random.Generator) -> Finding:
    return Finding(
        name,
        Family.PRIVACY,
        float(np.mean(mine)),
        Direction.LOWER,
        (0.0, 1.0),
        _MEANINGS[name],
        interval=None if len(mine) == 1 else holding(float(np.mean(mine)), _redrawn_means(mine, rng)),
        baseline=float(np.mean(theirs)),
        unit="share",
    )


def _matches(
    before: Sequence[_Codes], after: Sequence[_Codes], held: Sequence[_Codes] | None, rng: np.random.Generator
) -> Finding:
    """State how many people who are alone have one match, beside columns shuffled and people held out."""
    original, released = _keys(before), _keys(after)
    people, hits = matched(original, original, released, inside=True)
    if not people:
        return _nothing("unique-matches", _NOBODY)
    shuffled = _keys([rng.permutation(codes) for codes in after])
    others, caught = (0, 0) if held is None else matched(_keys(held), original, released, inside=False)
    missing = "no rows were held out" if held is None else "nobody held out is alone"
    return Finding(
        "unique-matches",
        Family.PRIVACY,
        hits / people,
        Direction.LOWER,
        (0.0, 1.0),
        _MEANINGS["unique-matches"] if others else _MEANINGS["unique-matches"][:-1] + f"; control not run: {missing}.",
        interval=wilson(hits, people),
        baseline=matched(original, original, shuffled, inside=True)[1] / people,
        control=caught / others if others else None,
        control_interval=wilson(caught, others) if others else None,
        attempts=people,
        unit="share",
    )


def _nothing(name: str, because: str) -> Finding:
    return not_run(name, Family.PRIVACY, Direction.LOWER, _MEANINGS[name], because)


UNIQUENESS = Measure(
    name="uniqueness",
    family=Family.PRIVACY,
    source="Bethlehem, Keller & Pannekoek 1990; Sweeney 2002",
    findings=_MEANINGS,
    run=_run,
)
