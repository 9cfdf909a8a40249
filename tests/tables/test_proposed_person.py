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
    with pytest.raises(PrivacyRefusal, match="column 'who' seems to say who each row is about"):
        sf.sanitize(table, k=5, report=False)
    with pytest.raises(PrivacyRefusal, match="--rows-are-people if each row is a person"):
        sf.tune(table)
    with pytest.raises(OptionError, match="exclude each other"):
        sf.sanitize(table, k=5, person="who", rows_are_people=True, report=False)
    by_person = sf.sanitize(table, k=5, person="who", seed=1, effort="fast", report=False)
    by_row = sf.sanitize(table, k=5, rows_are_people=True, rare="keep", seed=1, effort="fast", report=False)
    facts = [{type(fact).__name__ for fact in made.certificate.facts} for made in (by_person, by_row)]
    assert "PersonsApart" in facts[0] - facts[1]


def test_what_inspect_proposes_is_a_word_in_the_schema() -> None:
    schema = sf.inspect(visits())
    assert schema["who"].role is Role.PERSON
    assert "never change; proposed as the person" in str(schema)
    made = sf.sanitize(visits(), k=5, schema=schema, seed=1, effort="fast", report=False)
    assert any(type(fact).__name__ == "PersonsApart" for fact in made.certificate.facts)
    assert sf.inspect(visits().drop_columns(["who", "town"]))["born"].role is Role.CONFIDENTIAL
