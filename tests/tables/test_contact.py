"""Free text and contact data, and what only looks like them."""

from __future__ import annotations

import uuid

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.messy_patients import COLUMNS
from sfumato.tables.contact import kind_of_number
from sfumato.tables.infer import infer_field
from sfumato.tables.schema import Role, Schema
from tests.examples import examples
from tests.messy import messy_rows


def reason(cells: list[str], name: str = "column") -> tuple[Role, str]:
    field = Schema.infer(pa.table({name: cells}))[name]
    return field.role, field.reason


NOTES = [f"patient number {row} slept badly and wants to go home" for row in range(40)]


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([f"person{row % 40}@example.org" for row in range(120)], "e-mail addresses"),
        ([f"+49 30 {1234567 + row % 40}" for row in range(120)], "telephone numbers"),
        ([f"https://example.org/{row % 40}" for row in range(120)], "web addresses"),
        ([f"02:00:00:00:00:{row % 40:02x}" for row in range(120)], "identifiers of devices or records"),
        ([str(uuid.UUID(int=row % 40)) for row in range(120)], "identifiers of devices or records"),
        ([f"10.0.0.{row % 40}" for row in range(120)], "network addresses"),
        (NOTES * 2 + [""] * 40, "free text"),
        ([f"030 {1234567 + row % 40}" for row in range(120)], "telephone numbers"),
        ([f"(0171) 23 45 {100 + row % 40}" for row in range(120)], "telephone numbers"),
        ([f"(212) 555-{1000 + row % 40}" for row in range(120)], "telephone numbers"),
        ([f"123-45-{6789 + row % 40}" for row in range(120)], "social security or personal numbers"),
        ([f"48.{13712 + row % 40}, 11.{57541 + row}" for row in range(120)], "coordinates of places"),
        ([f"48° 8' {row % 40}.5\" N" for row in range(120)], "coordinates of places"),
        ([f"2001:db8:0:0:0:0:0:{row % 40:x}" for row in range(120)], "network addresses"),
        ([f"{row % 40:x}".rjust(31, "0") + "a1" for row in range(120)], "identifiers of devices or records"),
        ([f"SN-{4000 + row % 80}/B" for row in range(120)], "codes that hardly repeat"),
    ],
)
def test_private_text_that_repeats_is_dropped_and_named(cells: list[str], words: str) -> None:
    role, why = reason(cells)
    assert role is Role.IDENTIFIER
    assert words in why
    assert not any(cell and cell in why for cell in cells)


HELD = [
    "call daughter: 04325/41{:04d}",
    "Tel. 0171{:07d}",
    "write to p{}@example.org",
    "ask Frau Weber, room {}",
    "phone (212) 555-{:04d}",
    "Rappel 01 23 45 {0:02d} 89",
]


@pytest.mark.parametrize("form", HELD)
def test_short_notes_that_hold_contact_data_are_dropped_though_most_cells_are_categories(form: str) -> None:
    cells = ["lives alone", "diet explained"] * 70 + [form.format(row + 10) for row in range(60)]
    assert reason(cells, "note") == (
        Role.IDENTIFIER,
        "text, 62 different in 200 rows: free text with contact data or names",
    )


@pytest.mark.parametrize("form", HELD)
def test_one_note_with_contact_data_or_one_person_with_many_decides_nothing(form: str) -> None:
    wards = [f"ward {row % 30}" for row in range(170)]
    assert reason([*wards, form.format(7)])[0] is Role.CONFIDENTIAL
    cells = wards + [form.format(row + 10) for row in range(30)]
    table, people = pa.table({"note": cells}), np.arange(200)
    assert infer_field("note", table["note"], persons=people).role is Role.IDENTIFIER
    people[170:] = 170
    assert infer_field("note", table["note"], persons=people).role is Role.CONFIDENTIAL


@pytest.mark.parametrize(
    "cells",
    [
        [f"office{row % 5}@example.org" for row in range(120)],
        [f"https://example.org/{row % 40}" for row in range(1000)],
        [f"a rather long label of the category number {row % 30}" for row in range(300)],
        [f"Dr. Street {row % 40}" for row in range(120)],
        [f"DE{row % 40 + 10}ABCDEFGHIJKLMNOP" for row in range(120)],
        [f"C{row % 40}.1" for row in range(120)],
        [f"+{row % 40}" for row in range(120)],
        [f"0{row % 40 + 1000}" for row in range(120)],
        [f"0{row % 9 + 1}/{row % 12 + 1:02d}/{1980 + row % 40} " for row in range(120)],
        [f"{100 + row % 40}/{60 + row % 30}" for row in range(240)],
        [f"SN-{4000 + row % 40}/B" for row in range(120)],
        [f"seen on 01/02/{1980 + row % 40}" for row in range(120)],
        [f"{row % 40}.50 EUR of 0{row % 40 + 1000}" for row in range(120)],
    ],
)
def test_categories_of_such_form_stay(cells: list[str]) -> None:
    assert reason(cells)[0] is Role.CONFIDENTIAL


FIRST = ("Jürgen", "Anna Maria", "Hans-Peter", "Käthe", "Zoë", "J. R.")
LAST = ("Groß", "van der Berg", "O'Neil", "D\u2019Angelo", "McGregor", "García López")


@pytest.mark.parametrize("form", ["{last}, {first}", "{first} {last}", "Dr. med. {first} {last}"])
@pytest.mark.parametrize("name", ["Patient", "customer", "attending_doctor", "Hausarzt", "Mitarbeiter"])
def test_full_names_of_people_are_dropped_where_the_column_is_called_after_people(name: str, form: str) -> None:
    names = [form.format(first=first, last=last) for first in FIRST for last in LAST]
    assert reason(names * 60, name) == (Role.IDENTIFIER, "text, 36 different: full names of people")
    assert reason(names * 60, "street")[0] is Role.CONFIDENTIAL
    assert reason(names[:19] * 60, name)[0] is Role.CONFIDENTIAL


def test_kinds_of_patients_and_numbers_of_persons_are_no_names() -> None:
    kinds = [f"{word} {row}" for row in range(15) for word in ("Inpatient", "outpatient, chronic")]
    assert reason(kinds * 60, "patient")[0] is Role.CONFIDENTIAL
    lower = [f"{first} {last}".lower() for first in FIRST for last in LAST]
    assert reason(lower * 60, "patient")[0] is Role.CONFIDENTIAL


def test_the_private_columns_of_the_messy_file_are_dropped_and_no_other() -> None:
    columns = dict(zip(COLUMNS, zip(*messy_rows(), strict=True), strict=True))
    schema = Schema.infer(pa.table({f"x_{name}_x": cells for name, cells in columns.items()}))
    found = {field.name[2:-2]: field.reason for field in schema if ": " in field.reason and "rows: " in field.reason}
    assert {name: why.rpartition("rows: ")[2].partition(",")[0] for name, why in found.items()} == {
        "email": "e-mail addresses",
        "phone": "telephone numbers",
        "iban": "bank accounts",
        "note": "free text",
        "device_serial": "codes that hardly repeat",
    }


@pytest.mark.parametrize(
    "text",
    [
        "15070649C103",
        "36 574 261 809",
        "2 95 10 99 126 111 93",
        "253072B07300470",
        "RCCMNL83S18D969H",
        "54362315K",
        "X-2482300W",
        "756.9217.0769.85",
        "1237 010180",
        "111222333",
        "85.07.30-033.28",
        "44051401359",
        "880320-0016",
        "390.533.447-05",
        "123-456-782",
        "AB 12 34 56 C",
        "536-90-4399",
    ],
)
def test_published_examples_of_personal_numbers_are_known(text: str) -> None:
    assert kind_of_number(text) == "social security or personal numbers"


@pytest.mark.parametrize(
    "text", ["36574261808", "295109912611195", "54362315A", "1238010180", "666-90-4399", "111222334"]
)
def test_numbers_with_wrong_check_digits_are_nobodys(text: str) -> None:
    assert kind_of_number(text) == ""


def test_numbers_that_are_called_so_are_telephone_numbers() -> None:
    numbers = pa.table({name: [5_551_230_000 + 17 * row for row in range(60)] for name in ("home_phone", "pay")})
    schema = Schema.infer(numbers)
    assert "60 different in 60 rows: telephone numbers" in schema["home_phone"].reason
    assert schema["home_phone"].role is Role.IDENTIFIER
    assert schema["pay"].role is Role.CONFIDENTIAL


def test_whole_numbers_with_right_check_digits_are_personal() -> None:
    valid = [number for number in range(100_000_000, 100_001_000) if kind_of_number(str(number))][:40]
    assert len(valid) == 40
    assert Schema.infer(pa.table({"x": valid}))["x"].role is Role.IDENTIFIER


def test_precise_coordinates_are_dropped_and_coarse_ones_stay() -> None:
    rng = np.random.default_rng(5)
    places = rng.uniform(47, 49, 200)
    table = pa.table({"home_lat": places.round(5), "Longitude": places.round(2), "plate": places, "lat": 1e3 * places})
    roles = {field.name: field.role for field in Schema.infer(table)}
    assert roles.pop("home_lat") is Role.IDENTIFIER
    assert set(roles.values()) == {Role.CONFIDENTIAL}


@given(seed=st.integers(0, 2**32), digits=st.integers(4, 15), rows=st.integers(25, 300))
@examples(60)
def test_ordinary_numbers_raise_no_alarm(seed: int, digits: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    drawn = {
        "pay": rng.integers(10 ** (digits - 1), 10**digits, rows),
        "balance": np.rint(rng.lognormal(digits, 1.5, rows)).astype(np.int64),
        "size": np.round(rng.normal(0, 10, rows), 4),
        "count": 25 * rng.integers(10**7, 10**8, rows),
    }
    assert {field.role for field in Schema.infer(pa.table(drawn))} == {Role.CONFIDENTIAL}
