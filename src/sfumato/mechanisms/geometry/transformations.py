"""The four ways to move a table by its key, each algorithm of the paper one function [OZ03, sec. 4.2 to 4.5]."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.geometry.key import Add, Key, Mult, Rotate

__all__ = ["hybrid", "invert", "rotate", "scale", "translate", "turn_pair"]


def translate(values: NDArray[np.float64], key: Key, columns: Sequence[str] | None = None) -> NDArray[np.float64]:
    """Shift the columns of V by the terms of N: the TDP algorithm [OZ03, sec. 4.2].

    Parameters
    ----------
    values : ndarray of shape (n, d)
        V, in own units; a missing number is NaN and stays so.
    key : Key
        N, with additions only.
    columns : sequence of str, optional
        The names of the columns of V; by default those of the key, in its order.
    """
    key.check_operations((Add.op,), "translate")
    place = key.places(values, columns)
    moved = np.array(values, order="F")  # columns are worked on one by one
    for step in key.steps:
        assert isinstance(step, Add)
        moved[:, place[step.column]] += step.term  # a'_j <- a_j + e_j
    return moved


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
    """The original numbers, for the owner of the key; undoes all four methods.

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
