"""Whether the columns of a table are those of a schema."""

from __future__ import annotations

import pyarrow as pa

from sfumato.errors import OptionError
from sfumato.tables.schema import Schema

__all__ = ["check_columns", "check_extra", "check_lacking"]


def check_columns(table: pa.Table, schema: Schema) -> None:
    """Refuse a table that lacks a column of the schema or has one that the schema does not know."""
    check_lacking(table, list(schema.names))
    check_extra(table, schema)


def check_lacking(table: pa.Table, needed: list[str]) -> None:
    """Refuse a table that lacks one of some columns."""
    present = set(table.column_names)
    lacking = [name for name in needed if name not in present]
    if lacking:
        raise OptionError(
            f"the table lacks {len(lacking)} columns of the schema, the first is {lacking[0]!r}; use its own schema"
        )


def check_extra(table: pa.Table, schema: Schema) -> None:
    """Refuse a table with a column that the schema does not know."""
    known = set(schema.names)
    extra = [name for name in table.column_names if name not in known]
    if extra:
        raise OptionError(
            f"the table has {len(extra)} columns that the schema does not know, the first is {extra[0]!r}; add them "
            "to the schema"
        )
