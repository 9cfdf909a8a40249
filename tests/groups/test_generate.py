"""Rows drawn along the eigenvectors of a group [AY05, sec. 2, eq. 2.1]."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.groups import Groups, summarize
from sfumato.core.groups.generate import draw_along_eigenvectors, generate
from sfumato.core.records import Block, BlockKind, Layout
from tests.groups.drawn_groups import random_groups


def numbers(dim: int) -> Layout:
    return tuple(Block(f"column {j}", BlockKind.NUMBER, j, j + 1, (0.0,)) for j in range(dim))


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(1, 12))
def test_a_group_gives_as_many_rows_as_it_has_records(seed: int, sizes: list[int], dim: int) -> None:
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    groups = summarize(rng.normal(size=(len(labels), dim)), labels, np.full(len(labels), 2))
    rows = generate(groups, numbers(dim), rng)
    assert rows.shape == (sum(sizes), dim)
    assert np.isfinite(rows).all()


@given(st.integers(0, 2**32 - 1), st.integers(2, 8), st.integers(0, 8), st.floats(1e-3, 1e3))
def test_rows_of_a_small_group_stay_in_the_flat_that_its_records_span(
    seed: int, size: int, more: int, scale: float
) -> None:
    rng = np.random.default_rng(seed)
    records = scale * rng.normal(size=(size, size + more))  # k <= d: rank k - 1
    groups = summarize(records, np.zeros(size, dtype=np.int64), np.full(size, 2))
    rows = draw_along_eigenvectors(groups, rng) - records.mean(axis=0)
    _, _, span = np.linalg.svd(records - records.mean(axis=0))
    inside = rows @ span[: size - 1].T @ span[: size - 1]
    np.testing.assert_allclose(rows, inside, atol=1e-9 * scale)


def test_a_coordinate_without_variance_is_left_at_its_mean() -> None:
    rng = np.random.default_rng(3)
    records = rng.normal(size=(30, 6))
    records[:, 2] = 0.1
    rows = draw_along_eigenvectors(summarize(records, np.zeros(30, dtype=np.int64), np.full(30, 2)), rng)
    np.testing.assert_allclose(rows[:, 2], 0.1, atol=1e-12)


def test_a_group_without_variance_gives_its_mean() -> None:
    records = np.tile([0.1, -2.0, 7.0], (5, 1))
    groups = summarize(records, np.zeros(5, dtype=np.int64), np.full(5, 2))
    np.testing.assert_allclose(generate(groups, numbers(3), np.random.default_rng(0)), records, rtol=1e-14)


def test_a_record_that_stands_alone_is_given_back() -> None:
    groups = summarize(np.array([[3.0, 4.0]]), np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64))
    np.testing.assert_array_equal(generate(groups, numbers(2), np.random.default_rng(0)), [[3.0, 4.0]])


def test_numbers_alone_leave_as_they_were_drawn() -> None:
    groups = random_groups(np.random.default_rng(1), count=4, size=6, dim=3)
    drawn = draw_along_eigenvectors(groups, np.random.default_rng(5))
    np.testing.assert_array_equal(generate(groups, numbers(3), np.random.default_rng(5)), drawn)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_no_row_is_farther_out_along_an_axis_than_half_the_range(scale: float) -> None:
    rng = np.random.default_rng(2)
    size, dim = 400, 4
    records = scale * rng.normal(size=(size, dim)) @ rng.normal(size=(dim, dim))
    groups: Groups = summarize(records, np.zeros(size, dtype=np.int64), np.full(size, 2))
    variances, axes = np.linalg.eigh(groups.covariance[0])
    along = (draw_along_eigenvectors(groups, rng) - groups.mean[0]) @ axes
    assert (np.abs(along) <= np.sqrt(12.0 * variances) / 2.0 * (1.0 + 1e-9)).all()
