"""Methods for transactions by name, and their parameters."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from sfumato.core.errors import OptionError
from sfumato.transactions.mechanism import TransactionMechanism
from sfumato.transactions.randomize import TransactionRandomization
from sfumato.transactions.rules import RuleBlocking, RuleHiding

__all__ = ["TRANSACTION_METHODS", "make_transaction_mechanism"]

TRANSACTION_METHODS: dict[str, type[TransactionRandomization | RuleHiding | RuleBlocking]] = {
    "randomize-transactions": TransactionRandomization,
    "hide-rules": RuleHiding,
    "block-rules": RuleBlocking,
}


def make_transaction_mechanism(method: str, parameters: Mapping[str, Any]) -> TransactionMechanism:
    """Mechanism of a method with these parameters; those that are None are left to its defaults."""
    if method not in TRANSACTION_METHODS:
        raise OptionError(
            f"there is no method for transactions of that name; choose one of {', '.join(TRANSACTION_METHODS)}"
        )
    entries = {name: value for name, value in parameters.items() if value is not None}
    if not entries.keys() <= {field.name for field in dataclasses.fields(TRANSACTION_METHODS[method])}:
        raise OptionError(f"an option of {method!r} is not known; its docstring lists them")
    return TRANSACTION_METHODS[method](**entries)
