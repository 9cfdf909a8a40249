"""Comparison of the linked rows of a released table with what is certified of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa

from sfumato.core.facts import Check, counted
from sfumato.methods.condense.facts import PersonsLinked

__all__ = ["PersonRows"]

_NAME = "released persons"


class PersonRows:
    """Counts persons, their rows, and the values that each has in columns that are constant for a person."""

    def __init__(self, fact: PersonsLinked, least: int) -> None:
        self.fact, self.least = fact, least
        self._rows: Counter[object] = Counter()
        self._changing = set[str]()  # columns in which a person has two values
        self._first: dict[tuple[str, object], object] = {}
        self._lacking = False

    def add(self, batch: pa.Table) -> None:
        """Read some more rows."""
        if not {self.fact.column, *self.fact.constant} <= set(batch.column_names):
            self._lacking = True
            return
        persons = batch.column(self.fact.column).to_pylist()
        self._rows.update(persons)
        for name in self.fact.constant:
            for person, value in zip(persons, batch.column(name).to_pylist(), strict=True):
                if self._first.setdefault((name, person), value) != value:
                    self._changing.add(name)

    def checks(self) -> Iterator[Check]:
        """Whether there are as many persons and rows as certified, and each count of rows for enough persons."""
        holds, detail = self._result()
        yield Check(_NAME, holds, detail)

    def _result(self) -> tuple[bool, str]:
        times = Counter(self._rows.values())
        if self._lacking or None in self._rows:
            return False, "rows do not state the person that they belong to"
        most = counted(max(times, default=0), "row", "rows")
        if (len(self._rows), max(times, default=0)) != (self.fact.persons, self.fact.most):
            return False, f"{len(self._rows)} with up to {most} each, not as certified"
        few = sum(count < self.least for count in times.values())
        if few:
            occur = counted(few, "row count occurs", "row counts occur")
            return False, f"{occur} for fewer persons than the smallest group has"
        if self._changing:
            change = counted(len(self._changing), "column changes", "columns change")
            return False, f"{change} within a person, contrary to the certificate"
        constant = counted(len(self.fact.constant), "column is", "columns are")
        return True, f"{self.fact.persons} with up to {most} each; {constant} constant"
