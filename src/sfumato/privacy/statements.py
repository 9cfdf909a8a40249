"""What may and must not be said of a release, and numbers in it that are rounded so that nothing is overstated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any, Literal

from sfumato.core.facts import Fact

__all__ = [
    "SECRET_RANDOMNESS",
    "Claim",
    "ClaimsOf",
    "Refused",
    "Statements",
    "at_least",
    "at_most",
    "counted",
    "quoted",
]

SECRET_RANDOMNESS = "the source of randomness is not known to the attacker"  # noqa: S105
"""What a claim assumes that chance makes true. A seed is no secret, so in a rehearsal such a claim is not proved."""


@dataclass(frozen=True)
class Claim:
    """What may be said of a release."""

    claim: str
    kind: Literal["proved", "assumed"]
    basis: str
    assumes: str


@dataclass(frozen=True)
class Refused:
    """What must not be said of a release, and why."""

    claim: str
    because: str


Statements = Iterator[Claim | Refused]
"""What follows from a fact, in the order of the certificate."""

ClaimsOf = dict[type[Fact], Callable[[Any, tuple[Fact, ...]], Statements]]
"""Of some kinds of facts, what follows from one among all the others."""


def counted(count: int, one: str, many: str) -> str:
    """A count with its noun, and what follows it.

    Examples
    --------
    >>> counted(1, "group has", "groups have"), counted(2, "group has", "groups have")
    ('1 group has', '2 groups have')
    """
    return f"{count} {one if count == 1 else many}"


def quoted(names: Iterable[str]) -> str:
    """Names in quotes, so that none can be taken for words of ours."""
    return ", ".join(map(repr, names))


def at_most(number: float, digits: int = 4) -> str:
    """A number as an upper bound: with so many digits, never below it.

    Examples
    --------
    >>> at_most(2.71828), at_least(2.71828), at_most(3.0)
    ('2.719', '2.718', '3')
    """
    return _rounded(number, digits, ROUND_CEILING)


def at_least(number: float, digits: int = 4) -> str:
    """A number as a lower bound: with so many digits, never above it."""
    return _rounded(number, digits, ROUND_FLOOR)


def _rounded(number: float, digits: int, rounding: str) -> str:
    short = f"{number:.{digits}g}"
    if float(short) == number:
        return short
    return f"{float(Context(prec=digits, rounding=rounding).create_decimal_from_float(float(number))):.{digits}g}"
