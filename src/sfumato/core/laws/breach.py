"""The breach calculator: what an answer tells about a property, and what no answer can tell [JS07, table 1; EGS03].

EGS03: A. Evfimievski, J. Gehrke, R. Srikant: Limiting Privacy Breaches in Privacy Preserving Data Mining. PODS 2003.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import OptionError, SchemaError
from sfumato.core.laws.amplification import downward_bound, upward_bound
from sfumato.core.laws.channel import blocks, has_form, is_large, spread, telling_outputs
from sfumato.core.laws.operators import Operator, likelihoods
from sfumato.core.laws.properties import holds
from sfumato.core.laws.spec import NoiseSpec

__all__ = [
    "Breach",
    "Worst",
    "answer_breach",
    "draw_guarantee",
    "percent",
    "posterior",
    "posterior_of",
    "verdict",
    "worst_outputs",
]

_TIE = 1e-12  # probabilities this near to each other differ by rounding alone


def posterior(operator: Operator, prior: NDArray[np.float64], output: int) -> NDArray[np.float64]:
    """Probability of each value once an output is known, by Bayes' rule.

    Raises
    ------
    SchemaError
        For an output that cannot occur under this prior.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.core.laws.operators import KeepOrReplace
    >>> posterior(KeepOrReplace(3, 0.5), np.array([0.5, 0.25, 0.25]), 1)
    array([0.4, 0.4, 0.2])
    """
    joint = likelihoods(operator, np.array([output]))[0] * prior
    total = joint.sum()
    if not total > 0:
        raise SchemaError("1 output cannot occur under this prior and law; choose another output or prior")
    return np.asarray(joint / total)


def posterior_of(operator: Operator, prior: NDArray[np.float64], mask: NDArray[np.bool_], output: int) -> float:
    """Probability of a property once an output is known; certainty is exactly 0 or 1."""
    after = posterior(operator, prior, output)
    yes, no = float(after[mask].sum()), float(after[~mask].sum())
    return yes / (yes + no)


@dataclass(frozen=True)
class Worst:
    """The output that raises a property most and the one that lowers it most, with the probability after each."""

    raising: int
    highest: float
    lowering: int
    lowest: float


def worst_outputs(operator: Operator, prior: NDArray[np.float64], mask: NDArray[np.bool_]) -> Worst:
    """Find the outputs that tell most about a property, among all that can occur.

    Notes
    -----
    Of Gaussian noise, which has no end, outputs within `core.laws.channel.TAIL` deviations of the domain are looked
    at. Of equals the first is named. Cost O(outputs * size); on a large domain O(size) where the law has a form for
    it, and probabilities then have an error of about 1e-16 over that of the output.
    """
    found = None
    for outputs, yes, no in _parts(operator, prior, mask):
        can = yes + no > 0
        if not can.any():
            continue
        y, after = outputs[can], yes[can] / (yes[can] + no[can])
        high, low = after.max(), after.min()
        up, down = np.argmax(after >= high * (1.0 - _TIE)), np.argmax(after <= low * (1.0 + _TIE))
        here = Worst(int(y[up]), float(high), int(y[down]), float(low))
        found = here if found is None else _worse(found, here)
    if found is None:
        raise SchemaError("no output can occur under this prior and law; choose another prior")
    return found


def _parts(
    operator: Operator, prior: NDArray[np.float64], mask: NDArray[np.bool_]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]]:
    """Outputs with their joint chances with the property and with its opposite, in proportion for each output."""
    if is_large(operator) and has_form(operator):
        with_it, without = (spread(operator, np.where(which, prior, 0.0)) for which in (mask, ~mask))
        yield np.array(telling_outputs(operator)), with_it, without
        return
    for outputs, likely, _ in blocks(operator):
        yield outputs, likely[:, mask] @ prior[mask], likely[:, ~mask] @ prior[~mask]


def _worse(one: Worst, other: Worst) -> Worst:
    up = other if other.highest > one.highest * (1.0 + _TIE) else one
    down = other if other.lowest < one.lowest * (1.0 - _TIE) else one
    return Worst(up.raising, up.highest, down.lowering, down.lowest)


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
    worst: Worst
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


def answer_breach(spec: NoiseSpec, prior: NDArray[np.float64], about: str, output: Any = None) -> Breach:
    """Compute what an answer tells about a property; without an answer, what the worst one tells.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.core.laws.domains import Integers
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
    >>> from sfumato.core.laws.domains import Integers
    >>> verdict(NoiseSpec(Integers(0, 1000), {"name": "keep-or-replace", "keep": 0.2}), 0.01)
    'guaranteed: what is 1 % likely before any answer is 0.00404 % to 71.6 % likely after it'
    """
    if spec.weakness is not None:
        return f"no guarantee: {spec.weakness}"
    if math.isinf(spec.gamma):
        return f"next to no guarantee: odds can change by a factor of e^{spec.epsilon:.0f}"
    low, high = downward_bound(spec.gamma, rho1), upward_bound(spec.gamma, rho1)
    after = f"{percent(low)} to {percent(high)}"
    return f"guaranteed: what is {percent(rho1)} likely before any answer is {after} likely after it"


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


def _check(prior: NDArray[np.float64], size: int) -> None:
    if prior.shape != (size,) or not (prior >= 0).all() or abs(math.fsum(prior) - 1.0) > 1e-9:
        raise OptionError(f"a prior must have {size} probabilities, one for each value, that add up to 1")


_POINTS = 401
_STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "sfumato", "font.size": 9.0, "text.parse_math": False}


def draw_guarantee(path: Path, gamma: float, found: Breach | None = None, form: str = "png") -> None:
    """Draw the bounds of an amplification over all priors, and the point of one property.

    Parameters
    ----------
    path : path
        Where the picture is written.
    gamma : float
        With an infinite one the bounds are the edges of the picture, and it says so.
    found : Breach, optional
        A property; its prior is marked against its posterior for the worst answers.
    form : {"png", "svg"}
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        sheet = Figure(figsize=(5.2, 6.2), layout="constrained", facecolor="white")
        axes: Any = sheet.add_subplot()
        _paint_bounds(axes, gamma)
        if found is not None:
            _paint_property(axes, found)
        axes.set(xlim=(0, 1), ylim=(-0.02, 1.02), aspect="equal")
        axes.set(xlabel="how likely a property is before the answer", ylabel="how likely it can be after the answer")
        sheet.legend(loc="outside lower center", frameon=False)
        canvas: Any = FigureCanvasSVG(sheet) if form == "svg" else FigureCanvasAgg(sheet)
        metadata = {"Date": None, "Creator": None} if form == "svg" else {"Software": None}
        canvas.print_figure(path, format=form, dpi=150, metadata=metadata)


def _paint_bounds(axes: Any, gamma: float) -> None:
    priors = [step / (_POINTS - 1) for step in range(_POINTS)]
    inside = priors[1:-1]  # what is certain before stays certain
    highest = [upward_bound(gamma, rho1) for rho1 in inside]
    lowest = [downward_bound(gamma, rho1) for rho1 in inside]
    told = (
        "no guarantee: anything can become certain" if math.isinf(gamma) else f"bound for any answer, gamma {gamma:.4g}"
    )
    axes.fill_between(inside, lowest, highest, color="#7aa6c2", alpha=0.25, linewidth=0)
    axes.plot(inside, highest, color="#1f5f8b", linewidth=1.6, label=told)
    axes.plot(inside, lowest, color="#1f5f8b", linewidth=1.6)
    axes.plot(priors, priors, color="#888888", linewidth=0.8, linestyle=":", label="answer tells nothing")


def _paint_property(axes: Any, found: Breach) -> None:
    ends = (found.worst.lowest, found.worst.highest)
    axes.plot([found.prior] * 2, ends, color="#b5482e", linewidth=1.0)
    axes.plot([found.prior] * 2, ends, "o", color="#b5482e", markersize=5, label="this property, worst answers")
    if not any(math.isclose(found.posterior, end, rel_tol=1e-9) for end in ends):
        axes.plot(
            [found.prior], [found.posterior], "x", color="#b5482e", markersize=6, label="this property, this answer"
        )
    right = found.prior < 0.6
    axes.annotate(
        f"{percent(found.prior)} \u2192 {percent(found.worst.highest)}",
        (found.prior, found.worst.highest),
        textcoords="offset points",
        xytext=(7 if right else -7, -12 if found.worst.highest > 0.9 else 6),
        ha="left" if right else "right",
        color="#b5482e",
    )
