"""Whole random numbers of geometric, Laplace and Gaussian shape [Canonne, Kamath, Steinke 2020].

Textbook noise on doubles leaves holes and low bits that tell the value it was added to [Mironov 2012]. Here every draw
is an integer, made from integers of a bit generator by rejection, so that nothing but a place on a grid comes out.
Geometric and Laplace draws are exact for a rational scale: no logarithm, no rounding. Of a Gaussian draw the acceptance
is compared with 53 random bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

__all__ = ["LARGEST", "SMALLEST", "draw_gaussian", "draw_geometric", "draw_laplace", "rational"]

LARGEST = 2.0**44
"""Largest scale, in steps: products of it still fit into 64 bits."""

SMALLEST = 2.0**-10
"""Smallest scale, in steps: below it a draw would be 0 for ever."""

_FINEST = 2**20  # largest denominator of a scale
_CHUNK = 2**18  # draws at a time, so that temporary arrays stay small


def rational(scale: float) -> Fraction:
    """Fraction t/s that a scale is taken as, within 2^-40 of it and exact for whole numbers.

    Examples
    --------
    >>> rational(2.5)
    Fraction(5, 2)
    """
    return Fraction(scale).limit_denominator(max(1, min(_FINEST, int(LARGEST / max(scale, 1.0)) + 1)))


def draw_geometric(scale: float, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw k = 0, 1, 2, ... with probability proportional to exp(-k / scale).

    The difference of two such draws is a discrete Laplace draw.
    """
    return _fill(count, lambda size: _geometric(rational(scale), size, rng))


def draw_laplace(scale: float, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw whole k with probability proportional to exp(-|k| / scale) [CKS20, alg. 2]."""
    return _fill(count, lambda size: _laplace(rational(scale), size, rng))


def draw_gaussian(sd: float, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw whole k with probability proportional to exp(-k^2 / (2 sd^2)) [CKS20, alg. 3]."""
    t = math.floor(sd) + 1

    def batch(size: int) -> NDArray[np.int64]:
        y = _laplace(Fraction(t), size, rng)
        gamma = ((np.abs(y) - sd * sd / t) / sd) ** 2 / 2.0
        return y[rng.random(len(y)) < np.exp(-gamma)]

    return _fill(count, batch)


def _fill(count: int, batch: Callable[[int], NDArray[np.int64]]) -> NDArray[np.int64]:
    """Collect what rejection leaves of batch after batch; the first ones of independent draws are as good as any."""
    drawn = np.empty(count, dtype=np.int64)
    done = 0
    while done < count:
        kept = batch(min(_CHUNK, 2 * (count - done) + 16))[: count - done]
        drawn[done : done + len(kept)] = kept
        done += len(kept)
    return drawn


def _geometric(scale: Fraction, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw from at most ``size`` candidates: X = U + t V, then floor(X / s) [CKS20, alg. 2, steps 1 to 9]."""
    t, s = scale.numerator, scale.denominator
    u = rng.integers(0, t, size=size)
    u = u[_bernoulli_exp(u, t, rng)]
    v = np.zeros(len(u), dtype=np.int64)
    alive = np.arange(len(u))
    while len(alive):
        alive = alive[_bernoulli_exp(np.ones(len(alive), dtype=np.int64), 1, rng)]
        v[alive] += 1
    return np.asarray((u + t * v) // s, dtype=np.int64)


def _laplace(scale: Fraction, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Geometric draws with a sign; a negative zero is drawn again, else zero would come twice as often."""
    y = _geometric(scale, size, rng)
    negative = rng.integers(0, 2, size=len(y), dtype=np.uint8).astype(np.bool_)
    kept = ~(negative & (y == 0))
    return np.asarray(np.where(negative, -y, y)[kept])


def _bernoulli_exp(upper: NDArray[np.int64], lower: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Say yes with probability exp(-upper / lower), for a quotient between 0 and 1, exactly [CKS20, alg. 1]."""
    odd = np.zeros(len(upper), dtype=np.bool_)
    alive, k = np.arange(len(upper)), 1
    while len(alive):
        goes_on = rng.integers(0, lower * k, size=len(alive)) < upper[alive]
        if k % 2:
            odd[alive[~goes_on]] = True
        alive, k = alive[goes_on], k + 1
    return odd
