"""Privacy accounting: concentrated differential privacy, its conversion to (epsilon, delta), and what it bounds.

Bun and Steinke, *Concentrated differential privacy*, TCC 2016; Canonne, Kamath and Steinke, *The discrete Gaussian for
differential privacy*, NeurIPS 2020, corollary 13..
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["delta_of", "epsilon_of", "loss_bound", "membership_bounds", "rho_of"]

_ORDERS = 1.0 + np.geomspace(1e-4, 1e6, 20_000)  # any order gives a valid bound, so that a grid errs on the safe side
_SLACK = 1e-9  # relative; covers the rounding of floats in the conversion


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
