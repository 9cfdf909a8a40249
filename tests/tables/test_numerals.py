"""Numbers as people write them, and how they are read."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import OptionError
from sfumato.tables.files import read_file, read_numerals
from sfumato.tables.numerals import Numerals, NumeralScan, plain_numerals, rewrite_numerals
from tests.examples import examples

MARKS = ("", "NA")


def read(cells: list[str], decimal: str | None = None, likely: str | None = None) -> tuple[list[str], Numerals]:
    table, found = plain_numerals(pa.table({"x": cells}), MARKS, decimal=decimal, likely=likely)
    return table.column("x").to_pylist(), found


@pytest.mark.parametrize(
    ("cells", "plainly"),
    [
        (["1,5", "2", "NA", ""], ["1.5", "2", "NA", ""]),
        (["1.234,50", "-7,25"], ["1234.50", "-7.25"]),
        (["1,234.50", "7"], ["1234.50", "7"]),
        (["1.234.567", "12"], ["1234567", "12"]),
        (["1 234,5", " 12,0 "], ["1234.5", "12.0"]),
        (["1'234.50", "3.25"], ["1234.50", "3.25"]),
        (["0,518", "2,350"], ["0.518", "2.350"]),
        (["1234,567", "2,350"], ["1234.567", "2.350"]),
    ],
)
def test_numbers_as_people_write_them_get_a_decimal_point(cells: list[str], plainly: list[str]) -> None:
    assert read(cells)[0] == plainly


@pytest.mark.parametrize(
    "cells",
    [
        ["1.5", "2"],
        ["1,2,3", "4"],
        ["01,5", "2,5"],
        ["123 456", "654 321"],
        ["1,5", "two"],
        ["10.11.2020", "12.11.2020"],
        ["192.168.1.1", "10.0.0.1"],
        ["", "NA"],
        ["12,", ",5"],
    ],
)
def test_texts_that_are_no_such_numbers_stay(cells: list[str]) -> None:
    assert read(cells) == (cells, Numerals())


def test_what_could_be_thousands_or_decimals_stays_and_is_named_until_told() -> None:
    cells = ["1,234", "5,678"]
    kept, found = read(cells)
    assert (kept, found.doubtful) == (cells, ("x",))
    assert "--decimal" in found.sentences()[0]
    assert read(cells, decimal=",")[0] == ["1.234", "5.678"]
    assert read(cells, decimal=".")[0] == ["1234", "5678"]
    assert read(cells, likely=",")[0] == ["1.234", "5.678"]


def test_a_clear_column_settles_a_doubtful_one() -> None:
    table, found = plain_numerals(pa.table({"a": ["1,234"], "b": ["0,5"], "c": ["1.234"], "d": ["7"]}), MARKS)
    assert table.to_pydict() == {"a": ["1.234"], "b": ["0.5"], "c": ["1234"], "d": ["7"]}
    assert found == Numerals(("a", "b"), ("c",))
    table, found = plain_numerals(pa.table({"a": ["1,234"], "b": ["1,234.5"], "c": ["1.234"]}), MARKS)
    assert table.to_pydict() == {"a": ["1234"], "b": ["1234.5"], "c": ["1.234"]}


def test_a_told_point_leaves_commas_alone() -> None:
    assert read(["1,5", "2,25"], decimal=".")[0] == ["1,5", "2,25"]
    with pytest.raises(OptionError, match="neither"):
        read(["1"], decimal=";")


def test_a_missing_cell_and_typed_columns_stay() -> None:
    table = pa.table({"a": pa.array(["1,5", None]), "b": [1.5, 2.5]})
    assert plain_numerals(table, MARKS)[0].to_pydict() == {"a": ["1.5", None], "b": [1.5, 2.5]}


@given(st.lists(st.decimals(-(10**9), 10**9, places=2), min_size=1, max_size=8))
@examples(50)
def test_german_and_american_writing_of_the_same_numbers_read_the_same(numbers: list[object]) -> None:
    american = [f"{number:,.2f}" for number in numbers]
    german = [text.translate(str.maketrans(",.", ".,")) for text in american]
    plainly = [f"{number:.2f}" for number in numbers]
    assert read(american)[0] == plainly
    assert read(german)[0] == plainly


def test_semicolons_between_cells_make_commas_decimal(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a;b\n1,234;x\n5,678;y\n")
    table, form = read_numerals(*read_file(tmp_path / "t.csv"))
    assert table.column("a").to_pylist() == ["1.234", "5.678"]
    assert (form.delimiter, form.decimal) == (";", ",")


def test_a_delimiter_can_be_told(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,c;d\n1,2,3;4\n")
    assert read_file(tmp_path / "t.csv", delimiter=";")[0].to_pydict() == {"a,b,c": ["1,2,3"], "d": ["4"]}
    with pytest.raises(OptionError, match="one plain character"):
        read_file(tmp_path / "t.csv", delimiter=";;")


WRITTEN = st.sampled_from(
    [
        "1,5",
        "1.5",
        "7",
        "1.234",
        "1,234",
        "1.234,50",
        "1,234.5",
        "01,5",
        "1e5",
        "5.",
        "inf",
        "x",
        "NA",
        " 2,5 ",
        "1 234",
    ]
)


@given(
    st.lists(st.tuples(WRITTEN, WRITTEN), min_size=1, max_size=12),
    st.sets(st.integers(1, 11)),
    st.sampled_from([None, ",", "."]),
    st.sampled_from([None, ","]),
)
@examples(200)
def test_rows_that_come_in_parts_are_read_as_all_at_once(
    rows: list[tuple[str, str]], cuts: set[int], decimal: str | None, likely: str | None
) -> None:
    table = pa.table({"a": [row[0] for row in rows], "b": [row[1] for row in rows]})
    edges = [0, *sorted(cut for cut in cuts if cut < len(rows)), len(rows)]
    parts = [table.slice(start, stop - start) for start, stop in itertools.pairwise(edges)]
    one, joined = NumeralScan(MARKS), NumeralScan(MARKS)
    for part in parts:
        one.add(part)
        other = NumeralScan(MARKS)
        other.add(part)
        joined.join(other.to_json())
    assert one.decide(decimal, likely) == joined.decide(decimal, likely)
    whole, found = plain_numerals(table, MARKS, decimal=decimal, likely=likely)
    numerals = one.decide(decimal, likely)
    assert (numerals, numerals.marks) == (found, found.marks)
    assert pa.concat_tables([rewrite_numerals(part, numerals.marks) for part in parts]).to_pydict() == whole.to_pydict()


def test_a_column_that_begins_with_a_thousand_missing_cells_is_read_too() -> None:
    assert read(["NA"] * 1_200 + ["1,5", "2,5"])[0][-2:] == ["1.5", "2.5"]
