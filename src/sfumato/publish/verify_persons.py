"""What a reviewer counts again in a release whose persons keep several rows each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

from sfumato.core.facts import Fact, Grouped, PersonsLinked
from sfumato.publish.agreement import Check

__all__ = ["PersonRows"]

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
