"""Who is alone with a combination of coarse values or holds a rare category, and whether the release shows it.

A combination that one person of the original has and one released row has is a match that an intruder believes in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.columns import Cells, ColumnPair, row_keys
from sfumato.assess.findings import Family
from sfumato.assess.frame import Measure, NotRun, Number, Stated, Values
from sfumato.assess.intervals import holding, wilson
from sfumato.assess.study import Study
from sfumato.tables.schema import Kind

__all__ = ["RAREST_CATEGORY", "UNIQUENESS", "coarse", "matched"]

_PARTS = 10  # numbers are known to the tenth of the table that they lie in
_FEW = 3
_DRAWS = 10
_REDRAWS = 200
_Keys = NDArray[np.uint64]
_Codes = NDArray[np.int64]
_NOBODY = "nobody in the original is alone with a combination of coarse values"
_KINDS = (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL)


def coarse(pair: ColumnPair) -> NDArray[np.float64] | None:
    """Cuts between the tenths of a column of numbers; None for categories, which are known as they are."""
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


def _run(study: Study) -> Iterator[Stated]:
    rng = study.generator("uniqueness")
    cuts = [coarse(pair) for pair in study.pairs]
    before = [_code(pair.original, cut) for pair, cut in zip(study.pairs, cuts, strict=True)]
    after = [_code(pair.released, cut) for pair, cut in zip(study.pairs, cuts, strict=True)]
    held = None if study.held is None else [_code(cells, cut) for cells, cut in zip(study.held, cuts, strict=True)]
    yield "unique-rows", Values(_share_alone(before), baseline=_share_alone(after))
    if len(before) > _FEW:
        some = [rng.choice(len(before), _FEW, replace=False) for _ in range(_DRAWS)]
        mine, theirs = ([_share_alone([codes[at] for at in few]) for few in some] for codes in (before, after))
        value, redraws = float(np.mean(mine)), rng.choice(mine, size=(_REDRAWS, len(mine))).mean(axis=1)
        yield "unique-rows-on-three-columns", Values(value, holding(value, redraws), float(np.mean(theirs)))
    else:
        yield "unique-rows-on-three-columns", NotRun(f"the table has no more than {_FEW} columns")
    yield "unique-matches", _matches(before, after, held, rng)


def _share_alone(columns: Sequence[_Codes]) -> float:
    keys = np.sort(_keys(columns))
    apart = np.concatenate([[True], keys[1:] != keys[:-1], [True]])
    return float((apart[1:] & apart[:-1]).mean())


def _matches(
    before: Sequence[_Codes], after: Sequence[_Codes], held: Sequence[_Codes] | None, rng: np.random.Generator
) -> Values | NotRun:
    """How many people who are alone have one match, beside columns shuffled and people held out."""
    original, released = _keys(before), _keys(after)
    people, hits = matched(original, original, released, inside=True)
    if not people:
        return NotRun(_NOBODY)
    shuffled = _keys([rng.permutation(codes) for codes in after])
    others, caught = (0, 0) if held is None else matched(_keys(held), original, released, inside=False)
    missing = "no rows were held out" if held is None else "nobody held out is alone"
    return Values(
        hits / people,
        wilson(hits, people),
        matched(original, original, shuffled, inside=True)[1] / people,
        caught / others if others else None,
        people,
        "" if others else f"; control not run: {missing}",
        control_interval=wilson(caught, others) if others else None,
    )


UNIQUENESS = Measure(
    "uniqueness",
    Family.PRIVACY,
    "Bethlehem, Keller & Pannekoek 1990; Sweeney 2002",
    (
        Number(
            "unique-rows",
            "The share of people in the original who are alone with their combination of categories and of tenths that "
            "their numbers lie in, beside the share of released rows that are alone with theirs (baseline); such "
            "people can be told apart by what others know of them, and less is better",
            "Rows that nobody shares",
            unit="share",
        ),
        Number(
            "unique-rows-on-three-columns",
            f"The same where only {_FEW} columns are known, on average over columns drawn at random; less is better",
            "Rows that nobody shares, on three columns",
            unit="share",
        ),
        Number(
            "unique-matches",
            "The share of people alone with their combination of coarse values whose combination is found in exactly "
            "one released row, beside a release whose columns are shuffled (baseline) and people held out (control); "
            "above the control, rows show who was in, and less is better",
            "Unique people whose row is still unique",
            unit="share",
        ),
    ),
    _run,
)


def _run_rarest(study: Study) -> Iterator[Stated]:
    found = [_holders(pair) for pair in study.pairs if pair.field.kind in _KINDS]
    fewest = [(shown, all_) for shown, all_ in found if shown is not None]
    if not fewest:
        lacking = "no category of the original stands in the released table" if found else "there are no categories"
        raise NotRun(lacking, applies=False)
    shown, all_ = (float(min(side)) for side in zip(*fewest, strict=True))
    yield "rarest-category", Values(shown, baseline=all_)


def _holders(pair: ColumnPair) -> tuple[int | None, int]:
    """How many hold the rarest category that is released, and the rarest of all."""
    values, counts = np.unique(pair.original.present, return_counts=True)
    released = np.isin(values, pair.released.present)
    return (int(counts[released].min()), int(counts.min())) if released.any() else (None, 0)


RAREST_CATEGORY = Measure(
    "rarest-category",
    Family.PRIVACY,
    "the threshold rule of statistical offices: Hundepool et al. 2012, sec. 4.2",
    (
        Number(
            "rarest-category",
            "How many people of the original hold the rarest of their categories that stand in the released table: a "
            "category of one or a few people shows that they were in it, and more is better; the baseline is the "
            "rarest category of all",
            "People who hold the rarest released category",
            (1.0, None),
            "count",
            higher=True,
            public=False,
        ),
    ),
    _run_rarest,
)
