"""Value-class membership: the interval, the rounded value or the parent is sent, not the value [JS07, sec. 3.2.2]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sfumato.errors import OptionError
from sfumato.laws.chances import check_codes, check_outputs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Membership"]


@dataclass(frozen=True)
class Membership:
    """Each value is sent as the class that it lies in; nothing is random, so the class is always true.

    Parameters
    ----------
    size : int
    cells : tuple of int
        Class of each place, 0, 1, ..., each one in use.

    Examples
    --------
    >>> Membership(4, (0, 0, 1, 1)).probabilities([1])
    array([[0., 0., 1., 1.]])
    """

    size: int
    cells: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", tuple(self.cells))
        if len(self.cells) != self.size or self.size < 2:
            raise OptionError("membership needs the class of each value of the domain")
        if set(self.cells) != set(range(max(self.cells) + 1)):
            raise OptionError("the classes of a membership are counted 0, 1, 2, ... and each holds a value")

    @property
    def outputs(self) -> range:
        """All classes."""
        return range(max(self.cells) + 1)

    @property
    def wraps(self) -> bool:
        """No: nothing moves."""
        return False

    @property
    def gamma(self) -> float:
        """Infinite: a class rules the values of all others out."""
        return math.inf if len(self.outputs) > 1 else 1.0

    @property
    def epsilon(self) -> float:
        """The logarithm of gamma."""
        return math.log(self.gamma)

    @cached_property
    def _classes(self) -> NDArray[np.int64]:
        import numpy as np

        return np.array(self.cells, dtype=np.int64)

    def randomize(self, codes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:  # noqa: ARG002
        """Give the class of each input; the generator is not used."""
        import numpy as np

        return np.asarray(self._classes[check_codes(codes, self.size)])

    def probabilities(self, outputs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Give P[output | input], a row for each output."""
        import numpy as np

        y = check_outputs(outputs, self.outputs)
        return np.asarray(y[:, None] == self._classes, dtype=np.float64)
