"""What an intruder still does not know once the release is read [JS07, 2.6; Agrawal & Aggarwal 2001].

The uncertainty of a cell is its entropy. For anything Z that is computed from the release, H(X | Z) is at least what
the best intruder is left with, so the smallest over a few simple ways to estimate is given. Both kinds of column are
told as the number of values that are as good as equally likely, 2^H: numbers are read at the column's own step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.columns import Cells, ColumnPair
from sfumato.assess.findings import Direction, Family, Finding
from sfumato.assess.frame import Measure, Need
from sfumato.assess.intervals import holding
from sfumato.assess.risk.entropy import step_of, surprisal, surprisal_given
from sfumato.assess.risk.estimates import (
    Crowd,
    average,
    first,
    look_up,
    number_errors,
    sampling_note,
)
from sfumato.assess.risk.interval import central_width
from sfumato.assess.study import Study, sample

__all__ = ["UNCERTAINTY"]

_FEWEST = 10  # people with a cell in a column, below which its entropy is not estimated
_ROWS = 50_000  # rows that a column's own entropy is estimated on
_REDRAWS = 200
_FOLDS = 2
_PARTS = 10  # into which numbers and estimates are sorted, to see what one tells about the other; fewer where
_CELL = 10.0  # there would not be so many people for each pair of parts

_Values = NDArray[np.float64]
_Places = NDArray[np.int64]
_Who = tuple[Cells, _Places, _Places]  # a table's column, the places of people in it, and of the rows near each

_MEANINGS = {
    "entropy-privacy": (
        "How many values a person's cell may still have for an intruder who knows the other columns and the release, "
        "as a part of how many it may have without, averaged over columns: 0 means certain, 1 that nothing is learned; "
        "what is lost on people held out as well (control) was learned about people in general"
    ),
    "uncertainty-width": (
        "How wide the interval is, in standard deviations, that holds a person's number with 95 % confidence for an "
        "intruder who reads it off the released row most like the person; wider is better, and methods are fairly "
        "compared by it only at equal perturbation"
    ),
}
_COLUMN = (
    "How many values of {column} a person may still have for an intruder who knows the other columns and the release, "
    "as a part of how many without; 0 means certain, 1 that nothing is learned"
)


@dataclass(frozen=True, eq=False, repr=False)
class _Bits:
    """Surprise of each person's cell in bits, NaN where it is missing, what to add to its mean, and the prior's."""

    each: _Values
    more: float
    prior: float

    def left(self, means: _Values) -> _Values:
        """Tell mean surprises as the part of the other values that are left."""
        other = np.exp2(np.minimum(means + self.more, self.prior)) - 1
        return np.asarray(np.clip(other / (np.exp2(self.prior) - 1), 0.0, 1.0))

    @property
    def value(self) -> float:
        """The part that is left."""
        return float(self.left(np.nanmean(self.each, keepdims=True))[0])


def _run(study: Study) -> Iterable[Finding]:
    crowd = look_up(study)
    if crowd is None or not len(crowd.people):
        return UNCERTAINTY.not_run(Need.COLUMNS.value if crowd is None else Need.ORIGIN.value)
    rng, note = study.generator("uncertainty"), sampling_note(study, crowd)
    held = study.held or tuple(pair.original for pair in study.pairs)
    inside, outside, names = [], [], []
    for pair, cells in zip(study.pairs, held, strict=True):
        near, beyond = crowd.near[pair.name]
        bits = _best(study, pair, (pair.original, crowd.people, near), crowd, rng)
        if bits is None:
            continue
        names.append(pair.name)
        inside.append(bits)
        if crowd.outside is not None and beyond is not None:
            outside.append(_best(study, pair, (cells, crowd.outside, beyond), crowd, rng))
    widths = _width_finding(study, crowd, note)
    if not inside:
        because = f"no column differs between people and has {_FEWEST} of them with a cell"
        return (UNCERTAINTY.not_run(because)[0], widths)
    return (*_entropy_findings(names, inside, outside, note, rng), widths)


def _best(study: Study, pair: ColumnPair, who: _Who, crowd: Crowd, rng: np.random.Generator) -> _Bits | None:
    """Let the intruder estimate in a few ways, and keep the one that leaves least; None where it cannot be said."""
    cells, people, near = who
    here = ~cells.absent[people]
    present = pair.original.present
    own, known = present[sample(len(present), _ROWS, rng)], (cells, people[here], near[here])
    if here.sum() < _FEWEST or not len(own) or own.min() == own.max():
        return None
    if pair.is_number:
        step = step_of(own)
        prior = float(surprisal(own, step, rng).mean())
        ways = [
            way
            for estimate in _estimates(study, pair, known, crowd)
            for way in _number_ways(prior, own, cells.values[people[here]], estimate, step, rng)
        ]
    else:
        prior = float(surprisal_given(own.astype(np.int64), np.zeros(len(own), np.int64))[0].mean())
        codes = cells.values[people[here]].astype(np.int64)
        ways = [surprisal_given(codes, given) for given in _categories(pair, near[here])]
    return min((_spread(here, *way, prior) for way in ways), key=lambda way: way.value) if prior > 0 else None


def _number_ways(
    prior: float, own: _Values, values: _Values, estimate: _Values, step: float, rng: np.random.Generator
) -> tuple[tuple[_Values, float], ...]:
    """Take the surprise of an estimate's errors, and what the part it lies in tells about the part of the number.

    The second catches columns where most people share a few numbers: I(X; Z) is at least the information between
    anything made of X and anything made of Z.
    """
    parts = int(np.clip(np.sqrt(len(values) / _CELL), 2, _PARTS))
    truth = _part(values, own, parts)
    alone, more = surprisal_given(truth, np.zeros_like(truth))
    bits, excess = surprisal_given(truth, _part(estimate, estimate, parts))
    return (surprisal(values - estimate, step, rng), 0.0), (prior - alone + bits, excess - more)


def _part(values: _Values, of: _Values, parts: int) -> _Places:
    """Tell into which of so many equal parts of a column values fall."""
    return np.searchsorted(np.unique(np.quantile(of, np.arange(1, parts) / parts)), values).astype(np.int64)


def _spread(here: NDArray[np.bool_], bits: _Values, more: float, prior: float) -> _Bits:
    each = np.full(len(here), np.nan)
    each[here] = bits
    return _Bits(each, more, prior)


def _categories(pair: ColumnPair, near: _Places) -> list[_Places]:
    """Give the category of the nearest row, and the most frequent among all that are near; missing is one too."""
    codes = np.where(pair.released.absent, -1, pair.released.values).astype(np.int64)[near] + 1
    ways = [codes[:, 0]]
    if near.shape[1] > 1:
        votes = np.zeros((len(near), int(codes.max()) + 1), dtype=np.int16)
        for place in range(near.shape[1]):
            votes[np.arange(len(near)), codes[:, place]] += 1
        ways.append(votes.argmax(axis=1))
    return ways


def _estimates(study: Study, pair: ColumnPair, who: _Who, crowd: Crowd) -> list[_Values]:
    """Give the number of the nearest row and the mean of all that are near, or lines through descending rows."""
    cells, people, near = who
    nearest_row = first(pair.released, near)
    if not crowd.descend:
        return [nearest_row, average(pair.released, near)]
    rows = study.released[near[:, 0]]
    sides = (rows[:, study.coordinates([pair.name])], rows)
    lines = [_line(cells.values[people], side) for side in sides if len(people) >= 4 * (side.shape[1] + 1)]
    return [nearest_row, *lines]


def _line(values: _Values, known: _Values) -> _Values:
    """Estimate by least squares from a row that descends, each half of the people by the line of the other half."""
    design = np.column_stack([known, np.ones(len(known))])
    estimate = np.empty(len(values))
    for fold in range(_FOLDS):
        test = np.arange(len(values)) % _FOLDS == fold
        estimate[test] = design[test] @ np.linalg.lstsq(design[~test], values[~test], rcond=None)[0]
    return estimate


def _entropy_findings(
    names: Sequence[str],
    inside: Sequence[_Bits],
    outside: Sequence[_Bits | None],
    note: str,
    rng: np.random.Generator,
) -> Iterable[Finding]:
    """State the mean over columns, then each column."""
    draws = _redraws(inside, rng)
    others = [None if bits is None else _redraws([bits], rng) for bits in outside] or [None] * len(names)
    known = [other for other in others if other is not None]
    control = np.mean(known, axis=0) if len(known) == len(names) else None
    meaning, mean = _MEANINGS["entropy-privacy"] + note, draws.mean(axis=1, keepdims=True)
    yield _finding("entropy-privacy", meaning, mean, control, len(inside[0].each))
    for place, name in enumerate(names):
        meaning, column = _COLUMN.format(column=name) + note, draws[:, place : place + 1]
        people = int((~np.isnan(inside[place].each)).sum())
        yield _finding(f"entropy-privacy/{name}", meaning, column, others[place], people)


def _redraws(columns: Sequence[_Bits], rng: np.random.Generator) -> _Values:
    """Give what is left in each column and, below it, the same for redraws of the people."""
    each = np.column_stack([bits.each for bits in columns])
    n = len(each)
    weights = np.vstack([np.ones(n), rng.multinomial(n, np.full(n, 1 / n), size=_REDRAWS)])
    there = weights @ ~np.isnan(each)
    means = weights @ np.nan_to_num(each) / np.maximum(there, 1)
    means = np.where(there > 0, means, means[0])
    return np.column_stack([bits.left(means[:, place]) for place, bits in enumerate(columns)])


def _width_finding(study: Study, crowd: Crowd, note: str) -> Finding:
    """State the 95 % width of the errors in standard deviations, over the columns of numbers."""
    rng = study.generator("uncertainty width")
    inside, outside, baselines = [], [], []
    for pair, errors, others in number_errors(study, crowd):
        spread = float(pair.original.present.std())
        if np.isnan(errors).all() or not spread > 0:
            continue
        inside.append(_widths(errors, rng) / spread)
        outside.append(None if others is None or np.isnan(others).all() else _widths(others, rng) / spread)
        baselines.append(float(central_width(pair.original.present)) / spread)
    if not inside:
        return UNCERTAINTY.not_run("no column is a number that differs between people")[1]
    known = [draws for draws in outside if draws is not None]
    control = np.mean(known, axis=0) if len(known) == len(inside) else None
    meaning, baseline = _MEANINGS["uncertainty-width"] + note, float(np.mean(baselines))
    mean = np.mean(inside, axis=0)
    return _finding("uncertainty-width", meaning, mean, control, len(crowd.people), baseline=baseline, most=None)


def _widths(errors: _Values, rng: np.random.Generator) -> _Values:
    again = rng.integers(0, len(errors), size=(_REDRAWS, len(errors)))
    draws = np.append(central_width(errors), central_width(errors[again]))
    return np.where(np.isnan(draws), draws[0], draws)[:, None]


def _finding(
    name: str,
    meaning: str,
    draws: _Values,
    control: _Values | None,
    attempts: int,
    *,
    baseline: float = 1.0,
    most: float | None = 1.0,
) -> Finding:
    value, aside = float(draws[0, 0]), None if control is None else float(control[0, 0])
    return Finding(
        name,
        Family.PRIVACY,
        value,
        Direction.HIGHER,
        (0.0, most),
        meaning + ".",
        interval=holding(value, draws[1:, 0]),
        baseline=baseline,
        control=aside,
        control_interval=None if control is None or aside is None else holding(aside, control[1:, 0]),
        attempts=attempts,
    )


UNCERTAINTY = Measure(
    name="uncertainty",
    family=Family.PRIVACY,
    source="Agrawal & Aggarwal 2001; Jain & Sharma 2007, 2.6",
    findings={name: meaning + "." for name, meaning in _MEANINGS.items()},
    run=_run,
    higher=frozenset(_MEANINGS),
)
