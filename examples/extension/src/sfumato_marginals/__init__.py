"""An extension of sfumato: the method ``marginals`` with its facts, and the attack ``value-matching``."""

from __future__ import annotations

from sfumato_marginals.attack import VALUE_MATCHING
from sfumato_marginals.method import Marginals

__all__ = ["MEASURES", "METHODS", "Marginals"]

METHODS = {"marginals": Marginals}
MEASURES = (VALUE_MATCHING,)
