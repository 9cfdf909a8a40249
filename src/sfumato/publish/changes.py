"""Columns that carry the risk, dropped or coarsened: what could be changed, how it is told, and what it did."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.assess.risk.by_column import ColumnRisk
from sfumato.assess.verdict import ChangeTried
from sfumato.publish.trial import Outlook
from sfumato.tables.coarsened import hierarchy_of
from sfumato.tables.schema import Field, Kind, Role, Schema

__all__ = ["ColumnChange", "change_tried", "changes_for"]

_MOST = 3  # columns that are looked at
_Z = 1.96
_PARTS = 10  # a number is coarsened to about so many intervals


@dataclass(frozen=True)
class ColumnChange:
    """One column dropped, or coarsened to a level of a hierarchy."""

    column: str
    hierarchy: str | None = None  # None where the column is dropped
    level: int = 0

    @property
    def words(self) -> str:
        """What is done."""
        if self.hierarchy is None:
            return f"without '{self.column}'"
        return f"with '{self.column}' coarsened ({self.hierarchy}, level {self.level})"

    @property
    def how(self) -> str:
        """How it is told to `sanitize`."""
        if self.hierarchy is None:
            return f"--identifier {self.column}"
        return f'in the schema: hierarchy = "{self.hierarchy}", coarsened = {self.level}'

    @property
    def options(self) -> tuple[str, ...]:
        """Words of the command line; none where it takes a schema."""
        return ("--identifier", self.column) if self.hierarchy is None else ()

    def applied(self, schema: Schema) -> Schema:
        """Schema with the change."""
        if self.hierarchy is None:
            return schema.with_role(Role.IDENTIFIER, self.column)
        fields = tuple(
            dataclasses.replace(field, hierarchy=self.hierarchy, coarsened=self.level)
            if field.name == self.column
            else field
            for field in schema
        )
        return dataclasses.replace(schema, fields=fields)


def changes_for(risks: Sequence[ColumnRisk], schema: Schema, spared: Sequence[str | None]) -> list[ColumnChange]:
    """Changes of the columns that carry most of the risk: each dropped, and coarsened where that can be said."""
    changes: list[ColumnChange] = []
    risky = [risk for risk in risks if risk.column not in spared and (risk.certain or risk.alone > 0 or risk.rare)]
    for risk in risky[:_MOST]:
        changes.append(ColumnChange(risk.column))
        wider = _coarsened(schema[risk.column])
        if wider is not None:
            changes.append(wider)
    return changes


def _coarsened(field: Field) -> ColumnChange | None:
    if field.hierarchy is not None:
        levels = hierarchy_of(field).levels
        further = field.coarsened + 1
        return ColumnChange(field.name, field.hierarchy, further) if levels is None or further <= levels else None
    if field.kind is Kind.DATE:
        return ColumnChange(field.name, "calendar", 1)
    if field.kind not in (Kind.INTEGER, Kind.CONTINUOUS):
        return None
    low, high = field.domain.low, field.domain.high
    if not isinstance(low, int | float) or not isinstance(high, int | float) or not 0 < (span := high - low) < math.inf:
        return None
    width = 10.0 ** math.floor(math.log10(span / _PARTS))
    width *= next(step for step in (1, 2, 5, 10) if step * width * _PARTS >= span)
    return ColumnChange(field.name, f"intervals {width:g}", 1)


def change_tried(change: ColumnChange, before: Outlook, after: Outlook, people: int) -> ChangeTried:
    """What a change did on a sample; clear where the finding that was the worst fell by more than both runs vary."""
    clear = False
    if before.worst is not None and after.leak < before.leak:
        limit = before.worst.limit
        one, two = before.ends.get(limit), after.ends.get(limit)
        if one is not None and two is not None:
            clear = one.value - two.value > _Z * math.hypot(one.error, two.error)
    return ChangeTried(change.column, change.words, change.how, before.leak, after.leak, people, clear)
