"""A label that decides another column does so after rare labels became others, counted in rows or in persons."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.tables.rules import Rule, broken_rows, cells_of_column
from sfumato.tables.schema import Role, Schema
from sfumato.tables.tails import pool_rare_values

_POSTCODES = [f"{1067 + 1531 * place:05d}" for place in range(60)]
_CITIES = {code: f"city {place // 4}" for place, code in enumerate(_POSTCODES)}
RULE = "postcode -> city"


def visits(count: int = 1_500, people: int = 700) -> pa.Table:
    """Visits of persons who live somewhere: some postcodes have ten visits and more, but fewer than ten persons."""
    rng = np.random.default_rng(5)
    home = np.concatenate([np.repeat(np.arange(54, 60), 5), rng.integers(0, 54, people - 30)])
    who = np.concatenate([np.repeat(np.arange(people), 2), rng.integers(0, people, count - 2 * people)])
    codes = [_POSTCODES[place] for place in home[who]]
    return pa.table(
        {
            "patient_id": [f"p{person}" for person in who],
            "postcode": codes,
            "city": [_CITIES[code] for code in codes],
            "age": rng.integers(18, 90, count),
        }
    )


@pytest.mark.parametrize("person", [None, "patient_id"])
def test_a_postcode_decides_the_city_with_and_without_a_person_column(person: str | None) -> None:
    table = visits() if person else visits().drop_columns(["patient_id"])
    schema = sf.inspect(table, person=person)
    assert RULE in schema.rules
    release = sf.sanitize(table, sf.Chain(k=10, leaf=50), person=person, seed=3, report=False)
    assert RULE in release.recipe.schema.rules
    cells = {name: cells_of_column(release.table.column(name), schema[name]) for name in ("postcode", "city")}
    assert not broken_rows(Rule("->", ("postcode", "city")), cells).any()


def test_a_rule_of_a_schema_is_kept_where_rare_labels_become_others() -> None:
    table = visits()
    schema = sf.inspect(table, person="patient_id")
    release = sf.sanitize(table, sf.Chain(k=10, leaf=50), schema=schema, seed=3, report=False)
    assert RULE in release.recipe.schema.rules


def test_rare_labels_take_the_value_of_records_that_agree_in_what_they_decide() -> None:
    table = visits()
    schema = Schema.infer(table, person="patient_id").with_role(Role.PERSON, "patient_id")
    persons = pa.compute.dictionary_encode(table.column("patient_id")).combine_chunks().indices.to_numpy()
    rule = Rule("->", ("postcode", "city"))
    shared = pool_rare_values(
        table, schema, k=10, way="lift", persons=persons.astype(np.int64), rng=np.random.default_rng(1),
        decisions=lambda: (rule,),
    )  # fmt: skip
    assert shared.copied["postcode"].sum() >= 30
    kept = np.array(table.column("city").to_pylist()) == np.array(shared.table.column("city").to_pylist())
    common = ~np.isin(table.column("city").to_pylist(), ["city 13", "city 14"])
    assert kept[common].all()
