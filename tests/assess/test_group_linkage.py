"""Linkage that is specific to condensed groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.algebra import run_measure
from sfumato.assess.attacks.linkability import GROUP_LINKAGE, likeliest_groups
from sfumato.assess.findings import Finding
from sfumato.assess.study import study_of
from sfumato.core.facts import Fact, Grouped
from sfumato.mechanisms.protocol import Workings
from tests.assess.cases import ROWS, constant_table, draw_table, fit

NAMES = GROUP_LINKAGE.names
SHARES = tuple(name for name in NAMES if name.startswith("group-linkage"))
SIZE = 10


def grouped(groups: int, smallest: int = SIZE) -> tuple[Fact, ...]:
    return (Grouped("by x", ROWS, groups, smallest, 0, 0, 0, 0),)


def by_x(table: pa.Table, size: int = SIZE) -> np.ndarray:
    """Group the rows whose x is alike, so many to a group."""
    labels = np.empty(table.num_rows, dtype=np.int64)
    labels[np.argsort(table.column("x").to_numpy())] = np.arange(table.num_rows) // size
    return labels


def found(
    original: pa.Table, released: pa.Table, labels: np.ndarray, drawn_from: np.ndarray, **more: Any
) -> dict[str, Finding]:
    workings = Workings(labels, np.full(len(labels), SIZE), drawn_from)
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
    for name in ("group-linkage-nearest-row", "group-linkage-half"):
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
    for name in ("group-linkage-nearest-row", "group-linkage-half"):
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


def test_nothing_is_said_of_tables_without_groups() -> None:
    study = study_of(draw_table(1), draw_table(2), fit(draw_table(1)), rng=np.random.default_rng(1))
    assert {finding.because for finding in run_measure(GROUP_LINKAGE, study)} == {
        "the table is not known to be made of groups"
    }


def test_one_column_and_few_rows_stop_nothing() -> None:
    table = draw_table(1, 4).select(["x"])
    labels = np.array([0, 0, 2, 2])
    result = found(table, table.slice(0, 3), labels, labels[:3], holdout=draw_table(3, 2).select(["x"]))
    assert set(result) == set(NAMES)
    assert result["group-linkage-half"].because == "the table has a single column"
    for name in set(NAMES) - {"group-linkage-half"}:
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
