"""scikit-learn estimators: adapters around the same pure functions, no logic of their own."""

from __future__ import annotations

from sfumato.sklearn.condenser import Condenser
from sfumato.sklearn.dynamic import DynamicCondenser
from sfumato.sklearn.geometric import GeometricTransformer

__all__ = ["Condenser", "DynamicCondenser", "GeometricTransformer"]
