"""How many persons it takes to decide what a column is: never one, so that no single person changes the result."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.tables.cells import floats, is_text, plain
from sfumato.tables.field import Category, Domain, Field, Kind, Role

__all__ = [
    "MIN_EVIDENCE",
    "ColumnSample",
    "Evidence",
    "categories_of",
    "codes_of_persons",
    "least_evidence",
    "missing_counts",
]

MIN_EVIDENCE = 10
"""Persons whose cells together may decide the kind, the step or the role of a column; of fewer, no cell does.

As many as the usual privacy level: what fewer persons than that hold does not leave anyway.
"""

_SAMPLE = 1_000
_HEAD = 10_000  # rows that mostly tell that persons are not few


def least_evidence(persons: int) -> int:
    """Persons needed to decide about a column: 10, fewer if that is more than a tenth of those with a value.

    Examples
    --------
    >>> [least_evidence(persons) for persons in (6, 15, 60, 1_000)]
    [1, 2, 6, 10]
    """
    return 1 if persons < MIN_EVIDENCE else min(MIN_EVIDENCE, max(2, persons // 10))


@dataclass(frozen=True, eq=False, repr=False)
class Evidence:
    """The person of each cell, and how many persons decide; each row is a person if ``persons`` is None."""

    least: int
    persons: Ints | None = None

    @classmethod
    def of(cls, rows: int, persons: Ints | None = None) -> Evidence:
        """Evidence of a number of cells, or of the persons of these cells."""
        people = rows if persons is None else int(np.count_nonzero(np.bincount(persons)))
        return cls(least_evidence(people), persons)

    @property
    def spare(self) -> int:
        """Number of cells that decide nothing."""
        return self.least - 1

    def few(self, rows: Bools) -> bool:
        """Whether the marked cells belong to too few persons to decide anything."""
        count = int(np.count_nonzero(rows))
        if count < self.least:
            return True
        return self.persons is not None and len(np.unique(self.persons[rows])) < self.least

    def few_values(self, values: pa.Array, strays: pa.Array) -> bool:
        """Whether few persons have any of ``strays``, or the first of them."""
        if not len(strays) or self.least == 1 or (self.persons is None and len(strays) >= self.least):
            return not len(strays)
        head = values.slice(0, _HEAD)
        if not self.take(slice(0, _HEAD)).few(_among(head, strays)):
            return False
        return len(head) == len(values) or self.few(_among(values, strays))

    def few_numbers(self, values: Floats, distinct: Floats, off: Callable[[Floats], Bools]) -> bool:
        """Whether few persons have one of the marked distinct numbers."""
        some = distinct[:: max(1, len(distinct) // _SAMPLE)]
        if self.persons is None and np.count_nonzero(off(some)) >= self.least:
            return False
        if self.persons is not None and not self.take(slice(0, _HEAD)).few(off(values[:_HEAD])):
            return False
        count = np.count_nonzero(off(distinct))
        if not count or self.least == 1 or (self.persons is None and count >= self.least):
            return not count
        return self.few(off(values))

    def of_rows(self, rows: Bools) -> Evidence:
        """Evidence of a subset of cells as a column of its own, for which fewer persons decide."""
        return Evidence.of(int(rows.sum()), None if self.persons is None else self.persons[rows])

    def take(self, rows: Bools | slice) -> Evidence:
        """Evidence of a subset of cells, with the number of deciding persons unchanged."""
        return self if self.persons is None else dataclasses.replace(self, persons=self.persons[rows])


def codes_of_persons(column: pa.ChunkedArray) -> Ints:
    """Person of each row as a number; rows without a person share one."""
    codes = pc.dictionary_encode(plain(column), null_encoding="encode").indices
    return np.asarray(codes.to_numpy(zero_copy_only=False), dtype=np.int64)


def _among(values: pa.Array, strays: pa.Array) -> Bools:
    return np.asarray(pc.is_in(values, value_set=strays).to_numpy(zero_copy_only=False), dtype=np.bool_)


@dataclass(frozen=True, repr=False)
class ColumnSample:
    """A column before its kind is known: its present cells, their persons, and the number of missing cells.

    ``missing`` has each mark with its cells, and an empty text for empty cells. ``strays`` says what becomes of cells
    that are left aside because they are of few persons. In an ``untyped`` table all columns are text.
    """

    name: str
    present: pa.Array
    rows: int
    marks: tuple[str, ...]
    missing: tuple[tuple[str, int], ...]
    evidence: Evidence
    note: str = ""
    strays: str = ""
    untyped: bool = False

    @cached_property
    def trimmed(self) -> pa.Array:
        """The present texts without surrounding spaces."""
        return pc.utf8_trim_whitespace(self.present)

    @cached_property
    def _head(self) -> pa.Array:
        return pc.utf8_trim_whitespace(self.present.slice(0, _HEAD))

    def few(self, strays: pa.Array) -> bool:
        """Whether few persons have any of these texts, which have no surrounding spaces."""
        few = self.evidence.few_values
        return not len(strays) or (few(self._head, strays) and few(self.trimmed, strays))

    def field(self, kind: Kind, why: str, domain: Domain | None = None, form: str | None = None) -> Field:
        """The column's field if it is to be sanitized."""
        reason = why + self.note + _missing_words(self.missing) + self.strays
        domain, repair = domain or Domain(), bool(self.strays)
        return Field(self.name, kind, Role.CONFIDENTIAL, domain, self.marks, form, reason, repair=repair)

    def identifier(self, kind: Kind, why: str) -> Field:
        """The column's field if it is to be dropped."""
        return Field(
            self.name, kind, Role.IDENTIFIER, Domain(), self.marks, None, why + self.note + _missing_words(self.missing)
        )

    def with_marks(self, marks: tuple[str, ...]) -> ColumnSample:
        """The column with further missing marks."""
        gone = _among(self.trimmed, pa.array(marks, self.trimmed.type))
        return dataclasses.replace(
            self,
            present=self.present.filter(pa.array(~gone)),
            marks=(*marks, *self.marks),
            missing=(*missing_counts(self.present, gone, marks), *self.missing),
            evidence=self.evidence.of_rows(~gone),
        )

    def told(self, note: str) -> ColumnSample:
        """The column with a note in front of the one on missing cells."""
        return dataclasses.replace(self, note=note + self.note)

    def repaired(self, what: str) -> ColumnSample:
        """The column with a note on what happens to the cells of fewer than `MIN_EVIDENCE` persons."""
        strays = self.strays if what in self.strays else f"{self.strays}, fewer than {MIN_EVIDENCE} cells {what}"
        return dataclasses.replace(self, strays=strays)

    def without(self, strays: Bools) -> ColumnSample:
        """The column with cells of another form than all others set to missing."""
        if not strays.any():
            return self
        left = dataclasses.replace(
            self, present=self.present.filter(pa.array(~strays)), evidence=self.evidence.take(~strays)
        )
        return left.repaired("of another form taken as missing")

    def without_values(self, strays: pa.Array) -> ColumnSample:
        """The column with cells of the given values set to missing."""
        return self.without(_among(self.present, strays)) if len(strays) else self

    def without_texts(self, strays: pa.Array) -> ColumnSample:
        """The same without cells that hold some texts, spaces around them aside."""
        return self.without(_among(self.trimmed, strays)) if len(strays) else self


def missing_counts(array: pa.Array, absent: Bools, marks: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """Missing cells by mark; the rest are empty texts."""
    gone = array.filter(pa.array(absent))
    counts = dict.fromkeys(marks, 0)
    if is_text(array.type) and marks:
        found = pc.value_counts(pc.utf8_trim_whitespace(gone))
        counts |= {each["values"].as_py(): each["counts"].as_py() for each in found if each["values"].is_valid}
    elif marks:
        counts |= {mark: int((floats(gone) == float(mark)).sum()) for mark in marks}
    written = {mark: count for mark, count in counts.items() if mark and count}
    empty = len(gone) - sum(written.values())
    return (*written.items(), *([("", empty)] if empty else []))


def _missing_words(counts: tuple[tuple[str, int], ...]) -> str:
    """Describe missing cells by mark: ", missing: 'k.A.' (412 cells), empty (1 cell)"."""
    if all(not mark for mark, _ in counts):
        return "".join(f", {count} missing" for _, count in counts)
    ways = (
        f"{repr(mark) if mark else 'empty'} ({count} {'cell' if count == 1 else 'cells'})" for mark, count in counts
    )
    return f", missing: {', '.join(ways)}"


def categories_of(present: pa.Array) -> tuple[Category, ...]:
    """Distinct values in order, as a schema lists them."""
    distinct = pc.unique(present)
    ordered = distinct.take(pc.sort_indices(distinct))
    if pa.types.is_decimal(ordered.type):
        ordered = ordered.cast(pa.float64(), safe=False)
    return tuple(ordered.to_pylist())
