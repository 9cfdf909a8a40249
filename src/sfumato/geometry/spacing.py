"""How far apart the numbers of a column lie: after a factor that distance would tell it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Spacing"]

_MOST_DECIMALS = 12  # of numbers that are looked at for a spacing
_MOST_PLACES = 1e12  # within which doubles that went through coordinates still tell neighbouring numbers apart
_ROUNDING = 0.01  # of a place, which these are exact to
_FEW = 1_000


@dataclass
class Spacing:
    """Largest number of a few decimals of which all differences in a column are multiples.

    ``apart`` is that number of all numbers that were added, 0 where they are equal or have none; ``lost`` says that
    they have none, so that no further number gives one.

    Examples
    --------
    >>> import numpy as np
    >>> salaries = Spacing()
    >>> salaries.add(np.array([31_000.0, 52_000.0, 37_000.0]))
    >>> salaries.apart
    3000.0
    >>> salaries.add(np.array([32_500.0]))
    >>> salaries.apart
    1500.0
    """

    apart: float = 0.0
    lost: bool = False
    first: float | None = None
    decimals: int = 0

    def add(self, numbers: NDArray[np.float64]) -> None:
        """Take in further numbers of the column."""
        import numpy as np

        if self.lost or not len(numbers):
            return
        self.first = float(numbers[0]) if self.first is None else self.first
        away = np.append(np.abs(numbers - self.first), self.apart)
        for some in (away[-_FEW:], away):  # most columns without a spacing are told by a few numbers
            if not self._fits(some):
                self._narrow(some)

    def _fits(self, away: NDArray[np.float64]) -> bool:
        import numpy as np

        if self.lost or not self.apart:
            return self.lost
        places = away / self.apart
        return bool(np.abs(places - np.rint(places)).max() * self.apart * 10.0**self.decimals <= _ROUNDING)

    def _narrow(self, away: NDArray[np.float64]) -> None:
        import numpy as np

        largest = float(away.max())
        for decimals in range(_MOST_DECIMALS + 1):
            if largest * 10.0**decimals > _MOST_PLACES:
                break
            places = away * 10.0**decimals
            if np.abs(places - np.rint(places)).max() <= _ROUNDING:
                self.apart = float(np.gcd.reduce(np.rint(places).astype(np.int64)) / 10.0**decimals)
                self.decimals = decimals
                return
        self.apart, self.lost = 0.0, True
