"""The index and the cache give the answers of brute force, to the bit, however centroids move and split."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.compiled import fixed
from sfumato.methods.condense import centroid_index
from sfumato.methods.condense.centroid_index import (
    LEAVES,
    LOOSE,
    WIDTH,
    Index,
    build_index,
    cache_size,
    empty_cache,
    fill_cache,
)
from sfumato.methods.condense.maintainer import Maintainer
from sfumato.methods.condense.slots import Slots, empty_slots
from tests.condense import streams
from tests.condense.streams import Floats, assert_same_state, brute_stream, draw_arrivals
from tests.examples import examples
from tests.kernels import kept

closest_in_index, is_stale = kept(centroid_index.closest_in_index), kept(centroid_index.is_stale)
insert, move = kept(centroid_index.insert), kept(centroid_index.move)
settle_counts = kept(centroid_index.lower_counts)
closest_cached, rewrite_column = kept(centroid_index.closest_cached), kept(centroid_index.rewrite_column)
closest_eligible = kept(streams.closest_eligible)
seeds = st.integers(0, 2**32 - 1)


def draw_points(rng: np.random.Generator, n: int, d: int) -> Floats:
    """Draw points: in clusters, without, on a grid where distances tie, in a line, or all equal."""
    shape = rng.random()
    values: Floats = rng.normal(size=(n, d)) + rng.choice([0.0, 1e6])
    if shape < 0.3:
        values += rng.integers(-5, 6, (7, d))[rng.integers(7, size=n)] * 10.0
    elif shape < 0.6:
        values = np.round(values)
    elif shape < 0.7:
        values = values[:, :1] * np.ones(d)
    elif shape < 0.8:
        values[:] = values[0]
    return values


def draw_store(rng: np.random.Generator, g: int, slots: int, d: int) -> Slots:
    store = empty_slots(slots, d)
    store.mean[:slots] = draw_points(rng, slots, d)
    store.count[:slots], store.ids[:slots] = rng.integers(1, 12, slots), rng.permutation(slots)
    store.stratum[:slots] = rng.integers(0, int(rng.integers(1, 4)), slots)
    return store


def assert_sound(index: Index, store: Slots, groups: int) -> None:
    """Every group is in one place, and every box above it holds it."""
    seen = []
    for leaf in range(index.numbers[LEAVES] + index.numbers[LOOSE]):
        for place in range(index.used[leaf]):
            slot = index.member[leaf, place]
            seen.append(slot)
            assert (index.leaf_of[slot], index.place_of[slot]) == (leaf, place)
            np.testing.assert_array_equal(index.point[leaf, :, place], store.mean[slot])
            node, j = index.leaf_up[leaf]
            while node >= 0:
                assert (index.low[node, :, j] <= store.mean[slot]).all()
                assert (index.high[node, :, j] >= store.mean[slot]).all()
                assert index.most[node, j] >= store.count[slot]
                node, j = index.node_up[node]
    assert sorted(seen) == list(range(groups))


@given(seeds, st.integers(1, 400), st.integers(1, 9))
def test_the_index_answers_like_brute_force_while_centroids_move_and_split(seed: int, g: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    store, groups = draw_store(rng, g, g + 100, d), g
    index = build_index(store, groups)
    for _ in range(40):
        if is_stale(index, groups):
            index = build_index(store, groups)
        slot, choice = int(rng.integers(groups)), rng.random()
        if choice < 0.5:  # a group grows and moves, a little or far
            store.mean[slot] += rng.normal(size=d) * rng.choice([0.1, 100.0])
            store.count[slot] += 1
            move(index, store, slot)
        elif choice < 0.8:  # a group splits
            store.count[slot] = store.count[groups] = max(1, store.count[slot] // 2)
            store.mean[groups] = store.mean[slot] + rng.normal(size=d)
            store.mean[slot] -= 1.0
            store.stratum[groups] = store.stratum[slot]
            move(index, store, slot)
            insert(index, store, groups, slot)
            settle_counts(index, store, slot)
            groups += 1
        x = draw_points(rng, 1, d)[0] if rng.random() < 0.5 else store.mean[slot] + np.round(rng.normal(size=d))
        asked = int(rng.integers(1, 16)), int(rng.integers(0, 3))
        assert closest_in_index(index, store, x, *asked) == closest_eligible(store, groups, x, *asked)
    assert_sound(index, store, groups)


@given(seeds, st.integers(1, 400), st.integers(1, 9), st.integers(1, 30))
def test_the_cache_answers_like_brute_force_while_centroids_move_and_split(
    seed: int, g: int, d: int, records: int
) -> None:
    rng = np.random.default_rng(seed)
    store, groups = draw_store(rng, g, g + 100, d), g
    values = fixed(draw_points(rng, 2 * records, d), np.float64)
    memory, written = np.empty(2 * cache_size(g + 100, records)), empty_cache()
    for first in (0, records):
        written = fill_cache(written, store, groups, values, first, first + records, memory)
        for i in range(first, first + records):
            x, asked = values[i].copy(), (int(rng.integers(1, 16)), int(rng.integers(0, 3)))
            slot = closest_cached(written, store, i, x, *asked)
            assert slot == closest_eligible(store, groups, x, *asked)
            slot = max(slot, 0)
            store.mean[slot] += 0.1 * (x - store.mean[slot])
            store.count[slot] += 1
            rewrite_column(written, store, slot, values, i + 1)
            if rng.random() < 0.3:
                store.mean[groups], store.count[groups] = store.mean[slot] + rng.normal(size=d), 3
                rewrite_column(written, store, groups, values, i + 1)
                groups += 1


@pytest.mark.slow
@pytest.mark.parametrize("means", ["index", "cache", "both"])
@examples(25)
@given(seed=seeds, strict=st.booleans())
def test_a_long_stream_gives_the_groups_of_brute_force_bit_for_bit(means: str, seed: int, strict: bool) -> None:
    arrivals = draw_arrivals(seed, 1500)
    split = "strict" if strict else "paper"
    found = arrivals.started(k=2, split=split)
    store, groups = empty_slots(2000, found.d), len(found.ids)
    for name in ("ids", "count", "mean", "triangle", "level_sum", "level_max", "family", "fresh", "fresh_level_max"):
        getattr(store, name)[:groups] = getattr(found.state(), name)
    easy = 2 + arrivals.levels % 2  # 2 and 3, which any group is large enough for
    served = Maintainer.from_state(found.state())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(centroid_index, "_FEWEST_CELLS", 1)
        if means != "both":
            patch.setattr(centroid_index, "_SHARE", -1.0 if means == "cache" else np.inf)
        assert found.absorb(arrivals.values, easy).absorbed == 1500
        assert found._search._caching == (means == "cache") or means == "both"
    served.absorb(arrivals.values, easy)
    groups = brute_stream(store, groups, strict, fixed(arrivals.values, np.float64), fixed(easy, np.int64))
    order = np.argsort(store.ids[:groups])
    state = found.state()
    for name in ("ids", "count", "mean", "triangle", "level_sum", "level_max", "fresh"):
        assert getattr(state, name).tobytes() == getattr(store, name)[:groups][order].tobytes()
    assert_same_state(state, served.state())


def test_a_leaf_that_is_full_hands_new_centroids_to_its_neighbours_and_then_to_loose_leaves() -> None:
    rng = np.random.default_rng(3)
    store, groups = draw_store(rng, 60, 400, 3), 60
    index = build_index(store, groups)
    while not is_stale(index, groups):
        store.mean[groups] = store.mean[0] + 0.001 * rng.normal(size=3)
        insert(index, store, groups, 0)
        groups += 1
    assert index.numbers[LOOSE] > 0
    assert groups > 60 + WIDTH
    assert_sound(index, store, groups)


def test_clustered_centroids_are_found_by_looking_at_few_of_them() -> None:
    rng = np.random.default_rng(4)
    centres = rng.uniform(-10.0, 10.0, (100, 10))
    store = empty_slots(5000, 10)
    store.mean[:] = centres[rng.integers(100, size=5000)] + rng.normal(size=(5000, 10))
    store.count[:], store.ids[:] = 10, np.arange(5000)
    index = build_index(store, 5000)
    for x in centres[:50] + rng.normal(size=(50, 10)):
        closest_in_index(index, store, x, 10, 0)
    looked, asked = index.numbers[[4, 5]]
    assert asked == 50
    assert looked * WIDTH / asked < 1000  # a fifth of all; measured: about a twentieth
