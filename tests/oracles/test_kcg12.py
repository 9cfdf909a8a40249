"""The real functions against the literal transcriptions of figures 3 and 5 [KCG12] and equation 1 [BCG10]."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.core.errors import LevelError
from sfumato.core.groups import response_weights
from sfumato.core.groups.kmeans import dissolve_clusters, fill_clusters, holistic_groups, k_means, modified_groups
from sfumato.core.records import Block, BlockKind
from sfumato.methods.condense.classwise import approximate_gcd
from tests.examples import examples
from tests.oracles import kcg12
from tests.oracles.kcg12 import Group

many_cases = examples(150, few=12)
seeds = st.integers(0, 2**32 - 1)


@dataclass(frozen=True)
class Case:
    """Records, clusters and centres that a seed stands for."""

    values: NDArray[np.float64]
    labels: NDArray[np.int64]
    centres: NDArray[np.float64]
    size: int

    @property
    def clusters(self) -> list[Group]:
        """The clusters as sets, empty ones too."""
        return [frozenset(np.flatnonzero(self.labels == j).tolist()) for j in range(len(self.centres))]


def make_case(seed: int) -> Case:
    """Draw sizes, dimensions, duplicates, uneven and empty clusters.

    Coordinates of records and centres are multiples of 2**-10 below 2**10, so that squared distances are exact in
    floating point and ties are the same ties.
    """
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 60)), int(rng.integers(1, 7))
    g = int(rng.integers(1, n + 1))
    distinct = n if rng.random() < 0.5 else int(rng.integers(1, n + 1))
    values = (rng.integers(-(2**20), 2**20, (distinct, d)) / 1024.0)[rng.integers(0, distinct, n)]
    if rng.random() < 0.3:
        values[:, 0] = 3.0
    centres = rng.integers(-(2**20), 2**20, (g, d)) / 1024.0
    shares = rng.dirichlet(np.full(g, 0.5)) if rng.random() < 0.7 else np.eye(g)[rng.integers(g)]
    return Case(values, rng.choice(g, n, p=shares), centres, n // g)


def as_sets(labels: NDArray[np.int64]) -> set[Group]:
    return {frozenset(np.flatnonzero(labels == j).tolist()) for j in np.unique(labels)}


@many_cases
@given(seeds)
def test_filling_clusters_does_what_figure_3_says(seed: int) -> None:
    case = make_case(seed)
    points, centres = kcg12.exact(case.values.tolist()), kcg12.exact(case.centres.tolist())
    literal, _ = kcg12.modified_condensation(points, case.clusters, centres, case.size)
    real = fill_clusters(case.values, case.labels, case.centres, case.size)
    assert [frozenset(np.flatnonzero(real == j).tolist()) for j in range(len(centres))] == literal
    assert min(map(len, literal)) >= case.size


@many_cases
@given(seeds)
def test_a_cluster_that_has_had_its_turn_is_never_robbed(seed: int) -> None:
    case = make_case(seed)
    points, centres = kcg12.exact(case.values.tolist()), kcg12.exact(case.centres.tolist())
    final, moves = kcg12.modified_condensation(points, case.clusters, centres, case.size)
    real = fill_clusters(case.values, case.labels, case.centres, case.size)
    for taker, moved in moves:
        assert len(final[taker]) == case.size
        assert set(real[sorted(moved)].tolist()) == {taker}  # nothing that was moved to it has left it again


@many_cases
@given(seeds, st.integers(1, 12))
def test_dissolving_clusters_does_what_the_holistic_variant_says(seed: int, k: int) -> None:
    case = make_case(seed)
    k = min(k, len(case.values))
    points, centres = kcg12.exact(case.values.tolist()), kcg12.exact(case.centres.tolist())
    literal = kcg12.holistic(points, case.clusters, centres, k)
    real = as_sets(dissolve_clusters(case.values, case.labels, case.centres, k))
    assert real == set(literal)
    assert min(map(len, real)) >= k


@many_cases
@given(st.integers(0, 2**32 - 1), st.integers(2, 9))
def test_the_whole_groupings_agree_from_the_same_k_means(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(int(rng.integers(k, 50)), 3))  # without ties
    g = len(values) // k
    labels, centres = k_means(values, g, np.random.default_rng(seed))
    clusters = [frozenset(np.flatnonzero(labels == j).tolist()) for j in range(g)]
    points, exact_centres = kcg12.exact(values.tolist()), kcg12.exact(centres.tolist())
    filled, _ = kcg12.modified_condensation(points, clusters, exact_centres, len(values) // g)
    real = modified_groups(values, k, np.random.default_rng(seed))
    assert [frozenset(group.tolist()) for group in real] == filled
    dissolved = kcg12.holistic(points, clusters, exact_centres, k)
    whole = holistic_groups(values, k, np.random.default_rng(seed))
    assert [frozenset(group.tolist()) for group in whole] == dissolved


@many_cases
@given(st.lists(st.integers(1, 300), min_size=1, max_size=6), st.integers(1, 40))
def test_the_approximate_gcd_is_that_of_figure_5(counts: list[int], t: int) -> None:
    if min(counts) < t:
        with pytest.raises(LevelError):
            approximate_gcd(counts, t)
        return
    assert approximate_gcd(counts, t) == kcg12.approximate_gcd(counts, t)


@many_cases
@given(seeds, st.integers(2, 6), st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]))
def test_scaling_by_the_root_of_the_weights_gives_the_distance_of_equation_1(seed: int, m: int, w: float) -> None:
    rng = np.random.default_rng(seed)
    rows, v = rng.normal(size=(2, m)), int(rng.integers(m))
    layout = tuple(Block(f"column {j}", BlockKind.NUMBER, j, j + 1, (0.0,)) for j in range(m))
    scaled = rows * np.sqrt(response_weights(layout, f"column {v}", w))
    x, y = kcg12.exact(rows.tolist())
    literal = kcg12.weighted_distance(x, y, v, Fraction(w))
    assert ((scaled[0] - scaled[1]) ** 2).sum() == pytest.approx(float(literal), rel=1e-12)
