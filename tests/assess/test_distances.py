"""Distortion of distances: what keeps them, what destroys them, and that near ones go first."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.assess.findings import Finding
from sfumato.assess.study import Study
from sfumato.assess.utility.distortion import DISTANCES, distortion
from sfumato.methods.geometry import Rotation, Scaling, Translation
from sfumato.methods.protocol import Mechanism, OwnerDetails
from tests.assess.cases import draw_table, study
from tests.assess.moved import draw, moved
from tests.assess.privacy_studies import AWKWARD, awkward, case, check_sound, found, numbers
from tests.examples import at_length

NAMES = ("distance-distortion", "distance-distortion-any-scale", "distance-distortion-near")


def values(of: Study) -> dict[str, float]:
    check_sound(DISTANCES, of)
    return {name: finding.value for name, finding in found(DISTANCES, of).items() if finding.value is not None}


def of(rows: np.ndarray, released: np.ndarray, origin: np.ndarray | None = None, seed: int = 5) -> Study:
    known = np.arange(len(released), dtype=np.int64) if origin is None else origin
    return study(numbers(rows), numbers(released), seed=seed, workings=OwnerDetails(origin=known))


def test_without_known_origins_it_is_not_run() -> None:
    assert all("descends" in (finding.reason or "") for finding in found(DISTANCES, case("copy")).values())


@pytest.mark.parametrize("name", AWKWARD)
def test_no_awkward_table_stops_it(name: str) -> None:
    made = awkward(name)
    rows = min(len(made.original), len(made.released))
    origin = np.arange(len(made.released), dtype=np.int64) % max(rows, 1)
    check_sound(DISTANCES, dataclasses.replace(made, workings=OwnerDetails(origin=origin)))


def test_a_single_known_row_is_not_enough() -> None:
    rows = np.random.default_rng(1).normal(size=(20, 2))
    origin = np.full(20, -1, dtype=np.int64)
    origin[3] = 4
    assert all(
        "fewer than two" in (finding.reason or "") for finding in found(DISTANCES, of(rows, rows, origin)).values()
    )


def test_a_shuffled_copy_of_any_columns_has_none() -> None:
    table, order = draw_table(1), np.random.default_rng(1).permutation(draw_table(1).num_rows)
    made = study(table, table.take(order), workings=OwnerDetails(origin=order.astype(np.int64)))
    assert values(made) == dict.fromkeys(NAMES, 0.0)


@pytest.mark.parametrize("mechanism", [Translation(), Rotation()], ids=["translation", "rotation"])
@pytest.mark.parametrize("seed", [0, *at_length(1, 2)])
def test_a_shift_and_a_turn_in_deviations_have_none(mechanism: Mechanism, seed: int) -> None:
    assert max(values(moved(draw(seed), mechanism, seed)).values()) < 1e-9  # own units are read back with rounding


@pytest.mark.parametrize("factor", [0.1, 0.5, 3.0])
def test_one_factor_on_all_columns_shows_only_where_it_is_not_removed(factor: float) -> None:
    rows = np.random.default_rng(2).normal(size=(300, 3))
    changed = values(of(rows, factor * rows))
    expected = 1.0 - min(factor, 1.0 / factor)
    assert changed["distance-distortion"] == pytest.approx(expected)
    assert changed["distance-distortion-near"] == pytest.approx(expected)
    assert changed["distance-distortion-any-scale"] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("seed", [0, *at_length(1, 2)])
def test_factors_that_differ_between_columns_bend_distances(seed: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(1000, 2))
    assert 0.05 < values(of(rows, rows * [1.0, 0.5], seed=seed))["distance-distortion-any-scale"] < 0.5
    assert values(moved(draw(seed), Scaling(), seed))["distance-distortion"] > 0.0


@pytest.mark.parametrize("seed", [0, *at_length(1, 2)])
def test_an_independent_redraw_is_no_better_than_shuffled_rows(seed: int) -> None:
    rows, other = np.random.default_rng(seed).normal(size=(2, 3000, 3))
    made = of(rows, other, seed=seed)
    for finding in found(DISTANCES, made).values():
        assert finding.value is not None
        assert finding.value == pytest.approx(finding.baseline, abs=0.05)
        assert finding.value > 0.2
    check_sound(DISTANCES, made)


def test_a_constant_release_has_the_worst() -> None:
    rows = np.random.default_rng(4).normal(size=(200, 2))
    assert values(of(rows, np.zeros((200, 2)))) == dict.fromkeys(NAMES, 1.0)


@pytest.mark.parametrize("seed", [0, *at_length(1, 2)])
def test_noise_destroys_near_distances_before_far_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(2000, 2))
    changed = values(of(rows, rows + 0.1 * rng.normal(size=rows.shape), seed=seed))
    assert changed["distance-distortion"] < 0.2
    assert changed["distance-distortion-near"] > 0.5


def test_the_mean_of_all_pairs_lies_in_the_interval() -> None:
    """A slow loop over all pairs, for noise of a known size; over ten seeds at most three may miss."""
    missed = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(60, 2))
        rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
        after = rows + 0.3 * rng.normal(size=rows.shape)
        changes = []
        for i in range(60):
            for j in range(i):
                a, b = math.dist(rows[i], rows[j]), math.dist(after[i], after[j])
                changes.append(abs(b - a) / max(a, b))
        finding: Finding = found(DISTANCES, of(rows, after, seed=seed))["distance-distortion"]
        assert finding.interval is not None
        missed += not finding.interval[0] <= float(np.mean(changes)) <= finding.interval[1]
    assert missed <= 3


def test_a_few_moved_rows_are_seen() -> None:
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(1000, 2))
    after = rows.copy()
    after[:100] += 5.0 * rng.normal(size=(100, 2))
    assert 0.05 < values(of(rows, after))["distance-distortion"] < 0.3


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)), min_size=1, max_size=30))
def test_the_change_is_a_share_the_same_both_ways(pairs: list[tuple[float, float]]) -> None:
    before, after = np.array(pairs).T
    change = distortion(before, after)
    assert ((change >= 0.0) & (change <= 1.0)).all()
    assert np.array_equal(change, distortion(after, before))
    assert not change[before == after].any()
    assert change[np.abs(after - before) > 1e-9 * np.maximum(before, after)].all()
