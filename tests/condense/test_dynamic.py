"""The steps of dynamic condensation, one by one [AY05, sec. 3]."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.compiled import compiled
from sfumato.core.groups import Groups, split_groups, summarize
from sfumato.methods.condense import dynamic
from sfumato.methods.condense.dynamic import Work, leading_axis, padded, rows_of
from sfumato.methods.condense.slots import Slots, empty_slots
from tests.condense import streams
from tests.condense.streams import Floats
from tests.examples import examples
from tests.groups.drawn_groups import merge
from tests.kernels import kept

absorb_record, split_group = kept(dynamic.absorb_record), kept(dynamic.split_group)
closest_eligible = kept(streams.closest_eligible)
splits_by_paper, splits_strictly = kept(dynamic.splits_by_paper), kept(dynamic.splits_strictly)
seeds = st.integers(0, 2**32 - 1)


def store_of(groups: Groups, slots: int) -> Slots:
    g, d = groups.mean.shape
    upper = np.triu_indices(d)
    store = empty_slots(slots, d)
    store.ids[:g], store.count[:g], store.mean[:g] = np.arange(g), groups.count, groups.mean
    store.triangle[:g] = groups.scatter[:, upper[0], upper[1]]
    store.level_sum[:g], store.level_max[:g] = groups.level_sum, groups.level_max
    store.family[:g], store.fresh[:g] = np.arange(g), groups.count
    return store


def groups_in(store: Slots, *slots: int) -> Groups:
    some = list(slots)
    scatter = rows_of(store.triangle[some], store.mean.shape[1])
    return Groups(store.count[some], store.mean[some], scatter, store.level_sum[some], store.level_max[some])


def work_for(d: int) -> Work:
    return Work(np.empty(d), np.empty(d), np.empty((d, padded(d))), np.empty((6, padded(d))))


def drawn(seed: int) -> tuple[Floats, Groups]:
    """Draw the records of one group and their statistics: few or many, in a line, on a grid, far away, all equal."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 30)), int(rng.integers(1, 9))
    values = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) * 10.0 ** rng.integers(-4, 5) + rng.choice([0.0, 100.0])
    shape = rng.random()
    if shape < 0.2:
        values = values[:, :1] * rng.normal(size=d)
    elif shape < 0.3:
        values[:] = values[0]
    return values, summarize(values, np.zeros(n, dtype=np.int64), rng.integers(2, 9, n))


@compiled
def axis_of(triangle: Floats, d: int, e1: Floats) -> float:
    return leading_axis(triangle, np.empty((d, padded(d))), np.empty((6, padded(d))), e1)


@examples(300)
@given(seeds)
def test_the_longest_axis_is_the_leading_eigenvector(seed: int) -> None:
    _, group = drawn(seed)
    d = group.mean.shape[1]
    covariance, e1 = group.covariance[0], np.empty(d)
    lambda1 = axis_of(covariance[np.triu_indices(d)], d, e1)
    largest = max(float(np.linalg.eigvalsh(covariance)[-1]), 0.0)
    assert abs(np.linalg.norm(e1) - 1.0) < 1e-12
    assert np.cos(np.arange(1.0, d + 1.0)) @ e1 > 0.0
    assert abs(lambda1 - largest) <= 1e-11 * largest
    assert np.linalg.norm(covariance @ e1 - lambda1 * e1) <= 1e-7 * largest  # equal eigenvalues leave the axis open


@pytest.mark.parametrize("tiny", [3e-162, 1e-160, 1e-155, 1e-120, 1e-101, 1e-99])
def test_an_entry_that_is_tiny_but_not_zero_leaves_the_axis_finite(tiny: float) -> None:
    e1 = np.empty(3)
    lambda1 = axis_of(np.array([1.0, tiny, 0.0, 1.0, 0.0, 2.0]), 3, e1)
    np.testing.assert_allclose(np.abs(e1), [0.0, 0.0, 1.0], atol=1e-12)
    assert abs(lambda1 - 2.0) < 1e-11


@pytest.mark.parametrize("d", [1, 2, 31, 32, 33, 64, 90])
def test_the_longest_axis_is_found_in_any_dimension(d: int) -> None:
    for seed in range(5):
        values = np.random.default_rng(seed).normal(size=(20 + 10 * seed, d))
        covariance, e1 = np.cov(values.T, bias=True).reshape(d, d), np.empty(d)
        lambda1 = axis_of(covariance[np.triu_indices(d)], d, e1)
        assert abs(lambda1 - np.linalg.eigvalsh(covariance)[-1]) <= 1e-11 * lambda1
        assert np.linalg.norm(covariance @ e1 - lambda1 * e1) <= 1e-7 * lambda1


@examples(100)
@given(seeds)
def test_absorbing_a_record_gives_the_statistics_of_the_larger_group(seed: int) -> None:
    values, whole = drawn(seed)
    n = len(values)
    levels = np.full(n, 3)
    one = np.zeros(n - 1, dtype=np.int64)
    store = store_of(summarize(values[:-1], one, levels[:-1]), 1)
    absorb_record(store, 0, values[-1].copy(), 3, np.empty(values.shape[1]))
    found, size = groups_in(store, 0), np.abs(values).max() + 1e-300
    assert found.count[0] == n
    assert found.level_sum[0] == 3 * n
    assert found.level_max[0] == 3
    np.testing.assert_allclose(found.mean, whole.mean, atol=1e-12 * size)
    np.testing.assert_allclose(found.scatter, whole.scatter, atol=1e-10 * n * size**2)
    assert store.fresh[0] == n
    assert store.written[0]


@examples(200)
@given(seeds)
def test_merging_the_halves_gives_back_the_group_and_they_are_those_of_split_groups(seed: int) -> None:
    values, parent = drawn(seed)
    d, size = values.shape[1], np.abs(values).max() ** 2 + 1e-300
    store = store_of(parent, 2)
    split_group(store, 0, 1, 1, work_for(d))
    left, right = groups_in(store, 0), groups_in(store, 1)
    back = merge(left, right)
    np.testing.assert_array_equal(back.count, parent.count)
    np.testing.assert_allclose(back.mean, parent.mean, atol=1e-12 * np.sqrt(size))
    np.testing.assert_allclose(back.scatter, parent.scatter, atol=1e-10 * size * len(values))
    np.testing.assert_allclose(back.level_sum, parent.level_sum, rtol=1e-12)
    assert (left.level_max[0], right.level_max[0]) == (parent.level_max[0],) * 2
    assert store.ids.tolist() == [1, 2]
    assert store.fresh.sum() == len(values)
    assert store.pseudo.all()
    spectrum = np.linalg.eigvalsh(parent.covariance[0])
    if d == 1 or spectrum[-1] - spectrum[-2] > 1e-3 * spectrum[-1] > 0.0:
        for found, expected in zip((left, right), split_groups(parent), strict=True):
            assert found.count[0] == expected.count[0]
            other = np.abs(found.mean - expected.mean).max() > 1e-6 * np.sqrt(size)  # components of equal size
            mirrored = 2.0 * parent.mean - expected.mean if other else expected.mean
            np.testing.assert_allclose(found.mean, mirrored, atol=1e-7 * np.sqrt(size))
            np.testing.assert_allclose(found.scatter, expected.scatter, atol=1e-7 * size * len(values))


def test_a_group_splits_at_equality_also_after_odd_splits_have_made_fractions() -> None:
    store = empty_slots(1, 1)
    store.count[0] = 5
    for level_sum, expected in [(12.5, True), (12.5 + 1e-13, True), (12.5 + 1e-9, False), (12.0, True), (13.0, False)]:
        store.level_sum[0] = level_sum
        assert splits_by_paper(store, 0) == expected


def test_the_strict_test_asks_for_twice_the_highest_level() -> None:
    store = empty_slots(1, 1)
    store.level_max[0] = 5
    for count in range(1, 13):
        store.count[0] = count
        assert splits_strictly(store, 0) == (count >= 10)


def test_a_single_record_never_splits() -> None:
    store = empty_slots(1, 1)
    store.count[0] = 1
    assert not splits_by_paper(store, 0)
    assert not splits_strictly(store, 0)


@examples(100)
@given(seeds)
def test_the_closest_eligible_centroid_is_that_of_numpy_and_the_lowest_id_of_equals(seed: int) -> None:
    rng = np.random.default_rng(seed)
    g, d = int(rng.integers(1, 40)), int(rng.integers(1, 5))
    store = empty_slots(g, d)
    store.mean[:] = rng.integers(-2, 3, (g, d))  # whole numbers: distances are exact and often equal
    store.count[:], store.ids[:] = rng.integers(1, 9, g), rng.permutation(g)
    x, level = rng.integers(-3, 4, d).astype(np.float64), int(rng.integers(1, 10))
    store.stratum[:], stratum = rng.integers(0, 2, g), int(rng.integers(0, 2))
    eligible = (store.count >= level - 1) & (store.stratum == stratum)
    apart = np.where(eligible, ((store.mean - x) ** 2).sum(axis=1), np.inf)
    found = closest_eligible(store, g, x, level, stratum)
    if np.isinf(apart).all():
        assert found == -1
    else:
        same = np.flatnonzero(apart == apart.min())
        assert found == same[store.ids[same].argmin()]
