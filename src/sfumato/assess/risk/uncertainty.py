"""What an intruder still does not know once the release is read: a number's interval, and a cell's entropy.

How narrow an interval holds a person's number with 95 % confidence [KCG12, "Metrics"]. The uncertainty of a cell is its
entropy [JS07, 2.6; Agrawal & Aggarwal 2001]. For anything Z that is computed from the release, H(X | Z) is at least
what the best intruder is left with, so the smallest over a few simple ways to estimate is given. Both kinds of column
are reported as the effective number of equally likely values, 2^H: numbers are read at the column's own step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import SCORE, SIZE, Measure, Need, NotRun, Number, Stated, Values
from sfumato.assess.findings import CONFIDENCE, Family, redraw_interval
from sfumato.assess.risk.estimates import (
    InferenceTargets,
    average,
    first,
    look_up,
    number_columns,
    number_errors,
    sampling_note,
)
from sfumato.assess.study import Column, ColumnPair, Matrix, Places, Study, drawn_note, sample

__all__ = [
    "INTERVAL",
    "UNCERTAINTY",
    "central_width",
    "counterparts",
    "interval_privacy",
    "step_of",
    "surprisal",
    "surprisal_given",
]

_REDRAWS = 200
_MISSING = "all cells of the people looked at are missing"
_NO_NUMBERS = "no column is a number that differs between people"


def interval_privacy(original: Matrix, released: Matrix, *, partners: Places, confidence: float = CONFIDENCE) -> Matrix:
    """Width of the interval that holds each attribute of a record, as a part of its range.

    Implements the privacy metric of [KCG12, "Metrics"; Agrawal & Srikant 2000]: an attribute that is estimated with
    95 % confidence in [x1, x2] has privacy (x2 - x1) / (max - min). The estimate is the number of a released row, the
    interval the middle 95 % of the errors, which a constant shift leaves as it is. It can exceed 1 (errata KCG12.4).

    NaN is a missing cell, in either. ``partners`` is the released row that each record is compared with, -1 for none:
    `counterparts` gives rows of the same group, which is the paper's reading. 0 for an attribute that does not vary.

    Examples
    --------
    >>> rows = np.random.default_rng(1).normal(size=(500, 3))
    >>> interval_privacy(rows, rows + 7.0, partners=np.arange(500)).max() < 1e-9
    np.True_
    """
    known = partners >= 0
    errors = original[known] - released[partners[known]]
    span = np.array([np.ptp(column[~np.isnan(column)]) if (~np.isnan(column)).any() else 0.0 for column in original.T])
    widths = np.array([float(central_width(column, confidence)) for column in errors.T])
    return np.asarray(np.divide(widths, span, out=np.zeros(len(span)), where=(span > 0) & ~np.isnan(widths)))


def counterparts(labels: Places, drawn_from: Places, rng: np.random.Generator) -> Places:
    """A released row of its own group for each record, each row to as few records as can be; -1 if none is.

    [KCG12] does not say what a record is compared with. With rows of its own group, and not with the group's mean,
    the privacy printed in its table 2 comes out: 0.65 for 0.66 (breast cancer, 180), 1.42 for 1.44 (ionosphere, 45),
    1.72 for 1.73 (German credit, 190); with the mean it would be 0.45, 1.00 and 1.02.

    Examples
    --------
    >>> counterparts(np.array([0, 1, 1, 2]), np.array([1, 0, 1]), np.random.default_rng(1)).tolist()[::3]
    [1, -1]
    """
    rows = rng.permutation(len(drawn_from))
    rows = rows[np.argsort(drawn_from[rows], kind="stable")]
    ordered = drawn_from[rows]
    begin, end = np.searchsorted(ordered, labels, "left"), np.searchsorted(ordered, labels, "right")
    order = np.argsort(labels, kind="stable")
    rank = np.empty(len(labels), dtype=np.int64)
    rank[order] = np.arange(len(labels)) - np.searchsorted(labels[order], labels[order], "left")
    count = end - begin
    taken = begin + rank % np.maximum(count, 1)
    return np.where(count > 0, rows[np.minimum(taken, len(rows) - 1)], -1) if len(rows) else np.full(len(labels), -1)


def central_width(errors: Matrix, confidence: float = CONFIDENCE) -> Matrix:
    """How wide the middle part of errors is, along the last axis; NaN does not count, and is given for none."""
    ordered = np.sort(errors, axis=-1)
    last = np.maximum((~np.isnan(ordered)).sum(axis=-1) - 1, 0)
    ends = []
    for level in ((1 - confidence) / 2, (1 + confidence) / 2):
        place = level * last
        low = np.floor(place).astype(np.int64)
        high = np.minimum(low + 1, last)
        below, above = (np.take_along_axis(ordered, at[..., None], axis=-1)[..., 0] for at in (low, high))
        ends.append(below + (above - below) * (place - low))
    return np.asarray(ends[1] - ends[0])


def _run_interval(study: Study) -> Iterator[Stated]:
    guessed = look_up(study) if number_columns(study) else None
    if not number_columns(study):
        yield "interval-privacy", NotRun(_NO_NUMBERS)
    elif guessed is None or not len(guessed.people):
        yield "interval-privacy", NotRun(Need.COLUMNS.value if guessed is None else Need.ORIGIN.value)
    else:
        yield from _of_columns(study, guessed)
    yield "interval-privacy-within-groups", _within_groups(study)


def _of_columns(study: Study, guessed: InferenceTargets) -> Iterator[Stated]:
    """The mean over columns, then each column."""
    rng, note = study.generator("interval"), sampling_note(study, guessed)
    errors = list(number_errors(study, guessed))
    pairs, spans = [pair for pair, _, _ in errors], [_span(pair) for pair, _, _ in errors]
    inside = _draws([error for _, error, _ in errors], spans, rng)
    others = [error for _, _, error in errors if error is not None]
    outside = _draws(others, spans, rng) if others else None
    baselines = [float(central_width(pair.original.present)) / span for pair, span in zip(pairs, spans, strict=True)]
    for place, name in enumerate(["interval-privacy", *(f"interval-privacy/{pair.name}" for pair in pairs)]):
        of = slice(None) if place == 0 else slice(place - 1, place)
        control, measured = None if outside is None else _summary(outside, of), _summary(inside, of)
        if measured is None:
            yield name, NotRun(_MISSING)
            continue
        baseline, (aside, limits) = float(np.mean(baselines[of])), control or (None, None)
        people = len(guessed.people)
        yield name, Values(*measured, baseline, aside, people, note, control_interval=limits)


def _span(pair: ColumnPair) -> float:
    return float(np.ptp(pair.original.present))


def _draws(errors: Sequence[Matrix], spans: Sequence[float], rng: np.random.Generator) -> Matrix:
    """Width of each column and, below it, that of redraws of the people, the same for all columns."""
    again = rng.integers(0, len(errors[0]), size=(_REDRAWS, len(errors[0])))
    columns = []
    for error, span in zip(errors, spans, strict=True):
        redrawn = central_width(error[again])
        columns.append(np.concatenate([[float(central_width(error))], redrawn]) / span)
    return np.column_stack(columns)


def _summary(draws: Matrix, of: slice) -> tuple[float, tuple[float, float]] | None:
    """Mean over columns; None where all cells of the people drawn are missing."""
    known = draws[:, of][:, ~np.isnan(draws[0, of])]
    if not known.shape[1]:
        return None
    means = np.where(np.isnan(known), known[0], known).mean(axis=1)
    return float(means[0]), redraw_interval(float(means[0]), means[1:])


def _within_groups(study: Study) -> Values | NotRun:
    """Each record beside a row drawn from its own group."""
    workings, pairs = study.workings, number_columns(study)
    if workings.labels is None or workings.drawn_from is None:
        return NotRun(Need.GROUPS.value)
    if not pairs:
        return NotRun(_NO_NUMBERS)
    rng = study.generator("interval within groups")
    partners = counterparts(workings.labels, workings.drawn_from, rng)
    people = np.flatnonzero(partners >= 0)
    if not len(people):
        return NotRun("no released row is known to come from a group of the original")
    some = people[sample(len(people), study.sizes.testing, rng)]
    spans = [_span(pair) for pair in pairs]
    draws = _draws([_paired(pair, some, partners[some]) for pair in pairs], spans, rng)
    anywhere = rng.integers(0, len(study.released), size=len(some))
    free = [_paired(pair, some, anywhere) for pair in pairs]
    widths = [float(central_width(error)) / span for error, span in zip(free, spans, strict=True)]
    baseline = float(np.mean([width for width in widths if not np.isnan(width)] or [0.0]))
    summary, note = _summary(draws, slice(None)), drawn_note(len(some), len(study.original))
    return NotRun(_MISSING) if summary is None else Values(*summary, baseline, attempts=len(some), note=note)


def _paired(pair: ColumnPair, people: Places, rows: Places) -> Matrix:
    absent = pair.original.absent[people] | pair.released.absent[rows]
    return np.where(absent, np.nan, pair.original.values[people] - pair.released.values[rows])


# Beside the released column these would give the original's range, and so its extremes: none is public.
INTERVAL = Measure(
    "interval", Family.PRIVACY, "Agrawal & Srikant 2000; Kim, Chen & Gangopadhyay 2012", _run_interval
).finds(
    Number("interval-privacy", "Width of the 95\u00a0% interval", SIZE.more.owners).means(
        "The width of the 95 % interval for a person's number that an attacker derives from the most similar released "
        "row, as a share of the column's range, averaged over columns; 0 means known exactly. Baseline: the spread of "
        "the column"
    ),
    Number("interval-privacy-within-groups", "Width of the 95\u00a0% interval within groups", SIZE.more.owners).means(
        "The same if each record is compared with a row drawn from its own group, as in the paper that tunes the "
        "group size by it; wider is better. Baseline: one group of all records"
    ),
    Number("interval-privacy/", scale=SIZE.more.owners).means(
        "The width of the 95 % interval for a person's value of {column} that an attacker derives from the most "
        "similar released row, as a share of the range; wider is better"
    ),
)


_FEWEST = 10  # people with a cell in a column, below which its entropy is not estimated
_ROWS = 50_000  # rows that a column's own entropy is estimated on
_FOLDS = 2
_PARTS = 10  # into which numbers and estimates are sorted, to see what one tells about the other; fewer where
_CELL = 10.0  # least expected number of people for each pair of parts
_Who = tuple[Column, Places, Places]  # a table's column, the places of people in it, and of the rows near each


@dataclass(frozen=True, eq=False, repr=False)
class _Bits:
    """Surprise of each person's cell in bits, NaN if it is missing, what to add to its mean, and the prior's."""

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
        yield "conditional-entropy", NotRun(f"no column differs between people and has {_FEWEST} of them with a cell")
    yield "uncertainty-width", _width(study, guessed, note)


def _best(
    study: Study, pair: ColumnPair, who: _Who, guessed: InferenceTargets, rng: np.random.Generator
) -> _Bits | None:
    """Of a few ways to estimate the one that leaves the intruder least; None if there is none."""
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
    """The bin of each value, among bins of equal frequency."""
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


def _estimates(study: Study, pair: ColumnPair, who: _Who, guessed: InferenceTargets) -> list[Matrix]:
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
    yield "conditional-entropy", _values(mean, control, len(inside[0].each), note)
    for place, name in enumerate(names):
        people = int((~np.isnan(inside[place].each)).sum())
        yield f"conditional-entropy/{name}", _values(draws[:, place : place + 1], others[place], people, note)


def _redraws(columns: Sequence[_Bits], rng: np.random.Generator) -> Matrix:
    """What is left in each column and, below it, the same for redraws of the people."""
    each = np.column_stack([bits.each for bits in columns])
    n = len(each)
    weights = np.vstack([np.ones(n), rng.multinomial(n, np.full(n, 1 / n), size=_REDRAWS)])
    there = weights @ ~np.isnan(each)
    means = weights @ np.nan_to_num(each) / np.maximum(there, 1)
    means = np.where(there > 0, means, means[0])
    return np.column_stack([bits.left(means[:, place]) for place, bits in enumerate(columns)])


def _width(study: Study, guessed: InferenceTargets, note: str) -> Values | NotRun:
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
    """Step at which numbers are distinguished: the median gap between neighbouring values.

    Examples
    --------
    >>> step_of(np.array([1.0, 2.0, 2.0, 3.0, 90.0]))
    1.0
    """
    return float(np.median(np.diff(np.unique(values))))


def surprisal(values: Matrix, step: float, rng: np.random.Generator) -> Matrix:
    """How many bits each number takes, rounded to a step; the mean is the entropy.

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
    Number("conditional-entropy", "Conditional entropy", SCORE.more).means(
        "The number of values that a cell may have for an attacker who knows the other columns and the release, as a "
        "share of the number without the release, averaged over columns: 0 means certain, 1 that nothing is learned. "
        "Control: held-out people"
    ),
    Number("uncertainty-width", "Uncertainty width", SIZE.more).means(
        "The width of the 95 % interval, in standard deviations, for a person's number that an attacker derives from "
        "the most similar released row; wider is better. Compare methods at equal perturbation only"
    ),
    Number("conditional-entropy/", scale=SCORE.more).means(
        "The number of values of {column} that a person may have for an attacker who knows the other columns and the "
        "release, as a share of the number without: 0 means certain, 1 that nothing is learned"
    ),
)
