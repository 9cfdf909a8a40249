"""The five things that shares alone cannot do, and the port of what does them.

Everything linear is arithmetic on shares. Comparing and multiplying what nobody may see needs an engine for secure
computation; it gets shares and gives fresh shares, and keeps nothing between two calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["OPERATIONS", "Engine", "Operation", "evaluate", "result_shapes"]

Shape = tuple[int, ...]
Words = NDArray[np.uint64]

OPERATIONS = ("less_than", "argmin", "extremes", "top", "cross")
"""Names of the operations."""


@dataclass(frozen=True)
class Operation:
    """One call of an engine.

    Parameters
    ----------
    name : str
        - ``less_than``: of two equal shapes, 1 where the first is less, else 0;
        - ``argmin``: of (n, g) the place of the least in each row, of equal ones the first;
        - ``extremes``: of (n, m) the minima and the maxima of the columns;
        - ``top``: of (n,) numbers from 0 to below 2^bits a mask with exactly ``count`` ones at the smallest, of equal
          ones the lower places;
        - ``cross``: of (s, p) and (s, q) the products a^T b modulo 2^64, or of (g, s, p) and (g, s, q) those of each.
    shapes : tuple of shapes
        Of the inputs.
    count, bits : int
        Of ``top``.
    """

    name: str
    shapes: tuple[Shape, ...]
    count: int = 0
    bits: int = 0

    def __post_init__(self) -> None:
        result_shapes(self)


class Engine(Protocol):
    """Does an operation on shares; all computing parties call it together.

    Attributes
    ----------
    sent : int
        Bytes that this party's engine has sent.
    """

    sent: int

    def run(self, operation: Operation, inputs: Sequence[Words | None]) -> tuple[Words | None, ...]:
        """Fresh shares of the results for shares of the inputs.

        The first and the last party hold shares; a third one that helps to compute passes and gets None.
        """

    def close(self) -> None:
        """End the engine."""


def result_shapes(operation: Operation) -> tuple[Shape, ...]:
    """Shapes of what comes out; refuses shapes that do not fit."""
    name, shapes, count = operation.name, operation.shapes, operation.count
    if name == "less_than" and len(shapes) == 2 and shapes[0] == shapes[1]:
        return (shapes[0],)
    if name == "argmin" and len(shapes) == 1 and len(shapes[0]) == 2 and shapes[0][1] > 0:
        return ((shapes[0][0],),)
    if name == "extremes" and len(shapes) == 1 and len(shapes[0]) == 2 and shapes[0][0] > 0:
        return ((shapes[0][1],), (shapes[0][1],))
    if (
        name == "top"
        and len(shapes) == 1
        and len(shapes[0]) == 1
        and 0 <= count <= shapes[0][0]
        and 0 < operation.bits < 62
    ):
        return (shapes[0],)
    if name == "cross" and len(shapes) == 2:
        a, b = shapes
        if len(a) == len(b) and len(a) in (2, 3) and a[:-1] == b[:-1]:
            return ((*a[:-2], a[-1], b[-1]),)
    raise ValueError(f"no operation {name!r} on shapes {shapes} with count {count}")


def evaluate(operation: Operation, inputs: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], ...]:
    """Do an operation in the clear: what every engine must give.

    Examples
    --------
    >>> evaluate(Operation("top", ((4,),), count=2, bits=3), [np.array([5, 1, 1, 1])])[0].tolist()
    [0, 1, 1, 0]
    """
    first = np.asarray(inputs[0], dtype=np.int64)
    if operation.name == "less_than":
        return ((first < inputs[1]).astype(np.int64),)
    if operation.name == "argmin":
        return (np.argmin(first, axis=1).astype(np.int64),)
    if operation.name == "extremes":
        return first.min(axis=0), first.max(axis=0)
    if operation.name == "top":
        mask = np.zeros(first.shape, dtype=np.int64)
        mask[np.argsort(first, kind="stable")[: operation.count]] = 1
        return (mask,)
    a, b = first.view(np.uint64), np.asarray(inputs[1], dtype=np.int64).view(np.uint64)
    return ((np.swapaxes(a, -1, -2) @ b).view(np.int64),)  # whole numbers wrap as the ring does
