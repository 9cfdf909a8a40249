"""The model tree that stands in for WEKA's M5P: what it can learn exactly, and what pruning and smoothing do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.model_tree import ModelTree, correlation, cross_validated, fit_line


@pytest.mark.parametrize("seed", range(3))
def test_a_linear_response_needs_one_leaf(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(300, 4))
    y = x @ [1.0, -2.0, 0.0, 0.5] + 3.0 + 0.1 * rng.normal(size=300)
    tree = ModelTree().fit(x, y)
    assert tree.leaves <= 3
    assert correlation(tree.predict(x), y) > 0.99


@pytest.mark.parametrize("seed", range(3))
def test_two_lines_need_few_leaves_and_are_learned(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, size=(600, 3))
    y = np.where(x[:, 0] > 0.2, 4.0 * x[:, 1], -4.0 * x[:, 1] + 2.0)
    told = cross_validated(x, y, rng)
    assert correlation(told, y) > 0.95
    line = fit_line(x, y, [0, 1, 2], np.zeros(3))
    assert correlation(line.predict(x), y) < 0.8  # which one line cannot


def test_a_column_that_says_nothing_is_dropped_from_a_line() -> None:
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=2000), rng.normal(size=2000), np.ones(2000)])
    line = fit_line(x, 3.0 * x[:, 0] + 1.0, [0, 1, 2], np.zeros(3))
    assert 2 not in line.columns
    np.testing.assert_allclose(line.predict(x), 3.0 * x[:, 0] + 1.0, atol=1e-4)


def test_a_column_that_hardly_varies_among_the_rows_of_a_node_gets_no_slope() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=200)
    x = np.column_stack([1e-7 * y, rng.normal(size=200)])
    assert 0 in fit_line(x, y, [0, 1], np.zeros(2)).columns
    assert 0 not in fit_line(x, y, [0, 1], np.full(2, 1e-3)).columns


def test_noise_alone_is_pruned_and_grows_a_large_tree_without_pruning() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(400, 3)), rng.normal(size=400)
    assert ModelTree().fit(x, y).leaves < 0.5 * ModelTree(pruning=False).fit(x, y).leaves


def test_smoothing_makes_the_steps_between_leaves_smaller() -> None:
    x = np.linspace(0.0, 1.0, 80)[:, None]
    y = np.where(x[:, 0] < 0.5, 0.0, 1.0) + 0.3 * np.sin(40.0 * x[:, 0])
    jumps = [np.abs(np.diff(ModelTree(smoothing=s).fit(x, y).predict(x))).max() for s in (True, False)]
    assert jumps[0] < jumps[1]


@given(st.integers(0, 2**32 - 1))
def test_any_numbers_can_be_learned_and_asked_about(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 60)), int(rng.integers(1, 5))
    x = np.nextafter(1.0, 2.0) ** rng.integers(0, 3, (n, d)) if seed % 2 else rng.integers(0, 3, (n, d)).astype(float)
    y = rng.choice([0.0, 1.0, rng.normal()], n)
    told = ModelTree().fit(x, y).predict(rng.normal(size=(7, d)))
    assert told.shape == (7,)
    assert np.isfinite(told).all()


def test_the_correlation_of_what_does_not_vary_is_none() -> None:
    assert correlation(np.ones(5), np.arange(5.0)) == 0.0
