"""Attacks on modified rows: windows of swapped columns intersected, and a hidden label told by a strong model."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import SHARE, Measure, Need, NotRun, Number, Stated, success, where
from sfumato.assess.attacks.labels import boosted_labels
from sfumato.assess.findings import Family
from sfumato.assess.intervals import Tries
from sfumato.assess.study import ColumnPair, Matrix, Places, Study
from sfumato.core.facts import Downgraded, Swapped

__all__ = ["HIDDEN_LABEL", "SWAPPED_ROWS"]

_MOST = 1 << 26  # pairs of a person and a row that are compared
_BINS = 255  # categories that boosting takes as such
_LEAST = 20  # people with a hidden label of whom half can teach and half be attacked


def _run_windows(study: Study) -> Iterator[Stated]:
    fact = study.fact(Swapped)
    assert fact is not None
    rng, (known, origin) = study.generator("swapped-rows"), study.descent()
    people = study.attacked(min(study.sizes.attempts, max(100, _MOST // max(1, len(known)))), rng)
    chance = np.zeros(len(people))
    reach = None if fact.window is None else fact.window / 100.0
    pairs = [(pair, pair.name in fact.columns) for pair in study.pairs]
    bounds = [_bounds(pair, people, reach) if swapped else None for pair, swapped in pairs]
    for place, person in enumerate(people):
        fits = np.ones(len(known), dtype=np.bool_)
        for (pair, swapped), within in zip(pairs, bounds, strict=True):
            cells, gone = pair.released.values[known], pair.released.absent[known]
            if pair.original.absent[person]:
                fits &= gone
            elif not swapped:
                fits &= ~gone & (cells == pair.original.values[person])
            elif within is not None:
                fits &= ~gone & (cells >= within[0][place]) & (cells <= within[1][place])
            else:
                fits &= ~gone
        if (origin[fits] == person).any():
            chance[place] = 1.0 / int(fits.sum())
    tries = Tries(float(chance.sum()), len(people))
    values = success(tries, guess=1 / max(1, len(study.original)), control=None, note=study.looked(len(people)))
    yield "own-row-linkage-windows", dataclasses.replace(values, aside="")


def _bounds(pair: ColumnPair, people: Places, reach: float | None) -> tuple[Matrix, Matrix] | None:
    """Lowest and highest cell that each person's may have been exchanged for; None where it may be any of a leaf."""
    if reach is None or not pair.is_number:
        return None
    ranked = np.sort(pair.original.present)
    ranks = int(reach * len(ranked))
    own = pair.original.values[people]
    low = np.searchsorted(ranked, own, side="left") - ranks
    high = np.searchsorted(ranked, own, side="right") - 1 + ranks
    last = len(ranked) - 1
    return ranked[np.clip(low, 0, last)], ranked[np.clip(high, 0, last)]


SWAPPED_ROWS = Measure(
    "swapped-rows",
    Family.ATTACK,
    "Nin, Herranz & Torra 2008",
    _run_windows,
    needs=(Need.ORIGIN,),
    applies=where(Swapped, "no cells were swapped"),
).finds(
    Number("own-row-linkage-windows", "Linkage to the own row, by windows", SHARE).means(
        "The share of people whose own row is picked by somebody who knows their cells and how far cells were swapped: "
        "of the released rows that lie within all windows, and are equal where nothing was swapped, one is taken at "
        "random; beside guessing one row of all, and less is better"
    )
)


def _run_label(study: Study) -> Iterator[Stated]:
    fact = study.fact(Downgraded)
    assert fact is not None
    rng, (known, origin) = study.generator("hidden-label"), study.descent()
    private = study.pair(fact.private)
    there = ~private.original.absent[origin]
    hidden = np.flatnonzero(private.released.absent[known] & there)
    shown = np.flatnonzero(~private.released.absent[known] & there)
    teach, tried = _halves(study, hidden, origin, rng)
    if len(hidden) < _LEAST or not len(teach) or not len(tried):
        raise NotRun(f"fewer than {_LEAST} people with a label are hidden")
    teach = np.concatenate([teach, shown])
    teach = rng.permutation(teach)[: study.sizes.training]
    labels = private.original.values[origin]
    others = [pair for pair in study.pairs if pair.name != fact.private]
    named = [not pair.is_number and _categories(study, pair.name) <= _BINS for pair in others]
    hits = []
    for rows, cells in ((known, [pair.released for pair in others]), (origin, [pair.original for pair in others])):
        table = np.column_stack([np.where(each.absent, np.nan, each.values)[rows] for each in cells])
        told = boosted_labels(table[teach], labels[teach], table[tried], named, int(rng.integers(2**31)))
        hits.append(int((told == labels[tried]).sum()))
    commonest = np.bincount(labels[teach].astype(np.int64)).argmax()
    guess = float((labels[tried] == commonest).mean())
    before = f"; from the original's cells {100 * hits[1] / len(tried):.1f} of 100"
    values = success(Tries(hits[0], len(tried)), guess=guess, control=None, note=before)
    yield "hidden-label-told", dataclasses.replace(values, aside="")


def _halves(
    study: Study, rows: Places, origin: Places, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Half of the rows to learn from and half to attack; all rows of a person are on one side."""
    whom = origin[rows] if study.persons is None else study.persons[origin[rows]]
    people = rng.permutation(np.unique(whom))
    first = np.isin(whom, people[: len(people) // 2])
    return rows[first], rows[~first]


def _categories(study: Study, column: str) -> int:
    return max((block.categories for block in study.layout if block.column == column), default=1)


HIDDEN_LABEL = Measure(
    "hidden-label",
    Family.ATTACK,
    "Chang & Moskowitz 1998; Jain & Sharma 2007, sections 2.2.1.3 and 2.7",
    _run_label,
    needs=(Need.ORIGIN,),
    applies=where(Downgraded, "no label was hidden"),
).finds(
    Number("hidden-label-told", "Hidden label told by a strong model", SHARE).means(
        "The share of people whose hidden label is told rightly by boosted trees that learnt on the released rows with "
        "the true labels of the other half of the people, gaps and all, beside always naming the commonest (baseline); "
        "less is better"
    )
)
