"""Columns that were moved out of their domain: written as they are, and freed from old domains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core.records import Block, BlockKind, Records
from sfumato.tables.codec import Codec
from sfumato.tables.moved_columns import free_fields
from sfumato.tables.schema import Domain, Field, Kind, Schema

TABLES = {
    "whole": pa.array([3, 7, 12, 20]),
    "missing": pa.array([3, None, 12, 20]),
    "float": pa.array([0.25, 7.5, -3.0, float("nan")]),
    "text": pa.array(["3", "?", "12.5", "4"]),
    "single": pa.array([0.5, 1.5, 2.5, 4.5], pa.float32()),
}


@pytest.mark.parametrize("name", TABLES)
def test_coordinates_times_scale_plus_centre_are_the_numbers_in_their_own_units(name: str) -> None:
    table = pa.table({"c": TABLES[name]})
    codec = Codec.fit(table, Schema.infer(table))
    block = codec.layout[0]
    assert block.centre is not None
    assert block.scale is not None
    numbers, absent = codec.numbers(table, "c")
    own = codec.encode(table).values[:, 0] * block.scale + block.centre
    np.testing.assert_allclose(own[~absent], numbers[~absent], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", TABLES)
def test_a_moved_column_is_written_unclipped_with_its_gaps_off_its_step_but_whole_where_it_was(name: str) -> None:
    table = pa.table({"c": TABLES[name]})
    codec = Codec.fit(table, Schema.infer(table))
    values = codec.encode(table).values.copy()
    scale = codec.layout[0].scale
    assert scale is not None
    values[:, 0] += 1000.125 / scale
    cells = codec.decode(values, moved=frozenset({"c"}))
    whole = name in ("whole", "missing")
    assert cells.column("c").type == (pa.string() if name == "text" else pa.int64() if whole else pa.float64())
    before, absent = codec.numbers(table, "c")
    after, gone = codec.numbers(cells, "c", unseen="mean")
    np.testing.assert_array_equal(gone, absent)
    np.testing.assert_allclose(after[~gone], before[~absent] + (1000 if whole else 1000.125), rtol=1e-12)


@pytest.mark.parametrize(
    ("kind", "cells", "more"),
    [
        (Kind.ORDINAL, ["low", "high"], {"categories": ("low", "high")}),
        (Kind.NOMINAL, ["low", "high"], {"categories": ("low", "high")}),
    ],
)
def test_orders_and_categories_have_no_centre_and_cannot_be_moved(kind: Kind, cells: Any, more: Any) -> None:
    table = pa.table({"c": cells})
    records = Codec.fit(table, Schema((Field("c", kind, domain=Domain(**more)),))).encode(table)
    assert records.layout[0].centre is None
    with pytest.raises(ValueError, match="no plain numbers"):
        Records(records.values, records.layout, records.levels, records.strata, moved=frozenset({"c"}))


def test_a_block_shows_neither_centre_nor_scale() -> None:
    assert "77.125" not in repr(Block("c", BlockKind.NUMBER, 0, 1, (0.0,), 77.125, 77.125))


def test_moved_columns_lose_their_domain_and_the_others_keep_theirs() -> None:
    domain = Domain(declared=True, low=0, high=120)
    schema = Schema((Field("age", Kind.INTEGER, domain=domain), Field("years", Kind.INTEGER, domain=domain)))
    public = free_fields(schema, {"age"}).public_part()
    assert public["age"].kind is Kind.INTEGER
    assert free_fields(schema, {"age"}, (("age", 0.0, 5.0),))["age"].kind is Kind.INTEGER
    assert free_fields(schema, {"age"}, (("age", 0.5, 5.0),))["age"].kind is Kind.CONTINUOUS
    assert public["age"].domain == Domain()
    assert public["years"].domain == domain
