"""Domains by the names of a specification: from their written form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.errors import OptionError
from sfumato.laws.domains import Integers, Labels, Reals, Universe

__all__ = ["domain_from_document"]

_KINDS: dict[str, tuple[type[Integers | Reals | Labels], tuple[str, ...]]] = {
    "integers": (Integers, ("low", "high")),
    "reals": (Reals, ("low", "high", "grid")),
    "labels": (Labels, ("values",)),
}


def domain_from_document(document: Mapping[str, Any]) -> Universe:
    """Read the form that ``to_document`` writes.

    Examples
    --------
    >>> domain_from_document({"kind": "integers", "low": 0, "high": 1000})
    Integers(low=0, high=1000)
    """
    if not isinstance(document, Mapping) or str(document.get("kind")) not in _KINDS:
        raise OptionError(f"the domain needs a kind, one of {', '.join(_KINDS)}")
    make, keys = _KINDS[str(document["kind"])]
    if set(document) != {"kind", *keys}:
        raise OptionError(f"a domain of {document['kind']} has the keys kind, {', '.join(keys)} and no other")
    given = [document[key] for key in keys]
    if make is Labels and not isinstance(given[0], list | tuple):
        raise OptionError("the values of a domain of labels must be a list of texts")
    return make(*given)
