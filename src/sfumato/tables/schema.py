"""What the columns of a table are and what will happen to each: kinds, roles, domains."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.documents import read_text
from sfumato.errors import OptionError, SchemaError, printable, shown
from sfumato.notebook import html_table
from sfumato.tables.field import FATE, Bound, Category, DateStep, Domain, Field, Kind, Role
from sfumato.tables.toml import fields_from_toml, fields_to_toml

__all__ = ["FATE", "Bound", "Category", "DateStep", "Domain", "Field", "Kind", "Role", "Schema"]

_WIDEST = 120  # characters of a cell of the printed form
_ENCODED = (Role.CONFIDENTIAL, Role.TARGET)


@dataclass(frozen=True, repr=False)
class Schema:
    """The columns of a table, in order.

    Its printed form says what will happen to each column and why; it shows no observed bound or category.

    Examples
    --------
    >>> print(Schema((Field("age", Kind.INTEGER, reason="whole numbers"),)))
    column  role          kind     what happens  why
    age     confidential  integer  sanitized     whole numbers
    """

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(self.fields))
        twice = [(name, times) for name, times in Counter(self.names).items() if times > 1]
        if twice:
            raise SchemaError(f"column {twice[0][0]!r} stands {twice[0][1]} times in the schema; name it once")
        for role in (Role.TARGET, Role.LEVEL):
            having = [field.name for field in self.fields if field.role is role]
            if len(having) > 1:
                raise SchemaError(f"{len(having)} columns have the role {role.value}; give it to one only")

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __getitem__(self, name: str) -> Field:
        for field in self.fields:
            if field.name == name:
                return field
        raise OptionError(f"there is no column {name!r}; the columns are {', '.join(map(repr, self.names))}")

    def __repr__(self) -> str:
        return f"Schema({len(self)} columns)"

    def __str__(self) -> str:
        return self.describe()

    @property
    def names(self) -> tuple[str, ...]:
        """The column names."""
        return tuple(field.name for field in self.fields)

    @property
    def encoded(self) -> tuple[Field, ...]:
        """The columns that a mechanism transforms."""
        return tuple(field for field in self.fields if field.role in _ENCODED)

    @property
    def released(self) -> tuple[Field, ...]:
        """The columns of the release."""
        return tuple(field for field in self.fields if field.role not in (Role.IDENTIFIER, Role.LEVEL))

    @property
    def target(self) -> Field | None:
        """The class or response, if one is marked."""
        return next((field for field in self.fields if field.role is Role.TARGET), None)

    def with_role(self, role: Role, *names: str) -> Schema:
        """Schema with a role given to columns; a target or level that another column had becomes confidential there."""
        chosen = {self[name].name for name in names}
        single = role in (Role.TARGET, Role.LEVEL) and bool(chosen)
        fields = []
        for field in self.fields:
            why = field.reason.partition("; ")[0]
            if field.name in chosen:
                reason = f"{why}; {role.value}, as told" if why else f"{role.value}, as told"
                fields.append(dataclasses.replace(field, role=role, reason=reason))
            elif single and field.role is role:
                fields.append(dataclasses.replace(field, role=Role.CONFIDENTIAL, reason=why))
            else:
                fields.append(field)
        return Schema(tuple(fields))

    def without_reasons(self) -> Schema:
        """Schema without the reasons of its decisions, as it comes back from a file."""
        return Schema(tuple(dataclasses.replace(field, reason="") for field in self.fields))

    def public_part(self) -> Schema:
        """What leaves with the release: released columns with declared domains only."""
        return Schema(
            tuple(
                dataclasses.replace(field, domain=field.domain if field.domain.declared else Domain(), reason="")
                for field in self.released
            )
        )

    def describe(self, *, domains: bool = False) -> str:
        """Lay out the columns as a table of text.

        Parameters
        ----------
        domains : bool
            Show bounds too. Observed bounds are data: only for the owner's eyes.
        """
        head, rows = self._lines(domains=domains)
        widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
        return "\n".join(
            "  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip()
            for row in [head, *rows]
        )

    def _lines(self, *, domains: bool) -> tuple[list[str], list[list[str]]]:
        head = ["column", "role", "kind", *(["domain"] if domains else []), "what happens", "why"]
        rows = [
            [
                _cell(field.name),
                field.role.value,
                field.kind.value,
                *([_cell(field.domain.describe())] if domains else []),
                FATE[field.role],
                printable(field.reason),
            ]
            for field in self.fields
        ]
        return head, rows

    def _repr_html_(self) -> str:
        head, rows = self._lines(domains=False)
        return html_table(f"Schema of {len(self)} columns", rows, head)

    @property
    def digest(self) -> str:
        """SHA-256 of the schema's TOML form; the reasons, which are comments, do not count."""
        return hashlib.sha256(self.without_reasons().to_toml().encode()).hexdigest()

    def to_toml(self) -> str:
        """Write the schema as TOML with comments that a person can edit."""
        return fields_to_toml(self.fields)

    @classmethod
    def from_toml(cls, text: str) -> Schema:
        """Read a schema from TOML."""
        return cls(fields_from_toml(text))

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema from a TOML file."""
        return cls.from_toml(read_text(path, "schema file", "write one with 'sfumato inspect'"))

    @classmethod
    def infer(cls, frame: Any, *, identifiers: Iterable[str] = (), target: str | None = None) -> Schema:
        """Propose a schema for a pandas, polars or pyarrow table, with the reason of each decision."""
        from sfumato.tables.frames import to_arrow
        from sfumato.tables.infer import infer_schema

        identifiers = tuple(identifiers)
        schema = infer_schema(to_arrow(frame)[0], identifiers).with_role(Role.IDENTIFIER, *identifiers)
        return schema.with_role(Role.TARGET, target) if target is not None else schema


def _cell(text: str) -> str:
    return text if text.isprintable() and len(text) <= _WIDEST else shown(text)
