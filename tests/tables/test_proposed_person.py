"""A column that says who rows are about is proposed, and chance, labels of few codes and measured numbers are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.tables.persons import propose_person
from sfumato.tables.schema import Role, Schema


def visits(rows: int = 240, people: int = 80) -> pa.Table:
    """Several visits of each person, at other times and costs."""
    rng = np.random.default_rng(4)
    who = rng.permutation(np.arange(rows) % people)
    born, town = rng.integers(1930, 2000, people), rng.integers(0, 30, people)
    return pa.table(
        {
            "visit": [f"V{number:05d}" for number in range(rows)],
            "who": [f"K-{7 * each + 1000}" for each in who],
            "born": born[who],
            "town": [f"town {each}" for each in town[who]],
            "cost": rng.gamma(2.0, 50.0, rows).round(1),
            "stay": rng.integers(1, 40, rows),
        }
    )


def proposed(table: pa.Table) -> str | None:
    found = propose_person(table, Schema.infer(table))
    return None if found is None else found.column


def test_the_column_that_determines_most_is_proposed() -> None:
    found = propose_person(visits(), Schema.infer(visits()))
    assert found is not None
    assert (found.column, found.persons, found.rows, found.constant) == ("who", 80, 240, ("born", "town"))


def test_codes_written_as_whole_numbers_are_proposed_too() -> None:
    table = visits()
    numbers = pa.array([int(each.as_py()[2:]) for each in table["who"]])
    renamed = table.set_column(1, "patient_id", numbers)
    assert proposed(renamed) == "patient_id"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda table: table.drop_columns(["who"]), id="nobody is named"),
        pytest.param(lambda table: table.drop_columns(["born", "town"]), id="nothing stays the same"),
        pytest.param(
            lambda table: table.append_column("fee", pa.array(2.0 * table["cost"].to_numpy())).drop_columns(["who"]),
            id="a number follows from a measured one",
        ),
    ],
)
def test_rows_that_may_be_people_are_taken_for_people(change: Callable[[pa.Table], pa.Table]) -> None:
    assert proposed(change(visits())) is None


def test_a_few_rows_that_agree_by_chance_propose_nobody() -> None:
    words = pa.array([f"K-{number}" for number in range(79)] + ["K-0"])
    mostly_zero = pa.array([0] * 60 + list(range(19)) + [0])
    assert proposed(pa.table({"word": words, "gain": mostly_zero, "cost": visits()["cost"][:80]})) is None


def panel(name: str, first: int = 1, gap: int = 1, people: int = 400) -> pa.Table:
    """Three years of each person, of whom only what few values tell stays the same."""
    rng = np.random.default_rng(9)
    who = np.repeat(np.arange(people), 3)
    return pa.table(
        {
            name: first + gap * who,
            "year": np.tile([2001, 2002, 2003], people),
            "sex": rng.choice(["f", "m"], people)[who],
            "school": rng.integers(8, 17, people)[who],
            "wage": rng.gamma(2.0, 900.0, 3 * people).round(2),
        }
    )


@pytest.mark.parametrize(
    ("name", "first", "gap"),
    [("person_no", 1, 1), ("nr", 13, 7), ("subject", 300, 3), ("i", 100_000, 1)],
    ids=["named", "called number", "called a person", "numbered one by one"],
)
def test_numbers_of_persons_in_a_panel_are_proposed(name: str, first: int, gap: int) -> None:
    found = propose_person(panel(name, first, gap), Schema.infer(panel(name, first, gap)))
    assert found is not None
    assert (found.column, found.constant) == (name, ("sex", "school"))
    as_text = panel(name, first, gap).set_column(0, name, panel(name, first, gap)[name].cast(pa.string()))
    assert proposed(as_text) == name


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(panel("load", 1_000, 17), id="a measured number that happens to repeat"),
        pytest.param(panel("week", 1, 1, people=120), id="few numbers in a row, as weeks"),
        pytest.param(
            pa.table({"age_no": [i % 90 for i in range(900)], "class": [i % 90 // 5 for i in range(900)]}),
            id="a class follows from a number by its size",
        ),
        pytest.param(
            pa.table(
                {
                    "remark": [f"mend the roof of house {i % 290} before winter comes again" for i in range(300)],
                    "area": [f"street {i % 290 % 45}" for i in range(300)],
                    "cost": [float(i * i % 97) for i in range(300)],
                }
            ),
            id="free text that a few rows share",
        ),
        pytest.param(
            pa.table(
                {
                    "wait": [f"{24 + i % 300 // 60}:{i % 60:02d}:00" for i in range(900)],
                    "ward": [f"ward {i % 300 * 7 % 31}" for i in range(900)],
                }
            ),
            id="durations",
        ),
    ],
)
def test_measured_numbers_and_free_text_are_nobody(table: pa.Table) -> None:
    assert proposed(table) is None


def test_a_person_is_proposed_beside_rows_of_nobody() -> None:
    table = visits()
    who = [None if row % 60 == 7 else each for row, each in enumerate(table["who"].to_pylist())]
    assert proposed(table.set_column(table.column_names.index("who"), "who", pa.array(who))) == "who"


def test_sanitizing_stops_until_it_is_told() -> None:
    table = visits()
    with pytest.raises(PrivacyRefusal, match="column 'who' seems to identify persons"):
        sf.sanitize(table, k=5, report=False)
    with pytest.raises(PrivacyRefusal, match="rows_are_people=True if each row is a person"):
        sf.tune(table)
    with pytest.raises(OptionError, match="exclude each other"):
        sf.sanitize(table, k=5, person="who", rows_are_people=True, report=False)
    by_person = sf.sanitize(table, k=5, person="who", seed=1, effort="fast", report=False)
    by_row = sf.sanitize(table, k=5, rows_are_people=True, rare="keep", seed=1, effort="fast", report=False)
    facts = [{type(fact).__name__ for fact in made.certificate.facts} for made in (by_person, by_row)]
    assert "PersonsInDistinctGroups" in facts[0] - facts[1]


def test_what_inspect_proposes_is_a_word_in_the_schema() -> None:
    schema = sf.inspect(visits())
    assert schema["who"].role is Role.PERSON
    assert "never change; proposed as the person" in str(schema)
    made = sf.sanitize(visits(), k=5, schema=schema, seed=1, effort="fast", report=False)
    assert any(type(fact).__name__ == "PersonsInDistinctGroups" for fact in made.certificate.facts)
    assert sf.inspect(visits().drop_columns(["who", "town"]))["born"].role is Role.CONFIDENTIAL


def four_columns(first: str, second: str, keys: list[str], values: list[str], rows: int = 2_000) -> pa.Table:
    """Rows of a key and a value that it decides, most of them of few keys, as codes are used."""
    rng = np.random.default_rng(31)
    weights = 1.0 / np.arange(1, len(keys) + 1)
    drawn = rng.choice(len(keys), rows, p=weights / weights.sum())
    return pa.table(
        {
            first: [keys[place] for place in drawn],
            second: [values[place] for place in drawn],
            "age": rng.integers(18, 90, rows),
            "cost": rng.gamma(2.0, 900.0, rows).round(2),
        }
    )


_CODES = [f"{letter}{number:02d}.{number % 7}" for letter in "ABCDEFGHIJKL" for number in range(30)]
_SKUS = [f"PR-{number:04d}" for number in range(500)]


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(four_columns("diagnosis", "title", _CODES, [f"title {code}" for code in _CODES]), id="diagnosis"),
        pytest.param(four_columns("code", "title", _CODES, [f"title {code}" for code in _CODES]), id="ICD-10 by form"),
        pytest.param(four_columns("k", "title", [f"T{7 * n}" for n in range(360)], [f"title {n}" for n in range(360)]),
                     id="codes used unequally"),
        pytest.param(four_columns("zip", "town", [f"{1000 + 9 * n:05d}" for n in range(400)],
                                  [f"town {n // 3}" for n in range(400)]), id="postcode"),
        pytest.param(four_columns("product_id", "group", _SKUS, [f"group {n % 40}" for n in range(500)]), id="product"),
        pytest.param(four_columns("Artikelnummer", "group", _SKUS, [f"group {n % 40}" for n in range(500)]),
                     id="product in German"),
        pytest.param(visits().select(["visit", "town", "cost", "stay"]), id="visits of one row"),
    ],
)  # fmt: skip
def test_codes_of_things_are_nobody(table: pa.Table) -> None:
    assert proposed(table) is None


@pytest.mark.parametrize("name", ["patient_id", "Patientennummer", "Kundennr", "Kennung", "k"])
def test_persons_of_several_rows_are_proposed_whatever_the_column_is_called(name: str) -> None:
    table = visits(2_000, 700).drop_columns(["visit", "stay"]).rename_columns([name, "born", "town", "cost"])
    assert proposed(table) == name


def test_of_persons_with_many_rows_what_stays_the_same_does_not_follow_from_each_other() -> None:
    rng = np.random.default_rng(2)
    who = np.repeat(np.arange(60), 30)
    sex, town = rng.choice(["f", "m"], 60), rng.integers(0, 9, 60)
    region = pa.array([f"region {each // 3}" for each in town[who]])
    measured = pa.table({"k": [f"K-{7 * each}" for each in who], "pulse": rng.normal(70, 9, len(who)).round(1)})
    nested = measured.append_column("town", pa.array([f"town {each}" for each in town[who]])).append_column("r", region)
    assert proposed(nested) is None
    assert proposed(nested.append_column("sex", pa.array(sex[who]))) == "k"


def test_a_visit_of_several_rows_is_not_taken_for_its_patient() -> None:
    visit = np.repeat(np.arange(600), 4)
    born = np.random.default_rng(2).integers(1930, 2000, 200)
    table = pa.table(
        {
            "visit_id": [f"V{each}" for each in visit],
            "patient": [f"P{each // 3}" for each in visit],
            "born": born[visit // 3],
            "ward": [f"ward {each % 25}" for each in visit],
            "value": np.random.default_rng(3).normal(5, 1, len(visit)).round(2),
        }
    )
    assert proposed(table) == "patient"
