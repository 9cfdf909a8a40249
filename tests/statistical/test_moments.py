"""What is drawn from a group has the group's moments, and its law is uniform along each eigenvector [AY05, eq. 2.1].

Tolerances are six standard errors, derived where used: a false alarm has probability below 1e-8 for each number.
"""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.condense import Condensation
from sfumato.groups import Groups, draw_along_eigenvectors
from sfumato.records import Block, BlockKind, Records

ERRORS = 6.0
ROWS = 40_000


def one_large_group(dim: int, seed: int) -> Groups:
    """Give a group with a random covariance and so many records that one draw is a sample."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(dim, dim)) * 10.0 ** rng.integers(-2, 3, dim)
    return Groups.from_moments(np.array([ROWS]), rng.normal(size=(1, dim)), (factor @ factor.T)[None])


@pytest.mark.parametrize("dim", [1, 2, 7])
def test_mean_and_covariance_of_what_is_drawn_are_the_groups(dim: int) -> None:
    group = one_large_group(dim, seed=dim)
    rows = draw_along_eigenvectors(group, np.random.default_rng(40)) - group.mean[0]
    spread = np.sqrt(np.diagonal(group.covariance[0]))
    assert (np.abs(rows.mean(axis=0)) <= ERRORS * spread / np.sqrt(ROWS)).all()
    # a sum of independent uniforms has kurtosis at most 3, so the product of two has deviation at most sqrt(3) s_i s_j
    error = np.sqrt(3.0) * np.outer(spread, spread) / np.sqrt(ROWS)
    assert (np.abs(rows.T @ rows / ROWS - group.covariance[0]) <= ERRORS * error).all()


@pytest.mark.parametrize("dim", [1, 3, 6])
def test_along_each_eigenvector_the_law_is_uniform_with_variance_lambda_and_range_sqrt_12_lambda(dim: int) -> None:
    group = one_large_group(dim, seed=10 + dim)
    variances, axes = np.linalg.eigh(group.covariance[0])
    along = (draw_along_eigenvectors(group, np.random.default_rng(41)) - group.mean[0]) @ axes
    half = np.sqrt(12.0 * variances) / 2.0
    scale = np.sqrt(variances[-1])
    assert (np.abs(along) <= half + 1e-9 * scale).all()
    assert (np.abs(along).max(axis=0) >= 0.999 * half - 1e-9 * scale).all()  # missed with probability 0.999**40000
    # a uniform has fourth moment 9/5 lambda^2, so its squares have deviation sqrt(0.8) lambda
    error = np.sqrt(0.8 / ROWS) * variances
    assert (np.abs((along**2).mean(axis=0) - variances) <= ERRORS * error + 1e-12 * variances[-1]).all()
    quarters = np.array([((along > low * half) & (along <= (low + 0.5) * half)).mean(axis=0) for low in (-1, -0.5, 0)])
    assert (np.abs(quarters - 0.25) <= ERRORS * np.sqrt(0.25 * 0.75 / ROWS)).all()


def test_different_axes_are_drawn_independently() -> None:
    group = one_large_group(4, seed=3)
    variances, axes = np.linalg.eigh(group.covariance[0])
    along = (draw_along_eigenvectors(group, np.random.default_rng(42)) - group.mean[0]) @ axes / np.sqrt(variances)
    off = (along.T @ along / ROWS)[np.triu_indices(4, 1)]
    squares = np.corrcoef((along**2).T)[np.triu_indices(4, 1)]
    assert (np.abs(off) <= ERRORS / np.sqrt(ROWS)).all()
    assert (np.abs(squares) <= ERRORS / np.sqrt(ROWS)).all()


@pytest.mark.parametrize("k", [4, 10])
def test_the_mean_and_the_covariance_of_a_released_table_are_the_originals_in_expectation(k: int) -> None:
    rng = np.random.default_rng(k)
    n, dim, times = 60, 3, 400
    values = rng.normal(size=(n, dim)) @ rng.normal(size=(dim, dim))
    values -= values.mean(axis=0)
    layout = tuple(Block(f"column {j}", BlockKind.NUMBER, j, j + 1, (0.0,)) for j in range(dim))
    nothing = np.zeros(n, dtype=np.int64)
    records = Records(values.copy(), layout, nothing, nothing.copy())
    fresh = np.random.default_rng(43)
    released = [Condensation(k=k).sanitize(records, rng=fresh).records.values for _ in range(times)]
    means = np.array([rows.mean(axis=0) for rows in released])
    moments = np.array([rows.T @ rows / n for rows in released])
    error = means.std(axis=0) / np.sqrt(times)
    assert (np.abs(means.mean(axis=0)) <= ERRORS * error).all()
    error = moments.std(axis=0) / np.sqrt(times)
    assert (np.abs(moments.mean(axis=0) - values.T @ values / n) <= ERRORS * error).all()


@pytest.mark.slow
def test_the_moments_hold_for_fresh_seeds() -> None:
    for round_ in range(300):
        group = one_large_group(1 + round_ % 9, seed=round_)
        rows = draw_along_eigenvectors(group, np.random.default_rng()) - group.mean[0]
        spread = np.sqrt(np.diagonal(group.covariance[0]))
        assert (np.abs(rows.mean(axis=0)) <= ERRORS * spread / np.sqrt(ROWS)).all()
        error = np.sqrt(3.0) * np.outer(spread, spread) / np.sqrt(ROWS)
        assert (np.abs(rows.T @ rows / ROWS - group.covariance[0]) <= ERRORS * error).all()
