"""Persons of a table: who each row is about."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.core.errors import SchemaError
from sfumato.tables.cells import absent_cells, plain
from sfumato.tables.schema import Role, Schema

__all__ = ["persons_of_table"]


def persons_of_table(table: pa.Table, schema: Schema) -> NDArray[np.int64] | None:
    """Person of each row as a number from 0; None where the schema has no person column.

    Raises
    ------
    SchemaError
        Where a row does not say whom it is about.
    """
    field = next((field for field in schema if field.role is Role.PERSON), None)
    if field is None:
        return None
    array = plain(table.column(field.name))
    absent = int(absent_cells(array, field.missing).sum())
    if absent:
        raise SchemaError(
            f"column {field.name!r} says who a row is about, and {absent} of its cells are missing; fill them in or "
            "leave those rows out"
        )
    return np.asarray(pc.dictionary_encode(array).indices.to_numpy(zero_copy_only=False), dtype=np.int64)
