"""Rare values: no category held by fewer than k persons is released, whatever method makes the rows."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import LevelError, OptionError, PrivacyRefusal
from sfumato.core.randomness import Randomness
from sfumato.methods.protocol import Mechanism
from sfumato.tables.facts import RareValues
from sfumato.tables.schema import Domain, Field, Kind, Role, Schema
from sfumato.tables.tails import pool_rare_values
from tests.examples import examples

SIZES = ["s", "m", "l", "xl"]
SCHEMA = Schema(
    (
        Field("who", Kind.NOMINAL, Role.PERSON),
        Field("code", Kind.NOMINAL),
        Field("number", Kind.NOMINAL),
        Field("size", Kind.ORDINAL, domain=Domain(declared=True, categories=tuple(SIZES))),
        Field("ok", Kind.BOOLEAN),
        Field("town", Kind.NOMINAL, domain=Domain(declared=True, categories=("Bonn", "Mainz", "Trier", "Ulm"))),
        Field("pay", Kind.CONTINUOUS),
    )
)
METHODS: dict[str, Mechanism] = {
    "condense": sf.Condensation(k=4),
    "condense-paper": sf.Condensation(k=4, grouping="paper"),
    "keep-persons": sf.Condensation(k=4),
    "classwise": sf.ClasswiseCondensation(k=4),
    "chain": sf.Chain(k=4, leaf=6),
    "laplace-pca": sf.LaplacePCA(k=4),
}
ONE_ROW_EACH = ("laplace-pca",)


def frame(seed: int, rows: int = 60, persons: int = 24) -> pa.Table:
    """Rows of persons with categories of all kinds, some rare, some missing, some never seen."""
    rng = np.random.default_rng(seed)
    share = rng.uniform(0.05, 0.6)

    def gaps(cells: list[Any]) -> list[Any]:
        lost = rng.choice([0.0, 0.03, 0.2])
        return [None if rng.random() < lost else cell for cell in cells]

    return pa.table(
        {
            "who": [f"p{number}" for number in (*range(persons), *rng.integers(0, persons, rows - persons))],
            "code": pa.array(gaps([f"c{number}" for number in rng.geometric(share, rows)]), pa.string()),
            "number": pa.array(gaps(rng.geometric(share, rows).tolist()), pa.int64()),
            "size": pa.array(gaps([SIZES[min(3, number)] for number in rng.poisson(share * 3, rows)]), pa.string()),
            "ok": pa.array(gaps((rng.random(rows) < share).tolist()), pa.bool_()),
            "town": pa.array(gaps([("Bonn", "Mainz", "Ulm")[min(2, n)] for n in rng.poisson(share * 2, rows)])),
            "pay": pa.array(gaps(rng.gamma(2.0, 300.0, rows).round(1).tolist()), pa.float64()),
        }
    )


def frequencies(table: pa.Table, name: str, who: list[Any]) -> dict[str, set[Any]]:
    found: dict[str, set[Any]] = defaultdict(set)
    for cell, person in zip(table.column(name).to_pylist(), who, strict=True):
        found[str(cell)].add(person)
    return found


def released(table: pa.Table, schema: Schema, mechanism: Mechanism, **options: Any) -> sf.Release | None:
    """The release, or nothing where no column is left or the target cannot be hidden."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            return sf.sanitize(table, mechanism, schema=schema, seed=3, report=False, **options)
        except (LevelError, PrivacyRefusal):
            return None


@pytest.mark.parametrize("method", METHODS)
@given(seed=st.integers(0, 10_000))
@examples(10, few=4)
def test_no_category_that_fewer_than_k_persons_hold_leaves(method: str, seed: int) -> None:
    table, schema, k = frame(seed), SCHEMA, 4
    if method in ONE_ROW_EACH:
        schema, table = schema.with_role(Role.IDENTIFIER, "who"), table.slice(0, 50)
    target = "ok" if method == "classwise" else None
    if target is not None:
        table = table.set_column(4, target, table.column(target).fill_null(False))
    told = {"target": target, "rare": "pool", "keep_persons": method == "keep-persons"}
    release = released(table, schema, METHODS[method], **told)
    if release is None:
        return
    who = table.column("who").to_pylist() if method not in ONE_ROW_EACH else list(range(table.num_rows))
    (fact,) = (fact for fact in release.certificate.facts if isinstance(fact, RareValues))
    assert (fact.k, fact.shown) == (k, False)
    for field in release.released:
        if field.role in (Role.IDENTIFIER, Role.PERSON):
            assert field.name not in release.table.column_names
            continue
        if field.name == "released_person":
            continue
        held = frequencies(table, field.name, who)
        for cell in set(map(str, release.table.column(field.name).to_pylist())):
            if field.kind is not Kind.CONTINUOUS or cell == "None":
                assert len(held.get(cell, ())) >= k or cell == "other", field.name
    assert not set(fact.dropped) & set(release.table.column_names)
    texts = [claim.claim for claim in release.certificate.claims]
    assert f"The release contains no category that fewer than {k} persons in the table have." in texts


@given(seed=st.integers(0, 10_000), k=st.integers(2, 9))
@examples(60)
def test_what_is_pooled_is_held_by_k_persons_too(seed: int, k: int) -> None:
    table = frame(seed)
    who = np.unique(table.column("who").to_pylist(), return_inverse=True)[1]
    rng = Randomness(1).generator("test")
    shared = pool_rare_values(table, SCHEMA, k=k, way="pool", persons=who, rng=rng)
    for field in shared.schema.encoded:
        held = frequencies(shared.table, field.name, who.tolist())
        gone = held.pop("None", set())
        assert not gone or len(gone) >= k
        if field.kind is not Kind.CONTINUOUS:
            assert held
            assert all(len(persons) >= k for persons in held.values())
            assert "other" not in held or len(held["other"]) > k
            common = {
                cell for cell, persons in frequencies(table, field.name, who.tolist()).items() if len(persons) >= k
            }
            assert field.kind is Kind.ORDINAL or common - {"None"} <= set(held)  # none pays for a rare one
    again = pool_rare_values(shared.table, shared.schema, k=k, way="pool", persons=who, rng=rng)
    assert not again.recodings
    assert again.fact is None or not again.fact.dropped


def people(rows: int = 60) -> dict[str, list[Any]]:
    """People of two large towns, and of three small ones that together are enough for a pooled label at k = 5."""
    town = ["Bonn"] * 26 + ["Ulm"] * 22 + ["Mainz"] * 4 + ["Trier"] * 4 + ["Worms"] * 4
    return {"town": town[:rows], "age": [20 + place % 17 for place in range(rows)]}


def towns(release: sf.Release) -> list[str]:
    return sorted(set(release.table.column("town").to_pylist()))


@pytest.mark.parametrize("seed", range(5))
def test_rare_categories_are_pooled_if_twice_as_many_persons_hold_any_of_them(seed: int) -> None:
    assert towns(sf.sanitize(pa.table(people()), k=5, seed=seed, report=False)) == ["Bonn", "Ulm", "other"]


@pytest.mark.parametrize("seed", range(5))
def test_no_common_category_pays_for_rare_ones_that_too_few_hold(seed: int) -> None:
    table = pa.table(people()).slice(0, 53)  # 5 persons of Mainz and Trier: a pooled label would need 6 at least
    assert towns(sf.sanitize(table, k=5, seed=seed, report=False)) == ["Bonn", "Ulm"]
    table = pa.table({"town": ["Bonn"] * 30 + ["Ulm"] * 6 + ["Mainz"], "age": people()["age"][:37]})
    shared = pool_rare_values(
        table, Schema.infer(table), k=5, way="pool", persons=None, rng=Randomness(seed).generator("test")
    )
    assert shared.table.column("town").to_pylist()[:36] == table.column("town").to_pylist()[:36]
    assert shared.schema["town"].domain.categories == ("Bonn", "Ulm")


def test_other_gets_a_name_that_no_category_has() -> None:
    table = pa.table(people())
    cells = ["Other" if town == "Ulm" else town for town in table.column("town").to_pylist()]
    table = table.set_column(0, "town", pa.array(cells))
    release = sf.sanitize(table, k=5, seed=1, report=False)
    assert sorted(set(release.table.column("town").to_pylist())) == ["Bonn", "Other", "other_2"]


def test_a_column_left_with_one_common_value_stays_and_is_constant() -> None:
    table = pa.table({**people(), "ill": [place == 7 for place in range(60)]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        release = sf.sanitize(table, k=5, seed=1, report=False)
    assert release.table.column("ill").to_pylist() == [False] * 60
    assert release.table.column("ill").type == pa.bool_()


def test_a_column_without_a_common_value_is_dropped_with_a_word() -> None:
    table = pa.table({**people(), "code": [f"c{place}" if place < 9 else None for place in range(60)]})
    fields = (Field("town", Kind.NOMINAL), Field("age", Kind.INTEGER), Field("code", Kind.NOMINAL))
    schema = Schema(fields)
    with pytest.warns(
        UserWarning, match="without a value held by 5 persons were dropped: 1, the first is 'code'; a lower level"
    ):
        release = sf.sanitize(table, k=5, seed=1, schema=schema, report=False)
    assert release.table.column_names == ["town", "age"]
    assert release.schema["code"].role is Role.CONFIDENTIAL  # the recipe goes on with the same table


def test_a_rare_class_of_the_target_stops_until_it_is_told_what_to_do() -> None:
    table = pa.table(people())
    with pytest.raises(PrivacyRefusal, match="class of the target 'town' is that of fewer than 5 persons"):
        sf.sanitize(table, k=5, target="town", seed=1, report=False)
    release = sf.sanitize(table, k=5, target="town", rare="pool", seed=1, report=False)
    assert set(release.table.column("town").to_pylist()) == {"Bonn", "Ulm", "other"}
    with pytest.raises(PrivacyRefusal, match="no class of the target 'town' is held by 29 persons"):
        sf.sanitize(table, k=29, target="town", rare="pool", seed=1, report=False)


def test_what_is_kept_is_refused_as_a_claim() -> None:
    release = sf.sanitize(pa.table(people()), k=5, rare="keep", seed=1, report=False)
    assert set(release.table.column("town").to_pylist()) == {"Bonn", "Ulm", "Mainz", "Trier", "Worms"}
    assert RareValues("keep", 5, 1) in release.certificate.facts
    sentence = "The release contains no category that fewer than 5 persons in the table have."
    assert sentence in [refused.claim for refused in release.certificate.refused]
    assert sentence not in [claim.claim for claim in release.certificate.claims]


def test_persons_are_counted_and_not_rows() -> None:
    table = pa.table({**people(), "who": [f"p{min(place, 54)}" for place in range(60)]})
    told: dict[str, Any] = {"method": "condense", "k": 4, "seed": 1, "report": False}
    rows = sf.sanitize(table, identifiers=["who"], rows_are_people=True, **told)
    assert towns(rows) == ["Bonn", "Mainz", "Trier", "Ulm", "Worms"]
    persons = sf.sanitize(table, person="who", **told)
    assert towns(persons) == ["Bonn", "Mainz", "Ulm"]  # 8 rows of three persons are not 8 persons


def test_a_recipe_repeats_what_was_done(tmp_path: Path) -> None:
    table = pa.table(people())
    first = sf.sanitize(table, k=5, rare="pool", seed=4, report=False)
    first.save(tmp_path / "out")
    assert sf.verify(tmp_path / "out" / "release").checks[0].holds
    again = sf.sanitize(table, recipe=tmp_path / "out" / "owner" / "recipe.toml", report=False)
    assert again.recipe.options.rare == "pool"
    assert again.table.equals(first.table)
    with pytest.raises(OptionError, match="recipe= already sets rare="):
        sf.sanitize(table, recipe=tmp_path / "out" / "owner" / "recipe.toml", rare="keep", report=False)


def test_codes_that_are_numbers_become_texts_where_some_are_pooled() -> None:
    pd = pytest.importorskip("pandas")
    frame_ = pd.DataFrame(
        {"code": pd.Categorical([1] * 26 + [2] * 22 + [3] * 4 + [4] * 4 + [5] * 4), "age": people()["age"]}
    )
    release = sf.sanitize(frame_, k=5, seed=1, report=False)
    assert set(release.table["code"]) == {"1", "2", "other"}
    assert release.table["age"].dtype == frame_["age"].dtype


def test_more_than_200_categories_go_through() -> None:
    rng = np.random.default_rng(2)
    codes = [f"c{place}" for place in rng.permutation(np.repeat(np.arange(260), 4))]
    table = pa.table({"code": codes, "age": rng.integers(18, 90, len(codes))})
    for mechanism in (sf.Condensation(k=3), sf.LaplacePCA(k=4)):
        release = sf.sanitize(table, mechanism, seed=1, report=False)
        assert sorted(release.table.column("code").to_pylist()) == sorted(codes)


@pytest.mark.parametrize("method", ["condense", "condense-paper", "classwise", "chain", "keep-persons"])
@given(seed=st.integers(0, 10_000))
@examples(10, few=1)
def test_very_many_categories_leave_where_k_persons_hold_them(method: str, seed: int) -> None:
    """Some of 250 are rare and some cells missing; a group of condensation keeps its counts, one by one."""
    rng = np.random.default_rng(seed)
    places = np.concatenate([np.repeat(np.arange(250), 4), np.arange(250, 260)])
    codes = np.array([f"c{place:03d}" for place in rng.permutation(places)], dtype=object)
    codes[rng.random(len(codes)) < rng.choice([0.0, 0.1])] = None
    level = np.array([0.0 if code is None else float(code[1:]) for code in codes])
    columns = {"code": pa.array(codes, pa.string()), "size": level + rng.normal(0, 5, len(codes))}
    table = pa.table({**columns, "who": [f"p{place % 900}" for place in range(len(codes))]})
    table = table.append_column("ok", pa.array((level > 120).tolist()))
    target, quick = "ok" if method == "classwise" else None, dict[str, Mechanism]()
    quick |= {name: sf.Condensation(k=4, grouping="mdav") for name in ("condense", "keep-persons")}
    quick["classwise"] = sf.ClasswiseCondensation(k=4, grouping="mdav")
    schema = Schema.infer(table).without_rules().with_role(Role.PERSON, "who")
    release = sf.sanitize(
        table,
        quick.get(method, METHODS[method]),
        schema=schema,
        target=target,
        rare="pool",
        keep_persons=method == "keep-persons",
        seed=3,
        report=False,
    )
    held = frequencies(table, "code", table.column("who").to_pylist())
    made = release.table.column("code").to_pylist()
    rare = {cell for cell, who in held.items() if len(who) < 4}
    common = set(held) - rare
    assert set(map(str, made)) <= common | {"other"}
    assert len(set(made)) > 0.85 * len(common)
    number = np.array([np.nan if code in (None, "other") else float(code[1:]) for code in made])
    known = ~np.isnan(number)
    assert np.corrcoef(number[known], np.array(release.table.column("size"))[known])[0, 1] > 0.7
    if method.startswith("condense"):  # nothing is drawn that the table does not hold as often
        pooled = ["other" if str(cell) in rare else cell for cell in table.column("code").to_pylist()]
        assert sorted(map(str, made)) == sorted(map(str, pooled)) or len(made) < len(pooled)


@pytest.mark.parametrize("method", ["noise", "randomize", "rotate"])
def test_methods_without_a_level_promise_nothing_of_rare_values(method: str) -> None:
    options: dict[str, Any] = {"noise": {"size": 0.3}, "randomize": {"epsilon": 1.0}, "rotate": {}}[method]
    with pytest.raises(OptionError, match="no level that rare values could be counted by"):
        sf.sanitize(pa.table(people()), method=method, rare="pool", seed=1, report=False, **options)
    with pytest.raises(OptionError, match="no way 'hide' to take rare values"):
        sf.sanitize(pa.table(people()), k=5, rare="hide", seed=1, report=False)


def test_inspect_says_what_will_become_of_rare_values() -> None:
    table = pa.table({**people(), "ill": [place == 7 for place in range(60)]})
    shown = str(sf.inspect(table, k=5))
    assert "categories held by fewer than 5 persons become 'other'" in shown
    assert "categories held by fewer than 5 persons become a common one" in shown
    assert "say with rare=" in str(sf.inspect(table, k=5, target="town"))
    assert "Mainz" not in shown
    assert "fewer" not in str(sf.inspect(table.drop_columns(["ill"]), k=2))


def test_people_held_out_are_counted_as_the_others_are() -> None:
    rng = np.random.default_rng(4)
    table = pa.table({"town": [f"t{n}" for n in rng.geometric(0.3, 300)], "age": rng.integers(18, 90, 300)})
    release = sf.sanitize(table, k=5, holdout=0.3, seed=1)
    assert release.report is not None
    rarest = next(finding for finding in release.report.findings if finding.name == "rarest-category")
    assert rarest.value is not None
    assert rarest.value >= 5


def test_a_date_of_birth_that_few_have_is_dropped_and_not_said_to_be_coarsened() -> None:
    born = [datetime.date(1950 + place, 3, 7) if place < 3 else None for place in range(60)]
    table = pa.table({**people(), "birth_date": pa.array(born, pa.date32())})
    with pytest.warns(UserWarning, match="the first is 'birth_date'"):
        release = sf.sanitize(table, k=5, seed=1, report=False)
    assert release.table.column_names == ["town", "age"]


def citizens(rare: int, seed: int = 1) -> pa.Table:
    """600 people of three towns, a given number of whom are from others, one or two from each."""
    rng = np.random.default_rng(seed)
    town = rng.permutation(np.repeat(["Bonn", "Mainz", "Ulm"], 200)).astype(object)
    town[:rare] = [f"village {place // 2}" for place in range(rare)]
    ill = rng.random(600) < 0.4
    columns = {"town": town.tolist(), "age": rng.integers(18, 90, 600), "pay": rng.gamma(2.0, 900.0, 600).round(2)}
    return pa.table({**columns, "ill": ill})


WITH_AND_WITHOUT: dict[str, Mechanism] = {
    "chain": sf.Chain(k=10),
    "condense": sf.Condensation(k=10, effort="fast"),
    "classwise": sf.ClasswiseCondensation(k=10, effort="fast"),
}


@pytest.mark.parametrize("rare", [0, 1, 3, 9])
@pytest.mark.parametrize("method", WITH_AND_WITHOUT)
def test_people_of_rare_categories_show_in_no_label(method: str, rare: int) -> None:
    for seed in range(6):
        release = sf.sanitize(
            citizens(rare, seed), WITH_AND_WITHOUT[method], target="ill", seed=seed, report=False, rows_are_people=True
        )
        assert towns(release) == ["Bonn", "Mainz", "Ulm"]
        assert release.released["town"].domain.categories == ("Bonn", "Mainz", "Ulm")
        (fact,) = (fact for fact in release.certificate.facts if isinstance(fact, RareValues))
        assert fact == RareValues("pool", 10, 2)


@pytest.mark.parametrize("rare", [0, 1, 3, 9])
def test_people_of_rare_codes_show_in_no_wider_label(rare: int) -> None:
    for seed in range(6):
        codes = np.random.default_rng(seed).permutation(np.repeat(["I10.0", "I25.1", "J45.9"], 200)).astype(object)
        codes[:rare] = [f"C{place % 5:02d}.1" for place in range(rare)]
        table = citizens(0, seed).append_column("code", pa.array(codes.tolist()))
        fields = Schema.infer(table).without_rules().fields
        schema = Schema((*fields[:-1], Field("code", Kind.NOMINAL, hierarchy="icd10")))
        release = sf.sanitize(table, WITH_AND_WITHOUT["condense"], schema=schema, seed=seed, report=False)
        assert set(release.table.column("code").to_pylist()) == {"I10.0", "I25.1", "J45.9"}
        assert RareValues("pool", 10, 3) in release.certificate.facts


@pytest.mark.parametrize("missing", [0, 1, 9])
def test_people_who_alone_lack_a_cell_show_in_no_missing_cell(missing: int) -> None:
    for method, mechanism in WITH_AND_WITHOUT.items():
        table = citizens(0)
        for name in ("town", "age", "pay"):
            cells = table.column(name).to_pylist()
            place = table.column_names.index(name)
            table = table.set_column(place, name, pa.array([None] * missing + cells[missing:], table.column(name).type))
        release = sf.sanitize(table, mechanism, target="ill", seed=1, report=False, rows_are_people=True)
        assert [release.table.column(name).null_count for name in ("town", "age", "pay")] == [0, 0, 0], method


_REPEATED = """
from tests.tables.test_rare import WITH_AND_WITHOUT, citizens
import pyarrow as pa, sfumato as sf
table = citizens(3)
for place, name in enumerate(table.column_names[:3]):
    cells = [None] * 5 + table.column(name).to_pylist()[5:]
    table = table.set_column(place, name, pa.array(cells, table.column(name).type))
print(sf.sanitize(table, WITH_AND_WITHOUT["condense"], seed=1, report=False).table.to_pydict())
"""


def test_a_seed_gives_the_same_rows_however_python_hashes() -> None:
    made = [
        subprocess.run(
            [sys.executable, "-c", _REPEATED],
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2", "5")
    ]
    assert len(set(made)) == 1


def test_a_typo_in_one_cell_leaves_the_schema_and_all_other_cells_as_they_were() -> None:
    table = citizens(0)
    cells = table.column("town").to_pylist()
    mistyped = table.set_column(0, "town", pa.array([*cells[:7], "Bnon", *cells[8:]]))
    assert Schema.infer(mistyped).public_part() == Schema.infer(table).public_part()
    rng = Randomness(1).generator("test")
    shared, usual = (
        pool_rare_values(each, Schema.infer(each), k=10, way=None, persons=None, rng=rng) for each in (mistyped, table)
    )
    assert shared.fact == usual.fact
    assert shared.schema["town"].domain.categories == ("Bonn", "Mainz", "Ulm")
    assert shared.table.drop_columns(["town"]).equals(table.drop_columns(["town"]))
    made = shared.table.column("town").to_pylist()
    assert made[:7] + made[8:] == cells[:7] + cells[8:]
    assert made[7] in ("Bonn", "Mainz", "Ulm")
    releases = [sf.sanitize(each, k=10, seed=1, report=False) for each in (mistyped, table)]
    first, second = ({type(fact).__name__ for fact in release.certificate.facts} for release in releases)
    assert first == second
    assert releases[0].table.schema == releases[1].table.schema
    assert towns(releases[0]) == towns(releases[1])
    assert releases[0].released.public_part() == releases[1].released.public_part()
