"""Gaussian mixtures on groups: laws, three cases, refusals."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.mixture import GaussianMixture

from sfumato.core.errors import BadInput, OptionError
from sfumato.core.groups import Groups, concat, summarize
from sfumato.mining import GroupMixture
from sfumato.mining.clusters import expect, maximize
from tests.examples import examples
from tests.groups.drawn_groups import from_moments


def random_groups(seed: int, g: int, d: int, size: int) -> tuple[NDArray[np.float64], Groups]:
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(g), size)
    values = (rng.normal(size=(g, d)) * 3.0)[labels] + rng.normal(size=(len(labels), d))
    return values, summarize(values, labels, np.full(len(labels), size))


def random_shares(seed: int, g: int, c: int) -> NDArray[np.float64]:
    return np.random.default_rng(seed).dirichlet(np.ones(c), g)


@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_groups_of_one_record_give_the_mixture_of_scikit_learn(steps: int, d: int) -> None:
    values, groups = random_groups(1, 200, d, 1)
    start = random_shares(2, 200, 3)
    first = maximize(groups, start, 0.0)
    theirs = GaussianMixture(
        3,
        reg_covar=0.0,
        tol=0.0,
        max_iter=steps,
        weights_init=first.weights,
        means_init=first.means,
        precisions_init=np.linalg.inv(first.covariances),
    ).fit(values)
    ours = GroupMixture(n_components=3, reg_covar=0.0, tol=0.0, max_iter=steps).fit(groups, start)
    np.testing.assert_allclose(ours.weights_, theirs.weights_, rtol=1e-9)
    np.testing.assert_allclose(ours.means_, theirs.means_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(ours.covariances_, theirs.covariances_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(ours.score_samples(values), theirs.score_samples(values), rtol=1e-8)
    np.testing.assert_allclose(ours.predict_proba(values), theirs.predict_proba(values), atol=1e-8)
    np.testing.assert_array_equal(ours.predict(values), theirs.predict(values))
    np.testing.assert_allclose(ours.lower_bound_, ours.score(values), rtol=1e-10)


@given(
    seed=st.integers(0, 100_000), d=st.integers(1, 4), size=st.integers(1, 6), reg=st.sampled_from([1e-6, 1e-2, 1.0])
)
def test_no_step_of_em_lowers_the_bound(seed: int, d: int, size: int, reg: float) -> None:
    _, groups = random_groups(seed, 25, d, size)
    components = maximize(groups, random_shares(seed, 25, 3), reg)
    reached = []
    for _ in range(12):
        shares, bound = expect(groups, components, reg)
        reached.append(bound)
        components = maximize(groups, shares, reg)
    assert (np.diff(reached) >= -1e-9).all()


@given(seed=st.integers(0, 100_000), d=st.integers(1, 3), size=st.integers(1, 8))
@examples(30)
def test_the_bound_is_not_above_the_log_likelihood_of_the_records(seed: int, d: int, size: int) -> None:
    values, groups = random_groups(seed, 20, d, size)
    mixture = GroupMixture(n_components=2, reg_covar=1e-3, random_state=seed).fit(groups)
    assert mixture.lower_bound_ <= mixture.score(values) + 1e-9


def test_one_component_is_the_gaussian_of_all_records() -> None:
    values, groups = random_groups(3, 30, 3, 5)
    mixture = GroupMixture(reg_covar=0.0).fit(groups)
    np.testing.assert_allclose(mixture.means_[0], values.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(mixture.covariances_[0], np.cov(values.T, bias=True), rtol=1e-9)
    np.testing.assert_allclose(mixture.lower_bound_, mixture.score(values), rtol=1e-10)


def test_merging_identical_groups_changes_nothing() -> None:
    _, groups = random_groups(4, 30, 2, 4)
    start = random_shares(5, 30, 3)
    twice = from_moments(groups.count * 2, groups.mean, groups.covariance)
    apart = GroupMixture(n_components=3).fit(concat(groups, groups), np.tile(start, (2, 1)))
    merged = GroupMixture(n_components=3).fit(twice, start)
    np.testing.assert_allclose(apart.means_, merged.means_, atol=1e-9)
    np.testing.assert_allclose(apart.covariances_, merged.covariances_, atol=1e-9)
    np.testing.assert_allclose(apart.responsibilities_, np.tile(merged.responsibilities_, (2, 1)), atol=1e-9)
    np.testing.assert_allclose(apart.lower_bound_, merged.lower_bound_, rtol=1e-10)


def test_clear_components_are_found_from_groups_of_ten() -> None:
    rng = np.random.default_rng(6)
    which = np.repeat([0, 1], [600, 200])
    values = rng.normal(size=(800, 2)) * np.array([1.0, 3.0])[which][:, None] + 40.0 * which[:, None]
    mixture = GroupMixture(n_components=2).fit(summarize(values, np.arange(800) // 10, np.full(800, 10)))
    order = np.argsort(mixture.means_[:, 0])
    np.testing.assert_allclose(mixture.weights_[order], [0.75, 0.25], atol=1e-9)
    for component in (0, 1):
        mine = values[which == component]
        np.testing.assert_allclose(mixture.means_[order[component]], mine.mean(axis=0), atol=1e-6)
        np.testing.assert_allclose(mixture.covariances_[order[component]], np.cov(mine.T, bias=True), atol=1e-4)
    assert mixture.converged_
    np.testing.assert_array_equal(mixture.predict(values), np.argsort(order)[which])


def test_more_seedings_never_give_a_lower_bound() -> None:
    _, groups = random_groups(7, 60, 2, 5)
    one, many = (GroupMixture(n_components=4, n_init=n).fit(groups).lower_bound_ for n in (1, 5))
    assert many >= one


def test_a_component_that_no_group_wants_stays_a_number() -> None:
    _, groups = random_groups(8, 20, 2, 5)
    start = np.zeros((20, 2))
    start[:, 0] = 1.0
    mixture = GroupMixture(n_components=2).fit(groups, start)
    assert np.isfinite(mixture.means_).all()
    assert np.isfinite(mixture.lower_bound_)


def test_regularization_keeps_a_constant_table_and_without_it_it_is_refused() -> None:
    constant = from_moments(np.full(4, 3), np.ones((4, 2)), np.zeros((4, 2, 2)))
    mixture = GroupMixture().fit(constant)
    np.testing.assert_allclose(mixture.covariances_[0], 1e-6 * np.eye(2))
    with pytest.raises(BadInput, match="1 components is singular; raise reg_covar"):
        GroupMixture(reg_covar=0.0).fit(constant)


def test_bad_input_is_refused_with_counts() -> None:
    values, groups = random_groups(9, 5, 2, 3)
    with pytest.raises(BadInput, match="5 groups for 6 components"):
        GroupMixture(n_components=6).fit(groups)
    with pytest.raises(BadInput, match=r"shape \(5, 3\); give \(5, 2\)"):
        GroupMixture(n_components=2).fit(groups, np.ones((5, 3)))
    with pytest.raises(BadInput, match="of 5 groups are not shares"):
        GroupMixture(n_components=2).fit(groups, np.ones((5, 2)))
    with pytest.raises(OptionError, match="reg_covar"):
        GroupMixture(reg_covar=-1.0).fit(groups)
    with pytest.raises(OptionError, match="n_components is 0"):
        GroupMixture(n_components=0).fit(groups)
    with pytest.raises(BadInput, match="1 coordinates and the groups 2"):
        GroupMixture().fit(groups).score(values[:, :1])
    with pytest.raises(BadInput, match="learned nothing yet"):
        GroupMixture().score(values)


def test_heavy_libraries_load_when_a_miner_works() -> None:
    probe = (
        "import sfumato.mining, sys; print([m for m in ('numba', 'scipy', 'sklearn', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
