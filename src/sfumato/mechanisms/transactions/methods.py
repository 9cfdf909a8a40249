"""Mechanisms for baskets by the names that certificates have."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from sfumato.core.errors import OptionError
from sfumato.mechanisms.transactions.block import RuleBlocking
from sfumato.mechanisms.transactions.hide import RuleHiding
from sfumato.mechanisms.transactions.protocol import BasketMechanism
from sfumato.mechanisms.transactions.randomize import BasketRandomization

__all__ = ["BASKET_METHODS", "make_basket_mechanism"]

BASKET_METHODS: dict[str, type[BasketRandomization | RuleHiding | RuleBlocking]] = {
    "randomize-baskets": BasketRandomization,
    "hide-rules": RuleHiding,
    "block-rules": RuleBlocking,
}


def make_basket_mechanism(method: str, parameters: Mapping[str, Any]) -> BasketMechanism:
    """Mechanism of a method with these parameters; those that are None are left to its defaults."""
    if method not in BASKET_METHODS:
        raise OptionError(f"there is no method for baskets of that name; choose one of {', '.join(BASKET_METHODS)}")
    told = {name: value for name, value in parameters.items() if value is not None}
    if not told.keys() <= {field.name for field in dataclasses.fields(BASKET_METHODS[method])}:
        raise OptionError(f"an option of {method!r} is not known; its docstring lists them")
    return BASKET_METHODS[method](**told)
