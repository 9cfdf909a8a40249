"""Chameleon: its formulas by hand, laws of each phase, shapes that K-means cannot find, refusals."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

pytest.importorskip("pymetis")

from scipy.sparse import block_diag, csr_array
from scipy.sparse.csgraph import connected_components
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import check_estimator

from benchmarks.chameleon import (
    LEAST_SIMILARITY,
    Chameleon,
    Links,
    bisector,
    goodness,
    join_apart,
    labels_at,
    link,
    loss,
    merge_all,
    neighbour_graph,
    split_loose,
    stop_at,
    sub_clusters,
)
from sfumato.core.errors import BadInput, OptionError, SfumatoError
from tests.examples import at_length, examples, sized

pytestmark = pytest.mark.slow  # a yardstick of benchmarks, and no part of the package
Floats = NDArray[np.float64]


def random_graph(seed: int, n: int = 120, neighbours: int = 6) -> tuple[Floats, csr_array]:
    """A cloud of points with lumps, and its graph."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, 2)) + rng.integers(0, 3, n)[:, None] * 2.0
    return values, neighbour_graph(values, neighbours)


def from_edges(n: int, edges: dict[tuple[int, int], float]) -> csr_array:
    """A graph from its edges, each given once."""
    dense = np.zeros((n, n))
    for (i, j), weight in edges.items():
        dense[i, j] = dense[j, i] = weight
    return csr_array(dense)


def barbell(bridge: float) -> csr_array:
    """Two complete graphs of four rows each, weights 1, joined by one edge."""
    full = {(i + s, j + s): 1.0 for s in (0, 4) for i in range(4) for j in range(i)}
    return from_edges(8, full | {(3, 4): bridge})


def rings_and_noise(seed: int, n: int = 900) -> tuple[Floats, NDArray[np.int64]]:
    """A ring about a disc, and thin noise around both: labels 1 and 2, 0 for noise."""
    rng = np.random.default_rng(seed)
    truth = np.repeat([1, 2, 0], [n // 2, n // 2, n // 20])
    angle = rng.uniform(0.0, 2.0 * np.pi, n)
    radius = np.where(truth[:n] == 1, rng.uniform(4.0, 4.6, n), 1.5 * np.sqrt(rng.uniform(size=n)))
    shapes = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return np.concatenate([shapes, rng.uniform(-6.0, 6.0, (n // 20, 2))]), truth


def scored(values: Floats, truth: NDArray[np.int64], labels: NDArray[np.int64]) -> float:
    return float(adjusted_rand_score(truth[truth > 0], labels[truth > 0]))


@given(seed=st.integers(0, 100_000), k=st.integers(1, 12), scale=st.floats(0.01, 1000.0))
@examples(50, few=7)
def test_the_graph_is_symmetric_without_loops_and_blind_to_units(seed: int, k: int, scale: float) -> None:
    values = np.random.default_rng(seed).normal(size=(60, 3))
    graph = neighbour_graph(values, k)
    np.testing.assert_array_equal(graph.toarray(), graph.T.toarray())
    assert not graph.diagonal().any()
    assert (np.diff(graph.indptr) >= k).all()
    assert LEAST_SIMILARITY <= graph.data.min() <= graph.data.max() <= 1.0
    np.testing.assert_allclose(neighbour_graph(values * scale, k).toarray(), graph.toarray(), rtol=1e-6)


def test_a_graph_of_equal_rows_has_weights_of_one() -> None:
    assert (neighbour_graph(np.ones((20, 2)), 5).data == 1.0).all()
    assert neighbour_graph(np.ones((3, 2)), 10).nnz == 6


@given(seed=st.integers(0, 100_000), size=st.integers(1, 60))
@examples(50, few=7)
def test_sub_clusters_are_numbered_parts_of_no_more_than_the_size(seed: int, size: int) -> None:
    _, graph = random_graph(seed)
    count = np.bincount(sub_clusters(graph, size, seed))
    assert 1 <= count.min() <= count.max() <= size
    assert count.sum() == graph.shape[0]


@given(seed=st.integers(0, 100_000))
@examples(30, few=5)
def test_splitting_loose_sub_clusters_only_refines_them(seed: int) -> None:
    _, graph = random_graph(seed)
    parts = sub_clusters(graph, 40, seed)
    finer = split_loose(graph, parts, 40, seed)
    assert len(np.unique(np.column_stack([parts, finer]), axis=0)) == finer.max() + 1
    assert np.bincount(finer).min() >= min(np.bincount(parts).min(), 2)


def test_a_sub_cluster_that_hangs_by_a_thread_is_cut_there() -> None:
    graph = csr_array(block_diag([barbell(0.01), *[csr_array(np.ones((8, 8)) - np.eye(8))] * 5]))
    finer = split_loose(graph, np.repeat(np.arange(6), 8), 8, 0).reshape(6, 8)
    assert len(np.unique(finer[0, :4])) == len(np.unique(finer[0, 4:])) == 1
    assert finer[0, 0] != finer[0, 4]
    assert (finer[1:] == finer[1:, :1]).all()


def test_the_bisector_of_two_joined_cliques_is_the_bridge() -> None:
    assert bisector(barbell(0.25), np.arange(8), 0) == (0.25, 1)
    assert bisector(barbell(0.25), np.arange(4), 0) == (4.0, 4)
    assert bisector(barbell(0.25), np.array([2]), 0) == (0.0, 0)


def test_goodness_is_relative_interconnectivity_times_closeness_to_the_alpha() -> None:
    links = Links(
        size=np.array([10.0, 30.0, 5.0]),
        inner_weight=np.array([4.0, 8.0, 1.0]),
        inner_closeness=np.array([0.5, 0.8, 0.1]),
        weight=np.array([[0.0, 3.0, 0.0], [3.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),
        edges=np.array([[0.0, 6.0, 0.0], [6.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),
    )
    ri = 3.0 / ((4.0 + 8.0) / 2.0)
    rc = (3.0 / 6.0) / (10.0 / 40.0 * 0.5 + 30.0 / 40.0 * 0.8)
    for alpha in (0.0, 1.0, 2.0, 3.5):
        found = goodness(links, alpha)
        np.testing.assert_allclose(found[0, 1], ri * rc**alpha, rtol=1e-12)
        np.testing.assert_array_equal(found, found.T)
        assert not found[2].any()


def test_clusters_that_hold_together_by_nothing_merge_first() -> None:
    links = link(from_edges(4, {(0, 1): 0.5, (2, 3): 0.9, (1, 2): 0.2}), np.array([0, 1, 2, 3]), 0)
    assert np.isposinf(goodness(links, 2.0)[0, 1])


@given(seed=st.integers(0, 100_000), alpha=st.floats(0.0, 4.0))
@examples(25, few=4)
def test_merging_ends_with_the_pieces_of_the_graph_and_joining_with_one(seed: int, alpha: float) -> None:
    values, graph = random_graph(seed, neighbours=3)
    parts = sub_clusters(graph, 12, seed)
    merges = merge_all(graph, parts, alpha, seed)
    pieces = labels_at(parts, merges)
    assert adjusted_rand_score(pieces, connected_components(graph, directed=False)[1]) == 1.0
    merges += join_apart(values, pieces)
    assert len(merges) == parts.max()
    assert len(np.unique(labels_at(parts, merges))) == 1


@given(seed=st.integers(0, 100_000))
@examples(15)
def test_links_after_a_merge_are_those_of_the_merged_clusters(seed: int) -> None:
    from benchmarks.chameleon import _fold

    _, graph = random_graph(seed)
    parts = sub_clusters(graph, 20, seed)
    links = link(graph, parts, seed)
    _fold(links, 0, 1)
    fresh = link(graph, np.where(parts == 1, 0, parts), seed)
    np.testing.assert_allclose(links.weight, fresh.weight, atol=1e-9)
    np.testing.assert_array_equal(links.edges, fresh.edges)
    assert links.size[0] == fresh.size[0]


def test_pieces_are_joined_by_the_smallest_gap_between_their_rows() -> None:
    values = np.array([[0.0], [10.0], [11.0], [30.0], [12.5]])
    assert join_apart(values, np.array([0, 1, 1, 2, 2])) == [(1, 2), (0, 1)]
    assert join_apart(values, np.zeros(5, dtype=np.int64)) == []


def test_small_clusters_are_not_counted_unless_there_are_too_few_others() -> None:
    labels = np.repeat([0, 1, 2, 3], [50, 40, 2, 30])
    merges = [(0, 2), (1, 3), (0, 1)]
    assert stop_at(labels, merges, 3, 10.0) == 1
    assert stop_at(labels, merges, 2, 10.0) == 2
    assert stop_at(labels, merges, 1, 10.0) == 3
    assert stop_at(labels, merges, 4, 10.0) == 0
    assert stop_at(labels, merges, 4, 0.0) == 0


def test_the_loss_is_the_share_of_edges_that_leave_each_cluster() -> None:
    graph = barbell(0.5)
    assert loss(graph, np.zeros(8, dtype=np.int64)) == 0.0
    np.testing.assert_allclose(loss(graph, np.repeat([0, 1], 4)), 2.0 * 0.5 / 12.5)
    np.testing.assert_allclose(loss(graph, np.repeat([0, -1], 4)), 0.5 / 12.5)


@pytest.mark.parametrize("seed", [0, *at_length(1, 2)])
def test_a_ring_about_a_disc_is_found_where_k_means_fails(seed: int) -> None:
    values, truth = rings_and_noise(seed, sized(600, 900))
    found = Chameleon(2, n_init=2, random_state=seed).fit_predict(values)
    assert scored(values, truth, found) > 0.9
    assert scored(values, truth, KMeans(2, n_init=3, random_state=seed).fit_predict(values)) < 0.3


@given(seed=st.integers(0, 10_000), k=st.integers(1, 7), n=st.integers(20, 90), share=st.sampled_from([0.0, 0.15, 1.0]))
@examples(25, few=4)
def test_there_are_exactly_as_many_clusters_as_asked_the_largest_first(seed: int, k: int, n: int, share: float) -> None:
    values = np.random.default_rng(seed).normal(size=(n, 2))
    labels = Chameleon(k, n_init=1, min_cluster_share=share, random_state=seed).fit(values).labels_
    count = np.bincount(labels[labels >= 0])
    assert len(count) == k
    assert (count > 0).all()
    assert (np.diff(count) <= 0).all()
    assert share > 0.0 or (labels >= 0).all()


@pytest.mark.parametrize("seed", [0, *at_length(1, 2)])
def test_moving_turning_and_scaling_the_rows_keeps_clear_clusters(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(4), sized(80, 150))
    values = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0], [9.0, 9.0]])[truth] + rng.normal(size=(len(truth), 2))
    turn = np.array([[0.8, -0.6], [0.6, 0.8]])
    plain = Chameleon(4, n_init=2, random_state=seed).fit_predict(values)
    moved = Chameleon(4, n_init=2, random_state=seed).fit_predict(1e3 * values @ turn + 70.0)
    kept = (plain >= 0) & (moved >= 0)
    assert kept.mean() > 0.9
    assert adjusted_rand_score(plain[kept], moved[kept]) == 1.0
    assert adjusted_rand_score(truth[kept], plain[kept]) > 0.97


def test_the_same_state_gives_the_same_labels_and_more_runs_no_higher_loss() -> None:
    values, _ = rings_and_noise(5, sized(200, 400))
    first, again = (Chameleon(3, n_init=sized(1, 2), random_state=4).fit(values) for _ in range(2))
    np.testing.assert_array_equal(first.labels_, again.labels_)
    assert Chameleon(3, n_init=sized(3, 5), random_state=4).fit(values).loss_ <= first.loss_


def test_equal_rows_and_one_cluster_are_no_obstacle() -> None:
    assert (Chameleon(1, random_state=0).fit_predict(np.ones((30, 2))) == 0).all()
    twice = np.repeat([[0.0], [5.0]], 40, axis=0)
    labels = Chameleon(2, random_state=0).fit_predict(twice)
    assert len(np.unique(labels[:40])) == len(np.unique(labels[40:])) == 1
    assert labels[0] != labels[40]


def test_it_is_an_estimator_of_scikit_learn() -> None:
    check_estimator(Chameleon(n_clusters=3, n_init=1), on_skip=None)


def test_bad_parameters_are_refused_with_what_to_give() -> None:
    values = np.random.default_rng(0).normal(size=(30, 2))
    asked: dict[str, Any]
    for name, wrong in (
        ("n_clusters", 0),
        ("n_neighbors", 2.5),
        ("n_init", True),
        ("alpha", -1.0),
        ("alpha", float("nan")),
        ("partition_size", 1.5),
        ("min_cluster_share", "small"),
    ):
        asked = {"n_clusters": 2, name: wrong}
        with pytest.raises(OptionError, match=f"{name} is .*; give a "):
            Chameleon(**asked).fit(values)
    with pytest.raises(BadInput, match="30 rows for 31 clusters; ask for fewer"):
        Chameleon(31).fit(values)


def test_without_metis_the_refusal_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(SfumatoError, match="pip install pymetis"):
        Chameleon(2).fit(np.random.default_rng(0).normal(size=(30, 2)))
