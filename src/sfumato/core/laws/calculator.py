"""The breach calculator as a whole: what an answer tells, what no answer can tell, and which parameter would do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import OptionError
from sfumato.core.laws.amplification import downward_bound, upward_bound
from sfumato.core.laws.breach import Breach, answer_breach, percent, verdict
from sfumato.core.laws.channel import can_be_counted, read_prior, uncertainty, uniform_prior
from sfumato.core.laws.dates import Dates
from sfumato.core.laws.domains import Labels
from sfumato.core.laws.solve import Solution, solve
from sfumato.core.laws.spec import NoiseSpec

__all__ = ["Calculation", "breach"]

_USUAL_RHO1 = 0.01


@dataclass(frozen=True)
class Calculation:
    """What a noise specification promises, and what an answer tells under it.

    Parameters
    ----------
    spec : NoiseSpec
    found : Breach or None
        What an answer tells about the property; None where none was asked about.
    rho1 : float or None
        Prior probability that the bound is stated for.
    solution : Solution or None
        The parameter that keeps rho1 from becoming rho2, where that was asked.
    entropy : dict or None
        Uncertainty before and after an answer; None where there are too many values to look at them one by one.
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

    def to_json(self) -> dict[str, Any]:
        """All of it as a JSON document; what is infinite is null."""
        spec, found, rho1 = self.spec, self.found, self.rho1
        document: dict[str, Any] = {
            "spec": spec.digest,
            "property": None if found is None else found.about,
            **{name: None if found is None else getattr(found, name) for name in ("prior", "posterior", "output")},
            "worst": None,
            "gamma": _finite(spec.gamma),
            "epsilon": _finite(spec.epsilon),
            "rho1": rho1,
            "rho2_bound": None if rho1 is None else upward_bound(spec.gamma, rho1),
            "rho2_bound_down": None if rho1 is None else downward_bound(spec.gamma, rho1),
            "verdict": self.verdict,
            "solution": None,
        }
        if found is not None:
            document["worst"] = {
                "raising": {"output": found.raising, "posterior": found.worst.highest},
                "lowering": {"output": found.lowering, "posterior": found.worst.lowest},
            }
        if self.solution is not None:
            told = ("gamma", "parameter", "value", "words")
            document["solution"] = {key: getattr(self.solution, key) for key in told}
        return {**document, "entropy": self.entropy}

    def describe(self) -> str:
        """All of it in sentences, one a line."""
        spec, found = self.spec, self.found
        lines = [spec.describe()]
        if found is not None:
            lines.append(f"Before: {found.about} is {percent(found.prior)} likely.")
            lines.append(f"After the answer {found.output}: {percent(found.posterior)}.")
            lines.append(
                f"The answer that raises it most is {found.raising} ({percent(found.worst.highest)}), the one that "
                f"lowers it most {found.lowering} ({percent(found.worst.lowest)})."
            )
            if found.certain:
                lines.append("Some answers prove the property, or its opposite.")
        gamma = "infinite" if math.isinf(spec.gamma) else f"{spec.gamma:.6g}"
        epsilon = "infinite" if math.isinf(spec.epsilon) else f"{spec.epsilon:.4g}"
        lines.append(f"Amplification gamma is {gamma}, epsilon {epsilon}. Verdict: {self.verdict}.")
        if self.solution is not None:
            lines.append(f"Wanted: gamma of at most {self.solution.gamma:.4g}. {self.solution.words}")
        return "\n".join([*lines, _left(self.entropy)])


def breach(
    spec: NoiseSpec | str | Path,
    *,
    prior: NDArray[np.float64] | str | Path = "uniform",
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
        Find the parameter that keeps rho1 from becoming this likely.

    Examples
    --------
    >>> from sfumato.core.laws.domains import Integers
    >>> spec = NoiseSpec(Integers(0, 1000), {"name": "keep-or-replace", "keep": 0.2})
    >>> round(breach(spec, property="x == 0", output=0).to_json()["posterior"], 3)
    0.2
    """
    if output is not None and property is None:
        raise OptionError("--output says what was seen, but not what is asked; add --property")
    if rho2 is not None and rho1 is None and property is None:
        raise OptionError("--rho2 needs a --rho1, or a --property whose prior is taken")
    spec = spec if isinstance(spec, NoiseSpec) else NoiseSpec.read(spec)
    believed = _prior(prior, spec, needed=property is not None)
    found = None
    if property is not None and believed is not None:
        found = answer_breach(spec, believed, property, None if output is None else _answer(output, spec))
    asked = found.prior if rho1 is None and found is not None else rho1
    solution = None if rho2 is None or asked is None else solve(spec, asked, rho2)
    return Calculation(spec, found, asked, solution, None if believed is None else _entropy(spec, believed))


def _prior(given: Any, spec: NoiseSpec, *, needed: bool) -> NDArray[np.float64] | None:
    """Prior that was given; none where nobody asks for it and the domain is too large to write it out."""
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


def _entropy(spec: NoiseSpec, prior: NDArray[np.float64]) -> dict[str, float]:
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
        return "Privacy left: not computed, there are too many values to look at them one by one."
    before, left = _many(math.exp2(entropy["before"])), _many(entropy["privacy"])
    return (
        f"Privacy left: for one who knows the distribution, the value is as uncertain as one of {before} equally "
        f"likely ones before the answer and one of {left} after it ({_many(entropy['nominal_privacy'])} for one who "
        "does not know it)."
    )


def _many(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _finite(number: float) -> float | None:
    return None if math.isinf(number) else number
