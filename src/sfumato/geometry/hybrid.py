"""Hybrid: each confidential attribute has its own operation; and the way back with the key [OZ03, sec. 4.5]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sfumato.geometry.key import Add, Key, Mult
from sfumato.geometry.rotate import turn_pair

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["hybrid", "invert"]


def hybrid(values: NDArray[np.float64], key: Key, columns: Sequence[str] | None = None) -> NDArray[np.float64]:
    """Apply every operation of N to V in order: the HDP algorithm [OZ03, sec. 4.5].

    Row-wise and in one pass: the rows of a chunk come out as they do with all others.

    Parameters
    ----------
    values : ndarray of shape (n, d)
        V, in own units; a missing number is NaN.
    key : Key
        N.
    columns : sequence of str, optional
        The names of the columns of V; by default those of the key, in its order.
    """
    place = key.places(values, columns)
    moved = np.array(values, order="F")  # columns are worked on one by one
    for step in key.steps:
        if isinstance(step, Add):
            moved[:, place[step.column]] += step.term
        elif isinstance(step, Mult):
            moved[:, place[step.column]] *= step.term
        else:
            turn_pair(moved, place[step.pair[0]], place[step.pair[1]], step.degrees, step.units)
    return moved


def invert(values: NDArray[np.float64], key: Key, columns: Sequence[str] | None = None) -> NDArray[np.float64]:
    """Give the original numbers back, for the owner of the key; undoes all four methods.

    Examples
    --------
    >>> import numpy as np
    >>> key = Key((Add("age", -3), Mult("pay", 2.0)))
    >>> invert(hybrid(np.array([[29.0, 48.0]]), key), key).tolist()
    [[29.0, 48.0]]
    """
    place = key.places(values, columns)
    back = np.array(values, order="F")
    for step in reversed(key.steps):
        if isinstance(step, Add):
            back[:, place[step.column]] -= step.term
        elif isinstance(step, Mult):
            back[:, place[step.column]] /= step.term
        else:
            turn_pair(back, place[step.pair[0]], place[step.pair[1]], -step.degrees, step.units)
    return back
