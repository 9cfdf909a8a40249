"""Numbers of extreme persons, brought nearer before a release with coded tails is measured.

Standard deviations, correlations, clusters and distances follow a single extreme number. A report that leaves with the
release would show that a person holds one.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from sfumato.assess.study import Column, ColumnPair, Study, once
from sfumato.core.arrays import Floats, Ints
from sfumato.tables.evidence import least_evidence
from sfumato.tables.facts import TailsCoded
from sfumato.tables.tails import NUMERIC, person_maxima

__all__ = ["bounded_study"]

_REACH = 2.0  # times as far from the median as the number of the k-th most extreme person

_Limits = tuple[float, float]


@once
def bounded_study(study: Study) -> Study:
    """The study with the numbers of the original and of the control group within limits that no single person sets.

    It is the same study if no number lies beyond them, or if the tails of the release were not coded.
    """
    if not any(isinstance(fact, TailsCoded) and fact.method != "keep" for fact in study.facts):
        return study
    pairs, held = list(study.pairs), None if study.held is None else list(study.held)
    original, released = study.original.copy(), study.released.copy()
    holdout = None if study.holdout is None else study.holdout.copy()
    for place, pair in enumerate(study.pairs):
        known, others = ~pair.original.absent, None if held is None else held[place]
        if pair.field.kind not in NUMERIC or not known.any():
            continue
        persons = None if study.persons is None else study.persons[known]
        limits = _limits(pair.original.present, persons)
        if not any(_reaches_beyond(each, limits) for each in (pair.original, others) if each is not None):
            continue
        pairs[place] = ColumnPair(pair.field, _within(pair.original, limits), pair.released)
        at = int(study.coordinates([pair.name])[0])
        ends = _limits(original[known, at], persons)
        original[:, at] = original[:, at].clip(*ends)
        unit = min(1.0, float(original[known, at].std())) or 1.0  # an extreme number had made the deviation large
        original[:, at] /= unit
        released[:, at] /= unit
        if held is not None and holdout is not None and others is not None:
            held[place] = _within(others, limits)
            holdout[:, at] = holdout[:, at].clip(*ends) / unit
    if all(one is other for one, other in zip(pairs, study.pairs, strict=True)):
        return study
    for rows in (original, released, holdout):
        if rows is not None:
            rows.setflags(write=False)
    told = None if held is None else tuple(held)
    return dataclasses.replace(
        study, pairs=tuple(pairs), held=told, original=original, released=released, holdout=holdout
    )


def _limits(values: Floats, persons: Ints | None) -> _Limits:
    """How far out a number may lie: some times as far from the median as that of the k-th most extreme person."""
    falling, rising = person_maxima(values, persons), -person_maxima(-values, persons)
    rank, median = least_evidence(len(falling)) - 1, float(np.median(values))
    return median - _REACH * (median - float(rising[rank])), median + _REACH * (float(falling[rank]) - median)


def _reaches_beyond(cells: Column, limits: _Limits) -> bool:
    return bool(((cells.present < limits[0]) | (cells.present > limits[1])).any())


def _within(cells: Column, limits: _Limits) -> Column:
    return Column(cells.values.clip(*limits), cells.absent)
