"""What is drawn from a group has the group's moments, and its law is uniform along each eigenvector [AY05, eq. 2.1].

Tolerances are six standard errors, derived where used: a false alarm has probability below 1e-8 for each number.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.core.groups import Groups
from sfumato.core.groups.generate import draw_along_eigenvectors, redraw
from sfumato.core.records import Block, BlockKind, Records
from sfumato.methods.condense import Condensation
from tests.examples import at_length
from tests.groups.drawn_groups import from_moments

ERRORS = 6.0
ROWS = 40_000


def one_large_group(dim: int, seed: int) -> Groups:
    """Give a group with a random covariance and enough records that one draw is a sample."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(dim, dim)) * 10.0 ** rng.integers(-2, 3, dim)
    return from_moments(np.array([ROWS]), rng.normal(size=(1, dim)), (factor @ factor.T)[None])


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


# a group smaller than its coordinates is drawn on the side of its records, the others on that of their covariance
SIDES = [(2, 5), (5, 12), (8, 9), (9, 9), (30, 6), (ROWS, 3)]


def many_draws(size: int, dim: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give one random group, centred, and about `ROWS` deviations from its mean that were drawn from its records."""
    rng = np.random.default_rng(seed)
    records = rng.normal(size=(size, dim)) @ (rng.normal(size=(dim, dim)) * 10.0 ** rng.uniform(-2, 2, dim))
    times = ROWS // size
    layout = tuple(Block(f"column {j}", BlockKind.NUMBER, j, j + 1, (0.0,)) for j in range(dim))
    rows = redraw(np.tile(records, (times, 1)), np.repeat(np.arange(times), size), layout, rng)
    return records - records.mean(axis=0), rows - records.mean(axis=0)


def naive_draws(records: NDArray[np.float64], count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw as the paper says it, one row and one axis at a time [AY05, sec. 2]."""
    variances, axes = np.linalg.eigh(records.T @ records / len(records))
    rows = np.zeros((count, records.shape[1]))
    for row in rows:
        for variance, axis in zip(variances, axes.T, strict=True):
            row += rng.uniform(-0.5, 0.5) * np.sqrt(12.0 * max(variance, 0.0)) * axis
    return rows


@pytest.mark.parametrize(("size", "dim"), SIDES)
def test_from_records_mean_and_covariance_are_the_groups_on_either_side(size: int, dim: int) -> None:
    records, rows = many_draws(size, dim, seed=size + dim)
    covariance = records.T @ records / size
    spread = np.sqrt(np.diagonal(covariance))
    assert (np.abs(rows.mean(axis=0)) <= ERRORS * spread / np.sqrt(len(rows))).all()
    error = np.sqrt(3.0) * np.outer(spread, spread) / np.sqrt(len(rows))  # as above
    assert (np.abs(rows.T @ rows / len(rows) - covariance) <= ERRORS * error).all()


@pytest.mark.parametrize(("size", "dim"), SIDES)
def test_from_records_the_law_is_uniform_and_independent_along_the_eigenvectors(size: int, dim: int) -> None:
    records, rows = many_draws(size, dim, seed=20 + size + dim)
    variances, axes = np.linalg.eigh(records.T @ records / size)
    rank = min(dim, size - 1)
    assert np.abs(rows @ axes[:, : dim - rank]).max(initial=0.0) <= 1e-6 * np.sqrt(variances[-1])
    along = rows @ axes[:, dim - rank :] / np.sqrt(variances[dim - rank :])
    count = len(along)
    assert np.abs(along).max() <= np.sqrt(3.0) * (1.0 + 1e-6)
    assert (np.abs(along).max(axis=0) >= 0.999 * np.sqrt(3.0)).all()  # missed with probability 0.999**40000
    # a standard uniform has moments 1, 9/5, 27/7, 9 of order 2, 4, 6, 8
    assert (np.abs((along**2).mean(axis=0) - 1.0) <= ERRORS * np.sqrt((9 / 5 - 1.0) / count)).all()
    assert (np.abs((along**4).mean(axis=0) - 9 / 5) <= ERRORS * np.sqrt((9.0 - (9 / 5) ** 2) / count)).all()
    above = np.triu_indices(rank, 1)
    assert (np.abs((along.T @ along / count)[above]) <= ERRORS / np.sqrt(count)).all()
    squares = (along**2 - 1.0) / np.sqrt(0.8)
    assert (np.abs((squares.T @ squares / count)[above]) <= ERRORS / np.sqrt(count)).all()


@pytest.mark.parametrize(("size", "dim"), [(5, 12), (30, 6)])
def test_from_records_the_law_is_that_of_a_naive_loop(size: int, dim: int) -> None:
    records, rows = many_draws(size, dim, seed=60 + size)
    naive = naive_draws(records, 4000, np.random.default_rng(61))
    for projection in np.random.default_rng(62).normal(size=(8, dim)):
        ours, theirs = np.sort(rows @ projection), np.sort(naive @ projection)
        places = np.concatenate([ours, theirs])
        gap = np.searchsorted(ours, places, "right") / len(ours) - np.searchsorted(theirs, places, "right") / len(
            theirs
        )
        # Kolmogorov: 2 exp(-2 x^2) is below 1e-8 from x = 3.1
        assert np.abs(gap).max() <= 3.1 * np.sqrt(1.0 / len(ours) + 1.0 / len(theirs))


@pytest.mark.parametrize(("k", "times"), [(10, 150), *at_length((4, 400), (10, 400))])
def test_the_mean_and_the_covariance_of_a_released_table_are_the_originals_in_expectation(k: int, times: int) -> None:
    rng = np.random.default_rng(k)
    n, dim = 60, 3
    values = rng.normal(size=(n, dim)) @ rng.normal(size=(dim, dim))
    values -= values.mean(axis=0)
    layout = tuple(Block(f"column {j}", BlockKind.NUMBER, j, j + 1, (0.0,)) for j in range(dim))
    nothing = np.zeros(n, dtype=np.int64)
    records = Records(values.copy(), layout, nothing, nothing.copy())
    fresh = np.random.default_rng(43)
    released = [Condensation(k=k, effort="fast").sanitize(records, rng=fresh).records.values for _ in range(times)]
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
