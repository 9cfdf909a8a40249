"""Extreme values: whether the ends of released columns tell that one extreme person is in the table.

The method is run again on redraws of the table, with and without one person who is beyond everybody else in every
column of numbers or dates. A method that protects such people shows no difference.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sfumato.assess.algebra import SHARE, Measure, NotRun, Number, Stated, Values, success
from sfumato.assess.findings import Family, Tries
from sfumato.assess.study import ColumnPair, Matrix, Places, Study
from sfumato.tables.field import Kind

__all__ = ["EXTREME_VALUES"]

_ROWS = 400  # people of a redraw
_REDRAWS = 6  # with the person and as many without, at least
_TRIES = 24  # over all columns, at least
_FURTHER = 3.0  # how far beyond the others the person is, in distances from their median to their end
_NUMERIC = (Kind.CONTINUOUS, Kind.INTEGER, Kind.DATE)


def _run(study: Study) -> Iterator[Stated]:
    redraw = study.workings.redraw
    if redraw is None:
        raise NotRun("the method cannot be run again on this table")
    columns = [pair for pair in study.pairs if pair.field.kind in _NUMERIC]
    if not columns:
        raise NotRun("no column holds numbers or dates", applies=False)
    rng = study.generator("extreme-values")
    hits = {pair.name: np.zeros(2) for pair in columns}  # with the person and without
    tries = dict.fromkeys(hits, 0)
    redraws = max(_REDRAWS, -(-_TRIES // len(columns)))
    for turn in range(redraws):
        rows = rng.choice(len(study.original), _ROWS, replace=len(study.original) < _ROWS)
        sign = 1.0 if turn % 2 else -1.0
        extremes = {pair.name: each for pair in columns if (each := _beyond(pair, rows, sign)) is not None}
        cells = {name: value for name, (_, value) in extremes.items()}
        for place, held in enumerate((cells, {})):
            released = redraw(rows, held, rng)
            if released is None:
                raise NotRun(f"the method refused a redraw of {_ROWS} people")
            for name, (border, _) in extremes.items():
                hits[name][place] += bool((sign * released[name] > sign * border).any())
        for name in extremes:
            tries[name] += 1
    found = {name: count for name, count in tries.items() if count}
    if not found:
        raise NotRun("the declared bounds of every column leave no room beyond its people")
    both = np.sum([hits[name] for name in found], axis=0)
    note = f"; {redraws} redraws of {_ROWS} people with the person and as many without, {len(found)} columns at once"
    yield "extreme-values-disclosed", _success(both, sum(found.values()), note)
    for name, count in found.items():
        yield f"extreme-values-disclosed/{name}", _success(hits[name], count)


def _success(hits: Matrix, tries: int, note: str = "") -> Values:
    attack, control = (Tries(float(each), tries) for each in hits)
    return success(attack, guess=control, control=control, note=note)


def _beyond(pair: ColumnPair, rows: Places, sign: float) -> tuple[float, float] | None:
    """The end of everybody but the first, and a value beyond it; None if declared bounds leave no room for one."""
    present = sign * pair.original.take(rows[1:]).present
    if not len(present):
        return None
    border, middle = float(present.max()), float(np.median(present))
    value = border + _FURTHER * max(border - middle, 1.0 if pair.field.kind is not Kind.CONTINUOUS else 1e-3)
    domain = pair.field.domain
    bound = domain.high if sign > 0 else domain.low
    if domain.declared and bound is not None:
        if not isinstance(bound, int | float):
            return None  # dates
        value = min(value, sign * float(bound))
    return (sign * border, sign * value) if value > border else None


EXTREME_VALUES = Measure(
    "extreme-values",
    Family.ATTACK,
    "after Dwork et al. 2006, tables that differ in one person",
    _run,
    figure="attacks/all",
    exact=True,
).finds(
    Number("extreme-values-disclosed", "Singling out, extreme values", SHARE).means(
        "Singling out by extreme values: how often a release of a redraw of the table contains a value beyond "
        "everybody else's if one person has such a value. Control: releases of redraws without that person"
    ),
    Number("extreme-values-disclosed/", "Singling out, extreme values", SHARE.owners, figure="").means(
        "Singling out by extreme values of {column}: how often a release of a redraw contains a value beyond "
        "everybody else's if one person has such a value, beside releases without that person"
    ),
)
