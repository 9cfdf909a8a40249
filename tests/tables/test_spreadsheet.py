"""Texts that a spreadsheet would run are counted, written harmless and read back."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.tables.spreadsheet import FormulaCount, quote_formulas, unquote_formulas, unquoted_names

FORMULAS = ["=1+1", "+49 30", "-cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", "--5", "-5-", "=\n"]
HARMLESS = ["5", "-5", "-5.25", "-1e-05", "-", "=", "", "a=1", " =1", "'=1", "#1", "-.5"]


def of(*cells: str | None) -> pa.Table:
    return pa.table({"a": pa.array(cells, pa.string())})


def count(table: pa.Table) -> int:
    counter = FormulaCount(table.column_names)
    counter.add(table)
    return sum(counter.cells.values())


@pytest.mark.parametrize("text", FORMULAS)
def test_what_would_be_run_is_counted_and_gets_an_apostrophe(text: str) -> None:
    assert count(of(text, None)) == 1
    quoted = quote_formulas(of(text, None))
    assert quoted.column("a").to_pylist() == ["'" + text, None]
    assert count(quoted) == 0


@pytest.mark.parametrize("text", HARMLESS)
def test_numbers_and_other_texts_are_no_formulas(text: str) -> None:
    assert count(of(text)) == 0


def test_numbers_stay_as_they_are() -> None:
    table = pa.table({"a": [-1, -2], "b": [-1.5, None], "c": ["-3", "-4.5"]})
    assert quote_formulas(table).equals(table)


def test_names_of_columns_are_counted_and_quoted() -> None:
    table = pa.table({"=a": [1], "b": ["x"]})
    (fact,) = FormulaCount(table.column_names).facts(quoted=False)
    assert (fact.columns, fact.cells, fact.names) == ((), 0, 1)
    assert quote_formulas(table).column_names == ["'=a", "b"]
    assert unquoted_names(["'=a", "b", "'c"]) == ("=a", "b", "'c")


def test_categories_of_a_dictionary_are_texts() -> None:
    table = pa.table({"a": pa.array(["=x", "y"] * 2).dictionary_encode()})
    assert count(table) == 2
    assert quote_formulas(table).column("a").to_pylist() == ["'=x", "y"] * 2


texts = st.text(st.sampled_from("'=+-@\t\r\n1a."), max_size=5)


@given(st.lists(st.one_of(st.none(), texts), min_size=1, max_size=4))
def test_taking_the_apostrophe_away_gives_the_text_back(cells: list[str | None]) -> None:
    table = of(*cells)
    quoted = quote_formulas(table)
    assert count(quoted) == 0
    assert unquote_formulas(quoted).equals(table)
