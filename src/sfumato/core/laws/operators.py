"""Randomization operators: from the place of a value to the place that is sent, with known chances [JS07, sec. 3]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sfumato.core.errors import OptionError
from sfumato.core.laws.additive import Additive
from sfumato.core.laws.finite import KeepOrReplace, Mixture, ShiftModulo
from sfumato.core.laws.membership import Membership
from sfumato.core.laws.response import Response

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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


class Operator(Protocol):
    """A randomization with known chances, from places of a domain to outputs that are whole numbers."""

    @property
    def size(self) -> int:
        """Number of inputs, 0 to size - 1."""
        ...

    @property
    def outputs(self) -> range | None:
        """All outputs where there are finitely many; they may begin below 0. None where there is no end to them."""
        ...

    @property
    def gamma(self) -> float:
        """Amplification: the largest ratio of the chances that two inputs give to one output [EGS03]."""
        ...

    @property
    def epsilon(self) -> float:
        """Local differential privacy: the logarithm of gamma."""
        ...

    @property
    def wraps(self) -> bool:
        """Whether the domain is closed to a ring."""
        ...

    def randomize(self, codes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw an output for each input, exactly: whole numbers of the generator are compared with whole numbers."""
        ...

    def probabilities(self, outputs: NDArray[np.int64]) -> NDArray[np.float64]:
        """P[output | input], a row for each output and a column for each input."""
        ...


def transition(operator: Operator) -> NDArray[np.float64]:
    """Matrix of all chances, a row for each input and a column for each output.

    Examples
    --------
    >>> transition(KeepOrReplace(3, 0.5))
    array([[0.5 , 0.25, 0.25],
           [0.25, 0.5 , 0.25],
           [0.25, 0.25, 0.5 ]])
    """
    import numpy as np

    if operator.outputs is None:
        raise OptionError("there is no end to the outputs of this noise, so it has no matrix; ask for single outputs")
    return np.ascontiguousarray(operator.probabilities(np.arange(operator.outputs.start, operator.outputs.stop)).T)


def likelihoods(operator: Operator, outputs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Rows in proportion to P[output | input], the largest of each row 1, so that none vanishes far out."""
    import numpy as np

    if isinstance(operator, Additive):
        return operator.likelihoods(outputs)
    rows = operator.probabilities(outputs)
    largest = rows.max(axis=1, keepdims=True)
    return np.asarray(rows / np.where(largest > 0, largest, 1.0))
