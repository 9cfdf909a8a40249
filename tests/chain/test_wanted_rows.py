"""More rows or fewer than records, and rows that fulfil a rule."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.core.facts import Shuffled
from sfumato.methods.chain.facts import ChainSynthesis
from sfumato.methods.protocol import Mechanism
from sfumato.tables.facts import RowsDrawn
from sfumato.tables.levels import parse_conditions
from tests.chain.test_chain import visits
from tests.examples import examples

METHODS: dict[str, Mechanism] = {
    "chain": sf.Chain(k=5, leaf=10),
    "condense": sf.Condensation(k=5),
    "classwise": sf.ClasswiseCondensation(k=5, grouping="mdav"),
}


def wanted(release: sf.Release) -> RowsDrawn:
    return next(fact for fact in release.certificate.facts if isinstance(fact, RowsDrawn))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rows", [7, 150, 640])
def test_as_many_rows_leave_as_were_asked_for(method: str, rows: int, tmp_path: Path) -> None:
    table = visits(150, 2)
    release = sf.sanitize(table, METHODS[method], target="ill", rows=rows, report=False)
    assert release.table.num_rows == release.certificate.rows_out == rows
    assert release.certificate.rows_in == 150
    assert wanted(release) == RowsDrawn(150, rows)
    more = [each.claim for each in release.certificate.refused if each.claim.startswith("More rows than")]
    assert bool(more) == (rows > 150)
    assert all(check.holds for check in sf.verify(release.save(tmp_path / "out") / "release"))


def test_more_rows_have_the_frequencies_of_the_table() -> None:
    table = visits(400, 3)
    for mechanism in METHODS.values():
        release = sf.sanitize(table, mechanism, target="ill", rows=6001, seed=1, report=False).table
        shares = [np.mean(each["ill"].to_numpy() == "yes") for each in (table, release)]
        assert abs(shares[0] - shares[1]) < 6 * (0.25 / 6000) ** 0.5


@pytest.mark.usefixtures("without_utility", "without_figures")
def test_a_release_of_other_rows_is_measured() -> None:
    release = sf.sanitize(visits(150, 2), METHODS["condense"], rows=60, holdout=0.3)
    assert release.report is not None
    assert release.table.num_rows == 60


@examples(30)
@given(st.integers(0, 10**6), st.sampled_from(("age > 45", "ill == yes and age >= 30", "paid == 0 and town != Bari")))
def test_every_row_fulfils_the_rule_and_its_columns_are_drawn_first(seed: int, where: str) -> None:
    table = visits(300, seed)
    release = sf.sanitize(table, METHODS["chain"], target="ill", where=where, rows=200, seed=seed, report=False)
    assert release.table.num_rows == 200
    assert wanted(release) == RowsDrawn(300, 200, where)
    names = tuple(dict.fromkeys(name for name, _, _ in parse_conditions(where)))
    chained = next(fact for fact in release.certificate.facts if isinstance(fact, ChainSynthesis))
    assert chained.columns[: len(names)] == names
    assert (chained.rows, chained.records) == (200, 300)
    for row in release.table.to_pylist():
        if "age" in where:
            assert row["age"] > 45 if where.startswith("age") else row["age"] >= 30 and row["ill"] == "yes"
        else:
            assert row["paid"] == 0.0
            assert row["town"] != "Bari"


def test_conditional_rows_are_as_those_of_the_people_who_fulfil_the_rule() -> None:
    table = visits(5000, 7)
    release = sf.sanitize(table, sf.Chain(), target="ill", where="ill == yes", rows=4000, seed=2, report=False).table
    ages = [each["age"].to_numpy(zero_copy_only=False) for each in (table, release)]
    ill = table["ill"].to_numpy() == "yes"
    assert abs(np.nanmean(ages[0][ill]) - np.nanmean(ages[1])) < 6 * 14 / 2000**0.5


def test_a_recipe_repeats_the_rows_and_verify_counts_those_astray(tmp_path: Path) -> None:
    table = visits(200, 4)
    release = sf.sanitize(table, METHODS["chain"], target="ill", where="age > 40", rows=50, seed=3, report=False)
    folder = release.save(tmp_path / "out")
    again = sf.sanitize(table, recipe=folder / "owner" / "recipe.toml", report=False)
    assert again.table.equals(release.table)
    with pytest.raises(OptionError, match="recipe= already sets where="):
        sf.sanitize(table, recipe=folder / "owner" / "recipe.toml", where="age > 3")
    file = folder / "release" / "table.csv"
    text = file.read_text(encoding="utf-8").splitlines()
    cells = text[1].split(",")
    file.write_text("\n".join([text[0], ",".join(["12", *cells[1:]]), *text[2:], ""]), encoding="utf-8")
    checks = {check.name: check for check in sf.verify(folder / "release")}
    assert not checks["row condition"].holds
    assert checks["row condition"].detail == "1 row does not satisfy the condition"


def test_rules_that_too_few_fulfil_and_columns_that_are_not_drawn_are_refused() -> None:
    table = visits(200, 4).append_column("name", pa.array([f"n{place}" for place in range(200)]))
    chain = METHODS["chain"]
    with pytest.raises(PrivacyRefusal, match="persons fulfil the rule of where= and at least 10 must"):
        sf.sanitize(table, chain, where="age > 90", identifiers=("name",), report=False)
    with pytest.raises(OptionError, match="column 'name' is not released"):
        sf.sanitize(table, chain, where="name == n1", identifiers=("name",), report=False)
    with pytest.raises(OptionError, match="the rule of where= is not of the form"):
        sf.sanitize(table, chain, where="age", report=False)
    first = np.random.default_rng(1).integers(0, 90, 200)
    ruled = pa.table({"first": first, "second": first + 5 + np.arange(200) % 7})
    with pytest.raises(OptionError, match="column 'first' is made by a rule between columns"):
        sf.sanitize(ruled, chain, where="first > 40", report=False)
    assert sf.sanitize(ruled, chain, where="first > 40", no_rules=True, report=False).table.num_rows == 200


def test_methods_that_make_no_rows_refuse_to_choose_them() -> None:
    table = visits(200, 4)
    for method in ("noise", "laplace-pca"):
        with pytest.raises(OptionError, match=r"makes no synthetic rows; drop rows="):
            sf.sanitize(table, method=method, rows=20, report=False)
    for method in ("condense", "noise"):
        with pytest.raises(OptionError, match="cannot draw rows that fulfil a rule"):
            sf.sanitize(table, method=method, where="age > 40", report=False)
    for rows in (0, -3, True):
        with pytest.raises(OptionError, match="a whole number"):
            sf.sanitize(table, METHODS["chain"], rows=rows, report=False)


def test_the_order_of_all_rows_is_drawn() -> None:
    release = sf.sanitize(visits(100, 1), METHODS["condense"], rows=300, report=False)
    assert Shuffled(300) in release.certificate.facts
