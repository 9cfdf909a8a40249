"""The border to data frames: what is read, what is refused, and that an index stays behind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato.core.errors import TableError
from sfumato.tables.frames import restore, to_arrow
from tests.tables.columns import confidential, roundtrip


@pytest.mark.parametrize("thing", [[1, 2], {"a": [1]}, b"table.csv", None, np.zeros((2, 2)), pd.Series([1, 2])])
def test_what_is_not_a_table_is_refused_by_its_type(thing: Any) -> None:
    with pytest.raises(TableError, match=rf"a {type(thing).__name__} is not a table that can be read"):
        to_arrow(thing)


def test_a_series_of_polars_is_not_a_table() -> None:
    with pytest.raises(TableError, match="a Series is not a table"):
        to_arrow(pl.Series([1]))


def test_a_lazy_frame_is_to_be_collected_first() -> None:
    with pytest.raises(TableError, match=r"LazyFrame is not computed yet; pass what its collect\(\) gives"):
        to_arrow(pl.DataFrame({"a": [1]}).lazy())


def test_a_column_that_stands_twice_is_refused_by_name() -> None:
    with pytest.raises(TableError, match="column 'a' stands 2 times"):
        to_arrow(pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]))
    with pytest.raises(TableError, match="column 'a' stands 2 times"):
        to_arrow(pa.table([[1], [2]], names=["a", "a"]))


@pytest.mark.parametrize("names", [[0, 1], [("a", "b"), ("a", "c")], ["a", None]])
def test_names_that_are_not_text_are_counted_and_refused(names: list[Any]) -> None:
    odd = sum(not isinstance(name, str) for name in names)
    with pytest.raises(TableError, match=f"{odd} column names are not text"):
        to_arrow(pd.DataFrame([[1, 2]], columns=pd.Index(names, dtype=object)))


@pytest.mark.parametrize("cells", [[1, "canary"], [True, 7], [1 + 2j], [object()], [2**70, -1]])
def test_objects_of_mixed_types_are_refused_by_name_and_not_quoted(cells: list[Any]) -> None:
    with pytest.raises(TableError, match="column 'odd' holds cells of mixed or unreadable types") as caught:
        to_arrow(pd.DataFrame({"odd": pd.Series(cells, dtype=object)}))
    assert "canary" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_integers_of_128_bits_are_refused_by_name() -> None:
    with pytest.raises(TableError, match="column 'wide'"):
        to_arrow(pl.DataFrame({"wide": pl.Series([1, 2], dtype=pl.Int128)}))


def test_the_index_of_a_pandas_frame_does_not_leave() -> None:
    frame = pd.DataFrame({"a": [1, 2, 5]}, index=pd.Index(["ann", "bob", "cy"], name="who"))
    table, origin = to_arrow(frame)
    assert table.column_names == ["a"]
    assert b"who" not in table.schema.metadata[b"pandas"]
    assert b"ann" not in table.schema.metadata[b"pandas"]
    back = roundtrip(frame, confidential(frame))
    assert back.index.equals(pd.RangeIndex(3))
    assert back.index.name is None
    assert len(origin.empty) == 0


def test_the_metadata_of_an_arrow_table_does_not_leave() -> None:
    frame = pd.DataFrame({"a": [1, 2, 5]}, index=pd.Index(["ann", "bob", "cy"]))
    table = pa.Table.from_pandas(frame).select(["a"])
    table = table.cast(pa.schema([pa.field("a", pa.int64(), metadata={"first": "ann"})], metadata={"who": "ann"}))
    back = roundtrip(table, confidential(table))
    assert back.schema.metadata is None
    assert back.schema.field("a").metadata is None


def test_a_subset_of_columns_is_restored_in_its_own_order() -> None:
    for frame in (pd.DataFrame({"a": [1], "b": ["x"]}), pl.DataFrame({"a": [1], "b": ["x"]})):
        table, origin = to_arrow(frame)
        assert list(restore(table.select(["b", "a"]), origin).columns) == ["b", "a"]
        assert list(restore(table.select(["b"]), origin).columns) == ["b"]


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA, pd.NaT])
def test_objects_keep_their_own_missing_value(gap: Any) -> None:
    frame = pd.DataFrame({"a": pd.Series(["x", gap, "y", "x"], dtype=object)})
    assert roundtrip(frame, confidential(frame))["a"].tolist()[1] is gap


@pytest.mark.parametrize("gap", [None, float("nan")])
def test_null_and_nan_of_polars_stay_apart(gap: float | None) -> None:
    frame = pl.DataFrame({"a": [1.5, gap, 2.25, 7.0]})
    back = roundtrip(frame, confidential(frame))
    assert back["a"].null_count() == (gap is None)


def test_reprs_say_the_library_only() -> None:
    assert repr(to_arrow(pd.DataFrame({"canary": ["canary"]}))[1]) == "Origin(pandas)"


def test_a_polars_column_whose_name_looks_like_a_pattern_comes_back() -> None:
    frame = pl.DataFrame({"0": [1, 2, 3], "^.$": [4.5, 5.5, 6.5]})
    table, origin = to_arrow(frame)
    back = restore(table, origin)
    assert back.equals(frame)
    assert back.schema == frame.schema
