"""Rare values: no category that fewer than k persons hold leaves, whatever method makes the rows."""

from __future__ import annotations

import datetime
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
from sfumato.core.facts import RareValues
from sfumato.core.randomness import Randomness
from sfumato.mechanisms.protocol import Mechanism
from sfumato.tables.rare import share_values
from sfumato.tables.schema import Domain, Field, Kind, Role, Schema
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


def holders(table: pa.Table, name: str, who: list[Any]) -> dict[str, set[Any]]:
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
    assert (fact.k, fact.shown) == (k, 0)
    for field in release.released:
        if field.role in (Role.IDENTIFIER, Role.PERSON):
            assert field.name not in release.table.column_names
            continue
        if field.name == "released_person":
            continue
        held = holders(table, field.name, who)
        for cell in set(map(str, release.table.column(field.name).to_pylist())):
            if field.kind is not Kind.CONTINUOUS or cell == "None":
                assert len(held.get(cell, ())) >= k or cell == "other", field.name
    assert not set(fact.dropped) & set(release.table.column_names)
    texts = [claim.claim for claim in release.certificate.claims]
    assert f"No category that fewer than {k} persons of the table hold appears in the release." in texts


@given(seed=st.integers(0, 10_000), k=st.integers(2, 9))
@examples(60)
def test_what_is_pooled_is_held_by_k_persons_too(seed: int, k: int) -> None:
    table = frame(seed)
    who = np.unique(table.column("who").to_pylist(), return_inverse=True)[1]
    rng = Randomness(1).generator("test")
    shared = share_values(table, SCHEMA, k=k, way="pool", persons=who, rng=rng)
    for field in shared.schema.encoded:
        held = holders(shared.table, field.name, who.tolist())
        gone = held.pop("None", set())
        assert not gone or len(gone) >= k
        if field.kind is not Kind.CONTINUOUS:
            alone = set(map(str, table.column(field.name).to_pylist())) - {"None"}
            assert len(held) >= 2 or len(alone) == 1
            assert all(len(persons) >= k for persons in held.values())
    again = share_values(shared.table, shared.schema, k=k, way="pool", persons=who, rng=rng)
    assert not again.recodings
    assert again.fact is None or not again.fact.dropped


def people(rows: int = 60) -> dict[str, list[Any]]:
    town = ["Bonn"] * 28 + ["Ulm"] * 26 + ["Mainz"] * 4 + ["Trier"] * 2
    return {"town": town[:rows], "age": [20 + place % 17 for place in range(rows)]}


def test_the_next_smallest_joins_what_is_pooled_where_that_is_too_small() -> None:
    table = pa.table(people())
    release = sf.sanitize(table, k=5, seed=1, report=False)
    assert sorted(set(release.table.column("town").to_pylist())) == ["Bonn", "Ulm", "other"]
    release = sf.sanitize(table, k=8, seed=1, report=False)
    assert sorted(set(release.table.column("town").to_pylist())) == ["Bonn", "other"]


def test_other_gets_a_name_that_no_category_has() -> None:
    table = pa.table(people())
    cells = ["Other" if town == "Ulm" else town for town in table.column("town").to_pylist()]
    table = table.set_column(0, "town", pa.array(cells))
    release = sf.sanitize(table, k=5, seed=1, report=False)
    assert sorted(set(release.table.column("town").to_pylist())) == ["Bonn", "Other", "other_2"]


def test_a_column_left_with_one_value_is_dropped_with_a_word() -> None:
    table = pa.table({**people(), "ill": [place == 7 for place in range(60)]})
    with pytest.warns(
        UserWarning, match="less than two values that 5 persons hold were dropped: 1, the first is 'ill'; a lower level"
    ):
        release = sf.sanitize(table, k=5, seed=1, report=False)
    assert release.table.column_names == ["town", "age"]
    assert release.schema["ill"].role is Role.CONFIDENTIAL  # the recipe goes on with the same table


def test_a_rare_class_of_the_target_stops_until_it_is_told_what_to_do() -> None:
    table = pa.table(people())
    with pytest.raises(PrivacyRefusal, match="class of the target 'town' is held by fewer than 5 persons"):
        sf.sanitize(table, k=5, target="town", seed=1, report=False)
    release = sf.sanitize(table, k=5, target="town", rare="pool", seed=1, report=False)
    assert set(release.table.column("town").to_pylist()) == {"Bonn", "Ulm", "other"}
    with pytest.raises(PrivacyRefusal, match="one would be left"):
        sf.sanitize(table, k=29, target="town", rare="pool", seed=1, report=False)


def test_what_is_kept_is_refused_as_a_claim_and_counted() -> None:
    release = sf.sanitize(pa.table(people()), k=5, rare="keep", seed=1, report=False)
    assert set(release.table.column("town").to_pylist()) == {"Bonn", "Ulm", "Mainz", "Trier"}
    assert RareValues("keep", 5, 1, shown=2) in release.certificate.facts
    sentence = "No category that fewer than 5 persons of the table hold appears in the release."
    assert sentence in [refused.claim for refused in release.certificate.refused]
    assert sentence not in [claim.claim for claim in release.certificate.claims]


def test_persons_are_counted_and_not_rows() -> None:
    table = pa.table({**people(), "who": [f"p{min(place, 54)}" for place in range(60)]})
    told: dict[str, Any] = {"k": 4, "seed": 1, "report": False}
    rows = sf.sanitize(table, identifiers=["who"], rows_are_people=True, **told)
    assert set(rows.table.column("town").to_pylist()) == {"Bonn", "Ulm", "other"}
    persons = sf.sanitize(table, person="who", **told)
    assert set(persons.table.column("town").to_pylist()) == {"Bonn", "other"}  # 6 rows of one person are not 6 persons


def test_a_recipe_repeats_what_was_done(tmp_path: Path) -> None:
    table = pa.table(people())
    first = sf.sanitize(table, k=5, rare="pool", seed=4, report=False)
    first.save(tmp_path / "out")
    assert sf.verify(tmp_path / "out" / "release").checks[0].holds
    again = sf.sanitize(table, recipe=tmp_path / "out" / "owner" / "recipe.toml", report=False)
    assert again.recipe.rare == "pool"
    assert again.table.equals(first.table)
    with pytest.raises(OptionError, match="--recipe already says what --rare says"):
        sf.sanitize(table, recipe=tmp_path / "out" / "owner" / "recipe.toml", rare="keep", report=False)


def test_codes_that_are_numbers_become_texts_where_some_are_pooled() -> None:
    pd = pytest.importorskip("pandas")
    frame_ = pd.DataFrame({"code": pd.Categorical([1] * 30 + [2] * 25 + [3] * 3 + [4] * 2), "age": people()["age"]})
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
    held = holders(table, "code", table.column("who").to_pylist())
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
    assert "2 that fewer than 5 persons hold become 'other'" in shown
    assert "less than two values that 5 persons hold: will be dropped" in shown
    assert "say with --rare" in str(sf.inspect(table, k=5, target="town"))
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
