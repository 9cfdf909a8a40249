"""Laws on domains too large for a matrix: what their form gives in time proportional to the domain."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

from sfumato.laws.additive import Additive
from sfumato.laws.chances import share
from sfumato.laws.finite import KeepOrReplace, Mixture, ShiftModulo
from sfumato.laws.membership import Membership
from sfumato.laws.noise import DiscreteLaplace, DiscreteUniform
from sfumato.laws.operators import Operator

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["answer_entropy", "entropy", "has_form", "noise_entropy", "spread"]


def has_form(operator: Operator) -> bool:
    """Tell whether a law can be treated here: all but Gaussian noise and matrices."""
    if isinstance(operator, Mixture):
        return isinstance(operator.of, KeepOrReplace | ShiftModulo | Mixture) and has_form(operator.of)
    if isinstance(operator, Additive):
        return isinstance(operator.law, DiscreteLaplace | DiscreteUniform)
    return isinstance(operator, KeepOrReplace | ShiftModulo | Membership)


def spread(operator: Operator, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the sum over inputs of weight times chance, for each of `sfumato.laws.channel.telling_outputs`.

    Of Laplace noise the outputs beyond the ends are left out. Where no input of positive weight leads to an output the
    sum is exactly 0; else windows are differences of running sums, off by about 1e-16 of all weights.
    """
    import numpy as np

    if isinstance(operator, KeepOrReplace):
        keep, other = (float(chance) for chance in operator.chances)
        return np.asarray(other * (weights.sum() - weights) + keep * weights, dtype=np.float64)
    if isinstance(operator, Mixture):
        weight = share("weight", operator.weight)
        rest = float((1 - weight) / operator.size)
        inner = cast("Operator", operator.of)
        return np.asarray(float(weight) * spread(inner, weights) + rest * weights.sum(), dtype=np.float64)
    if isinstance(operator, Membership):
        return np.asarray(np.bincount(operator.cells, weights=weights), dtype=np.float64)
    if isinstance(operator, ShiftModulo):
        rounds, rest = divmod(
            2 * operator.reach + 1, operator.size
        )  # all values so often, and a window from y - reach on
        ring = np.concatenate([weights, weights])
        part = np.roll(_windows(ring, rest)[: operator.size], operator.reach) if rest else np.zeros(operator.size)
        return np.asarray(part + rounds * weights.sum()) / (2 * operator.reach + 1)
    assert isinstance(operator, Additive)
    if isinstance(operator.law, DiscreteUniform):
        width = 2 * operator.law.steps + 1
        return _windows(np.pad(weights, width - 1), width) / width
    return _two_sided(weights, operator.epsilon / (operator.size - 1))


def noise_entropy(operator: Operator) -> float:
    """Give H(Y|X) in bits, which is the same for every input: that of the noise."""
    import numpy as np

    if isinstance(operator, Membership):
        return 0.0
    if isinstance(operator, Additive):
        if isinstance(operator.law, DiscreteUniform):
            return math.log2(2 * operator.law.steps + 1)
        decay = operator.epsilon / (operator.size - 1)  # H = -log tanh(d/2) + d E|k|, and E|k| = 1 / sinh d
        return (decay / math.sinh(decay) - math.log(math.tanh(decay / 2.0))) / math.log(2.0)
    row = operator.probabilities(np.array([0]))[0]  # every output has the same chances, in another order
    return entropy(row)


def answer_entropy(operator: Operator, chances: NDArray[np.float64]) -> float:
    """Give H(Y) in bits, from what ``spread`` makes of the prior; Laplace answers beyond the ends are added."""
    if not (isinstance(operator, Additive) and isinstance(operator.law, DiscreteLaplace)):
        return entropy(chances)
    decay, beyond = operator.epsilon / (operator.size - 1), 0.0
    ratio = math.exp(-decay)
    for end in (float(chances[0]), float(chances[-1])):
        first = end * ratio  # and first * ratio, first * ratio^2, ...
        if first > 0:
            total = first / -math.expm1(-decay)
            beyond += -total * math.log2(first) + total * decay / math.log(2.0) * ratio / -math.expm1(-decay)
    return entropy(chances) + beyond


def entropy(chances: NDArray[np.float64]) -> float:
    """Give the entropy in bits."""
    import numpy as np

    some = chances[chances > 0]
    return float(-(some * np.log2(some)).sum()) + 0.0


def _windows(weights: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Sum each window of a width; a window without positive weight is exactly 0."""
    import numpy as np

    sums = np.concatenate([[0.0], np.cumsum(weights)])
    counts = np.concatenate([[0], np.cumsum(weights > 0)])
    some = counts[width:] > counts[:-width]
    return np.where(some, np.maximum(sums[width:] - sums[:-width], 0.0), 0.0)


def _two_sided(weights: NDArray[np.float64], decay: float) -> NDArray[np.float64]:
    """Sum weights times tanh(d/2) e^(-d |distance|), by one pass from either side."""
    import numpy as np
    from scipy.signal import lfilter

    ratio = math.exp(-decay)
    left = lfilter([1.0], [1.0, -ratio], weights)
    right = lfilter([1.0], [1.0, -ratio], weights[::-1])[::-1]
    return np.asarray(math.tanh(decay / 2.0) * (left + right - weights), dtype=np.float64)
