"""Singling out: predicates read off the released table that fit exactly one person of the original.

[Giomi et al. 2023; Cohen & Nissim 2020]. A predicate is a conjunction of conditions on single columns. Only one that
fits exactly one released row is put forward, and each that is put forward counts as an attempt. It may fit several
rows of the person. A table keeps its rows
sorted by each column, so that a predicate is tried only on the rows that meet its narrowest condition, and no longer
than until it fits two.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import SHARE, STAND_IN, Measure, Need, NotRun, Number, Stated, Values, split_in_two, success
from sfumato.assess.attacks.rare_combinations import BY_RECURRENCE, REPLICATES, RecurrenceRates, as_tries
from sfumato.assess.findings import Family, Tries, clustered_interval, effective_tries, mean_cluster
from sfumato.assess.study import Column, Matrix, Places, Study, sample, value_codes
from sfumato.core.compiled import compiled, fixed, inner, whole

__all__ = [
    "AT_LEAST",
    "AT_MOST",
    "EQUAL",
    "MISSING",
    "SINGLING_OUT",
    "Predicates",
    "SortedRows",
    "conjunctions",
    "find_fits",
    "guesses_like",
    "single_conditions",
]

EQUAL, AT_MOST, AT_LEAST, MISSING = 0, 1, 2, 3
_MOST_COLUMNS = 5  # conditions in a predicate
_TRIES = 100  # candidates for each predicate that is wanted
_WORK = 100_000_000_000  # candidates times rows beyond which no more are tried
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Predicates:
    """Conjunctions of at most w conditions; a condition on column -1 is none."""

    # columns, ways: on which column each condition is and what it asks: ``EQUAL``, ``AT_MOST``, ``AT_LEAST`` or
    # ``MISSING``
    columns: Places
    ways: Places
    values: Matrix  # what the cell is compared with

    def __len__(self) -> int:
        return len(self.columns)

    def take(self, which: Flags | Places) -> Predicates:
        """Select predicates."""
        return Predicates(self.columns[which], self.ways[which], self.values[which])

    def join(self, other: Predicates) -> Predicates:
        """Put two lists of the same width one after the other."""
        return Predicates(
            np.concatenate([self.columns, other.columns]),
            np.concatenate([self.ways, other.ways]),
            np.concatenate([self.values, other.values]),
        )

    def distinct(self) -> Predicates:
        """Drop those that say the same as an earlier one; columns must be in rising order."""
        none = self.columns < 0
        parts = [self.columns, np.where(none, 0, self.ways), np.where(none, 0.0, self.values)]
        order = np.argsort(none, axis=1, kind="stable")
        keys = np.concatenate([np.take_along_axis(part, order, axis=1) for part in parts], axis=1)
        first = np.unique(keys, axis=0, return_index=True)[1]
        return self.take(np.sort(first))


@dataclass(frozen=True, eq=False, repr=False)
class SortedRows:
    """A table that predicates are tried on."""

    cells: Matrix  # missing cells are NaN
    order: NDArray[np.int32]  # the rows by rising value of each column, those with missing cells last
    present: Places  # how many cells are not missing
    whose: Places  # whom each row is about

    def __len__(self) -> int:
        return int(self.cells.shape[1])

    @classmethod
    def of(cls, columns: Sequence[Column], persons: Places | None = None) -> SortedRows:
        """Stack and sort columns."""
        return cls.of_matrix(np.array([np.where(column.absent, np.nan, column.values) for column in columns]), persons)

    @classmethod
    def of_matrix(cls, cells: Matrix, persons: Places | None = None) -> SortedRows:
        """Sort the rows of a matrix, each of which is a column with NaN for missing cells.

        Where ``persons`` does not say whom each is about, each is about a person of its own.
        """
        order = np.empty(cells.shape, dtype=np.int32)
        for place, column in enumerate(cells):
            order[place] = np.argsort(column)
        whose = np.arange(cells.shape[1]) if persons is None else np.ascontiguousarray(persons, dtype=np.int64)
        return cls(cells, order, (~np.isnan(cells)).sum(axis=1), whose)

    @property
    def people(self) -> Places:
        """The persons whom rows are about."""
        return np.unique(self.whose)

    def known(self, column: int) -> Matrix:
        """Values of a column in rising order, without missing cells."""
        return np.asarray(self.cells[column][self.order[column, : self.present[column]]])


def find_fits(predicates: Predicates, rows: SortedRows, skip: Flags | None = None) -> tuple[Places, Places]:
    """How many persons each predicate fits, up to 2, and the place of the last row counted, else -1.

    Rows to ``skip`` are taken to be absent.

    Examples
    --------
    >>> rows = SortedRows.of_matrix(np.array([[1.0, 2.0, 3.0], [5.0, np.nan, 5.0]]))
    >>> columns, ways = np.array([[0, -1], [0, 1]]), np.array([[AT_MOST, 0], [AT_LEAST, EQUAL]])
    >>> counts, places = find_fits(Predicates(columns, ways, np.array([[2.0, 0.0], [2.0, 5.0]])), rows)
    >>> counts.tolist(), places.tolist()
    ([2, 1], [1, 2])
    """
    counts, places = (np.full(len(predicates), start, dtype=np.int64) for start in (0, -1))
    conditions = _Conditions(
        fixed(predicates.columns, np.int64), fixed(predicates.ways, np.int64), fixed(predicates.values, np.float64)
    )
    table = _Table(
        fixed(rows.cells, np.float64),
        fixed(rows.order, np.int32),
        fixed(rows.present, np.int64),
        fixed(rows.whose, np.int64),
    )
    skipped = fixed(np.zeros(len(rows), dtype=np.bool_) if skip is None else skip, np.bool_)
    _find(conditions, table, skipped, counts, places)
    return counts, places


class _Conditions(NamedTuple):
    """Arrays of `Predicates` for the kernel."""

    columns: Places
    ways: Places
    values: Matrix


class _Table(NamedTuple):
    """Arrays of `SortedRows` for the kernel."""

    cells: Matrix
    order: NDArray[np.int32]
    present: Places
    whose: Places


@inner
def _fits(cell: float, way: int, value: float) -> bool:
    if way == 0:
        return cell == value
    if way == 1:
        return cell <= value
    if way == 2:
        return cell >= value
    return cell != cell


@inner
def _first(cells: Matrix, order: NDArray[np.int32], present: int, value: float, after: bool) -> int:
    """How many of the sorted cells are less than the value, or with ``after`` not greater."""
    low, high = whole(0), present
    while low < high:
        middle = (low + high) // 2
        cell = cells[order[middle]]
        if cell < value or (after and cell == value):
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _find(conditions: _Conditions, table: _Table, skip: Flags, counts: Places, places: Places) -> None:
    """Try each predicate on the rows that meet its narrowest condition and stop at the second person whom it fits."""
    columns, ways, values = conditions.columns, conditions.ways, conditions.values
    cells, order, present, whose = table.cells, table.order, table.present, table.whose
    n = cells.shape[1]
    for p in range(columns.shape[0]):
        lead, start, stop = whole(-1), whole(0), whole(n)
        for condition in range(columns.shape[1]):
            column, way, value = columns[p, condition], ways[p, condition], values[p, condition]
            if column < 0:
                continue
            low, high = whole(0), present[column]
            if way == 3:
                low, high = present[column], whole(n)
            if way == 0 or way == 2:
                low = _first(cells[column], order[column], present[column], value, False)
            if way == 0 or way == 1:
                high = _first(cells[column], order[column], present[column], value, True)
            if lead < 0 or high - low < stop - start:
                lead, start, stop = column, low, high
        for place in range(start, stop):
            row = order[lead, place] if lead >= 0 else place
            fits = not skip[row]
            for condition in range(columns.shape[1]):
                if fits and columns[p, condition] >= 0:
                    fits = _fits(cells[columns[p, condition], row], ways[p, condition], values[p, condition])
            if fits and (counts[p] == 0 or whose[places[p]] != whose[row]):
                counts[p] += 1
                places[p] = row
                if counts[p] == 2:
                    break


def _run(study: Study) -> Iterator[Stated]:
    rng = study.generator("singling-out")
    ordered = np.array([pair.is_number for pair in study.pairs])
    original = SortedRows.of([pair.original for pair in study.pairs], study.persons)
    released = SortedRows.of([pair.released for pair in study.pairs])
    held = None if study.held is None else SortedRows.of(study.held, study.held_persons)
    for name, describe in (("univariate", single_conditions), ("multivariate", conjunctions)):
        if describe is conjunctions and len(ordered) < 2:
            yield f"singling-out-{name}", NotRun(Need.COLUMNS.value, applies=False)
            continue
        predicates = describe(released, ordered, study.sizes.attempts, rng)
        if not len(predicates):
            why = "no description fits exactly one released row, so none was put forward"
            yield f"singling-out-{name}", NotRun(why, applies=False)
            continue
        found = _fitting(predicates, original, held, ordered, rng)
        if held is None:
            redraw = _values_by_coincidence(study, predicates) if name == "univariate" else _by_strangers(study)
            if redraw is not None:
                why = BY_RECURRENCE if name == "univariate" else STAND_IN
                found = dataclasses.replace(found, baseline=redraw.share, baseline_interval=redraw.interval, aside=why)
        yield f"singling-out-{name}", found


def _values_by_coincidence(study: Study, predicates: Predicates) -> Tries:
    """How many conditions of an independent redraw, one for each of these, fit exactly one person."""
    rng, ratio = study.generator("unique-in-both"), len(study.released) / len(study.original)
    columns, values = predicates.columns[:, 0], predicates.ways[:, 0] == EQUAL
    # where nothing is known of how values recur: the chance that of few people beyond an end one is in either table
    shares = np.full(1 + REPLICATES, float((~values).sum()) * ratio / (1.0 + ratio) ** 2)
    for column in np.unique(columns[values]):
        cells = study.pairs[column].original
        codes = value_codes(cells)
        frequencies = study.frequencies(codes, int(codes.max()) + 1)[codes]
        chance = RecurrenceRates.fit(frequencies[~cells.absent], rng).unique_in_both(ratio)
        shares += float((columns[values] == column).sum()) * chance
    shares /= len(predicates)
    return as_tries(float(shares[0]), len(predicates), float(shares[1:].var(ddof=1)))


def _by_strangers(study: Study) -> Tries | None:
    """Success of descriptions that are made from one part of the original on the other; None if it has few rows."""
    for part in split_in_two(study):
        rng = part.generator("singling-out")
        ordered = np.array([pair.is_number for pair in part.pairs])
        original = SortedRows.of([pair.original for pair in part.pairs], part.persons)
        released = SortedRows.of([pair.released for pair in part.pairs])
        predicates = conjunctions(released, ordered, part.sizes.attempts, rng)
        if len(predicates):
            return _fitting(predicates, original, None, ordered, rng).inside
    return None


def _fitting(
    predicates: Predicates, original: SortedRows, held: SortedRows | None, ordered: Flags, rng: np.random.Generator
) -> Values:
    """Successes among the originals, and of the control where held-out people sit among them."""
    guess = float((find_fits(guesses_like(predicates, original, ordered, rng), original)[0] == 1).mean())
    counts, places = find_fits(predicates, original)
    attack = Tries(int((counts == 1).sum()), len(predicates))
    hanging, people = mean_cluster(original.whose[places[counts == 1]]), original.people
    n = len(people)
    if held is None or n < 2:
        values = success(attack, guess=guess, control=None)
        interval = clustered_interval(attack.share, len(predicates), hanging)
        return dataclasses.replace(values, interval=interval, inside=_independent(attack, hanging))
    others = held.people  # each takes the seat of a person, with all rows
    seats = people[rng.permutation(n)[: min(len(others), n // 2)]]
    came = np.flatnonzero(np.isin(held.whose, others[sample(len(others), len(seats), rng)]))
    guests = SortedRows.of_matrix(held.cells[:, came], held.whose[came])
    counts, places = find_fits(predicates, guests)
    alone = (counts == 1) & (find_fits(predicates, original, np.isin(original.whose, seats))[0] == 0)
    outside = Tries(int(alone.sum()), len(predicates))
    hanging = max(hanging, mean_cluster(guests.whose[places[alone]]))
    scale = n / len(seats)  # factor if all rows were theirs
    control = Tries(min(outside.hits * scale, outside.of), outside.of)
    low, high = clustered_interval(outside.share, len(predicates), hanging)
    return dataclasses.replace(
        success(attack, guess=guess, control=control),
        interval=clustered_interval(attack.share, len(predicates), hanging),
        control_interval=(min(low * scale, control.share), min(high * scale, 1.0)),
        inside=_independent(attack, hanging),
        outside=_independent(outside, hanging, scale),
    )


def _independent(tries: Tries, hanging: float, scale: float = 1.0) -> Tries:
    """Effective number of attempts if several depend on the same row."""
    count = effective_tries(int(tries.of), hanging)
    return Tries(tries.share * count, count, scale)


def single_conditions(released: SortedRows, ordered: Flags, most: int, rng: np.random.Generator) -> Predicates:
    """Conditions on single columns that fit exactly one released row; at most ``most`` are drawn.

    They are the values that one row alone has, the least and the greatest where one row alone has it, and to be the
    only row with a missing cell.
    """
    parts: list[tuple[int, int, Matrix]] = []
    for column in range(len(ordered)):
        values, counts = np.unique(released.known(column), return_counts=True)
        parts.append((column, EQUAL, values[counts == 1]))
        if ordered[column]:
            parts.append((column, AT_MOST, values[:1][counts[:1] == 1]))
            parts.append((column, AT_LEAST, values[-1:][counts[-1:] == 1]))
        if released.present[column] == len(released) - 1:
            parts.append((column, MISSING, np.zeros(1)))
    lengths = [len(values) for _, _, values in parts]
    kept = sample(sum(lengths), most, rng)
    columns, ways = (np.repeat([part[item] for part in parts], lengths)[kept, None] for item in (0, 1))
    values = np.concatenate([values for _, _, values in parts])[kept, None]
    return Predicates(columns.astype(np.int64), ways.astype(np.int64), values)


def conjunctions(released: SortedRows, ordered: Flags, most: int, rng: np.random.Generator) -> Predicates:
    """Random predicates from released rows and random columns, until enough of them isolate one row.

    An ordered cell becomes "at least" or "at most" it, away from the released median; a category or a missing cell
    stands for itself.
    """
    known = [released.known(column) for column in range(len(ordered))]
    medians = np.array([np.median(values) if len(values) else 0.0 for values in known])
    kept, tried, count = None, 0, most
    while tried < min(_TRIES * most, max(10 * most, _WORK // len(released))):
        batch = _describe(released, ordered, medians, count, rng)
        batch = batch.take(find_fits(batch, released)[0] == 1)
        before = 0 if kept is None else len(kept)
        kept = (batch if kept is None else kept.join(batch)).distinct()
        tried += count
        if len(kept) >= most or (len(kept) == before and tried > 10 * most):  # enough, or nothing new to say
            break
        count = min(10 * most, (most - len(kept)) * tried // max(len(kept), 1) + most // 4 + 1)
    assert kept is not None
    return kept.take(sample(len(kept), most, rng))


def _describe(
    released: SortedRows, ordered: Flags, medians: Matrix, count: int, rng: np.random.Generator
) -> Predicates:
    """Random rows, each described by two to five random columns."""
    columns = len(ordered)
    widest = min(_MOST_COLUMNS, columns)
    chosen = np.sort(rng.permuted(np.tile(np.arange(columns), (count, 1)), axis=1)[:, :widest], axis=1)
    left_out = np.arange(widest) >= rng.integers(2, widest + 1, size=count)[:, None]
    chosen = np.where(rng.permuted(left_out, axis=1), -1, chosen)
    cells = released.cells[chosen, rng.integers(0, len(released), size=count)[:, None]]
    ways = np.where(ordered[chosen], np.where(cells >= medians[chosen], AT_LEAST, AT_MOST), EQUAL)
    ways = np.where(np.isnan(cells), MISSING, ways)
    return Predicates(chosen, ways, np.where(np.isnan(cells), 0.0, cells))


def guesses_like(predicates: Predicates, original: SortedRows, ordered: Flags, rng: np.random.Generator) -> Predicates:
    """As many predicates on the same columns that owe nothing to the released table.

    The conditions keep their ways; numbers are drawn between the least and the greatest of the column, whole where all
    of it are whole, and categories from those there are, all equally.
    """
    values = np.zeros(predicates.values.shape)
    for column in range(len(ordered)):
        here = predicates.columns == column
        known = original.known(column)
        if not here.any() or not len(known):
            continue
        if ordered[column]:
            drawn = rng.uniform(known[0], known[-1], size=int(here.sum()))
            values[here] = np.rint(drawn) if (known == np.rint(known)).all() else drawn
        else:
            values[here] = rng.choice(np.unique(known), size=int(here.sum()))
    return Predicates(predicates.columns, predicates.ways, values)


SINGLING_OUT = Measure(
    "singling-out",
    Family.ATTACK,
    "Giomi, Boenisch, Wehmeyer & Tasnádi 2023; Cohen & Nissim 2020",
    _run,
).finds(
    Number("singling-out-univariate", "Singling out, univariate", SHARE).means(
        "Singling out: the share of extreme or unique values of single released columns that match exactly one "
        "original record. Control: the same for held-out records"
    ),
    Number("singling-out-multivariate", "Singling out, multivariate", SHARE).means(
        "Singling out: the share of descriptions by two to five columns, each unique in the release, that match "
        "exactly one original record. Control: the same for held-out records"
    ),
)
