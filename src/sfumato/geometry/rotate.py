"""Rotation: pairs of confidential attributes are turned by a common angle [OZ03, sec. 4.4]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sfumato.geometry.key import Key, Rotate

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["rotate", "turn_pair"]


def rotate(values: NDArray[np.float64], key: Key, columns: Sequence[str] | None = None) -> NDArray[np.float64]:
    """Turn pairs of columns of V by the angles of N: the RDP algorithm [OZ03, sec. 4.4].

    Parameters
    ----------
    values : ndarray of shape (n, d)
        V, in own units; the key says in which unit each column counts (errata OZ03.1). Where one of a pair is missing
        (NaN) both become so.
    key : Key
        N, with rotations only. Pairs may overlap: they are turned one after the other.
    columns : sequence of str, optional
        The names of the columns of V; by default those of the key, in its order.

    Notes
    -----
    Distances between rows, each column counted in its unit, stay as they are.
    """
    key.check_operations((Rotate.op,), "rotate")
    place = key.places(values, columns)
    moved = np.array(values, order="F")  # columns are worked on one by one
    for step in key.steps:
        assert isinstance(step, Rotate)
        turn_pair(moved, place[step.pair[0]], place[step.pair[1]], step.degrees, step.units)
    return moved


def turn_pair(values: NDArray[np.float64], first: int, second: int, degrees: float, units: tuple[float, float]) -> None:
    """Turn two columns of a matrix in place, clockwise, by the matrix of figure 1 C [OZ03, sec. 3.2]."""
    angle = math.radians(math.remainder(degrees, 360.0))
    cos, sin = math.cos(angle), math.sin(angle)
    x, y = values[:, first] / units[0], values[:, second] / units[1]
    values[:, first] = (cos * x + sin * y) * units[0]
    values[:, second] = (cos * y - sin * x) * units[1]
