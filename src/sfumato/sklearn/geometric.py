"""`GeometricTransformer`: translation, scaling and rotation of a matrix as a scikit-learn estimator [OZ03]."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.mechanisms.geometry.key import Key
from sfumato.mechanisms.geometry.transformations import Ranges, hybrid, invert
from sfumato.sklearn.condenser import generator_of

__all__ = ["GeometricTransformer"]


class GeometricTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Translation, scaling, rotation or a mixture of a numeric matrix by a secret key [OZ03].

    Outsourcing obfuscation: a few known rows undo it. Keep ``key_`` apart from what leaves.

    Parameters
    ----------
    kind : {"translate", "scale", "rotate", "hybrid"}, default="rotate"
    key : Key, default=None
        By default ``fit`` draws one. Its columns are the features' names, x0, x1, ... where they have none; with a key
        neither kind nor ranges matter.
    deviations : (float, float), default=(-3.0, 3.0)
        Between which bounds shifts are drawn, in standard deviations.
    factor : (float, float), default=(0.5, 2.0)
        Between which bounds factors are drawn.
    degrees : (float, float), default=(0.0, 360.0)
        Between which bounds angles are drawn, clockwise.
    units : dict of str to float, default=None
        How much of a column counts as one when it is turned; by default its standard deviation.
    pairs : {"chain", "disjoint"}, default="chain"
        Which columns are turned together.
    random_state : int, RandomState or None, default=None
        A seed marks a rehearsal: never release what was made with one.

    Attributes
    ----------
    key_ : Key
    n_features_in_ : int

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> turned = GeometricTransformer(random_state=0).fit(X)
    >>> bool(np.allclose(turned.inverse_transform(turned.transform(X)), X))
    True
    """

    def __init__(
        self,
        kind: str = "rotate",
        *,
        key: Key | None = None,
        deviations: tuple[float, float] = (-3.0, 3.0),
        factor: tuple[float, float] = (0.5, 2.0),
        degrees: tuple[float, float] = (0.0, 360.0),
        units: dict[str, float] | None = None,
        pairs: str = "chain",
        random_state: Any = None,
    ) -> None:
        self.kind = kind
        self.key = key
        self.deviations = deviations
        self.factor = factor
        self.degrees = degrees
        self.units = units
        self.pairs = pairs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> GeometricTransformer:  # noqa: N803, ARG002
        """Draw a key for the columns, or take the one that was given."""
        values = np.asarray(validate_data(self, X, dtype=np.float64))
        names, spread = self._names(), values.std(axis=0)
        if self.key is not None:
            self.key.check_cover(names)
            self.key_: Key = self.key
            return self
        sizes = dict(zip(names, np.where(spread > 0, spread, 1.0).tolist(), strict=True))
        low, high = self.deviations
        ranges = Ranges(
            {name: (low * size, high * size) for name, size in sizes.items()},
            dict.fromkeys(names, self.factor),
            self.degrees,
            sizes | (self.units or {}),
        )
        self.key_ = Key.generate(names, ranges, generator_of(self.random_state, 0), kind=self.kind, pairs=self.pairs)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Move the rows by the key; they keep their order."""
        check_is_fitted(self)
        values = np.asarray(validate_data(self, X, dtype=np.float64, reset=False))
        return hybrid(values, self.key_, self._names())

    def inverse_transform(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Rows as they were before they were moved."""
        from sklearn.utils import check_array

        check_is_fitted(self)
        values = np.asarray(check_array(X, dtype=np.float64))
        return invert(values, self.key_, self._names())

    def _names(self) -> tuple[str, ...]:
        known = getattr(self, "feature_names_in_", None)
        return tuple(f"x{place}" for place in range(self.n_features_in_)) if known is None else tuple(known)
