"""What stands in a release word for word: values that one person alone holds, and whole rows, inside and outside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import SHARE, Measure, Number, Stated, success
from sfumato.assess.findings import Family
from sfumato.assess.intervals import Tries
from sfumato.assess.stand_ins import split_in_tenths
from sfumato.assess.standing import standing_in
from sfumato.assess.study import Column, Places, Study, row_codes, value_codes

__all__ = ["UNIQUE_VALUES", "WHOLE_ROWS"]


def _sides(study: Study, place: int) -> list[Column]:
    """Column of the original, of the release, and of the people held out."""
    pair = study.pairs[place]
    return [pair.original, pair.released, *(() if study.held is None else (study.held[place],))]


def _codes(columns: Sequence[Column]) -> list[Places]:
    """Numbers of the cells of some columns, the same for equal values; 0 where a cell is missing."""
    return np.split(value_codes(*columns), np.cumsum([len(column.values) for column in columns])[:-1])


def _people(rows: NDArray[np.bool_], persons: Places | None) -> Tries:
    """People of whom a row is marked, of all."""
    if persons is None:
        return Tries(int(rows.sum()), len(rows))
    return Tries(len(np.unique(persons[rows])), len(np.unique(persons)))


def _unique_values(study: Study) -> Iterator[Stated]:
    """People who alone hold a value, or would in the table, and that value is released."""
    found = [np.zeros(len(study.original), dtype=np.bool_)]
    if study.holdout is not None:
        found.append(np.zeros(len(study.holdout), dtype=np.bool_))
    alone, spared = np.zeros(len(study.original), dtype=np.bool_), np.ones(len(study.original))
    for place in range(len(study.pairs)):
        standing = standing_in(study, place)
        unique = standing.holders == 1
        alone |= unique
        found[0] |= unique & standing.shown
        spared *= 1.0 - standing.chance
        if study.holdout is not None:
            found[1] |= (standing.held_holders == 0) & standing.held_shown
    tries = [_people(each, persons) for each, persons in zip(found, (study.persons, study.held_persons), strict=False)]
    note = f"; {int(_people(alone, study.persons).hits)} people are alone with a value in some column"
    if study.persons is not None:
        whose = np.unique(study.persons, return_inverse=True)[1]
        spared = np.exp(np.bincount(whose, np.log(np.maximum(spared, 1e-300))))
    guess = Tries(float((1.0 - spared).sum()), len(spared))
    yield "unique-values-shown", success(tries[0], guess=guess, control=tries[1] if len(tries) > 1 else None, note=note)


def _whole_rows(study: Study) -> Iterator[Stated]:
    """People all of whose cells stand together in one released row."""
    columns = [_codes(_sides(study, place)) for place in range(len(study.pairs))]
    sizes = [len(codes) for codes in columns[0]]
    keys = np.split(row_codes((np.concatenate(codes) for codes in columns), sum(sizes)), np.cumsum(sizes)[:-1])
    sides = zip((keys[0], *keys[2:]), (study.persons, study.held_persons), strict=False)
    tries = [_people(np.isin(own, keys[1]), persons) for own, persons in sides]
    yield "whole-rows-shown", success(tries[0], guess=0.0, control=tries[1] if len(tries) > 1 else None)


_SOURCE = "after Skinner & Elliot 2002; Yao et al. 2025"

UNIQUE_VALUES = Measure("unique-values", Family.ATTACK, _SOURCE, _unique_values).finds(
    Number("unique-values-shown", "Unique values shown", SHARE).means(
        "The share of people of the original who alone hold a value in some column and that very value stands in the "
        "release; less is better, the baseline is how often numbers next to theirs stand there that nobody of the "
        "original holds, the control how often values of held-out people do that nobody of it holds, and both are "
        "coincidence"
    )
)

WHOLE_ROWS = Measure("whole-rows", Family.ATTACK, _SOURCE, _whole_rows, stand_ins=split_in_tenths).finds(
    Number("whole-rows-shown", "People whose whole row is shown", SHARE).means(
        "The share of people of the original who are equal to a released row in every column; less is better, and the "
        "control is the same share of people held out, whose rows stand there by coincidence or since many have them"
    )
)
