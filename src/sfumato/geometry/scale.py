"""Scaling: each confidential attribute is multiplied by a constant [OZ03, sec. 4.3]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sfumato.geometry.key import Key, Mult

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["scale"]


def scale(values: NDArray[np.float64], key: Key, columns: Sequence[str] | None = None) -> NDArray[np.float64]:
    """Multiply the columns of V by the terms of N: the SDP algorithm [OZ03, sec. 4.3].

    Parameters
    ----------
    values : ndarray of shape (n, d)
        V, in own units; a missing number is NaN and stays so.
    key : Key
        N, with multiplications only.
    columns : sequence of str, optional
        The names of the columns of V; by default those of the key, in its order.
    """
    key.check_operations((Mult.op,), "scale")
    place = key.places(values, columns)
    moved = np.array(values, order="F")  # columns are worked on one by one
    for step in key.steps:
        assert isinstance(step, Mult)
        moved[:, place[step.column]] *= step.term  # a'_j <- a_j * e_j
    return moved
