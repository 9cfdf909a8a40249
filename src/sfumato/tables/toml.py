"""The schema as a TOML file that a person can read and edit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from sfumato.documents import Inline, Misfit, Noted, plain, toml_entries, typed, write_toml
from sfumato.errors import SchemaError
from sfumato.tables.field import FATE, DateStep, Domain, Field, Kind, Role

__all__ = ["field_to_document", "fields_from_document", "fields_from_toml", "fields_to_toml"]

_FORMAT = 1
_NOTE = """Schema of a table, for sfumato. Edit it and pass it back with --schema.
kind: {kinds}
role: {roles}
domain: source = "declared" is public knowledge (you say so) and leaves with the release;
        source = "observed" was read off the data and stays with the owner.
        low, high, step, units for numbers and dates; categories for the rest, in order where ordinal.
missing: texts that mean a missing cell. format: a date format, or "0.00" for a fixed number of decimals."""

_WRONG = {
    "kind": f"column {{0}} has no known kind; choose one of {', '.join(Kind)}",
    "role": f"column {{0}} has no known role; choose one of {', '.join(Role)}",
    "step": f"column {{0}} has no known step; choose one of {', '.join(DateStep)}",
    "missing": "'missing' of column {0} is not a list of texts; write it as [\"?\"]",
    "domain": "the domain of column {0} is not a table; write it as {{ low = 0, high = 1 }}",
    "source": "the domain of column {0} has an unknown source; say 'declared' or 'observed'",
    "categories": 'the categories of column {0} are not a list; write them as ["a", "b"]',
}
"""What is wrong with an entry, by its name; all others are texts."""


@dataclass(frozen=True)
class _Values:
    """The domain of a column as it is written; bounds and categories are checked by the column's kind."""

    source: Literal["declared", "observed"] = "declared"
    low: Any = None
    high: Any = None
    step: Any = None
    categories: tuple[Any, ...] | None = None
    units: str | None = None


@dataclass(frozen=True)
class _Column:
    """A column as it is written."""

    name: str
    kind: Kind
    role: Role = Role.CONFIDENTIAL
    missing: tuple[str, ...] = ()
    format: str | None = None
    reason: str = ""
    domain: _Values | None = None


def fields_to_toml(fields: Iterable[Field]) -> str:
    """Write a schema as TOML, each column with the reason it was taken so."""
    kinds = ", ".join(kind.value for kind in Kind)
    roles = ", ".join(f"{role.value} ({FATE[role].split(';')[0]})" for role in Role)
    columns = [_column(field_to_document(field)) for field in fields]
    head = write_toml({}, _NOTE.format(kinds=kinds, roles=roles))
    return f"{head}\n{write_toml({'format': _FORMAT, 'column': columns})}"


def _column(document: dict[str, Any]) -> dict[str, Any]:
    """Entries of a column: the reason is a comment, the domain stands on its line."""
    reason, domain = document.pop("reason", None), document.pop("domain", None)
    if reason:
        document["name"] = Noted(document["name"], f"why: {reason}")
    return document if domain is None else {**document, "domain": Inline(domain)}


def field_to_document(field: Field) -> dict[str, Any]:
    """Write a field as plain values."""
    document = plain(field)
    domain = document.pop("domain")
    source = {"source": "declared" if domain.pop("declared") else "observed"}
    return {**document, "domain": source | domain} if domain or field.domain.declared else document


def fields_from_toml(text: str) -> tuple[Field, ...]:
    """Read a schema from TOML; an unknown key or word is an error that names the column."""
    document = toml_entries(text, "schema", "mend it there", ("column",), error=SchemaError)
    return fields_from_document(document.get("column", []))


def fields_from_document(columns: Any) -> tuple[Field, ...]:
    """Read fields from the plain values of a TOML file."""
    if not isinstance(columns, list) or not all(isinstance(column, dict) for column in columns):
        raise SchemaError("the schema's columns are not written as [[column]]; write one such table a column")
    return tuple(_field(column, place) for place, column in enumerate(columns, 1))


def _field(document: dict[str, Any], place: int) -> Field:
    name = document.get("name")
    if not isinstance(name, str):
        raise SchemaError(f"column number {place} of the schema has no name; give it one")
    try:
        column = typed(_Column, document)
        told = dict(vars(column.domain)) if column.domain is not None and document["domain"] else None
        if told is not None and told["step"] is not None and column.kind is Kind.DATE:
            told["step"] = typed(DateStep, told["step"])
    except Misfit as wrong:
        if wrong.problem == "unknown":
            known = ", ".join(sorted(wrong.hint.__dataclass_fields__))
            raise SchemaError(f"column {name!r} has an unknown entry {wrong.entry!r}; known are {known}") from None
        words = _WRONG.get(wrong.entry or "step", f"{wrong.entry!r} of column {{0}} is not a text; write it in quotes")
        raise SchemaError(words.format(repr(name))) from None
    domain = Domain() if told is None else Domain(declared=told.pop("source") == "declared", **told)
    return Field(**{**vars(column), "domain": domain})
