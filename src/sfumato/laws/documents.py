"""Domains by the names of a specification: their written form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.documents import plain
from sfumato.errors import OptionError
from sfumato.laws.decimals import short
from sfumato.laws.domains import Integers, Labels, Reals, Universe

__all__ = ["domain_from_document", "domain_to_document"]

_KINDS: dict[str, type[Universe]] = {"integers": Integers, "reals": Reals, "labels": Labels}


def domain_to_document(domain: Universe) -> dict[str, Any]:
    """Written form of a domain.

    Examples
    --------
    >>> domain_to_document(Reals(0.0, 1.0, 0.5))
    {'kind': 'reals', 'low': 0, 'high': 1, 'grid': 0.5}
    """
    told = {key: short(value) if isinstance(value, float) else value for key, value in plain(domain).items()}
    return {"kind": type(domain).__name__.lower(), **told}


def domain_from_document(document: Mapping[str, Any]) -> Universe:
    """Domain of which ``domain_to_document`` gives the written form."""
    if not isinstance(document, Mapping) or str(document.get("kind")) not in _KINDS:
        raise OptionError(f"the domain needs a kind, one of {', '.join(_KINDS)}")
    given = dict(document)
    shape = _KINDS[str(given.pop("kind"))]
    keys = shape.__dataclass_fields__
    if set(given) != set(keys):
        raise OptionError(f"a domain of {document['kind']} has the keys kind, {', '.join(keys)} and no other")
    if shape is Labels and not isinstance(given["values"], list | tuple):
        raise OptionError("the values of a domain of labels must be a list of texts")
    return shape(**given)
