"""Exact neighbours against a loop: few rows in one box, many in several, ties among them."""

from __future__ import annotations

from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.core import neighbours
from sfumato.core.neighbours import nearest


def by_a_loop(
    rows: NDArray[np.float64], queries: NDArray[np.float64], count: int, own: NDArray[np.int64] | None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Nearest rows from all distances, those at the same distance in their order."""
    every = np.stack([np.sqrt(((rows - point) ** 2).sum(axis=1)) for point in queries])
    if own is not None:
        every[np.arange(len(queries)), own] = np.inf
    places = np.argsort(every, axis=1, kind="stable")[:, :count]
    return places, np.take_along_axis(every, places, axis=1)


@given(
    seed=st.integers(0, 10_000),
    n=st.sampled_from([40, 257, 700, 3000]),
    dim=st.sampled_from([1, 3, 12, 17, 40]),
    count=st.integers(1, 20),
    values=st.sampled_from([2, 1000]),
    own=st.booleans(),
)
def test_neighbours_are_those_that_a_loop_finds(
    seed: int, n: int, dim: int, count: int, values: int, own: bool
) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, values, (n, dim)).astype(np.float64)
    mine = rng.choice(n, 15, replace=False) if own else None
    queries = rows[mine] if mine is not None else rng.integers(-1, values + 1, (15, dim)).astype(np.float64)
    places, distances = nearest(rows, queries, count, own=mine)
    expected, apart = by_a_loop(rows, queries, count, mine)
    np.testing.assert_array_equal(distances, apart)
    if mine is None:
        np.testing.assert_array_equal(places, expected)
    else:  # a query that twins have crowded out leaves another of them in its place
        assert not (places == mine[:, None]).any()
        np.testing.assert_array_equal(np.sqrt(((queries[:, None] - rows[places]) ** 2).sum(axis=2)), apart)


@pytest.mark.parametrize("dim", [2, 40])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_neighbours_of_a_mixture_are_those_that_a_loop_finds(dim: int, scale: float) -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(scale=scale, size=(8, dim))[rng.integers(0, 8, 5000)] + rng.standard_t(2, (5000, dim))
    own = rng.choice(5000, 150, replace=False)
    places, distances = nearest(rows, rows[own], 5, own=own)
    expected, apart = by_a_loop(rows, rows[own], 5, own)
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_allclose(distances, apart, rtol=1e-12)


@pytest.mark.parametrize("dim", [2, 40])
def test_the_distance_of_a_row_to_its_copy_is_exactly_zero(dim: int) -> None:
    rows = np.random.default_rng(1).normal(1e6, 1.0, (2000, dim))
    assert not nearest(rows, rows)[1].any()


def test_all_rows_come_in_their_order_where_they_are_the_same() -> None:
    places, distances = nearest(np.ones((2000, 3)), np.zeros((200, 3)), 7)
    assert (places == np.arange(7)).all()
    np.testing.assert_allclose(distances, np.sqrt(3.0))


def test_more_neighbours_than_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="4 neighbours were asked of 3 rows"):
        nearest(np.zeros((3, 1)), np.zeros((1, 1)), 4)


def test_searches_among_rows_that_stay_share_their_boxes_and_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    rows, queries, own = rng.normal(size=(3000, 6)), rng.normal(size=(50, 6)), np.arange(40)
    direct = [nearest(rows, queries, 3), nearest(rows, rows[own], own=own), nearest(rows, queries)]
    made = Mock(side_effect=neighbours._build_boxes)
    monkeypatch.setattr(neighbours, "_build_boxes", made)
    rows.setflags(write=False)
    shared = [nearest(rows, queries, 3), nearest(rows, rows[own], own=own), nearest(rows, queries)]
    assert made.call_count == 1
    for one, other in zip(direct, shared, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])


def test_rows_that_were_changed_are_searched_as_they_are() -> None:
    rows, query = np.random.default_rng(5).normal(size=(600, 2)), np.zeros((1, 2))
    nearest(rows, query)
    rows[7] = 0.0
    assert nearest(rows, query)[0].tolist() == [[7]]


def test_boxes_go_with_their_rows_and_only_a_few_are_kept() -> None:
    tables = [np.random.default_rng(seed).normal(size=(300, 2)) for seed in range(6)]
    for rows in tables:
        rows.setflags(write=False)
        nearest(rows, np.zeros((1, 2)))
    assert len(neighbours._kept) <= 3
    del rows
    tables.clear()
    assert all(known() is not None for known, _ in neighbours._kept)
