"""The best guess behind a randomized answer: Bayes' rule with the distribution that all answers give away.

Agrawal & Srikant 2000 for the distribution; Evfimievski, Gehrke & Srikant 2003 for what a single answer tells.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import SHARE, Measure, Need, NotRun, Number, Stated, Values, where
from sfumato.assess.attacks.noise_filter import randomized_specs, redraw_rows
from sfumato.assess.findings import Family
from sfumato.assess.intervals import Tries, redraw_interval
from sfumato.assess.study import Column, ColumnPair, Matrix, Places, Study
from sfumato.core.facts import Randomized
from sfumato.core.laws.domains import Dates, Labels, Universe
from sfumato.core.laws.operators import Operator, likelihoods
from sfumato.core.laws.spec import NoiseSpec
from sfumato.tables.dates import unit_of
from sfumato.tables.grid import label_of
from sfumato.tables.schema import Kind

__all__ = ["BEST_GUESS", "best_guesses", "estimate_prior"]

_MOST = 1000  # values of a domain of which each can be guessed; noise filters speak of finer ones
_ITERATIONS = 200
_STILL = 1e-7  # total change of the estimate at which it stands still
_OFF = 1e-6  # part of a step by which a number may miss its place
_NOWHERE = -(2**62)  # the place of a cell that has none
_LISTED = (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL)


def estimate_prior(counts: Places, chances: Matrix) -> Matrix:
    """How frequent each value is, estimated from how often each answer came, from uniform on [Agrawal, Srikant 2000].

    ``chances`` of shape (m, size) are P[answer | value], each row up to a factor.

    Examples
    --------
    >>> chances = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> estimate_prior(np.array([550, 450]), chances).round(3).tolist()
    [0.5, 0.5]
    """
    prior = np.full(chances.shape[1], 1.0 / chances.shape[1])
    shares = counts / counts.sum()
    for _ in range(_ITERATIONS):
        evidence = chances @ prior
        weights = np.divide(shares, evidence, out=np.zeros_like(shares), where=evidence > 0)
        after = prior * (weights @ chances)
        total = after.sum()
        if not total > 0:
            return prior
        after /= total
        change = float(np.abs(after - prior).sum())
        prior = after
        if change < _STILL:
            break
    return prior


def best_guesses(answers: Places, operator: Operator) -> Places:
    """The value behind each answer: the one of the highest posterior.

    Examples
    --------
    >>> from sfumato.core.laws.operators import KeepOrReplace
    >>> best_guesses(np.array([0, 0, 0, 0, 1]), KeepOrReplace(2, 0.6)).tolist()
    [0, 0, 0, 0, 0]
    """
    seen, where, counts = np.unique(answers, return_inverse=True, return_counts=True)
    chances = likelihoods(operator, seen)
    prior = estimate_prior(counts, chances)
    return np.asarray(np.argmax(chances * prior, axis=1)[where], dtype=np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class _Guessed:
    """Which cells of a column were attacked, and which of them hit."""

    name: str
    tried: NDArray[np.bool_]
    hits: NDArray[np.bool_]
    most_frequent: float


def _run(study: Study) -> Iterator[Stated]:
    released, original = study.descent()
    answers = {} if study.workings is None else study.workings.answers
    guessed = [
        found
        for name, spec in randomized_specs(study.facts).items()
        if spec.domain.size <= _MOST
        and (pair := next((pair for pair in study.pairs if pair.name == name), None)) is not None
        and (found := _guess_column(pair, spec, released, original, answers.get(name))) is not None
    ]
    if not guessed:
        raise NotRun(f"no randomized column has a domain of at most {_MOST} values and cells to guess")
    hits = np.sum([each.hits for each in guessed], axis=0).astype(np.float64)
    cells = np.sum([each.tried for each in guessed], axis=0).astype(np.int64)
    value, count = float(hits.sum() / cells.sum()), int(cells.sum())
    constant = math.fsum(each.most_frequent * int(each.tried.sum()) for each in guessed)
    interval = redraw_interval(value, redraw_rows(hits, cells, study.generator("best-guess")))
    yield "best-guess", Values(value, interval, constant / count, attempts=count)
    for each in guessed:
        tries = Tries(int(each.hits.sum()), int(each.tried.sum()))
        baseline, count = each.most_frequent, int(tries.of)
        yield f"best-guess/{each.name}", Values(tries.share, tries.interval, baseline, attempts=count)


def _guess_column(
    pair: ColumnPair, spec: NoiseSpec, released: Places, original: Places, answers: Places | None
) -> _Guessed | None:
    """Guess a column; ``answers`` are its answers where they are of another kind than its values."""
    true = _codes(pair, pair.original, spec.domain)[original]
    got = (_codes(pair, pair.released, spec.released) if answers is None else answers)[released]
    outputs = spec.operator.outputs
    possible = got != _NOWHERE if outputs is None else (got >= outputs.start) & (got < outputs.stop)
    there = (true >= 0) & (true < spec.domain.size) & possible
    if not there.any():
        return None
    hits = np.zeros(len(there), dtype=np.bool_)
    hits[there] = best_guesses(got[there], spec.operator) == true[there]
    most = int(np.bincount(true[there]).max())
    return _Guessed(pair.name, there, hits, most / int(there.sum()))


def _codes(pair: ColumnPair, cells: Column, domain: Universe) -> Places:
    """Place of each cell in a domain, possibly beyond its ends; `_NOWHERE` for cells that have none."""
    if isinstance(domain, Labels):
        if pair.field.kind not in _LISTED:
            return np.full(len(cells.values), _NOWHERE)
        place = {label: index for index, label in enumerate(domain.values)}
        labels = [label_of(category) for category in pair.field.domain.categories or ()]
        gap = _NOWHERE if "" in labels else place.get("", _NOWHERE)  # the empty text is a missing cell, else a label
        codes = np.array([place.get(label, _NOWHERE) for label in labels] or [_NOWHERE], dtype=np.int64)
        known = np.clip(cells.values, 0, len(codes) - 1).astype(np.int64)
        return np.where(cells.absent, gap, codes[known])
    if pair.field.kind in _LISTED:
        return np.full(len(cells.values), _NOWHERE)
    if isinstance(domain, Dates):
        counts = domain.counts(np.rint(cells.values).astype(np.int64) * unit_of(pair.field))
        return np.where(cells.absent, _NOWHERE, counts - domain.low)
    steps = (cells.values - float(domain.low)) / float(domain.step)
    near = np.isfinite(steps) & (np.abs(steps) < 2.0**52) & ~cells.absent
    whole = np.rint(np.where(near, steps, 0.0))
    return np.where(near & (np.abs(steps - whole) <= _OFF), whole, _NOWHERE).astype(np.int64)


def _guessed_number(name: str, what: str, spoken: str = "") -> Number:
    meaning = (
        f"The share of {what} that are guessed exactly from the released one, by Bayes' rule and the distribution that "
        "all released values give away, beside always guessing the most frequent value; less is better"
    )
    return Number(name, spoken, SHARE).means(meaning)


BEST_GUESS = Measure(
    "best-guess",
    Family.ATTACK,
    "Agrawal & Srikant 2000; Evfimievski, Gehrke & Srikant 2003",
    _run,
    needs=(Need.ORIGIN,),
    applies=where(Randomized, "no column was randomized by a stated law, so there is no answer to guess behind"),
).finds(
    _guessed_number("best-guess", "randomized values", "Randomized values guessed exactly"),
    _guessed_number("best-guess/", "values of {column}"),
)
