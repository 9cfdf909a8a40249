"""How many persons decide what a column is: never one, so that with and without anybody it is taken alike."""

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
    """Persons who decide in a column that so many have a value in: 10, fewer where that is more than one in ten.

    Examples
    --------
    >>> [least_evidence(persons) for persons in (6, 15, 60, 1_000)]
    [1, 2, 6, 10]
    """
    return 1 if persons < MIN_EVIDENCE else min(MIN_EVIDENCE, max(2, persons // 10))


@dataclass(frozen=True, eq=False, repr=False)
class Evidence:
    """Whose the cells of a column are, and how many persons decide; each row is a person where ``persons`` is None."""

    least: int
    persons: Ints | None = None

    @classmethod
    def of(cls, rows: int, persons: Ints | None = None) -> Evidence:
        """Evidence of so many cells, or of the persons of these cells."""
        people = rows if persons is None else int(np.count_nonzero(np.bincount(persons)))
        return cls(least_evidence(people), persons)

    @property
    def spare(self) -> int:
        """Cells that decide nothing."""
        return self.least - 1

    def few(self, rows: Bools) -> bool:
        """Tell whether the marked cells are of so few persons that they decide nothing."""
        count = int(np.count_nonzero(rows))
        if count < self.least:
            return True
        return self.persons is not None and len(np.unique(self.persons[rows])) < self.least

    def few_values(self, values: pa.Array, strays: pa.Array) -> bool:
        """Tell whether few persons hold any of some values, or of the first of them; each stands once in ``strays``."""
        if not len(strays) or self.least == 1 or (self.persons is None and len(strays) >= self.least):
            return not len(strays)
        head = values.slice(0, _HEAD)
        if not self.take(slice(0, _HEAD)).few(_among(head, strays)):
            return False
        return len(head) == len(values) or self.few(_among(values, strays))

    def few_numbers(self, values: Floats, distinct: Floats, off: Callable[[Floats], Bools]) -> bool:
        """Tell whether few persons hold a number that is off; ``distinct`` has each once."""
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
        """Evidence of some of the cells as if there were no others: fewer persons decide in a smaller column."""
        return Evidence.of(int(rows.sum()), None if self.persons is None else self.persons[rows])

    def take(self, rows: Bools | slice) -> Evidence:
        """Evidence of some of the cells, of which as many persons decide."""
        return self if self.persons is None else dataclasses.replace(self, persons=self.persons[rows])


def codes_of_persons(column: pa.ChunkedArray) -> Ints:
    """Number of the person of each row; of rows that do not say whom they are about the same."""
    codes = pc.dictionary_encode(plain(column), null_encoding="encode").indices
    return np.asarray(codes.to_numpy(zero_copy_only=False), dtype=np.int64)


def _among(values: pa.Array, strays: pa.Array) -> Bools:
    return np.asarray(pc.is_in(values, value_set=strays).to_numpy(zero_copy_only=False), dtype=np.bool_)


@dataclass(frozen=True, repr=False)
class ColumnSample:
    """What is known of a column before its kind is: its present cells, whose they are, and how many are missing.

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
        """The present texts without spaces around them."""
        return pc.utf8_trim_whitespace(self.present)

    @cached_property
    def _head(self) -> pa.Array:
        return pc.utf8_trim_whitespace(self.present.slice(0, _HEAD))

    def few(self, strays: pa.Array) -> bool:
        """Tell whether few persons hold any of some texts, which have no spaces around them."""
        few = self.evidence.few_values
        return not len(strays) or (few(self._head, strays) and few(self.trimmed, strays))

    def field(self, kind: Kind, why: str, domain: Domain | None = None, form: str | None = None) -> Field:
        """The column as one of a kind, to be sanitized."""
        reason = why + self.note + _missing_words(self.missing) + self.strays
        domain, repair = domain or Domain(), bool(self.strays)
        return Field(self.name, kind, Role.CONFIDENTIAL, domain, self.marks, form, reason, repair=repair)

    def identifier(self, kind: Kind, why: str) -> Field:
        """The column as one that is dropped."""
        return Field(
            self.name, kind, Role.IDENTIFIER, Domain(), self.marks, None, why + self.note + _missing_words(self.missing)
        )

    def with_marks(self, marks: tuple[str, ...]) -> ColumnSample:
        """The same with further missing marks, whose cells are missing."""
        gone = _among(self.trimmed, pa.array(marks, self.trimmed.type))
        return dataclasses.replace(
            self,
            present=self.present.filter(pa.array(~gone)),
            marks=(*marks, *self.marks),
            missing=(*missing_counts(self.present, gone, marks), *self.missing),
            evidence=self.evidence.of_rows(~gone),
        )

    def told(self, note: str) -> ColumnSample:
        """The same with a note before what is said of missing cells."""
        return dataclasses.replace(self, note=note + self.note)

    def mended(self, what: str) -> ColumnSample:
        """The same with a word on what becomes of the cells of fewer than `MIN_EVIDENCE` persons."""
        strays = self.strays if what in self.strays else f"{self.strays}, fewer than {MIN_EVIDENCE} cells {what}"
        return dataclasses.replace(self, strays=strays)

    def without(self, strays: Bools) -> ColumnSample:
        """The same without cells that are of another form than all others, which become missing."""
        if not strays.any():
            return self
        left = dataclasses.replace(
            self, present=self.present.filter(pa.array(~strays)), evidence=self.evidence.take(~strays)
        )
        return left.mended("of another form taken as missing")

    def without_values(self, strays: pa.Array) -> ColumnSample:
        """The same without cells that hold some values."""
        return self.without(_among(self.present, strays)) if len(strays) else self

    def without_texts(self, strays: pa.Array) -> ColumnSample:
        """The same without cells that hold some texts, spaces around them aside."""
        return self.without(_among(self.trimmed, strays)) if len(strays) else self


def missing_counts(array: pa.Array, absent: Bools, marks: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """Missing cells of each mark, and those of an empty text for the rest."""
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
    """Say how many cells are missing, by their marks: ", missing: 'k.A.' (412 cells), empty (1 cell)"."""
    if all(not mark for mark, _ in counts):
        return "".join(f", {count} missing" for _, count in counts)
    ways = (
        f"{repr(mark) if mark else 'empty'} ({count} {'cell' if count == 1 else 'cells'})" for mark, count in counts
    )
    return f", missing: {', '.join(ways)}"


def categories_of(present: pa.Array) -> tuple[Category, ...]:
    """Different values in their order, as a schema keeps them."""
    distinct = pc.unique(present)
    ordered = distinct.take(pc.sort_indices(distinct))
    if pa.types.is_decimal(ordered.type):
        ordered = ordered.cast(pa.float64(), safe=False)
    return tuple(ordered.to_pylist())
