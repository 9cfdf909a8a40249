"""What a mechanism may know of a column's values: bounds, step and labels, and whether they are public."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.records import Block, BlockKind, Extent, Records
from sfumato.tables.codec import Codec
from sfumato.tables.moved_columns import exactly_on
from sfumato.tables.schema import Domain, Field, Kind, Schema

ROWS = 40


def extent_of(cells: object, field: Field) -> Extent | None:
    table = pa.table({field.name: cells})
    return Codec.fit(table, Schema((field,))).layout[0].extent


def test_declared_bounds_are_those_of_the_schema_and_open_ones_are_none() -> None:
    ages = np.arange(20, 20 + ROWS)
    both = Field("age", Kind.INTEGER, domain=Domain(declared=True, low=0, high=120))
    assert extent_of(ages, both) == Extent(True, 0.0, 120.0, 1.0)
    half = Field("age", Kind.INTEGER, domain=Domain(declared=True, low=0))
    assert extent_of(ages, half) == Extent(True, 0.0, None, 1.0)


def test_observed_bounds_are_the_extremes_and_are_marked() -> None:
    assert extent_of(np.arange(20.5, 60.5), Field("x", Kind.CONTINUOUS)) == Extent(False, 20.5, 59.5, None)


@pytest.mark.parametrize("kind", [Kind.NOMINAL, Kind.ORDINAL])
def test_labels_keep_their_order(kind: Kind) -> None:
    field = Field("size", kind, domain=Domain(declared=True, categories=("s", "m", "l")))
    extent = extent_of(["m", "l"] * ROWS, field)
    assert extent is not None
    assert extent.labels == ("s", "m", "l")
    assert extent.declared


def test_places_in_an_order_come_back_from_their_coordinate() -> None:
    field = Field("size", Kind.ORDINAL, domain=Domain(declared=True, categories=("s", "m", "l")))
    table = pa.table({"size": ["s", "l", "m", "l"] * ROWS})
    records = Codec.fit(table, Schema((field,))).encode(table)
    extent = records.layout[0].extent
    assert extent is not None
    np.testing.assert_allclose(records.values[:4, 0] * extent.unit + extent.origin, [0, 2, 1, 2], atol=1e-12)


@pytest.mark.parametrize(
    ("cells", "labels"),
    [([True, False] * ROWS, ("false", "true")), ([1, 2] * ROWS, ("1", "2")), ([0.5, 2.0] * ROWS, ("0.5", "2"))],
)
def test_categories_that_are_no_texts_have_labels_as_a_file_writes_them(cells: list[object], labels: object) -> None:
    kind = Kind.BOOLEAN if isinstance(cells[0], bool) else Kind.NOMINAL
    extent = extent_of(cells, Field("x", kind))
    assert extent is not None
    assert extent.labels == labels


def test_dates_have_an_extent_in_their_own_step() -> None:
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=day) for day in range(ROWS)]
    extent = extent_of(days, Field("born", Kind.DATE))
    assert extent is not None
    assert (extent.dates, extent.step, extent.declared) == ("day", 1.0, False)
    assert extent.low is not None
    assert extent.high is not None
    assert extent.high - extent.low == ROWS - 1


def test_an_extent_shows_no_bound() -> None:
    assert repr(Extent(False, 17.25, 99.5)) == "Extent(observed)"
    assert "17.25" not in repr(Block("x", BlockKind.NUMBER, 0, 1, extent=Extent(False, 17.25)))


@given(st.integers(-(10**6), 10**6), st.integers(0, 6), st.integers(1, 50), st.floats(-0.4, 0.4))
def test_numbers_on_a_decimal_grid_are_the_doubles_that_their_decimals_name(
    place: int, decimals: int, factor: int, off: float
) -> None:
    step = float(f"{factor}e-{decimals}")
    wanted = float(f"{place * factor}e-{decimals}")
    assert exactly_on(np.array([wanted + off * step]), (0.0, step))[0] == wanted


def test_numbers_on_a_binary_grid_are_exact_and_without_a_grid_nothing_changes() -> None:
    assert exactly_on(np.array([3 * 2.0**-16 + 1e-12]), (0.0, 2.0**-16))[0] == 3 * 2.0**-16
    odd = np.array([0.1234567])
    assert exactly_on(odd, None) is odd


def test_a_grid_of_a_column_that_was_not_moved_is_an_error() -> None:
    layout = (Block("x", BlockKind.NUMBER, 0, 1, (0.0,), 0.0, 1.0),)
    nothing = np.zeros(3, dtype=np.int64)
    with pytest.raises(ValueError, match="not moved"):
        Records(np.zeros((3, 1)), layout, nothing, nothing.copy(), grids=(("x", 0.0, 1.0),))
