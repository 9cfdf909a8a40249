"""Weights of rows: drawn like numbers, scaled to their total, and used in the measures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.assess.study import Column, ColumnPair
from sfumato.assess.utility.comparison import marginal_distance
from sfumato.core.errors import OptionError, SchemaError
from sfumato.tables.facts import TailsCoded, WeightsScaled
from sfumato.tables.persons import scale_to_total
from sfumato.tables.schema import Domain, Field, Kind, Role, Schema
from tests.examples import examples

ROWS = 200


def survey(seed: int = 1, **more: Any) -> pa.Table:
    rng = np.random.default_rng(seed)
    weights = rng.gamma(4.0, 0.25, ROWS).round(2) + 0.05
    columns = {"age": rng.integers(18, 90, ROWS), "w": weights.round(2), "ill": rng.random(ROWS) < weights / 3}
    return pa.table({**columns, **more})


@given(
    weights=st.lists(st.floats(0.01, 100), min_size=1, max_size=40),
    factor=st.floats(0.5, 2.0),
    step=st.sampled_from((1e-6, 0.01, 0.05)),
)
@examples(100)
def test_scaled_weights_lie_on_the_step_and_add_up(weights: list[float], factor: float, step: float) -> None:
    drawn = np.array(weights)
    total = max(factor * drawn.sum(), 2 * step * len(drawn))
    scaled = scale_to_total(drawn, total, step, step, np.inf)
    assert scaled is not None
    assert scaled.min() >= step * (1 - 1e-9)
    assert abs(scaled.sum() - total) <= step * 1.001 + 1e-9 * total
    np.testing.assert_allclose(scaled / step, np.rint(scaled / step), atol=1e-3)


def test_weights_that_no_bounds_allow_are_not_found() -> None:
    assert scale_to_total(np.ones(10), 100.0, 0.1, 0.1, 2.0) is None
    within = scale_to_total(np.arange(1.0, 11.0), 55.0, 0.1, 2.0, 8.0)
    assert within is not None
    assert within.min() >= 2.0
    assert within.max() <= 8.0


@pytest.mark.parametrize("method", ["condense", "chain", "classwise"])
def test_released_weights_add_up_to_the_original(tmp_path: Path, method: str) -> None:
    table = survey()
    release = sf.sanitize(table, method=method, weight="w", target="ill", k=5, seed=1, report=False)
    weights = np.sort(table["w"].to_numpy())
    (tails,) = (fact for fact in release.certificate.facts if isinstance(fact, TailsCoded))
    least, most = (
        np.clip(weights, low, high).sum() for low, high in ((weights[4], weights[-9]), (weights[8], weights[-5]))
    )
    released = release.table["w"].to_numpy()
    assert tails.k == 5
    assert least <= released.sum() <= most  # with cut-offs between ranks 5 and 9
    assert released.min() > 0
    assert (np.round(released, 2) == released).all()
    (fact,) = (fact for fact in release.certificate.facts if isinstance(fact, WeightsScaled))
    assert (fact.column, fact.step) == ("w", 0.01)
    assert abs(released.sum() - fact.total) <= 0.011
    release.save(tmp_path / "out")
    checks = {check.name: check.holds for check in sf.verify(tmp_path / "out" / "release")}
    assert {name for name, holds in checks.items() if not holds} == {"made for release"}
    assert checks["weights"]
    assert "weight" in (tmp_path / "out" / "owner" / "schema-private.toml").read_text(encoding="utf-8")


def test_verify_finds_weights_that_add_up_to_something_else(tmp_path: Path) -> None:
    sf.sanitize(survey(), weight="w", k=5, seed=1, report=False).save(tmp_path / "out", form="parquet")
    path = tmp_path / "out" / "release" / "table.parquet"
    table = pa.parquet.read_table(path)
    doubled = table.set_column(1, "w", pa.array(2 * table["w"].to_numpy()))
    pa.parquet.write_table(doubled, path)
    assert not {check.name: check.holds for check in sf.verify(path.parent)}["weights"]


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([None] + [1.5] * (ROWS - 1), "lacks 1 weights"),
        ([0.0] + [1.5, 2.5] * 99 + [3.5], "1 weights that are not above 0"),
        (["a", "b"] * (ROWS // 2), "column of numbers"),
    ],
)
def test_weights_that_are_none_are_refused(cells: list[Any], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        sf.sanitize(survey(v=cells), weight="v", k=5, report=False)
    with pytest.raises(SchemaError, match=words):
        sf.evaluate(survey(v=cells), survey(2, v=cells), weight="v")


def test_methods_that_do_not_draw_rows_refuse_a_weight() -> None:
    with pytest.raises(OptionError, match="scaled once all rows are drawn"):
        sf.sanitize(survey(), method="noise", size=0.1, weight="w", report=False)
    with pytest.raises(OptionError, match="cannot be a weight"):
        sf.sanitize(survey(), target="w", weight="w", report=False)


def test_a_rule_with_a_weight_is_refused_when_told_and_not_kept_when_found() -> None:
    table = survey()
    table = table.append_column("more", pa.array((table["w"].to_numpy() + table["age"].to_numpy()).round(2)))
    assert any("w" in rule for rule in Schema.infer(table).rules)
    release = sf.sanitize(table, weight="w", k=5, seed=1, report=False)
    assert release.schema.rules == ()
    with pytest.raises(SchemaError, match="leave the rule out"):
        sf.sanitize(table, weight="w", schema=Schema.infer(table), k=5, report=False)


@pytest.mark.slow
def test_a_recipe_has_the_weight(tmp_path: Path) -> None:
    first = sf.sanitize(survey(), weight="w", k=5, seed=1, report=False)
    again = sf.sanitize(survey(), recipe=first.recipe)
    assert again.table.equals(first.table)


def test_a_distance_counts_rows_by_their_weight() -> None:
    label = Field("x", Kind.NOMINAL, domain=Domain(categories=("a", "b")))
    nothing = np.zeros(4, dtype=np.bool_)
    pair = ColumnPair(label, Column(np.array([0.0, 0, 1, 1]), nothing), Column(np.array([0.0, 1, 1, 1]), nothing))
    weights = Column(np.array([1.0, 1, 1, 1]), nothing), Column(np.array([3.0, 1, 1, 1]), nothing)
    weight = ColumnPair(Field("w", Kind.CONTINUOUS, Role.WEIGHT), *weights)
    rng = np.random.default_rng(1)
    assert marginal_distance(pair, rng).value == pytest.approx(0.25)
    assert marginal_distance(pair, rng, weight).value == pytest.approx(0.0)


def test_the_report_says_that_rows_count_by_weight() -> None:
    report = sf.sanitize(survey(), weight="w", target="ill", k=5, seed=1, holdout=0.3, time_limit=2.0).report
    assert report is not None
    (mean,) = (finding for finding in report.findings if finding.name == "marginal-distance")
    assert "every row counts by its weight, w" in mean.meaning
