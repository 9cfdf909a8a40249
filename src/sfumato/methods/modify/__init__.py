"""Modifications: cells coarsened or blocked, and what all modifications share [JS07, sec. 2.1]."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sfumato.core.arguments import option
from sfumato.core.arrays import Bools, Floats, Ints, count_persons
from sfumato.core.errors import LevelError, OptionError, closest_name
from sfumato.core.facts import Fact, Shuffled
from sfumato.core.records import Block, BlockKind, Layout, Records, cells_of_block, columns_of
from sfumato.methods.condense import effective_levels
from sfumato.methods.modify.facts import Blocked, IdenticalRows, Unchanged
from sfumato.methods.protocol import (
    CoarsenedColumn,
    MethodResult,
    OwnerDetails,
    Traits,
    check_parameters,
    pairs_by_column,
    refuse_levels,
    refuse_strata,
)

__all__ = [
    "Aggregation",
    "Blocking",
    "ColumnCells",
    "block_rare",
    "columns_of_layout",
    "equivalence_classes",
    "modifiable",
    "named_columns",
    "names_of",
    "people_of",
    "released",
    "shuffled",
    "unchanged",
]


@dataclass(frozen=True)
class ColumnCells:
    """Coordinates of a column's values and of its missing indicator."""

    block: Block
    missing: Block | None

    @property
    def name(self) -> str:
        """Name of the column."""
        return self.block.column

    @property
    def has_order(self) -> bool:
        """Whether cells can be ranked: numbers, dates and ordinals."""
        return self.block.kind is BlockKind.NUMBER

    def absent(self, values: Floats) -> Bools:
        """Rows with a missing cell."""
        if self.missing is None:
            return np.zeros(len(values), dtype=np.bool_)
        return np.asarray(values[:, self.missing.start] > 0.5)

    def cells(self, values: Floats) -> Floats:
        """Number or category code of each row; NaN if missing."""
        return cells_of_block(values, self.block, self.missing)

    def codes(self, values: Floats) -> Ints:
        """Integers that are equal for equal cells; 0 if missing."""
        cells = self.cells(values)
        absent = np.isnan(cells)
        found = np.unique(cells[~absent], return_inverse=True)[1]
        codes = np.zeros(len(cells), dtype=np.int64)
        codes[~absent] = found + 1
        return codes

    def clear(self, values: Floats, rows: Bools) -> None:
        """Set the cells of some rows to missing."""
        assert self.missing is not None  # Traits.gaps
        values[rows, self.block.where] = self.block.fill
        values[rows, self.missing.start] = 1.0


def columns_of_layout(layout: Layout) -> dict[str, ColumnCells]:
    """Columns by name, in table order."""
    return {block.column: ColumnCells(block, missing) for block, missing in columns_of(layout)}


def names_of(given: Any, option: str) -> tuple[str, ...]:
    """Column names given to an option, without duplicates."""
    names = tuple(given) if isinstance(given, list | tuple) else (given,)
    if any(not isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise OptionError(f"{option} takes names of columns, each once; fix it")
    return names


def named_columns(columns: dict[str, ColumnCells], names: Iterable[str], option: str) -> list[ColumnCells]:
    """The named columns.

    Raises
    ------
    OptionError
        For a name that is none of a column that is sanitized.
    """
    found = []
    for name in names:
        if name not in columns:
            meant = closest_name(name, columns)
            hint = "name one that is" if meant is None else f"did you mean {meant!r}?"
            raise OptionError(f"{option} names {name!r}, which is no column that is sanitized; {hint}")
        found.append(columns[name])
    return found


def people_of(records: Records) -> Ints:
    """Person of each record, numbered from 0; without persons each record is one."""
    if records.persons is None:
        return np.arange(len(records))
    return np.unique(records.persons, return_inverse=True)[1].astype(np.int64)


def modifiable(records: Records, what: str) -> dict[str, ColumnCells]:
    """Columns of the records; refuse levels and strata, which a method without groups cannot give."""
    refuse_levels(records, what)
    refuse_strata(records, what)
    return columns_of_layout(records.layout)


def equivalence_classes(codes: Sequence[Ints], rows: int) -> Ints:
    """Equivalence class of each row: rows are equivalent if all codes are equal."""
    keys = np.zeros(rows, dtype=np.int64)
    for each in codes:
        keys = np.unique(keys * (int(each.max(initial=0)) + 1) + each, return_inverse=True)[1].astype(np.int64)
    return keys


def count_equal_rows(columns: Iterable[ColumnCells], values: Floats) -> IdenticalRows:
    """Count the rows that are equal in some columns."""
    columns = list(columns)
    sizes = np.bincount(equivalence_classes([column.codes(values) for column in columns], len(values)))
    names = tuple(column.name for column in columns)
    return IdenticalRows(names, len(values), int(sizes.min()), int((sizes == 1).sum()))


def unchanged(columns: Iterable[ColumnCells], values: Floats) -> tuple[Unchanged, ...]:
    """Fact about the columns that are released unchanged; none if there are none."""
    columns = list(columns)
    if not columns:
        return ()
    missing = sum(bool(column.absent(values).any()) for column in columns)
    return (Unchanged(tuple(column.name for column in columns), missing),)


def shuffled(records: Records, values: Floats, rng: np.random.Generator) -> tuple[Records, Ints]:
    """Rows in random order, without levels and strata, and the original index of each."""
    order = rng.permutation(len(values)).astype(np.int64)
    return records.made(values[order]), order


def released(
    fact: Fact,
    records: Records,
    values: Floats,
    left: Iterable[ColumnCells],
    rng: np.random.Generator,
    texts: dict[str, str] | None = None,
) -> MethodResult:
    """Modified rows, shuffled, with the facts; ``left`` lists the unchanged columns."""
    made, order = shuffled(records, values, rng)
    facts = (fact, *unchanged(list(left), values), Shuffled(len(records)))
    return MethodResult(made, facts, OwnerDetails(origin=order, texts=texts or {}))


_WIDEST = 1e300


@dataclass(frozen=True)
class Aggregation:
    """Original rows with the values of some columns generalized.

    Columns that the schema releases at a level of their hierarchy (``coarsened``) are taken without an option.

    Parameters
    ----------
    coarsened : pairs of (str, int)
        Columns and the level of their hierarchy that they are released at. A column of dates without a hierarchy takes
        the calendar: 1 is the month, 2 the quarter, 3 the year.
    widths : pairs of (str, float)
        Columns of numbers and the width of the intervals that they are released as, which begin at multiples of it.

    Examples
    --------
    >>> Aggregation(widths={"age": 10}).widths
    (('age', 10.0),)
    """

    method: ClassVar[str] = "aggregate"

    coarsened: tuple[tuple[str, int], ...] | Mapping[str, int] = option(
        (), "aggregate: level of a column's hierarchy, as in born=3; repeatable."
    )
    widths: tuple[tuple[str, float], ...] | Mapping[str, float] = option(
        (), "aggregate: width of the intervals of a column of numbers, as in age=10; repeatable."
    )

    def __post_init__(self) -> None:
        check_parameters(self)
        levels, widths = (
            pairs_by_column(given, name, "a number")
            for name, given in (("coarsened", self.coarsened), ("widths", self.widths))
        )
        if any(isinstance(level, bool) or not isinstance(level, int) or level < 1 for _, level in levels):
            raise OptionError("a level of a hierarchy is a whole number of at least 1; write --coarsened COLUMN=1")
        if any(isinstance(width, bool) or not isinstance(width, int | float) for _, width in widths) or any(
            not (math.isfinite(width) and 0.0 < width < _WIDEST) for _, width in widths
        ):
            raise OptionError("the width of an interval is a number above 0; write --widths COLUMN=10")
        both = {name for name, _ in levels} & {name for name, _ in widths}
        if both:
            raise OptionError(f"column {min(both)!r} has a level and a width; leave one of them out")
        object.__setattr__(self, "coarsened", levels)
        object.__setattr__(self, "widths", tuple((name, float(width)) for name, width in widths))

    @property
    def traits(self) -> Traits:
        """Properties that an engine needs to know."""
        wide = tuple(CoarsenedColumn(name, f"intervals {width:.17g}", 1) for name, width in dict(self.widths).items())
        levels = tuple(CoarsenedColumn(name, None, level) for name, level in dict(self.coarsened).items())
        return Traits(synthetic=False, coarsened=(*levels, *wide), codes=True)

    def sanitize(self, records: Records, *, rng: np.random.Generator) -> MethodResult:
        """Shuffle the rows, whose columns are already generalized."""
        columns = modifiable(records, "aggregation").values()
        released, order = shuffled(records, records.values, rng)
        facts = (
            *unchanged(columns, released.values),
            count_equal_rows(columns, released.values),
            Shuffled(len(records)),
        )
        return MethodResult(released, facts, OwnerDetails(origin=order))


_MOST_SETS = 70  # sets of columns of one size that are all looked at; of more, those that widen the best before


@dataclass(frozen=True)
class Blocking:
    """Original rows with cells of quasi-identifiers set to missing if too few people share them.

    What a row shows of the known columns, a missing cell counted like a value, is shown by the rows of at least as many
    persons as the highest level among them.

    Parameters
    ----------
    columns : tuple of str
        The known columns, those that an outsider is taken to know; by default all that are sanitized.
    k : int
        Fewest persons whose rows show the same of them; a record's level is this or its own, the higher.

    Examples
    --------
    >>> Blocking(columns=("age", "town"), k=5).method
    'block'
    """

    method: ClassVar[str] = "block"
    traits: ClassVar[Traits] = Traits(synthetic=False, gaps=True, codes=True)

    columns: tuple[str, ...] = ()
    k: int = 5

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", names_of(self.columns, "columns"))
        check_parameters(self)
        if self.k < 2:
            raise OptionError("k is a whole number of at least 2: fewer people than that share nothing; try 5")

    def sanitize(self, records: Records, *, rng: np.random.Generator) -> MethodResult:
        """Set cells to missing and shuffle the rows."""
        refuse_strata(records, "blocking")
        levels = effective_levels(records.levels, self.k, allow_level_1=False)
        columns = columns_of_layout(records.layout)
        known = named_columns(columns, self.columns or tuple(columns), "columns")
        by_person = records.persons is not None
        persons = people_of(records)
        people = int(persons.max()) + 1
        if people < levels.max():
            who = "persons" if by_person else "records"
            raise LevelError(
                f"there are {people} {who} and the highest privacy level is {levels.max()}; lower it or add more"
            )
        codes = np.column_stack([column.codes(records.values) for column in known])
        blocked = block_rare(codes, levels, persons, rng)
        values = records.values.copy()
        for place, column in enumerate(known):
            column.clear(values, blocked[:, place])
        classes = equivalence_classes(list(np.where(blocked, 0, codes).T), len(codes))
        least = count_persons(classes, persons)
        need = np.zeros(len(least), dtype=np.int64)
        np.maximum.at(need, classes, levels)
        if (least < need).any():
            raise LevelError(f"{int((least < need).sum())} combinations are held by too few; please report this")
        released, order = shuffled(records, values, rng)
        fact = Blocked(
            tuple(column.name for column in known),
            tuple(int(count) for count in blocked.sum(axis=0)),
            len(records),
            int(least.min()),
            by_person,
        )
        facts = (fact, count_equal_rows(known, values), *unchanged(columns.values(), values), Shuffled(len(records)))
        return MethodResult(released, facts, OwnerDetails(origin=order))


def block_rare(codes: Ints, levels: Ints, persons: Ints, rng: np.random.Generator) -> Bools:
    """Cells to set to missing, so that each equivalence class holds as many persons as its highest level.

    Parameters
    ----------
    codes : ndarray of shape (n, columns)
        Equal for equal cells; 0 where one is missing.
    levels : ndarray of shape (n,)
        Persons that each row's combination must be held by.
    persons : ndarray of shape (n,)
        Whom each row is about, counted from 0.

    Notes
    -----
    To block the fewest cells is NP-hard. Here rows whose combination too few hold lose one cell each, those that still
    are too few two, and so on; of the columns to lose, those go first that settle most rows. Rows that have lost all
    and are too few are joined by rows of the largest class, or by the smallest class as a whole.
    """
    shown = codes.copy()
    rare = np.flatnonzero(~_enough(shown, levels, persons))
    best: tuple[int, ...] = ()
    for size in range(1, codes.shape[1] + 1):
        if not len(rare):
            return np.asarray(shown != codes)
        sets = list(_sets(codes.shape[1], size, best))
        counts = {lost: int(_held_by_enough(shown, codes, rare, lost, levels, persons).sum()) for lost in sets}
        ranked = sorted(sets, key=lambda lost: -counts[lost])
        best = ranked[0]
        for lost in ranked:
            if not counts[lost] or not len(rare):
                break
            done = _held_by_enough(shown, codes, rare, lost, levels, persons)
            shown[np.ix_(rare[done], np.array(lost))] = 0
            rare = rare[~done]
    shown[rare] = 0
    _fill_rest(shown, levels, persons, rng)
    return np.asarray(shown != codes)


def _sets(columns: int, size: int, best: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Candidate sets of columns to block: all of a size, or of too many, those that extend the best smaller set."""
    if math.comb(columns, size) <= _MOST_SETS or not best:
        yield from itertools.combinations(range(columns), size)
        return
    yield from (tuple(sorted((*best, other))) for other in range(columns) if other not in best)


def _enough(shown: Ints, levels: Ints, persons: Ints) -> Bools:
    """Whether each row's equivalence class holds enough persons for every level in it."""
    classes = equivalence_classes(list(shown.T), len(shown))
    need = np.zeros(int(classes.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(need, classes, levels)
    return np.asarray((count_persons(classes, persons) >= need)[classes])


def _held_by_enough(shown: Ints, codes: Ints, rare: Ints, lost: Sequence[int], levels: Ints, persons: Ints) -> Bools:
    """Rare rows whose class would be large enough without these columns, counting rows with missing cells."""
    tried = codes[rare]
    tried[:, list(lost)] = 0
    gone = (shown == 0).any(axis=1)
    gone[rare] = False
    beside = np.flatnonzero(gone)
    both = np.concatenate([rare, beside])
    return _enough(np.concatenate([tried, shown[beside]]), levels[both], persons[both])[: len(rare)]


def _fill_rest(shown: Ints, levels: Ints, persons: Ints, rng: np.random.Generator) -> None:
    """Merge rows into the fully blocked class until it holds enough persons."""
    while True:
        rest = (shown == 0).all(axis=1)
        if not rest.any():
            return
        short = int(levels[rest].max()) - len(np.unique(persons[rest]))
        if short <= 0:
            return
        others = np.flatnonzero(~rest)
        classes = equivalence_classes(list(shown[others].T), len(others))
        held = count_persons(classes, persons[others])
        need = np.zeros(len(held), dtype=np.int64)
        np.maximum.at(need, classes, levels[others])
        largest = int(np.argmax(held - need))
        if held[largest] - need[largest] >= short:
            inside = others[classes == largest]
            fresh = np.setdiff1d(persons[inside], persons[rest])
            moved = rng.permutation(fresh)[:short] if len(fresh) >= short else np.unique(persons[inside])
            shown[inside[np.isin(persons[inside], moved)]] = 0
        else:
            shown[others[classes == int(np.argmin(held))]] = 0
