"""The codec: what it refuses, how far apart its coordinates lie, and how it takes a table that it was not made on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core.errors import BadInput, OptionError, SchemaError, TableError
from sfumato.core.records import CATEGORY_SCALE, BlockKind
from sfumato.tables.codec import Codec
from sfumato.tables.schema import DateStep, Domain, Field, Kind, Role, Schema


def one(kind: Kind, **parts: Any) -> Schema:
    return Schema((Field("c", kind, domain=Domain(**parts)),))


def fitted(cells: Any) -> Codec:
    table = pa.table({"c": cells})
    return Codec.fit(table, Schema.infer(table).with_role(Role.CONFIDENTIAL, "c"))


def test_a_table_that_lacks_a_column_of_the_schema_is_refused() -> None:
    schema = Schema((Field("c", Kind.INTEGER), Field("d", Kind.INTEGER), Field("e", Kind.INTEGER)))
    with pytest.raises(OptionError, match="lacks 2 columns of the schema, the first is 'd'"):
        Codec.fit(pa.table({"c": [1]}), schema)


def test_a_table_with_a_column_that_the_schema_does_not_know_is_refused() -> None:
    table = pa.table({"c": [1, 2], "d": [1, 2]})
    with pytest.raises(OptionError, match="has 1 columns that the schema does not know, the first is 'd'"):
        Codec.fit(table, one(Kind.INTEGER))
    codec = Codec.fit(table.select(["c"]), one(Kind.INTEGER))
    with pytest.raises(OptionError, match="the first is 'd'"):
        codec.encode(table)


def test_identifiers_may_be_lacking_when_encoding() -> None:
    table = pa.table({"who": ["a", "b", "a"], "c": [1, 2, 5]})
    schema = Schema((Field("who", Kind.NOMINAL, Role.IDENTIFIER), Field("c", Kind.INTEGER)))
    codec = Codec.fit(table, schema)
    np.testing.assert_array_equal(codec.encode(table.select(["c"])).values, codec.encode(table).values)


def test_a_table_without_rows_or_columns_to_sanitize_is_refused() -> None:
    with pytest.raises(TableError, match="no rows"):
        Codec.fit(pa.table({"c": pa.array([], pa.int64())}), one(Kind.INTEGER))
    with pytest.raises(SchemaError, match="no column is left to sanitize"):
        Codec.fit(pa.table({"c": [1]}), one(Kind.INTEGER).with_role(Role.IDENTIFIER, "c"))


@pytest.mark.parametrize(
    ("cells", "schema", "words"),
    [
        (["a", "x", "y"], one(Kind.NOMINAL, categories=("a", "b")), "2 cells outside its categories"),
        (["a", "x", "y"], one(Kind.ORDINAL, categories=("a", "b")), "2 cells outside its categories"),
        (["a", "b"], one(Kind.ORDINAL), "lists no categories"),
        (["a", "b"], one(Kind.BOOLEAN, categories=(1.5, 2.5)), "2 cells outside its categories"),
        ([1, 2], one(Kind.NOMINAL, categories=("a", "b")), "not of the column's own type"),
        ([1, 5, 9], one(Kind.INTEGER, declared=True, low=2, high=8), "2 values outside its bounds"),
        ([1, 5, 9], one(Kind.INTEGER, low=2, high=9), "1 values outside its bounds"),
        ([0.1, 0.15, 0.27], one(Kind.CONTINUOUS, declared=True, step=0.1), "2 values off its step"),
        ([0, 5, 12], one(Kind.INTEGER, declared=True, low=0, step=5.0), "1 values off its step"),
        ([1, 2], one(Kind.CONTINUOUS, step=0.5), "choose a whole step"),
        ([1.5, 2.0], one(Kind.INTEGER), "1 values off its step"),
        ([1.5, 2.5], one(Kind.INTEGER), "2 values off its step"),
        (["a", "7", "b"], one(Kind.INTEGER), "declared integer but 2 cells are not numbers"),
        (["nan", "7"], one(Kind.CONTINUOUS), "1 cells are not numbers"),
        (["1e999", "7"], one(Kind.CONTINUOUS), "holds 1 infinite number; remove"),
        ([1.0, np.inf], one(Kind.CONTINUOUS), "holds 1 infinite number; remove"),
        ([1e307, -1e307], one(Kind.CONTINUOUS), "beyond 1e300"),
        ([2**53 + 1, 2**60, 1], one(Kind.INTEGER), r"2 numbers from 2\^53 on"),
        ([2**53 + 2, 2**60, 1], one(Kind.CONTINUOUS), r"2 numbers from 2\^53 on"),
        ([str(2**60), "1"], one(Kind.INTEGER), r"1 numbers from 2\^53 on"),
        ([2**53 - 1, 1 - 2**53], one(Kind.INTEGER), r"spans more than 2\^51 steps"),
        (["2020-01-01", "2020-01-01x"], one(Kind.DATE), "1 cells that are not dates of the form '%Y-%m-%d'"),
        ([1, 2], one(Kind.DATE), "declared a date but is of type int64"),
        (pa.array([1, 10**6], pa.timestamp("us")), one(Kind.DATE, step=DateStep.SECOND), "1 values off its step"),
        (pa.array([1, 2], pa.date32()), one(Kind.INTEGER), "declared integer but is of type date32"),
        (pa.array([1, 2], pa.date32()), one(Kind.NOMINAL), "cannot be nominal"),
        (pa.array(["1", "2"]).dictionary_encode(), one(Kind.INTEGER), "categorical in the table and declared integer"),
        (pa.array([[1], [2]]), one(Kind.NOMINAL), "cannot be nominal"),
        (pa.array([[1], [2]]), one(Kind.INTEGER), "is of type list"),
        ([None, None], one(Kind.INTEGER), "no value in any of its 2 rows"),
        (pa.array([None, None], pa.string()), one(Kind.NOMINAL), "no value in any of its 2 rows"),
    ],
)
def test_cells_that_do_not_fit_the_field_are_counted_and_the_column_named(
    cells: Any, schema: Schema, words: str
) -> None:
    with pytest.raises(SchemaError, match=words) as caught:
        Codec.fit(pa.table({"c": cells}), schema)
    assert "'c'" in str(caught.value)


@pytest.mark.parametrize(
    ("cells", "others", "words"),
    [
        (["a", "b", "a"], ["a", "z", "y"], "2 cells outside its categories"),
        (["a", "b", "a"], ["a", None, "b"], "1 missing cells here and none where the codec was made"),
        ([1, 5, 9], [1, 10, 11], "2 values outside its bounds"),
        ([1.5, 5.0, 9.25], [2.001], "1 values off its step"),
        ([1, 5, 9], ["1", "z"], "1 cells are not numbers"),
        ([1, 5, 9], [2, None], "1 missing cells here"),
    ],
)
def test_another_table_is_encoded_strictly_or_at_the_mean(cells: Any, others: Any, words: str) -> None:
    codec, other = fitted(cells), pa.table({"c": others})
    with pytest.raises(SchemaError, match=words):
        codec.encode(other)
    assert np.isfinite(codec.encode(other, unseen="mean").values).all()


def test_an_unseen_category_or_missing_cell_takes_the_mean_of_its_column() -> None:
    codec = fitted(["a", "b", "a", "a"])
    values = codec.encode(pa.table({"c": ["a", "z", None]}), unseen="mean").values
    np.testing.assert_allclose(values, np.array([[1, 0], [0.75, 0.25], [0.75, 0.25]]) * CATEGORY_SCALE)


def test_an_unseen_category_is_not_a_missing_cell() -> None:
    codec = fitted(["a", "b", None, "a"])
    values = codec.encode(pa.table({"c": ["z", None]}), unseen="mean").values
    assert values[:, 2].tolist() == [0.0, 1.0]
    np.testing.assert_array_equal(values[0, :2], values[1, :2])


def test_an_unseen_number_stands_where_it_lies() -> None:
    codec = fitted([0, 10, 20])
    values = codec.encode(pa.table({"c": [10.0, 30.0, 12.5, np.inf]}), unseen="mean").values[:, 0]
    np.testing.assert_allclose(values[1:3] / values[1], [1.0, 0.125])
    assert values[[0, 3]].tolist() == [0.0, 0.0]


def test_numbers_and_codes_of_another_table_count_what_they_cannot_read_as_missing() -> None:
    codec = fitted([1, 5, 9])
    values, absent = codec.numbers(pa.table({"c": ["1", "[2, 4)", None]}), "c", unseen="mean")
    assert (values.tolist(), absent.tolist()) == ([1.0, 0.0, 0.0], [False, True, True])
    words = fitted(["a", "b", "a"])
    assert words.codes(pa.table({"c": ["b", "z", None]}), "c", unseen="mean")[1].tolist() == [False, True, True]
    with pytest.raises(SchemaError, match="1 cells outside"):
        words.codes(pa.table({"c": ["b", "z", None]}), "c")
    assert words.codes(pa.table({"c": ["b", None]}), "c")[0].tolist() == [1, -1]


def test_there_is_no_third_way_to_take_unseen_cells() -> None:
    codec = fitted([1, 5, 9])
    with pytest.raises(BadInput, match="choose 'refuse' or 'mean'"):
        codec.encode(pa.table({"c": [1]}), unseen="zero")  # type: ignore[arg-type]


def test_two_different_categories_lie_at_distance_one() -> None:
    values = fitted(["a", "b", "c", "a"]).encode(pa.table({"c": ["a", "b", "c", "a"]})).values
    apart = np.linalg.norm(values[:, None] - values[None, :], axis=2)
    np.testing.assert_allclose(apart, 1.0 - np.equal.outer([0, 1, 2, 0], [0, 1, 2, 0]), atol=1e-12)


@pytest.mark.parametrize("cells", [[1, 2, 9, None, 4], [0.25, None, 1e-9, 7.123456789012345, 2.0]])
def test_coordinates_have_mean_zero_and_deviation_one_and_missing_cells_stand_at_the_mean(cells: list[Any]) -> None:
    table = pa.table({"c": cells})
    codec = fitted(cells)
    values = codec.encode(table).values
    gone = np.array([cell is None for cell in cells])
    assert [block.kind for block in codec.layout] == [BlockKind.NUMBER, BlockKind.MISSING]
    np.testing.assert_allclose(values[~gone, 0].mean(), 0.0, atol=1e-12)
    np.testing.assert_allclose(values[~gone, 0].std(), 1.0, atol=1e-12)
    assert values[gone, 0].tolist() == [0.0]
    np.testing.assert_array_equal(values[:, 1], gone)


@pytest.mark.parametrize("cells", [np.array([1e-200, 2e-200, 4e-200]), np.array([1e200, -1e200, 0.5e200])])
def test_very_small_and_very_large_numbers_are_standardized_too(cells: Any) -> None:
    values = Codec.fit(pa.table({"c": cells}), one(Kind.CONTINUOUS)).encode(pa.table({"c": cells})).values
    np.testing.assert_allclose([values.mean(), values.std()], [0.0, 1.0], atol=1e-12)


def test_a_constant_column_stands_at_zero() -> None:
    values = fitted([0.1] * 7).encode(pa.table({"c": [0.1] * 7})).values
    assert (values == 0.0).all()


def test_a_missing_category_stands_at_the_mean_and_one_away_in_the_indicator() -> None:
    values = fitted(["a", "b", "a", None]).encode(pa.table({"c": ["a", "b", "a", None]})).values
    np.testing.assert_allclose(values[3], [2 / 3 * CATEGORY_SCALE, 1 / 3 * CATEGORY_SCALE, 1.0])


def test_native_decoding_writes_numbers_and_dates_that_came_as_text_in_their_own_types() -> None:
    table = pa.table({"n": ["1.50", "2.25"], "i": ["4", "9"], "d": ["01.02.2020", "13.02.2020"], "w": ["a", "b"]})
    codec = Codec.fit(table, Schema.infer(table))
    native = codec.decode(codec.encode(table).values, native=True)
    assert [str(field.type) for field in native.schema] == ["double", "string", "date32[day]", "string"]
    assert native.column("n").to_pylist() == [1.5, 2.25]


def test_of_several_ways_to_write_a_missing_cell_the_most_frequent_is_written() -> None:
    for cells, gap in [(["a", "?", "?", "NA", None, "b"], "?"), (["a", None, None, "?", "b"], None)]:
        codec = fitted(cells)
        back = codec.decode(codec.encode(pa.table({"c": cells})).values).column("c").to_pylist()
        assert {cell for cell, given in zip(back, cells, strict=True) if given not in ("a", "b")} == {gap}


def test_coordinates_that_do_not_fit_the_layout_are_refused() -> None:
    codec = fitted([1, 5, 9])
    with pytest.raises(ValueError, match="do not fit a layout of 1"):
        codec.decode(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="1 coordinates are not finite"):
        codec.decode(np.array([[0.0], [np.nan]]))
