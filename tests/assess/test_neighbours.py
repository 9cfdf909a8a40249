"""Exact neighbours, with a tree and without, against a loop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.assess.neighbours import TREE, nearest


@given(
    seed=st.integers(0, 10_000),
    dim=st.sampled_from([1, 3, TREE, TREE + 1, 30]),
    count=st.integers(1, 4),
    values=st.sampled_from([2, 1000]),
    own=st.booleans(),
)
def test_neighbours_are_those_that_a_loop_finds(seed: int, dim: int, count: int, values: int, own: bool) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, values, (40, dim)).astype(np.float64)
    places = rng.choice(40, 15, replace=False) if own else None
    queries = rows[places] if places is not None else rng.integers(0, values, (15, dim)).astype(np.float64)
    found, distances = nearest(rows, queries, count, own=places)
    for query, point in enumerate(queries):
        every = np.sqrt(((rows - point) ** 2).sum(axis=1))
        if places is not None:
            assert places[query] not in found[query]
            every[places[query]] = np.inf
        np.testing.assert_allclose(distances[query], np.sort(every)[:count], atol=1e-12)
        np.testing.assert_allclose(every[found[query]], distances[query], atol=1e-12)
        assert len(set(found[query].tolist())) == count


@pytest.mark.parametrize("dim", [2, 40])
def test_the_distance_of_a_row_to_its_copy_is_exactly_zero(dim: int) -> None:
    rows = np.random.default_rng(1).normal(1e6, 1.0, (200, dim))
    assert not nearest(rows, rows)[1].any()


def test_more_neighbours_than_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="4 neighbours were asked of 3 rows"):
        nearest(np.zeros((3, 1)), np.zeros((1, 1)), 4)
