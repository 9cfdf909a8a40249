"""The grid on which numbers meet their noise: the number is brought to it first, so that no bit of it shows through."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sfumato.errors import OptionError, SchemaError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sfumato.laws.noise import Law

__all__ = ["add_noise", "choose_step", "snap"]

_FINENESS = 16  # the step is 2^-16 to 2^-17 of the noise, which no analysis feels
_EXACT = 2.0**53


def choose_step(size: float, fineness: int = _FINENESS) -> float:
    """Choose a power of two as the step for noise of a size, without a look at the data.

    Examples
    --------
    >>> choose_step(1.0) == 2.0**-16, choose_step(0.3) == 2.0**-18
    (True, True)
    """
    if isinstance(size, bool) or not math.isfinite(size) or size <= 0:
        raise OptionError("the size of noise must be a number above 0")
    return 2.0 ** (math.floor(math.log2(size)) - fineness)


def snap(values: NDArray[np.float64], step: float) -> NDArray[np.int64]:
    """Give the nearest place of the grid to each number, counted in steps.

    Raises
    ------
    SchemaError
        For numbers so far out that doubles do not tell two places of the grid apart.
    """
    import numpy as np

    places = np.rint(values / step)
    far = int((~(np.abs(places) < _EXACT)).sum())
    if far:
        raise SchemaError(f"{far} numbers lie too far out for the grid of the noise; bound the column, or take more")
    return places.astype(np.int64)


def add_noise(values: NDArray[np.float64], law: Law, rng: np.random.Generator) -> NDArray[np.float64]:
    """Bring numbers to the law's grid and add noise there: whatever the number was, the same places can come out.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.laws.noise import DiscreteLaplace
    >>> noised = add_noise(np.array([0.1, 0.7]), DiscreteLaplace(1.0, step=0.25), np.random.default_rng(1))
    >>> noised % 0.25
    array([0., 0.])
    """
    import numpy as np

    return np.asarray((snap(values, law.step) + law.draw(values.shape, rng)) * law.step, dtype=np.float64)
