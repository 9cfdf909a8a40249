"""scikit-learn estimators: adapters around the same pure functions, no logic of their own."""

from __future__ import annotations

from sfumato.sklearn.dynamic import DynamicCondenser
from sfumato.sklearn.transformers import Condenser, GeometricTransformer

__all__ = ["Condenser", "DynamicCondenser", "GeometricTransformer"]
