from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core.errors import SchemaError
from sfumato.tables.align import AlignedTable, align
from sfumato.tables.codec import Codec
from sfumato.tables.schema import Schema

ROWS = 60
DAYS = [datetime.date(2020, 1, 1) + datetime.timedelta(days=5 * row % 300) for row in range(ROWS)]
NUMBERS = [float(row % 23) for row in range(ROWS)]
COLOURS = [("red", "Green", "blue")[row % 3] for row in range(ROWS)]
FLAGS = [row % 4 == 0 for row in range(ROWS)]


def aligned(original: Any, released: Any) -> AlignedTable:
    before = pa.table({"x": original, "other": NUMBERS})
    codec = Codec.fit(before, Schema.infer(before))
    return align(pa.table({"x": released, "other": NUMBERS}), codec, "the released table")


def read(original: Any, released: Any) -> list[Any]:
    """Read a released column as the codec of the original does, in its own units or codes."""
    before = pa.table({"x": original, "other": NUMBERS})
    codec = Codec.fit(before, Schema.infer(before))
    table = align(pa.table({"x": released, "other": NUMBERS}), codec, "the released table").table
    place = next(column for column in codec.columns if column.field.name == "x").blocks[0].where
    return list(codec.encode(table, unseen="mean").values[:, place].tolist())


FLAG_FORMS = {
    "booleans": FLAGS,
    "integers": [int(flag) for flag in FLAGS],
    "decimals": [float(flag) for flag in FLAGS],
    "digits": [str(int(flag)) for flag in FLAGS],
    "decimal digits": [str(float(flag)) for flag in FLAGS],
    "Python's words": [str(flag) for flag in FLAGS],
    "small words": [str(flag).lower() for flag in FLAGS],
    "yes and no": ["Yes" if flag else "No" for flag in FLAGS],
}


@pytest.mark.parametrize("released", list(FLAG_FORMS))
@pytest.mark.parametrize("original", [form for form in FLAG_FORMS if form != "decimal digits"])  # those are numbers
def test_true_and_false_are_read_in_every_usual_form(original: str, released: str) -> None:
    before = FLAG_FORMS[original]
    assert aligned(before, FLAG_FORMS[released]).unread == {}
    assert read(before, FLAG_FORMS[released]) == read(before, before)


NUMBER_FORMS = {
    "integers": pa.array([int(number) for number in NUMBERS]),
    "decimals": pa.array(NUMBERS),
    "singles": pa.array(NUMBERS, pa.float32()),
    "texts": pa.array([str(int(number)) for number in NUMBERS]),
    "decimal texts": pa.array([f" {number:.2f} " for number in NUMBERS]),
    "categories": pa.array([str(number) for number in NUMBERS]).dictionary_encode(),
    "decimal type": pa.array(NUMBERS).cast(pa.decimal128(14, 2)),
}


@pytest.mark.parametrize("released", list(NUMBER_FORMS))
@pytest.mark.parametrize("original", ["integers", "decimals", "texts", "decimal texts"])
def test_numbers_are_read_in_every_usual_form(original: str, released: str) -> None:
    before = NUMBER_FORMS[original]
    assert aligned(before, NUMBER_FORMS[released]).unread == {}
    np.testing.assert_allclose(read(before, NUMBER_FORMS[released]), read(before, before), atol=1e-9)


DATE_FORMS = {
    "dates": pa.array(DAYS),
    "moments": pa.array(DAYS).cast(pa.timestamp("ns")),
    "zoned moments": pa.array(DAYS).cast(pa.timestamp("us", "UTC")),
    "ISO texts": pa.array([day.isoformat() for day in DAYS]),
    "German texts": pa.array([day.strftime("%d.%m.%Y") for day in DAYS]),
    "long texts": pa.array([f"{day.isoformat()} 00:00:00" for day in DAYS]),
    "longest texts": pa.array([f"{day.isoformat()}T00:00:00.000000" for day in DAYS]),
}


@pytest.mark.parametrize("released", list(DATE_FORMS))
@pytest.mark.parametrize("original", ["dates", "moments", "ISO texts", "German texts"])
def test_dates_are_read_in_every_usual_form(original: str, released: str) -> None:
    before = DATE_FORMS[original]
    assert aligned(before, DATE_FORMS[released]).unread == {}
    np.testing.assert_allclose(read(before, DATE_FORMS[released]), read(before, before), atol=1e-9)


def test_moments_with_noise_finer_than_a_microsecond_are_read() -> None:
    noisy = pa.array(DAYS).cast(pa.timestamp("ns")).cast(pa.int64()).to_numpy() + np.arange(ROWS) * 1_234_567_891
    found = aligned(pa.array(DAYS), pa.array(noisy, pa.timestamp("ns")))
    assert found.unread == {}
    texts = [str(moment) for moment in noisy.astype("datetime64[ns]").astype("datetime64[us]")]
    assert aligned(pa.array(DAYS), texts).table.column("x").equals(found.table.column("x"))


def test_dates_that_can_be_read_in_two_ways_are_refused() -> None:
    with pytest.raises(SchemaError, match="'x' in the released table can be read in 2 ways"):
        aligned(pa.array(DAYS), ["01/02/2020"] * ROWS)


def test_categories_in_another_case_or_spacing_are_taken_and_counted() -> None:
    found = aligned(COLOURS, [f" {colour.upper()}" for colour in COLOURS])
    assert (found.unread, found.respelled) == ({}, {"x": ROWS})
    assert found.table.column("x").to_pylist() == COLOURS


def test_a_spelling_that_could_mean_two_categories_is_not_guessed() -> None:
    original = [("a", "A", "b")[row % 3] for row in range(ROWS)]
    found = aligned(original, ["a", "A", "b", " a"] * (ROWS // 4))
    assert found.unread == {"x": ROWS // 4}
    assert found.table.column("x").to_pylist()[:4] == ["a", "A", "b", None]


def test_codes_with_leading_zeros_are_not_numbers() -> None:
    original = [("007", "7", "08")[row % 3] for row in range(ROWS)]
    found = aligned(original, ["007", "7", "8", "08"] * (ROWS // 4))
    assert found.unread == {"x": ROWS // 4}


def test_unknown_cells_are_counted_and_missing() -> None:
    found = aligned(COLOURS, ["mauve", *COLOURS[1:]])
    assert found.unread == {"x": 1}
    assert found.table.column("x").to_pylist() == [None, *COLOURS[1:]]
    found = aligned(NUMBERS, ["[0, 5)", "inf", *map(str, NUMBERS[2:])])
    assert found.unread == {"x": 2}
    assert found.table.column("x").to_pylist() == [None, None, *NUMBERS[2:]]


@pytest.mark.parametrize("mark", ["", "?", "NA", "nan", None])
def test_marks_that_the_original_does_not_use_are_missing_cells_and_not_unknown_ones(mark: str | None) -> None:
    for original in (COLOURS, [f"{number}" for number in NUMBERS], [day.isoformat() for day in DAYS]):
        found = aligned(original, [mark, *original[1:]])
        assert found.unread == {}
        assert found.table.column("x").null_count == 1


@pytest.mark.parametrize(
    ("original", "released", "words"),
    [
        (NUMBERS, pa.array(DAYS), "of type date32.*convert it"),
        (pa.array(DAYS), NUMBERS, "of type double.*convert it"),
        (NUMBERS, pa.array([[number] for number in NUMBERS]), "of type list"),
        (COLOURS, pa.array(DAYS), "of type date32"),
        (NUMBERS, ["[0, 25)"] * ROWS, "none of the 60 cells of column 'x' .* is a number; convert it"),
        (pa.array(DAYS), ["[2020, 2021)"] * ROWS, "none of the 60 cells .* is a date"),
        (pa.array(DAYS), ["2020-02-31 00:00:00.5"] * ROWS, "none of the 60 cells .* is a date"),
        (COLOURS, ["*"] * ROWS, "none of the 60 cells .* categories; convert it"),
        ([0, 1] * (ROWS // 2), [0.37] * ROWS, "none of the 60 cells .* continuous with schema="),
    ],
)
def test_a_column_of_which_nothing_can_be_read_is_refused(original: Any, released: Any, words: str) -> None:
    with pytest.raises(SchemaError, match=words) as caught:
        aligned(original, released)
    assert "identifiers=" in str(caught.value)
    assert not any(cell in str(caught.value) for cell in ("[0", "[2020", "0.37", "02-31"))


def test_an_empty_column_and_no_rows_are_read() -> None:
    for original in (COLOURS, NUMBERS, pa.array(DAYS)):
        empty = aligned(original, pa.nulls(ROWS))
        assert (empty.table.column("x").null_count, empty.unread) == (ROWS, {})
    before = pa.table({"x": COLOURS, "y": NUMBERS, "z": pa.array(DAYS)})
    codec = Codec.fit(before, Schema.infer(before))
    assert align(before.slice(0, 0), codec, "the released table").table.num_rows == 0
