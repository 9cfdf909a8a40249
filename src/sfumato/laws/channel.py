"""A law as a channel from value to answer, block by block: the outputs that tell apart, with their chances."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sfumato.errors import OptionError
from sfumato.laws.additive import Additive
from sfumato.laws.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.laws.operators import Operator, likelihoods

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["MOST_PAIRS", "TAIL", "blocks", "is_large", "telling_outputs"]

TAIL = 8.0
"""Deviations beyond the domain to which outputs of Gaussian noise are looked at: fewer than 1e-14 lie farther."""

LARGE = 2**25
"""Pairs of value and output from which the form of a law is used instead of its matrix."""

MOST_PAIRS = 2**33
"""Pairs that are looked at in all: about a minute."""

_CELLS = 2**21  # of a block


def telling_outputs(operator: Operator) -> range:
    """Give the outputs to look at: all that tell different things, or all but a negligible part of them.

    Laplace noise beyond an end of the domain tells what the end itself tells, so the places of the domain are enough.
    """
    if operator.outputs is not None:
        return operator.outputs
    if isinstance(operator, Additive) and isinstance(operator.law, DiscreteGaussian):
        reach = math.ceil(TAIL * max(operator.law.sd, 1.0))
        return range(-reach, operator.size + reach)
    return range(operator.size)


def is_large(operator: Operator) -> bool:
    """Tell whether values and outputs make too many pairs to look at each of them."""
    return len(telling_outputs(operator)) * operator.size > LARGE


def blocks(operator: Operator) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]]:
    """Go through the telling outputs: some of them, their likelihoods, and the chances these are parts of.

    Yields
    ------
    outputs : array (m,)
    likelihoods : array (m, size)
        In proportion to P[output | input] in each row, the largest 1.
    chances : array (m, 1)
        Times the likelihoods they are P[output | input]; outputs beyond an end of the domain count with the end.
    """
    import numpy as np

    outputs, size = telling_outputs(operator), operator.size
    if len(outputs) * size > MOST_PAIRS:
        raise OptionError(
            f"{len(outputs):,} outputs for {size:,} values are too many to look at; choose a coarser grid"
        )
    laplace = isinstance(operator, Additive) and isinstance(operator.law, DiscreteLaplace)
    rows = max(1, _CELLS // size)
    for start in range(outputs.start, outputs.stop, rows):
        y = np.arange(start, min(start + rows, outputs.stop), dtype=np.int64)
        likely = likelihoods(operator, y)
        chances = operator.probabilities(y).max(axis=1, keepdims=True)
        if laplace:  # P[beyond or at the end] = P[at the end] / (1 - e^(-1/scale))
            ends = (y == 0) | (y == size - 1)
            chances[ends] /= -math.expm1(-operator.epsilon / (size - 1))
        yield y, likely, chances
