"""Aggregation: values as labels of a level, told by an option or by the schema, and counted by a reviewer."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import LevelError, OptionError, SchemaError
from sfumato.engines.memory import run_in_memory
from sfumato.engines.outcome import Comparison
from sfumato.engines.plan import make_plan
from sfumato.methods.modify.facts import IdenticalRows
from sfumato.publish.verify import verify_release
from sfumato.tables.facts import Aggregated
from tests.modify.tables import mixed, origin_of


def release_of(**options: Any) -> sf.Release:
    told = {"widths": {"pay": 500, "age": 10}, "coarsened": {"seen": 3}}
    return sf.sanitize(mixed(), method="aggregate", **{"report": False, **told, **options})


def test_values_become_the_labels_of_their_level() -> None:
    release, table = release_of(), mixed()
    origin = origin_of(release)
    ages, days = table["age"].take(origin).to_pylist(), table["seen"].take(origin).to_pylist()
    tens = [None if age is None else f"[{age // 10 * 10}, {age // 10 * 10 + 10})" for age in ages]
    assert release.table["age"].to_pylist() == tens
    assert release.table["seen"].to_pylist() == [str(day.year) for day in days]
    for name in ("smokes", "town", "ill"):
        assert release.table[name].to_pylist() == table[name].take(origin).to_pylist()
    (fact,) = (fact for fact in release.certificate.facts if isinstance(fact, Aggregated))
    assert fact.columns == ("age", "pay", "seen")
    assert (fact.hierarchies, fact.levels) == (("intervals 10", "intervals 500", "calendar"), (1, 1, 3))


def test_the_schema_may_say_the_level_and_a_recipe_says_it_again(tmp_path: Path) -> None:
    schema = sf.inspect(mixed())
    fields = [
        dataclasses.replace(field, hierarchy="intervals 5 20", coarsened=2) if field.name == "age" else field
        for field in schema
    ]
    release = sf.sanitize(mixed(), method="aggregate", schema=sf.Schema(tuple(fields)), report=False, seed=3)
    assert set(release.table["age"].to_pylist()) == {None, "[0, 20)", "[20, 40)", "[40, 60)", "[60, 80)"}
    (tmp_path / "recipe.toml").write_text(release_of(seed=3).recipe.to_toml(), encoding="utf-8")
    again = sf.sanitize(mixed(), recipe=tmp_path / "recipe.toml", report=False)
    assert again.table == release_of(seed=3).table


def test_other_methods_that_keep_rows_say_of_widened_columns_that_they_are() -> None:
    schema = sf.inspect(mixed())
    fields = [
        dataclasses.replace(field, hierarchy="calendar", coarsened=2) if field.name == "seen" else field
        for field in schema
    ]
    release = sf.sanitize(
        mixed(), method="block", columns=["seen", "ill"], schema=sf.Schema(tuple(fields)), report=False
    )
    assert any(isinstance(fact, Aggregated) for fact in release.certificate.facts)


def test_a_reviewer_counts_rows_alike_and_reads_labels(tmp_path: Path) -> None:
    release = release_of()
    folder = release.save(tmp_path / "out") / "release"
    found = {check.name: check for check in verify_release(folder)}
    assert found["equivalence classes"].holds
    assert found["generalized values"].detail == "3 columns contain only labels of the certified level"
    (alike,) = (fact for fact in release.certificate.facts if isinstance(fact, IdenticalRows))
    rows = release.table.group_by(release.table.column_names).aggregate([([], "count_all")])
    assert sum(count == 1 for count in rows["count_all"].to_pylist()) == alike.alone
    text = (folder / "table.csv").read_text(encoding="utf-8")
    (folder / "table.csv").write_text(text.replace("[20, 30)", "[20, 25)"), encoding="utf-8")
    assert not {check.name: check for check in verify_release(folder)}["generalized values"].holds
    (folder / "table.csv").write_text(text, encoding="utf-8")
    document = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    place = next(place for place, fact in enumerate(document["facts"]) if fact["fact"] == "identical-rows")
    document["facts"][place]["alone"] += 1
    (folder / "certificate.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    assert not {check.name: check for check in verify_release(folder)}["equivalence classes"].holds


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"widths": {}, "coarsened": {}}, OptionError, "has no column to coarsen"),
        ({"widths": {"town": 10}}, SchemaError, "'town'"),
        ({"coarsened": {"town": 1}}, OptionError, "'town' has no hierarchy to take a level of"),
        ({"coarsened": {"seen": 4}}, SchemaError, "'seen' is coarsened to a level that its hierarchy does not have"),
        ({"coarsened": {"seen": 0}}, OptionError, "a whole number of at least 1"),
        ({"widths": {"age": -1}}, OptionError, "a number above 0"),
        ({"widths": 5}, OptionError, "widths is of type int; give a list or a mapping"),
        ({"widths": [["age", 5], ["age", 6]]}, OptionError, "names a column twice"),
        ({"widths": {"seen": 1}, "coarsened": {"seen": 1}}, OptionError, "'seen' has a level and a width"),
        ({"widths": {"agee": 10}}, OptionError, "did you mean 'age'"),
        ({"identifiers": ["age"]}, OptionError, "'age' is identifier, so it has no values to widen"),
        ({"level": 4}, LevelError, "which aggregation does not give"),
    ],
)
def test_what_cannot_be_widened_is_refused_in_a_sentence(options: dict[str, Any], kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        release_of(**options)


def test_the_report_is_told_what_was_widened() -> None:
    outcome = run_in_memory(mixed(), make_plan(mixed(), sf.Aggregation(widths={"age": 10})))
    assert isinstance(outcome.comparison, Comparison)
    told = "The values of 1 column were widened before rows were compared; what that loses is not counted."
    assert outcome.comparison.notes == (told,)


def test_rows_of_one_label_are_counted_alike() -> None:
    table = pa.table({"age": [20, 21, 22, 31, 32, 33], "sex": ["f", "f", "m", "m", "f", "m"]})
    release = sf.sanitize(table, method="aggregate", widths={"age": 10}, identifiers=["sex"], report=False)
    (alike,) = (fact for fact in release.certificate.facts if isinstance(fact, IdenticalRows))
    assert alike == IdenticalRows(("age",), 6, 3, 0)
