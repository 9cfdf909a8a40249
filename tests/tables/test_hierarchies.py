"""Hierarchies: wider labels of values, for rare values and for columns that are released coarsened."""

from __future__ import annotations

import datetime
import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import OptionError, SchemaError
from sfumato.core.facts import Context
from sfumato.tables.facts import Aggregated, RareValues
from sfumato.tables.hierarchies import (
    CalendarHierarchy,
    Icd10Hierarchy,
    IntervalHierarchy,
    ListedHierarchy,
    PrefixHierarchy,
    parse_hierarchy,
    read_hierarchy,
)
from sfumato.tables.infer import infer_field
from sfumato.tables.recoding import coarsen
from sfumato.tables.schema import Field, Kind, Schema
from tests.examples import examples


@given(st.text("0123456789", min_size=1, max_size=8), st.integers(1, 10))
@examples(60)
def test_a_wider_prefix_holds_the_narrower_one(text: str, level: int) -> None:
    narrow, wide = PrefixHierarchy().label(text, level), PrefixHierarchy().label(text, level + 1)
    assert narrow.rstrip("*").startswith(wide.rstrip("*"))
    assert len(narrow) in (1, len(text))


@given(st.integers(-(10**6), 10**6), st.sampled_from([(1.0, 5.0), (0.5, 10.0), (10.0,)]))
@examples(60)
def test_a_number_lies_in_its_interval_and_that_in_the_wider_one(number: int, widths: tuple[float, ...]) -> None:
    edges = []
    for level in range(1, len(widths) + 1):
        low, high = (float(edge) for edge in IntervalHierarchy(widths).label(number, level)[1:-1].split(", "))
        assert low <= number < high
        edges.append((low, high))
    assert all(wide[0] <= one[0] and one[1] <= wide[1] for one, wide in itertools.pairwise(edges))


@given(st.floats(-1e9, 1e9), st.sampled_from([(1.0, 5.0), (0.5, 10.0), (0.1, 1.0), (10.0,), (2.5,)]))
@examples(60)
def test_the_label_of_a_number_is_known_as_one_and_the_number_is_not(number: float, widths: tuple[float, ...]) -> None:
    for level in range(1, len(widths) + 2):
        label = IntervalHierarchy(widths).label(number, level)
        assert IntervalHierarchy(widths).is_label(label, level)
    assert not IntervalHierarchy(widths).is_label(f"{number:g}", 1)
    assert not IntervalHierarchy(widths).is_label("[1e999, 1e999)", 1)
    assert not IntervalHierarchy(widths).is_label(f"[{number:.3f}, {number + widths[0] / 3:.3f})", 1)


@given(st.dates(), st.integers(1, 4))
@examples(30)
def test_a_month_a_quarter_and_a_year_are_known_as_labels_and_a_day_is_not(day: datetime.date, level: int) -> None:
    assert CalendarHierarchy().is_label(CalendarHierarchy().label(day, level), level)
    assert not CalendarHierarchy().is_label(day.isoformat(), level)


@pytest.mark.parametrize(("code", "level"), [("C34.1", 1), ("C34.1", 2), ("unknown", 1), ("01067", 1), ("01067", 3)])
def test_the_label_of_a_code_is_known_as_one_and_the_code_is_not(code: str, level: int) -> None:
    hierarchy = PrefixHierarchy() if code.isdigit() else Icd10Hierarchy()
    assert hierarchy.is_label(hierarchy.label(code, level), level)
    assert not hierarchy.is_label(code, level)


def test_labels_of_a_file_are_those_that_it_lists() -> None:
    listed = ListedHierarchy({"Bonn": ("NW", "west"), "Ulm": ("BW", "south")}, 2)
    assert [listed.is_label(each, 1) for each in ("NW", "west", "Bonn", "*")] == [True, False, False, True]


@pytest.mark.parametrize(
    ("code", "chapter"),
    [("A00.0", "A00-B99"), ("D48.9", "C00-D48"), ("D50.1", "D50-D90"), ("H59.1", "H00-H59"), ("H60.0", "H60-H95"),
     ("T98.3", "S00-T98"), ("Z99.9", "Z00-Z99"), ("U07.1", "U00-U99")],
)  # fmt: skip
def test_a_diagnosis_has_its_chapter(code: str, chapter: str) -> None:
    assert Icd10Hierarchy().label(code, 2) == chapter
    assert Icd10Hierarchy().label(code, 1) == f"{code[:3]}.-"


@pytest.mark.parametrize(
    ("text", "kind"),
    [("", "nominal"), ("prefix 2 3", "nominal"), ("prefix 0", "nominal"), ("prefix x", "nominal"), ("file", "nominal"),
     ("icd10 2", "nominal"), ("calendar", "nominal"), ("calendar", "integer"), ("intervals", "integer"),
     ("intervals 10 15", "integer"), ("intervals -1", "continuous"), ("intervals nan", "continuous"),
     ("prefix", "date"), ("file a\0b", "nominal"), ("prefix " + "9" * 2_000, "nominal")],
)  # fmt: skip
def test_what_is_no_hierarchy_is_refused_by_the_columns_name(text: str, kind: str) -> None:
    with pytest.raises(SchemaError, match="column 'code' is none; write 'prefix'"):
        parse_hierarchy(text, kind, "code")


def test_a_schema_says_hierarchies_and_levels_and_reads_them_back() -> None:
    schema = Schema(
        (
            Field("code", Kind.NOMINAL, hierarchy="prefix 3 1"),
            Field("born", Kind.DATE, hierarchy="calendar", coarsened=3),
            Field("age", Kind.INTEGER, hierarchy="intervals 5 10", coarsened=1),
        )
    )
    assert Schema.from_toml(schema.to_toml()) == schema
    assert "hierarchy" not in schema.public_part().to_toml()
    assert "hierarchy" not in Schema((Field("code", Kind.NOMINAL),)).to_toml()
    with pytest.raises(SchemaError, match="coarsened to a level that its hierarchy does not have"):
        Field("born", Kind.DATE, hierarchy="calendar", coarsened=4)
    with pytest.raises(SchemaError, match="coarsened by no hierarchy"):
        Field("born", Kind.DATE, coarsened=1)


def test_a_file_lists_labels_as_arx_writes_them(tmp_path: Path) -> None:
    place = tmp_path / "towns.csv"
    place.write_text('Bonn;NW;west\n"Ulm";BW;south\n', encoding="utf-8-sig")
    found = read_hierarchy(place)
    assert (found.label("Ulm", 1), found.label("Bonn", 2), found.label("Mainz", 1)) == ("BW", "west", "*")
    for text, words in (
        ("Bonn;NW\nBonn;NW\n", "lists a value for the second time"),
        ("Bonn;NW\nUlm;BW;south\n", "is not like the others"),
        ("Bonn\n", "is not like the others"),
        ("\n", "is empty"),
        ('"Bonn;NW\n', "cannot be read"),
    ):
        place.write_text(text, encoding="utf-8")
        with pytest.raises(SchemaError, match=words) as caught:
            read_hierarchy(place)
        assert "Bonn" not in str(caught.value).replace(str(place), "")


def patients(rows: int = 300) -> pa.Table:
    rng = np.random.default_rng(6)
    start = datetime.date(2021, 1, 1)
    return pa.table(
        {
            "postcode": [f"0{1 + place % 2}0{street:02d}" for place, street in enumerate(rng.poisson(9, rows))],
            "code": [f"{'CIJ'[n % 3]}{n % 7:02d}.{n % 5}" for n in rng.geometric(0.05, rows)],
            "age": rng.integers(18, 90, rows),
            "seen": pa.array([start + datetime.timedelta(int(day)) for day in rng.integers(0, 700, rows)]),
        }
    )  # fmt: skip


@pytest.mark.parametrize("stray", [None, "k.A.", "8033", "1"])
def test_postcodes_without_leading_zeros_are_no_numbers(stray: str | None) -> None:
    codes = [str(80_331 + 7 * (place % 60)) for place in range(600)]
    codes[5] = stray or codes[5]
    fields = {name: infer_field(name, pa.chunked_array([codes])) for name in ("PLZ", "amount")}
    assert (fields["PLZ"].kind, fields["PLZ"].hierarchy) == (Kind.NOMINAL, "prefix")
    assert fields["amount"].kind is Kind.INTEGER


def test_rare_values_are_lifted_where_a_hierarchy_is_known() -> None:
    table = patients()
    schema = sf.inspect(table)
    assert (schema["postcode"].hierarchy, schema["code"].hierarchy) == ("prefix", "icd10")
    release = sf.sanitize(table, sf.Condensation(k=10), seed=1, report=False)
    (fact,) = (fact for fact in release.certificate.facts if isinstance(fact, RareValues))
    assert (fact.way, fact.shown) == ("lift", 0)
    postcodes = set(release.table.column("postcode").to_pylist())
    assert any(cell.endswith("*") for cell in postcodes)
    assert any(
        cell in ("C00-D48", "I00-I99", "J00-J99") or cell.endswith(".-") for cell in release.table["code"].to_pylist()
    )
    counts = release.table.column("code").value_counts().field("counts").to_pylist()
    assert min(counts) >= 10
    pooled = sf.sanitize(table, k=10, rare="pool", seed=1, report=False)
    assert not any(cell.endswith("*") for cell in pooled.table.column("postcode").to_pylist())


def test_a_column_is_released_at_the_level_that_the_schema_says() -> None:
    table = patients()
    told = {"age": ("intervals 10 20", 2), "seen": ("calendar", 2), "postcode": ("prefix 2 1", 1)}
    fields = tuple(
        Field(field.name, field.kind, hierarchy=told[field.name][0], coarsened=told[field.name][1])
        if field.name in told else field
        for field in Schema.infer(table)
    )  # fmt: skip
    schema = Schema(fields, ())
    release = sf.sanitize(table, k=5, schema=schema, holdout=0.2, seed=1)
    assert set(release.table.column("age").to_pylist()) <= {f"[{low}, {low + 20})" for low in range(0, 100, 20)}
    assert set(release.table.column("postcode").to_pylist()) <= {"01***", "02***"}
    assert set(release.table.column("seen").to_pylist()) <= {
        f"{year}-Q{q}" for year in (2021, 2022) for q in (1, 2, 3, 4)
    }
    again = sf.sanitize(table, recipe=release.recipe, report=False)
    assert again.table.equals(release.table)
    with pytest.raises(OptionError, match="is to be coarsened, which is done for tables in memory alone"):
        sf.stream(Path("never.db"), table, schema=schema)


def test_coarsening_keeps_missing_cells() -> None:
    table = pa.table({"age": pa.array([1, None, 25]), "town": ["a1", "?", "b2"]})
    schema = Schema(
        (
            Field("age", Kind.INTEGER, hierarchy="intervals 10", coarsened=1),
            Field("town", Kind.NOMINAL, missing=("?",), hierarchy="prefix", coarsened=1),
        )
    )
    after, fields = coarsen(table, schema)
    assert after.column("age").to_pylist() == ["[0, 10)", None, "[20, 30)"]
    assert after.column("town").to_pylist() == ["a*", "?", "b*"]
    assert fields["age"].domain.categories == ("[0, 10)", "[20, 30)")


@pytest.mark.slow
def test_a_release_with_pooled_and_lifted_values_is_compared_with_its_original(tmp_path: Path) -> None:
    table = patients()
    sf.sanitize(table, k=10, seed=1, report=False).save(tmp_path / "out")
    report = sf.evaluate(table, tmp_path / "out", seed=1, time_limit=1)
    assert not any("unknown to the original" in note for note in report.notes)


@pytest.mark.parametrize("method", ["condense", "chain"])
def test_rows_made_anew_say_at_which_level_their_labels_are(tmp_path: Path, method: str) -> None:
    rng = np.random.default_rng(3)
    code = [f"{'ab'[place % 2]}{rng.integers(0, 9)}" for place in range(298)] + ["c1", "d2"]
    table = pa.table({"code": code, "age": rng.integers(20, 80, 300), "pay": rng.normal(30, 5, 300).round(1)})
    schema = Schema(
        (
            Field("code", Kind.NOMINAL, hierarchy="prefix", coarsened=1),
            Field("age", Kind.INTEGER, hierarchy="intervals 10 20", coarsened=1),
            Field("pay", Kind.CONTINUOUS),
        )
    )
    release = sf.sanitize(table, method=method, schema=schema, k=5, seed=1, report=False, rare="pool")
    release.save(tmp_path / "out")
    told = next(claim.claim for claim in release.certificate.claims if "labels of a hierarchy" in claim.claim)
    assert "2 columns" in told
    assert "or to a label named other" in told
    found = {check.name: check for check in sf.verify(tmp_path / "out" / "release")}
    assert found["generalized values"].holds
    assert found["generalized values"].checked
    altered = release.table.set_column(0, "code", pa.array(["a1"] * 300))
    context = Context(release.certificate.facts)
    rows = context.the(Aggregated).row_check(release.released, context)
    rows.add(altered)
    assert not all(check.holds for check in rows.checks())
