"""Free text and contact data, and what only looks like them."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

from examples.messy_patients import COLUMNS, messy_rows
from sfumato.tables.schema import Role, Schema


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
    ],
)
def test_private_text_that_repeats_is_dropped_and_named(cells: list[str], words: str) -> None:
    role, why = reason(cells)
    assert role is Role.IDENTIFIER
    assert words in why
    assert not any(cell and cell in why for cell in cells)


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
    ],
)
def test_categories_of_such_form_stay(cells: list[str]) -> None:
    assert reason(cells)[0] is Role.CONFIDENTIAL


def test_the_private_columns_of_the_messy_file_are_dropped_and_no_other() -> None:
    columns = dict(zip(COLUMNS, zip(*messy_rows(), strict=True), strict=True))
    schema = Schema.infer(pa.table({f"x_{name}_x": cells for name, cells in columns.items()}))
    found = {field.name[2:-2]: field.reason for field in schema if ": " in field.reason and "rows: " in field.reason}
    assert {name: why.rpartition("rows: ")[2].partition(",")[0] for name, why in found.items()} == {
        "email": "e-mail addresses",
        "phone": "telephone numbers",
        "iban": "bank accounts",
        "note": "free text",
    }
