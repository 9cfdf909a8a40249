"""Modifications: cells exchanged, blocked or left unchanged, and what these methods share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.errors import OptionError, closest_name
from sfumato.core.facts import Fact, Shuffled
from sfumato.core.records import Block, BlockKind, Layout, Records, cells_of_block
from sfumato.methods.modify.facts import Alike, Unchanged
from sfumato.methods.protocol import MethodResult, OwnerDetails, refuse_levels, refuse_strata

__all__ = [
    "ColumnCells",
    "columns_of_layout",
    "count_equal_rows",
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
    missing = {block.column: block for block in layout if block.kind is BlockKind.MISSING}
    return {
        block.column: ColumnCells(block, missing.get(block.column))
        for block in layout
        if block.kind is not BlockKind.MISSING
    }


def names_of(told: Any, option: str) -> tuple[str, ...]:
    """Column names given to an option, without duplicates."""
    names = tuple(told) if isinstance(told, list | tuple) else (told,)
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


def count_equal_rows(columns: Iterable[ColumnCells], values: Floats) -> Alike:
    """Count the rows that are equal in some columns."""
    columns = list(columns)
    sizes = np.bincount(equivalence_classes([column.codes(values) for column in columns], len(values)))
    names = tuple(column.name for column in columns)
    return Alike(names, len(values), int(sizes.min()), int((sizes == 1).sum()))


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
    nothing = np.zeros(len(values), dtype=np.int64)
    return Records(values[order], records.layout, nothing, nothing.copy(), records.target), order


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
