"""No cell and no person decides what a column is: role, kind, step, form and rules stay with and without."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import SchemaError
from sfumato.tables.contact import MIN_EVIDENCE, Evidence, least_evidence
from sfumato.tables.files import read_table
from sfumato.tables.grid import repair_table
from sfumato.tables.persons import propose_person
from sfumato.tables.rules import broken_rows, cells_of_column, read_rules
from sfumato.tables.schema import Kind, Role, Schema
from tests.examples import examples

PEOPLE = 240
DAY = datetime.timedelta(days=1)
Cells = dict[str, list[Any]]


def days(rng: np.random.Generator, first: int, most: int, rows: int) -> list[datetime.date]:
    return [datetime.date(first, 1, 1) + int(day) * DAY for day in rng.integers(0, most, rows)]


def people(seed: int, rows: int = PEOPLE) -> Cells:
    """Columns of every kind that inference knows, a person a row."""
    rng = np.random.default_rng(seed)
    admission, stay = days(rng, 2020, 700, rows), rng.integers(1, 40, rows).tolist()
    discharge = [day + long * DAY for day, long in zip(admission, stay, strict=True)]
    city = rng.choice(["Bonn", "Kiel", "Trier", "Ulm"], rows).tolist()
    net, tax = rng.integers(100, 9_000, rows), rng.integers(10, 900, rows)
    clock = rng.integers(1, 20, (rows, 3)).tolist()
    some = rng.random(rows) < 0.2
    return {
        "age": rng.integers(18, 95, rows).tolist(),
        "weight": (rng.integers(400, 1_200, rows) / 10).tolist(),
        "dose": (rng.integers(1, 60, rows) * 25).tolist(),
        "score": rng.normal(0, 1, rows).tolist(),
        "lon": (rng.integers(700, 1_100, rows) / 100).tolist(),
        "home_lat": (48 + rng.integers(0, 9_999, rows) / 10_000).round(4).tolist(),
        "smoker": rng.choice(["yes", "no"], rows).tolist(),
        "female": rng.integers(0, 2, rows).tolist(),
        "arm": rng.integers(1, 3, rows).tolist(),
        "city": city,
        "state": [{"Bonn": "NW", "Kiel": "SH", "Trier": "RP", "Ulm": "BW"}[each] for each in city],
        "zip": [f"{code:05d}" for code in rng.integers(1_000, 1_060, rows)],
        "code": [f"C{number:02d}.1" for number in rng.integers(0, 40, rows)],
        "admission": admission,
        "discharge": discharge,
        "stay": stay,
        "born": days(rng, 1930, 25_000, rows),
        "net": net.tolist(),
        "tax": tax.tolist(),
        "total": (net + tax).tolist(),
        "billed": net.tolist(),
        "name": [f"Anna Name{row:03d}" for row in rng.permutation(rows)],
        "mail": [f"p{row}@example.org" for row in range(rows)],
        "phone": [f"+49 30 {number}" for number in rng.integers(1_000_000, 9_999_999, rows)],
        "serial": list(range(7, rows + 7)),
        "remark": [f"The patient number {row} was seen and sent home again" for row in range(rows)],
        "visit": [f"{hour:02d}:{3 * minute:02d}" for hour, minute, _ in clock],
        "ran": [f"{2 * hour}:{minute:02d}:{second:02d}" for hour, minute, second in clock],
        "price": [f"{price / 100:.2f}" for price in rng.integers(100, 9_999, rows)],
        "day": [f"{day:%Y%m%d}" for day in admission],
        "us_day": [f"{day:%m/%d/%Y}" for day in admission],
        "seen": [f"{day:%Y-%m-%d} {hour:02d}:15" for day, (hour, *_) in zip(discharge, clock, strict=True)],
        "empty": [None] * rows,
        "sparse": [int(net[row]) if there else None for row, there in enumerate(some)],
    }


def as_texts(cells: Cells) -> pa.Table:
    """The table as a CSV file has it."""
    texts = {name: [None if cell is None else str(cell) for cell in column] for name, column in cells.items()}
    return pa.table({name: pa.array(column, pa.string()) for name, column in texts.items()})


def decided(table: pa.Table) -> dict[str, Any]:
    """What must not hang on a cell or a person."""
    schema = Schema.infer(table)
    proposed = propose_person(table, schema)
    found: dict[str, Any] = {
        field.name: (field.kind, field.role, field.domain.step, field.format, field.hierarchy) for field in schema
    }
    return {**found, "rules": set(schema.rules), "person": None if proposed is None else proposed.column}


def with_cell(cells: Cells, name: str, row: int, cell: Any) -> Cells:
    return {**cells, name: [*cells[name][:row], cell, *cells[name][row + 1 :]]}


TEXTS = [
    "k.A.", "999999999", "123456789012345678", "-7", "-0.5", "3.14159265", "31.02.2020", "2020-13-45", "2021-05-06",
    "2021-05-06 10:30:00", "05/06/2021", "12:30", "27:15:00", "anna@example.org", "+49 170 1234567", "", "NA", "Worms",
    "C99.9", "x" * 20_000, "a remark that is much longer than all others are " * 50, "007", "1e300", "1,5", "0", "1",
    "2", "20200230", "4:61:00", "True",
]  # fmt: skip
BEFORE = {seed: people(seed) for seed in (1, 2)}
DECIDED = {seed: decided(as_texts(cells)) for seed, cells in BEFORE.items()}


def test_the_columns_are_what_they_are_meant_to_be() -> None:
    told = DECIDED[1]
    kinds = {"age": "integer", "lon": "continuous", "smoker": "boolean", "female": "boolean", "arm": "nominal"}
    kinds |= dict.fromkeys(("admission", "visit", "day", "us_day", "seen", "born"), "date")
    assert {name: told[name][0].value for name in kinds} == kinds
    dropped = {name for name in BEFORE[1] if told[name][1] is Role.IDENTIFIER}
    assert dropped == {"home_lat", "name", "mail", "phone", "serial", "remark", "empty"}
    assert told["dose"][2] == 25.0
    assert {"city -> state", "stay = discharge - admission", "billed = net", "total = net + tax"} <= told["rules"]


@examples(400, few=40)
@given(st.sampled_from([1, 2]), st.sampled_from(list(BEFORE[1])), st.integers(0, PEOPLE - 1), st.sampled_from(TEXTS))
@example(1, "state", 3, "Worms")  # as many cities as states, but for one
@example(1, "score", 3, "123456789012345678")  # beside which every sum is nearly one
@example(1, "home_lat", 3, "999999999")
@example(1, "serial", 3, "k.A.")
@example(1, "name", 3, "Anna Name000")
@example(1, "day", 3, "20200230")
@example(1, "empty", 3, "k.A.")
def test_one_cell_of_a_file_decides_nothing(seed: int, name: str, row: int, text: str) -> None:
    after = decided(as_texts(with_cell(BEFORE[seed], name, row, text)))
    assert after == DECIDED[seed]


@pytest.mark.parametrize("cell", [0, -7, 10**9, 10**17, 2**62, None, 3.5, 2.123456, 1e17])
def test_one_number_of_a_typed_column_decides_nothing(cell: Any) -> None:
    names = ["age", "weight", "dose", "lon", "home_lat", "female", "arm", "serial", "net", "tax", "total", "stay"]
    cells = {name: BEFORE[1][name] for name in names}
    before = decided(pa.table(cells))
    for name in names:
        if isinstance(cell, int) and isinstance(cells[name][0], float):
            continue
        assert decided(pa.table(with_cell(cells, name, 5, cell))) == before, name


@pytest.mark.parametrize("cell", [datetime.datetime(2020, 5, 6, 10, 30), datetime.datetime(1, 1, 1), None])
def test_one_moment_of_a_typed_column_decides_nothing(cell: Any) -> None:
    cells = {name: BEFORE[1][name] for name in ("admission", "discharge", "born", "stay")}
    midnight = datetime.time()
    cells |= {name: [datetime.datetime.combine(day, midnight) for day in cells[name]] for name in list(cells)[:3]}
    moments = pa.timestamp("us")

    def typed(changed: Cells) -> pa.Table:
        return pa.table(
            {name: column if name == "stay" else pa.array(column, moments) for name, column in changed.items()}
        )

    before = decided(typed(cells))
    assert before["admission"][2] == "day"
    for name in ("admission", "discharge", "born"):
        assert decided(typed(with_cell(cells, name, 5, cell))) == before, name


@examples(60, few=6)
@given(st.sampled_from([1, 2]), st.integers(0, PEOPLE - 1))
def test_one_person_decides_nothing(seed: int, row: int) -> None:
    left = {name: [*column[:row], *column[row + 1 :]] for name, column in BEFORE[seed].items()}
    assert decided(as_texts(left)) == DECIDED[seed]


def test_one_person_of_many_rows_decides_nothing_where_a_column_says_whose_they_are() -> None:
    who = [person for person in range(PEOPLE) for _ in range(12 if person == 3 else 1)]
    cells = {name: [BEFORE[1][name][person] for person in who] for name in ("age", "lon", "day", "city", "female")}
    cells["who"] = [f"p{person}" for person in who]
    before = Schema.infer(as_texts(cells), person="who")
    rows = [row for row, person in enumerate(who) if person == 3]
    for name in ("age", "lon", "day", "female"):
        changed = cells
        for place, row in enumerate(rows):
            changed = with_cell(changed, name, row, f"k.A. {place}")
        after = Schema.infer(as_texts(changed), person="who")
        assert after[name].kind is before[name].kind
        assert after[name].repair
        assert Schema.infer(as_texts(changed))[name].kind is Kind.NOMINAL  # of 12 people, if rows were people


def test_a_person_is_proposed_although_one_row_differs() -> None:
    rng = np.random.default_rng(5)
    who = np.repeat(np.arange(80), 3)
    born = [datetime.date(1940, 1, 1) + int(day) * DAY for day in rng.integers(0, 20_000, 80)]
    cells: Cells = {
        "patient": [f"p{person}" for person in who],
        "born": [born[person] for person in who],
        "pulse": rng.integers(50, 120, len(who)).tolist(),
    }
    for changed in (
        cells,
        with_cell(cells, "born", 4, datetime.date(2001, 2, 3)),
        with_cell(cells, "patient", 4, "p9"),
    ):
        table = as_texts(changed)
        proposed = propose_person(table, Schema.infer(table))
        assert proposed is not None
        assert proposed.column == "patient"


def test_the_tenth_person_decides() -> None:
    cells = [f"{place / 100:.2f}" for place in range(1_500)]
    for strays, kind in ((MIN_EVIDENCE - 1, Kind.CONTINUOUS), (MIN_EVIDENCE, Kind.NOMINAL)):
        table = pa.table({"x": [*cells, *(f"k.A. {place}" for place in range(strays))]})
        assert Schema.infer(table)["x"].kind is kind


@pytest.mark.parametrize("persons", [1, 5, 9, 10, 40, 200, 10**6])
def test_fewer_than_all_decide_and_one_alone_only_among_nine(persons: int) -> None:
    least = least_evidence(persons)
    assert least <= min(persons, MIN_EVIDENCE)
    assert (least == 1) == (persons < 10)
    assert Evidence(least).few(np.arange(persons) < least - 1)
    assert not Evidence(least).few(np.arange(persons) < least)


def test_a_coordinate_with_four_decimals_does_not_drop_those_with_two() -> None:
    rng = np.random.default_rng(3)
    longitudes = (rng.integers(600, 1_500, 1_500) / 100).tolist()
    table = pa.table({"lon": [*longitudes[1:], 8.1234], "age": rng.integers(18, 90, 1_500)})
    with pytest.warns(UserWarning, match="fewer than 10 cells do not fit the others: 1, the first is 'lon'"):
        release = sf.sanitize(table, k=10, seed=1, report=False)
    assert all(round(cell, 2) == cell for cell in release.table["lon"].to_pylist())


STRAYS = {
    "age": "k.A.", "weight": "71.2345", "female": "2", "smoker": "maybe", "admission": "2020-02-31", "stay": "10^3",
    "seen": "2020-02-01 10:15:30.5", "price": "7.004", "ran": "soon", "total": "7",
}  # fmt: skip


def test_cells_that_do_not_fit_become_missing_or_are_rounded_and_nothing_else_changes() -> None:
    names = [*STRAYS, "net", "tax", "discharge"]
    before = as_texts({name: BEFORE[1][name] for name in names})
    cells = {name: before[name].to_pylist() for name in names}
    for row, (name, text) in enumerate(STRAYS.items()):
        cells = with_cell(cells, name, row, text)
    table = pa.table(cells)
    schema = Schema.infer(table)
    assert {field.name for field in schema if field.repair} == {*STRAYS, "tax"}  # which total makes
    assert Schema.from_toml(schema.to_toml()) == schema.without_reasons()
    assert not any(field.repair for field in schema.public_part())
    after = repair_table(table, schema)
    changed = {
        name: (row, after[name][row].as_py())
        for name in names
        for row in range(PEOPLE)
        if after[name][row].as_py() != before[name][row].as_py()
    }
    missing = {name: (row, None) for row, name in enumerate(STRAYS)}
    assert changed == missing | {"weight": (1, "71.2"), "price": (7, "7.00"), "total": (9, "7")}


@pytest.mark.filterwarnings("ignore:columns in which:UserWarning")
@pytest.mark.parametrize("method", ["condense", "chain", "noise", "swap"])
def test_a_release_is_made_of_a_table_with_stray_cells_and_keeps_the_rules(method: str) -> None:
    names = [*STRAYS, "net", "tax", "discharge"]
    cells = {name: as_texts(BEFORE[1])[name].to_pylist() for name in names}
    for row, (name, text) in enumerate(STRAYS.items()):
        cells = with_cell(cells, name, row, text)
    table = pa.table(cells)
    passes: dict[str, Any] = {"pass_categories": True} if method in ("noise", "swap") else {}
    with pytest.warns(UserWarning, match="do not fit the others"):
        schema = sf.sanitize(table, method=method, seed=1, report=False, **passes).schema
    for told in (None, Schema.from_toml(Schema.infer(table).to_toml())):  # as it was written by inspect
        release = sf.sanitize(table, method=method, seed=1, report=False, schema=told, **passes)
        assert set(release.schema.rules) == set(schema.rules)
        assert not {"k.A.", "maybe", "soon", "10^3"} & {cell for column in release.table for cell in column.to_pylist()}
        if method in ("condense", "chain"):
            for rule in read_rules(release.schema.rules, release.schema.names):
                of = {name: cells_of_column(release.table[name], release.schema[name]) for name in rule.columns}
                assert not broken_rows(rule, of).any()


def test_a_declared_column_stays_strict() -> None:
    cells = with_cell({name: BEFORE[1][name] for name in ("age", "city")}, "age", 3, "k.A.")
    declared = sf.Schema((sf.Field("age", Kind.INTEGER), sf.Field("city", Kind.NOMINAL)))
    with pytest.raises(SchemaError, match="'age' is declared integer but 1 cells are not numbers"):
        sf.sanitize(as_texts(cells), k=5, schema=declared, report=False)


@pytest.mark.filterwarnings("ignore:columns in which:UserWarning")
def test_an_address_among_categories_does_not_leave() -> None:
    cells = with_cell({name: BEFORE[1][name] for name in ("age", "city")}, "city", 3, "anna@example.org")
    release = sf.sanitize(as_texts(cells), k=5, seed=1, report=False)
    assert "anna@example.org" not in release.table["city"].to_pylist()
    assert "anna@example.org" not in release.schema.public_part().to_toml()


@pytest.mark.parametrize("cell", ["k.A.", "1.5", "007", "1.234,5 EUR", "soon"])
def test_one_text_among_numbers_with_decimal_commas_stays_one(cell: str, tmp_path: Any) -> None:
    numbers = [f"{place // 10},{place % 10}" for place in range(300)]
    path = tmp_path / "crp.csv"
    path.write_text("\n".join(["crp;town", *(f"{number};Bonn" for number in [*numbers, cell])]))
    table = read_table(path)
    field = Schema.infer(table)["crp"]
    assert (field.kind, field.domain.step) == (Kind.CONTINUOUS, 0.1)


def test_a_frame_of_pandas_keeps_what_its_columns_are() -> None:
    cells = {name: BEFORE[1][name] for name in ("age", "dose", "female", "net", "tax", "total")}
    before = decided(pa.Table.from_pandas(pd.DataFrame(cells)))
    assert decided(pa.Table.from_pandas(pd.DataFrame(with_cell(cells, "age", 3, 40.25)))) == before
