"""The schema that is proposed for a table, and why."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato.core.errors import BadInput, SchemaError, TableError
from sfumato.tables.codec import Codec
from sfumato.tables.schema import DateStep, Field, Kind, Role, Schema

RNG = np.random.default_rng(7)


def infer(cells: Any, name: str = "column") -> Field:
    return Schema.infer(pa.table({name: cells}))[name]


def words(count: int) -> list[str]:
    return [f"word {place}" for place in range(count)]


@pytest.mark.parametrize(
    ("cells", "name"),
    [
        (words(30), "note"),
        (words(5), "note"),
        ([f"person {row % 12}" for row in range(30)] + words(18), "email"),
        ([f"p{row // 3}" for row in range(90)], "patient_id"),
        ([f"Ann {row % 30}" for row in range(300)], "last_name"),
        (list(range(100, 150)), "row"),
        ([7 * row + 3 for row in range(40)], "customerId"),
        ([row // 3 * 17 for row in range(90)], "patient_id"),
        ([float(row) for row in range(40)], "Unnamed: 0"),
        ([str(row) for row in range(1000, 1040)], "case"),
        ([2**60 + 3 * row for row in range(40)], "hash"),
        ([str(10**18 + 3 * row) for row in range(40)], "hash"),
        ([f"{row:05}" for row in range(40)], "number"),
        (pa.array(words(30)).dictionary_encode(), "who"),
    ],
)
def test_what_looks_like_an_identifier_is_proposed_as_one(cells: list[Any], name: str) -> None:
    assert infer(cells, name).role is Role.IDENTIFIER


@pytest.mark.parametrize(
    ("cells", "name"),
    [
        (RNG.permutation(10**6)[:500], "salary"),
        (RNG.normal(size=50), "score_number"),
        ([f"dept {row % 5}" for row in range(60)], "dept_id"),
        ([f"drug {row % 30}" for row in range(300)], "drug_name"),
        ([row % 30 for row in range(3000)], "visits_per_user"),
        ([row % 7 for row in range(100)], "room_no"),
        ([datetime.date(2020, 1, 1) + datetime.timedelta(days=row) for row in range(40)], "born"),
        ([row % 25 for row in range(600)], "paid"),
    ],
)
def test_what_only_differs_from_row_to_row_is_not_an_identifier(cells: Any, name: str) -> None:
    assert infer(cells, name).role is Role.CONFIDENTIAL


def test_all_distinct_salaries_are_whole_numbers_to_sanitize() -> None:
    field = infer(RNG.permutation(10**6)[:500], "salary")
    assert (field.kind, field.role) == (Kind.INTEGER, Role.CONFIDENTIAL)


def test_floats_that_are_whole_are_integers() -> None:
    field = infer([1.0, 2.0, None, 5.0])
    assert field.kind is Kind.INTEGER
    assert "kept as decimals" in field.reason


@pytest.mark.parametrize(
    ("cells", "categories"),
    [
        ([True, False], (False, True)),
        ([0, 1, 1], (0, 1)),
        ([0.0, 1.0, None], (0.0, 1.0)),
        ([Decimal("0.00"), Decimal("1.00")], (0.0, 1.0)),
        (["0", "1", "?"], ("0", "1")),
        (["yes", "no", "yes"], ("no", "yes")),
        (["TRUE", "False", ""], ("False", "TRUE")),
        (["t", "f"], ("f", "t")),
        ([" y", "n"], (" y", "n")),
    ],
)
def test_two_values_for_true_and_false_are_boolean(cells: list[Any], categories: tuple[Any, ...]) -> None:
    field = infer(cells)
    assert field.kind is Kind.BOOLEAN
    assert field.domain.categories == categories


def test_two_other_numbers_are_categories() -> None:
    assert infer([3, 7, 7]).kind is Kind.NOMINAL


@pytest.mark.parametrize(
    ("cells", "form", "step"),
    [
        (["2020-01-31", "2021-12-01"], "%Y-%m-%d", DateStep.DAY),
        (["2020-01-31 10:11:12", "2021-12-01 00:00:00"], "%Y-%m-%d %H:%M:%S", DateStep.SECOND),
        (["31.01.2020", "01.12.2021"], "%d.%m.%Y", DateStep.DAY),
        (["31/01/2020", "01/12/2021"], "%d/%m/%Y", DateStep.DAY),
        (["01/31/2020", "12/01/2021"], "%m/%d/%Y", DateStep.DAY),
        (["1/31/2020", "12/1/2021"], "%-m/%-d/%Y", DateStep.DAY),
        ([" 2020-01-31", "2021-12-01"], "%Y-%m-%d", DateStep.DAY),
    ],
)
def test_dates_in_text_are_dates(cells: list[str], form: str, step: DateStep) -> None:
    field = infer(cells)
    assert (field.kind, field.format, field.domain.step) == (Kind.DATE, form, step)
    assert "would fit" not in field.reason


def test_days_that_could_be_months_are_told() -> None:
    assert "%m/%d/%Y would fit too" in infer(["01/02/2020", "03/04/2021"]).reason


def test_dates_that_mean_the_same_in_two_formats_are_not_doubted() -> None:
    assert "would fit" not in infer(["05/05/2020", "11/11/2021"]).reason


@pytest.mark.parametrize("cells", [["2020-01-31", "yesterday"], ["2020-13-45", "2020-01-01"], ["0000-01-01"]])
def test_texts_that_are_not_all_dates_stay_text(cells: list[str]) -> None:
    assert infer(cells).kind is Kind.NOMINAL


@pytest.mark.parametrize("mark", ["?", "NA", "", "NULL", "nan", "N/A", "-", " ? "])
def test_the_usual_marks_mean_missing(mark: str) -> None:
    field = infer(["a", "b", mark, "a", mark])
    assert field.missing == (mark.strip(),)
    assert field.domain.categories == ("a", "b")
    assert field.reason.endswith(f"missing: {mark.strip()!r} (2 cells)" if mark else "2 missing")


def test_marks_do_not_keep_numbers_from_being_numbers() -> None:
    field = infer(["1", "25", "?", "7"])
    assert field.kind is Kind.INTEGER
    assert field.reason == "whole numbers, 3 different, missing: '?' (1 cell)"


def test_only_beside_columns_with_types_it_is_said_that_numbers_are_text() -> None:
    texts = pa.table({"age": ["31", "45", "28"], "town": ["Ulm", "Bari", "Ulm"]})
    typed = texts.append_column("pay", pa.array([1, 2, 7]))
    assert Schema.infer(texts)["age"].reason == "whole numbers, 3 different"
    assert Schema.infer(typed)["age"].reason == "whole numbers, 3 different, written as text"


def test_none_can_be_a_category() -> None:
    assert infer(["none", "mild", "severe", "none"]).domain.categories == ("mild", "none", "severe")


def test_digits_with_leading_zeros_are_not_numbers() -> None:
    field = infer(["01234", "98765", "00001", "01234"], "zip")
    assert field.kind is Kind.NOMINAL
    assert "leading zeros" in field.reason


@pytest.mark.parametrize("cells", [["+49151", "+49152", "+49151"], ["1,5", "2,5", "1,5"], ["0x1f", "0x2f", "0x1f"]])
def test_texts_that_no_number_is_written_back_to_are_categories(cells: list[str]) -> None:
    assert infer(cells).kind is Kind.NOMINAL


@pytest.mark.parametrize(
    ("cells", "step"),
    [
        ([place * 0.005 for place in range(0, 60, 2)] + [0.005 * place for place in range(1, 9, 2)], 0.005),
        ([100.0 * place for place in range(40)] + [900.0], 100.0),
        (np.array([0.1, 0.7, 0.3], dtype=np.float32), 0.1),
        (["0.50", "1.25"], 0.01),
        ([Decimal("84.07"), Decimal("0.30"), Decimal("1.10")], 0.01),
    ],
)
def test_the_step_of_decimals_is_found(cells: Any, step: float) -> None:
    values = [round(cell, 3) if isinstance(cell, float) else cell for cell in cells]
    assert infer(values if isinstance(cells, list) else cells).domain.step == step


def test_numbers_of_full_precision_have_no_step() -> None:
    field = infer(RNG.normal(size=100))
    assert (field.kind, field.domain.step) == (Kind.CONTINUOUS, None)


def test_ordered_categories_are_ordinal_and_stay_with_the_owner() -> None:
    grades = pd.Categorical(["low", "high", "low"], categories=["low", "middle", "high"], ordered=True)
    field = Schema.infer(pd.DataFrame({"grade": grades}))["grade"]
    assert (field.kind, field.domain.categories) == (Kind.ORDINAL, ("low", "middle", "high"))
    assert not field.domain.declared


def test_a_polars_enumeration_is_nominal_as_listing_is_not_ranking() -> None:
    frame = pl.DataFrame({"sex": pl.Series(["m", "f", "f"], dtype=pl.Enum(["m", "f", "x"]))})
    field = Schema.infer(frame)["sex"]
    assert (field.kind, field.domain.categories) == (Kind.NOMINAL, ("f", "m"))


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([[1], [2]]),
        pa.array([{"a": 1}, {"a": 2}]),
        pa.array([{"a": datetime.time(1)}] * 2),
        pa.array([datetime.timedelta(1), datetime.timedelta(2)]).dictionary_encode(),
        pa.array([b"a", b"b"]),
        pa.array([datetime.date(2020, 1, 1)] * 2).dictionary_encode(),
    ],
)
def test_a_type_without_a_kind_is_refused_by_name(cells: pa.Array) -> None:
    with pytest.raises(SchemaError, match=r"column 'odd' is of type .* convert it or drop it"):
        infer(cells, "odd")


def test_intervals_of_pandas_are_refused_by_name() -> None:
    with pytest.raises(SchemaError, match="column 'binned' is of type"):
        Schema.infer(pd.DataFrame({"binned": pd.cut([1, 2, 3], 2)}))


@pytest.mark.parametrize("cells", [[None, None], ["?", "?"], ["", None], [float("nan")] * 3])
def test_a_column_without_any_value_is_dropped_with_the_reason(cells: list[Any]) -> None:
    field = infer(cells, "empty")
    assert (field.role, field.reason) == (Role.IDENTIFIER, f"no value in any of its {len(cells)} rows")


@pytest.mark.parametrize("kind", [pa.null(), pa.bool_(), pa.date32(), pa.list_(pa.int8()), pa.duration("s")])
def test_a_column_of_nulls_is_dropped_whatever_its_type(kind: pa.DataType) -> None:
    assert infer(pa.array([None, None], kind), "empty").role is Role.IDENTIFIER


@pytest.mark.parametrize("cells", [[b"x", b"y"], [[1], [2]], [{"a": 1}] * 2, [1.0, float("inf")]])
def test_a_column_that_is_told_to_be_dropped_may_hold_anything(cells: list[Any]) -> None:
    table = pa.table({"odd": cells, "age": [30, 40]})
    assert Schema.infer(table, identifiers=["odd"])["odd"].role is Role.IDENTIFIER
    with pytest.raises(SchemaError, match="'odd'"):
        Schema.infer(table)


@pytest.mark.parametrize("cells", [[1.0, np.inf, -np.inf], ["1", "1e999", "-1e999"], ["1.5", "inf", "-Infinity"]])
def test_infinite_numbers_are_counted_and_refused(cells: list[Any]) -> None:
    with pytest.raises(SchemaError, match="column 'wide' holds 2 infinite numbers"):
        infer(cells, "wide")


def test_ten_thousand_categories_are_refused_by_name_and_count() -> None:
    table = pa.table({"street": words(10_000) * 2})
    with pytest.raises(SchemaError, match="column 'street' has 10000 categories and at most 200"):
        Codec.fit(table, Schema.infer(table))


@pytest.mark.parametrize(
    ("table", "words"),
    [(pa.table({}), "no columns"), (pa.table({"a": pa.array([], pa.int64())}), "no rows")],
)
def test_a_table_without_columns_or_rows_is_refused(table: pa.Table, words: str) -> None:
    with pytest.raises(TableError, match=words):
        Schema.infer(table)


@pytest.mark.parametrize(
    "moments",
    [pa.array([1], pa.timestamp("ns")), pa.array([10**15], pa.timestamp("s")), pa.array([-(10**6)], pa.date32())],
)
def test_moments_that_no_calendar_holds_are_counted_and_refused(moments: pa.Array) -> None:
    with pytest.raises(SchemaError, match="column 'seen' holds 1 times finer than a microsecond or outside the years"):
        infer(moments, "seen")


def test_every_field_has_a_reason_and_no_cell_stands_in_it() -> None:
    table = pa.table(
        {
            "text": ["canaria", "canarib", "canaria"] * 20,
            "unique": [f"canary{row}" for row in range(60)],
            "number": [864.25 + 3.5 * (row % 30) for row in range(60)],
            "whole": [86411 + 7 * (row % 31) for row in range(60)],
            "two": [86400, 86499] * 30,
            "constant": [86433] * 60,
            "day": ["1864-03-01", "1864-03-05", "?"] * 20,
            "code": [f"0864{row % 7}" for row in range(60)],
            "big": [2**60 + 864, 2**60] * 30,
            "ranked": pa.DictionaryArray.from_arrays([0, 1] * 30, ["canaria", "canariz"], ordered=True),
        }
    )
    schema = Schema.infer(table)
    assert all(field.reason for field in schema)
    told = str(schema) + repr(schema) + repr(schema.fields) + repr([field.domain for field in schema])
    assert not re.search(r"canar|864|1152921504606846976|3\.5", told)


def test_told_roles_keep_the_reason_of_the_kind() -> None:
    table = pa.table({"a": [1, 2, 5], "b": ["x", "y", "x"]})
    schema = Schema.infer(table, identifiers=["a"], target="b")
    assert (schema["a"].role, schema["b"].role) == (Role.IDENTIFIER, Role.TARGET)
    assert schema["b"].reason == "text with 2 categories; target, as specified"
    assert schema.with_role(Role.TARGET, "a")["b"].reason == "text with 2 categories"


def test_an_unknown_column_in_an_option_is_refused_with_those_there_are() -> None:
    with pytest.raises(BadInput, match="no column 'c'; the columns are 'a', 'b'"):
        Schema.infer(pa.table({"a": [1], "b": [2]}), target="c")


@pytest.mark.parametrize(("clear", "form"), [("31/12/2020", "%d/%m/%Y"), ("12/31/2020", "%m/%d/%Y")])
def test_dates_that_could_be_either_are_read_as_clear_ones_of_the_table(clear: str, form: str) -> None:
    table = pa.table({"open": ["01/02/2020", "03/04/2021"] * 20, "clear": [clear, "01/01/2020"] * 20})
    schema = Schema.infer(table)
    assert schema["open"].format == schema["clear"].format == form
    assert f"dates written as {form}, as other dates of the table are" in schema["open"].reason
    both = table.append_column("other", pa.array(["12/31/2020" if form.startswith("%d") else "31/12/2020"] * 40))
    assert "would fit too" in Schema.infer(both)["open"].reason
