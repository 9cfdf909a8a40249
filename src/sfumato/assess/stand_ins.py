"""What an attack gets from a release that knows nobody: part of the original plays the release for the other people.

An independent sample of the same population leads an attacker to somebody, too. Where nobody was held out, the rows of
the original itself are such samples of one another, so that an attack by some of them on the others is its baseline.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from sfumato.assess.findings import Finding, is_rate
from sfumato.assess.study import ColumnPair, Places, Study, sample

__all__ = ["NO_CONTROL", "STAND_IN", "split_in_tenths", "split_in_two", "with_measured_baseline"]

NO_CONTROL = " Control not run, because no rows were held out."
"""What follows the meaning of an attack that has none."""

STAND_IN = (
    " No rows were held out; in the place of guessing the baseline is what other rows of the original give, which know "
    "nobody of those attacked."
)
"""What follows the meaning of an attack whose baseline was measured so."""

_FOLDS = 10  # one in so many people is attacked at a time, by the rows of all others
_TURNS = 3  # of which so many are made at most: models learn anew in each
_FEWEST = 4  # rows of an original that can be parted


def split_in_two(study: Study) -> tuple[Study, ...]:
    """The original parted in two, of which one is released: as many rows for each person as the release has.

    For attacks in which people of the original are compared with one another; where rows are many, how many there are
    hardly matters for these, and how many for each person does. Empty where the original has too few rows.
    """
    n, m = len(study.original), len(study.released)
    if n < _FEWEST:
        return ()
    rng = study.generator("strangers")
    people = int(np.clip(round(n * n / (n + m)), 1, n - 1))
    if study.persons is None:
        order = rng.permutation(n)
        return (_released(study, order[:people], order[people:]),)
    whose = rng.permutation(np.unique(study.persons))
    inside = np.isin(study.persons, whose[: max(1, round(len(whose) * people / n))])
    return (_released(study, *map(np.flatnonzero, (inside, ~inside))),) if not inside.all() else ()


def split_in_tenths(study: Study) -> tuple[Study, ...]:
    """A tenth of the original held out of the rest, which is released: three times, or as often as fills the attempts.

    For attacks on one person at a time. No more rows are released than the release has.
    """
    n = len(study.original)
    if n < _FEWEST:
        return ()
    rng = study.generator("strangers")
    groups = _folds(study, rng)
    needed = min(_TURNS, -(-min(study.sizes.attempts, n) // len(groups[0])))
    made = []
    for turn, people in enumerate(groups[:needed]):
        others = np.concatenate([group for place, group in enumerate(groups) if place != turn])
        rows = others[sample(len(others), len(study.released), rng)]
        stand_in = _released(study, rows, rows)
        held = tuple(pair.original.take(people) for pair in study.pairs)
        entropy = (*study.entropy, turn)
        whose = None if study.persons is None else study.persons[people]
        stand_in = dataclasses.replace(stand_in, holdout=study.original[people], held=held, held_persons=whose)
        made.append(dataclasses.replace(stand_in, entropy=entropy))
    return tuple(made)


def _folds(study: Study, rng: np.random.Generator) -> list[Places]:
    """Rows parted in ten, those of a person together."""
    n = len(study.original)
    if study.persons is None:
        return np.array_split(rng.permutation(n), min(_FOLDS, n))
    whose = np.unique(study.persons)
    parts = np.array_split(rng.permutation(whose), min(_FOLDS, len(whose)))
    return [np.flatnonzero(np.isin(study.persons, part)) for part in parts]


def _released(study: Study, people: Places, rows: Places) -> Study:
    """Study of some rows of the original as if others of its rows were the release."""
    pairs = tuple(ColumnPair(pair.field, pair.original.take(people), pair.original.take(rows)) for pair in study.pairs)
    return dataclasses.replace(
        study,
        pairs=pairs,
        original=study.original[people],
        released=study.original[rows],
        holdout=None,
        held=None,
        facts=(),
        workings=None,
        persons=None if study.persons is None else study.persons[people],
        held_persons=None,
        linked=None,
        standings=(),
    )


def with_measured_baseline(finding: Finding, made: Sequence[Sequence[Finding]], *, held: bool) -> Finding:
    """A finding beside the mean of what it is on stand-ins: of controls where some are ``held`` out, else of values.

    Where rows are held out the others play original and release, and what is read of these says nothing. The limits of
    the mean come from those of its parts (Zou and Donner 2008). What is no share, or less of which is worse, stays.
    """
    again = [other for findings in made for other in findings if other.name == finding.name and is_rate(finding)]
    seen = [
        (other.control, other.control_interval) if held or other.control is not None else (other.value, other.interval)
        for other in again
    ]
    shares = [(value, limits) for value, limits in seen if value is not None and limits is not None]
    if finding.value is None or not shares:
        return finding
    mean = float(np.mean([value for value, _ in shares]))
    below, above = (
        float(np.linalg.norm([value - limits[end] for value, limits in shares])) / len(shares) for end in (0, 1)
    )
    return dataclasses.replace(
        finding,
        baseline=mean,
        baseline_interval=(max(0.0, mean - below), min(1.0, mean + above)),
        meaning=finding.meaning.replace(NO_CONTROL, STAND_IN),
    )
