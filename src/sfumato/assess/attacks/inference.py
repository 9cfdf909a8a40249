"""Attribute inference: an attacker who knows some columns of a person reads a further one off the released table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.attacks.arms import Arm, success
from sfumato.assess.attacks.profiles import INSIDER, PROFILES, Profile, rank_columns
from sfumato.assess.columns import Cells, ColumnPair
from sfumato.assess.findings import Family, Finding
from sfumato.assess.frame import Measure, Need
from sfumato.assess.neighbours import nearest
from sfumato.assess.strangers import folds
from sfumato.assess.study import Study, sample

__all__ = ["ATTRIBUTE_INFERENCE", "CLOSE", "Reader", "Trial", "attack_column", "pool", "tolerance_of"]

_QUARTILES = 1.349  # standard deviations between the quartiles of a normal law
CLOSE = 0.1
"""A number is guessed where it is hit within so many standard deviations of the original's column."""

_MOST = 16  # columns that are tried as the secret, where the table is not so large that each costs much
_FEWEST = 4
_CELLS = 4_000_000  # released rows times secrets
_SHARE = 2  # over all secrets, an attacker makes so many times the usual number of attempts

_Matrix = NDArray[np.float64]
_SPREAD = np.uint64(0x9E37_79B9_7F4A_7C15)
_ROOM = 1e-9  # for rounding, relative


@dataclass(frozen=True)
class Trial:
    """How one attack on one column went: on people of the original, on people held out, and by guessing."""

    column: str
    attack: Arm
    control: Arm | None
    guess: float


def tolerance_of(pair: ColumnPair) -> float:
    """Say how near a guess must come: `CLOSE` standard deviations for what has an order, 0 for categories.

    The deviation is that of the middle half where it is less, so that a few outliers do not make every guess right.
    """
    present = pair.original.present
    if not pair.is_number or not len(present):
        return 0.0
    low, high = np.quantile(present, [0.25, 0.75])
    middle = (high - low) / _QUARTILES
    spread = float(present.std())
    return CLOSE * float(min(spread, middle) if middle > 0 else spread)


class Reader:
    """Reads secrets off the released rows that are most like a person in the columns that are known.

    Of the rows that are equally near because they are the same in all known columns, it takes the value that most of
    them have, or the middle of the window of twice the tolerance that holds most of them.
    """

    def __init__(self, study: Study) -> None:
        self._study = study
        self._marks = {
            pair.name: _mark(study.released[:, study.coordinates([pair.name])], place)
            for place, pair in enumerate(study.pairs)
        }

    def read(self, secret: str, known: Sequence[str], people: _Matrix) -> _Matrix:
        """Guess a column of people whose coordinates are given; NaN where the released table never tells it."""
        released = self._study.pair(secret).released
        told = np.flatnonzero(~released.absent)
        if not len(told):
            return np.full(len(people), np.nan)
        marks = np.zeros(len(told), dtype=np.uint64)
        for column in known:
            marks += self._marks[column][told]
        _, first, twins = np.unique(marks, return_index=True, return_inverse=True)
        asked = np.zeros(len(people), dtype=np.int64)
        if len(first) > 1:
            where = self._study.coordinates(known)
            asked = nearest(self._study.released[np.ix_(told[first], where)], people[:, where])[0][:, 0]
        return _vote(released.values[told], twins, asked, tolerance_of(self._study.pair(secret)))


def _mark(coordinates: _Matrix, place: int) -> NDArray[np.uint64]:
    """Give rows that are equal in a column the same number; sums of such numbers do the same for several columns."""
    mixed = np.full(len(coordinates), place + 1, dtype=np.uint64) * _SPREAD
    for column in coordinates.T:
        mixed = (mixed ^ (column + 0.0).view(np.uint64)) * _SPREAD
        mixed ^= mixed >> np.uint64(29)
        mixed *= _SPREAD
        mixed ^= mixed >> np.uint64(32)
    return mixed


def _vote(values: _Matrix, twins: NDArray[np.int64], asked: NDArray[np.int64], tolerance: float) -> _Matrix:
    """Give, for each set of twins that is asked for, the value that serves most of them."""
    order = np.argsort(twins, kind="stable")
    ends = np.cumsum(np.bincount(twins))
    wanted, back = np.unique(asked, return_inverse=True)
    begins = ends[wanted] - np.bincount(twins)[wanted]
    answers = values[order[begins]]
    for place in np.flatnonzero(ends[wanted] - begins > 1):
        answers[place] = _densest(values[order[begins[place] : ends[wanted[place]]]], tolerance)
    return np.asarray(answers[back])


def _densest(values: _Matrix, tolerance: float) -> float:
    """Give the guess that comes within the tolerance of most values: the middle of the fullest window."""
    ordered = np.sort(values)
    last = np.searchsorted(ordered, ordered + 2 * tolerance, side="right")
    first = int(np.argmax(last - np.arange(len(ordered))))
    return float((ordered[first] + ordered[last[first] - 1]) / 2)


def _hits(guesses: _Matrix | float, truth: _Matrix, tolerance: float) -> NDArray[np.bool_]:
    room = _ROOM * np.abs(truth) if tolerance else 0.0
    return np.asarray(np.abs(guesses - truth) <= tolerance + room)


def attack_column(
    study: Study, reader: Reader, secret: str, known: Sequence[str], attempts: int, rng: np.random.Generator
) -> Trial | None:
    """Attack people of the original and people held out; None where nobody has anything in the column to guess."""
    pair, tolerance = study.pair(secret), tolerance_of(study.pair(secret))
    people = _draw(pair.original, attempts, rng)
    if not len(people):
        return None
    coordinates, truth = study.original[people], pair.original.values[people]
    if study.holdout is not None and study.held is not None:
        held = study.held[study.pairs.index(pair)]
        others = _draw(held, attempts, rng)
        coordinates = np.concatenate([coordinates, study.holdout[others]])
        truth = np.concatenate([truth, held.values[others]])
    right = _hits(reader.read(secret, known, coordinates), truth, tolerance)  # both arms in one search
    attack, control = right[: len(people)], right[len(people) :]
    return Trial(
        secret,
        Arm(int(attack.sum()), len(attack)),
        Arm(int(control.sum()), len(control)) if len(control) else None,
        _guess(pair, tolerance),
    )


def _draw(cells: Cells, attempts: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw people who have a value in the column."""
    having = np.flatnonzero(~cells.absent)
    return having[sample(len(having), attempts, rng)]


def _guess(pair: ColumnPair, tolerance: float) -> float:
    """Guess the same for everybody, the best that the released column alone can tell, and count who is hit."""
    told, present = pair.released.present, pair.original.present
    return float(_hits(_densest(told, tolerance), present, tolerance).mean()) if len(told) else 0.0


def pool(trials: Sequence[Trial]) -> Trial:
    """Add trials up: successes and attempts over all secrets, guessing in proportion."""
    attempts = sum(trial.attack.attempts for trial in trials)
    controls = [trial.control for trial in trials if trial.control is not None]
    guess = sum(trial.guess * trial.attack.attempts for trial in trials) / attempts
    control = Arm(sum(arm.hits for arm in controls), sum(arm.attempts for arm in controls)) if controls else None
    return Trial("", Arm(sum(trial.attack.hits for trial in trials), attempts), control, guess)


def _choose_secrets(study: Study, order: Sequence[str]) -> tuple[str, ...]:
    """Try the target first, then what is least easily seen; all columns, unless they are many or the table large."""
    most = min(_MOST, max(_FEWEST, _CELLS // len(study.released)))
    return tuple(reversed(order))[:most]


def _run(study: Study) -> Iterable[Finding]:
    order, reader, rng = rank_columns(study), Reader(study), study.generator("attribute-inference")
    secrets = _choose_secrets(study, order)
    attempts = min(study.sizes.attempts, max(1, _SHARE * study.sizes.attempts // len(secrets)))
    findings: list[Finding] = []
    for profile in PROFILES:
        people = study.sizes.attempts if study.sizes.judged and profile is INSIDER else attempts
        tried = (attack_column(study, reader, secret, profile.choose(order, secret), people, rng) for secret in secrets)
        trials = [trial for trial in tried if trial is not None]
        if not trials:
            return ATTRIBUTE_INFERENCE.not_run("no cell of the original has a value that could be guessed")
        findings += _state(profile, trials, order, _note(study, secrets, people))
    return findings


def _state(profile: Profile, trials: Sequence[Trial], order: Sequence[str], note: str) -> Iterator[Finding]:
    name = f"attribute-inference-{profile.name}"
    whole = pool(trials)
    known = "" if profile is INSIDER else f", here {_list(profile.choose(order, ''))} ({_NEXT})"
    meaning = _MEANING.format(known=profile.sentence + known) + note + "."
    yield success(name, meaning, whole.attack, guess=whole.guess, control=whole.control)
    if profile is INSIDER:
        for trial in trials:
            meaning = _SINGLE.format(column=trial.column) + "."
            yield success(f"{name}/{trial.column}", meaning, trial.attack, guess=trial.guess, control=trial.control)


def _list(columns: Sequence[str]) -> str:
    return ", ".join(columns[:-1]) + f" and {columns[-1]}" if len(columns) > 1 else "".join(columns)


def _note(study: Study, secrets: Sequence[str], attempts: int) -> str:
    columns = f"; {len(secrets)} of the columns were tried as the secret" if len(secrets) < len(study.pairs) else ""
    rows = max(len(study.original), 0 if study.holdout is None else len(study.holdout))
    return columns + (f"; counted on {attempts} people drawn at random for each secret" if rows > attempts else "")


_NEXT = "or the next in line where one of them is the secret"
_MEANING = (
    "How often an attacker who {known}, finds a further column by looking at the released row that is most like the "
    "person (the same category, or a number within a tenth of a standard deviation), beside guessing what is "
    "commonest (baseline) and beside the same attack on people held out (control); lower is better, and what is above "
    "the control is what being in the table cost"
)
_SINGLE = (
    "How often an attacker who knows everything else about a person finds {column} by looking at the released row "
    "that is most like the person; lower is better, and what is above the control is what being in the table cost"
)

ATTRIBUTE_INFERENCE = Measure(
    name="attribute-inference",
    family=Family.ATTACK,
    source="Giomi et al. 2023; profiles after statice/anonymeter#28",
    findings={
        f"attribute-inference-{profile.name}": _MEANING.format(known=profile.sentence) + "." for profile in PROFILES
    },
    run=_run,
    needs=(Need.COLUMNS,),
    strangers=folds,
)
