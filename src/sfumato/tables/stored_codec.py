"""Store a codec as plain values, so that a stream can resume; no pickle.

The document holds means, scales and, of columns without a declared domain, observed bounds: it stays with the owner.
A codec that was fitted on some rows is rescaled to mean and deviation of all.
"""

from __future__ import annotations

import base64
import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sfumato.core.documents import plain, typed
from sfumato.core.errors import BadInput
from sfumato.core.records import Block, BlockKind
from sfumato.tables.cells import Gap, MissingForms
from sfumato.tables.codec import Codec, EncodedColumn
from sfumato.tables.grid import Grid, extent_of_numbers, fitting_moments
from sfumato.tables.moved_columns import own_units
from sfumato.tables.schema import Schema

__all__ = ["codec_from_document", "codec_to_document", "rescale", "with_indicators"]


@dataclass(frozen=True)
class _StoredMissingForms:
    ways: tuple[dict[str, bool] | Gap, ...]
    shares: tuple[float, ...]


@dataclass(frozen=True)
class _StoredColumn:
    """A column of a codec beside its field and type; NaN is stored as a word, because JSON has none."""

    blocks: tuple[Block, ...]
    grid: Grid | None
    mean: float
    scale: float
    gap: dict[str, bool] | _StoredMissingForms | Gap


@dataclass(frozen=True)
class _StoredCodec:
    schema: str
    kinds: str
    columns: tuple[_StoredColumn, ...]


def codec_to_document(codec: Codec) -> dict[str, Any]:
    """Codec as plain values that JSON holds without loss.

    Examples
    --------
    >>> table = pa.table({"age": [30, 40, 50], "sex": ["f", None, "f"]})
    >>> codec = Codec.fit(table, Schema.infer(table))
    >>> again = codec_from_document(codec_to_document(codec))
    >>> bool((again.encode(table).values == codec.encode(table).values).all())
    True
    """
    kinds = pa.schema([(column.field.name, column.kind) for column in codec.columns])
    return {
        "schema": codec.schema.to_toml(),
        "kinds": base64.b64encode(kinds.serialize().to_pybytes()).decode("ascii"),
        "columns": [
            plain(_StoredColumn(column.blocks, column.grid, column.mean, column.scale, _store_missing_form(column.gap)))
            for column in codec.columns
        ],
    }


def codec_from_document(document: dict[str, Any]) -> Codec:
    """Codec from stored values; it encodes and decodes exactly as the original.

    Raises
    ------
    BadInput
        If the document is not one of a codec.
    """
    try:
        stored = typed(_StoredCodec, document)
        schema = Schema.from_toml(stored.schema)
        kinds = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stored.kinds, validate=True)))
        columns = tuple(
            EncodedColumn(
                schema[name],
                kinds.field(name).type,
                column.blocks,
                column.grid,
                float(column.mean),
                float(column.scale),
                _restore_missing_form(column.gap),
            )
            for name, column in zip(kinds.names, stored.columns, strict=True)
        )
        return Codec(schema, columns)
    except (KeyError, TypeError, ValueError, OSError, pa.ArrowException) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput("the stored codec cannot be read; it was written by another version or altered") from None


def with_indicators(codec: Codec) -> Codec:
    """Codec with a missing indicator for every column whose schema lists missing marks.

    A table that a codec is fitted on may have no missing cell where a later one has some: the marks of the schema say
    that they are to be expected.
    """
    columns: list[EncodedColumn] = []
    for column in codec.columns:
        start = columns[-1].blocks[-1].stop if columns else 0
        shift = start - column.blocks[0].start
        blocks = [
            dataclasses.replace(block, start=block.start + shift, stop=block.stop + shift) for block in column.blocks
        ]
        if len(blocks) == 1 and column.field.missing:
            blocks.append(Block(column.field.name, BlockKind.MISSING, blocks[0].stop, blocks[0].stop + 1))
            column = dataclasses.replace(column, gap=column.field.missing[0])
        columns.append(dataclasses.replace(column, blocks=tuple(blocks)))
    return Codec(codec.schema, tuple(columns))


def _store_missing_form(gap: Gap | MissingForms) -> dict[str, bool] | _StoredMissingForms | Gap:
    if isinstance(gap, MissingForms):
        return _StoredMissingForms(tuple(_store_form(way) for way in gap.ways), gap.shares)
    return _store_form(gap)


def _store_form(way: Gap) -> dict[str, bool] | Gap:
    return {"nan": True} if isinstance(way, float) and math.isnan(way) else way


def _restore_missing_form(stored: dict[str, bool] | _StoredMissingForms | Gap) -> Gap | MissingForms:
    if isinstance(stored, _StoredMissingForms):
        return MissingForms(tuple(math.nan if isinstance(way, dict) else way for way in stored.ways), stored.shares)
    return math.nan if isinstance(stored, dict) else stored


def rescale(codec: Codec, moments: Mapping[str, tuple[float, float]]) -> Codec:
    """Codec with other means and deviations of some columns, given in its own coordinates.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.tables.schema import Schema
    >>> table = pa.table({"pay": [0.5, 1.25, 7.0]})
    >>> codec = Codec.fit(table, Schema.infer(table))
    >>> twice = rescale(codec, {"pay": (0.0, 2.0)})
    >>> bool((twice.encode(table).values * 2.0 == codec.encode(table).values).all())
    True
    """
    told = [(column, moments.get(column.field.name)) for column in codec.columns]
    return Codec(
        codec.schema, tuple(column if found is None else _rescale_column(column, *found) for column, found in told)
    )


def _rescale_column(column: EncodedColumn, mean: float, deviation: float) -> EncodedColumn:
    grid = column.grid
    if grid is None or deviation <= 0.0:
        return column
    mean, scale = fitting_moments(column.mean + column.scale * mean, column.scale * deviation, grid)
    centre, unit = own_units(grid, mean, scale, column.field) or (None, None)
    within = extent_of_numbers(column.field, grid, mean, scale, column.kind)
    number = dataclasses.replace(column.blocks[0], centre=centre, scale=unit, extent=within)
    return dataclasses.replace(column, blocks=(number, *column.blocks[1:]), mean=mean, scale=scale)
