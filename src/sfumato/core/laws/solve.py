"""The parameter of a law that meets a wish: a bound from rho1 to rho2 [EGS03], or an interval [AS00]."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

from sfumato.core.errors import OptionError
from sfumato.core.laws.amplification import gamma_for, gamma_for_downward
from sfumato.core.laws.finite import Mixture
from sfumato.core.laws.noise import LAWS
from sfumato.core.laws.spec import NoiseSpec

__all__ = ["Solution", "noise_for_privacy", "solve"]

_DIGITS = (6, 9, 12, 15, 4, 2)  # tried in this order: more where six digits miss the wish, fewer where doubles do
_SLACK = 1e-12
_MOST = 1e10  # a wish that allows for more is met with this: chances so near to 0 or 1 are drawn only roughly


@dataclass(frozen=True)
class Solution:
    """The parameter found, or the reason why there is none.

    Parameters
    ----------
    gamma : float
        Largest amplification that meets the wish.
    parameter, value : str or None, float or None
        What to set, rounded to the safe side at six digits (more or fewer where those miss the wish); none where no
        value of it meets the wish.
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
    >>> from sfumato.core.laws.domains import Integers
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
    parameter, find, how = _SOLVERS[law["name"]]
    least = find(spec, min(gamma, _MOST))
    for digits in _DIGITS:
        value = _round(least, digits, how)
        found = NoiseSpec(spec.domain, {**law, parameter: value})
        if found.gamma <= gamma * (1.0 + _SLACK):
            words = f"{parameter} = {value:.15g} meets it: odds then change by at most a factor of {found.gamma:.4g}."
            return Solution(gamma, parameter, value, found, words)
    return Solution(gamma, None, None, None, f"No {parameter} was found that meets it; choose another rho1 or rho2.")


def _none(name: str) -> str:
    if name == "uniform":
        why = "Bounded noise rules values out, whatever its reach: no reach meets any bound."
    elif name == "shift-modulo":
        why = "A shift rules values out unless it goes round the whole domain, and then hardly anything can be learned."
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
    return gamma / (gamma + spec.domain.size - 1)


def _weight(spec: NoiseSpec, gamma: float) -> float:
    """Solve (w h + (1 - w)/n) = gamma (w l + (1 - w)/n) for each output, h and l its extremes; the smallest w holds."""
    operator = spec.operator
    assert isinstance(operator, Mixture)
    rest = (gamma - 1.0) / operator.size
    extremes = [(float(high), float(low)) for high, low in operator.of.extremes]
    bounds = [rest / (high - gamma * low + rest) for high, low in extremes if high > gamma * low]
    return min([1.0, *bounds])


def _scale(spec: NoiseSpec, gamma: float) -> float:
    """Solve range / scale = ln gamma."""
    return (spec.domain.size - 1) * spec.domain.step / math.log(gamma)


def _epsilon(_spec: NoiseSpec, gamma: float) -> float:
    return math.log(gamma)


def _round(number: float, digits: int, how: str) -> float:
    """Round towards more noise, so that the bound still holds; a chance near 1 by the digits of what is left to 1."""
    exact = Decimal(number)
    if how == _CHANCE and number > 0.5:
        return float(1 - Context(prec=digits, rounding=ROUND_CEILING).plus(1 - exact))
    return float(Context(prec=digits, rounding=ROUND_FLOOR if how == _CHANCE else how).plus(exact))


_CHANCE = "chance"  # the smaller the safer, and at most 1

_SOLVERS: dict[str, tuple[str, Callable[[NoiseSpec, float], float], str]] = {
    "keep-or-replace": ("keep", _keep, _CHANCE),
    "mixture": ("weight", _weight, _CHANCE),
    "laplace": ("scale", _scale, ROUND_CEILING),
    "response": ("epsilon", _epsilon, ROUND_FLOOR),
    "subset": ("epsilon", _epsilon, ROUND_FLOOR),
}


_KEYS = {"uniform": "reach", "gaussian": "sd", "laplace": "scale"}


def noise_for_privacy(
    law: str, privacy: float, low: float, high: float, confidence: float = 0.95, *, step: float | None = None
) -> dict[str, Any]:
    """Law under which a value is known, at a confidence, to no narrower interval than a share of its range.

    With uniform noise of reach a that interval is confidence * 2a wide, with Gaussian noise of deviation s at 95 % it
    is 2 * 1.96 s, and with Laplace noise of scale b it is 2 b ln(1 / (1 - confidence)).

    Parameters
    ----------
    law : {"uniform", "gaussian", "laplace"}
    privacy : float
        Width of the interval as a share of the range: 1.0 is AS00's "100 % privacy".
    low, high : float
        The declared range.
    confidence : float, default=0.95
    step : float, optional
        The grid of the domain. Uniform noise reaches a whole number of steps; its reach is then rounded up to one.

    Returns
    -------
    dict
        The law of a `NoiseSpec`.

    Notes
    -----
    This is the size of the noise in words, no guarantee: it takes the prior for flat and says nothing of what answers
    beyond the ends of the range prove [errata JS07.4]. `NoiseSpec.gamma` has what is guaranteed.

    Examples
    --------
    >>> noise_for_privacy("uniform", 1.0, 0, 95)
    {'name': 'uniform', 'reach': 50.0}
    >>> round(noise_for_privacy("gaussian", 0.5, 0, 100)["sd"], 3)
    12.755
    >>> noise_for_privacy("uniform", 0.5, 1, 16, step=1)
    {'name': 'uniform', 'reach': 4.0}
    """
    if law not in LAWS:
        raise OptionError(f"there is no noise law {law!r}; choose one of {', '.join(LAWS)}")
    _check(privacy, low, high, confidence, step)
    half = privacy * (high - low) / 2.0
    if law == "uniform":
        size = half / confidence
        if step is not None:
            size = math.ceil(size / step * (1.0 - 1e-12)) * step
    elif law == "gaussian":
        from scipy.special import ndtri

        size = half / float(ndtri((1.0 + confidence) / 2.0))
    else:
        size = half / -math.log1p(-confidence)
    return {"name": law, _KEYS[law]: float(size)}


def _check(privacy: float, low: float, high: float, confidence: float, step: float | None) -> None:
    if not (math.isfinite(privacy) and privacy > 0.0):
        raise OptionError("privacy must be a share of the range above 0; 1 is an interval as wide as the range")
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise OptionError("the range must go from a lower to a higher number; declare both")
    if not 0.0 < confidence < 1.0:
        raise OptionError("confidence must be a probability between 0 and 1")
    if step is not None and not (math.isfinite(step) and step > 0.0):
        raise OptionError("the step of a grid must be a number above 0")
