"""What an intruder still does not know once the release is read [JS07, 2.6; Agrawal & Aggarwal 2001].

The uncertainty of a cell is its entropy. For anything Z that is computed from the release, H(X | Z) is at least what
the best intruder is left with, so the smallest over a few simple ways to estimate is given. Both kinds of column are
told as the number of values that are as good as equally likely, 2^H: numbers are read at the column's own step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import SCORE, SIZE, Measure, Need, NotRun, Number, Stated, Values
from sfumato.assess.findings import Family
from sfumato.assess.intervals import redraw_interval
from sfumato.assess.risk.estimates import Guessed, average, first, look_up, number_errors, sampling_note
from sfumato.assess.risk.interval import central_width
from sfumato.assess.study import Column, ColumnPair, Matrix, Places, Study, sample

__all__ = ["UNCERTAINTY", "step_of", "surprisal", "surprisal_given"]

_FEWEST = 10  # people with a cell in a column, below which its entropy is not estimated
_ROWS = 50_000  # rows that a column's own entropy is estimated on
_REDRAWS = 200
_FOLDS = 2
_PARTS = 10  # into which numbers and estimates are sorted, to see what one tells about the other; fewer where
_CELL = 10.0  # there would not be so many people for each pair of parts
_Who = tuple[Column, Places, Places]  # a table's column, the places of people in it, and of the rows near each


@dataclass(frozen=True, eq=False, repr=False)
class _Bits:
    """Surprise of each person's cell in bits, NaN where it is missing, what to add to its mean, and the prior's."""

    each: Matrix
    more: float
    prior: float

    def left(self, means: Matrix) -> Matrix:
        """Tell mean surprises as the part of the other values that are left."""
        other = np.exp2(np.minimum(means + self.more, self.prior)) - 1
        return np.asarray(np.clip(other / (np.exp2(self.prior) - 1), 0.0, 1.0))

    @property
    def value(self) -> float:
        """The part that is left."""
        return float(self.left(np.nanmean(self.each, keepdims=True))[0])


def _run(study: Study) -> Iterator[Stated]:
    guessed = look_up(study)
    if guessed is None or not len(guessed.people):
        raise NotRun(Need.COLUMNS.value if guessed is None else Need.ORIGIN.value)
    rng, note = study.generator("uncertainty"), sampling_note(study, guessed)
    held = study.held or tuple(pair.original for pair in study.pairs)
    inside, outside, names = [], [], []
    for pair, cells in zip(study.pairs, held, strict=True):
        near, beyond = guessed.near[pair.name]
        bits = _best(study, pair, (pair.original, guessed.people, near), guessed, rng)
        if bits is None:
            continue
        names.append(pair.name)
        inside.append(bits)
        if guessed.outside is not None and beyond is not None:
            outside.append(_best(study, pair, (cells, guessed.outside, beyond), guessed, rng))
    if inside:
        yield from _entropies(names, inside, outside, note, rng)
    else:
        yield "entropy-privacy", NotRun(f"no column differs between people and has {_FEWEST} of them with a cell")
    yield "uncertainty-width", _width(study, guessed, note)


def _best(study: Study, pair: ColumnPair, who: _Who, guessed: Guessed, rng: np.random.Generator) -> _Bits | None:
    """Of a few ways to estimate the one that leaves the intruder least; None where it cannot be said."""
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
            for estimate in _estimates(study, pair, known, guessed)
            for way in _number_ways(prior, own, cells.values[people[here]], estimate, step, rng)
        ]
    else:
        prior = float(surprisal_given(own.astype(np.int64), np.zeros(len(own), np.int64))[0].mean())
        codes = cells.values[people[here]].astype(np.int64)
        ways = [surprisal_given(codes, given) for given in _categories(pair, near[here])]
    return min((_spread(here, *way, prior) for way in ways), key=lambda way: way.value) if prior > 0 else None


def _number_ways(
    prior: float, own: Matrix, values: Matrix, estimate: Matrix, step: float, rng: np.random.Generator
) -> tuple[tuple[Matrix, float], ...]:
    """Surprise of an estimate's errors, and what the part it lies in tells about the part of the number.

    The second catches columns where most people share a few numbers: I(X; Z) is at least the information between
    anything made of X and anything made of Z.
    """
    parts = int(np.clip(np.sqrt(len(values) / _CELL), 2, _PARTS))
    truth = _part(values, own, parts)
    alone, more = surprisal_given(truth, np.zeros_like(truth))
    bits, excess = surprisal_given(truth, _part(estimate, estimate, parts))
    return (surprisal(values - estimate, step, rng), 0.0), (prior - alone + bits, excess - more)


def _part(values: Matrix, of: Matrix, parts: int) -> Places:
    """Which of so many equal parts of a column values fall into."""
    return np.searchsorted(np.unique(np.quantile(of, np.arange(1, parts) / parts)), values).astype(np.int64)


def _spread(here: NDArray[np.bool_], bits: Matrix, more: float, prior: float) -> _Bits:
    each = np.full(len(here), np.nan)
    each[here] = bits
    return _Bits(each, more, prior)


def _categories(pair: ColumnPair, near: Places) -> list[Places]:
    """Category of the nearest row, and the most frequent among all that are near; missing is one too."""
    codes = np.where(pair.released.absent, -1, pair.released.values).astype(np.int64)[near] + 1
    ways = [codes[:, 0]]
    if near.shape[1] > 1:
        votes = np.zeros((len(near), int(codes.max()) + 1), dtype=np.int16)
        for place in range(near.shape[1]):
            votes[np.arange(len(near)), codes[:, place]] += 1
        ways.append(votes.argmax(axis=1))
    return ways


def _estimates(study: Study, pair: ColumnPair, who: _Who, guessed: Guessed) -> list[Matrix]:
    """Number of the nearest row and the mean of all that are near, or lines through descending rows."""
    cells, people, near = who
    nearest_row = first(pair.released, near)
    if not guessed.descend:
        return [nearest_row, average(pair.released, near)]
    rows = study.released[near[:, 0]]
    sides = (rows[:, study.coordinates([pair.name])], rows)
    lines = [_line(cells.values[people], side) for side in sides if len(people) >= 4 * (side.shape[1] + 1)]
    return [nearest_row, *lines]


def _line(values: Matrix, known: Matrix) -> Matrix:
    """Estimates by least squares from a row that descends, each half of the people by the line of the other half."""
    design = np.column_stack([known, np.ones(len(known))])
    estimate = np.empty(len(values))
    for fold in range(_FOLDS):
        test = np.arange(len(values)) % _FOLDS == fold
        estimate[test] = design[test] @ np.linalg.lstsq(design[~test], values[~test], rcond=None)[0]
    return estimate


def _entropies(
    names: Sequence[str], inside: Sequence[_Bits], outside: Sequence[_Bits | None], note: str, rng: np.random.Generator
) -> Iterator[Stated]:
    """The mean over columns, then each column."""
    draws = _redraws(inside, rng)
    others = [None if bits is None else _redraws([bits], rng) for bits in outside] or [None] * len(names)
    known = [other for other in others if other is not None]
    control = np.mean(known, axis=0) if len(known) == len(names) else None
    mean = draws.mean(axis=1, keepdims=True)
    yield "entropy-privacy", _values(mean, control, len(inside[0].each), note)
    for place, name in enumerate(names):
        people = int((~np.isnan(inside[place].each)).sum())
        yield f"entropy-privacy/{name}", _values(draws[:, place : place + 1], others[place], people, note)


def _redraws(columns: Sequence[_Bits], rng: np.random.Generator) -> Matrix:
    """What is left in each column and, below it, the same for redraws of the people."""
    each = np.column_stack([bits.each for bits in columns])
    n = len(each)
    weights = np.vstack([np.ones(n), rng.multinomial(n, np.full(n, 1 / n), size=_REDRAWS)])
    there = weights @ ~np.isnan(each)
    means = weights @ np.nan_to_num(each) / np.maximum(there, 1)
    means = np.where(there > 0, means, means[0])
    return np.column_stack([bits.left(means[:, place]) for place, bits in enumerate(columns)])


def _width(study: Study, guessed: Guessed, note: str) -> Values | NotRun:
    """The 95 % width of the errors in standard deviations, over the columns of numbers."""
    rng = study.generator("uncertainty width")
    inside, outside, baselines = [], [], []
    for pair, errors, others in number_errors(study, guessed):
        spread = float(pair.original.present.std())
        if np.isnan(errors).all() or not spread > 0:
            continue
        inside.append(_widths(errors, rng) / spread)
        outside.append(None if others is None or np.isnan(others).all() else _widths(others, rng) / spread)
        baselines.append(float(central_width(pair.original.present)) / spread)
    if not inside:
        return NotRun("no column is a number that differs between people")
    known = [draws for draws in outside if draws is not None]
    control = np.mean(known, axis=0) if len(known) == len(inside) else None
    return _values(np.mean(inside, axis=0), control, len(guessed.people), note, baseline=float(np.mean(baselines)))


def _widths(errors: Matrix, rng: np.random.Generator) -> Matrix:
    again = rng.integers(0, len(errors), size=(_REDRAWS, len(errors)))
    draws = np.append(central_width(errors), central_width(errors[again]))
    return np.where(np.isnan(draws), draws[0], draws)[:, None]


def _values(draws: Matrix, control: Matrix | None, attempts: int, note: str, baseline: float = 1.0) -> Values:
    value, aside = float(draws[0, 0]), None if control is None else float(control[0, 0])
    limits = None if control is None or aside is None else redraw_interval(aside, control[1:, 0])
    return Values(value, redraw_interval(value, draws[1:, 0]), baseline, aside, attempts, note, control_interval=limits)


def step_of(values: Matrix) -> float:
    """Step at which numbers are told apart: the median gap between neighbouring values.

    Examples
    --------
    >>> step_of(np.array([1.0, 2.0, 2.0, 3.0, 90.0]))
    1.0
    """
    return float(np.median(np.diff(np.unique(values))))


def surprisal(values: Matrix, step: float, rng: np.random.Generator) -> Matrix:
    """How many bits each number takes, told at a step; the mean is the entropy.

    Spacings of m neighbours to either side [Vasicek 1976], with the digamma function for the logarithm's bias. Numbers
    are spread over their step first, so that ties are no points of infinite density.
    """
    from scipy.special import digamma

    n = len(values)
    spread = (values - np.median(values)) / step + rng.random(n) - 0.5
    order = np.argsort(spread)
    reach = max(1, round(np.sqrt(n)))
    low, high = np.maximum(np.arange(n) - reach, 0), np.minimum(np.arange(n) + reach, n - 1)
    gap = np.maximum(spread[order[high]] - spread[order[low]], np.finfo(np.float64).tiny)
    bits = np.empty(n)
    bits[order] = np.log2(gap) + (digamma(n + 1) - digamma(high - low)) / np.log(2)
    return bits


def surprisal_given(codes: Places, given: Places) -> tuple[Matrix, float]:
    """How many bits each category takes where another is known, and Miller's correction of the mean."""
    both = np.unique(np.stack([given, codes]), axis=1, return_inverse=True, return_counts=True)
    alone = np.unique(given, return_inverse=True, return_counts=True)
    bits = np.log2(alone[2][alone[1].ravel()] / both[2][both[1].ravel()])
    return bits, (len(both[2]) - len(alone[2])) / (2 * len(codes) * np.log(2))


UNCERTAINTY = Measure("uncertainty", Family.PRIVACY, "Agrawal & Aggarwal 2001; Jain & Sharma 2007, 2.6", _run).finds(
    Number("entropy-privacy", "Privacy by entropy", SCORE.more).means(
        "How many values a person's cell may still have for an intruder who knows the other columns and the "
        "release, as a part of how many it may have without, averaged over columns: 0 means certain, 1 that "
        "nothing is learned; what is lost on people held out as well (control) was learned about people in general"
    ),
    Number("uncertainty-width", "Width of what remains uncertain", SIZE.more).means(
        "How wide the interval is, in standard deviations, that holds a person's number with 95 % confidence for "
        "an intruder who reads it off the released row most like the person; wider is better, and methods are "
        "fairly compared by it only at equal perturbation"
    ),
    Number("entropy-privacy/", scale=SCORE.more).means(
        "How many values of {column} a person may still have for an intruder who knows the other columns and the "
        "release, as a part of how many without; 0 means certain, 1 that nothing is learned"
    ),
)
