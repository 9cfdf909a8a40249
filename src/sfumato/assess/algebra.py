"""The algebra of measures: what is declared once of every number, what a run yields, and why one was not run.

A `Measure` declares its numbers; its run yields the `Values` of each by name, or `NotRun` with the reason. Findings,
the names that people read and the index of the documentation are made of the declarations.

The baseline of an attack is what it gets from a release of unrelated data. An independent sample of the same population
leads an attacker to someone, too. Where nobody was held out, the rows of the original itself are such samples of one
another, so that an attack by some of them on the others is its baseline.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from sfumato.assess.findings import Direction, Family, Finding, Tries, is_rate, not_run
from sfumato.assess.study import Column, ColumnPair, Places, Study, once, sample
from sfumato.core.arrays import Floats, Ints
from sfumato.core.facts import Fact
from sfumato.core.groups.facts import Grouped
from sfumato.core.threads import one_thread
from sfumato.methods.chain.facts import ChainSynthesis
from sfumato.methods.protocol import OwnerDetails
from sfumato.tables.contact import least_evidence
from sfumato.tables.facts import TailsCoded
from sfumato.tables.tails import NUMERIC, person_maxima

__all__ = [
    "COUNT",
    "SCORE",
    "SHARE",
    "SIZE",
    "STAND_IN",
    "Measure",
    "Need",
    "NotRun",
    "Number",
    "Scale",
    "Stated",
    "Values",
    "bounded_study",
    "run_measure",
    "split_in_tenths",
    "split_in_two",
    "success",
    "where",
]

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
    held_columns = None if held is None else tuple(held)
    return dataclasses.replace(
        study, pairs=tuple(pairs), held=held_columns, original=original, released=released, holdout=holdout
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


NO_CONTROL = " No control: no records were held out."
"""What follows the meaning of an attack that has none."""

STAND_IN = " No control: no records were held out. The baseline is the same attack on other original rows."
"""What follows the meaning of an attack whose baseline was measured so."""

_FOLDS = 10  # one in ten people is attacked at a time, with the rows of all others
_TURNS = 3  # at most three folds are run: models are fitted again in each
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
        workings=OwnerDetails(),
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


_Interval = tuple[float, float] | None


class Need(StrEnum):
    """What a measure cannot do without, as the reason that is given where it lacks."""

    HOLDOUT = "no rows were held out (name some with --holdout)"
    UNSEEN = "no rows were held out to test a model on (name some with --holdout)"
    GROUPS = "no groups came with the table; they are known only to the run that made it"
    GROUP_SIZES = "no groups came with the table, nor their sizes; they are known only to the run that made it"
    ROW_GROUPS = "it is not known from which group a released row was drawn"
    ORIGIN = "it is not known from which original row a released row descends"
    TARGET = "no column is named as the one to predict (name it with --target)"
    COLUMNS = "the table has a single column"


_OF_THE_TABLE = (Need.ORIGIN, Need.COLUMNS)  # where these lack there is nothing that could be attacked so


class NotRun(Exception):
    """Why a number is not run; raised by a run it is the reason for all numbers that were not yielded before.

    It does not apply where the table has nothing that the number could speak of.
    """

    def __init__(self, reason: str, *, applies: bool = True) -> None:
        super().__init__(reason)
        self.applies = applies


@dataclass(frozen=True)
class Values:
    """What was found of one number; all but the value as in `Finding`."""

    value: float
    interval: _Interval = None
    baseline: float | None = None
    control: float | None = None
    attempts: int | None = None
    note: str = ""  # how it was counted; stands before the full stop of the meaning
    control_interval: _Interval = None
    baseline_interval: _Interval = None
    inside: Tries | None = None
    outside: Tries | None = None
    chance: float | None = None
    range: tuple[float | None, float | None] | None = None  # where the table decides it
    meaning: str | None = None  # in place of the declared one, where what was found decides the words
    aside: str = ""  # a sentence that follows the meaning


Stated = tuple[str, Values | NotRun]
"""The name of a number, with its column where it has one, and what was found."""


@dataclass(frozen=True)
class Scale:
    """How a number is read, which many have in common."""

    range: tuple[float | None, float | None]  # worst and best possible value in numeric order; None for an open end
    unit: str = ""  # how a page writes the number: "share" as a percentage, "percent" and "count" as they are
    higher: bool = False  # whether more is better
    public: bool = True  # whether it may leave with the release

    @property
    def more(self) -> Scale:
        """The same where more is better."""
        return dataclasses.replace(self, higher=True)

    @property
    def owners(self) -> Scale:
        """The same for the owner alone."""
        return dataclasses.replace(self, public=False)


SCORE, SHARE = Scale((0.0, 1.0)), Scale((0.0, 1.0), "share")
SIZE, COUNT = Scale((0.0, None)), Scale((0.0, None), "count")


@dataclass(frozen=True)
class Number:
    """One number of a measure, declared once."""

    name: str  # ends with a slash where each column or class has a number of its own; the column's name follows
    spoken: str = ""  # the name as a person says it; read as it stands where none is given
    scale: Scale = SCORE
    figure: str | None = None  # the figure that shows it, if it is not that of the measure
    family: Family | None = None  # where it is not that of the measure
    # one sentence that a steward understands, without its full stop; ``{column}`` stands for the column
    meaning: str = ""

    def means(self, meaning: str) -> Number:
        """The number with what it means."""
        return dataclasses.replace(self, meaning=meaning)

    @property
    def of_columns(self) -> bool:
        """Whether each column or class has one."""
        return self.name.endswith("/")

    def finding(self, family: Family, found: Values | NotRun, column: str = "") -> Finding:
        """The finding that this number is, from what a run found."""
        name, family = self.name + column, self.family or family
        scale, way = self.scale, Direction.HIGHER if self.scale.higher else Direction.LOWER
        meaning = self.meaning.format(column=column) if self.of_columns else self.meaning
        if isinstance(found, NotRun):
            entries = {"public": scale.public, "applies": found.applies}
            return not_run(name, family, way, f"{meaning}.", str(found), **entries)
        return Finding(
            name,
            family,
            found.value,
            way,
            found.range or scale.range,
            f"{found.meaning or meaning}{found.note}.{found.aside}",
            interval=found.interval,
            baseline=found.baseline,
            control=found.control,
            public=scale.public,
            unit=scale.unit,
            control_interval=found.control_interval,
            attempts=found.attempts,
            baseline_interval=found.baseline_interval,
            inside=found.inside,
            outside=found.outside,
            chance=found.chance,
        )


def success(
    attack: Tries, *, guess: float | Tries, control: Tries | None, note: str = "", aside: str = NO_CONTROL
) -> Values:
    """How often an attack succeeded, beside guessing and beside the same attack on the control group.

    What the attack gets above its control is what being in the table cost; what both get above guessing is what the
    table teaches about anybody. In place of guessing stands what it gets from a release of unrelated data, if
    that was tried.
    The ``aside`` follows where there is no control.

    Examples
    --------
    >>> found = success(Tries(30, 100), guess=0.01, control=Tries(2, 100))
    >>> found.value, found.control, found.attempts
    (0.3, 0.02, 100)
    """
    measured = guess if isinstance(guess, Tries) else None
    return Values(
        attack.share,
        attack.interval,
        measured.share if measured is not None else guess,  # type: ignore[arg-type]
        None if control is None else control.share,
        int(attack.of),
        note,
        control_interval=None if control is None else control.interval,
        baseline_interval=None if measured is None else measured.interval,
        inside=attack,
        outside=control,
        aside=aside if control is None else "",
    )


def where(kind: type[Fact], lacking: str) -> Callable[[Sequence[Fact]], str | None]:
    """A measure applies where something of a kind was done; else the reason is what lacks."""
    return lambda facts: None if any(isinstance(fact, kind) for fact in facts) else lacking


@dataclass(frozen=True)
class Measure:
    """One measure or one published attack."""

    name: str  # also the purpose of its generator
    family: Family
    source: str  # who published it
    run: Callable[[Study], Iterable[Stated]]  # yields the values of numbers by name from a study
    needs: tuple[Need, ...] = ()  # where one lacks the measure is not run
    # looks at the facts and gives the reason why the measure does not apply to what was done, or None
    applies: Callable[[Sequence[Fact]], str | None] = lambda _: None
    # for attacks that succeed on people whom the release does not know, too: makes studies of releases that know
    # nobody, which the baseline is measured on where nobody was held out
    stand_ins: Callable[[Study], tuple[Study, ...]] | None = None
    # the numbers that are listed where there are no rows to compare, and what they mean; by default all as declared
    uncompared: Mapping[str, str] | None = None
    of_groups: bool = False  # whether it looks at the groups alone, and so does not ask for released rows
    figure: str | None = None  # the figure of the report that shows its numbers; by default that of attacks, or none
    exact: bool = False  # whether it sees extreme numbers as they are, in place of bounded ones
    numbers: tuple[Number, ...] = ()  # what it finds

    def finds(self, *numbers: Number) -> Measure:
        """The measure with its numbers, each shown in the measure's figure unless it names its own."""
        usual = "attacks/all" if self.family is Family.ATTACK else ""
        figure = usual if self.figure is None else self.figure
        drawn = (dataclasses.replace(each, figure=figure) if each.figure is None else each for each in numbers)
        return dataclasses.replace(self, numbers=tuple(drawn))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its numbers, apart from those of single columns and classes."""
        return tuple(number.name for number in self.numbers if not number.of_columns)

    def findings(self, stated: Iterable[Stated]) -> tuple[Finding, ...]:
        """Findings from what a run yields; a number that it does not yield is not run where the run says why."""
        found: list[Finding] = []
        try:
            for name, values in stated:
                first, slash, column = name.partition("/")
                number = next(number for number in self.numbers if number.name == first + slash)
                found.append(number.finding(self.family, values, column))
        except NotRun as reason:
            known = {finding.name for finding in found}
            rest = [number for number in self.numbers if number.name not in known and not number.of_columns]
            found += [number.finding(self.family, reason) for number in rest]
        return tuple(found)

    def not_run(self, reason: str, *, applies: bool = True) -> tuple[Finding, ...]:
        """All findings as not run, ``applies`` false where the table has nothing that they could speak of."""
        return self.findings((name, NotRun(reason, applies=applies)) for name in self.names)

    def not_compared(self, reason: str, *, applies: bool = True) -> tuple[Finding, ...]:
        """Findings as not run where there are no rows to compare."""
        if self.uncompared is None:
            return self.not_run(reason, applies=applies)
        found = {finding.name: finding for finding in self.not_run(reason, applies=applies)}
        return tuple(dataclasses.replace(found[name], meaning=meaning) for name, meaning in self.uncompared.items())


def run_measure(measure: Measure, study: Study) -> tuple[Finding, ...]:
    """Run a measure, or say why it was not run; one that fails is unknown, never good."""
    if not len(study.released) and not measure.of_groups:
        return measure.not_compared("the released table has no rows")
    reason = measure.applies(study.facts)
    if reason is not None:
        return measure.not_run(reason, applies=False)
    lacking = next((need for need in measure.needs if _lacks(study, need)), None)
    if lacking is not None:
        return measure.not_run(lacking.value, applies=lacking not in _OF_THE_TABLE)
    import sklearn.ensemble  # noqa: F401 - a pool of threads can be held once it is loaded

    if Need.UNSEEN in measure.needs and study.holdout is None and study.unseen is not None:
        study = study.unseen
    study = study if measure.exact else bounded_study(study)
    try:
        with one_thread():
            findings = measure.findings(measure.run(study))
            if measure.stand_ins is None or study.holdout is not None:
                return findings
            stand_ins = measure.stand_ins(study)
            made = [measure.findings(measure.run(stand_in)) for stand_in in stand_ins]
            held = any(stand_in.holdout is not None for stand_in in stand_ins)
            return tuple(with_measured_baseline(finding, made, held=held) for finding in findings)
    except (ArithmeticError, ValueError, IndexError, np.linalg.LinAlgError, MemoryError) as error:
        logging.getLogger("sfumato").warning("the measure %r failed (%s)", measure.name, type(error).__name__)
        return measure.not_run(f"it failed ({type(error).__name__}), which says nothing about safety")


def _lacks(study: Study, need: Need) -> bool:
    workings = study.workings
    return {
        Need.HOLDOUT: study.holdout is None,
        Need.UNSEEN: study.holdout is None and study.unseen is None,
        Need.GROUPS: workings.labels is None,
        Need.GROUP_SIZES: workings.labels is None
        and workings.sizes is None
        and not any(isinstance(fact, Grouped | ChainSynthesis) for fact in study.facts),
        Need.ROW_GROUPS: workings.drawn_from is None,
        Need.ORIGIN: workings.origin is None,
        Need.TARGET: study.target is None,
        Need.COLUMNS: len(study.pairs) < 2,
    }[need]
