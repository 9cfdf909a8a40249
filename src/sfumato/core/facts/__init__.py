"""The vocabulary of facts: what a mechanism did, in words that hold no data.

The vocabulary only grows. `privacy` draws its claims from these and from nothing else; a fact that
it does not know is refused there, never ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sfumato.core.documents import Unparsable, plain, typed
from sfumato.core.errors import BadInput
from sfumato.core.facts import grouped, made
from sfumato.core.facts.grouped import *  # noqa: F403
from sfumato.core.facts.made import *  # noqa: F403
from sfumato.core.facts.made import Fact, FormulaTexts

__all__ = ["fact_from_json", "fact_to_json", "is_quoted"]
__all__ += grouped.__all__
__all__ += made.__all__


_VOCABULARY: dict[str, type[Fact]] = {kind.fact: kind for kind in Fact.__subclasses__()}


def is_quoted(facts: Iterable[Fact]) -> bool:
    """Tell whether an apostrophe stands before the formulas in the file of the table."""
    return any(fact.quoted for fact in facts if isinstance(fact, FormulaTexts))


def fact_to_json(fact: Fact) -> dict[str, Any]:
    """Write a fact as a JSON object.

    Examples
    --------
    >>> fact_to_json(Shuffled(rows=3))
    {'fact': 'shuffled', 'rows': 3}
    """
    return {"fact": fact.fact, **plain(fact)}


def fact_from_json(document: dict[str, Any]) -> Fact:
    """Read a fact back; an unknown one is an error."""
    name = document.get("fact")
    kind = _VOCABULARY.get(name) if isinstance(name, str) else None
    if kind is None:
        raise BadInput("the certificate holds a fact that this version does not know; use a newer sfumato")
    try:
        return typed(kind, {key: value for key, value in document.items() if key != "fact"})
    except Unparsable as error:
        raise BadInput(f"the fact {kind.fact!r} has {error}; the file was altered") from None
