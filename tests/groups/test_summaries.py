"""Statistics of groups against their records, one group at a time."""

from __future__ import annotations

import numpy as np

from sfumato.core.groups import centroids, ssq, summarize
from sfumato.core.groups.discrete import category_counts, missing_counts, widen_present
from sfumato.core.groups.generate import draw_along_eigenvectors
from sfumato.core.records import CATEGORY_SCALE, Block, BlockKind
from tests.groups.drawn_groups import from_moments


def test_the_statistics_of_a_group_are_those_of_its_own_records() -> None:
    rng = np.random.default_rng(3)
    labels = rng.permutation(np.repeat(np.arange(6), [4, 3, 4, 1, 3, 4]))
    values, levels = rng.normal(size=(19, 3)) + 10.0 * labels[:, None], rng.integers(2, 9, 19)
    groups = summarize(values, labels, levels)
    assert groups.count.tolist() == [4, 3, 4, 1, 3, 4]
    assert groups.level_max.dtype == np.int64
    for label in range(6):
        own = values[labels == label]
        np.testing.assert_allclose(groups.mean[label], own.mean(axis=0), rtol=1e-12)
        centred = own - own.mean(axis=0)
        np.testing.assert_allclose(groups.scatter[label], centred.T @ centred, atol=1e-12)
        assert groups.level_sum[label] == levels[labels == label].sum()
        assert groups.level_max[label] == levels[labels == label].max()


def test_the_rows_of_a_group_are_drawn_about_its_own_mean() -> None:
    means = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 100.0], [100.0, 100.0]])
    groups = from_moments(np.array([3, 2, 3, 3]), means, np.tile(np.eye(2), (4, 1, 1)))
    rows = draw_along_eigenvectors(groups, np.random.default_rng(1))
    gaps = rows - np.repeat(means, groups.count, axis=0)
    assert (np.abs(gaps) <= np.sqrt(12.0) / 2.0).all()


def test_present_cells_spread_about_their_own_mean_as_the_fills_took_their_part() -> None:
    """Two of four cells present at 1 and 5, and one of two at 7; those that are missing hold the fill, 2."""
    block = Block("pay", BlockKind.NUMBER, 0, 1, (2.0,))
    groups = from_moments(np.array([4, 2]), np.array([[2.5], [4.5]]), np.zeros((2, 1, 1)))
    drawn = np.array([1.0, 5.0, 3.0, 4.0, 7.0, 8.0])
    widen_present(drawn, groups, block, np.array([2, 1]))
    root = np.sqrt(2.0)
    np.testing.assert_allclose(drawn, [3 - 2 * root, 3 + 2 * root, 3.0, 3 + root, 7.0, 7 + root])


def test_a_group_without_present_cells_is_left_in_its_place() -> None:
    block = Block("pay", BlockKind.NUMBER, 0, 1, (2.0,))
    groups = from_moments(np.array([4]), np.array([[2.0]]), np.zeros((1, 1, 1)))
    drawn = np.zeros(4)
    widen_present(drawn, groups, block, np.array([4]))
    np.testing.assert_array_equal(drawn, 0.0)


def test_the_sum_of_squares_is_about_the_centroid() -> None:
    points = np.array([[1.0, 1.0], [3.0, 5.0], [7.0, 7.0]])
    assert ssq(points[:2]) == 10.0
    np.testing.assert_array_equal(centroids(points, [np.array([0, 1]), np.array([2])]), [[2.0, 3.0], [7.0, 7.0]])


def test_halves_of_a_category_are_rounded_so_that_counts_add_up() -> None:
    block = Block("sex", BlockKind.CATEGORY, 0, 2, (0.0, 0.0))
    groups = from_moments(np.array([3, 4]), np.array([[0.5, 0.5], [0.25, 0.75]]) * CATEGORY_SCALE, np.zeros((2, 2, 2)))
    assert category_counts(groups, block, np.array([0, 0])).tolist() == [[2, 1], [1, 3]]


def test_no_fewer_cells_are_missing_than_none_and_no_more_than_all() -> None:
    """Statistics that were split tell shares below 0 and above 1."""
    block = Block("sex", BlockKind.MISSING, 0, 1)
    groups = from_moments(np.array([5, 5, 5]), np.array([[-0.3], [0.4], [1.3]]), np.zeros((3, 1, 1)))
    assert missing_counts(groups, block).tolist() == [0, 2, 5]
