from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato.core.errors import LevelError, OptionError
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


def test_a_row_becomes_the_centroid_of_its_nearest_group() -> None:
    values = table(90)
    condenser = Condenser(k=6, random_state=0).fit(values)
    others = np.random.default_rng(5).normal(size=(40, 4))
    nearest = ((others[:, None] - condenser.groups_.mean[None]) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(condenser.transform(others), condenser.groups_.mean[nearest])
    np.testing.assert_array_equal(condenser.transform(others), condenser.transform(others))


def test_it_stands_in_a_pipeline_and_its_size_is_searched_for() -> None:
    values = table(240)
    classes = np.where(values[:, 0] + values[:, 1] > 0, "high", "low")
    steps = make_pipeline(StandardScaler(), Condenser(random_state=0, effort="fast"), LogisticRegression())
    assert cross_val_score(steps, values, classes, cv=3).min() > 0.7
    search = GridSearchCV(steps, {"condenser__k": [5, 20]}, cv=3).fit(values, classes)
    assert search.best_params_["condenser__k"] in (5, 20)
    assert search.predict(values[:3]).shape == (3,)
    levels = np.full(240, 30)
    fitted = steps.fit(values, classes, condenser__privacy_levels=levels)
    assert fitted[1].groups_.count.min() >= 30


@pytest.mark.parametrize("library", [pd, pl])
def test_a_frame_comes_out_where_one_went_in(library: Any) -> None:
    frame = library.DataFrame({"age": table(60)[:, 0], "pay": table(60)[:, 1]})
    kind = "pandas" if library is pd else "polars"
    condenser = Condenser(k=5, random_state=0).set_output(transform=kind)
    moved = condenser.fit_transform(frame)
    assert isinstance(moved, library.DataFrame)
    assert list(moved.columns) == ["age", "pay"]
    for rows in (condenser.sample(), condenser.sample(7), condenser.fit_resample(frame, ["a"] * 30 + ["b"] * 30)[0]):
        assert isinstance(rows, library.DataFrame)
        assert list(rows.columns) == ["age", "pay"]
    assert len(condenser.sample(7)) == 7
    assert isinstance(Condenser(k=5).fit(frame.to_numpy()).sample(), np.ndarray)


@pytest.mark.parametrize("library", [pd, pl])
@pytest.mark.parametrize("dtype", ["texts", "categories", "numbers"])
def test_classes_that_came_as_a_series_come_back_as_one(library: Any, dtype: str) -> None:
    classes = library.DataFrame({"ill": ([3, 5] if dtype == "numbers" else ["a", "b"]) * 30})["ill"]
    if dtype == "categories":
        classes = classes.astype("category") if library is pd else classes.cast(pl.Categorical)
    if library is pd:
        classes.index = np.arange(60) + 7
    frame = library.DataFrame({"age": table(60)[:, 0], "pay": table(60)[:, 1]})
    _, found = Condenser(k=5, random_state=0).fit_resample(frame, classes)
    assert isinstance(found, library.Series)
    assert (found.name, found.dtype) == ("ill", classes.dtype)
    assert sorted(found.to_list()) == sorted(classes.to_list())
    if library is pd:
        assert list(found.index) == list(range(60))


def test_as_many_rows_as_are_asked_for_are_drawn_from_groups_in_proportion() -> None:
    values = np.concatenate([np.full((80, 1), 0.0), np.full((20, 1), 9.0)])
    condenser = Condenser(k=10, random_state=0).fit(values)
    drawn = condenser.sample(1_000)
    assert drawn.shape == (1_000, 1)
    assert int((drawn > 5).sum()) == 200
    assert condenser.sample(3).shape == (3, 1)
    for n in (0, -1, 2.5, True):
        with pytest.raises(OptionError, match="whole number above 0"):
            condenser.sample(n)  # type: ignore[arg-type]


def test_condensers_of_very_many_columns_hold_axes_with_the_moments_of_the_groups() -> None:
    values = np.random.default_rng(4).normal(size=(60, 1_250)) * np.linspace(0.1, 3.0, 1_250)
    condenser = Condenser(k=5, random_state=1).fit(values)
    groups = condenser.groups_
    assert condenser.groups_.scatter.nbytes > 20 * sum(
        array.nbytes for array in vars(condenser._statistics).values() if isinstance(array, np.ndarray)
    )
    for group in range(len(groups)):
        rows = values[condenser.labels_ == group]
        np.testing.assert_allclose(groups.covariance[group], np.cov(rows.T, bias=True), atol=1e-9)
    drawn = np.concatenate([condenser._draw(np.random.default_rng(seed)) for seed in range(150)])
    first = drawn.reshape(150, 60, -1)[:, : groups.count[0]].reshape(-1, 1_250)
    spread = groups.covariance[0].trace()
    assert ((first - groups.mean[0]) ** 2).sum(axis=1).mean() == pytest.approx(spread, rel=0.05)
    np.testing.assert_allclose(first.mean(axis=0), groups.mean[0], atol=0.5)
    rank = np.linalg.matrix_rank(first[:50] - groups.mean[0], tol=1e-6)
    assert rank == groups.count[0] - 1  # rows stay in the flat that the records span
    assert condenser.sample(130).shape == (130, 1_250)
    assert condenser.ssq_ == pytest.approx(groups.ssq)
