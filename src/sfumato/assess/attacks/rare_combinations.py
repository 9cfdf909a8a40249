"""Reading numbers off a rare combination of categories, after the matching of uniques [Skinner & Elliot 2002].

Groups that keep the counts of their categories release the combination of a person who is alone with it, or one like
it. The attacker who knows the categories takes the numbers beside them for the person's.

What stands in a release word for word: values that one person alone holds, and whole rows, inside and outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import SHARE, SIZE, Measure, NotRun, Number, Stated, Values, split_in_tenths, success
from sfumato.assess.attacks.inference import CLOSE
from sfumato.assess.findings import Family, Tries, median_interval
from sfumato.assess.risk.uniqueness import PopulationUniqueness, standing_in
from sfumato.assess.study import Matrix, Places, Study, row_codes, value_codes

__all__ = [
    "BY_RECURRENCE",
    "MOST_PERSONS",
    "RARE_COMBINATIONS",
    "REPLICATES",
    "UNIQUE_VALUES",
    "WHOLE_ROWS",
    "RecurrenceRates",
    "as_tries",
]

BY_RECURRENCE = (
    " No rows were held out; the baseline is what an independent redraw of the same population would show, estimated "
    "from how often values recur in the original."
)
"""What follows the meaning of an attack whose baseline is such an estimate."""
MOST_PERSONS = 20
"""Values held by more people are not part of the mixture: any redraw shows them, and none is unique."""
_GRID = np.concatenate([[0.0], np.geomspace(1e-3, 2.0 * MOST_PERSONS, 60)])
REPLICATES = 24
"""Estimates from resampled numbers of values, which tell how far off an estimate is (parametric bootstrap)."""
_Array = NDArray[np.float64]


def _likelihood() -> _Array:
    """Chance of each count from 1 to `MOST_PERSONS` at each rate, given that it is one of these."""
    from scipy.special import gammaln

    counts = np.arange(1.0, MOST_PERSONS + 1)
    chances = np.exp(counts * np.log(_GRID[1:, None]) - gammaln(counts + 1.0))  # but for a factor of each rate
    at_zero = np.zeros((1, MOST_PERSONS))
    at_zero[0, 0] = 1.0  # the limit: what is seen at all is seen once
    return np.concatenate([at_zero, chances / chances.sum(axis=1, keepdims=True)])


def _weights(chances: _Array, observed: _Array) -> _Array:
    """Weights of the rates whose expected numbers of values are nearest to those observed, each in its deviations."""
    from scipy.optimize import nnls

    deviations = np.sqrt(observed + 1.0)
    return np.asarray(nnls((chances / deviations).T, observed / deviations)[0])


@dataclass(frozen=True, eq=False, repr=False)
class RecurrenceRates:
    """Distribution of the expected frequency of values held by one to `MOST_PERSONS` people.

    ``weights`` has one row for the estimate and one for each bootstrap replicate, and a column for each rate.
    """

    weights: _Array

    @classmethod
    def fit(cls, frequencies: NDArray[np.int64], rng: np.random.Generator) -> RecurrenceRates:
        """Estimate from the number of people with each person's value; values without people are ignored."""
        counts = np.bincount(
            frequencies[(frequencies > 0) & (frequencies <= MOST_PERSONS)], minlength=MOST_PERSONS + 1
        )[1:]
        values = counts / np.arange(1.0, MOST_PERSONS + 1)  # a value of three persons is met three times
        observed = np.concatenate([values[None], rng.poisson(values, (REPLICATES, MOST_PERSONS))])
        chances = _likelihood()
        return cls(np.array([_weights(chances, some) for some in observed]))

    def unique_shown(self, ratio: float) -> _Array:
        """Chance that a redraw shows a value that one person alone holds.

        ``ratio`` is the size of the redraw divided by that of the original. First the estimate, then the replicates.
        """
        unique = self.weights * _likelihood()[:, 0]
        return _mean(unique, 1.0 - np.exp(-ratio * _GRID))

    def unique_in_both(self, ratio: float) -> _Array:
        """Chance that one person alone holds a value that stands in exactly one row of a redraw."""
        once = self.weights * _size_bias() * np.exp(-ratio * _GRID)
        return _mean(once, _GRID * np.exp(-_GRID))

    def person_shown(self, ratio: float) -> _Array:
        """Chance that a redraw shows the value of a person, among those whose values are part of the mixture."""
        return _mean(self.weights * _size_bias(), 1.0 - np.exp(-ratio * _GRID))


def _size_bias() -> _Array:
    """Number of people with a value of each rate, among values that occur."""
    return np.concatenate([[1.0], _GRID[1:] / -np.expm1(-_GRID[1:])])


def _mean(weights: _Array, values: _Array) -> _Array:
    total = weights.sum(axis=1)
    return np.asarray(np.divide(weights @ values, total, out=np.zeros(len(total)), where=total > 0))


def as_tries(share: float, of: int, variance: float) -> Tries:
    """An estimated share with the number of attempts that gives its variance, of people and of the estimate.

    Examples
    --------
    >>> tries = as_tries(0.5, 100, 0.0025)
    >>> round(tries.share, 2), round(tries.of)
    (0.5, 50)
    """
    chance = share * (1.0 - share)
    count = max(1.0, chance / (chance / of + variance)) if chance > 0.0 else float(of)
    return Tries(share * count, count)


_RARE = 10  # people who hold a combination that is rare at all
_SLACK = 10  # where people share theirs with more, who would have shared it with a tenth more counts as well
_ENOUGH = 500  # people of the rarest combinations whose share is reported


@dataclass(frozen=True, eq=False, repr=False)
class _Tables:
    """Original and released rows, and after them those held out."""

    keys: list[Places]  # the combination of categories of each row, by a number that is the same in all tables
    counts: list[Places]  # how many persons of the original, and how many released rows, have each combination
    units: list[Matrix]  # numbers in standard deviations of the original; NaN if they are missing

    @classmethod
    def of(cls, study: Study) -> _Tables:
        original, released = ([getattr(pair, side) for pair in study.pairs] for side in ("original", "released"))
        tables = [original, released, *([] if study.held is None else [study.held])]
        ends = np.cumsum([len(table[0].values) for table in tables])
        sides = [(pair, [table[place] for table in tables]) for place, pair in enumerate(study.pairs)]
        cells = (np.concatenate([side.codes(None) + 1 for side in each]) for pair, each in sides if not pair.is_number)
        keys = np.split(row_codes(cells, int(ends[-1])), ends[:-1])
        slots = max(int(codes.max()) for codes in keys) + 1
        counts = [study.frequencies(keys[0], slots), np.bincount(keys[1], minlength=slots)]
        numbers = [each for pair, each in sides if pair.is_number]
        scale = [(float(each[0].present.std()) if len(each[0].present) else 0.0) or 1.0 for each in numbers]
        units = [
            np.stack([np.where(each.absent, np.nan, each.values) for each in side], axis=1) / np.array(scale)
            for side in zip(*numbers, strict=True)
        ]
        return cls(keys, counts, units)

    def read_off(self, side: int, people: Places) -> tuple[Matrix, Matrix]:
        """Each person's mean absolute error by the mean of the released rows of their combination, and by medians.

        Cells that are missing on either side are left out; NaN if nothing can be compared.
        """
        numbers, wanted, released, keys = self.units[side][people], self.keys[side][people], self.units[1], self.keys[1]
        known = ~np.isnan(released)
        filled, slots = np.where(known, released, 0.0), int(max(keys.max(), wanted.max(initial=0))) + 1
        read, guess = np.full(numbers.shape, np.nan), np.full(numbers.shape, np.nan)
        for column in range(numbers.shape[1]):
            sums = np.bincount(keys, filled[:, column], slots)[wanted]
            counts = np.bincount(keys, known[:, column], slots)[wanted]
            read[:, column] = np.divide(sums, counts, out=np.full(len(wanted), np.nan), where=counts > 0)
            if known[:, column].any():
                guess[:, column] = np.median(released[known[:, column], column])
        both = ~np.isnan(numbers - read)
        cells = np.maximum(both.sum(axis=1), 1)
        found, guessed = (np.where(both, np.abs(numbers - way), 0.0).sum(axis=1) / cells for way in (read, guess))
        return np.where(both.any(axis=1), found, np.nan), np.where(both.any(axis=1), guessed, np.nan)


def _run(study: Study) -> Iterator[Stated]:
    rng, most = study.generator("rare-combinations"), study.sizes.attempts
    ordered = [pair.is_number for pair in study.pairs]
    if all(ordered) or not any(ordered):
        lacking = "column of categories" if all(ordered) else "ordered column"
        raise NotRun(f"the table has no {lacking}", applies=False)
    tables = _Tables.of(study)
    keys, counts = tables.keys, tables.counts
    alone = np.flatnonzero((counts[0][keys[0]] == 1) & (counts[1][keys[0]] > 0))
    errors, guesses = tables.read_off(0, study.attacked(most, rng, alone))
    errors, guesses = errors[~np.isnan(errors)], guesses[~np.isnan(errors)]
    if len(errors):
        yield "outlier-inference-error", _median_error(study, tables, errors, guesses, rng)
    else:
        why = "no released row has the categories of a person who is alone with theirs and of whom a number is known"
        yield "outlier-inference-error", NotRun(why, applies=False)
    yield "outlier-inference", _share_found(study, tables, rng)


def _median_error(study: Study, tables: _Tables, errors: Matrix, guesses: Matrix, rng: np.random.Generator) -> Values:
    """How far off the numbers of people who are alone are, and those of the control group."""
    keys, counts, control = tables.keys, tables.counts, np.empty(0)
    if len(keys) > 2:
        outside = np.flatnonzero((counts[0][keys[2]] <= 1) & (counts[1][keys[2]] > 0))
        control = tables.read_off(2, study.attacked_outside(study.sizes.attempts, rng, outside))[0]
        control = control[~np.isnan(control)]
    alone = counts[0][keys[0]] == 1
    total = int(alone.sum()) if study.persons is None else len(np.unique(study.persons[alone]))
    middle, guess = float(np.median(errors)), float(np.median(guesses))
    note = f"; {total} people are alone with their categories, and {len(errors)} of them were attacked"
    found = Values(middle, median_interval(errors), guess, attempts=len(errors), note=note)
    if len(control):
        return replace(found, control=float(np.median(control)), control_interval=median_interval(control))
    lacking = "no held-out person has such a combination" if len(keys) > 2 else "no rows were held out"
    return replace(found, aside=f" Control not run, because {lacking}.")


def _share_found(study: Study, tables: _Tables, rng: np.random.Generator) -> Values | NotRun:
    """How often the numbers of people with rare combinations are found, and those of the control group.

    Combinations are rare in order of frequency until 500 people have one, or all there are. A held-out person has a
    rare combination if it would be rare with that person in the table.
    """
    keys, shared, attempts = tables.keys, _rarest(study, tables.counts[0][tables.keys[0]]), study.sizes.attempts
    if shared.min() > _RARE:
        return NotRun(f"every combination of categories is held by more than {_RARE} people", applies=False)
    most = int(np.sort(shared)[min(_ENOUGH, len(shared)) - 1])
    tries, guessed = [], []
    for side, room in ((0, most), (2, most - 1 + most // _SLACK))[: len(keys) - 1]:
        people = np.flatnonzero(tables.counts[0][keys[side]] <= room)
        draw = study.attacked_outside if side else study.attacked
        people = draw(attempts, rng, people)
        read, guess = (error <= CLOSE for error in tables.read_off(side, people))
        tries.append(Tries(int(read.sum()), len(people)))
        guessed.append(float(guess.mean()) if len(people) else 0.0)
    control = tries[1] if len(tries) > 1 and tries[1].of else None
    held = "1 person of the table" if most == 1 else f"{most} people of the table"
    return success(tries[0], guess=guessed[0], control=control, note=f"; rare is here what at most {held} have")


def _rarest(study: Study, shared: Places) -> Places:
    """With how many others each person shares the rarest of their combinations."""
    if study.persons is None:
        return shared
    rarest = np.full(int(study.persons.max()) + 1, len(shared) + 1)
    np.minimum.at(rarest, study.persons, shared)
    return rarest[np.unique(study.persons)]


RARE_COMBINATIONS = Measure(
    "rare-combinations",
    Family.ATTACK,
    "after Skinner & Elliot 2002",
    _run,
    stand_ins=split_in_tenths,
).finds(
    Number("outlier-inference-error", "Attribute inference on outliers, error", SIZE.more, figure="").means(
        "Attribute inference on outliers: the median error, in standard deviations, of numbers read from released "
        "rows with the same unique combination of categories; 0 reveals them"
    ),
    Number("outlier-inference", "Attribute inference on outliers", SHARE).means(
        "Attribute inference on outliers: the share of people with the rarest combinations of categories whose "
        "numbers an attacker reads, to a tenth of a standard deviation on average, from released rows with the same "
        "categories. Counts towards the limit on singling out"
    ),
)


def _people(rows: NDArray[np.bool_], persons: Places | None) -> Tries:
    """People of whom a row is marked, of all."""
    if persons is None:
        return Tries(int(rows.sum()), len(rows))
    return Tries(len(np.unique(persons[rows])), len(np.unique(persons)))


def _unique_values(study: Study) -> Iterator[Stated]:
    """People who alone hold a value, or would in the table, and that value is released."""
    standings = [standing_in(study, place) for place in range(len(study.pairs))]
    whose, held_whose = standings[0].persons, standings[0].held_persons
    sides = len(standings[0].frequencies), len(standings[0].control_frequencies)
    found = [np.zeros(rows, dtype=np.bool_) for rows in sides]
    alone = np.zeros(sides[0], dtype=np.bool_)
    for standing in standings:
        unique = standing.frequencies == 1
        alone |= unique
        found[0] |= unique & standing.shown
        found[1] |= (standing.control_frequencies == 0) & standing.control_shown
    inside, outside = _people(found[0], whose), _people(found[1], held_whose) if sides[1] else None
    note = f"; {int(_people(alone, whose).hits)} people are alone with a value in some column"
    guess = _shown_by_coincidence(study, standings)
    yield "unique-values-disclosed", success(inside, guess=guess, control=outside, note=note, aside=BY_RECURRENCE)


def _shown_by_coincidence(study: Study, standings: Sequence[PopulationUniqueness]) -> Tries:
    """People of whom a release of unrelated data shows a value that they alone hold.

    In each column it shows such a value with the larger of two chances: that of an independent redraw, and how often
    the release shows the numbers next to it that nobody holds.
    """
    rng, ratio = study.generator("unique-values"), len(study.released) / len(study.original)
    whose = standings[0].persons
    logs = np.zeros((len(standings[0].frequencies), 1 + REPLICATES))  # of the chance that nothing is shown
    for standing in standings:
        unique = standing.frequencies == 1
        if unique.any():
            redraw = RecurrenceRates.fit(standing.frequencies, rng).unique_shown(ratio)
            near = standing.chance[unique]
            chance = np.where(near.mean() > redraw, near[:, None], redraw)
            logs[unique] += np.log1p(-np.minimum(chance, 1.0 - 1e-12))
    if whose is not None:
        persons = np.unique(whose, return_inverse=True)[1]
        sums = np.zeros((int(persons.max()) + 1, logs.shape[1]))
        np.add.at(sums, persons, logs)
        logs = sums
    shares = 1.0 - np.exp(logs).mean(axis=0)
    return as_tries(float(shares[0]), len(logs), float(shares[1:].var(ddof=1)))


def _whole_rows(study: Study) -> Iterator[Stated]:
    """People all of whose cells stand together in one released row."""
    held = [()] * len(study.pairs) if study.held is None else [(cells,) for cells in study.held]
    columns = [(pair.original, pair.released, *others) for pair, others in zip(study.pairs, held, strict=True)]
    ends = np.cumsum([len(column.values) for column in columns[0]])
    keys = np.split(row_codes((value_codes(*sides) for sides in columns), int(ends[-1])), ends[:-1])
    sides = zip((keys[0], *keys[2:]), (study.persons, study.held_persons), strict=False)
    tries = [_people(np.isin(own, keys[1]), persons) for own, persons in sides]
    guess, control = _rows_by_coincidence(study, keys[0]), tries[1] if len(tries) > 1 else None
    yield "exact-row-matches", success(tries[0], guess=guess, control=control, aside=BY_RECURRENCE)


def _rows_by_coincidence(study: Study, keys: Places) -> Tries:
    """People whose row a release of unrelated data shows: as many other rows of the original, or of a redraw, do.

    Of a row that c people have, c - 1 others may be among those that are drawn. A release that has more rows than the
    original shows more, which the rates tell at which rows recur.
    """
    ratio, frequencies = len(study.released) / len(study.original), study.frequencies(keys, int(keys.max()) + 1)
    shown = 1.0 - (1.0 - min(ratio, 1.0)) ** np.maximum(frequencies - 1.0, 0.0)
    total = float(frequencies.sum())
    share = float(frequencies @ shown) / total
    variance = float(((frequencies * (shown - share)) ** 2).sum()) / total**2
    if ratio > 1.0:
        rates = RecurrenceRates.fit(frequencies[keys], study.generator("whole-rows"))
        more = rates.person_shown(ratio) - rates.person_shown(1.0)
        rare = float(frequencies[frequencies <= MOST_PERSONS].sum()) / total
        share, variance = min(1.0, share + rare * float(more[0])), variance + rare**2 * float(more[1:].var(ddof=1))
    return as_tries(share, round(total), variance)


_SOURCE = "after Skinner & Elliot 2002; Yao et al. 2025"

UNIQUE_VALUES = Measure("unique-values", Family.ATTACK, _SOURCE, _unique_values).finds(
    Number("unique-values-disclosed", "Singling out, unique values", SHARE).means(
        "Singling out: the share of people with a value that nobody else has and that the release contains. Baseline: "
        "coincidence; control: such values of held-out people"
    )
)

WHOLE_ROWS = Measure("whole-rows", Family.ATTACK, _SOURCE, _whole_rows).finds(
    Number("exact-row-matches", "Exact row matches", SHARE).means(
        "Record linkage by exact match: the share of people who are equal to a released row in every column. Control: "
        "the same share of held-out people"
    )
)
