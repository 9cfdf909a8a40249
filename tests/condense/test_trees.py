"""The trees that cut records and groups into leaves."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.methods.condense.trees import Span, principal_tree, random_tree
from tests.condense.tables import Floats, Whole, draw_levels, draw_values, mixture
from tests.examples import examples

SEED = np.uint64(12345)
FEWEST = 4  # groups of a leaf, where there are as many


def cut_records(values: Floats, levels: Whole, most: int, unit: int) -> tuple[Whole, Whole]:
    """Give the records in leaf order, and where leaves begin and the last one ends."""
    n = len(values)
    order, bounds = np.arange(n), np.empty(n + 1, dtype=np.int64)
    leaves = principal_tree(values, levels, most, unit, order, np.empty(n), Span(0, n, -1), bounds)
    return order, np.append(bounds[:leaves], n)


def cut_groups(
    centres: Floats, weight: Whole, most_groups: int, most_records: int, seed: np.uint64 = SEED
) -> tuple[Whole, Whole]:
    n = len(centres)
    order, bounds = np.arange(n), np.empty(n + 1, dtype=np.int64)
    leaves = random_tree(centres, weight, (most_groups, most_records), seed, order, np.empty(n), Span(0, n, -1), bounds)
    return order, np.append(bounds[:leaves], n)


def assert_leaves(order: Whole, bounds: Whole) -> None:
    """Leaves hold each element once and none is empty."""
    assert sorted(order.tolist()) == list(range(len(order)))
    assert bounds[0] == 0
    assert (np.diff(bounds) > 0).all()


kinds = st.sampled_from(["normal", "heavy tails", "grid", "duplicates", "constant columns", "all equal"])


@examples(80)
@given(st.integers(1, 600), st.integers(1, 5), kinds, st.integers(1, 40), st.integers(20, 200), st.integers(0, 2**32))
def test_a_random_tree_gives_leaves_of_few_groups_and_few_records(
    n: int, d: int, kind: str, most_groups: int, most_records: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    centres, weight = draw_values(rng, kind, n, d), rng.integers(1, 20, n)
    order, bounds = cut_groups(centres, weight, most_groups, most_records, np.uint64(seed))
    assert_leaves(order, bounds)
    groups = np.diff(bounds)
    records = np.add.reduceat(weight[order], bounds[:-1])
    few = (groups <= most_groups) & (records <= most_records)
    assert (few | (groups < 2 * FEWEST)).all()
    assert (groups >= min(n, FEWEST)).all()


def test_another_seed_gives_another_random_tree() -> None:
    rng = np.random.default_rng(0)
    centres, weight = mixture(rng, 300, 3), np.full(300, 5)
    first, again, other = (cut_groups(centres, weight, 32, 1024, np.uint64(seed))[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_leaves_of_a_random_tree_are_neighbourhoods() -> None:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(2_000, 2))
    order, bounds = cut_groups(centres, np.full(2_000, 5), 32, 1024)
    inside = [centres[leaf].var(axis=0).sum() for leaf in np.split(order, bounds[1:-1])]
    assert np.mean(inside) < 0.2 * centres.var(axis=0).sum()  # about 0.05


@given(st.integers(2, 12), st.integers(1, 40), st.integers(1, 5), kinds, st.integers(0, 2**32))
def test_principal_cuts_fall_on_multiples_of_the_level_where_there_is_one(
    k: int, per: int, d: int, kind: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    n = k * per + int(rng.integers(0, k))
    most = 4 * k
    order, bounds = cut_records(draw_values(rng, kind, n, d), np.full(n, k), most, k)
    assert_leaves(order, bounds)
    assert (np.diff(bounds) <= max(most, k)).all()
    assert (np.diff(bounds) >= k).all()
    assert (np.diff(bounds)[:-1] % k == 0).all()
    assert (bounds[:-1] % k == 0).all()


@examples(100)
@given(
    st.integers(1, 600),
    st.integers(1, 5),
    kinds,
    st.sampled_from(["narrow", "from 1 to n", "mostly low", "one of n", "one of n-1", "one above n/2", "far apart"]),
    st.integers(0, 2**32),
)
def test_a_principal_leaf_can_meet_every_level_inside_and_is_large_only_where_it_must_be(
    n: int, d: int, kind: str, asked: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    levels, most = draw_levels(rng, asked, n), 64
    order, bounds = cut_records(draw_values(rng, kind, n, d), levels, most, 1)
    assert_leaves(order, bounds)
    for leaf in np.split(order, bounds[1:-1]):
        highest = levels[leaf].max()
        assert len(leaf) >= highest
        assert len(leaf) <= max(most, 2 * highest)


def test_the_first_principal_cut_is_across_the_longest_axis() -> None:
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    values = (rng.normal(size=(800, 4)) * [10.0, 2.0, 1.0, 0.5]) @ turn
    order, bounds = cut_records(values, np.full(800, 5), 400, 5)
    assert bounds.tolist() == [0, 400, 800]
    along = values @ turn[0]  # the longest axis
    low, high = along[order[:400]], along[order[400:]]
    assert abs(low.mean() - high.mean()) > 1.5 * along.std()  # 1.6 for a normal law cut at its median


def test_a_very_high_level_takes_its_nearest_records_and_leaves_the_others() -> None:
    rng = np.random.default_rng(0)
    values, levels = rng.normal(size=(200, 2)), np.full(200, 2)
    levels[17] = 120
    order, bounds = cut_records(values, levels, 64, 1)
    assert bounds[1] == 120
    distance = ((values - values[17]) ** 2).sum(axis=1)
    assert set(order[:120].tolist()) == set(np.argsort(distance)[:120].tolist())


@pytest.mark.parametrize("depth", [1, 3, 5])
@pytest.mark.parametrize("tree", ["principal", "random"])
def test_parts_of_a_tree_built_apart_are_those_built_at_once(tree: str, depth: int) -> None:
    rng = np.random.default_rng(0)
    n = 3_000
    values, levels, weight = mixture(rng, n, 3), rng.integers(2, 9, n), rng.integers(3, 9, n)
    levels[:5] = 900
    order, key, bounds = np.arange(n), np.empty(n), np.empty(n + 1, dtype=np.int64)

    def cut(low: int, high: int, depth: int) -> list[int]:
        if tree == "principal":
            leaves = principal_tree(values, levels, 64, 1, order, key, Span(low, high, depth), bounds)
        else:
            leaves = random_tree(values, weight, (32, 200), SEED, order, key, Span(low, high, depth), bounds)
        return [int(place) for place in bounds[:leaves]]

    top = [*cut(0, n, depth), n]
    assert 2 <= len(top) - 1 <= 2**depth
    starts = [place for low, high in pairwise(top) for place in cut(low, high, -1)]
    whole, ends = cut_records(values, levels, 64, 1) if tree == "principal" else cut_groups(values, weight, 32, 200)
    np.testing.assert_array_equal(order, whole)
    assert [*starts, n] == ends.tolist()
