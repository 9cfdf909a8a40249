"""scikit-learn estimators: thin adapters around the package's pure functions."""

from __future__ import annotations

from sfumato.sklearn.dynamic import DynamicCondenser
from sfumato.sklearn.transformers import Condenser, GeometricTransformer

__all__ = ["Condenser", "DynamicCondenser", "GeometricTransformer"]
