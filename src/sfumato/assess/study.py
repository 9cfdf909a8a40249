"""What measures and attacks may look at: the columns of both tables, the rows held out, and how they were made.

How many rows they look at is chosen from the table's size and the seconds that were granted.
"""

from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.arrays import count_persons
from sfumato.core.errors import OptionError
from sfumato.core.facts import Fact
from sfumato.core.records import Layout, Records
from sfumato.core.threads import one_thread
from sfumato.methods.protocol import OwnerDetails
from sfumato.tables.codec import Codec
from sfumato.tables.persons import persons_of_table
from sfumato.tables.schema import Field, Kind, Role

if TYPE_CHECKING:
    from sfumato.assess.risk.uniqueness import PopulationUniqueness

__all__ = [
    "CATEGORIES",
    "Column",
    "ColumnPair",
    "Matrix",
    "MeasureOptions",
    "Places",
    "Sizes",
    "Study",
    "StudyDetails",
    "bits_of",
    "choose_sizes",
    "drawn_note",
    "equivalence_classes",
    "given",
    "once",
    "read_column",
    "read_columns",
    "read_pairs",
    "row_codes",
    "row_keys",
    "sample",
    "share_alone",
    "study_of",
    "value_codes",
]

_SCALES = tuple(2.0 ** (step / 2) for step in range(-10, 7))  # 1/32 to 8 in steps of the square root of 2
_FEWEST = 100
_TIMES_JUDGED = 5
_QUICK = 2e9  # coordinates of pairs that an attack compares within a second or two
_EASY = 2e7  # numbers in a table up to which every attack is tried the usual number of times
_FIXED, _COLUMN, _PAIRS, _TRAINING, _CELLS = 7.5, 0.1, 0.13, 9.5, 9.0
"""Seconds of a whole report on the machine of `_TRIAL`: in any case, for each column, for a million pairs of a person
and a row compared, twice that at 100 coordinates, for 100,000 cells that a model learns from, and for a million cells
read. Fitted to reports of eleven tables; benchmarks/speed/evaluation.py prints estimate and actual."""
_MOST_PAIRS = 6e8  # in larger tables attacks try fewer people
_TRIAL = 0.0125  # seconds that the trial of `_slowness` took there


@dataclass(frozen=True)
class Sizes:
    """How much is looked at. What a table has fewer of is looked at whole."""

    attempts: int = 2_000  # people attacked in each attack, and held-out people in its control
    training: int = 10_000  # rows that a model learns from
    testing: int = 5_000  # rows that a model is tested on
    queries: int = 1_000  # counting queries that are asked
    estimate: float | None = None  # seconds that all of it was expected to take, where a time limit was given
    time_limit: float | None = None  # seconds that were granted
    judged: bool = False  # whether a policy is judged by it, which takes more people to be attacked
    shadow_releases: int | None = None  # that were attacked, where a policy is judged by the method
    shadow_releases_needed: int | None = None  # that would decide every limit, where one is open
    people_needed: int | None = None  # with whom the releases that there was time for would decide it, about


def choose_sizes(
    rows: int, coordinates: int, columns: int, time_limit: float | None = None, *, judged: bool = False
) -> Sizes:
    """Choose sample sizes for a table of the given number of rows.

    Without a time limit the usual ones, with fewer attempts where the table is so large that each costs much. With a
    time limit the largest whose expected time, from a short trial on this machine, fits; the smallest where none does.
    If a policy is judged by the findings, five times as many people are attacked, or as many as are still quick,
    because the default policy is judged by them too.

    Examples
    --------
    >>> choose_sizes(1000, 10, 10).attempts
    2000
    """
    usual = _scaled(1.0, rows, coordinates, judged)
    if time_limit is None:
        return usual
    slowness = _slowness()
    chosen = None
    for scale in _SCALES:
        sizes = _scaled(scale, rows, coordinates, judged)
        seconds = slowness * _seconds(sizes, rows, coordinates, columns)
        if chosen is None or seconds <= time_limit:
            chosen = replace(sizes, estimate=round(seconds, 1), time_limit=time_limit)
    assert chosen is not None
    return chosen


def _scaled(scale: float, rows: int, coordinates: int, judged: bool) -> Sizes:
    usual = Sizes()
    easy = min(1.0, _EASY / (rows * coordinates))
    quick = 1.0
    if rows > usual.attempts:
        quick = min(_TIMES_JUDGED, max(1.0, _QUICK / (usual.attempts * rows * coordinates)))
    attempts = max(_FEWEST, int(usual.attempts * scale * easy * (_TIMES_JUDGED if judged else quick)))
    return Sizes(
        attempts,
        max(10 * _FEWEST, int(usual.training * scale)),
        max(5 * _FEWEST, int(usual.testing * scale)),
        max(_FEWEST, int(usual.queries * scale)),
        judged=judged,
    )


def _seconds(sizes: Sizes, rows: int, coordinates: int, columns: int) -> float:
    """Expected seconds for a whole report on the machine of `_TRIAL`."""
    pairs = min(min(sizes.attempts, rows) * rows, _MOST_PAIRS) / 1e6 * (1 + coordinates / 100)
    learned = min(sizes.training, rows) * columns / 1e5
    read = rows * columns / 1e6
    return _FIXED + _COLUMN * columns + _PAIRS * pairs + _TRAINING * learned + _CELLS * read


def _slowness() -> float:
    """Time products of the kind that models and attacks make, against what they took on the machine of `_TRIAL`."""
    points = np.random.default_rng(0).normal(size=(8_000, 20))  # made-up points for a stop-watch: never released
    taken = []
    with one_thread():  # threads wait for one another where there is other work
        for _ in range(5):
            begin = perf_counter()
            for start in range(0, 1_000, 250):
                (points[start : start + 250] @ points.T).argmin(axis=1)
            taken.append(perf_counter() - begin)
    return float(np.clip(min(taken) / _TRIAL, 0.2, 20.0))


_ODD = np.uint64(0x9E37_79B9_7F4A_7C15)
_MIX = np.uint64(0xBF58_476D_1CE4_E5B9)
Matrix = NDArray[np.float64]
Places = NDArray[np.int64]
F = TypeVar("F", bound=Fact)
T = TypeVar("T")
_FARTHEST = 1e6  # standard deviations
_WORDS = 4  # of entropy; studies of a baseline append one
CATEGORIES = (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL)
"""Kinds of columns with few values, each with its frequency."""


@dataclass(frozen=True, eq=False, repr=False)
class Column:
    """One column of one table: numbers in their own units, or places in the categories, and what is missing."""

    values: Matrix
    absent: NDArray[np.bool_]

    @property
    def present(self) -> Matrix:
        """The values of the cells that are not missing."""
        return self.values[~self.absent]

    def take(self, rows: Places) -> Column:
        """Some of its cells."""
        return Column(self.values[rows], self.absent[rows])

    def codes(self, cuts: Matrix | None) -> Places:
        """Place of each cell among the parts between cuts, or among the categories; -1 if it is missing."""
        codes = self.values.astype(np.int64) if cuts is None else np.searchsorted(cuts, self.values, side="left")
        return np.where(self.absent, -1, codes)


@dataclass(frozen=True, eq=False, repr=False)
class ColumnPair:
    """One column of the original and of the released table."""

    field: Field
    original: Column
    released: Column

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.field.name

    @property
    def is_number(self) -> bool:
        """Whether the values have an order: numbers, dates and ordinal places."""
        return self.field.kind not in (Kind.NOMINAL, Kind.BOOLEAN)

    def cuts(self, parts: int) -> Matrix | None:
        """Quantiles of the original's numbers as cuts; None for categories."""
        if not self.is_number:
            return None
        present = self.original.present
        return np.unique(np.quantile(present, np.arange(1, parts) / parts)) if len(present) else np.empty(0)

    @property
    def has_missing(self) -> bool:
        """Whether a cell is missing in either table."""
        return bool(self.original.absent.any() or self.released.absent.any())


def read_column(table: pa.Table, codec: Codec, field: Field) -> Column:
    """Read one encoded column of a table; a category that the original does not have counts as missing."""
    if field.kind in (Kind.NOMINAL, Kind.BOOLEAN):
        codes, absent = codec.codes(table, field.name, unseen="mean")
        return Column(np.where(absent, 0, codes).astype(np.float64), absent)
    return Column(*codec.numbers(table, field.name, unseen="mean"))


def read_columns(table: pa.Table, codec: Codec) -> tuple[Column, ...]:
    """Read the encoded columns of a table."""
    return tuple(read_column(table, codec, field) for field in codec.schema.encoded)


def read_pairs(original: pa.Table, released: pa.Table, codec: Codec) -> tuple[ColumnPair, ...]:
    """Read the encoded columns of both tables side by side."""
    sides = zip(codec.schema.encoded, read_columns(original, codec), read_columns(released, codec), strict=True)
    return tuple(ColumnPair(field, first, second) for field, first, second in sides)


def value_codes(*columns: Column) -> Places:
    """A number for each cell of some columns, the same for equal values; 0 if it is missing."""
    codes = np.unique(np.concatenate([column.values for column in columns]), return_inverse=True)[1].astype(np.int64)
    return np.where(np.concatenate([column.absent for column in columns]), 0, codes + 1)


def row_codes(columns: Iterable[Places], rows: int) -> Places:
    """A number for each row, the same for rows that are equal in all columns."""
    keys = np.zeros(rows, dtype=np.int64)
    for codes in columns:
        keys = np.unique(keys * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1].astype(np.int64)
    return keys


def bits_of(values: Matrix) -> NDArray[np.uint64]:
    """Bits of numbers, the two zeros as one.

    Examples
    --------
    >>> bits_of(np.array([0.0, -0.0])).tolist()
    [0, 0]
    """
    return (values + 0.0).view(np.uint64)


def row_keys(columns: Iterable[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Mix the cells of each row into one number; equal rows have equal keys, and others as good as never.

    Examples
    --------
    >>> keys = row_keys([np.array([1, 1, 2], dtype=np.uint64), np.array([5, 5, 5], dtype=np.uint64)])
    >>> keys[0] == keys[1], keys[0] == keys[2]
    (np.True_, np.False_)
    """
    keys: NDArray[np.uint64] | None = None
    for bits in columns:
        keys = np.zeros(len(bits), dtype=np.uint64) if keys is None else keys
        keys = (keys ^ bits) * _ODD
        keys = (keys ^ (keys >> np.uint64(29))) * _MIX
        keys ^= keys >> np.uint64(32)
    if keys is None:
        raise ValueError("rows without columns have no keys")
    return keys


def share_alone(keys: NDArray[np.uint64]) -> float:
    """Share of rows whose key no other has."""
    ordered = np.sort(keys)
    apart = np.concatenate([[True], ordered[1:] != ordered[:-1], [True]])
    return float((apart[1:] & apart[:-1]).mean())


@dataclass(frozen=True)
class MeasureOptions:
    """What the owner chooses of the measures of utility.

    Parameters
    ----------
    accurate_within : float, optional
        Largest error at which a predicted response counts as right, in the column's units. By default the column's
        step or a tenth of its standard deviation, whichever is larger.
    clusters : int, optional
        Number of clusters, K. By default the number of classes of the target, else 5.
    sampling_fraction: float, optional
        Share of the population that the table holds.
    """

    accurate_within: float | None = None
    clusters: int | None = None
    sampling_fraction: float | None = None

    def __post_init__(self) -> None:
        if self.accurate_within is not None and not 0 <= self.accurate_within < math.inf:
            raise OptionError("--accurate-within must be a number of 0 or more; choose another")
        if self.clusters is not None and self.clusters < 2:
            raise OptionError("--clusters must be at least 2; choose another")


@dataclass(frozen=True, eq=False, repr=False)
class Study:
    """Two tables side by side, at the owner's."""

    pairs: tuple[ColumnPair, ...]  # each encoded column of both tables, in its own units
    layout: Layout  # which coordinates belong to which column
    # original, released: the rows in coordinates where Euclid's distance is fair to all kinds: numbers in standard
    # deviations of the original, two different categories at distance 1
    original: Matrix
    released: Matrix
    holdout: Matrix | None  # people like the original's whom the release was not made from
    held: tuple[Column, ...] | None  # the same, column by column in own units
    facts: tuple[Fact, ...]  # what the mechanism did; empty for a table made by another tool
    workings: OwnerDetails  # groups and origins of rows, where they are known
    target: str | None  # the column that is to be predicted
    sizes: Sizes  # how many rows are looked at
    entropy: tuple[int, ...]  # from which each measure's own generator is made
    rules: tuple[str, ...] = ()  # between columns, that every row of the original obeys
    rule_names: tuple[str, ...] = ()  # names of all columns that rules may speak of
    persons: Places | None = None  # whom each original row is about; None if each is about a person of its own
    held_persons: Places | None = None  # the same of the rows held out
    quasi_identifiers: tuple[str, ...] = ()  # columns that an outsider is taken to know, where the owner named some
    linked: Places | None = None  # released person of each released row, where rows of a person stay together
    standings: tuple[PopulationUniqueness, ...] = ()  # column by column, if these are parts of tables
    options: MeasureOptions = MeasureOptions()
    # if nobody was held out: one more release, made from most of the people, with the others as control group
    unseen: Study | None = None

    def generator(self, purpose: str) -> np.random.Generator:
        """Chance of a measure's own, so that one more measure changes no other."""
        seed = np.random.SeedSequence([*self.entropy, zlib.crc32(purpose.encode())])
        return np.random.Generator(np.random.PCG64(seed))

    def shared_generator(self, purpose: str) -> np.random.Generator:
        """Generator of choices that a study has in common with the studies of its baseline."""
        return replace(self, entropy=self.entropy[:_WORDS]).generator(purpose)

    def pair(self, name: str) -> ColumnPair:
        """Find a column by its name."""
        return next(pair for pair in self.pairs if pair.name == name)

    def attacked(self, most: int, rng: np.random.Generator, among: Places | None = None) -> Places:
        """Original rows to attack, one random row of each person, at most ``most``."""
        return _one_each(len(self.original), self.persons, most, rng, among)

    def attacked_outside(self, most: int, rng: np.random.Generator, among: Places | None = None) -> Places:
        """The same of the rows held out."""
        return _one_each(0 if self.holdout is None else len(self.holdout), self.held_persons, most, rng, among)

    @property
    def people(self) -> int:
        """How many persons the original is about."""
        return len(self.original) if self.persons is None else len(np.unique(self.persons))

    @property
    def people_outside(self) -> int:
        """How many persons were held out."""
        held = 0 if self.holdout is None else len(self.holdout)
        return held if self.held_persons is None else len(np.unique(self.held_persons))

    def looked(self, people: int) -> str:
        """Note on how many were attacked, where these are not all rows."""
        if self.persons is None:
            return drawn_note(people, len(self.original))
        return f"; counted on {people} people, one row of each" + (" drawn at random" if people < self.people else "")

    def frequencies(self, codes: Places, slots: int) -> Places:
        """How many persons of the original hold each of some values, from the value of each row."""
        return count_persons(codes, self.persons, slots)

    def coordinates(self, columns: Iterable[str]) -> Places:
        """Coordinates of some columns."""
        wanted = set(columns)
        blocks = [np.arange(block.start, block.stop) for block in self.layout if block.column in wanted]
        return np.concatenate(blocks) if blocks else np.empty(0, dtype=np.int64)

    def descent(self) -> tuple[Places, Places]:
        """Places of the released rows that descend from an original one, and of those originals."""
        origin = self.workings.origin
        if origin is None:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        known = np.flatnonzero((origin >= 0) & (origin < len(self.original)))
        return known, origin[known]

    def fact(self, kind: type[F]) -> F | None:
        """Find what the mechanism says of one kind of deed."""
        return next((fact for fact in self.facts if isinstance(fact, kind)), None)


def given(value: T | None) -> T:
    """What the needs of a measure, or the facts it applies to, say is there."""
    assert value is not None
    return value


def once(look: Callable[[Study], T]) -> Callable[[Study], T]:
    """Let what is seen in a study be looked up once for all who ask."""
    kept: WeakKeyDictionary[Study, T] = WeakKeyDictionary()

    @functools.wraps(look)
    def seen(study: Study) -> T:
        if study not in kept:
            kept[study] = look(study)
        return kept[study]

    return seen


def sample(rows: int, most: int, rng: np.random.Generator) -> Places:
    """Draw at most ``most`` row indices without replacement, in rising order; all of them if there are no more."""
    return np.sort(rng.choice(rows, most, replace=False)) if rows > most else np.arange(rows)


def _one_each(rows: int, persons: Places | None, most: int, rng: np.random.Generator, among: Places | None) -> Places:
    """Draw at most ``most`` rows, of all or among some, at most one of each person."""
    if persons is None:
        chosen = sample(rows if among is None else len(among), most, rng)
        return chosen if among is None else among[chosen]
    order = rng.permutation(np.arange(rows) if among is None else among)
    first = order[np.unique(persons[order], return_index=True)[1]]
    return np.sort(first[sample(len(first), most, rng)])


def equivalence_classes(study: Study, most: int, rng: np.random.Generator) -> tuple[Places, Places, str]:
    """A sample of the original and of the released rows, and a note on its size if it is not all of them.

    Tables of one length are looked at in the same places, so that a copy stays a copy and a table that was changed
    row by row is compared with the rows that it came from.
    """
    rows, others = len(study.original), len(study.released)
    here = sample(rows, most, rng)
    there = here if rows == others else sample(others, most, rng)
    whole = len(here) == rows and len(there) == others
    note = f"; counted on {len(here)} original and {len(there)} released rows drawn at random"
    return here, there, "" if whole else note


def drawn_note(looked: int, rows: int, what: str = "rows") -> str:
    """Note on how many were looked at, where these are not all."""
    return f"; counted on {looked} {what} drawn at random" if looked < rows else ""


class StudyDetails(NamedTuple):
    """What is known of two tables beside their cells, and how they are to be measured.

    ``records`` is the original as encoded before. Whom rows are about is given by ``persons`` and ``held_persons``, by
    the records, or by the person columns of both tables. ``linked`` is the released person of each released row, where
    rows of a person stay together; ``standings`` is how people stand in the whole tables where these are parts of them.
    ``quasi_identifiers`` are the columns that an outsider is taken to know, who attacks with these, and rows alike in
    them are counted; else outsiders are chosen by rule. A ``time_limit`` in seconds chooses how many rows are looked
    at; where a policy is ``judged`` by the findings more people are attacked. ``options`` are the owner's choices.
    """

    records: Records | None = None
    persons: Places | None = None
    held_persons: Places | None = None
    linked: Places | None = None
    standings: tuple[PopulationUniqueness, ...] = ()
    quasi_identifiers: Sequence[str] = ()
    time_limit: float | None = None
    judged: bool = False
    options: MeasureOptions = MeasureOptions()


def study_of(
    original: pa.Table,
    released: pa.Table,
    codec: Codec,
    *,
    facts: tuple[Fact, ...] = (),
    workings: OwnerDetails | None = None,
    holdout: pa.Table | None = None,
    details: StudyDetails = StudyDetails(),  # noqa: B008 (immutable)
    rng: np.random.Generator,
) -> Study:
    """Read both tables, and the rows held out, as measures see them; the codec is fitted on the original."""
    outside = None if holdout is None or holdout.num_rows == 0 else holdout
    options, held_persons = details.options, details.held_persons
    predicted = next((field for field in codec.schema.encoded if field.role is Role.TARGET), None)
    if options.accurate_within is not None and (predicted is None or predicted.kind in (Kind.NOMINAL, Kind.BOOLEAN)):
        raise OptionError("--accurate-within is for a target of numbers or dates; name one with --target, or drop it")
    target = None if predicted is None else predicted.name
    whose = persons_of_table(original, codec.schema) if details.records is None else details.records.persons
    records = codec.encode(original, unseen="mean") if details.records is None else details.records
    rows, coordinates = max(original.num_rows, released.num_rows), records.values.shape[1]

    def encoded(table: pa.Table) -> Matrix:
        return _within_reach(codec.encode(table, unseen="mean").values)

    return Study(
        read_pairs(original, released, codec),
        records.layout,
        _within_reach(records.values),
        encoded(released),
        None if outside is None else encoded(outside),
        None if outside is None else read_columns(outside, codec),
        facts,
        workings or OwnerDetails(),
        target,
        choose_sizes(rows, coordinates, len(codec.schema.encoded), details.time_limit, judged=details.judged),
        tuple(int(word) for word in rng.integers(0, 2**32, size=_WORDS)),
        codec.schema.rules,
        codec.schema.names,
        whose if details.persons is None else details.persons,
        persons_of_table(outside, codec.schema) if held_persons is None and outside is not None else held_persons,
        tuple(details.quasi_identifiers),
        details.linked,
        details.standings,
        options,
    )


def _within_reach(values: Matrix) -> Matrix:
    """Rows with cells that lie absurdly far out brought to where squares of distances do not overflow.

    Nobody may write to them from now on, so that searches among them can share what they learn.
    """
    if values.size and max(abs(float(values.min())), abs(float(values.max()))) > _FARTHEST:
        values = np.clip(values, -_FARTHEST, _FARTHEST)
    values = np.ascontiguousarray(values)
    values.setflags(write=False)
    return values
