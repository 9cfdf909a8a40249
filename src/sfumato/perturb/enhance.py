"""The procedure to improve privacy: more noise for some of the rows [OZ03, sec. 5.4]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfumato.laws import add_noise

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sfumato.laws import Law

__all__ = ["enhance_rows"]


def enhance_rows(
    values: NDArray[np.float64], share: float, laws: Sequence[Law], rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Add noise to a share rho of the rows, in each attribute by its own law; give also the rows that were chosen.

    Implements the three steps of [OZ03, sec. 5.4]; the laws are the choice of its step 1. The laws here have mean 0,
    those of the paper's example do not (uniform on [-12, 18], normal around 15,000). At least one row is chosen.
    """
    import numpy as np

    rho = min(len(values), max(1, round(share * len(values))))
    chosen = rng.choice(len(values), size=rho, replace=False)  # step 2
    enhanced = values.copy()
    for place, law in enumerate(laws):
        enhanced[chosen, place] = add_noise(values[chosen, place], law, rng)  # step 3, by ADP
    return enhanced, np.asarray(chosen, dtype=np.int64)
