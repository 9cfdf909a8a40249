"""Privacy breaches under a bounded amplification [EGS03], and the privacy budget in zero-concentrated form.

EGS03: A. Evfimievski, J. Gehrke, R. Srikant: Limiting Privacy Breaches in Privacy Preserving Data Mining. PODS 2003.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import OptionError

__all__ = [
    "GUARANTEES",
    "combine",
    "delta_of",
    "downward_bound",
    "epsilon_of",
    "gamma_for",
    "gamma_for_downward",
    "highest_posterior",
    "log_factor",
    "loss_bound",
    "lowest_posterior",
    "membership_bounds",
    "prevents_breach",
    "rho_of",
    "solve_b",
    "upward_bound",
]


def upward_bound(gamma: float, rho1: float) -> float:
    """Highest posterior, after any one output, of a property with prior probability rho1 or less.

    Odds change by at most gamma: rho2 = gamma rho1 / (1 - rho1 + gamma rho1). 1 where gamma is infinite.

    Examples
    --------
    >>> round(upward_bound(250.0, 0.01), 4), upward_bound(math.inf, 0.01)
    (0.7163, 1.0)
    """
    _check(gamma, rho1)
    if rho1 in (0.0, 1.0):
        return float(rho1)
    return 1.0 if math.isinf(gamma) else gamma * rho1 / (1.0 - rho1 + gamma * rho1)


def downward_bound(gamma: float, rho1: float) -> float:
    """Lowest posterior, after any one output, of a property with prior probability rho1 or more.

    The same for the opposite property: rho1 / (rho1 + gamma (1 - rho1)). 0 where gamma is infinite.

    Examples
    --------
    >>> downward_bound(3.0, 0.5), downward_bound(math.inf, 0.5)
    (0.25, 0.0)
    """
    _check(gamma, rho1)
    if rho1 in (0.0, 1.0):
        return float(rho1)
    return 0.0 if math.isinf(gamma) else rho1 / (rho1 + gamma * (1.0 - rho1))


def gamma_for(rho1: float, rho2: float) -> float:
    """Largest gamma under which no property rises from rho1 or less to above rho2.

    Examples
    --------
    >>> round(gamma_for(0.05, 0.5), 9)
    19.0
    """
    if not 0 < rho1 <= rho2 < 1:
        raise OptionError("a wanted bound needs 0 < rho1 <= rho2 < 1; choose other probabilities")
    return rho2 / rho1 * ((1.0 - rho1) / (1.0 - rho2))


def gamma_for_downward(rho1: float, rho2: float) -> float:
    """Largest gamma under which no property falls from rho1 or more to below rho2.

    Examples
    --------
    >>> round(gamma_for_downward(0.5, 0.25), 9)
    3.0
    """
    if not 0 < rho2 <= rho1 < 1:
        raise OptionError("a wanted bound downward needs 0 < rho2 <= rho1 < 1; choose other probabilities")
    return gamma_for(1.0 - rho1, 1.0 - rho2)


def combine(gammas: Iterable[float]) -> float:
    """Amplification of several answers of one person: the product.

    Examples
    --------
    >>> combine([6.0, 2.5]), combine([6.0, math.inf])
    (15.0, inf)
    """
    total = 1.0
    for gamma in gammas:
        _check(gamma, 0.5)
        total *= gamma
    return total


def _check(gamma: float, rho1: float) -> None:
    if isinstance(gamma, bool) or not gamma >= 1:
        raise OptionError("an amplification is a number of 1 or more")
    if isinstance(rho1, bool) or not 0 <= rho1 <= 1:
        raise OptionError("rho1 must be a probability from 0 to 1")


GUARANTEES = ("component", "record")
"""What a bound speaks of: one principal component, or whatever is asked of a record as a whole."""

_LARGEST = 700.0  # e to this is still a double
_SLACK = 1e-9  # the theorem asks for more than equality, and a scale is drawn as a fraction


def log_factor(b: float, components: int = 1) -> float:
    """Logarithm of the factor by which odds can change: 1/b for each noisy component.

    Parameters
    ----------
    b : float
        Scale of the noise in ranges of its component. The scale, not the standard deviation, which is sqrt(2) times as
        much (errata BCG10.1).
    components : int
        How many are asked about at once.

    Examples
    --------
    >>> round(math.exp(log_factor(0.2)), 1)
    148.4
    """
    if isinstance(b, bool) or not math.isfinite(b) or b <= 0:
        raise OptionError("b, the scale of the noise in ranges, must be a number above 0; the default is 0.2")
    if isinstance(components, bool) or components < 1:
        raise OptionError("a bound needs at least one component")
    return components / b


def highest_posterior(rho1: float, b: float, components: int = 1) -> float:
    """Highest posterior after the release of a property with prior probability rho1 [BCG10, theorem 1].

    Examples
    --------
    >>> round(highest_posterior(0.001, 0.2), 3)  # the paper's 0.13
    0.129
    >>> round(highest_posterior(0.001, 0.2, components=8), 3), round(highest_posterior(0.001, 1.0, components=8), 3)
    (1.0, 0.749)
    """
    return upward_bound(_factor(b, components), rho1)


def lowest_posterior(rho2: float, b: float, components: int = 1) -> float:
    """Lowest posterior after the release of a property with prior probability rho2.

    Examples
    --------
    >>> round(lowest_posterior(0.999, 0.2), 3) == round(1.0 - highest_posterior(0.001, 0.2), 3)
    True
    """
    return downward_bound(_factor(b, components), rho2)


def prevents_breach(rho1: float, rho2: float, b: float, components: int = 1) -> bool:
    """Whether there is neither an upward rho1-to-rho2 nor a downward rho2-to-rho1 breach [BCG10, theorem 1].

    Implements rho2 (1 - rho1) / (rho1 (1 - rho2)) > e^(1/b); the paper's delta is b.
    """
    return _gap(rho1, rho2) > log_factor(b, components)


def solve_b(rho1: float, rho2: float, components: int = 1) -> float:
    """Least noise that prevents both breaches: scale b in units of the range, for each component.

    Examples
    --------
    >>> round(solve_b(0.001, 0.13), 4), round(solve_b(0.001, 0.13, components=8), 3)
    (0.1998, 1.598)
    """
    if isinstance(components, bool) or components < 1:
        raise OptionError("a bound needs at least one component")
    return components / _gap(rho1, rho2) * (1.0 + _SLACK)


def _factor(b: float, components: int) -> float:
    """The factor; infinite if it overflows."""
    log = log_factor(b, components)
    return math.exp(log) if log < _LARGEST else math.inf


def _gap(rho1: float, rho2: float) -> float:
    """Difference of the log odds."""
    gap = math.log(gamma_for(rho1, rho2))
    if gap <= 0:
        raise OptionError("rho2 must lie above rho1; take 0.001 and 0.13, for example")
    return gap


_ORDERS = 1.0 + np.geomspace(1e-4, 1e6, 20_000)  # any order gives a valid bound, so that a grid errs on the safe side


def delta_of(rho: float, epsilon: float) -> float:
    """Smallest delta for which rho-zCDP is known to imply (epsilon, delta)-differential privacy [CKS20, cor. 13]."""
    a = _ORDERS
    exponent = (a - 1) * (a * rho - epsilon) - np.log(a - 1) + a * np.log1p(-1 / a)
    return float(min(1.0, np.exp(exponent.min())))


@cache
def rho_of(epsilon: float, delta: float) -> float:
    """Largest rho whose zCDP implies (epsilon, delta)-differential privacy.

    Examples
    --------
    >>> round(rho_of(1.0, 1e-5), 4)
    0.0306
    """
    low, high = 0.0, epsilon
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle, epsilon) <= delta else (low, middle)
    return low * (1 - _SLACK)


def epsilon_of(rho: float, delta: float) -> float:
    """Smallest epsilon that rho-zCDP implies at this delta."""
    a = _ORDERS
    bounds = a * rho + (-np.log(delta) - np.log(a - 1) + a * np.log1p(-1 / a)) / (a - 1)
    return float(max(0.0, bounds.min()) * (1 + _SLACK))


def loss_bound(rho: float, delta: float) -> float:
    """Logarithm of the largest factor by which odds change, apart from a probability of delta [Bun and Steinke 2016].

    Larger than epsilon: (epsilon, delta) bounds the probability of a release, not the ratio of two.
    """
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


@cache
def membership_bounds(rho: float, false_positives: float = 0.01) -> tuple[float, float]:
    """Largest AUC of any membership inference attack, and its largest true-positive rate at a false-positive rate.

    A test with error rates (x, y) maps the two distributions of the release to two coins, so that their Renyi
    divergence of each order a is at most a rho, in both directions. Both figures are rounded up.
    """
    rates = np.linspace(0.0, 1.0, 1001)[1:]
    curve = _most_true_positives(np.append(rates, false_positives), rho)
    auc = float(curve[:-1].mean())  # right-hand sums of an increasing curve: never below the integral
    return min(1.0, math.ceil(auc * 1e4) / 1e4), min(1.0, math.ceil(float(curve[-1]) * 1e4) / 1e4)


def _most_true_positives(rates: NDArray[np.float64], rho: float) -> NDArray[np.float64]:
    """Largest true-positive rate that zCDP allows at each false-positive rate."""
    orders = 1.0 + np.geomspace(0.02, 2000.0, 120)[:, None]
    low, high = rates.copy(), np.ones(len(rates))
    for _ in range(40):
        middle = (low + high) / 2
        fits = _allowed(middle, rates, orders, rho) & _allowed(rates, middle, orders, rho)
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return high


def _allowed(
    p: NDArray[np.float64], q: NDArray[np.float64], orders: NDArray[np.float64], rho: float
) -> NDArray[np.bool_]:
    """Whether the Renyi divergence of coin p from coin q is at most a rho for all orders a."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        heads = orders * np.log(p) + (1 - orders) * np.log(q)
        tails = orders * np.log1p(-p) + (1 - orders) * np.log1p(-q)
        divergence = np.logaddexp(heads, np.where(p >= 1, -np.inf, tails))
    return np.asarray((divergence <= (orders - 1) * orders * rho + 1e-12).all(axis=0))
