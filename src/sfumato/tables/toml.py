"""The schema as a TOML file that a person can read and edit."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeVar

from sfumato.documents import Unparsable, parse_toml
from sfumato.errors import SchemaError
from sfumato.tables.field import FATE, DateStep, Domain, Field, Kind, Role
from sfumato.tables.schema import Schema

__all__ = ["field_to_document", "fields_from_document", "schema_from_toml", "schema_to_toml"]

_FORMAT = 1
_NOTE = """Schema of a table, for sfumato. Edit it and pass it back with --schema.
kind: {kinds}
role: {roles}
domain: source = "declared" is public knowledge (you say so) and leaves with the release;
        source = "observed" was read off the data and stays with the owner.
        low, high, step, units for numbers and dates; categories for the rest, in order where ordinal.
missing: texts that mean a missing cell. format: a date format, or "0.00" for a fixed number of decimals."""

E = TypeVar("E", bound=StrEnum)


def schema_to_toml(schema: Schema) -> str:
    """Write a schema as TOML, each column with the reason it was taken so."""
    import tomlkit

    document = tomlkit.document()
    kinds = ", ".join(kind.value for kind in Kind)
    roles = ", ".join(f"{role.value} ({FATE[role].split(';')[0]})" for role in Role)
    for line in _NOTE.format(kinds=kinds, roles=roles).splitlines():
        document.add(tomlkit.comment(line))
    document.add(tomlkit.nl())
    document.add("format", tomlkit.item(_FORMAT))
    columns = tomlkit.aot()
    for field in schema:
        table = tomlkit.table()
        if field.reason:
            table.add(tomlkit.comment(f"why: {field.reason}"))
        for key, value in field_to_document(field).items():
            if key == "reason":
                continue
            if isinstance(value, dict):
                inline = tomlkit.inline_table()
                inline.update(value)
                table.add(key, inline)
            else:
                table.add(key, value)
        columns.append(table)
    document.add("column", columns)
    return tomlkit.dumps(document)


def field_to_document(field: Field) -> dict[str, Any]:
    """Write a field as plain values."""
    domain: dict[str, Any] = {"source": "declared" if field.domain.declared else "observed"}
    for key in ("low", "high", "step", "categories", "units"):
        value = getattr(field.domain, key)
        if value is not None:
            domain[key] = list(value) if isinstance(value, tuple) else _plain(value)
    document: dict[str, Any] = {"name": field.name, "kind": field.kind.value, "role": field.role.value}
    if field.missing:
        document["missing"] = list(field.missing)
    if field.format is not None:
        document["format"] = field.format
    if field.reason:
        document["reason"] = field.reason
    if len(domain) > 1 or field.domain.declared:
        document["domain"] = domain
    return document


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, StrEnum) else value


def schema_from_toml(text: str) -> Schema:
    """Read a schema from TOML; an unknown key or word is an error that names the column."""
    try:
        document = parse_toml(text)
    except Unparsable as error:
        raise SchemaError(f"the schema is not valid TOML ({error}); mend it there") from None
    if document.get("format") != _FORMAT:
        raise SchemaError(f"the schema has no 'format = {_FORMAT}'; this version reads no other")
    unknown = set(document) - {"format", "column"}
    if unknown:
        raise SchemaError(f"the schema has an unknown entry {sorted(unknown)[0]!r}; columns stand under [[column]]")
    return Schema(fields_from_document(document.get("column", [])))


def fields_from_document(columns: Any) -> tuple[Field, ...]:
    """Read fields from the plain values of a TOML file."""
    if not isinstance(columns, list) or not all(isinstance(column, dict) for column in columns):
        raise SchemaError("the schema's columns are not written as [[column]]; write one such table a column")
    return tuple(_field(column, place) for place, column in enumerate(columns, 1))


def _field(column: dict[str, Any], place: int) -> Field:
    name = column.get("name")
    if not isinstance(name, str):
        raise SchemaError(f"column number {place} of the schema has no name; give it one")
    _known(column, {"name", "kind", "role", "missing", "format", "domain", "reason"}, name)
    domain = column.get("domain", {})
    if not isinstance(domain, dict):
        raise SchemaError(f"the domain of column {name!r} is not a table; write it as {{ low = 0, high = 1 }}")
    _known(domain, {"source", "low", "high", "step", "categories", "units"}, name)
    kind = _word(Kind, column.get("kind"), "kind", name)
    missing = column.get("missing", [])
    if not isinstance(missing, list) or not all(isinstance(mark, str) for mark in missing):
        raise SchemaError(f"'missing' of column {name!r} is not a list of texts; write it as [\"?\"]")
    return Field(
        name=name,
        kind=kind,
        role=_word(Role, column.get("role", Role.CONFIDENTIAL.value), "role", name),
        domain=_domain(domain, kind, name),
        missing=tuple(missing),
        format=_text(column.get("format"), "format", name),
        reason=_text(column.get("reason"), "reason", name) or "",
    )


def _domain(domain: dict[str, Any], kind: Kind, name: str) -> Domain:
    if not domain:
        return Domain()
    source = domain.get("source", "declared")
    if source not in ("declared", "observed"):
        raise SchemaError(f"the domain of column {name!r} has an unknown source; say 'declared' or 'observed'")
    step = domain.get("step")
    categories = domain.get("categories")
    if categories is not None and not isinstance(categories, list):
        raise SchemaError(f'the categories of column {name!r} are not a list; write them as ["a", "b"]')
    return Domain(
        declared=source == "declared",
        low=domain.get("low"),
        high=domain.get("high"),
        step=_word(DateStep, step, "step", name) if kind is Kind.DATE and step is not None else step,
        categories=None if categories is None else tuple(categories),
        units=_text(domain.get("units"), "units", name),
    )


def _text(value: Any, key: str, name: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise SchemaError(f"{key!r} of column {name!r} is not a text; write it in quotes")
    return value


def _word(words: type[E], value: Any, key: str, name: str) -> E:
    try:
        return words(value)
    except ValueError:
        choices = ", ".join(word.value for word in words)
        raise SchemaError(f"column {name!r} has no known {key}; choose one of {choices}") from None


def _known(table: dict[str, Any], keys: set[str], name: str) -> None:
    unknown = sorted(set(table) - keys)
    if unknown:
        raise SchemaError(f"column {name!r} has an unknown entry {unknown[0]!r}; known are {', '.join(sorted(keys))}")
