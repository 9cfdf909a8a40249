"""Answers that stand for sets of values: for many values they tell more than a response at the same epsilon.

Every value has a set of answers, all sets are equally large and any two share equally many answers; an answer of one's
own set is e^epsilon times likelier than another [Ye, Barg 2018, subset selection]. The sets are the hyperplanes of a
projective space over a field of q elements, with q near e^epsilon + 1 [Feldman, Nelson, Nguyen, Talwar 2022]: an answer
is one number, not a list of values.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sfumato.core.errors import OptionError
from sfumato.core.laws.response import Response

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["choose_design", "subset_response"]

_MOST = 4000  # answers: the matrix of a response has no more
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61)


def choose_design(size: int, epsilon: float) -> tuple[int, int] | None:
    """Field and dimension with which frequencies are known best; None where a plain response is as good.

    A rare value's frequency is known to the variance b (1 - b) / (n (a - b)^2), for a and b the chances that its set
    holds the answer of one who has it and of one who has not.

    Examples
    --------
    >>> choose_design(100, 1.0), choose_design(4, 3.0)
    ((3, 4), None)
    """
    best, found = _variance(size, 1, 0, epsilon), None
    for q in _PRIMES:
        for dimension in range(2, 13):
            answers, own, shared = (_points(q, dimension - less) for less in range(3))
            if answers > _MOST:
                break
            if answers < size:
                continue
            variance = _variance(answers, own, shared, epsilon)
            if variance < 0.99 * best:
                best, found = variance, (q, dimension)
            break  # a larger space of the same field is no better
    return found


def subset_response(size: int, epsilon: float) -> Response:
    """Response in which each value has a set of answers, or the plain one where that is as good.

    Examples
    --------
    >>> made = subset_response(100, 1.0)
    >>> len(made.outputs), round(made.epsilon, 9)
    (121, 1.0)
    """
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0 < epsilon < math.inf:
        raise OptionError("the epsilon of a subset law must be a number above 0")
    if not 2 <= size <= _MOST:
        raise OptionError(f"a subset law is for 2 to {_MOST} values")
    design = choose_design(size, epsilon)
    if design is None:
        return Response.for_epsilon(size, epsilon)
    import numpy as np

    q, dimension = design
    points = _space(q, dimension)
    own = (points[:size] @ points.T) % q == 0
    answers, inside, _ = (_points(q, dimension - less) for less in range(3))
    other = math.exp(-epsilon)
    total = inside + (answers - inside) * other
    return Response(tuple(tuple(row) for row in np.where(own, 1.0 / total, other / total).tolist()))


def _points(q: int, dimension: int) -> int:
    """Points of a projective space."""
    return int((q ** (dimension + 1) - 1) // (q - 1)) if dimension >= 0 else 0


def _variance(answers: int, own: int, shared: int, epsilon: float) -> float:
    """Variance of a rare value's frequency for one record; for sets of one answer, that of the plain response."""
    less = math.exp(-epsilon)
    total = own + (answers - own) * less
    a, b = own / total, (shared + (own - shared) * less) / total
    return b * (1.0 - b) / (a - b) ** 2


def _space(q: int, dimension: int) -> NDArray[np.int64]:
    """Points by coordinates, the first that is not 0 being 1, in the order of their digits."""
    import numpy as np

    rows = []
    for zeros in range(dimension, -1, -1):
        free = dimension - zeros
        digits = np.indices((q,) * free).reshape(free, -1).T if free else np.zeros((1, 0), dtype=np.int64)
        lead = np.zeros((len(digits), zeros + 1), dtype=np.int64)
        lead[:, -1] = 1
        rows.append(np.hstack([lead, digits]))
    return np.vstack(rows)
