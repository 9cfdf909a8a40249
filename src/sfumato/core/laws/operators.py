"""Randomization operators: from the place of a value to the place that is sent, with known chances [JS07, sec. 3]."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import OptionError
from sfumato.core.laws.exact import check_codes, check_outputs, rational
from sfumato.core.laws.finite import KeepOrReplace, Mixture, Operator, ShiftModulo
from sfumato.core.laws.membership import Membership
from sfumato.core.laws.noise import DiscreteGaussian, DiscreteLaplace, DiscreteUniform
from sfumato.core.laws.response import Response

__all__ = [
    "Additive",
    "KeepOrReplace",
    "Membership",
    "Mixture",
    "Operator",
    "Response",
    "ShiftModulo",
    "likelihoods",
    "transition",
]

_LARGEST_EXPONENT = 709.0  # of e, in a double


@dataclass(frozen=True)
class Additive:
    """The place of the value plus noise in whole places; outputs may lie beyond the ends of the domain.

    Laplace noise bounds what an output tells: gamma is e^(range / scale), with the range of the *declared* domain.
    Gaussian noise does not (far out one input is any number of times likelier than another), and bounded noise proves
    facts [errata JS07.4].

    Parameters
    ----------
    size : int
    law : DiscreteLaplace, DiscreteGaussian or DiscreteUniform
        With a step of 1 place.

    Examples
    --------
    >>> Additive(101, DiscreteLaplace(50.0)).epsilon
    2.0
    >>> Additive(101, DiscreteUniform(50.0)).outputs
    range(-50, 151)
    """

    size: int
    law: DiscreteLaplace | DiscreteGaussian | DiscreteUniform

    def __post_init__(self) -> None:
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 2:
            raise OptionError("an operator needs a domain of at least two values")
        if self.law.step != 1:
            raise OptionError("noise on the places of a domain has a step of 1; give its size in places")

    @property
    def outputs(self) -> range | None:
        """All outputs, or None where there is no end to them."""
        if not isinstance(self.law, DiscreteUniform):
            return None
        return range(-self.law.steps, self.size + self.law.steps)

    @property
    def wraps(self) -> bool:
        """No: outputs go on beyond the ends."""
        return False

    @property
    def gamma(self) -> float:
        """Amplification: the largest ratio of the chances that two inputs give to one output."""
        return math.exp(self.epsilon) if self.epsilon <= _LARGEST_EXPONENT else math.inf

    @property
    def epsilon(self) -> float:
        """Local differential privacy: for Laplace noise range / scale, else infinite."""
        return (self.size - 1) * self._decay if isinstance(self.law, DiscreteLaplace) else math.inf

    @property
    def _decay(self) -> float:
        """Logarithm of what one place more costs under Laplace noise; its scale is drawn as this fraction."""
        return 1.0 / float(rational(self.law.scale)) if isinstance(self.law, DiscreteLaplace) else 0.0

    def randomize(self, codes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw an output for each input."""
        x = check_codes(codes, self.size)
        return np.asarray(x + self.law.draw(x.shape, rng), dtype=np.int64)

    def probabilities(self, outputs: NDArray[np.int64]) -> NDArray[np.float64]:
        """P[output | input], a row for each output."""
        return self.law.pmf(self._noise(outputs))

    def likelihoods(self, outputs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Rows in proportion to P[output | input], the largest of each 1: far out they do not vanish."""
        k = np.abs(self._noise(outputs)).astype(np.float64)
        nearest = k.min(axis=1, keepdims=True)
        if isinstance(self.law, DiscreteLaplace):
            return np.asarray(np.exp((nearest - k) * self._decay))
        if isinstance(self.law, DiscreteGaussian):
            return np.asarray(np.exp((nearest - k) * (nearest + k) / (2.0 * self.law.sd**2)))
        return np.where(k <= self.law.steps, 1.0, 0.0)

    def _noise(self, outputs: NDArray[np.int64]) -> NDArray[np.int64]:
        y = np.asarray(outputs, dtype=np.int64) if self.outputs is None else check_outputs(outputs, self.outputs)
        return np.asarray(y[:, None] - np.arange(self.size))


def transition(operator: Operator) -> NDArray[np.float64]:
    """Matrix of all chances, a row for each input and a column for each output.

    Examples
    --------
    >>> transition(KeepOrReplace(3, 0.5))
    array([[0.5 , 0.25, 0.25],
           [0.25, 0.5 , 0.25],
           [0.25, 0.25, 0.5 ]])
    """
    if operator.outputs is None:
        raise OptionError("there is no end to the outputs of this noise, so it has no matrix; ask for single outputs")
    return np.ascontiguousarray(operator.probabilities(np.arange(operator.outputs.start, operator.outputs.stop)).T)


def likelihoods(operator: Operator, outputs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Rows in proportion to P[output | input], the largest of each row 1, so that none vanishes far out."""
    if isinstance(operator, Additive):
        return operator.likelihoods(outputs)
    rows = operator.probabilities(outputs)
    largest = rows.max(axis=1, keepdims=True)
    return np.asarray(rows / np.where(largest > 0, largest, 1.0))
