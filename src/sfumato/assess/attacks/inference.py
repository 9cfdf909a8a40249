"""Attribute inference: an attacker reads a column of a person off the released table, the extreme values too.

Whether a table is open to it depends on what the attacker knows, and users of other tools are left alone with that
choice (statice/anonymeter#28). Here named attackers are chosen by rule so that nobody has to be asked. They are nested:
who is named later knows all that the earlier ones know, and one column more or many. An owner who knows better names
the columns that an outsider knows, who then takes the place of the first two.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import SHARE, Measure, Need, NotRun, Number, Stated, Values, split_in_tenths, success
from sfumato.assess.findings import Family, Tries
from sfumato.assess.risk.uniqueness import known_as, with_known_labels
from sfumato.assess.study import ColumnPair, Matrix, Places, Study
from sfumato.core.neighbours import nearest
from sfumato.tables.schema import Kind

__all__ = [
    "ALL_COLUMNS",
    "ATTRIBUTE_INFERENCE",
    "CLOSE",
    "EXTREME_VALUES",
    "FEW_COLUMNS",
    "HALF_COLUMNS",
    "PROFILES",
    "Reader",
    "attack_column",
    "outsiders",
    "pool",
    "profiles_of",
    "rank_columns",
    "tolerance_of",
]

_QUARTILES = 1.349  # standard deviations between the quartiles of a normal law
CLOSE = 0.1
"""A guess of a number is correct within this number of standard deviations of the original column."""
_SEEN = 3  # columns that a neighbour knows
_MOST = 16  # columns that are tried as the secret, where the table is not so large that each costs much
_FEWEST = 4
_CELLS = 4_000_000  # released rows times secrets
_SHARE = 2  # over all secrets, an attacker makes twice the usual number of attempts
_SPREAD = np.uint64(0x9E37_79B9_7F4A_7C15)
_ROOM = 1e-9  # for rounding, relative


@dataclass(frozen=True)
class Profile:
    """An attacker by what he knows."""

    name: str  # one word; part of a finding's name
    sentence: str  # what he knows, as the words that follow "an attacker who"
    spoken: str  # who he is, as the words that follow "attribute inference,"
    # from the columns as `rank_columns` puts them and the secret column, those that he knows
    choose: Callable[[Sequence[str], str], tuple[str, ...]]


def rank_columns(study: Study) -> tuple[str, ...]:
    """Columns in order from what anybody sees to what only the owner knows.

    Columns that take few values come first, for what takes few values is seen at a glance (a sex, a region, a number
    of children), and columns of steps before continuous ones and dates. Columns that are constant tell nothing and
    stand near the end; the target, which is to be predicted and hence not supposed known, is last.
    """
    keys = {}
    for pair in study.pairs:
        distinct, fine = len(np.unique(pair.original.present)), pair.field.kind in (Kind.CONTINUOUS, Kind.DATE)
        keys[pair.name] = pair.name == study.target, distinct < 2, fine, distinct
    return tuple(sorted(keys, key=keys.__getitem__))  # columns alike stay in the order of the table


def _first(order: Sequence[str], secret: str, count: int) -> tuple[str, ...]:
    return tuple(column for column in order if column != secret)[:count]


FEW_COLUMNS = Profile(
    "few-columns",
    "knows the three columns that are easiest to observe",
    "few columns known",
    lambda order, secret: _first(order, secret, _SEEN),
)
HALF_COLUMNS = Profile(
    "half-columns",
    "has a register with half of the columns, those that take the fewest values",
    "half of the columns known",
    lambda order, secret: _first(order, secret, max(_SEEN, len(order) // 2)),
)
ALL_COLUMNS = Profile(
    "all-columns",
    "knows everything about a person but one column",
    "all other columns known",
    lambda order, secret: _first(order, secret, len(order)),
)
PROFILES = (FEW_COLUMNS, HALF_COLUMNS, ALL_COLUMNS)


def profiles_of(study: Study) -> tuple[Profile, ...]:
    """Attackers of a study: `PROFILES`; with quasi-identifiers one who knows these, and one who knows all columns."""
    if not study.quasi_identifiers:
        return PROFILES
    named_columns = dataclasses.replace(
        FEW_COLUMNS,
        sentence="knows the columns that the owner named",
        choose=lambda order, secret: tuple(
            column for column in order if column in study.quasi_identifiers and column != secret
        ),
    )
    return named_columns, ALL_COLUMNS


def outsiders(study: Study) -> dict[str, tuple[str, ...]]:
    """Columns that each attacker knows who does not know them all, by the attacker's name; of a study with labels."""
    order = rank_columns(with_known_labels(study))
    return {profile.name: profile.choose(order, "") for profile in profiles_of(study) if profile is not ALL_COLUMNS}


@dataclass(frozen=True)
class ColumnAttack:
    """How one attack on one column went: on people of the original, on the control group, and by guessing."""

    column: str
    inside: Tries
    outside: Tries | None
    guess: float

    @property
    def success(self) -> Values:
        """How often it succeeded, beside guessing and the control group."""
        return success(self.inside, guess=self.guess, control=self.outside)


def tolerance_of(pair: ColumnPair) -> float:
    """How near a guess must come: `CLOSE` standard deviations for what has an order, 0 for categories.

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

    def read(self, secret: str, known: Sequence[str], people: Matrix) -> Matrix:
        """Guesses of a column of people whose coordinates are given; NaN where the released table never tells it."""
        released = self._study.pair(secret).released
        present = np.flatnonzero(~released.absent)
        if not len(present):
            return np.full(len(people), np.nan)
        marks = np.zeros(len(present), dtype=np.uint64)
        for column in known:
            marks += self._marks[column][present]
        _, first, twins = np.unique(marks, return_index=True, return_inverse=True)
        asked = np.zeros(len(people), dtype=np.int64)
        if len(first) > 1:
            where = self._study.coordinates(known)
            asked = nearest(self._study.released[np.ix_(present[first], where)], people[:, where])[0][:, 0]
        return _vote(released.values[present], twins, asked, tolerance_of(self._study.pair(secret)))


def _mark(coordinates: Matrix, place: int) -> NDArray[np.uint64]:
    """Numbers of rows, the same where they are equal in a column; sums of them do the same for several columns."""
    mixed = np.full(len(coordinates), place + 1, dtype=np.uint64) * _SPREAD
    for column in coordinates.T:
        mixed = (mixed ^ (column + 0.0).view(np.uint64)) * _SPREAD
        mixed ^= mixed >> np.uint64(29)
        mixed *= _SPREAD
        mixed ^= mixed >> np.uint64(32)
    return mixed


def _vote(values: Matrix, twins: Places, asked: Places, tolerance: float) -> Matrix:
    """For each set of twins that is asked for, the value that serves most of them."""
    order = np.argsort(twins, kind="stable")
    ends = np.cumsum(np.bincount(twins))
    wanted, back = np.unique(asked, return_inverse=True)
    begins = ends[wanted] - np.bincount(twins)[wanted]
    answers = values[order[begins]]
    for place in np.flatnonzero(ends[wanted] - begins > 1):
        answers[place] = _densest(values[order[begins[place] : ends[wanted[place]]]], tolerance)
    return np.asarray(answers[back])


def _densest(values: Matrix, tolerance: float) -> float:
    """The guess that comes within the tolerance of most values: the middle of the fullest window."""
    ordered = np.sort(values)
    last = np.searchsorted(ordered, ordered + 2 * tolerance, side="right")
    first = int(np.argmax(last - np.arange(len(ordered))))
    return float((ordered[first] + ordered[last[first] - 1]) / 2)


def _hits(guesses: Matrix | float, truth: Matrix, tolerance: float) -> NDArray[np.bool_]:
    room = _ROOM * np.abs(truth) if tolerance else 0.0
    return np.asarray(np.abs(guesses - truth) <= tolerance + room)


def attack_column(
    study: Study, reader: Reader, secret: str, known: Sequence[str], attempts: int, rng: np.random.Generator
) -> ColumnAttack | None:
    """Attack on people of the original and the control group; None if no one has anything in the column to guess."""
    pair, tolerance = study.pair(secret), tolerance_of(study.pair(secret))
    people = study.attacked(attempts, rng, np.flatnonzero(~pair.original.absent))
    if not len(people):
        return None
    coordinates, truth = study.original[people], pair.original.values[people]
    if study.holdout is not None and study.held is not None:
        held = study.held[study.pairs.index(pair)]
        others = study.attacked_outside(attempts, rng, np.flatnonzero(~held.absent))
        coordinates = np.concatenate([coordinates, study.holdout[others]])
        truth = np.concatenate([truth, held.values[others]])
    right = _hits(reader.read(secret, known, coordinates), truth, tolerance)  # all in one search
    attack, control = right[: len(people)], right[len(people) :]
    return ColumnAttack(
        secret,
        Tries(int(attack.sum()), len(attack)),
        Tries(int(control.sum()), len(control)) if len(control) else None,
        _guess(pair, tolerance),
    )


def _guess(pair: ColumnPair, tolerance: float) -> float:
    """Share of people hit by the best guess for all of them that the released column alone can tell."""
    released, present = pair.released.present, pair.original.present
    return float(_hits(_densest(released, tolerance), present, tolerance).mean()) if len(released) else 0.0


def pool(attacks: Sequence[ColumnAttack]) -> ColumnAttack:
    """Attacks added up: successes and attempts over all secrets, guessing in proportion."""
    attempts = sum(each.inside.of for each in attacks)
    controls = [each.outside for each in attacks if each.outside is not None]
    guess = sum(each.guess * each.inside.of for each in attacks) / attempts
    control = Tries(sum(each.hits for each in controls), sum(each.of for each in controls)) if controls else None
    return ColumnAttack("", Tries(sum(each.inside.hits for each in attacks), attempts), control, guess)


def _run(study: Study) -> Iterator[Stated]:
    order, reader, rng = rank_columns(study), Reader(study), study.generator("attribute-inference")
    # the target first, then what is least easily seen; all columns, unless they are many or the table large
    secrets = tuple(reversed(order))[: min(_MOST, max(_FEWEST, _CELLS // len(study.released)))]
    attempts = min(study.sizes.attempts, max(1, _SHARE * study.sizes.attempts // len(secrets)))
    wide = with_known_labels(study)  # what is known by its labels alone can be the secret itself
    seen = rank_columns(wide), reader if wide is study else Reader(wide)
    for profile in profiles_of(study):
        looked, (columns, sees) = (study, (order, reader)) if profile is ALL_COLUMNS else (wide, seen)
        people = study.sizes.attempts if study.sizes.judged and profile is ALL_COLUMNS else attempts
        chosen = {secret: profile.choose(columns, secret) for secret in secrets}
        tried = [attack_column(looked, sees, secret, known, people, rng) for secret, known in chosen.items()]
        attacks = [attack for attack in tried if attack is not None]
        if not attacks:
            raise NotRun("no cell of the original has a value that could be guessed")
        *first, last = (known_as(study, column) for column in profile.choose(columns, ""))
        named = f"{', '.join(first)} and {last}" if first else last
        line = "" if study.quasi_identifiers else f" ({_NEXT})"
        here = "" if profile is ALL_COLUMNS else f", here {named}{line}"
        meaning, whole = _MEANING.format(known=profile.sentence + here), pool(attacks).success
        note = _note(study, secrets, people)
        yield f"attribute-inference-{profile.name}", dataclasses.replace(whole, meaning=meaning, note=note)
        for each in attacks if profile is ALL_COLUMNS else ():
            yield f"attribute-inference-all-columns/{each.column}", each.success


def _note(study: Study, secrets: Sequence[str], attempts: int) -> str:
    columns = f"; {len(secrets)} of the columns were tried as the secret" if len(secrets) < len(study.pairs) else ""
    rows = max(len(study.original), 0 if study.holdout is None else len(study.holdout))
    return columns + (f"; counted on {attempts} people drawn at random for each secret" if rows > attempts else "")


_NEXT = "or the next in line where one of them is the secret"
_MEANING = (
    "Attribute inference: an attacker who {known}, takes a further column from the most similar released row. Share of "
    "correct values (same category, or a number within a tenth of a standard deviation). Baseline: the most frequent "
    "value; control: the same attack on the control group"
)
ATTRIBUTE_INFERENCE = Measure(
    "attribute-inference",
    Family.ATTACK,
    "Giomi et al. 2023; profiles after statice/anonymeter#28",
    _run,
    needs=(Need.COLUMNS,),
    stand_ins=split_in_tenths,
).finds(
    *(
        Number(f"attribute-inference-{profile.name}", f"Attribute inference, {profile.spoken}", SHARE).means(
            _MEANING.format(known=profile.sentence)
        )
        for profile in PROFILES
    ),
    Number("attribute-inference-all-columns/", scale=SHARE, figure="attacks/attribute-inference-all-columns").means(
        "Attribute inference of {column}: an attacker who knows all other columns takes it from the most similar "
        "released row. Control: the same attack on the control group"
    ),
)


_ROWS = 400  # people of a redraw
_REDRAWS = 6  # with the person and as many without, at least
_TRIES = 24  # over all columns, at least
_FURTHER = 3.0  # how far beyond the others the person is, in distances from their median to their end
_NUMERIC = (Kind.CONTINUOUS, Kind.INTEGER, Kind.DATE)


def _run_extremes(study: Study) -> Iterator[Stated]:
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
    _run_extremes,
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
