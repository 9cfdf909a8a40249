"""Properties of an answer in words such as ``x in 200..800 and not x == 500``: a small parser, nothing is evaluated."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import OptionError
from sfumato.core.laws.dates import DATE, Dates
from sfumato.core.laws.domains import Labels, Universe
from sfumato.core.laws.exact import exact

__all__ = ["holds"]

_TOKEN = re.compile(
    rf"""\s*(?:(?P<date>{DATE})|(?P<number>[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d{{1,3}})?)
    |"(?P<double>[^"]*)"|'(?P<single>[^']*)'
    |(?P<word>[^\W\d]\w*)
    |(?P<sign>==|!=|<=|>=|\.\.|[=<>(){{}},]))""",
    re.VERBOSE,
)
_LONGEST, _DEEPEST = 10_000, 50
_HELP = "write for example x == 0, x in 200..800, x not in {1, 2} or x >= 70 and x < 80"


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str


def holds(text: str, domain: Universe) -> NDArray[np.bool_]:
    """Tell for each place of a domain whether a property holds there.

    Comparisons of ``x`` are ``==``, ``!=``, ``<``, ``<=``, ``>``, ``>=``, ``in low..high`` (ends included),
    ``in {a, b}`` and ``not in``; they are joined with ``and``, ``or``, ``not`` and parentheses. A label that is no
    plain word stands in quotes.

    Raises
    ------
    OptionError
        For a text of another form, and for a property that all values of the domain have, or none.

    Examples
    --------
    >>> from sfumato.core.laws.domains import Integers
    >>> holds("x in 1..2 or x >= 4", Integers(0, 4))
    array([False,  True,  True, False,  True])
    """
    if len(text) > _LONGEST:
        raise OptionError("the property is too long; shorten it")
    found = _Parser(_tokens(text), domain).whole()
    if found.all() or not found.any():
        which = "all values" if found.all() else "no value"
        raise OptionError(f"{which} of the domain would have the property, so nothing can be learned; choose another")
    return found


def _tokens(text: str) -> list[_Token]:
    tokens, at, end = [], 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise OptionError(f"the property has a sign that means nothing, at character {at + 1}; {_HELP}")
        kind = match.lastgroup
        tokens.append(_Token("text" if kind in ("double", "single") else kind, match[kind]))
        at = match.end()
    return tokens


class _Parser:
    """One pass over the tokens; every step gives the places at which what it read holds."""

    def __init__(self, tokens: list[_Token], domain: Universe) -> None:
        self.tokens = tokens
        self.domain = domain
        self.at = 0
        self.places = np.arange(domain.size)

    def whole(self) -> NDArray[np.bool_]:
        found = self.any_of(0)
        if self.at < len(self.tokens):
            raise OptionError(f"the property goes on where it should end; {_HELP}")
        return found

    def any_of(self, depth: int) -> NDArray[np.bool_]:
        found = self.all_of(depth)
        while self.takes("or"):
            found = found | self.all_of(depth)
        return found

    def all_of(self, depth: int) -> NDArray[np.bool_]:
        found = self.one(depth)
        while self.takes("and"):
            found = found & self.one(depth)
        return found

    def one(self, depth: int) -> NDArray[np.bool_]:
        if depth > _DEEPEST:
            raise OptionError("the property is nested too deeply; write it plainer")
        if self.takes("not"):
            return ~self.one(depth + 1)
        if self.takes("("):
            found = self.any_of(depth + 1)
            self.needs(")")
            return found
        self.needs("x")
        return self.comparison()

    def comparison(self) -> NDArray[np.bool_]:
        if self.takes("not"):
            self.needs("in")
            return ~self.inside()
        if self.takes("in"):
            return self.inside()
        for sign, compare in _COMPARE.items():
            if self.takes(sign):
                return compare(self, self.value())
        raise OptionError(f"x is compared with nothing in the property; {_HELP}")

    def inside(self) -> NDArray[np.bool_]:
        if self.takes("{"):
            found = self.equal(self.value())
            while self.takes(","):
                found = found | self.equal(self.value())
            self.needs("}")
            return found
        low = self.value()
        self.needs("..")
        return self.at_least(low) & self.at_most(self.value())

    def equal(self, value: _Token) -> NDArray[np.bool_]:
        if isinstance(self.domain, Labels):
            if value.text not in self.domain.values:
                raise OptionError("a label of the property is not in the domain; name one that is, in quotes")
            return np.asarray(self.places == self.domain.values.index(value.text))
        place = self.place(value)
        return np.asarray((self.places == int(place)) & (place.denominator == 1))

    def at_least(self, value: _Token) -> NDArray[np.bool_]:
        return np.asarray(self.places >= -((-self.place(value)) // 1))

    def at_most(self, value: _Token) -> NDArray[np.bool_]:
        return np.asarray(self.places <= self.place(value) // 1)

    def place(self, value: _Token) -> Fraction:
        """Where a number lies among the places, between two of them too; far out it is just beyond the end."""
        if isinstance(self.domain, Labels):
            raise OptionError("labels have no order; compare them with == or in {...}")
        if isinstance(self.domain, Dates):
            if value.kind == "number":
                raise OptionError("x is a date, and is compared with a number in the property; write x >= 2020-01-31")
            return Fraction(max(-1, min(self.domain.size, self.domain.count(value.text) - self.domain.low)))
        if value.kind != "number":
            raise OptionError(f"x is a number, and is compared with a word in the property; {_HELP}")
        place = (Fraction(Decimal(value.text)) - exact(self.domain.low)) / exact(self.domain.step)
        return max(Fraction(-1), min(Fraction(self.domain.size), place))

    def value(self) -> _Token:
        if self.at < len(self.tokens) and self.tokens[self.at].kind in ("date", "number", "text", "word"):
            self.at += 1
            return self.tokens[self.at - 1]
        raise OptionError(f"a value is missing in the property; {_HELP}")

    def takes(self, text: str) -> bool:
        here = self.tokens[self.at] if self.at < len(self.tokens) else None
        if here is None or here.kind not in ("word", "sign") or here.text != text:
            return False
        self.at += 1
        return True

    def needs(self, text: str) -> None:
        if not self.takes(text):
            raise OptionError(f"{text!r} is missing in the property; {_HELP}")


_COMPARE: dict[str, Callable[[_Parser, _Token], NDArray[np.bool_]]] = {
    "==": _Parser.equal,
    "=": _Parser.equal,
    "!=": lambda parser, value: ~parser.equal(value),
    "<=": _Parser.at_most,
    ">=": _Parser.at_least,
    "<": lambda parser, value: ~parser.at_least(value),
    ">": lambda parser, value: ~parser.at_most(value),
}
