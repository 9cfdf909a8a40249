"""Claims and refused claims of a certificate, and numbers in them that are rounded so that nothing is overstated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Literal

__all__ = [
    "NOTHING",
    "ONE_ROW",
    "PERSON_COLUMN",
    "RAN_AS_WRITTEN",
    "SECRET_RANDOMNESS",
    "Claim",
    "Refused",
    "Statements",
    "at_least",
    "at_most",
    "counted",
    "joined",
    "quoted",
    "whom_rows_describe",
]

SECRET_RANDOMNESS = "the random numbers stay secret"  # noqa: S105
"""Assumption of a claim that rests on chance. A seed is not secret, so a dry run never proves such a claim."""

ONE_ROW = "one row is one person"
PERSON_COLUMN = "the person column identifies the person of each row"
RAN_AS_WRITTEN = "the program ran as written"
NOTHING = "nothing: the released table shows it"


@dataclass(frozen=True)
class Claim:
    """A claim about a release: one sentence, what proves it, and what it assumes."""

    claim: str
    kind: Literal["proved", "assumed"]
    basis: str
    assumes: str


@dataclass(frozen=True)
class Refused:
    """A claim that the facts do not support, and the reason."""

    claim: str
    reason: str


Statements = Iterator[Claim | Refused]
"""Claims and refused claims of a fact, in the order of the certificate."""


def counted(count: int, one: str, many: str) -> str:
    """Write a count with its noun, and the words after it.

    Examples
    --------
    >>> counted(1, "group has", "groups have"), counted(2, "group has", "groups have")
    ('1 group has', '2 groups have')
    """
    return f"{count} {one if count == 1 else many}"


def quoted(names: Iterable[str]) -> str:
    """Put names in quotes, so that none can be read as part of the sentence."""
    return ", ".join(map(repr, names))


def joined(parts: Sequence[str]) -> str:
    """List parts in words.

    Examples
    --------
    >>> joined(["one"]), joined(["one", "two"]), joined(["one", "two", "three"])
    ('one', 'one and two', 'one, two and three')
    """
    return ", ".join(parts) if len(parts) < 2 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def whom_rows_describe(*, by_person: bool) -> str:
    """State the assumption that makes rows into persons."""
    return PERSON_COLUMN if by_person else ONE_ROW


def at_most(number: float, digits: int = 4) -> str:
    """Round a number up to the given number of digits, for an upper bound.

    Examples
    --------
    >>> at_most(2.71828), at_least(2.71828), at_most(3.0)
    ('2.719', '2.718', '3')
    """
    return _rounded(number, digits, ROUND_CEILING)


def at_least(number: float, digits: int = 4) -> str:
    """Round a number down to the given number of digits, for a lower bound."""
    return _rounded(number, digits, ROUND_FLOOR)


def _rounded(number: float, digits: int, rounding: str) -> str:
    short = f"{number:.{digits}g}"
    if float(short) == number:
        return short
    return f"{float(Context(prec=digits, rounding=rounding).create_decimal_from_float(float(number))):.{digits}g}"
