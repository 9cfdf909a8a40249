"""l-diversity and t-closeness of the target inside groups: known answers and a slow loop."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.risk.groups import DIVERSITY, measure_diversity
from sfumato.methods.protocol import OwnerDetails
from tests.assess.cases import study
from tests.assess.privacy_studies import case, found, value


def grouped(labels: np.ndarray, target: list[str | None] | np.ndarray) -> dict[str, object]:
    table = pa.table({"x": np.arange(len(labels), dtype=float), "t": target})
    made = OwnerDetails(labels.astype(np.int64), np.full(len(labels), 2))
    return dict(found(DIVERSITY, study(table, table, target="t", workings=made)))


def number(findings: dict[str, object], name: str) -> float:
    return findings[name].value  # type: ignore[attr-defined, no-any-return]


def test_groups_of_one_class_reach_the_worst_values() -> None:
    findings = grouped(np.repeat([0, 1, 2, 3], 25), np.repeat(["a", "b", "c", "d"], 25).tolist())
    assert number(findings, "diversity-smallest") == 1.0
    assert number(findings, "diversity-entropy-median") == 1.0
    assert number(findings, "groups-homogeneous") == 1.0
    assert number(findings, "closeness-largest") == pytest.approx(0.75)


def test_groups_like_the_whole_table_reach_the_best_values() -> None:
    findings = grouped(np.repeat(np.arange(25), 4), ["a", "b", "c", "d"] * 25)
    assert number(findings, "diversity-smallest") == 4.0
    assert number(findings, "diversity-entropy-smallest") == pytest.approx(4.0)
    assert number(findings, "groups-homogeneous") == 0.0
    assert number(findings, "closeness-largest") == pytest.approx(0.0, abs=1e-12)


def test_a_missing_target_counts_as_a_value_of_its_own() -> None:
    findings = grouped(np.array([0, 0, 1, 1]), ["a", None, "a", "b"])
    assert number(findings, "diversity-smallest") == 2.0
    assert number(findings, "groups-homogeneous") == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_groups_made_at_random_are_near_their_baseline(seed: int) -> None:
    rng = np.random.default_rng(seed)
    findings = grouped(rng.permutation(np.arange(20_000) % 2000), rng.choice(["a", "b", "c"], 20_000).tolist())
    assert number(findings, "closeness-mean") == pytest.approx(findings["closeness-mean"].baseline, rel=0.1)  # type: ignore[attr-defined]


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("values", [2, 9])
def test_closeness_agrees_with_a_slow_loop(values: int, *, ordered: bool) -> None:
    rng = np.random.default_rng(values)
    labels, codes = rng.integers(0, 15, 200), np.append(rng.integers(0, values, 200 - values), np.arange(values))
    found_here = measure_diversity(labels, codes, ordered=ordered)
    whole = np.bincount(codes, minlength=values) / 200
    for group, got in zip(np.unique(labels), found_here.closeness, strict=True):
        share = np.bincount(codes[labels == group], minlength=values) / (labels == group).sum()
        gap = share - whole
        slow = np.abs(np.cumsum(gap)).sum() / (values - 1) if ordered else np.abs(gap).sum() / 2
        assert got == pytest.approx(slow, abs=1e-12)


def test_groups_among_thirty_thousand_are_as_close_as_the_definition_says() -> None:
    rng = np.random.default_rng(1)
    labels, codes = rng.permutation(np.arange(300_000) % 30_000), rng.integers(0, 50, 300_000)
    closeness = measure_diversity(labels, codes, ordered=True).closeness
    assert len(closeness) == 30_000
    whole = np.bincount(codes, minlength=50) / 300_000
    for group in (0, 9_999, 29_999):
        gap = np.bincount(codes[labels == group], minlength=50) / 10 - whole
        assert closeness[group] == pytest.approx(np.abs(np.cumsum(gap)).sum() / 49, abs=1e-12)


def test_without_groups_or_target_it_is_not_run_and_it_stays_with_the_owner() -> None:
    assert all(not finding.public for finding in found(DIVERSITY, case("redraw")).values())
    assert "--target" in (found(DIVERSITY, case("redraw", target=None))["diversity-smallest"].reason or "")
    table = pa.table({"x": [1.0, 2.0, 3.0], "t": ["a", "b", "a"]})
    assert "no groups" in (found(DIVERSITY, study(table, table, target="t"))["closeness-mean"].reason or "")
    assert value(DIVERSITY, case("redraw"), "diversity-smallest") >= 1.0
