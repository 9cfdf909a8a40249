"""The breach calculator: what an answer tells about a property, and what no answer can tell [JS07, table 1; EGS03].

EGS03: A. Evfimievski, J. Gehrke, R. Srikant: Limiting Privacy Breaches in Privacy Preserving Data Mining. PODS 2003.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.distributions.amplification import downward_bound, upward_bound
from sfumato.core.distributions.domains import DATE, Dates, Labels, Universe
from sfumato.core.distributions.noise import exact
from sfumato.core.distributions.operators import Operator, likelihoods
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.errors import OptionError, SchemaError
from sfumato.survey.channel import blocks, has_form, informative_outputs, is_large, spread

__all__ = [
    "Breach",
    "WorstOutputs",
    "answer_breach",
    "holds",
    "percent",
    "posterior",
    "posterior_of",
    "verdict",
    "worst_outputs",
]

_TIE = 1e-12  # probabilities this near to each other differ by rounding alone


def posterior(operator: Operator, prior: Floats, output: int) -> Floats:
    """Probability of each value once an output is known, by Bayes' rule.

    Raises
    ------
    SchemaError
        For an output that cannot occur under this prior.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.core.distributions.operators import KeepOrReplace
    >>> posterior(KeepOrReplace(3, 0.5), np.array([0.5, 0.25, 0.25]), 1)
    array([0.4, 0.4, 0.2])
    """
    joint = likelihoods(operator, np.array([output]))[0] * prior
    total = joint.sum()
    if not total > 0:
        raise SchemaError("1 output cannot occur under this prior and law; choose another output or prior")
    return np.asarray(joint / total)


def posterior_of(operator: Operator, prior: Floats, mask: Bools, output: int) -> float:
    """Probability of a property once an output is known; certainty is exactly 0 or 1."""
    after = posterior(operator, prior, output)
    yes, no = float(after[mask].sum()), float(after[~mask].sum())
    return yes / (yes + no)


@dataclass(frozen=True)
class WorstOutputs:
    """The output that raises a property most and the one that lowers it most, with the probability after each."""

    raising: int
    highest: float
    lowering: int
    lowest: float


def worst_outputs(operator: Operator, prior: Floats, mask: Bools) -> WorstOutputs:
    """Find the outputs that tell most about a property, among all that can occur.

    Notes
    -----
    Of Gaussian noise, which has no end, outputs within `survey.channel.TAIL` deviations of the domain
    are looked at. Of equals the first is named. Cost O(outputs * size); on a large domain O(size) where the law has a
    form for it, and probabilities then have an error of about 1e-16 over that of the output.
    """
    found = None
    for outputs, yes, no in _parts(operator, prior, mask):
        can = yes + no > 0
        if not can.any():
            continue
        y, after = outputs[can], yes[can] / (yes[can] + no[can])
        high, low = after.max(), after.min()
        up, down = np.argmax(after >= high * (1.0 - _TIE)), np.argmax(after <= low * (1.0 + _TIE))
        here = WorstOutputs(int(y[up]), float(high), int(y[down]), float(low))
        found = here if found is None else _worse(found, here)
    if found is None:
        raise SchemaError("no output can occur under this prior and law; choose another prior")
    return found


def _parts(operator: Operator, prior: Floats, mask: Bools) -> Iterator[tuple[Ints, Floats, Floats]]:
    """Outputs with their joint chances with the property and with its opposite, in proportion for each output."""
    if is_large(operator) and has_form(operator):
        with_it, without = (spread(operator, np.where(which, prior, 0.0)) for which in (mask, ~mask))
        yield np.array(informative_outputs(operator)), with_it, without
        return
    for outputs, likely, _ in blocks(operator):
        yield outputs, likely[:, mask] @ prior[mask], likely[:, ~mask] @ prior[~mask]


def _worse(one: WorstOutputs, other: WorstOutputs) -> WorstOutputs:
    up = other if other.highest > one.highest * (1.0 + _TIE) else one
    down = other if other.lowest < one.lowest * (1.0 - _TIE) else one
    return WorstOutputs(up.raising, up.highest, down.lowering, down.lowest)


@dataclass(frozen=True)
class Breach:
    """What one answer tells about a property, and what any answer can tell at most.

    Parameters
    ----------
    about : str
        The property.
    prior, posterior : float
        Probability of the property before and after the output.
    output : object
        The answer: a number or a label.
    worst : Worst
        The worst answers, by their codes.
    raising, lowering : object
        The worst answers themselves.
    certain : bool
        Whether some answer proves the property, or its opposite.
    gamma, epsilon : float
    """

    about: str
    prior: float
    posterior: float
    output: Any
    worst: WorstOutputs
    raising: Any
    lowering: Any
    certain: bool
    gamma: float
    epsilon: float

    @property
    def upper(self) -> float:
        """No answer makes the property more likely than this, whatever else the prior says; 1 says nothing."""
        return upward_bound(self.gamma, self.prior)

    @property
    def lower(self) -> float:
        """No answer makes the property less likely than this; 0 says nothing."""
        return downward_bound(self.gamma, self.prior)


def answer_breach(spec: NoiseSpec, prior: Floats, about: str, output: Any = None) -> Breach:
    """Compute what an answer tells about a property; without an answer, what the worst one tells.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.core.distributions.domains import Integers
    >>> spec = NoiseSpec(Integers(0, 1000), {"name": "keep-or-replace", "keep": 0.2})
    >>> prior = np.array([0.01] + [0.00099] * 1000)  # the example of JS07
    >>> round(answer_breach(spec, prior, "x == 0", 0).posterior, 3)
    0.716
    """
    operator, mask = spec.operator, holds(about, spec.domain)
    _check(prior, operator.size)
    worst = worst_outputs(operator, prior, mask)
    code = worst.raising if output is None else int(spec.encode_output([output])[0])
    before = min(1.0, math.fsum(prior[mask]))
    proof = worst.highest == 1.0 or worst.lowest == 0.0
    values = spec.shown([code, worst.raising, worst.lowering])
    return Breach(
        about=about,
        prior=before,
        posterior=posterior_of(operator, prior, mask, code),
        output=values[0],
        worst=worst,
        raising=values[1],
        lowering=values[2],
        certain=0 < before < 1 and proof and operator.outputs is not None and math.isinf(operator.gamma),
        gamma=operator.gamma,
        epsilon=operator.epsilon,
    )


def verdict(spec: NoiseSpec, rho1: float) -> str:
    """Say what a law promises about any property that is rho1 likely: a bound to either side, or no guarantee.

    Examples
    --------
    >>> from sfumato.core.distributions.domains import Integers
    >>> verdict(NoiseSpec(Integers(0, 1000), {"name": "keep-or-replace", "keep": 0.2}), 0.01)
    'guaranteed: a prior probability of 1 % becomes 0.00404 % to 71.6 % after any answer'
    """
    if spec.unbounded_reason is not None:
        return f"no guarantee: {spec.unbounded_reason}"
    if math.isinf(spec.gamma):
        return f"next to no guarantee: odds can change by a factor of e^{spec.epsilon:.0f}"
    low, high = downward_bound(spec.gamma, rho1), upward_bound(spec.gamma, rho1)
    after = f"{percent(low)} to {percent(high)}"
    return f"guaranteed: a prior probability of {percent(rho1)} becomes {after} after any answer"


def percent(probability: float) -> str:
    """Write a probability as a reader takes it in: three digits, and never a certainty that is none.

    Examples
    --------
    >>> percent(0.71633), percent(1.0), percent(0.99999), percent(0.0)
    ('71.6 %', '100 %', 'more than 99.9 %', '0 %')
    """
    if 0.999 < probability < 1.0:
        return "more than 99.9 %"
    if 0.0 < probability < 1e-9:
        return "less than 0.0000001 %"
    return f"{100.0 * probability:.3g} %"


def _check(prior: Floats, size: int) -> None:
    if prior.shape != (size,) or not (prior >= 0).all() or abs(math.fsum(prior) - 1.0) > 1e-9:
        raise OptionError(f"a prior must have {size} probabilities, one for each value, that add up to 1")


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


def holds(text: str, domain: Universe) -> Bools:
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
    >>> from sfumato.core.distributions.domains import Integers
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

    def whole(self) -> Bools:
        found = self.any_of(0)
        if self.at < len(self.tokens):
            raise OptionError(f"the property has text after its end; {_HELP}")
        return found

    def any_of(self, depth: int) -> Bools:
        found = self.all_of(depth)
        while self.takes("or"):
            found = found | self.all_of(depth)
        return found

    def all_of(self, depth: int) -> Bools:
        found = self.one(depth)
        while self.takes("and"):
            found = found & self.one(depth)
        return found

    def one(self, depth: int) -> Bools:
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

    def comparison(self) -> Bools:
        if self.takes("not"):
            self.needs("in")
            return ~self.inside()
        if self.takes("in"):
            return self.inside()
        for sign, compare in _COMPARE.items():
            if self.takes(sign):
                return compare(self, self.value())
        raise OptionError(f"x is compared with nothing in the property; {_HELP}")

    def inside(self) -> Bools:
        if self.takes("{"):
            found = self.equal(self.value())
            while self.takes(","):
                found = found | self.equal(self.value())
            self.needs("}")
            return found
        low = self.value()
        self.needs("..")
        return self.at_least(low) & self.at_most(self.value())

    def equal(self, value: _Token) -> Bools:
        if isinstance(self.domain, Labels):
            if value.text not in self.domain.values:
                raise OptionError("a label of the property is not in the domain; name one that is, in quotes")
            return np.asarray(self.places == self.domain.values.index(value.text))
        place = self.place(value)
        return np.asarray((self.places == int(place)) & (place.denominator == 1))

    def at_least(self, value: _Token) -> Bools:
        return np.asarray(self.places >= -((-self.place(value)) // 1))

    def at_most(self, value: _Token) -> Bools:
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


_COMPARE: dict[str, Callable[[_Parser, _Token], Bools]] = {
    "==": _Parser.equal,
    "=": _Parser.equal,
    "!=": lambda parser, value: ~parser.equal(value),
    "<=": _Parser.at_most,
    ">=": _Parser.at_least,
    "<": lambda parser, value: ~parser.at_least(value),
    ">": lambda parser, value: ~parser.at_most(value),
}
