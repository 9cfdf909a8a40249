"""The scikit-learn adapter of the geometric transformations."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.methods.geometry.key import Add, Key, Mult
from sfumato.sklearn import GeometricTransformer

KINDS = ["translate", "scale", "rotate", "hybrid"]


@parametrize_with_checks([GeometricTransformer(kind, random_state=0) for kind in KINDS])  # type: ignore[untyped-decorator]
def test_the_transformer_is_a_scikit_learn_estimator(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def table(d: int = 4) -> np.ndarray:
    rng = np.random.default_rng(1)
    centres = rng.normal(scale=10, size=(3, d))
    return np.asarray((centres[rng.integers(3, size=300)] + rng.normal(size=(300, d))) * 10.0 ** np.arange(d))


@pytest.mark.parametrize("kind", KINDS)
def test_the_inverse_gives_every_number_back(kind: str) -> None:
    values = table()
    moved = GeometricTransformer(kind).fit(values)
    back = moved.inverse_transform(moved.transform(values))
    np.testing.assert_allclose(back / values.std(axis=0), values / values.std(axis=0), rtol=0, atol=1e-9)


def test_rotation_leaves_clusters_of_columns_in_deviations_as_they_are() -> None:
    values = table()
    scale = values.std(axis=0)
    moved = GeometricTransformer().fit_transform(values)
    labels = [KMeans(3, n_init=10, random_state=0).fit_predict(part / scale) for part in (values, moved)]
    assert adjusted_rand_score(*labels) == 1.0


def test_a_state_repeats_and_none_does_not() -> None:
    values = table()
    first, again = (GeometricTransformer(random_state=9).fit_transform(values) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert (GeometricTransformer().fit_transform(values) != GeometricTransformer().fit_transform(values)).any()


def test_a_given_key_is_used_and_must_fit_the_columns() -> None:
    key = Key((Add("x0", 5.0), Mult("x1", 2.0)))
    values = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(GeometricTransformer(key=key).fit_transform(values), values * [1, 2] + [5, 0])
    with pytest.raises(PrivacyRefusal, match="'x2'"):
        GeometricTransformer(key=key).fit(table(3))
    with pytest.raises(OptionError, match="'x1'"):
        GeometricTransformer(key=key).fit(table(1))


def test_no_repr_shows_a_term() -> None:
    moved = GeometricTransformer(key=Key((Add("x0", 77.125), Mult("x1", 88.25)))).fit(table(2))
    for text in (repr(moved), str(moved.get_params()), str(vars(moved)), moved._repr_html_()):
        assert "77.125" not in text
        assert "88.25" not in text


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(OptionError, match="kind"):
        clone(GeometricTransformer("magic")).fit(table())


def test_a_single_column_cannot_be_turned() -> None:
    with pytest.raises(OptionError, match="translate"):
        GeometricTransformer().fit(table(1))
