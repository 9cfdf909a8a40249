"""How much noise a wanted privacy takes, as AS00 measures it: by the interval that a value is known to lie in.

AS00: R. Agrawal, R. Srikant: Privacy-Preserving Data Mining, SIGMOD 2000, section 2.
"""

from __future__ import annotations

import math
from typing import Any

from sfumato.core.errors import OptionError
from sfumato.core.laws.noise import LAWS

__all__ = ["noise_for_privacy"]

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
