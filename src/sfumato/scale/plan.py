"""What happens to each column of a file, settled before anything is read or written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from sfumato.errors import OptionError, PrivacyRefusal
from sfumato.geometry.key import Key
from sfumato.scale.source import Source
from sfumato.tables.cells import is_number, is_text
from sfumato.tables.field import Field, Kind, Role
from sfumato.tables.fits import check_columns
from sfumato.tables.infer import MISSING_MARKS, infer_field
from sfumato.tables.moved import free_field, free_fields, type_of_moved
from sfumato.tables.schema import Schema

__all__ = ["Plan", "plan_columns"]

_NUMBERS = (Kind.CONTINUOUS, Kind.INTEGER)
_HEAD = 100_000  # rows that are looked at where no schema is given


@dataclass(frozen=True, repr=False)
class Plan:
    """Columns that are moved, columns that pass as they are, and columns that are dropped."""

    schema: Schema
    moved: tuple[Field, ...]
    passed: tuple[Field, ...]

    @property
    def names(self) -> list[str]:
        """The columns that are read and released, in the order of the file."""
        return [field.name for field in self.schema.released]

    @property
    def dropped(self) -> tuple[str, ...]:
        """The columns that are not even read."""
        return tuple(field.name for field in self.schema if field.role is Role.IDENTIFIER)

    @property
    def public(self) -> Schema:
        """The schema that may leave with the table."""
        return free_fields(self.schema, {field.name for field in self.moved}).public_part()

    def arrow_schema(self, source: pa.Schema) -> pa.Schema:
        """Types of the release: moved columns are doubles or whole, dictionaries written out, no metadata stays."""
        moved = {field.name: type_of_moved(field, source.field(field.name).type) for field in self.moved}
        return pa.schema([(name, moved.get(name, _plain(source, name))) for name in self.names])


def plan_columns(
    source: Source,
    key: Key,
    *,
    columns: Sequence[str] | None,
    schema: Schema | None,
    identifiers: Iterable[str],
    public: Iterable[str],
    pass_categories: bool,
) -> Plan:
    """Settle what happens to each column.

    Raises
    ------
    OptionError
        For names that are not in the file.
    PrivacyRefusal
        For columns that would be released as they are without having been allowed to, and for privacy levels.
    """
    identifiers, public = tuple(identifiers), tuple(public)
    _check_known([*(columns or ()), *identifiers, *public], source)
    if schema is not None and columns is not None:
        raise OptionError("the schema already says which columns are numbers; leave 'columns' or the schema out")
    if schema is None:
        schema = _infer(source, key.columns if columns is None else columns, identifiers, public)
    check_columns(source.schema.empty_table(), schema)
    place = {name: number for number, name in enumerate(source.schema.names)}
    schema = Schema(tuple(sorted(schema.fields, key=lambda field: place[field.name])))
    schema = schema.with_role(Role.IDENTIFIER, *identifiers).with_role(Role.PUBLIC, *public)
    _refuse_levels(schema)
    moved = tuple(field for field in schema.encoded if field.kind in _NUMBERS)
    key.check_cover([field.name for field in moved])
    categories = [field.name for field in schema.encoded if field not in moved]
    if categories and not pass_categories:
        raise PrivacyRefusal(
            f"{len(categories)} columns are no plain numbers and would be released as they are, the first is "
            f"{categories[0]!r}; drop them as identifiers, or allow it with pass_categories"
        )
    _check_types(moved, source)
    return Plan(schema, moved, tuple(field for field in schema.released if field not in moved))


def _check_known(names: Sequence[str], source: Source) -> None:
    unknown = [name for name in names if name not in source.schema.names]
    if unknown:
        known = ", ".join(map(repr, source.schema.names))
        raise OptionError(f"there is no column {unknown[0]!r}; the columns are {known}")


def _infer(source: Source, numbers: Sequence[str], identifiers: Sequence[str], public: Sequence[str]) -> Schema:
    """Propose a schema from the first rows; columns of the key are numbers, whatever they look like there."""
    told = {*identifiers}
    head = source.head([name for name in source.schema.names if name not in told], _HEAD)
    fields = []
    for name in source.schema.names:
        if name in told:
            fields.append(Field(name, Kind.NOMINAL, Role.IDENTIFIER))
            continue
        field = infer_field(name, head.column(name))
        if name in numbers and name not in public:
            whole = pa.types.is_integer(source.schema.field(name).type)  # first rows of text would not say of all
            field = Field(name, Kind.INTEGER if whole else Kind.CONTINUOUS, missing=MISSING_MARKS)
        # bounds, steps and formats of the first rows do not bind the others
        fields.append(free_field(field) if field.kind in _NUMBERS else field)
    return Schema(tuple(fields))


def _refuse_levels(schema: Schema) -> None:
    levels = [field.name for field in schema if field.role is Role.LEVEL]
    if levels:
        raise PrivacyRefusal(
            f"column {levels[0]!r} asks for privacy levels and moving by a key gives none; leave it out, or condense"
        )


def _check_types(moved: Sequence[Field], source: Source) -> None:
    wrong = [field.name for field in moved if not _is_readable(_plain(source.schema, field.name))]
    if wrong:
        raise OptionError(
            f"{len(wrong)} columns of the key are of a type that holds no numbers, the first is {wrong[0]!r}; mend the "
            "key or the file"
        )


def _is_readable(kind: pa.DataType) -> bool:
    return is_number(kind) or is_text(kind) or pa.types.is_null(kind)


def _plain(schema: pa.Schema, name: str) -> pa.DataType:
    kind = schema.field(name).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.large_string() if pa.types.is_string_view(kind) else kind
