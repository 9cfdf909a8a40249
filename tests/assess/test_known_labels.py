"""Outsiders who know a column by wider labels of its hierarchy."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.assess.algebra import run_measure
from sfumato.assess.attacks.inference import ATTRIBUTE_INFERENCE
from sfumato.assess.attacks.linkage import LINKAGE, OWN_ROW_LINKAGE
from sfumato.assess.findings import Finding
from sfumato.assess.risk.uniqueness import class_findings
from sfumato.assess.study import StudyDetails, study_of
from sfumato.core.errors import OptionError
from sfumato.methods.protocol import OwnerDetails
from sfumato.tables.codec import Codec
from sfumato.tables.field import Domain, Field, Kind
from sfumato.tables.recoding import coarsen, coarser, known_columns, known_of, label_values, like_released
from sfumato.tables.schema import Schema
from tests.examples import examples

CODES = ("A01.1", "A01.2", "B05.0", "C34.1", "C35.9", "E10.2")


def people(seed: int, rows: int = 60) -> pa.Table:
    rng = np.random.default_rng(seed)
    gap = rng.random(rows) < 0.1
    days = np.datetime64("1980-01-01") + rng.integers(0, 900, rows)
    return pa.table(
        {
            "postcode": pa.array([f"{1000 + 37 * place:05d}" for place in rng.integers(0, 20, rows)], mask=gap),
            "town": [f"t{place}" for place in rng.integers(0, 6, rows)],
            "code": [CODES[place] for place in rng.integers(0, len(CODES), rows)],
            "born": days.astype("datetime64[D]"),
            "age": rng.integers(20, 90, rows),
            "ill": [("no", "yes", "maybe")[place] for place in rng.integers(0, 3, rows)],
        }
    )


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Schema:
    listed = tmp_path_factory.mktemp("towns") / "towns.csv"
    listed.write_text("".join(f"t{place};r{place // 2};all\n" for place in range(6)))
    said = {"postcode": "prefix", "town": f"file {listed}", "code": "icd10", "age": "intervals 10 50"}
    found = Schema.infer(people(1), target="ill")
    fields = tuple(dataclasses.replace(field, hierarchy=said.get(field.name)) for field in found)
    return dataclasses.replace(found, fields=fields)


def findings(
    tables: tuple[pa.Table, pa.Table, pa.Table], schema: Schema, known: list[str], workings: OwnerDetails | None = None
) -> dict[str, Finding]:
    original, released, outside = tables
    both = dataclasses.replace(schema, fields=tuple(_all(field, tables) for field in schema))
    codec = Codec.fit(original, both)
    study = study_of(
        original,
        released,
        codec,
        holdout=outside,
        details=StudyDetails(quasi_identifiers=known),
        workings=workings,
        rng=np.random.default_rng(1),
    )
    measures = (LINKAGE, ATTRIBUTE_INFERENCE) if workings is None else (OWN_ROW_LINKAGE,)
    found = [finding for measure in measures for finding in run_measure(measure, study)]
    return {finding.name: finding for finding in (*class_findings(study), *found)}


def _all(field: Field, tables: tuple[pa.Table, ...]) -> Field:
    """A category of any of the tables is one of the original's, so that none counts as missing."""
    if field.kind is not Kind.NOMINAL:
        return dataclasses.replace(field, domain=field.domain if field.kind is Kind.ORDINAL else Domain())
    cells = {cell for table in tables for cell in table.column(field.name).to_pylist()} - {None}
    return dataclasses.replace(field, domain=Domain(categories=tuple(sorted(cells))))


LEVELS = [("postcode", 2), ("town", 1), ("code", 1), ("code", 2), ("born", 2), ("age", 1)]


@pytest.mark.parametrize(("name", "level"), LEVELS)
def test_who_knows_labels_knows_as_much_as_of_tables_that_hold_only_these(
    schema: Schema, name: str, level: int
) -> None:
    tables = people(1), people(2), people(3)
    wide = coarser(schema, [(name, None, level)])
    plain = pa.concat_tables(tables)
    labelled, after = coarsen(plain, wide)
    whole = (labelled.slice(0, 60), labelled.slice(60, 60), labelled.slice(120, 60))
    by_labels, of_labels = findings(tables, schema, [f"{name}@{level}", "ill"]), findings(whole, after, [name, "ill"])
    for finding in (
        "equivalence-class-smallest",
        "equivalence-class-diversity",
        "equivalence-class-closeness",
        "linkage-few-columns",
    ):
        one, two = by_labels[finding], of_labels[finding]
        assert (one.value, one.baseline, one.control) == (two.value, two.baseline, two.control), finding


def test_labels_link_fewer_people_of_a_copy_than_values_and_leave_who_knows_all_alone(schema: Schema) -> None:
    table = people(4)
    copy = table, table, people(5)
    values, labels = (findings(copy, schema, [told, "town"]) for told in ("postcode", "postcode@2"))
    assert 0 < (labels["linkage-few-columns"].value or 0) < (values["linkage-few-columns"].value or 0)
    for way in ("euclid", "mahalanobis", "rank"):
        assert labels[f"linkage-{way}"].value == values[f"linkage-{way}"].value
    assert labels["attribute-inference-all-columns"].value == values["attribute-inference-all-columns"].value
    assert labels["attribute-inference-few-columns"].control is not None
    assert "town and postcode at level 2 of its hierarchy" in labels["attribute-inference-few-columns"].meaning
    assert "postcode at level 2 of its hierarchy" in labels["linkage-few-columns"].meaning


def test_who_knows_a_label_reads_the_value_itself_off_a_copy_where_few_share_the_label(schema: Schema) -> None:
    table = people(6)
    only = ["postcode", "town"]
    narrow = dataclasses.replace(schema, fields=tuple(schema[name] for name in only))
    few = table.select(only)
    told = findings((few, few, people(7).select(only)), narrow, ["postcode@1"])
    # the town is seldom told by the label, the postcode nearly always: of twenty, few share one
    assert (told["attribute-inference-few-columns"].value or 0) > 0.5


def test_own_rows_are_found_by_labels_too(schema: Schema) -> None:
    table = people(8)
    origin = OwnerDetails(origin=np.arange(60))
    values, labels = (findings((table, table, people(9)), schema, [told], origin) for told in ("age", "age@2"))
    first, second = (each["own-row-linkage-few-columns"].value or 0.0 for each in (values, labels))
    assert 0 < second < first
    assert values["own-row-linkage-euclid"].value == labels["own-row-linkage-euclid"].value


@given(seed=st.integers(0, 10_000), level=st.integers(1, 6))
@examples(10)
def test_labels_of_lifted_categories_are_those_of_what_was_lifted(seed: int, level: int) -> None:
    rng = np.random.default_rng(seed)
    codes = [f"{place:05d}" for place in rng.integers(0, 99999, 8)]
    prefix = sf.Schema.infer(people(1))["postcode"]
    for lifted in range(1, level + 1):
        wide = [sf_label(code, lifted) for code in codes]
        named = dataclasses.replace(prefix, hierarchy="prefix", domain=Domain(categories=tuple(dict.fromkeys(wide))))
        places = np.arange(len(set(wide)), dtype=np.float64)
        expected = [sf_label(code, level) for code in dict.fromkeys(wide)]
        assert label_values(named, level, places) == expected


def sf_label(code: str, level: int) -> str:
    kept = max(0, len(code) - level)
    return code[:kept] + "*" * (len(code) - kept) if kept else "*"


def test_a_label_stays_where_the_hierarchy_does_not_list_it() -> None:
    field = Field("code", Kind.NOMINAL, domain=Domain(categories=("C34.1", "C34.-", "C00-D48", "other")))
    field = dataclasses.replace(field, hierarchy="icd10")
    assert label_values(field, 1, np.arange(4.0)) == ["C34.-", "C34.-", "C00-D48", "*"]
    assert label_values(field, 2, np.arange(4.0)) == ["C00-D48", "C00-D48", "C00-D48", "*"]


def test_a_column_that_is_counted_as_the_release_has_it_keeps_its_hierarchy(schema: Schema) -> None:
    table = people(10)
    wide, _ = coarsen(table, coarser(schema, [("postcode", None, 2)]))
    changed = [each.after for each in like_released(table, wide, schema) if each.before.name == "postcode"]
    assert [after.hierarchy for after in changed if after is not None] == ["prefix"]


def test_a_run_attacks_with_labels(schema: Schema) -> None:
    table = people(1)
    release = sf.sanitize(
        table, sf.Condensation(k=3), schema=schema, quasi_identifiers=["postcode@3", "age@1"], seed=1, time_limit=1
    )
    assert release.report is not None
    found = {finding.name: finding for finding in release.report.findings}
    assert found["equivalence-class-smallest"].value is not None
    assert "age at level 1 of its hierarchy" in found["attribute-inference-few-columns"].meaning


@pytest.mark.parametrize(
    ("known", "words"),
    [
        (["ill@1"], "column 'ill' has no hierarchy to know a level of"),
        (["code@3"], "the hierarchy of column 'code' has 2 levels"),
        (["code@0"], "no column 'code@0' that is measured.*did you mean 'code'"),
        (["postcode@2,postcode"], "column 'postcode' is named twice"),
        (["nothing@2"], "no column 'nothing@2' that is measured"),
    ],
)
def test_levels_that_are_not_there_are_refused(schema: Schema, known: list[str], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        known_columns(known, schema)


def test_a_column_that_is_compared_at_a_level_is_known_at_it(schema: Schema) -> None:
    wide = coarser(schema, [("code", None, 1)])
    with pytest.raises(OptionError, match="column 'code' is compared at level 1 of its hierarchy already"):
        known_columns(["code@2"], wide)
    assert known_columns(["code", "born@3,age@1"], wide) == ("code", "born@3", "age@1")
    after = coarsen(people(1), wide)[1]
    assert known_of(["code@2", "born@3", "gone@1"], after) == ["code", "born@3"]


def test_a_name_with_an_at_is_a_column_where_there_is_one() -> None:
    odd = Schema((Field("a@1", Kind.INTEGER), Field("a", Kind.INTEGER, hierarchy="intervals 10")))
    assert known_columns(["a@1"], odd) == ("a@1",)
    assert known_of(["a@1"], odd) == ["a@1"]


def test_who_compares_whole_rows_does_not_see_the_labels_of_an_outsider(schema: Schema) -> None:
    tables = people(1), people(2), people(3)
    plain, labelled = (findings(tables, schema, known) for known in (["town"], ["town@1", "age@1"]))
    for way in ("euclid", "mahalanobis", "rank"):
        finding, other = plain[f"linkage-{way}"], labelled[f"linkage-{way}"]
        assert (finding.value, finding.control, finding.baseline) == (other.value, other.control, other.baseline)
