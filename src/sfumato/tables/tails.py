"""Values of few persons: rare categories, which are pooled or replaced, and tails of numbers, which are coded.

A cut-off is computed from at least k persons, each of whom counts once, and is drawn at random between their values, so
that it is nobody's own. In columns whose values are mostly common ones, such as ages, grades and counts, a value that
held by fewer than k persons becomes a neighbouring common one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.core.arrays import Bools, Floats, Ints, count_persons
from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.tables.cells import absent_cells, is_span, is_text, numbers_of_cells, plain, read_codes, write_numbers
from sfumato.tables.codec import MOST_CATEGORIES
from sfumato.tables.contact import Evidence
from sfumato.tables.facts import RareValues, TailsCoded
from sfumato.tables.field import NO_COMMON_VALUE, Field, Kind, Role
from sfumato.tables.grid import Grid, cut_grid, fit_grid, refuse_misfits, unbounded_grid
from sfumato.tables.infer import complete_field
from sfumato.tables.recoding import Codes, Mask, MinimumFrequencies, RareTreatment, Recoding, recode, recode_column
from sfumato.tables.rules import Rule, broken_rows, cells_of_column, rules_within, tied_columns
from sfumato.tables.schema import Schema

__all__ = [
    "NUMERIC",
    "RARE_TREATMENTS",
    "TAIL_METHODS",
    "PooledCategories",
    "Tail",
    "TailMethod",
    "Tails",
    "check_rare_treatment",
    "check_tails",
    "fit_tails",
    "lost_cells",
    "person_maxima",
    "pool_rare_values",
]

TailMethod = Literal["code", "smooth", "keep"]

TAIL_METHODS: tuple[TailMethod, ...] = ("code", "smooth", "keep")
"""Top and bottom coding, a fitted exponential tail in its place where a column has a long one, or nothing."""

NUMERIC = (Kind.CONTINUOUS, Kind.INTEGER, Kind.DATE)
"""Kinds of columns that have tails."""

_COMMON_SHARE = 0.9  # of who holds another value than the commonest, from which on rare values become common ones
_GOLDEN = (5.0**0.5 - 1.0) / 2.0  # columns use the uniform numbers of rows shifted by multiples of it
_LONG_TAIL = 2.0 / 3.0  # ratio of successive spacings (ranks 2k, 4k, 8k) from which on a tail counts as exponential


def check_tails(method: str | None) -> TailMethod | None:
    """Treatment of tails by its name, checked.

    Raises
    ------
    OptionError
        If there is no such method.
    """
    known: TailMethod | None = next((each for each in TAIL_METHODS if each == method), None)
    if known is None and method is not None:
        raise OptionError(f"there is no method {method!r} for tails; choose one of {', '.join(TAIL_METHODS)}")
    return known


@dataclass(frozen=True, eq=False, repr=False)
class Tail:
    """Lower and upper cut-off of one column, in the column's own count.

    Parameters
    ----------
    field : Field
    grid : Grid
        Values that the column may take before coding.
    low, high : float
        Cut-offs.
    common : ndarray
        If the column mostly holds common values: those held by at least k persons, in order. Else empty.
    low_scale, high_scale : float
        Mean of the exponential tail that is drawn beyond a cut-off; 0 if values are coded to the cut-off.
    furthest : float
        Largest distance beyond a cut-off, in multiples of the scale.
    kind : pyarrow.DataType
        Arrow type of the column.
    """

    field: Field
    grid: Grid
    low: float
    high: float
    common: Floats = dataclasses.field(default_factory=lambda: np.empty(0))
    low_scale: float = 0.0
    high_scale: float = 0.0
    furthest: float = 0.0
    kind: pa.DataType = dataclasses.field(default_factory=pa.float64)

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest number that may be released."""
        low, high = self.low - self.furthest * self.low_scale, self.high + self.furthest * self.high_scale
        if self.field.kind is not Kind.DATE:  # a tail does not change the sign of a column
            low = max(low, 0.0) if self.low >= 0.0 else low
            high = min(high, 0.0) if self.high <= 0.0 else high
        low, high = _inner_bounds(max(low, self.grid.low), min(high, self.grid.high), self.grid)
        return _round_trip_bounds(low, high, self.field, self.kind) if is_text(self.kind) else (low, high)

    def changes(self, numbers: Floats) -> Bools:
        """Numbers that are replaced."""
        outside = (numbers < self.low) | (numbers > self.high)
        return outside | ~np.isin(numbers, self.common) if len(self.common) else outside

    def replaced(self, numbers: Floats, uniform: Floats) -> Floats:
        """Replacement for the numbers that must not be released, each drawn by a uniform number."""
        if len(self.common):
            return _to_neighbour(numbers, self.common, uniform)
        coded = np.clip(numbers, self.low, self.high)
        excess = np.minimum(-np.log1p(-uniform), self.furthest)
        coded += np.where(numbers > self.high, self.high_scale * excess, 0.0)
        coded -= np.where(numbers < self.low, self.low_scale * excess, 0.0)
        cut = cut_grid(self.grid, *self.bounds)
        return cut.to_numbers(cut.to_places(coded))


@dataclass(frozen=True, eq=False, repr=False)
class Tails:
    """Tails of all numeric and date columns of a table, and the fact that states their treatment."""

    columns: Mapping[str, Tail] = dataclasses.field(default_factory=dict)
    fact: TailsCoded | None = None

    @property
    def bounds(self) -> Mapping[str, tuple[float, float]]:
        """Smallest and largest number that may be released, by column."""
        return {name: tail.bounds for name, tail in self.columns.items()}

    def opened(self, schema: Schema) -> Schema:
        """Schema without the observed bounds of columns with drawn tails, which may exceed them."""
        drawn = {name for name, tail in self.columns.items() if tail.low_scale or tail.high_scale}
        return dataclasses.replace(
            schema,
            fields=tuple(
                dataclasses.replace(each, domain=dataclasses.replace(each.domain, low=None, high=None))
                if each.name in drawn and not each.domain.declared
                else each
                for each in schema
            ),
        )

    def code(self, table: pa.Table, uniform: Floats) -> pa.Table:
        """Replace the values that must not be released, in the fitted rows or in others.

        ``uniform`` holds a uniform number of each row.

        Raises
        ------
        SchemaError
            If numbers lie outside declared bounds or off the step.
        """
        for place, (name, tail) in enumerate(self.columns.items()):
            column = table.column(name)
            numbers, absent = numbers_of_cells(column, tail.field)
            known = ~absent
            refuse_misfits(numbers[known] if absent.any() else numbers, tail.grid, tail.field)
            changed = tail.changes(numbers) & known
            if changed.any():
                new = tail.replaced(numbers[changed], (uniform[changed] + place * _GOLDEN) % 1.0)
                cells = _replace_numbers(column, tail.field, changed, new)
                table = table.set_column(table.column_names.index(name), name, cells)
        return table


def fit_tails(
    table: pa.Table,
    schema: Schema,
    *,
    k: int,
    method: TailMethod | None = None,
    persons: Ints | None = None,
    stated: int = 0,
    copied: Mapping[str, Bools] | None = None,
    rng: np.random.Generator,
) -> Tails:
    """Fit the cut-offs of all numeric and date columns.

    Parameters
    ----------
    table : pyarrow.Table
    schema : Schema
    k : int
        Smallest number of persons that a cut-off is computed from.
    method : {"code", "smooth", "keep"}, optional
        By default "code".
    persons : ndarray of shape (n,), optional
        Person of each row, from 0; by default every row is a person.
    stated : int
        Number of persons that the fact states, at most k; by default k.
    copied : mapping of str to ndarray of shape (n,), optional
        Cells that hold another record's value, by column: they count for nobody.
    rng : numpy.random.Generator
        Draws the cut-offs.
    """
    fields = [field for field in schema.encoded if field.kind in NUMERIC]
    if k < 2 or not fields:
        return Tails()
    fact = TailsCoded(method or "code", stated or k, len(fields), by_person=persons is not None)
    if method == "keep":
        return Tails({}, fact)
    found = {}
    for each in fields:
        column = table.column(each.name)
        field = complete_field(each, column)
        numbers, absent = numbers_of_cells(column, field)
        counts = ~absent & ~copied[each.name] if copied and each.name in copied else ~absent
        counts = counts if counts.sum() >= k else ~absent
        if counts.any():
            grid = fit_grid(numbers[~absent], field, column.type, k, None if persons is None else persons[~absent])
            grid = _without_rare_bounds(grid, field, column.type) if method == "smooth" else grid
            whose = None if persons is None else persons[counts]
            tail = _fit_tail(field, grid, numbers[counts], whose, k, method == "smooth", rng)
            found[field.name] = dataclasses.replace(tail, kind=column.type)
    return Tails(found, fact)


def _without_rare_bounds(grid: Grid, field: Field, kind: pa.DataType) -> Grid:
    """Grid without observed bounds held by fewer than k persons, because a tail ending there would show them."""
    wide = unbounded_grid(grid, field, kind)
    low, high = wide.low if grid.fold_low else grid.low, wide.high if grid.fold_high else grid.high
    return dataclasses.replace(grid, low=low, high=high)


def _fit_tail(
    field: Field, grid: Grid, values: Floats, persons: Ints | None, k: int, smooth: bool, rng: np.random.Generator
) -> Tail:
    distinct, places = np.unique(values, return_inverse=True)
    held = count_persons(places.astype(np.int64), persons, len(distinct))
    common = distinct[held >= k]
    rare, rest = int(held[held < k].sum()), int(held.sum() - held.max())
    if len(common) and (rare < k or rare <= (1.0 - _COMMON_SHARE) * rest):
        return Tail(field, grid, float(common[0]), float(common[-1]), common)
    top = person_maxima(values, persons)
    bottom = person_maxima(-values, persons)
    high, low = _cut_off(top, k, rng), -_cut_off(bottom, k, rng)
    if low > high:  # fewer than 4k persons have a value
        low = high = _central_value(top, k, rng)
    low, high = _inner_bounds(low, high, grid)
    scales = (_tail_scale(bottom, k), _tail_scale(top, k)) if smooth else (0.0, 0.0)
    return Tail(field, grid, low, high, low_scale=scales[0], high_scale=scales[1], furthest=float(np.log(2 * k)))


def person_maxima(values: Floats, persons: Ints | None) -> Floats:
    """Largest value of each person, in descending order."""
    if persons is None:
        return np.sort(values)[::-1]
    order = np.lexsort((-values, persons))
    first = np.append(True, persons[order][1:] != persons[order][:-1])
    return np.sort(values[order][first])[::-1]


def _cut_off(falling: Floats, k: int, rng: np.random.Generator) -> float:
    """Random weighted mean of the values of ranks k to 2k - 1; k persons reach it and one person moves it little."""
    ranks = falling[min(k, len(falling)) - 1 : 2 * k - 1]
    return float(rng.dirichlet(np.ones(len(ranks))) @ ranks)


def _central_value(falling: Floats, k: int, rng: np.random.Generator) -> float:
    """Random weighted mean of central values, with at most k - 1 or nearly half of all persons beyond it."""
    beyond = max(0, min(k - 1, (len(falling) - 2) // 2))
    middle = falling[beyond : len(falling) - beyond]
    return float(rng.dirichlet(np.ones(len(middle))) @ middle)


def _tail_scale(falling: Floats, k: int) -> float:
    """Mean of an exponential tail by the spacing of ranks 2k and 4k; 0 if the tail is shorter than exponential."""
    if len(falling) < 8 * k:
        return 0.0
    outer, middle, inner = falling[[2 * k - 1, 4 * k - 1, 8 * k - 1]].tolist()
    is_long = outer - middle >= _LONG_TAIL * (middle - inner)
    return float((outer - middle) / np.log(2.0)) if is_long else 0.0


def _inner_bounds(low: float, high: float, grid: Grid) -> tuple[float, float]:
    """Bounds moved inwards onto the grid; the same value twice if none lies between them."""
    cut = cut_grid(grid, low, high)
    inner = cut.to_numbers(cut.to_places(np.array([low, high])))
    return float(inner.min()), float(inner[1])


def _round_trip_bounds(low: float, high: float, field: Field, kind: pa.DataType) -> tuple[float, float]:
    """Bounds as read back from cells, because a text may hold fewer digits than a double."""
    cells = write_numbers(np.array([low, high]), np.zeros(2, dtype=np.bool_), field, kind)
    numbers, _ = numbers_of_cells(pa.chunked_array([cells]), field)
    return float(numbers[0]), float(numbers[1])


def _to_neighbour(numbers: Floats, common: Floats, uniform: Floats) -> Floats:
    """One of the two adjacent common values of each number, the nearer one more often."""
    above = np.clip(np.searchsorted(common, numbers), 0, len(common) - 1)
    below = np.maximum(above - (common[above] > numbers), 0)
    gap = common[above] - common[below]
    share = np.divide(numbers - common[below], gap, out=np.zeros(len(numbers)), where=gap > 0)
    return np.where(uniform < np.clip(share, 0.0, 1.0), common[above], common[below])


def _replace_numbers(column: pa.ChunkedArray, field: Field, changed: Bools, new: Floats) -> pa.Array:
    """A column with some numbers replaced."""
    array = column.combine_chunks() if is_span(column.type) else plain(column)  # which counts spans in seconds
    cells = write_numbers(new, np.zeros(len(new), dtype=np.bool_), field, array.type).cast(array.type)
    origin = np.arange(len(array))
    origin[changed] = len(array) + np.arange(len(new))
    return pa.concat_arrays([array, cells]).take(pa.array(origin))


RARE_TREATMENTS: tuple[RareTreatment, ...] = ("pool", "lift", "keep")
"""What becomes of categories that too few hold: one named other, a wider one of their hierarchy, or nothing."""

_LISTED = (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL)
_DONORS = 16  # records that are compared with one whose cell is filled
_MOST_MATCHED = 10_000  # cells of a column that are filled from similar records


def check_rare_treatment(way: str | None) -> RareTreatment | None:
    """The treatment of rare values, checked.

    Raises
    ------
    OptionError
        For a word that is none.
    """
    known: RareTreatment | None = next((each for each in RARE_TREATMENTS if each == way), None)
    if known is None and way is not None:
        raise OptionError(f"there is no way {way!r} to take rare values; choose one of {', '.join(RARE_TREATMENTS)}")
    return known


@dataclass(frozen=True, eq=False, repr=False)
class PooledCategories:
    """A table in which enough persons have each category, its schema, and what was changed.

    ``before`` is the schema before, with the categories filled in that it left open. Missing cells of the columns
    ``filled`` took another record's, and ``changed`` are the columns that are not as they were, or are gone. ``copied``
    marks the cells that took another record's value, by column.
    """

    table: pa.Table
    schema: Schema
    before: Schema
    fact: RareValues | None = None
    recodings: tuple[Recoding, ...] = ()
    filled: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    copied: Mapping[str, Mask] = dataclasses.field(default_factory=dict)

    def words(self, name: str) -> str:
        """What happened to the rare values of a column, for the owner; an empty text if it has none."""
        if self.fact is None:
            return ""
        few = f"fewer than {self.fact.k} persons"
        if name in self.fact.dropped:
            return NO_COMMON_VALUE.format(self.fact.k)
        changes = [
            f"categories held by {few} become {each.words()}"
            for each in self.recodings
            if each.before.name == name and each.hides
        ]
        if name in self.filled:
            changes.append(f"missing cells of {few} take another record's value")
        return "; ".join(changes)

    def like(self, other: pa.Table, rng: np.random.Generator) -> pa.Table:
        """Another table, such as a hold-out set, recoded in the same way; its cells are filled from rows of its own."""
        lost = {name: each for name, each in self._lost_cells(other).items() if each.any()}
        return _impute_cells(recode(other, self.recodings), self.before, lost, rng)[0]

    def part(self, rows: pa.Table, chance: NDArray[np.uint64]) -> pa.Table:
        """Further rows of the same table, recoded in the same way.

        A cell that too few lack, or whose category too few hold, takes that of a row of this table, which a number of
        each row chooses.
        """
        lost = self._lost_cells(rows)
        rows = recode(rows, self.recodings)
        for names in tied_columns(rules_within(self.before), lost):
            gone = np.logical_or.reduce([lost[name] for name in names if name in lost])
            if not gone.any():
                continue
            places = np.where(gone, (chance % np.uint64(self.table.num_rows)).astype(np.int64), -1)
            for name in names:
                own, theirs = rows.column(name), self.table.column(name).cast(rows.column(name).type)
                pool = pa.chunked_array([*theirs.chunks, *own.chunks])
                where = np.where(gone, places, self.table.num_rows + np.arange(len(gone)))
                rows = rows.set_column(rows.column_names.index(name), name, pool.take(pa.array(where)))
        return rows

    def _lost_cells(self, rows: pa.Table) -> dict[str, Mask]:
        return lost_cells(rows, {each.name: each for each in self.before if each.name in self.filled}, self.recodings)


def pool_rare_values(
    table: pa.Table,
    schema: Schema,
    *,
    k: int,
    way: RareTreatment | None,
    persons: Codes | None,
    rng: np.random.Generator,
    most: int | None = MOST_CATEGORIES,
    decisions: Callable[[], Iterable[Rule]] | None = None,
) -> PooledCategories:
    """A table in which at least ``k`` persons have each category, and each missing indicator.

    Rare categories become a wider one of their hierarchy, or one named other, if more than ``k`` persons have any of
    them, by a random margin. Otherwise each of their cells takes the value of a similar record with a common category,
    together with the cells that rules tie to it. A place of an order becomes the nearest that enough hold. Missing
    cells that fewer than ``k`` persons have are filled likewise. A column in which fewer than ``k`` persons have a
    value, or no category is common, is dropped.

    Parameters
    ----------
    table : pyarrow.Table
    schema : Schema
    k : int
    way : {"pool", "lift", "keep"}, optional
        By default as "lift", but a rare class of the target stops the run. Columns without a hierarchy are pooled.
    persons : ndarray of shape (n,), optional
        Whom each row is about; by default each about a person of its own.
    rng : numpy.random.Generator
        Draws the margin and the records that cells are filled from.
    most : int, optional
        Categories that a column may keep; of more the smallest join others. None if there is no end.
    decisions : callable, optional
        Gives rules ``a -> b`` that are to hold afterwards, besides those of the schema: a new label of ``a`` that
        several values of ``b`` go with takes the value of a similar record.

    Raises
    ------
    PrivacyRefusal
        If a class of the target is rare and its treatment is not given, or no class is common.
    """
    fields = {each.name: complete_field(each, table.column(each.name)) for each in schema.encoded}
    recoded = dataclasses.replace(schema, fields=tuple(fields.get(each.name, each) for each in schema))
    if k < 2:
        return PooledCategories(table, schema, recoded)
    passed = sum(each.role is Role.PUBLIC and each.kind in _LISTED for each in schema)
    listed = [each for each in fields.values() if each.kind in _LISTED]
    fact = RareValues(way or "lift", k, len(listed), passed, by_person=persons is not None)
    if way == "keep":
        return PooledCategories(table, schema, recoded, fact if fact.columns + fact.passed else None)
    floors = MinimumFrequencies.drawn(k, rng)
    absent = {name: absent_cells(plain(table.column(name)), each.missing) for name, each in fields.items()}
    found = {each.name: recode_column(table.column(each.name), each, floors, way, persons, most) for each in listed}
    dropped = {name for name, gone in absent.items() if count_persons(np.where(gone, -1, 0), persons, 1)[0] < k}
    dropped |= {name for name, recoding in found.items() if recoding is not None and recoding.after is None}
    _check_target(schema.target, found, dropped, k, explicit=way is not None)
    recodings = tuple(each for name, each in found.items() if each is not None and name not in dropped)
    rules = tuple(rules_within(recoded))
    if decisions is not None and any(each.hides for each in recodings):
        rules = tuple(dict.fromkeys((*rules, *(each for each in decisions() if not dropped & {*each.columns}))))
        recoded = dataclasses.replace(recoded, rules=tuple(map(str, rules)))
    evidence = Evidence(1) if decisions is None else Evidence.of(table.num_rows, persons)
    recodings = _keeping_dependencies(table, recoded, recodings, rules, evidence)
    filled = frozenset(
        name
        for name, gone in absent.items()
        if name not in dropped and 0 < count_persons(np.where(gone, 0, -1), persons, 1)[0] < k
    )
    few = {name: each for name, each in fields.items() if name in filled}
    lost = {name: each for name, each in lost_cells(table, few, recodings).items() if each.any()}
    whole, copied = _impute_cells(recode(table, recodings), recoded, lost, rng)
    dropped |= lost.keys() - copied.keys()
    recodings = tuple(each for each in recodings if each.before.name not in dropped)
    fact = dataclasses.replace(
        fact,
        way="lift" if any(each.lifted for each in recodings) else "pool",
        dropped=tuple(each.name for each in schema if each.name in dropped),
    )
    after = {each.before.name: each.after for each in recodings if each.after is not None}
    gone_to = {name: Field(name, fields[name].kind, Role.IDENTIFIER, missing=fields[name].missing) for name in dropped}
    left = tuple((after | gone_to).get(each.name, each) for each in schema)
    left = tuple(dataclasses.replace(each, missing=()) if each.name in filled else each for each in left)
    return PooledCategories(
        whole,
        dataclasses.replace(schema, fields=left),
        recoded,
        fact if fact.columns or fact.passed or dropped else None,
        recodings,
        filled - dropped,
        frozenset({*after, *copied, *dropped}),
        copied,
    )


def _keeping_dependencies(
    table: pa.Table, schema: Schema, recodings: Sequence[Recoding], rules: Iterable[Rule], evidence: Evidence
) -> tuple[Recoding, ...]:
    """Recodings without the new labels that break a dependency between columns."""
    left = {each.before.name: each for each in recodings}
    recoded, fields = (
        recode(table, recodings),
        {each.name: left[each.name].after if each.name in left else each for each in schema},
    )
    for rule in rules:
        recoding = left.get(rule.columns[0])
        if rule.form != "->" or recoding is None or recoding.after is None or not recoding.new_labels.any():
            continue
        cells = {name: cells_of_column(recoded.column(name), field) for name in rule.columns if (field := fields[name])}
        codes, _ = read_codes(recoded.column(recoding.before.name), recoding.after)
        broken = broken_rows(rule, cells) & np.isin(codes, np.flatnonzero(recoding.new_labels))
        if evidence.few(broken):
            continue
        mixed = np.unique(codes[broken])
        several = [place for place in mixed if not evidence.few(broken & (codes == place))]
        rest = broken & ~np.isin(codes, several)
        left[recoding.before.name] = recoding.without(several if evidence.few(rest) else mixed.tolist())
    return tuple(left.values())


def lost_cells(table: pa.Table, filled: Mapping[str, Field], recodings: Iterable[Recoding]) -> dict[str, Mask]:
    """Cells that take another record's value: those of rare categories, and missing cells of columns ``filled``."""
    lost = {each.before.name: each.moved(table.column(each.before.name)) for each in recodings}
    for name, field in filled.items():
        absent = absent_cells(plain(table.column(name)), field.missing)
        lost[name] = lost[name] | absent if name in lost else absent
    return lost


def _check_target(
    target: Field | None, found: Mapping[str, Recoding | None], dropped: Collection[str], k: int, *, explicit: bool
) -> None:
    """Refuse to hide a class of the target unless requested, and to leave the target with one class."""
    if target is None:
        return
    recoding = found.get(target.name)
    rare = target.name in dropped or (recoding is not None and recoding.hides)
    if rare and not explicit:
        raise PrivacyRefusal(
            f"a class of the target {target.name!r} is that of fewer than {k} persons; add --rare pool to count it to "
            "others, --rare keep to release it as it is, or lower the level"
        )
    if target.name in dropped:
        raise PrivacyRefusal(
            f"no class of the target {target.name!r} is held by {k} persons; lower the level, choose another target, "
            "or add --rare keep"
        )


def _impute_cells(
    table: pa.Table, schema: Schema, lost: Mapping[str, Mask], rng: np.random.Generator
) -> tuple[pa.Table, dict[str, Mask]]:
    """Fill cells from similar records, and return which cells were filled; cells without a donor stay.

    Columns that a rule ties together are filled from the same record, so that the rule goes on to hold.
    """
    copied: dict[str, Mask] = {}
    for names in tied_columns(rules_within(schema), lost):
        gone = np.logical_or.reduce([lost[name] for name in names if name in lost])
        donors = np.flatnonzero(~gone)
        if not len(donors):
            continue
        origin = np.arange(len(gone))
        others = [each for each in schema.encoded if each.name not in names]
        decided = [schema[name] for name in sorted(names) if name not in lost and schema[name].kind in _LISTED]
        rows = np.flatnonzero(gone)
        tried = _draw_donors(table, decided, rows, donors, rng)
        origin[gone] = _most_similar(table, others, rows, tried, rng)
        for name in names:
            cells = table.column(name).take(pa.array(origin))
            table = table.set_column(table.column_names.index(name), name, cells)
            copied[name] = gone
    return table, copied


def _draw_donors(
    table: pa.Table, decided: Sequence[Field], rows: Codes, donors: Codes, rng: np.random.Generator
) -> Codes:
    """Random donors for each row, with its values in the columns that it keeps, if there are any."""
    if not decided:
        return donors[rng.integers(0, len(donors), (len(rows), _DONORS))]
    kept = np.zeros(table.num_rows, dtype=np.int64)
    for each in decided:
        codes = pc.dictionary_encode(plain(table.column(each.name)), null_encoding="encode").indices.to_numpy()
        kept = np.unique(kept * (int(codes.max()) + 1) + codes, return_inverse=True)[1]
    ordered = donors[np.argsort(kept[donors], kind="stable")]
    first, last = (np.searchsorted(kept[ordered], kept[rows], side=side) for side in ("left", "right"))
    nobody = first == last
    first, last = np.where(nobody, 0, first), np.where(nobody, len(ordered), last)
    return ordered[rng.integers(first[:, None], last[:, None], (len(rows), _DONORS))]


def _most_similar(
    table: pa.Table, fields: Sequence[Field], rows: Codes, tried: Codes, rng: np.random.Generator
) -> Codes:
    """The donor of each row that agrees with it in most categorical columns."""
    if len(rows) > _MOST_MATCHED:  # the cells are frequent in a table that lacks few others
        return tried[:, 0]
    agree = rng.random(tried.shape)  # breaks ties
    for each in fields:
        if each.kind in _LISTED:
            codes = pc.dictionary_encode(plain(table.column(each.name)), null_encoding="encode").indices.to_numpy()
            agree += codes[tried] == codes[rows][:, None]
    return np.asarray(tried[np.arange(len(rows)), agree.argmax(axis=1)], dtype=np.int64)
