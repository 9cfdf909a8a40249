"""Linkage that is specific to condensed groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.algebra import run_measure
from sfumato.assess.attacks.linkage import GROUP_LINKAGE, likeliest_groups
from sfumato.assess.findings import Finding, wilson
from sfumato.assess.study import study_of
from sfumato.core.facts import Fact
from sfumato.core.groups.facts import Grouped
from sfumato.methods.protocol import OwnerDetails
from tests.assess.cases import ROWS, constant_table, draw_table, fit

NAMES = GROUP_LINKAGE.names
SHARES = tuple(name for name in NAMES if name.startswith("group-linkage"))
SIZE = 10


def grouped(groups: int, smallest: int = SIZE) -> tuple[Fact, ...]:
    return (Grouped("by x", ROWS, groups, smallest, 0, 0, 0, 0),)


def by_x(table: pa.Table, size: int = SIZE) -> np.ndarray:
    """Group the rows of similar x, a given number to a group."""
    labels = np.empty(table.num_rows, dtype=np.int64)
    labels[np.argsort(table.column("x").to_numpy())] = np.arange(table.num_rows) // size
    return labels


def found(
    original: pa.Table, released: pa.Table, labels: np.ndarray, drawn_from: np.ndarray, **more: Any
) -> dict[str, Finding]:
    workings = OwnerDetails(labels, np.full(len(labels), SIZE), drawn_from)
    facts = grouped(int(labels.max()) + 1)
    rng = np.random.default_rng(5)
    study = study_of(original, released, fit(original), facts=facts, workings=workings, rng=rng, **more)
    return {finding.name: finding for finding in run_measure(GROUP_LINKAGE, study)}


def test_a_copy_gives_every_group_away() -> None:
    table = draw_table(1)
    result = found(table, table, by_x(table), by_x(table), holdout=draw_table(3))
    assert result["group-linkage-nearest-row"].value == 1.0
    assert result["group-linkage-nearest-row"].baseline == pytest.approx(SIZE / ROWS)
    assert result["expected-reidentification"].value == pytest.approx(1 / SIZE)
    assert result["expected-reidentification"].baseline == pytest.approx(1 / ROWS)


def test_groups_far_apart_are_found_by_everyone_who_looks() -> None:
    rng = np.random.default_rng(2)
    labels = np.repeat(np.arange(20), [5] * 10 + [40] * 10)
    centres = 100.0 * rng.normal(size=(20, 4))
    tables = [centres[labels] + rng.normal(size=(len(labels), 4)) for _ in range(3)]
    original, released, outside = (pa.table({f"c{i}": rows[:, i] for i in range(4)}) for rows in tables)
    result = found(original, released, labels, labels, holdout=outside)
    for name in SHARES:
        assert result[name].value == 1.0, name
        assert result[name].control == 1.0, name
        assert result[name].baseline == pytest.approx(np.mean(np.bincount(labels)[labels]) / len(labels))
    finding = result["expected-reidentification"]
    assert finding.value == pytest.approx(20 / len(labels))
    assert finding.interval is not None
    assert finding.interval[0] <= 20 / len(labels) <= finding.interval[1] < 0.12


def test_groups_that_tell_nothing_are_not_found() -> None:
    """Rows and groups drawn apart: an independent redraw with groups dealt at random."""
    rng = np.random.default_rng(3)
    labels, drawn_from = (rng.permutation(np.arange(ROWS) // SIZE) for _ in range(2))
    result = found(draw_table(1), draw_table(2), labels, drawn_from, holdout=draw_table(3))
    for name in ("group-linkage-nearest-row", "group-linkage-half-columns"):
        finding = result[name]
        assert finding.interval is not None
        assert finding.control_interval is not None
        assert finding.interval[0] <= 2 * SIZE / ROWS
        assert finding.interval[0] <= finding.control_interval[1]


def test_shares_and_control_are_those_of_a_loop_over_people() -> None:
    """A held-out person is scored against the group of the original row nearest to them."""
    original, released, outside = (draw_table(seed, 200) for seed in (1, 2, 3))
    labels, drawn_from = by_x(original), by_x(released)
    finding = found(original, released, labels, drawn_from, holdout=outside)["group-linkage-nearest-row"]
    codec = fit(original)
    rows, others, guests = (codec.encode(table, unseen="mean").values for table in (original, released, outside))

    def near(row: np.ndarray, table: np.ndarray) -> int:
        return int(np.argmin(((table - row) ** 2).sum(axis=1)))

    hits = [drawn_from[near(row, others)] == label for row, label in zip(rows, labels, strict=True)]
    again = [drawn_from[near(row, others)] == labels[near(row, rows)] for row in guests]
    assert finding.value == pytest.approx(np.mean(hits))
    assert finding.control == pytest.approx(np.mean(again))


def test_a_constant_table_finds_one_group_at_most() -> None:
    table = draw_table(1)
    drawn_from = np.arange(ROWS) // SIZE
    result = found(table, constant_table(), by_x(table), drawn_from, holdout=draw_table(3))
    for name in ("group-linkage-nearest-row", "group-linkage-half-columns"):
        value = result[name].value
        assert value is not None
        assert value <= SIZE / ROWS + 1e-12


@pytest.mark.parametrize(("size", "width"), [(4, 6), (12, 3)])
def test_the_likeliest_group_is_that_of_normal_densities(size: int, width: int) -> None:
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(size)
    labels = rng.permutation(np.repeat(np.arange(6), size))
    original = rng.normal(size=(len(labels), width)) * (1 + labels[:, None])
    centres, likely = likeliest_groups(original, labels, original, rng)
    groups = [original[labels == group] for group in range(6)]
    means = np.stack([group.mean(axis=0) for group in groups])
    ridge = 0.1 * np.mean((original - means[labels]) ** 2)
    density = [
        multivariate_normal(mean, np.cov(group.T, bias=True) + ridge * np.eye(width)).logpdf(original)
        for mean, group in zip(means, groups, strict=True)
    ]
    np.testing.assert_array_equal(likely, np.argmax(density, axis=0))
    np.testing.assert_array_equal(centres, [np.argmin(((means - row) ** 2).sum(axis=1)) for row in original])


@pytest.mark.parametrize("width", [2, 6])
def test_of_groups_that_fit_a_person_alike_the_larger_is_the_likelier(width: int) -> None:
    """Unequal groups of one law overlap: the likelihood of each counts by how many people it has."""
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(width)
    sizes = np.array([3, 5, 9, 40, 60])
    labels = rng.permutation(np.repeat(np.arange(5), sizes))
    original = rng.normal(size=(len(labels), width))
    people = rng.normal(size=(400, width))
    groups = [original[labels == group] for group in range(5)]
    means = np.stack([group.mean(axis=0) for group in groups])
    ridge = 0.1 * np.mean((original - means[labels]) ** 2)
    density = np.array(
        [
            multivariate_normal(mean, np.cov(group.T, bias=True) + ridge * np.eye(width)).logpdf(people)
            for mean, group in zip(means, groups, strict=True)
        ]
    )
    likely = likeliest_groups(original, labels, people, rng)[1]
    np.testing.assert_array_equal(likely, np.argmax(density + np.log(sizes)[:, None], axis=0))
    assert (likely != np.argmax(density, axis=0)).any()
    assert (likely != np.argmax(density + sizes[:, None], axis=0)).any()


def test_groups_beyond_the_ten_nearest_are_not_looked_at() -> None:
    """The wide group is the likeliest of all for its people, but the means of eleven narrow ones are nearer."""
    rng = np.random.default_rng(4)
    angles = np.repeat(np.arange(11.0), 20)
    narrow = np.column_stack([np.cos(angles), np.sin(angles)]) + 0.001 * rng.normal(size=(220, 2))
    wide = rng.normal(size=(300, 2)) + np.array([2.0, 0.0])
    for groups, found_it in ((9, True), (11, False)):
        original = np.concatenate([narrow[: 20 * groups], wide])
        labels = np.repeat(np.arange(groups + 1), [20] * groups + [300])
        likely = likeliest_groups(original, labels, np.zeros((1, 2)), rng)[1]
        assert (int(likely[0]) == groups) is found_it


def test_whoever_is_found_is_picked_as_one_of_their_group() -> None:
    """Of unequal groups that everybody finds: one over the size of each person's group, and its interval."""
    labels = np.repeat(np.arange(3), [2, 8, 40])
    rows = pa.table({"a": 1000.0 * labels + np.arange(50), "b": 1000.0 * labels - np.arange(50)})
    outside = rows.take(pa.array([0, 5, 30]))
    result = found(rows, rows, labels, labels, holdout=outside)
    finding = result["expected-reidentification"]
    assert finding.value == pytest.approx(3 / 50)
    assert finding.control == pytest.approx(np.mean([1 / 2, 1 / 8, 1 / 40]))
    low, high = wilson(50 * 3 / 50 / 0.5, 50)  # as a share of the highest chance, 1/2
    assert finding.interval == pytest.approx((0.5 * low, 0.5 * high))
    lower, upper = wilson(3 * (1 / 2 + 1 / 8 + 1 / 40) / 3 / 0.5, 3)
    assert finding.control_interval == pytest.approx((0.5 * lower, 0.5 * upper))
    alone = found(rows, rows, labels, labels)["expected-reidentification"]
    assert alone.value == finding.value
    assert alone.control is None
    assert alone.control_interval is None


def test_nothing_is_said_of_tables_without_groups() -> None:
    study = study_of(draw_table(1), draw_table(2), fit(draw_table(1)), rng=np.random.default_rng(1))
    assert {finding.reason for finding in run_measure(GROUP_LINKAGE, study)} == {
        "the table is not known to be made of groups"
    }


def test_one_column_and_few_rows_stop_nothing() -> None:
    table = draw_table(1, 4).select(["x"])
    labels = np.array([0, 0, 2, 2])
    result = found(table, table.slice(0, 3), labels, labels[:3], holdout=draw_table(3, 2).select(["x"]))
    assert set(result) == set(NAMES)
    assert result["group-linkage-half-columns"].reason == "the table has a single column"
    for name in set(NAMES) - {"group-linkage-half-columns"}:
        value = result[name].value
        assert value is not None
        assert 0.0 <= value <= 1.0


def test_people_alike_in_all_columns_stop_nothing() -> None:
    labels = np.arange(50) // 5
    result = found(constant_table(50), constant_table(50), labels, labels, holdout=constant_table(3))
    for name in SHARES:
        value = result[name].value
        assert value is not None
        assert value <= 0.1 + 1e-12
