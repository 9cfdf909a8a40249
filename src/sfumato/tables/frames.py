"""The border to data frames: any eager frame to Arrow, and Arrow back to the same kind of frame.

The only module that knows narwhals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sfumato.errors import TableError

__all__ = ["Origin", "restore", "to_arrow"]


@dataclass(frozen=True, eq=False, repr=False)
class Origin:
    """Where a table came from: an empty frame of the same kind, with the same column types."""

    empty: Any
    library: str

    def __repr__(self) -> str:
        return f"Origin({self.library})"


def to_arrow(frame: Any) -> tuple[pa.Table, Origin]:
    """Turn a pandas, polars or pyarrow table into an Arrow table; an index is left behind.

    Raises
    ------
    TableError
        For anything else, for names that stand twice or are not text, and for columns of mixed types.
    """
    import narwhals as nw

    columns = _column_names(frame)
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise TableError(f"column {twice[0]!r} stands {columns.count(twice[0])} times in the table; name it once")
    try:
        wrapped = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise TableError(
            f"a {type(frame).__name__} is not a table that can be read; pass a pandas, polars or pyarrow table"
        ) from None
    library = wrapped.implementation.value
    origin = Origin(frame[:0] if library != "pyarrow" else frame.slice(0, 0), library)
    return _columns_to_arrow(wrapped), origin


def _column_names(frame: Any) -> list[str]:
    columns = getattr(frame, "column_names", None)
    if columns is None:
        columns = getattr(frame, "columns", [])
    names = list(columns)
    odd = sum(not isinstance(name, str) for name in names)
    if odd:
        raise TableError(f"{odd} column names are not text; rename them, for example with frame.columns.astype(str)")
    return names


def _columns_to_arrow(wrapped: Any) -> pa.Table:
    names, arrays = [], []
    for name in wrapped.columns:
        try:
            array = wrapped[name].to_arrow()
        except (pa.ArrowException, TypeError, ValueError):  # Arrow's own words would quote a cell
            raise TableError(
                f"column {name!r} holds cells of mixed or unreadable types; give it one type, or drop it"
            ) from None
        names.append(name)
        arrays.append(array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array]))
    return pa.table(arrays, names=names)


def restore(table: pa.Table, origin: Origin) -> Any:
    """Give an Arrow table the frame type, and its columns the types, that they came with."""
    if origin.library == "pyarrow":
        schema = origin.empty.schema
        fields = [pa.field(schema.field(name).name, schema.field(name).type) for name in table.column_names]
        return table.cast(pa.schema(fields))
    if origin.library == "polars":
        import narwhals as nw

        frame = nw.from_arrow(table, backend="polars").to_native()
        return frame.cast({name: origin.empty.schema[name] for name in table.column_names})
    frame = table.to_pandas()
    for name in table.column_names:
        wanted = origin.empty[name].dtype
        if frame[name].dtype != wanted:
            frame[name] = frame[name].astype(wanted)
    return frame
