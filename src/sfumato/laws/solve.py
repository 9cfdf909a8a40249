"""The parameter of a law that meets a wanted bound from rho1 to rho2 [Evfimievski, Gehrke, Srikant 2003]."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

from sfumato.errors import OptionError
from sfumato.laws.amplification import gamma_for, gamma_for_downward
from sfumato.laws.finite import Mixture
from sfumato.laws.spec import NoiseSpec

__all__ = ["Solution", "solve"]

_DIGITS = 6


@dataclass(frozen=True)
class Solution:
    """The parameter found, or the reason why there is none.

    Parameters
    ----------
    gamma : float
        Largest amplification that meets the wish.
    parameter, value : str or None, float or None
        What to set, rounded to the safe side at six digits; none where no value of it meets the wish.
    spec : NoiseSpec or None
        The specification with that value.
    words : str
    """

    gamma: float
    parameter: str | None
    value: float | None
    spec: NoiseSpec | None
    words: str


def solve(spec: NoiseSpec, rho1: float, rho2: float) -> Solution:
    """Find the parameter with the least noise under which no property goes from rho1 to rho2, up or down.

    With rho2 above rho1 none goes from rho1 or less to above rho2; with rho2 below rho1 none from rho1 or more to
    below.

    Examples
    --------
    >>> from sfumato.laws.domains import Integers
    >>> found = solve(NoiseSpec(Integers(0, 1000), {"name": "keep-or-replace", "keep": 0.2}), 0.01, 0.1)
    >>> found.value, round(found.spec.bound(0.01), 4)
    (0.0108803, 0.1)
    """
    if rho1 == rho2:
        raise OptionError("rho1 and rho2 are the same, so no answer may tell anything; choose them apart")
    gamma = gamma_for(rho1, rho2) if rho2 > rho1 else gamma_for_downward(rho1, rho2)
    law = spec.to_document()["law"]
    if law["name"] not in _SOLVERS or (law["name"] == "response" and "epsilon" not in law):
        return Solution(gamma, None, None, None, _none(law["name"]))
    parameter, find = _SOLVERS[law["name"]]
    value = find(spec, gamma)
    found = NoiseSpec(spec.domain, {**law, parameter: value})
    words = f"{parameter} = {value:g} meets it: odds then change by at most a factor of {found.gamma:.4g}."
    return Solution(gamma, parameter, value, found, words)


def _none(name: str) -> str:
    if name in ("uniform", "shift-modulo"):
        why = "Bounded noise rules values out, whatever its reach: no reach meets any bound."
    elif name == "gaussian":
        why = "Gaussian noise lets odds change by any factor, whatever its deviation: none meets any bound."
    elif name == "response":
        return "A matrix has no single parameter; give epsilon instead, or put the matrix into a mixture."
    else:
        return "What is sent is true, so it rules everything else out: no choice of classes meets any bound."
    other = "a mixture of it with chance" if name == "shift-modulo" else "laplace noise"
    return f"{why} Use {other}."


def _keep(spec: NoiseSpec, gamma: float) -> float:
    """Solve keep (n - 1) / (1 - keep) = gamma."""
    return _round(gamma / (gamma + spec.domain.size - 1), ROUND_FLOOR)


def _weight(spec: NoiseSpec, gamma: float) -> float:
    """Solve (w h + (1 - w)/n) = gamma (w l + (1 - w)/n) for each output, h and l its extremes; the smallest w holds."""
    operator = spec.operator
    assert isinstance(operator, Mixture)
    rest = (gamma - 1.0) / operator.size
    extremes = [(float(high), float(low)) for high, low in operator.of.extremes]
    bounds = [rest / (high - gamma * low + rest) for high, low in extremes if high > gamma * low]
    return _round(min([1.0, *bounds]), ROUND_FLOOR)


def _scale(spec: NoiseSpec, gamma: float) -> float:
    """Solve range / scale = ln gamma."""
    return _round((spec.domain.size - 1) * spec.domain.step / math.log(gamma), ROUND_CEILING)


def _epsilon(_spec: NoiseSpec, gamma: float) -> float:
    return _round(math.log(gamma), ROUND_FLOOR)


def _round(number: float, how: str) -> float:
    """Round to six digits towards more noise, so that the bound still holds."""
    return float(Context(prec=_DIGITS, rounding=how).plus(Decimal(number)))


_SOLVERS: dict[str, tuple[str, Callable[[NoiseSpec, float], Any]]] = {
    "keep-or-replace": ("keep", _keep),
    "mixture": ("weight", _weight),
    "laplace": ("scale", _scale),
    "response": ("epsilon", _epsilon),
}
