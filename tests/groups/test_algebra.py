"""The laws of the algebra of groups [AY05, sec. 2 and 3]."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.core.groups import Groups, concat, eigen, split_groups, summarize
from tests.groups.drawn_groups import merge, random_groups


def assert_same(left: Groups, right: Groups, *, levels: bool = True) -> None:
    np.testing.assert_array_equal(left.count, right.count)
    np.testing.assert_allclose(left.mean, right.mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(left.scatter, right.scatter, rtol=1e-8, atol=1e-8)
    if levels:
        np.testing.assert_allclose(left.level_sum, right.level_sum, rtol=1e-12)
        np.testing.assert_array_equal(left.level_max, right.level_max)


@pytest.mark.parametrize("size", [2, 3, 20, 21])
@pytest.mark.parametrize("dim", [1, 2, 7])
def test_merging_the_halves_gives_back_the_group(dim: int, size: int) -> None:
    parent = random_groups(np.random.default_rng(7), count=5, size=size, dim=dim)
    left, right = split_groups(parent)
    assert_same(merge(left, right), parent)


@pytest.mark.parametrize("size", [10, 11])
@pytest.mark.parametrize("dim", [1, 2, 7])
def test_a_split_keeps_the_axes_and_shrinks_the_longest_by_the_square_of_its_share(dim: int, size: int) -> None:
    parent = random_groups(np.random.default_rng(8), count=6, size=size, dim=dim)
    values, axes = np.linalg.eigh(parent.covariance)
    for half in split_groups(parent):
        share = half.count / parent.count
        expected = values.copy()
        expected[:, -1] *= share**2  # lambda1 -> f^2 lambda1, and lambda1/4 for even counts
        rotated = axes.transpose(0, 2, 1) @ half.covariance @ axes
        np.testing.assert_allclose(np.diagonal(rotated, axis1=1, axis2=2), expected, rtol=1e-9, atol=1e-9)
        off_axis = rotated - np.eye(dim) * np.diagonal(rotated, axis1=1, axis2=2)[:, None, :]
        np.testing.assert_allclose(off_axis, 0.0, atol=1e-9)


def test_the_halves_of_an_even_group_lie_a_quarter_of_the_range_from_its_mean() -> None:
    parent = random_groups(np.random.default_rng(9), count=4, size=12, dim=3)
    lambda1 = np.linalg.eigvalsh(parent.covariance)[:, -1]
    for half in split_groups(parent):
        gap = np.linalg.norm(half.mean - parent.mean, axis=1)
        np.testing.assert_allclose(gap, np.sqrt(12.0 * lambda1) / 4.0, rtol=1e-9)


@pytest.mark.parametrize("turned", [1.0, -1.0])
def test_the_first_half_lies_on_the_side_that_the_axis_does_not_point_to(turned: float) -> None:
    longest = turned * np.array([[0.3, -0.9, 0.2], [-0.8, 0.1, 0.5]])
    scatter = 10.0 * longest[:, :, None] * longest[:, None, :] + np.eye(3)
    parent = Groups(np.array([6, 7]), np.zeros((2, 3)), scatter, np.full(2, 12.0), np.array([2, 2]))
    left, right = split_groups(parent)
    towards = np.cos([1.0, 2.0, 3.0])
    assert (left.mean @ towards < 0.0).all()
    assert (right.mean @ towards > 0.0).all()


def test_eigenvectors_are_those_of_the_matrix_and_turned_to_one_side() -> None:
    rows = np.random.default_rng(11).standard_normal((40, 12, 5))
    symmetric = rows.transpose(0, 2, 1) @ rows
    values, vectors = eigen(symmetric)
    np.testing.assert_allclose(symmetric @ vectors, vectors * values[:, None, :], atol=1e-9)
    assert (np.cos(np.arange(1.0, 6.0)) @ vectors > 0.0).all()


def test_halves_inherit_the_highest_level_and_share_the_sum() -> None:
    parent = random_groups(np.random.default_rng(10), count=5, size=7, dim=2)
    left, right = split_groups(parent)
    np.testing.assert_array_equal(left.level_max, parent.level_max)
    np.testing.assert_array_equal(right.level_max, parent.level_max)
    np.testing.assert_array_equal(left.count, 3)
    np.testing.assert_allclose(left.level_sum, parent.level_sum * 3 / 7)


def test_a_single_record_does_not_split() -> None:
    with pytest.raises(ValueError, match="1 groups have a single record"):
        split_groups(summarize(np.zeros((3, 2)), np.array([0, 0, 1]), np.array([2, 2, 1])))


def test_concat_lays_groups_side_by_side_and_take_gives_them_back() -> None:
    rng = np.random.default_rng(4)
    first, second = (random_groups(rng, count=count, size=5, dim=3) for count in (2, 4))
    both = concat(first, second)
    assert len(both) == 6
    assert_same(both.take(slice(0, 2)), first)
    assert_same(both.take(np.arange(2, 6)), second)


def about(
    origin: NDArray[np.float64], count: NDArray[np.int64], first: NDArray[np.float64], second: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and scatter of groups by their sums about a point."""
    shifted = first / count[:, None]
    return shifted + origin, second - count[:, None, None] * shifted[:, :, None] * shifted[:, None, :]


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.floats(-100.0, 100.0))
def test_sums_about_any_origin_give_back_the_groups(seed: int, dim: int, far: float) -> None:
    rng = np.random.default_rng(seed)
    groups = random_groups(rng, count=3, size=6, dim=dim)
    origin = far + rng.normal(size=dim)
    mean, scatter = about(origin, *groups.to_sums(origin))
    np.testing.assert_allclose(mean, groups.mean, atol=1e-9)
    np.testing.assert_allclose(scatter, groups.scatter, atol=1e-8 * (1.0 + far**2))  # raw sums cancel


def test_the_sums_of_two_owners_add() -> None:
    rng = np.random.default_rng(5)
    mine, yours = (random_groups(rng, count=3, size=size, dim=4) for size in (5, 8))
    origin = rng.normal(size=4)
    (count, first, second), (more, first_more, second_more) = mine.to_sums(origin), yours.to_sums(origin)
    mean, scatter = about(origin, count + more, first + first_more, second + second_more)
    np.testing.assert_allclose(mean, merge(mine, yours).mean, atol=1e-9)
    np.testing.assert_allclose(scatter, merge(mine, yours).scatter, atol=1e-8)


def test_fs_sc_and_ps_are_the_sums_of_the_paper_and_give_mean_and_covariance() -> None:
    rng = np.random.default_rng(6)
    records, levels = rng.normal(size=(9, 3)) + 5.0, rng.integers(2, 7, 9)
    group = summarize(records, np.zeros(9, dtype=np.int64), levels)
    fs, sc, n = group.first_order[0], group.second_order[0], int(group.count[0])
    np.testing.assert_allclose(fs, records.sum(axis=0))
    np.testing.assert_allclose(sc, records.T @ records)
    assert group.level_sum[0] == levels.sum()
    assert group.level_max[0] == levels.max()
    np.testing.assert_allclose(fs / n, records.mean(axis=0))  # observation 2.1
    covariance = sc / n - np.outer(fs, fs) / n**2  # observation 2.2
    np.testing.assert_allclose(covariance, np.cov(records.T, bias=True), atol=1e-9)
    np.testing.assert_allclose(group.covariance[0], covariance, atol=1e-9)
    np.testing.assert_allclose(group.ssq, ((records - records.mean(axis=0)) ** 2).sum())


def test_levels_2_2_2_3_5_do_not_split_and_one_more_of_level_3_does() -> None:
    rng = np.random.default_rng(11)
    five = summarize(rng.normal(size=(5, 2)), np.zeros(5, dtype=np.int64), np.array([2, 2, 2, 3, 5]))
    sixth = summarize(rng.normal(size=(1, 2)), np.zeros(1, dtype=np.int64), np.array([3]))
    six = merge(five, sixth)
    assert five.count[0] ** 2 == 25
    assert 2 * five.level_sum[0] == 28  # n >= 2 Ps/n fails: 25 < 28 [AY05, sec. 3]
    assert six.count[0] ** 2 == 36
    assert 2 * six.level_sum[0] == 34  # 36 >= 34
    halves = split_groups(six)
    assert [int(half.count[0]) for half in halves] == [3, 3]
    assert [int(half.level_max[0]) for half in halves] == [5, 5]  # as high as the unsplit group


def test_shapes_that_do_not_fit_are_refused_and_the_repr_holds_no_statistics() -> None:
    groups = random_groups(np.random.default_rng(12), count=2, size=4, dim=3)
    assert repr(groups) == "Groups(g=2, d=3)"
    with pytest.raises(ValueError, match="statistics of 2 groups in 3 coordinates"):
        Groups(groups.count[:1], groups.mean, groups.scatter, groups.level_sum, groups.level_max)
