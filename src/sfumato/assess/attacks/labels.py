"""Label inference: what the released table tells about the class of people, above all of those who are in it.

Attacks on modified rows: windows of swapped columns intersected, and a hidden label inferred by a strong model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import (
    SHARE,
    Measure,
    Need,
    NotRun,
    Number,
    Scale,
    Stated,
    Values,
    split_in_tenths,
    success,
    where,
)
from sfumato.assess.attacks.inference import Reader
from sfumato.assess.findings import Family, Tries
from sfumato.assess.glossary import percent
from sfumato.assess.study import CATEGORIES, Column, ColumnPair, Matrix, Places, Study, given, sample
from sfumato.methods.modify.facts import Downgraded, Swapped

__all__ = ["HIDDEN_LABEL", "LABEL_INFERENCE", "SWAPPED_ROWS", "gain_interval"]

_ROUNDS = 60  # of boosting; each grows a tree for each class where there are more than two
_TREES = 180
_BINS = 255  # categories that boosting takes as such; of a column with more it sees places in an order
_WAYS = {
    "": ("nearest row", "takes it from the released row that is most like the person"),
    "-boosting": ("gradient boosting", "predicts it with boosted trees trained on the release"),
}


@dataclass(frozen=True, eq=False, repr=False)
class _ClassedPeople:
    """People to attack: their places among the rows of a table, its coordinates and cells, and their classes."""

    places: Places
    coordinates: Matrix
    cells: tuple[Column, ...]
    classes: Matrix


def _draw(
    coordinates: Matrix, cells: tuple[Column, ...], target: int, draw: Callable[[Places], Places]
) -> _ClassedPeople | None:
    """People drawn from those who have a class; None if no one has."""
    places = draw(np.flatnonzero(~cells[target].absent))
    return _ClassedPeople(places, coordinates, cells, cells[target].values[places]) if len(places) else None


def gain_interval(first: Tries, second: Tries) -> tuple[float, float]:
    """Newcombe's interval for the difference of two shares, from their Wilson intervals.

    Examples
    --------
    >>> low, high = gain_interval(Tries(56, 70), Tries(48, 80))
    >>> round(low, 4), round(high, 4)
    (0.0524, 0.3339)
    """
    (low, high), (bottom, top) = first.interval, second.interval
    gain = first.share - second.share
    return (
        gain - float(np.hypot(first.share - low, top - second.share)),
        gain + float(np.hypot(high - first.share, second.share - bottom)),
    )


def _run(study: Study) -> Iterator[Stated]:
    names = [pair.name for pair in study.pairs]
    target = names.index(study.target or "")
    pair = study.pairs[target]
    if pair.field.kind not in CATEGORIES:
        raise NotRun("the column to predict is not a class; attribute inference tries it as a number")
    if not len(pair.released.present):
        raise NotRun("no released row has a class")
    rng, most = study.generator("label-inference"), study.sizes.attempts
    cells = tuple(pair.original for pair in study.pairs)
    members = _draw(study.original, cells, target, lambda having: study.attacked(most, rng, having))
    if members is None:
        raise NotRun("nobody in the original has a class")
    held_out = None
    if study.holdout is not None and study.held is not None:
        held_out = _draw(study.holdout, study.held, target, lambda having: study.attacked_outside(most, rng, having))
    codes, counts = np.unique(pair.released.present, return_counts=True)
    guess = float((pair.original.present == codes[counts.argmax()]).mean())
    note = f"; counted on {len(members.places)} people drawn at random" if len(study.original) > most else ""
    note = note if study.persons is None else study.looked(len(members.places))
    sides = [members] if held_out is None else [members, held_out]
    cuts = np.cumsum([len(side.places) for side in sides])[:-1]
    for way, labels in zip(_WAYS, (_read(study, target, sides), _boost(study, target, sides, rng)), strict=True):
        parts = zip(np.split(labels, cuts), sides, strict=True)
        tries = [Tries(int((inferred == side.classes).sum()), len(side.places)) for inferred, side in parts]
        attack, control = tries[0], tries[1] if len(tries) > 1 else None
        yield f"label-inference{way}", success(attack, guess=guess, control=control, note=note)
        gain = f"label-inference-excess{way}"
        if control is None:
            yield gain, NotRun(Need.HOLDOUT.value)
        else:
            value, interval = attack.share - control.share, gain_interval(attack, control)
            yield gain, Values(value, interval, 0.0, attempts=int(attack.of), note=note)


def _read(study: Study, target: int, sides: list[_ClassedPeople]) -> Matrix:
    """Classes by the released row that is most like the person in all other columns."""
    reader, secret = Reader(study), study.pairs[target].name
    known = [pair.name for pair in study.pairs if pair.name != secret]
    return reader.read(secret, known, np.concatenate([side.coordinates[side.places] for side in sides]))


def _boost(study: Study, target: int, sides: list[_ClassedPeople], rng: np.random.Generator) -> Matrix:
    """Classes by boosted trees that learnt them from the released table."""
    cells = tuple(pair.released for pair in study.pairs)
    most = study.sizes.training
    teach = given(_draw(study.released, cells, target, lambda having: having[sample(len(having), most, rng)]))
    named = _named(study, [pair for place, pair in enumerate(study.pairs) if place != target])
    people = np.concatenate([_table(side, target) for side in sides])
    return boosted_labels(_table(teach, target), teach.classes, people, named, int(rng.integers(2**31)))


def boosted_labels(rows: Matrix, labels: Matrix, people: Matrix, named: Sequence[bool], seed: int) -> Matrix:
    """Labels that boosted trees, which learnt on some rows, tell of people; NaN where a cell is missing.

    ``named`` are the columns of categories. Where there is nothing to learn from it is the commonest label.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    filled, classes = np.flatnonzero(~np.isnan(rows).all(axis=0)), len(np.unique(labels))
    if classes < 2 or not len(filled):
        return np.full(len(people), float(np.bincount(labels.astype(np.int64)).argmax()))
    model = HistGradientBoostingClassifier(
        max_iter=min(_ROUNDS, max(10, _TREES // classes)),
        early_stopping=False,
        categorical_features=[named[int(place)] for place in filled],
        random_state=seed,
    )
    return np.asarray(model.fit(rows[:, filled], labels).predict(people[:, filled]), dtype=np.float64)


def _named(study: Study, pairs: Sequence[ColumnPair]) -> list[bool]:
    """Which columns boosting takes as categories: those that have no more than it can, in any table."""
    wide = {block.column for block in study.layout if block.categories > _BINS}
    return [not pair.is_number and pair.name not in wide for pair in pairs]


def _table(people: _ClassedPeople, target: int) -> Matrix:
    """All columns but the target, missing cells as NaN."""
    columns = [
        np.where(cells.absent, np.nan, cells.values)[people.places]
        for place, cells in enumerate(people.cells)
        if place != target
    ]
    return np.stack(columns, axis=1)


LABEL_INFERENCE = Measure(
    "label-inference",
    Family.ATTACK,
    "Yeom et al. 2018; Newcombe 1998",
    _run,
    needs=(Need.TARGET, Need.COLUMNS),
    stand_ins=split_in_tenths,
).finds(
    *(
        number
        for way, (spoken, how) in _WAYS.items()
        for number in (
            Number(f"label-inference{way}", f"Attribute inference of the target, {spoken}", SHARE).means(
                "Attribute inference: how often an attacker who knows all other columns of a member names the right "
                f"class, if the attacker {how}. Baseline: the majority class; control: the same for the control group"
            ),
            Number(
                f"label-inference-excess{way}",
                f"Excess attribute inference of the target, {spoken}",
                Scale((-1.0, 1.0)),
                figure="",
            ).means(
                "Success of this attribute inference on members minus success on the control group, if the attacker "
                f"{how}; 0 or less is good, 1 is worst"
            ),
        )
    )
)


_MOST = 1 << 26  # pairs of a person and a row that are compared
_LEAST = 20  # people with a hidden label of whom half can teach and half be attacked


def _run_windows(study: Study) -> Iterator[Stated]:
    fact = given(study.fact(Swapped))
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
    guess, note = 1 / max(1, len(study.original)), study.looked(len(people))
    yield "own-row-linkage-swap-windows", success(tries, guess=guess, control=None, note=note, aside="")


def _bounds(pair: ColumnPair, people: Places, reach: float | None) -> tuple[Matrix, Matrix] | None:
    """Lowest and highest cell that each person's may have been exchanged for; None if it may be any of a leaf."""
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
    Number("own-row-linkage-swap-windows", "Record linkage to own row, swap windows", SHARE).means(
        "Record linkage: the share of people whose own row is picked by an attacker who knows their record and the "
        "swap windows, at random among the released rows within all windows. Baseline: guessing one row"
    )
)


def _run_label(study: Study) -> Iterator[Stated]:
    fact = given(study.fact(Downgraded))
    rng, (known, origin) = study.generator("hidden-label"), study.descent()
    private = study.pair(fact.private)
    there = ~private.original.absent[origin]
    hidden = np.flatnonzero(private.released.absent[known] & there)
    shown = np.flatnonzero(~private.released.absent[known] & there)
    teach, tried = _split_by_person(study, hidden, origin, rng)
    if len(hidden) < _LEAST or not len(teach) or not len(tried):
        raise NotRun(f"fewer than {_LEAST} people with a label are hidden")
    teach = np.concatenate([teach, shown])
    teach = rng.permutation(teach)[: study.sizes.training]
    labels = private.original.values[origin]
    others = [pair for pair in study.pairs if pair.name != fact.private]
    named, hits = _named(study, others), []
    for rows, cells in ((known, [pair.released for pair in others]), (origin, [pair.original for pair in others])):
        table = np.column_stack([np.where(each.absent, np.nan, each.values)[rows] for each in cells])
        predicted = boosted_labels(table[teach], labels[teach], table[tried], named, int(rng.integers(2**31)))
        hits.append(int((predicted == labels[tried]).sum()))
    commonest = np.bincount(labels[teach].astype(np.int64)).argmax()
    guess = float((labels[tried] == commonest).mean())
    before = f"; with the original's cells {percent(hits[1] / len(tried))}"
    tries = Tries(hits[0], len(tried))
    yield "hidden-label-inference", success(tries, guess=guess, control=None, note=before, aside="")


def _split_by_person(
    study: Study, rows: Places, origin: Places, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Half of the rows to learn from and half to attack; all rows of a person are on one side."""
    whom = origin[rows] if study.persons is None else study.persons[origin[rows]]
    people = rng.permutation(np.unique(whom))
    first = np.isin(whom, people[: len(people) // 2])
    return rows[first], rows[~first]


HIDDEN_LABEL = Measure(
    "hidden-label",
    Family.ATTACK,
    "Chang & Moskowitz 1998; Jain & Sharma 2007, sections 2.2.1.3 and 2.7",
    _run_label,
    needs=(Need.ORIGIN,),
    applies=where(Downgraded, "no label was hidden"),
).finds(
    Number("hidden-label-inference", "Attribute inference of hidden labels, gradient boosting", SHARE).means(
        "Attribute inference: the share of hidden labels predicted by boosted trees that were trained on the release "
        "with the true labels of the other half of the people. Baseline: the most frequent label"
    )
)
