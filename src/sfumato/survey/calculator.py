"""The breach calculator as a whole: what an answer tells, what no answer can tell, and which parameter would do."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.distributions.amplification import downward_bound, gamma_for, gamma_for_downward, upward_bound
from sfumato.core.distributions.domains import Dates, Labels
from sfumato.core.distributions.finite import Mixture
from sfumato.core.distributions.noise import LAWS
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.errors import OptionError
from sfumato.survey.breach import Breach, answer_breach, percent, verdict
from sfumato.survey.channel import can_be_counted, read_prior, uncertainty, uniform_prior

__all__ = ["Calculation", "Solution", "breach", "noise_for_privacy", "solve"]

_USUAL_RHO1 = 0.01


@dataclass(frozen=True)
class Calculation:
    """What a noise specification promises, and what an answer tells under it.

    Parameters
    ----------
    spec : NoiseSpec
    found : Breach or None
        What an answer tells about the property; None if none was asked about.
    rho1 : float or None
        Prior probability that the bound is stated for.
    solution : Solution or None
        The parameter that keeps rho1 from becoming rho2, where that was asked.
    entropy : dict or None
        Uncertainty before and after an answer; None if there are too many values to look at them one by one.
    """

    spec: NoiseSpec
    found: Breach | None
    rho1: float | None
    solution: Solution | None
    entropy: dict[str, float] | None

    @property
    def verdict(self) -> str:
        """What is guaranteed, in a sentence."""
        return verdict(self.spec, _USUAL_RHO1 if self.rho1 is None else self.rho1)

    def to_json(self) -> Mapping[str, Any]:
        """All of it as a JSON document; what is infinite is null."""
        spec, found, rho1, solution = self.spec, self.found, self.rho1, self.solution
        worst = (
            None
            if found is None
            else {
                "raising": {"output": found.raising, "posterior": found.worst.highest},
                "lowering": {"output": found.lowering, "posterior": found.worst.lowest},
            }
        )
        return {
            "spec": spec.digest,
            "property": None if found is None else found.about,
            **{name: None if found is None else getattr(found, name) for name in ("prior", "posterior", "output")},
            "worst": worst,
            "gamma": _finite(spec.gamma),
            "epsilon": _finite(spec.epsilon),
            "rho1": rho1,
            "rho2_bound": None if rho1 is None else upward_bound(spec.gamma, rho1),
            "rho2_bound_down": None if rho1 is None else downward_bound(spec.gamma, rho1),
            "verdict": self.verdict,
            "solution": solution and {key: getattr(solution, key) for key in ("gamma", "parameter", "value", "words")},
            "entropy": self.entropy,
        }

    def describe(self) -> str:
        """All of it in sentences, one a line."""
        spec, found = self.spec, self.found
        lines = [spec.describe()]
        if found is not None:
            lines.append(f"Prior probability of {found.about}: {percent(found.prior)}.")
            lines.append(f"Posterior probability after the answer {found.output}: {percent(found.posterior)}.")
            lines.append(
                f"Highest posterior probability: {percent(found.worst.highest)}, after {found.raising}. Lowest: "
                f"{percent(found.worst.lowest)}, after {found.lowering}."
            )
            if found.certain:
                lines.append("Some answers prove the property or its opposite.")
        gamma = "infinite" if math.isinf(spec.gamma) else f"{spec.gamma:.6g}"
        epsilon = "infinite" if math.isinf(spec.epsilon) else f"{spec.epsilon:.4g}"
        lines.append(f"Amplification gamma: {gamma}; epsilon: {epsilon}. Verdict: {self.verdict}.")
        if self.solution is not None:
            lines.append(f"Required: gamma at most {self.solution.gamma:.4g}. {self.solution.words}")
        return "\n".join([*lines, _left(self.entropy)])


def breach(
    spec: NoiseSpec | str | Path,
    *,
    prior: Floats | str | Path = "uniform",
    property: str | None = None,  # noqa: A002 (as the command line and the document have it)
    output: Any = None,
    rho1: float | None = None,
    rho2: float | None = None,
) -> Calculation:
    """What an answer tells about a property, and what no answer can tell under this noise.

    Parameters
    ----------
    spec : NoiseSpec or path
    prior : array, path or "uniform"
        What is believed before: a probability for each value, or a CSV file of value and probability, or of observed
        values.
    property : str, optional
        For example ``"x == 0"`` or ``"x not in 200..800"``.
    output : number or label, optional
        The answer that is seen; by default the worst one.
    rho1 : float, optional
        Prior probability for the bound; by default that of the property.
    rho2 : float, optional
        Largest posterior probability: find the noise parameter that keeps it.

    Examples
    --------
    >>> from sfumato.core.distributions.domains import Integers
    >>> spec = NoiseSpec(Integers(0, 1000), {"name": "keep-or-replace", "keep": 0.2})
    >>> round(breach(spec, property="x == 0", output=0).to_json()["posterior"], 3)
    0.2
    """
    if output is not None and property is None:
        raise OptionError("--output needs a property whose probability is computed; add --property")
    if rho2 is not None and rho1 is None and property is None:
        raise OptionError("--rho2 needs a --rho1, or a --property whose prior is taken")
    spec = spec if isinstance(spec, NoiseSpec) else NoiseSpec.read(spec)
    believed = _prior(prior, spec, needed=property is not None)
    found = None
    if property is not None and believed is not None:
        found = answer_breach(spec, believed, property, None if output is None else _answer(output, spec))
    before = found.prior if rho1 is None and found is not None else rho1
    solution = None if rho2 is None or before is None else solve(spec, before, rho2)
    return Calculation(spec, found, before, solution, None if believed is None else _entropy(spec, believed))


def _prior(given: Any, spec: NoiseSpec, *, needed: bool) -> Floats | None:
    """Prior that was given; none if no one asks for it and the domain is too large to write it out."""
    if isinstance(given, np.ndarray):
        return given
    if str(given) != "uniform":
        return read_prior(given, spec.domain)
    return uniform_prior(spec.domain) if needed or can_be_counted(spec.operator) else None


def _answer(given: Any, spec: NoiseSpec) -> Any:
    if isinstance(spec.released, Labels):
        return given
    if isinstance(spec.domain, Dates):
        return spec.domain.count(given)
    try:
        return float(given)
    except ValueError:
        raise OptionError("--output must be a number under this specification") from None


def _entropy(spec: NoiseSpec, prior: Floats) -> dict[str, float]:
    """Uncertainty that is left, and what it would be for one who does not know the distribution."""
    left = uncertainty(spec.operator, prior)
    return {
        "before": left.before,
        "after": left.after,
        "privacy": left.privacy,
        "nominal_privacy": uncertainty(spec.operator, uniform_prior(spec.domain)).privacy,
        "loss": left.loss,
    }


def _left(entropy: dict[str, float] | None) -> str:
    if entropy is None:
        return "Remaining privacy: not computed, because there are too many values."
    before, left = _many(math.exp2(entropy["before"])), _many(entropy["privacy"])
    return (
        f"Remaining privacy, as a number of equally likely values, against an attacker who knows the distribution: "
        f"{before} before the answer, {left} after it (without that knowledge {_many(entropy['nominal_privacy'])})."
    )


def _many(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _finite(number: float) -> float | None:
    return None if math.isinf(number) else number


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
        What to set, rounded to the safe side at six digits (more or fewer where those miss the wish); none if no
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
    >>> from sfumato.core.distributions.domains import Integers
    >>> found = solve(NoiseSpec(Integers(0, 1000), {"name": "keep-or-replace", "keep": 0.2}), 0.01, 0.1)
    >>> found.value, round(found.spec.bound(0.01), 4)
    (0.0108803, 0.1)
    """
    if rho1 == rho2:
        raise OptionError("rho1 and rho2 are equal, so no answer may carry information; choose different ones")
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
) -> Mapping[str, Any]:
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
    This is the size of the noise in words, no guarantee: it assumes a flat prior and does not describe what answers
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
        raise OptionError(f"unknown noise distribution {law!r}; choose one of {', '.join(LAWS)}")
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
