"""Label inference: what the released table tells about the class of people, above all of those who are in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.assess.algebra import SHARE, Measure, Need, NotRun, Number, Scale, Stated, Values, success
from sfumato.assess.attacks.inference import Reader
from sfumato.assess.findings import Family
from sfumato.assess.intervals import Tries
from sfumato.assess.stand_ins import split_in_tenths
from sfumato.assess.study import Column, Matrix, Places, Study, sample
from sfumato.tables.schema import Kind

__all__ = ["LABEL_INFERENCE", "boosted_labels", "gain_interval"]

_ROUNDS = 60  # of boosting; each grows a tree for each class where there are more than two
_TREES = 180
_BINS = 255  # categories that boosting takes as such; of a column with more it sees places in an order
_WAYS = {
    "": "takes it from the released row that is most like the person",
    "-boosting": "predicts it with boosted trees that learnt on the released table",
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
    """People drawn from those who have a class; None where nobody has."""
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
    if pair.field.kind not in (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL):
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
    for way, tries in zip(_WAYS, (_read(study, target, sides), _boost(study, target, sides, rng)), strict=True):
        attack, control = tries[0], tries[1] if len(tries) > 1 else None
        yield f"label-inference{way}", success(attack, guess=guess, control=control, note=note)
        gain = f"label-inference-gain{way}"
        if control is None:
            yield gain, NotRun(Need.HOLDOUT.value)
        else:
            value, interval = attack.share - control.share, gain_interval(attack, control)
            yield gain, Values(value, interval, 0.0, attempts=int(attack.of), note=note)


def _read(study: Study, target: int, sides: list[_ClassedPeople]) -> list[Tries]:
    """Success by the class of the released row that is most like the person in all other columns."""
    reader, secret = Reader(study), study.pairs[target].name
    known = [pair.name for pair in study.pairs if pair.name != secret]
    guesses = reader.read(secret, known, np.concatenate([side.coordinates[side.places] for side in sides]))
    parts = np.split(guesses, np.cumsum([len(side.places) for side in sides])[:-1])
    return [_count(said, side) for said, side in zip(parts, sides, strict=True)]


def _count(said: Matrix, side: _ClassedPeople) -> Tries:
    return Tries(int((said == side.classes).sum()), len(side.places))


def _boost(study: Study, target: int, sides: list[_ClassedPeople], rng: np.random.Generator) -> list[Tries]:
    """Success of boosted trees that learnt the class from the released table."""
    cells = tuple(pair.released for pair in study.pairs)
    most = study.sizes.training
    teach = _draw(study.released, cells, target, lambda having: having[sample(len(having), most, rng)])
    assert teach is not None
    named = [
        not pair.is_number and _width(study, pair.name) <= _BINS
        for place, pair in enumerate(study.pairs)
        if place != target
    ]
    people = np.concatenate([_table(side, target) for side in sides])
    told = boosted_labels(_table(teach, target), teach.classes, people, named, int(rng.integers(2**31)))
    parts = np.split(told, np.cumsum([len(side.places) for side in sides])[:-1])
    return [_count(said, side) for said, side in zip(parts, sides, strict=True)]


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


def _width(study: Study, column: str) -> int:
    """How many categories any table has in a column."""
    return max((block.categories for block in study.layout if block.column == column), default=1)


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
        for way, how in _WAYS.items()
        for number in (
            Number(
                f"label-inference{way}", f"Inference of the label{', gradient boosting' if way else ''}", SHARE
            ).means(
                "How often an attacker who knows all else about a person of the original finds the person's class if "
                f"he {how}, beside naming the commonest class (baseline) and beside the same for people held out "
                "(control); lower is better"
            ),
            Number(
                f"label-inference-gain{way}",
                f"Gain in inferring the label{', gradient boosting' if way else ''}",
                Scale((-1.0, 1.0)),
            ).means(
                "How much more often an attacker finds the class of people in the original than of people held out if "
                f"he {how}: what being in the table cost a person; 0 or less is good, 1 is worst"
            ),
        )
    )
)
