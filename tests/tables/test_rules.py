"""Rules between columns: found if every row obeys them, kept in every synthetic row."""

from __future__ import annotations

import dataclasses
import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.assess.algebra import run_measure
from sfumato.assess.study import study_of
from sfumato.assess.utility.rules import COLUMN_RULES
from sfumato.core.errors import SchemaError
from sfumato.engines.outcome import Recipe
from sfumato.tables.codec import Codec
from sfumato.tables.facts import ColumnRulesKept
from sfumato.tables.rules import Rule, broken_rows, cells_of_column, read_rules
from sfumato.tables.schema import Schema
from tests.examples import examples

STATES = {"Bonn": "NW", "Cologne": "NW", "Mainz": "RP", "Trier": "RP", "Ulm": "BW"}
RULES = {"admission <= discharge", "stay = discharge - admission", "total = net + tax", "city -> state"}


def visits(rng: np.random.Generator, rows: int = 200, *, missing: bool = False) -> dict[str, list[Any]]:
    first = datetime.date(2024, 1, 1)
    start = rng.integers(0, 300, rows)
    stay = rng.poisson(4, rows)
    net, tax = rng.integers(100, 9_999, rows), rng.integers(1, 2_000, rows)
    cities = list(STATES)
    city = [cities[place] for place in rng.permutation(np.arange(rows) % len(cities))]
    gone = rng.random(rows) < (0.1 if missing else 0.0)
    return {
        "admission": [
            None if lost else first + datetime.timedelta(int(day)) for day, lost in zip(start, gone, strict=True)
        ],
        "discharge": [first + datetime.timedelta(int(day + long)) for day, long in zip(start, stay, strict=True)],
        "stay": [None if lost else int(long) for long, lost in zip(stay, gone, strict=True)],
        "net": (net / 100).tolist(),
        "tax": (tax / 100).tolist(),
        "total": ((net + tax) / 100).tolist(),
        "city": city,
        "state": [STATES[name] for name in city],
        "age": rng.integers(18, 90, rows).tolist(),
    }


def broken(table: pa.Table, schema: Schema) -> int:
    rules = read_rules(schema.rules, schema.names)
    cells = {name: cells_of_column(table.column(name), schema[name]) for name in schema.names}
    return sum(int(broken_rows(rule, cells).sum()) for rule in rules)


def test_rules_that_every_row_obeys_are_found_and_listed() -> None:
    schema = sf.inspect(pa.table(visits(np.random.default_rng(7))))
    assert set(schema.rules) == RULES
    assert all(f"  {rule}" in str(schema) for rule in schema.rules)
    assert Schema.from_toml(schema.to_toml()).rules == schema.rules


@examples(30, few=6)
@given(seed=st.integers(0, 10_000))
def test_unrelated_columns_make_no_rules(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = pa.table(
        {
            **{f"n{place}": rng.integers(0, 5 + 40 * place, 60) for place in range(4)},
            **{f"c{place}": rng.choice(list("abc")[: 2 + place % 2], 60) for place in range(4)},
            "rare": np.where(np.arange(60) < 2, "x", "y"),
        }
    )
    assert sf.inspect(table).rules == ()


@examples(24, few=6)
@example(seed=1, missing=True, method="condense", text=False)  # 6 cells are missing
@given(
    seed=st.integers(0, 10_000),
    missing=st.booleans(),
    method=st.sampled_from(["condense", "condense-paper", "classwise", "chain"]),
    text=st.booleans(),
)
def test_rules_hold_in_every_released_row(seed: int, missing: bool, method: str, text: bool) -> None:
    cells = visits(np.random.default_rng(seed), 120, missing=missing)
    table = pa.table(cells)
    if text:
        table = pa.table({name: table.column(name).cast(pa.string()) for name in table.column_names})
    beside: dict[str, dict[str, Any]] = {"classwise": {"target": "city"}, "chain": {"leaf": 8}}
    told = beside.get(method, {})
    release = sf.sanitize(table, method=method, k=8, seed=seed, report=False, **told)
    assert set(release.schema.rules) == RULES
    assert release.table.schema == table.schema
    assert broken(release.table, release.schema) == 0
    lacking, lacked = (each.column("stay").null_count for each in (release.table, table))
    shown = lacked if lacked >= 8 else 0  # that fewer lack it would tell who
    assert lacking == shown or method == "chain"  # which draws how many are missing, too
    facts = [fact for fact in release.certificate.facts if isinstance(fact, ColumnRulesKept)]
    assert [set(fact.rules) for fact in facts] == [RULES]
    assert not any(fact.rare_pairs for fact in facts)


@examples(24, few=6)
@given(seed=st.integers(0, 10_000), wide=st.booleans())
def test_any_order_without_a_circle_is_kept(seed: int, wide: bool) -> None:
    rng = np.random.default_rng(seed)
    a, d = rng.integers(0, 50, 60), rng.integers(0, 50, 60)
    b, c = a + rng.integers(0, 9, 60), np.maximum(a, d) + rng.integers(0, 9, 60)
    e = np.maximum(b, c) + (rng.random(60) * 3).round(2 if wide else 1)
    table = pa.table({"e": e, "a": a.astype(np.int8), "b": b, "c": c, "d": d})
    rules = ("a <= b", "a <= c", "d <= c", "b <= e", "c <= e")
    schema = Schema(Schema.infer(table).fields, rules)
    release = sf.sanitize(table, k=5, seed=seed, schema=schema, report=False)
    assert release.schema.rules == rules
    assert broken(release.table, release.schema) == 0
    assert release.table.schema == table.schema


def test_declared_bounds_hold_beside_an_order() -> None:
    rng = np.random.default_rng(3)
    low = rng.integers(0, 100, 200)
    table = pa.table({"low": low, "high": np.minimum(100, low + rng.integers(0, 40, 200))})
    text = """format = 1
rules = ["low <= high"]
[[column]]
name = "low"
kind = "integer"
domain = { low = 0, high = 100 }
[[column]]
name = "high"
kind = "integer"
domain = { low = 0, high = 100 }
"""
    release = sf.sanitize(table, k=5, seed=3, schema=Schema.from_toml(text), report=False)
    assert broken(release.table, release.schema) == 0
    assert max(release.table.column("high").to_pylist()) <= 100
    assert min(release.table.column("low").to_pylist()) >= 0


def test_a_pair_that_few_hold_changes_no_found_rule_and_stays_by_the_owners_word() -> None:
    cells = visits(np.random.default_rng(5))
    rare = ["Worms", "RP"]
    numbers = [*range(50), *range(50), *range(50), *range(50), 7]
    table = pa.table({"city": [*cells["city"], rare[0]], "state": [*cells["state"], rare[1]], "n": numbers})
    assert sf.inspect(table).rules == sf.inspect(table.slice(0, 200)).rules == ("city -> state",)
    found = sf.sanitize(table, k=5, seed=1, rare="keep", report=False)
    assert not [fact for fact in found.certificate.facts if isinstance(fact, ColumnRulesKept)]
    schema = Schema(Schema.infer(table).fields, ("city -> state",))
    release = sf.sanitize(table, k=5, seed=1, schema=schema, rare="keep", report=False)
    assert broken(release.table, release.schema) == 0
    assert ColumnRulesKept(("city -> state",), True) in release.certificate.facts
    assert any("including rare ones" in refused.reason for refused in release.certificate.refused)


def test_a_found_pair_that_fewer_than_k_hold_is_not_kept() -> None:
    table = pa.table(visits(np.random.default_rng(5)))
    release = sf.sanitize(table, k=50, seed=1, rare="keep", report=False)
    assert set(release.schema.rules) == RULES - {"city -> state"}


def test_no_rules_are_kept_where_the_owner_says_so_and_the_recipe_repeats_it() -> None:
    table = pa.table(visits(np.random.default_rng(5)))
    release = sf.sanitize(table, k=10, seed=1, no_rules=True, report=False)
    assert not any(isinstance(fact, ColumnRulesKept) for fact in release.certificate.facts)
    recipe = Recipe.from_toml(release.recipe.to_toml())
    assert recipe.options.no_rules
    assert sf.sanitize(table, recipe=recipe, report=False).table.equals(release.table)
    kept = sf.sanitize(table, k=10, seed=1, report=False)
    again = sf.sanitize(table, recipe=Recipe.from_toml(kept.recipe.to_toml()), report=False)
    assert set(again.schema.rules) == RULES
    assert again.table.equals(kept.table)


def test_the_reviewer_counts_again_which_rows_obey(tmp_path: Path) -> None:
    release = sf.sanitize(pa.table(visits(np.random.default_rng(5))), k=10, report=False)
    release.save(tmp_path / "out")
    checks = {check.name: check for check in sf.verify(tmp_path / "out" / "release")}
    assert all(check.holds for check in checks.values())
    assert "4 rules hold" in checks["rules"].detail
    place = tmp_path / "out" / "release" / "table.csv"
    place.write_text(place.read_text().replace("NW", "BW", 1))
    checks = {check.name: check for check in sf.verify(tmp_path / "out" / "release")}
    assert not checks["rules"].holds


def test_a_report_counts_the_rows_of_any_table_that_obey() -> None:
    rng = np.random.default_rng(5)
    table = pa.table(visits(rng))
    shuffled = pa.table({name: table.column(name).take(pa.array(rng.permutation(200))) for name in table.column_names})
    codec = Codec.fit(table, Schema.infer(table))
    (same,), (other,) = (
        run_measure(COLUMN_RULES, study_of(table, each, codec, rng=np.random.default_rng(1)))
        for each in (table, shuffled)
    )
    assert (same.value, same.baseline, other.baseline) == (1.0, 1.0, 1.0)
    assert other.value is not None
    assert other.value < 0.2


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("net <= total", "1 of 200 rows break"),
        ("city <= state", "kinds"),
        ("net + tax", "is not one"),
        ("net <= nothing", "is not one"),
        ("net <= net", "is not one"),
    ],
)
def test_a_rule_that_cannot_be_kept_is_refused_without_a_cell(rule: str, words: str) -> None:
    cells = visits(np.random.default_rng(5))
    cells["net"][3] = 77_777.0
    table = pa.table(cells)
    fields = tuple(dataclasses.replace(field, repair=False) for field in Schema.infer(table))
    with pytest.raises(SchemaError, match=words) as error:
        sf.sanitize(table, k=5, schema=Schema(fields, (rule,)), report=False)
    assert "77" not in str(error.value)


@pytest.mark.parametrize(
    "rules", [("a <= b", "b <= c", "c <= a"), ("a = b + c", "a = b - c"), ("a = b + c", "a <= b"), ("t = a + b",)]
)
def test_rules_that_contradict_each_other_are_refused(rules: tuple[str, ...]) -> None:
    table = pa.table(dict.fromkeys("abct", np.zeros(40, dtype=np.int64)))
    schema = Schema(Schema.infer(table, target="t").fields, rules)
    with pytest.raises(SchemaError, match=r"leave one|state it|leave the rule out"):
        sf.sanitize(table, k=5, schema=schema, report=False)


def test_names_that_hold_signs_are_read_in_the_one_way_there_is() -> None:
    names = ("a - b", "a", "b", "c")
    assert read_rules(["c = a - b + a"], names) == (Rule("+", ("c", "a - b", "a")),)
    with pytest.raises(SchemaError, match="is not one"):
        read_rules(["c = a - b"], ("a", "b"))


def doubled(rng: np.random.Generator, rows: int = 200) -> dict[str, list[Any]]:
    """Visits of which two columns stand twice, one of them with missing cells, and one that is nearly the same."""
    table = visits(rng, rows, missing=True)
    table |= {"day": list(table["admission"]), "price": list(table["net"]), "nearly": list(table["net"])}
    for row in range(20):  # 10 lower and 10 higher: fewer would be taken as slips
        table["nearly"][row] = round(table["nearly"][row] + (0.01 if row % 2 else -0.01), 2)
    return table


@pytest.mark.parametrize("method", ["condense", "chain"])
@pytest.mark.parametrize("text", [False, True])
def test_columns_that_are_the_same_stay_the_same(method: str, text: bool) -> None:
    cells = doubled(np.random.default_rng(5))
    table = pa.table(
        {name: [None if cell is None else str(cell) for cell in of] for name, of in cells.items()} if text else cells
    )
    rules = set(Schema.infer(table).rules)
    assert RULES | {"day = admission", "price = net"} == rules
    release = sf.sanitize(table, method=method, k=5, seed=1, report=False)
    assert release.table["day"].to_pylist() == release.table["admission"].to_pylist()
    assert release.table["price"].to_pylist() == release.table["net"].to_pylist()
    assert release.table["day"].type == table["day"].type
    (fact,) = (fact for fact in release.certificate.facts if isinstance(fact, ColumnRulesKept))
    assert {"day = admission", "price = net"} <= set(fact.rules)


def test_a_copy_is_made_from_the_target_and_of_two_values_a_label_decides() -> None:
    rng = np.random.default_rng(3)
    pay, level = rng.integers(0, 999, 200), rng.integers(0, 2, 200) * 3
    table = pa.table({"same": pay, "pay": pay, "level": level, "twice": level, "age": rng.integers(18, 90, 200)})
    assert Schema.infer(table, target="pay").rules == ("same = pay", "level -> twice")
    release = sf.sanitize(table, method="chain", k=5, target="pay", seed=1, report=False)
    assert release.table["same"].equals(release.table["pay"])


def test_rows_in_which_two_columns_differ_are_counted() -> None:
    table = pa.table({"a": [1, 2, None, None, 7, 8], "b": [1, 3, None, 4, 7, 8]})
    schema = Schema.infer(table)
    cells = {name: cells_of_column(table[name], schema[name]) for name in ("a", "b")}
    assert broken_rows(Rule("=", ("a", "b")), cells).tolist() == [False, True, False, True, False, False]
    assert read_rules(["a = b"], ("a", "b")) == (Rule("=", ("a", "b")),)
