"""How narrow an interval holds a person's number with 95 % confidence, given the release [KCG12, "Metrics"]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sfumato.assess.algebra import SIZE, Measure, Need, NotRun, Number, Stated, Values
from sfumato.assess.findings import Family
from sfumato.assess.intervals import CONFIDENCE, redraw_interval
from sfumato.assess.risk.estimates import Guessed, look_up, number_columns, number_errors, sampling_note
from sfumato.assess.study import ColumnPair, Matrix, Places, Study, drawn_note, sample

__all__ = ["INTERVAL", "central_width", "counterparts", "interval_privacy"]

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
    """A released row of its own group for each record, each row to as few records as can be; -1 where none is.

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


def _run(study: Study) -> Iterator[Stated]:
    guessed = look_up(study) if number_columns(study) else None
    if not number_columns(study):
        yield "interval-privacy", NotRun(_NO_NUMBERS)
    elif guessed is None or not len(guessed.people):
        yield "interval-privacy", NotRun(Need.COLUMNS.value if guessed is None else Need.ORIGIN.value)
    else:
        yield from _of_columns(study, guessed)
    yield "interval-privacy-within-groups", _within_groups(study)


def _of_columns(study: Study, guessed: Guessed) -> Iterator[Stated]:
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
    if workings is None or workings.labels is None or workings.drawn_from is None:
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
INTERVAL = Measure("interval", Family.PRIVACY, "Agrawal & Srikant 2000; Kim, Chen & Gangopadhyay 2012", _run).finds(
    Number("interval-privacy", "Width of the 95\u00a0% interval", SIZE.more.owners).means(
        "How wide the interval is that holds a person's number with 95 % confidence for an intruder who reads it off "
        "the released row most like the person, as a part of the column's range and averaged over columns; 0 means "
        "known exactly, and no less than the baseline means that the release helps no more than the column's spread"
    ),
    Number("interval-privacy-within-groups", "Width of the 95\u00a0% interval inside groups", SIZE.more.owners).means(
        "The same where each record is compared with a row drawn from its own group, as in the paper that tunes "
        "the group size by it; wider is better, and the baseline is what one group of all records would give"
    ),
    Number("interval-privacy/", scale=SIZE.more.owners).means(
        "How wide the interval is, as a part of the range of {column}, that holds a person's value with 95 % "
        "confidence for an intruder who reads it off the released row most like the person; wider is better"
    ),
)
