"""What an amplification promises: from a prior rho1 to a posterior of at most rho2 [EGS03].

EGS03: A. Evfimievski, J. Gehrke, R. Srikant: Limiting Privacy Breaches in Privacy Preserving Data Mining. PODS 2003.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from sfumato.errors import OptionError

__all__ = ["combine", "downward_bound", "gamma_for", "gamma_for_downward", "upward_bound"]


def upward_bound(gamma: float, rho1: float) -> float:
    """Give the most that a property of prior probability rho1 or less can be believed after any one output.

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
    """Give the least that a property of prior probability rho1 or more can be believed after any one output.

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
    """Give the largest gamma under which no property goes from rho1 or less to above rho2.

    Examples
    --------
    >>> round(gamma_for(0.05, 0.5), 9)
    19.0
    """
    if not 0 < rho1 <= rho2 < 1:
        raise OptionError("a wanted bound needs 0 < rho1 <= rho2 < 1; choose other probabilities")
    return rho2 / rho1 * ((1.0 - rho1) / (1.0 - rho2))


def gamma_for_downward(rho1: float, rho2: float) -> float:
    """Give the largest gamma under which no property goes from rho1 or more to below rho2.

    Examples
    --------
    >>> round(gamma_for_downward(0.5, 0.25), 9)
    3.0
    """
    if not 0 < rho2 <= rho1 < 1:
        raise OptionError("a wanted bound downward needs 0 < rho2 <= rho1 < 1; choose other probabilities")
    return gamma_for(1.0 - rho1, 1.0 - rho2)


def combine(gammas: Iterable[float]) -> float:
    """Give the amplification of several answers of one person, or several of their columns: the product.

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
