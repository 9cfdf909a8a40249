"""What a reviewer counts again in a released table: rows alike, gaps, wider labels, persons who keep their rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.core.errors import BadInput
from sfumato.core.facts import Aggregated, Alike, Blocked, Downgraded, Fact, Grouped, PersonsLinked, RareValues
from sfumato.publish.agreement import Check
from sfumato.tables.cells import absent_cells, is_text, plain
from sfumato.tables.hierarchies import Hierarchy, parse_hierarchy
from sfumato.tables.schema import Schema

__all__ = ["ModifiedRows", "PersonRows"]

_COUNT = "count of rows alike"  # a column that the counting adds
_OTHER = r"other(_\d+)?"  # what rare labels are counted to
_KINDS = ("nominal", "date", "integer")  # of columns that have hierarchies


class ModifiedRows:
    """Looks batch by batch at what facts of a modification say of the released rows."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self.alike = next((fact for fact in facts if isinstance(fact, Alike)), None)
        self.wide = next((fact for fact in facts if isinstance(fact, Aggregated)), None)
        self.pooled = any(isinstance(fact, RareValues) and fact.categories for fact in facts)
        self.gaps: dict[str, int] = {}
        for fact in facts:
            if isinstance(fact, Blocked | Downgraded):
                self.gaps |= dict(zip(fact.columns, fact.cells, strict=True))
            if isinstance(fact, Downgraded):
                self.gaps[fact.private] = fact.hidden
        self._found: dict[str, int] = dict.fromkeys(self.gaps, 0)
        self._labels: dict[str, set[str]] = {}
        self._odd = set[str]()  # columns whose cells are no texts, and so no labels
        self._classes: pa.Table | None = None
        self._strange = False

    def add(self, batch: pa.Table, schema: Schema) -> None:
        """Look at some more rows."""
        try:
            self._add(batch, schema)
        except (BadInput, pa.ArrowException):  # cells of a type that no released table has
            self._strange = True

    def _add(self, batch: pa.Table, schema: Schema) -> None:
        for name in self.gaps:
            if name in batch.column_names:
                self._found[name] += int(_absent(batch.column(name), schema, name).sum())
        if self.alike is not None and set(self.alike.columns) <= set(batch.column_names):
            self._count(batch, schema, self.alike.columns)
        for name in () if self.wide is None else self.wide.columns:
            if name in batch.column_names:
                self._read(_plain(batch.column(name)), _absent(batch.column(name), schema, name), name)

    def _count(self, batch: pa.Table, schema: Schema, columns: Sequence[str]) -> None:
        names, cells = [f"c{place}" for place in range(len(columns))], []
        for name in columns:
            gone = pa.array(_absent(batch.column(name), schema, name))
            array = _plain(batch.column(name))
            cells.append(pc.if_else(gone, pa.scalar(None, array.type), array))
        part = pa.table(cells, names=names).append_column(_COUNT, pa.array(np.ones(len(batch), dtype=np.int64)))
        both = part if self._classes is None else pa.concat_tables([self._classes, part])
        self._classes = both.group_by(names).aggregate([(_COUNT, "sum")]).rename_columns([*names, _COUNT])

    def _read(self, cells: pa.Array, gone: NDArray[np.bool_], name: str) -> None:
        there = cells.filter(pa.array(~gone))
        if not is_text(there.type):
            if len(there) and not pa.types.is_integer(there.type):
                self._odd.add(name)
                return
            there = there.cast(pa.string())  # a year is read as a number
        self._labels.setdefault(name, set()).update(pc.unique(there).to_pylist())

    def checks(self) -> list[Check]:
        """What was found, beside what is certified; nothing of what no fact speaks of."""
        if self._strange:
            return [Check("cells of the facts", False, "cells that facts speak of are of no type that can be counted")]
        found = []
        if self.alike is not None:
            sizes = [] if self._classes is None else self._classes.column(_COUNT).to_pylist()
            told = (min(sizes, default=0), sum(size == 1 for size in sizes))
            same = told == (self.alike.fewest, self.alike.alone)
            words = f"at least {told[0]} rows are equal in {len(self.alike.columns)} columns, {told[1]} stand alone"
            found.append(Check("rows alike", same, words if same else f"{words}; certified is something else"))
        if self.gaps:
            short = [name for name, count in self.gaps.items() if self._found[name] < count]
            words = f"{sum(self.gaps.values())} cells are missing that are certified to be"
            few = f"{len(short)} columns show cells that are certified to be missing"
            found.append(Check("cells blocked", not short, few if short else words))
        return [*found, *self._wide_labels()]

    def _wide_labels(self) -> list[Check]:
        if self.wide is None:
            return []
        told = zip(self.wide.columns, self.wide.hierarchies, self.wide.levels, strict=True)
        wrong, unread = [], 0
        for name, text, level in told:
            hierarchy = _hierarchy(text)
            if hierarchy is None:
                unread += 1
            elif name in self._odd or not all(
                hierarchy.is_label(each, level) or (self.pooled and re.fullmatch(_OTHER, each))
                for each in self._labels.get(name, ())
            ):
                wrong.append(name)
        count = len(self.wide.columns)
        if wrong:
            return [Check("wider labels", False, f"{len(wrong)} columns hold what is no label of their level")]
        words = f"{count - unread} columns hold labels of their level"
        by_file = f"; {unread} took theirs from a file of the owner's" if unread else ""
        return [Check("wider labels", True, words + by_file, checked=unread < count)]


def _plain(column: pa.ChunkedArray) -> pa.Array:
    cells = plain(column)
    return cells.dictionary_decode() if pa.types.is_dictionary(cells.type) else cells


def _absent(column: pa.ChunkedArray, schema: Schema, name: str) -> NDArray[np.bool_]:
    marks = schema[name].missing if name in schema.names else ()
    return absent_cells(_plain(column), (*marks, ""))


def _hierarchy(text: str) -> Hierarchy | None:
    """The hierarchy that a fact names; None where it is a file, or cannot be read."""
    for kind in _KINDS if text != "file" else ():
        try:
            found = parse_hierarchy(text, kind, "")
        except BadInput:
            continue
        return None if isinstance(found, Path) else found
    return None


_NAME = "released persons"


class PersonRows:
    """Counts batch by batch the persons, their rows, and the values that each has in columns that never change."""

    def __init__(self, fact: PersonsLinked, least: int) -> None:
        self.fact, self.least = fact, least
        self._rows: Counter[object] = Counter()
        self._values: set[tuple[str, object]] = set()  # columns and persons that were seen with two values
        self._first: dict[tuple[str, object], object] = {}
        self._lacking = False

    @classmethod
    def of(cls, facts: Sequence[Fact]) -> PersonRows | None:
        """Counter of what the facts say; None where they say nothing of it."""
        linked = [fact for fact in facts if isinstance(fact, PersonsLinked)]
        groups = [fact for fact in facts if isinstance(fact, Grouped)]
        return cls(linked[0], groups[0].smallest) if linked and groups else None

    def add(self, batch: pa.Table) -> None:
        """Look at some more rows."""
        columns = (self.fact.column, *self.fact.constant)
        if not set(columns) <= set(batch.column_names):
            self._lacking = True
            return
        persons = batch.column(self.fact.column).to_pylist()
        self._rows.update(persons)
        for name in self.fact.constant:
            for person, value in zip(persons, batch.column(name).to_pylist(), strict=True):
                if self._first.setdefault((name, person), value) != value:
                    self._values.add((name, person))

    def check(self) -> Check:
        """Whether so many persons with so many rows are there, and as many of each kind as the smallest group has."""
        times = Counter(self._rows.values())
        if self._lacking or None in self._rows:
            return Check(_NAME, False, "rows do not say whom they belong to")
        if (len(self._rows), max(times, default=0)) != (self.fact.persons, self.fact.most):
            return Check(_NAME, False, f"{len(self._rows)} of up to {max(times, default=0)} rows, not as certified")
        few = sum(count < self.least for count in times.values())
        if few:
            return Check(_NAME, False, f"{few} numbers of rows are those of fewer persons than the smallest group has")
        if self._values:
            changed = len({name for name, _ in self._values})
            return Check(_NAME, False, f"{changed} columns change within a person and are certified not to")
        told = f"{self.fact.persons} of up to {self.fact.most} rows, {len(self.fact.constant)} columns never change"
        return Check(_NAME, True, told)
