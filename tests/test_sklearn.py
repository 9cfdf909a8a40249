from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato.errors import LevelError, OptionError
from sfumato.sklearn import Condenser


@parametrize_with_checks([Condenser(k=2)])  # type: ignore[untyped-decorator]
def test_the_condenser_is_a_scikit_learn_estimator(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.mark.slow
@parametrize_with_checks([Condenser(k=5)])  # type: ignore[untyped-decorator]
def test_with_larger_groups_it_is_one_too(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def table(n: int = 300) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(n, 4))


def test_every_row_is_in_a_group_as_large_as_it_asks() -> None:
    levels = np.random.default_rng(2).integers(3, 20, 300)
    condenser = Condenser(k=4, random_state=0).fit(table(), privacy_levels=levels)
    sizes = np.bincount(condenser.labels_)
    assert (sizes[condenser.labels_] >= np.maximum(levels, 4)).all()
    np.testing.assert_array_equal(condenser.groups_.count, sizes)


def test_ssq_and_information_loss_are_those_of_the_groups() -> None:
    values = table(120)
    condenser = Condenser(k=10, random_state=0).fit(values)
    means = np.array([values[condenser.labels_ == group].mean(axis=0) for group in range(len(condenser.groups_))])
    ssq = ((values - means[condenser.labels_]) ** 2).sum()
    assert condenser.ssq_ == pytest.approx(ssq)
    assert condenser.information_loss_ == pytest.approx(100 * ssq / ((values - values.mean(axis=0)) ** 2).sum())


def test_resampled_classes_keep_their_counts() -> None:
    y = np.repeat(["a", "b", "c"], [100, 150, 50])
    rows, classes = Condenser(k=7, random_state=3).fit_resample(table(), y)
    assert rows.shape == (300, 4)
    assert np.unique(classes, return_counts=True)[1].tolist() == [100, 150, 50]


def test_a_state_repeats_and_none_does_not() -> None:
    values = table(60)
    first, again = (Condenser(k=5, random_state=9).fit(values).sample() for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert (Condenser(k=5).fit(values).sample() != Condenser(k=5).fit(values).sample()).any()


@pytest.mark.parametrize(
    ("levels", "words"),
    [([3.5] * 300, "not whole"), ([1] * 300, "level 1"), ([400] * 300, "300 records"), ([5], "shape")],
)
def test_bad_levels_are_refused(levels: list[float], words: str) -> None:
    with pytest.raises(LevelError, match=words):
        Condenser(k=5).fit(table(), privacy_levels=levels)


def test_an_unknown_grouping_is_refused() -> None:
    with pytest.raises(OptionError, match="grouping"):
        clone(Condenser(grouping="magic")).fit(table())
