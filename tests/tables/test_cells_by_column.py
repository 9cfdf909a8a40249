"""Cells by column and the matrix that is made of them tell the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core.records import CellsByColumn, Records, cells_of_block, columns_of
from sfumato.tables.codec import Codec
from sfumato.tables.schema import Schema

ROWS = 400


def mixed(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    gone = rng.random((ROWS, 3)) < 0.1
    return pa.table(
        {
            "length": rng.normal(size=ROWS).round(3),
            "count": pa.array(rng.integers(0, 90, ROWS), mask=gone[:, 0]),
            "day": pa.array(rng.integers(9_000, 9_300, ROWS).astype("int32"), mask=gone[:, 1]).cast(pa.date32()),
            "town": pa.array([f"t{each}" for each in rng.integers(0, 5, ROWS)], mask=gone[:, 2]),
            "code": [f"c{each}" for each in rng.integers(0, 230, ROWS)],
            "well": rng.random(ROWS) < 0.4,
        }
    )


def encoded(seed: int) -> tuple[Codec, pa.Table, Records]:
    table = mixed(seed)
    codec = Codec.fit(table, Schema.infer(table), codes=True)
    return codec, table, codec.encode(table)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_matrix_is_that_of_a_table_encoded_row_by_row(seed: int) -> None:
    codec, table, records = encoded(seed)
    assert isinstance(records.coordinates, CellsByColumn)
    np.testing.assert_array_equal(records.values, codec.encode(table, unseen="mean").values)
    assert not records.values.flags.writeable


@pytest.mark.parametrize("asked", [False, True])
def test_columns_coordinates_and_rows_are_those_of_the_matrix(asked: bool) -> None:
    codec, table, records = encoded(3)
    held, values = records.coordinates, codec.encode(table, unseen="mean").values
    assert isinstance(held, CellsByColumn)
    if asked:
        assert records.values is held.values
    for block, missing in columns_of(records.layout):
        np.testing.assert_array_equal(held.column(block, missing), cells_of_block(values, block, missing))
    for place in range(values.shape[1]):
        np.testing.assert_array_equal(held.coordinate(place), values[:, place])
    rows = np.array([5, 399, 0, 7, 7])
    np.testing.assert_array_equal(records.take(rows).values, values[rows])


def test_a_table_comes_back_from_its_cells() -> None:
    codec, table, records = encoded(4)
    assert codec.decode(records.coordinates).equals(table)
    assert codec.decode(records.values).equals(table)


def test_cells_take_less_than_half_of_the_matrix() -> None:
    _, _, records = encoded(5)
    held = records.coordinates
    assert isinstance(held, CellsByColumn)
    bytes_held = sum(held._columns[block.column].nbytes for block, _ in columns_of(records.layout))
    assert 2 * bytes_held < 8 * np.prod(held.shape)
