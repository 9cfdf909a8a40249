"""The worst-case guarantee of Laplace noise on principal components [BCG10, sec. 3.2, theorem 1].

Noise of scale b times the range of a component makes no released value more than e^(1/b) times as likely for one value
inside the range than for another. So the odds of whatever is asked about that component change by at most this factor,
upward and downward. What is asked about a whole record may depend on all m components: its odds change by at most
e^(m/b) (errata BCG10.2).
"""

from __future__ import annotations

import math

from sfumato.errors import OptionError
from sfumato.laws.amplification import downward_bound, gamma_for, upward_bound

__all__ = ["GUARANTEES", "highest_posterior", "log_factor", "lowest_posterior", "prevents_breach", "solve_b"]

GUARANTEES = ("component", "record")
"""What a bound speaks of: one principal component, or whatever is asked of a record as a whole."""

_LARGEST = 700.0  # e to this is still a double
_SLACK = 1e-9  # the theorem asks for more than equality, and a scale is drawn as a fraction


def log_factor(b: float, components: int = 1) -> float:
    """Give the logarithm of the factor by which odds can change: 1/b for each component that gets noise.

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
        raise OptionError("b, the scale of the noise in ranges, must be a number above 0; the usual one is 0.2")
    if isinstance(components, bool) or components < 1:
        raise OptionError("a bound speaks of at least one component")
    return components / b


def highest_posterior(rho1: float, b: float, components: int = 1) -> float:
    """Give rho2: how probable, at most, what had probability rho1 can look after the release [BCG10, theorem 1].

    Examples
    --------
    >>> round(highest_posterior(0.001, 0.2), 3)  # the paper's 0.13
    0.129
    >>> round(highest_posterior(0.001, 0.2, components=8), 3), round(highest_posterior(0.001, 1.0, components=8), 3)
    (1.0, 0.749)
    """
    return upward_bound(_factor(b, components), rho1)


def lowest_posterior(rho2: float, b: float, components: int = 1) -> float:
    """Give rho1: how improbable, at most, what had probability rho2 can look after the release.

    Examples
    --------
    >>> round(lowest_posterior(0.999, 0.2), 3) == round(1.0 - highest_posterior(0.001, 0.2), 3)
    True
    """
    return downward_bound(_factor(b, components), rho2)


def prevents_breach(rho1: float, rho2: float, b: float, components: int = 1) -> bool:
    """Tell whether there is neither an upward rho1-to-rho2 nor a downward rho2-to-rho1 breach [BCG10, theorem 1].

    Implements rho2 (1 - rho1) / (rho1 (1 - rho2)) > e^(1/b); the paper's delta is b.
    """
    return _gap(rho1, rho2) > log_factor(b, components)


def solve_b(rho1: float, rho2: float, components: int = 1) -> float:
    """Give the least noise that prevents both breaches: b as a scale in ranges, for each component.

    Examples
    --------
    >>> round(solve_b(0.001, 0.13), 4), round(solve_b(0.001, 0.13, components=8), 3)
    (0.1998, 1.598)
    """
    if isinstance(components, bool) or components < 1:
        raise OptionError("a bound speaks of at least one component")
    return components / _gap(rho1, rho2) * (1.0 + _SLACK)


def _factor(b: float, components: int) -> float:
    """Give the factor itself, infinite where it is too large to be written."""
    log = log_factor(b, components)
    return math.exp(log) if log < _LARGEST else math.inf


def _gap(rho1: float, rho2: float) -> float:
    """Give how far apart the odds are, as a logarithm."""
    gap = math.log(gamma_for(rho1, rho2))
    if gap <= 0:
        raise OptionError("rho2 must lie above rho1; take 0.001 and 0.13, for example")
    return gap
