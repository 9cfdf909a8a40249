"""Ids of batches: the same rows at the same place, however they were read."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import TableError
from sfumato.stream.entries import batch_id, cut_batches, place_of

CELLS = st.lists(st.one_of(st.none(), st.text(max_size=5)), min_size=1, max_size=20)


@given(CELLS, st.data())
def test_an_id_does_not_depend_on_how_the_rows_were_read(cells: list[str | None], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(cells)))
    whole = pa.table({"word": pa.array(cells, pa.string())})
    pieces = pa.concat_tables([whole.slice(0, cut), whole.slice(cut)])
    padded = pa.table({"word": pa.array(["before", *cells], pa.string())}).slice(1)
    coded = pa.table({"word": whole.column("word").combine_chunks().dictionary_encode()})
    assert len({batch_id(0, table) for table in (whole, pieces, padded, coded)}) == 1


@given(CELLS, CELLS)
def test_other_rows_have_another_id(left: list[str | None], right: list[str | None]) -> None:
    ids = [batch_id(0, pa.table({"word": pa.array(cells, pa.string())})) for cells in (left, right)]
    assert (ids[0] == ids[1]) == (left == right)


def test_place_source_columns_and_missing_cells_tell_batches_apart() -> None:
    table = pa.table({"age": [1, 2]})
    others = [
        batch_id(1, table),
        batch_id(0, table, source="north"),
        batch_id(0, pa.table({"pay": [1, 2]})),
        batch_id(0, pa.table({"age": [1.0, 2.0]})),
        batch_id(0, pa.table({"age": pa.array([0, None])})),
        batch_id(0, pa.table({"age": pa.array([0, 0])})),
        batch_id(0, table.slice(0, 1)),
    ]
    assert len({batch_id(0, table), *others}) == 1 + len(others)


def test_dates_booleans_and_decimals_have_ids() -> None:
    day = datetime.date(2020, 1, 31)
    one = pa.table({"day": [day, None], "yes": [True, None], "much": pa.array([None, 5]).cast(pa.decimal128(25, 2))})
    assert batch_id(0, one) == batch_id(0, pa.concat_tables([one.slice(0, 1), one.slice(1)]))


@given(st.lists(st.integers(0, 12), min_size=1, max_size=6), st.integers(1, 7))
def test_batches_do_not_depend_on_how_the_source_is_chunked(sizes: list[int], rows: int) -> None:
    values = np.arange(sum(sizes))
    ends = np.cumsum(sizes)
    parts = [pa.table({"x": values[end - size : end]}) for size, end in zip(sizes, ends, strict=True)]
    chunked, whole = list(cut_batches(parts, rows)), list(cut_batches([pa.table({"x": values})], rows))
    assert [identity for identity, _ in chunked] == [identity for identity, _ in whole]
    assert [cell for _, table in chunked for cell in table.column("x").to_pylist()] == values.tolist()
    assert all(table.num_rows == rows for _, table in chunked[:-1])


def test_an_id_tells_its_place() -> None:
    assert place_of(batch_id(12, pa.table({"x": [1]}), source="a:b")) == ("a:b", 12)
    assert place_of("offset 17 of topic 3-4") is None


@pytest.mark.parametrize("cells", [[[31337]], [{"a": 31337}], [b"\xff31337"]])
def test_a_column_that_cannot_be_read_is_named_and_not_quoted(cells: list[object]) -> None:
    with pytest.raises(TableError, match="column 'word' holds cells that are no numbers") as caught:
        batch_id(0, pa.table({"word": cells}))
    assert "31337" not in str(caught.value)
