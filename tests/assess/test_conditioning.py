"""Rank and condition of groups, and people whose group reaches far: known answers."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.assess.risk.groups import CONDITIONING, group_spectra
from sfumato.methods.protocol import OwnerDetails
from tests.assess.cases import study
from tests.assess.privacy_studies import case, check_sound, found, numbers, value


@pytest.mark.parametrize("size", [2, 4, 5, 9])
def test_rank_and_condition_agree_with_singular_values(size: int) -> None:
    rows = np.random.default_rng(size).normal(size=(6 * size, 4))
    places = np.arange(6 * size).reshape(6, size)
    rank, condition = group_spectra(rows, [places])
    for group in range(6):
        singular = np.linalg.svd(rows[places[group]] - rows[places[group]].mean(axis=0), compute_uv=False)
        kept = singular[singular > 1e-5 * singular[0]]
        assert rank[group] == len(kept) == min(size - 1, 4)
        assert condition[group] == pytest.approx(kept[0] / kept[-1], rel=1e-6)


def with_groups(rows: np.ndarray, labels: np.ndarray) -> dict[str, float | None]:
    made = study(numbers(rows), numbers(rows), workings=OwnerDetails(labels.astype(np.int64), np.full(len(labels), 2)))
    check_sound(CONDITIONING, made)
    return {name: finding.value for name, finding in found(CONDITIONING, made).items()}


@pytest.mark.parametrize(("size", "flat"), [(3, 1.0), (4, 1.0), (5, 0.0), (12, 0.0)])
def test_groups_of_no_more_members_than_coordinates_are_flat(size: int, flat: float) -> None:
    rows = np.random.default_rng(1).normal(size=(240, 4))
    findings = with_groups(rows, np.arange(240) // size)
    assert findings["groups-singular"] == flat
    assert findings["group-rank-smallest"] == min(size - 1, 4)


def test_a_column_that_repeats_another_makes_no_group_flat() -> None:
    rows = np.random.default_rng(2).normal(size=(200, 2))
    findings = with_groups(np.column_stack([rows, rows[:, 0] * 2 + rows[:, 1]]), np.arange(200) // 10)
    assert findings["groups-singular"] == 0.0


def test_a_group_of_twins_has_rank_none() -> None:
    rows = np.random.default_rng(3).normal(size=(40, 2))
    rows[:4] = rows[0]
    assert with_groups(rows, np.arange(40) // 4)["group-rank-smallest"] == 0.0


def test_people_are_wide_where_their_group_reaches_beyond_their_neighbours() -> None:
    rng = np.random.default_rng(4)
    clusters = np.repeat(np.arange(20), 10)
    rows = rng.normal(size=(200, 2)) * 0.01 + np.stack([clusters, clusters % 3], axis=1)
    assert with_groups(rows, clusters)["group-outliers"] == 0.0
    assert with_groups(rows, rng.permutation(clusters))["group-outliers"] == 1.0


def test_only_the_people_of_the_stretched_group_are_wide() -> None:
    rng = np.random.default_rng(5)
    clusters = np.repeat(np.arange(20), 10)
    rows = rng.normal(size=(200, 2)) * 0.01 + np.stack([clusters, clusters % 3], axis=1)
    labels = clusters.copy()
    labels[[0, 10]] = labels[[10, 0]]  # two people of neighbouring clusters change places
    assert with_groups(rows, labels)["group-outliers"] == pytest.approx(0.1)


def test_without_groups_it_is_not_run_and_it_stays_with_the_owner() -> None:
    rows = numbers(np.random.default_rng(6).normal(size=(20, 2)))
    assert all("no groups" in (finding.reason or "") for finding in found(CONDITIONING, study(rows, rows)).values())
    assert all(not finding.public for finding in found(CONDITIONING, case("redraw")).values())
    assert value(CONDITIONING, case("redraw"), "group-outliers") > 0.0
