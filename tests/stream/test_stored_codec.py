"""A codec that was stored encodes and decodes as the one that was fitted."""

from __future__ import annotations

import datetime
import json

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core.errors import BadInput
from sfumato.core.records import BlockKind
from sfumato.tables.codec import Codec, codec_from_document, codec_to_document, with_indicators
from sfumato.tables.field import Domain, Field, Kind
from sfumato.tables.schema import Schema

DAYS = [datetime.date(2020, 1, 1) + datetime.timedelta(days=3 * row) for row in range(30)]
TABLE = pa.table(
    {
        "pay": pa.array([None if row % 7 == 0 else row * 1.25 for row in range(30)]),
        "money": pa.array([row / 4 for row in range(30)]).cast(pa.decimal128(12, 2)),
        "age": pa.array(range(30), pa.int16()),
        "day": pa.array(DAYS),
        "when": pa.array([datetime.datetime(2021, 5, 1, 3, row) for row in range(30)]),
        "sex": pa.array(["f", "m"] * 15).dictionary_encode(),
        "word": pa.array(["a", "b", "?"] * 10),
        "yes": pa.array([True, None] * 15),
        "grade": pa.array(["low", "mid", "high"] * 10),
    }
)


def fitted() -> Codec:
    schema = Schema.infer(TABLE)
    grade = Field("grade", Kind.ORDINAL, domain=Domain(declared=True, categories=("low", "mid", "high")))
    return Codec.fit(TABLE, Schema(tuple(grade if field.name == "grade" else field for field in schema)))


def test_a_codec_comes_back_from_json_and_does_the_same_bit_for_bit() -> None:
    codec = fitted()
    again = codec_from_document(json.loads(json.dumps(codec_to_document(codec))))
    values = codec.encode(TABLE).values
    np.testing.assert_array_equal(again.encode(TABLE).values, values)
    noise = values + np.random.default_rng(3).normal(size=values.shape)
    assert again.decode(noise).equals(codec.decode(noise))
    assert again.layout == codec.layout
    assert [column.kind for column in again.columns] == [column.kind for column in codec.columns]
    assert [column.grid for column in again.columns] == [column.grid for column in codec.columns]


def test_a_document_that_is_none_is_refused() -> None:
    document = codec_to_document(fitted())
    for wrong in (
        {},
        document | {"kinds": "x"},
        document | {"columns": document["columns"][1:]},
        document | {"schema": 3},
    ):
        with pytest.raises(BadInput):
            codec_from_document(wrong)


def test_a_column_whose_marks_are_listed_has_an_indicator_before_a_cell_is_missing() -> None:
    table = pa.table({"word": ["a", "b"] * 10, "pay": [1.0, 2.0] * 10})
    fields = (
        Field("word", Kind.NOMINAL, domain=Domain(categories=("a", "b")), missing=("?", "")),
        Field("pay", Kind.CONTINUOUS),
    )
    codec = with_indicators(Codec.fit(table, Schema(fields)))
    assert [block.kind for block in codec.layout] == [BlockKind.CATEGORY, BlockKind.MISSING, BlockKind.NUMBER]
    later = pa.table({"word": ["a", "?", None], "pay": [1.0, 2.0, 3.0]}).slice(0, 3)
    later = later.set_column(1, "pay", pa.array([1.0, 2.0, 2.0]))
    back = codec.decode(codec.encode(later).values)
    assert back.column("word").to_pylist() == ["a", "?", "?"]
    assert with_indicators(codec) == codec
