"""The real functions against the literal transcription of theorem 1 and algorithm 2 [BCG10]."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.core.distributions.amplification import prevents_breach
from sfumato.core.groups.kmeans import fill_clusters
from sfumato.methods.perturb import laplace_pca
from tests.examples import examples
from tests.oracles import bcg10

many_cases = examples(150, few=12)
seeds = st.integers(0, 2**32 - 1)
STEP = 2.0**-20


@many_cases
@given(st.floats(1e-6, 0.99), st.floats(1e-6, 0.999), st.floats(0.05, 20.0))
def test_the_inequality_is_that_of_theorem_1(rho1: float, rho2: float, b: float) -> None:
    assume(rho1 < rho2)
    odds = rho2 / rho1 * (1 - rho1) / (1 - rho2)
    assume(abs(np.log(odds) - 1 / b) > 1e-9)
    assert prevents_breach(rho1, rho2, b) == bcg10.theorem_1(rho1, rho2, b)


@many_cases
@given(seeds)
def test_filling_clusters_is_lines_5_to_11_with_the_errata(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    g, d = int(rng.integers(1, n + 1)), int(rng.integers(1, 4))
    values, centres = (rng.integers(-(2**20), 2**20, (rows, d)) / 1024.0 for rows in (n, g))
    labels = rng.choice(g, n, p=rng.dirichlet(np.full(g, 0.5)))
    clusters = [frozenset(np.flatnonzero(labels == j).tolist()) for j in range(g)]
    literal = bcg10.groups_with_errata(exact(values), clusters, exact(centres))
    real = fill_clusters(values, labels, centres, n // g)
    assert [frozenset(np.flatnonzero(real == j).tolist()) for j in range(g)] == literal
    assert min(map(len, literal)) >= n // g


def test_sorted_once_as_printed_a_donor_ends_below_the_limit_and_with_the_errata_it_does_not() -> None:
    values, centres = np.array([[2.0], [2.0], [2.0], [8.0], [4.0], [4.0]]), np.array([[9.0], [7.0], [9.0]])
    clusters = [frozenset({0, 1, 2}), frozenset[int](), frozenset({3, 4, 5})]
    printed = bcg10.groups_as_printed(exact(values), clusters, exact(centres))
    assert sorted(map(len, printed)) == [1, 2, 3]  # the empty cluster takes two of the last, which nobody refills
    labels = fill_clusters(values, np.array([0, 0, 0, 2, 2, 2]), centres, 2)
    assert np.bincount(labels).tolist() == [2, 2, 2]


@many_cases
@given(seeds, st.floats(0.02, 5.0))
def test_a_group_is_perturbed_as_lines_13_to_19_say(seed: int, b: float) -> None:
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 15)), int(rng.integers(1, 5))
    values = rng.normal(size=(n, d)) * rng.uniform(0.1, 3.0, d) + rng.normal(size=d)
    unit = rng.laplace(size=(n, d))
    axes: list[NDArray[np.float64]] = []

    def remember(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
        axes.append(principal_axes(covariance))
        np.testing.assert_allclose(covariance, bcg10.covariance(values.tolist()), atol=1e-12)
        return axes[-1]

    def given_noise(scales: NDArray[np.float64], rows: int, _: np.random.Generator) -> NDArray[np.int64]:
        assert rows == n
        return np.rint(scales * unit).astype(np.int64)

    principal_axes = laplace_pca.principal_axes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(laplace_pca, "principal_axes", remember)
        patch.setattr(laplace_pca, "component_noise", given_noise)
        real, noised = laplace_pca.perturb_group(values, b, STEP, rng)
    literal = bcg10.perturb(values.tolist(), axes[0].tolist(), b, unit.tolist())
    tolerance = STEP * d * (2.0 + 2.0 * b * float(np.abs(unit).max()))  # places, ranges and noise are rounded to steps
    np.testing.assert_allclose(real, literal, atol=tolerance)
    assert noised == min(d, n - 1)


@many_cases
@given(seeds)
def test_the_transform_matrix_turns_the_covariance_into_falling_variances(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 15)), int(rng.integers(1, 5))
    literal = np.array(bcg10.covariance(rng.normal(size=(n, d)).tolist()))
    m = laplace_pca.principal_axes(literal)
    np.testing.assert_allclose(m.T @ m, np.eye(d), atol=1e-12)
    turned = m.T @ literal @ m
    np.testing.assert_allclose(turned, np.diag(np.diag(turned)), atol=1e-10)
    assert (np.diff(np.diag(turned)) <= 1e-10).all()


def exact(rows: NDArray[np.float64]) -> list[tuple[Fraction, ...]]:
    return [tuple(Fraction(cell) for cell in row) for row in rows.tolist()]
