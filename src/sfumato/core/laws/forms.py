"""The laws by the names of a specification: from its written form to an operator, the released values, and words."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from sfumato.core.errors import OptionError
from sfumato.core.laws.dates import Dates
from sfumato.core.laws.domains import Integers, Labels, Universe
from sfumato.core.laws.exact import exact, short
from sfumato.core.laws.finite import Finite, KeepOrReplace, Mixture, ShiftModulo
from sfumato.core.laws.noise import DiscreteGaussian, DiscreteLaplace, DiscreteUniform
from sfumato.core.laws.operators import Additive, Membership, Operator, interval_cells, parent_cells, rounding_cells
from sfumato.core.laws.response import Response, subset_response

__all__ = ["Form", "canonical_law", "form_of"]

_DEEPEST = 8


@dataclass(frozen=True)
class Form:
    """What a law means on a domain: the operator, the values that come out, and what happens in words."""

    operator: Operator
    released: Universe
    words: str


def canonical_law(law: Mapping[str, Any]) -> dict[str, Any]:
    """A law's written form with known keys alone and whole numbers without a fraction; anything else is refused."""
    if not isinstance(law, Mapping) or str(law.get("name")) not in _FORMS:
        raise OptionError(f"the law needs a name, one of {', '.join(_FORMS)}")
    depth, inner = 0, law
    while isinstance(inner, Mapping) and "of" in inner:
        depth, inner = depth + 1, inner["of"]
    if depth > _DEEPEST:
        raise OptionError(f"mixtures are nested deeper than {_DEEPEST}; write the law plainer")
    name = str(law["name"])
    options = _FORMS[name][0]
    keys = tuple(key for key in law if key != "name")
    if not any(set(keys) == set(wanted) for wanted in options):
        told = " or ".join(" and ".join(wanted) for wanted in options)
        raise OptionError(f"the law {name!r} needs {told}, and nothing else")
    return {"name": name, **{key: _canonical(key, law[key]) for key in sorted(keys)}}


def form_of(domain: Universe, law: Mapping[str, Any]) -> Form:
    """Meaning of a law on a domain.

    Examples
    --------
    >>> from sfumato.core.laws.domains import Integers
    >>> form_of(Integers(0, 1000), {"name": "keep-or-replace", "keep": 0.2}).operator
    KeepOrReplace(size=1001, keep=0.2)
    """
    return _FORMS[law["name"]][1](domain, law)


def _canonical(key: str, value: Any) -> Any:
    if key == "of":
        return canonical_law(value)
    if key == "parents":
        if not isinstance(value, Mapping) or not all(isinstance(each, str) for pair in value.items() for each in pair):
            raise OptionError("the parents of a taxonomy are a table from label to parent, both texts")
        return dict(sorted(value.items()))
    if key in ("matrix", "edges", "row"):
        if not isinstance(value, list | tuple):
            raise OptionError(f"the {key} of a law must be a list")
        if key == "edges" and any(isinstance(each, str | datetime.date) for each in value):
            return [each.isoformat() if isinstance(each, datetime.date) else each for each in value]
        return [_canonical("row" if key == "matrix" else "entry", each) for each in value]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise OptionError(f"{key} of a law must be a number")
    return short(value)


def _keep_or_replace(domain: Universe, law: Mapping[str, Any]) -> Form:
    operator = KeepOrReplace(domain.size, law["keep"])
    words = (
        f"With probability {law['keep']:g} the true value is sent; otherwise one of the other {domain.size - 1:,} "
        "values is drawn, each equally likely."
    )
    return Form(operator, domain, words)


def _shift_modulo(domain: Universe, law: Mapping[str, Any]) -> Form:
    reach = _in_places("reach", law["reach"], domain)
    if reach.denominator != 1:
        raise OptionError("the reach of a shift must be a whole number of grid steps; change reach or grid")
    operator = ShiftModulo(domain.size, int(reach))
    words = (
        f"The value is shifted by a random amount from -{law['reach']:g} to {law['reach']:g}; beyond one end of the "
        "domain it goes on at the other."
    )
    return Form(operator, domain, words)


def _mixture(domain: Universe, law: Mapping[str, Any]) -> Form:
    inner = form_of(domain, law["of"])
    operator = Mixture(law["weight"], cast(Finite, inner.operator), domain.size)
    words = (
        f"With probability {law['weight']:g} this is done: {inner.words} Otherwise any of the {domain.size:,} values "
        "is drawn, each equally likely."
    )
    return Form(operator, domain, words)


def _additive(domain: Universe, law: Mapping[str, Any]) -> Form:
    name = law["name"]
    if isinstance(domain, Labels):
        raise OptionError(f"the law {name!r} adds numbers, so it needs a domain of integers or reals")
    make, key = _ADDITIVE[name]
    places = float(_in_places(key, law[key], domain))
    operator = Additive(domain.size, make(places))
    told = {"uniform": "at most", "gaussian": "standard deviation", "laplace": "scale"}[name]
    step = f"a {domain.unit}" if isinstance(domain, Dates) else f"{domain.step:g}"
    words = f"Random noise is added to the value ({name}, {told} {law[key]:g}), in steps of {step}."
    return Form(operator, domain, words)


def _response(domain: Universe, law: Mapping[str, Any]) -> Form:
    if "epsilon" in law:
        operator = Response.for_epsilon(domain.size, law["epsilon"])
        words = (
            f"The true answer is sent with probability {operator.matrix[0][0]:.4g}; otherwise one of the other "
            f"{domain.size - 1:,} answers is drawn, each equally likely."
        )
        return Form(operator, domain, words)
    operator = Response(law["matrix"])
    if (operator.size, len(operator.outputs)) != (domain.size, domain.size):
        raise OptionError(f"the response matrix must have {domain.size} rows and columns, one for each value")
    return Form(operator, domain, "The answer that is sent is drawn with probabilities that depend on the true one.")


def _subset(domain: Universe, law: Mapping[str, Any]) -> Form:
    operator = subset_response(domain.size, law["epsilon"])
    answers = len(operator.outputs)
    if answers == domain.size and operator.matrix[0].count(max(operator.matrix[0])) == 1:
        return Form(operator, Integers(0, answers - 1), "The number of an answer is sent: mostly that of the true one.")
    many = operator.matrix[0].count(max(operator.matrix[0]))
    words = (
        f"Each value stands for {many:,} of {answers:,} numbers, any two values sharing some. A number is sent: one of "
        f"the true value's is {math.exp(law['epsilon']):.4g} times likelier than any other."
    )
    return Form(operator, Integers(0, answers - 1), words)


def _classes(domain: Universe, law: Mapping[str, Any]) -> Form:
    name = law["name"]
    if isinstance(domain, Labels) != (name == "taxonomy"):
        needed = "labels" if name == "taxonomy" else "integers or reals"
        raise OptionError(f"the law {name!r} needs a domain of {needed}")
    released: Universe
    if isinstance(domain, Labels):
        cells, released = parent_cells(domain, law["parents"])
        words = f"Not the label is sent, but its parent, one of {released.size}; the parent is always true."
    elif name == "interval":
        cells, released = interval_cells(domain, law["edges"])
        words = f"Not the value is sent, but the interval that it lies in, one of {released.size}; it is always true."
    else:
        cells, released = rounding_cells(domain, law["to"])
        words = f"The value is rounded to a multiple of {law['to']:g}; what is sent is always true."
    return Form(Membership(domain.size, cells), released, words)


def _in_places(name: str, number: float, domain: Universe) -> Any:
    """Count a number of the domain's own units in places of it."""
    if number <= 0:
        raise OptionError(f"the {name} of a law must be a number above 0")
    return exact(number) / exact(domain.step)


_ADDITIVE: dict[str, tuple[Callable[[float], Any], str]] = {
    "uniform": (DiscreteUniform, "reach"),
    "gaussian": (DiscreteGaussian, "sd"),
    "laplace": (DiscreteLaplace, "scale"),
}

_FORMS: dict[str, tuple[tuple[tuple[str, ...], ...], Callable[[Universe, Mapping[str, Any]], Form]]] = {
    "keep-or-replace": ((("keep",),), _keep_or_replace),
    "shift-modulo": ((("reach",),), _shift_modulo),
    "mixture": ((("weight", "of"),), _mixture),
    "uniform": ((("reach",),), _additive),
    "gaussian": ((("sd",),), _additive),
    "laplace": ((("scale",),), _additive),
    "response": ((("matrix",), ("epsilon",)), _response),
    "subset": ((("epsilon",),), _subset),
    "interval": ((("edges",),), _classes),
    "rounding": ((("to",),), _classes),
    "taxonomy": ((("parents",),), _classes),
}
