"""Read a table from another tool in the original's columns: other types, other spellings, unknown cells.

A tool that wrote the released table may keep whole numbers as decimals, dates as texts, or true and false as 1 and 0.
What means the same is read as the same; what cannot be read counts as missing and is counted, never shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.arrays import Bools, Ints
from sfumato.core.errors import SchemaError
from sfumato.tables.cells import NUMBER, absent_cells, is_number, is_text, plain, read_numbers, write_codes
from sfumato.tables.codec import Codec, EncodedColumn
from sfumato.tables.dates import DIGITS, fitting_formats, microseconds_of_cells, moments_of_texts
from sfumato.tables.field import Field, Kind
from sfumato.tables.infer import MISSING_MARKS

__all__ = ["AlignedTable", "align"]

_LISTED = (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL)
_NUMBER = re.compile(NUMBER)
_LEADING_ZERO = re.compile(r"^-?0\d")
_TRUTH = dict.fromkeys(("true", "t", "yes", "y", "1"), True) | dict.fromkeys(("false", "f", "no", "n", "0"), False)
_WORDS = {Kind.INTEGER: "a number", Kind.CONTINUOUS: "a number", Kind.DATE: "a date"}
_ENOUGH = 20


@dataclass(frozen=True, eq=False, repr=False)
class AlignedTable:
    """A table with the column types of the original.

    ``unread`` counts, for each column that has any, the cells that the original's column cannot hold and that are
    missing here; ``respelled`` the cells that name a category in another spelling.
    """

    table: pa.Table
    unread: dict[str, int]
    respelled: dict[str, int]


def align(table: pa.Table, codec: Codec, name: str) -> AlignedTable:
    """Read the columns that a codec encodes from a table written by another tool.

    Parameters
    ----------
    table : pyarrow.Table
        It has all these columns; others are left out.
    codec : Codec
        Fitted on the original.
    name : str
        What errors call the table.

    Raises
    ------
    SchemaError
        For a column of a type that cannot be compared, and for one of which no cell can be read.
    """
    arrays = []
    unread: dict[str, int] = {}
    respelled: dict[str, int] = {}
    for column in codec.columns:
        cells = _nulls_at_marks(plain(table.column(column.field.name)), column.field)
        read = _categories if column.field.kind in _LISTED else _dates if column.field.kind is Kind.DATE else _numbers
        array, strange, other = read(cells, column, name)
        lost, present = int(strange.sum()), len(cells) - cells.null_count
        few = column.field.kind in _LISTED and present < _ENOUGH  # rare categories may be all that a few rows have
        if lost and lost == present and not few:
            raise SchemaError(_nothing_read(column.field, lost, name))
        unread |= {column.field.name: lost} if lost else {}
        respelled |= {column.field.name: other} if other else {}
        arrays.append(array)
    return AlignedTable(pa.table(arrays, names=[column.field.name for column in codec.columns]), unread, respelled)


def _nulls_at_marks(array: pa.Array, field: Field) -> pa.Array:
    """Turn every cell that means a missing value, here or in the original, into a null."""
    listed = {category for category in field.domain.categories or () if isinstance(category, str)}
    absent = absent_cells(array, (*field.missing, *(mark for mark in MISSING_MARKS if mark not in listed)))
    return pc.if_else(pa.array(absent), pa.scalar(None, array.type), array) if absent.any() else array


def _missing_cells(array: pa.Array) -> Bools:
    return np.asarray(array.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)


def _numbers(array: pa.Array, column: EncodedColumn, name: str) -> tuple[pa.Array, Bools, int]:
    if not (is_number(array.type) or is_text(array.type) or pa.types.is_boolean(array.type) or _is_empty(array)):
        raise SchemaError(_wrong_type(array, column, name))
    values, absent = read_numbers(pa.chunked_array([array]), column.field)
    known = np.isfinite(values)
    return pa.array(np.where(known, values, 0.0), mask=~known), ~known & ~absent, 0


def _dates(array: pa.Array, column: EncodedColumn, name: str) -> tuple[pa.Array, Bools, int]:
    field, absent = column.field, _missing_cells(array)
    form = field.format
    if pa.types.is_integer(array.type) and form == DIGITS:
        array = array.cast(pa.string())
    if is_text(array.type):
        form = _form_of_dates(array, field, name)
        if form is None:  # fractions of a second, which no format here writes
            array = moments_of_texts(array)
    elif pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("us"), safe=False)
    elif not pa.types.is_date(array.type) and not _is_empty(array):
        raise SchemaError(_wrong_type(array, column, name))
    if _is_empty(array):
        return pa.nulls(len(array), pa.timestamp("us")), np.zeros(len(array), dtype=np.bool_), 0
    moments, strange = microseconds_of_cells(array, absent, Field(field.name, Kind.DATE, format=form))
    return pa.array(moments, mask=absent | strange).view(pa.timestamp("us")), strange, 0


def _form_of_dates(array: pa.Array, field: Field, name: str) -> str | None:
    """Find the date format: the original's if any cell has it, otherwise the one usual format that fits all."""
    texts = pc.unique(pc.utf8_trim_whitespace(array.drop_null()))
    usual = field.format or "%Y-%m-%d"
    _, strange = microseconds_of_cells(
        texts, np.zeros(len(texts), dtype=np.bool_), Field(field.name, Kind.DATE, format=usual)
    )
    if not strange.all() or not len(texts):
        return usual
    forms = fitting_formats(texts)
    if len(forms) > 1:
        raise SchemaError(
            f"the dates of column {field.name!r} in {name} can be read in {len(forms)} ways; write them as 2020-01-31"
        )
    return forms[0] if forms else None


def _categories(array: pa.Array, column: EncodedColumn, name: str) -> tuple[pa.Array, Bools, int]:
    if not (is_number(array.type) or is_text(array.type) or pa.types.is_boolean(array.type) or _is_empty(array)):
        raise SchemaError(_wrong_type(array, column, name))
    absent = _missing_cells(array)
    encoded = pc.dictionary_encode(array)
    places, others = _category_codes(encoded.dictionary.to_pylist(), column.field)
    index = np.asarray(pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False), dtype=np.int64)
    codes = np.full(len(array), -1, dtype=np.int64)
    codes[~absent] = places[index[~absent]]
    strange = (codes < 0) & ~absent
    written = write_codes(np.maximum(codes, 0), codes < 0, column.field, column.kind)
    return written, strange, int(others[index[~absent]].sum()) if len(others) else 0


def _category_codes(values: list[Any], field: Field) -> tuple[Ints, Bools]:
    """Index of each value among the categories, -1 if there is none, and whether only its spelling differs."""
    categories = field.domain.categories or ()
    meanings: list[dict[Any, int]] = []
    for level in range(4):
        found: dict[Any, list[int]] = {}
        for place, category in enumerate(categories):
            found.setdefault(_normalized(category, level, field), []).append(place)
        found.pop(None, None)
        meanings.append({key: some[0] for key, some in found.items() if len(some) == 1})  # two would be a guess
    places = np.full(len(values), -1, dtype=np.int64)
    others = np.zeros(len(values), dtype=np.bool_)
    for row, value in enumerate(values):
        for level, known in enumerate(meanings):
            key = _normalized(value, level, field)
            if key in known:
                places[row], others[row] = known[key], level >= 2
                break
    return places, others


def _normalized(value: Any, level: int, field: Field) -> Any:
    """Normalized category: a number, a truth value, or text without regard to case and spacing."""
    if value is None:
        return None
    text = str(value)
    if level == 0:
        return text
    if level == 1:
        if isinstance(value, str):
            bare = text.strip()
            return float(bare) if _NUMBER.match(bare) and not _LEADING_ZERO.match(bare) else None
        return float(value)
    if level == 2:
        return _TRUTH.get(text.strip().casefold().removesuffix(".0")) if field.kind is Kind.BOOLEAN else None
    return " ".join(text.casefold().split())


def _is_empty(array: pa.Array) -> bool:
    return bool(pa.types.is_null(array.type))


def _wrong_type(array: pa.Array, column: EncodedColumn, name: str) -> str:
    return (
        f"column {column.field.name!r} of {name} is of type {array.type} and {column.field.kind.value} in the "
        f"original ({len(array)} cells); convert it, or leave it out with --identifier"
    )


def _nothing_read(field: Field, lost: int, name: str) -> str:
    what = _WORDS.get(field.kind, "one of the original's categories")
    counted = any(_normalized(category, 1, field) is not None for category in field.domain.categories or ())
    hint = "declare it continuous with --schema" if counted else "convert it"
    return (
        f"none of the {lost} cells of column {field.name!r} in {name} is {what}; {hint}, or leave it out with "
        "--identifier"
    )
