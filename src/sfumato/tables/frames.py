"""Convert any eager data frame to Arrow, and Arrow back to the same kind of frame.

The only module that knows narwhals.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from sfumato.core.documents import Unparsable, parse_json, write_json
from sfumato.core.errors import OptionError, TableError
from sfumato.tables.header import refuse_alike
from sfumato.tables.reading import FileReading

if TYPE_CHECKING:
    from sfumato.tables.files import FileForm

__all__ = ["Origin", "frame_of", "restore", "rows_of_series", "to_arrow"]


@dataclass(frozen=True, eq=False, repr=False)
class Origin:
    """Kind and column types of the frame a table came from, as an empty frame.

    ``gaps`` says how a pandas column of plain objects writes a missing cell: None, NaN, NaT or NA. ``note`` is what
    pandas left beside an Arrow table, by which its types come back. Of a file, ``reading`` reads it again as it was
    read, and ``form`` says how it is written.
    """

    empty: Any
    library: str
    gaps: dict[str, object] = dataclasses.field(default_factory=dict)
    note: dict[str, dict[str, object]] = dataclasses.field(default_factory=dict)
    reading: FileReading = dataclasses.field(default_factory=FileReading)
    form: FileForm | None = None

    def __repr__(self) -> str:
        return f"Origin({self.library})"

    @property
    def kind(self) -> Literal["arrow", "pandas", "polars"]:
        """Kind of frame, as `frame_of` names it."""
        return "pandas" if self.library == "pandas" else "polars" if self.library == "polars" else "arrow"


def to_arrow(frame: Any, missing: tuple[str, ...] = (), reading: FileReading | None = None) -> tuple[pa.Table, Origin]:
    """Turn a pandas, polars or pyarrow table into an Arrow table, without an index.

    A file is read as on the command line, numbers such as 1.234,50 among its cells too, and as ``reading`` says; texts
    in ``missing`` are not taken for misspelt numbers there.
    An enumeration of polars becomes a dictionary without an order: listing the words is not ranking them.

    Raises
    ------
    TableError
        For anything else, for names that stand twice or are not text, and for columns of mixed types.
    OptionError
        If a frame comes with a reading, which is of files.
    """
    reading, form = reading or FileReading(), None
    if isinstance(frame, str | Path):
        from sfumato.tables.files import read_table_as

        frame, form = read_table_as(frame, missing, reading)
        reading = reading.repeated(form)
    elif reading.given:
        option = next(iter(reading.given)).replace("_", "-")
        raise OptionError(f"--{option} is for files, and a {type(frame).__name__} is read already; leave it out")
    wrapped = _as_narwhals(frame)
    library = wrapped.implementation.value
    if library == "pyarrow":
        fields = [field.remove_metadata() for field in frame.schema]
        note = _noted_types(frame.schema.metadata)
        return frame, Origin(pa.schema(fields).empty_table(), library, note=note, reading=reading, form=form)
    table = _columns_to_arrow(wrapped)
    if library != "pandas":
        return table, Origin(frame[:0], library)
    note = _noted_types(pa.Schema.from_pandas(frame[:0], preserve_index=False).metadata)
    return _with_metadata(table, note), Origin(frame[:0], library, _missing_objects(frame))


_NOTED = ("name", "field_name", "pandas_type", "numpy_type")


def _noted_types(metadata: dict[bytes, bytes] | None) -> dict[str, dict[str, object]]:
    """Column types in pandas metadata; everything else there, such as indexes and attributes, is ignored."""
    try:
        document = parse_json((metadata or {}).get(b"pandas", b"{}").decode("utf-8"))
        columns = document["columns"] if isinstance(document, dict) else []
        return {
            str(column["name"]): {key: column[key] for key in _NOTED}
            | {"metadata": _noted_time_zone(column["metadata"])}
            for column in columns
            if all(isinstance(column[key], str) for key in _NOTED)
        }
    except (Unparsable, UnicodeDecodeError, KeyError, TypeError):
        return {}


def _noted_time_zone(note: Any) -> dict[str, object] | None:
    return {"timezone": str(note["timezone"])} if isinstance(note, dict) and "timezone" in note else None


def _with_metadata(table: pa.Table, note: dict[str, dict[str, object]]) -> pa.Table:
    columns = [note[name] for name in table.column_names if name in note]
    if not columns:
        return table
    document = {"index_columns": [], "column_indexes": [], "columns": columns}
    return table.replace_schema_metadata({b"pandas": write_json(document, "canonical").encode("utf-8")})


def _as_narwhals(frame: Any) -> Any:
    import narwhals as nw

    kind = type(frame).__name__
    if hasattr(frame, "collect_schema") and hasattr(frame, "lazy") and not hasattr(frame, "to_arrow"):
        raise TableError(f"a {kind} is not computed yet; pass what its collect() gives")
    _check_names(frame)
    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError:
        raise TableError(f"a {kind} is not a table that can be read; pass a pandas, polars or pyarrow table") from None


def _check_names(frame: Any) -> None:
    columns = getattr(frame, "column_names", None)
    names = list(getattr(frame, "columns", []) if columns is None else columns)
    odd = sum(not isinstance(name, str) for name in names)
    if odd:
        raise TableError(f"{odd} column names are not text; rename them, for example with frame.columns.astype(str)")
    nameless = [place for place, name in enumerate(names, 1) if not name.strip()]
    if nameless:
        raise TableError(f"{len(nameless)} columns have no name, the first is number {nameless[0]}; name them")
    twice = [(name, times) for name, times in Counter(names).items() if times > 1]
    if twice:
        raise TableError(f"column {twice[0][0]!r} stands {twice[0][1]} times in the table; name it once")
    refuse_alike(names, "the table")


def _columns_to_arrow(wrapped: Any) -> pa.Table:
    arrays = []
    for name in wrapped.columns:
        try:
            array = wrapped[name].to_arrow()
        except (pa.ArrowException, TypeError, ValueError, OverflowError):  # their own words would quote a cell
            raise TableError(
                f"column {name!r} holds cells of mixed or unreadable types; give it one type, or drop it"
            ) from None
        if wrapped.implementation.is_polars() and pa.types.is_dictionary(array.type) and array.type.ordered:
            array = pa.DictionaryArray.from_arrays(array.indices, array.dictionary, ordered=False)
        arrays.append(array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array]))
    return pa.table(arrays, names=wrapped.columns)


def _missing_objects(frame: Any) -> dict[str, object]:
    gaps = {}
    for name, kind in frame.dtypes.items():
        if str(kind) == "object":
            absent = frame[name].isna()
            if absent.any():
                gaps[name] = frame[name][absent].iloc[0]
    return gaps


def restore(table: pa.Table, origin: Origin, free: frozenset[str] = frozenset()) -> Any:
    """Turn an Arrow table back into the frame type and column types of its origin.

    Columns in ``free`` hold numbers that their old type may not: they keep the type that they have now.
    """
    if origin.library == "pyarrow":
        fields = (table.schema if name in free else origin.empty.schema for name in table.column_names)
        table = table.cast(pa.schema([of.field(name) for of, name in zip(fields, table.column_names, strict=True)]))
        return _with_metadata(table, {name: each for name, each in origin.note.items() if name not in free})
    if origin.library == "polars":
        frame = frame_of(table, "polars")
        kinds = origin.empty.schema
        series = [frame.to_series(place) for place in range(frame.width)]  # by place: a name may look like a pattern
        return type(frame)([each if each.name in free else each.cast(kinds[each.name]) for each in series])
    kinds = dict(origin.empty.dtypes)
    columns = {
        name: column.to_pandas() if name in free else _pandas_column(column, name, kinds[name], origin)
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return type(origin.empty)(columns)


def frame_of(table: pa.Table, kind: str) -> Any:
    """An Arrow table as a frame of the named kind: arrow, pandas or polars."""
    if kind == "polars":
        import narwhals as nw

        return nw.from_arrow(table, backend="polars").to_native()
    return table.to_pandas() if kind == "pandas" else table


def rows_of_series(cells: Any, rows: Any) -> Any:
    """Rows of a pandas or polars Series, with its name and type; None for any other object."""
    import narwhals as nw

    series = nw.from_native(cells, series_only=True, pass_through=True)
    return nw.maybe_reset_index(series[rows]).to_native() if isinstance(series, nw.Series) else None


def _pandas_column(column: pa.ChunkedArray, name: str, wanted: Any, origin: Origin) -> Any:
    if str(wanted) == "object":
        gap = origin.gaps.get(name)
        cells = [gap if cell is None else cell for cell in column.to_pylist()]
        return type(origin.empty[name])(cells, dtype=object)
    if hasattr(wanted, "__from_arrow__"):
        return type(origin.empty[name])(wanted.__from_arrow__(column), dtype=wanted)
    series = column.to_pandas()
    return series if series.dtype == wanted else series.astype(wanted)
