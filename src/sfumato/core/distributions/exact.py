"""Exact arithmetic: 0.1 is one tenth, not the nearest double, and random choices compare integers.

Whole random numbers of geometric, Laplace and Gaussian shape [Canonne, Kamath, Steinke 2020].

Textbook noise on doubles leaves holes and low bits that tell the value it was added to [Mironov 2012]. Here every draw
is an integer, made from integers of a bit generator by rejection, so that nothing but a place on a grid comes out.
Geometric and Laplace draws are exact for a rational scale, Gaussian draws for a rational variance: no logarithm, no
rounding. A Gaussian draw by its standard deviation compares its acceptance with 53 random bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np

from sfumato.core.arrays import Bools, Ints
from sfumato.core.errors import OptionError, SchemaError

__all__ = [
    "FINEST",
    "LARGEST",
    "SMALLEST",
    "check_codes",
    "check_outputs",
    "decimals",
    "draw_exact_gaussian",
    "draw_gaussian",
    "draw_geometric",
    "draw_laplace",
    "exact",
    "rational",
    "representable_variance",
    "share",
    "short",
    "toss",
]

_MOST = 15  # decimals to which doubles are rounded exactly
_WHOLE = 2.0**53  # whole numbers below it are doubles


def exact(number: float) -> Fraction:
    """Fraction that a decimal number denotes.

    Examples
    --------
    >>> exact(0.1)
    Fraction(1, 10)
    """
    return Fraction(Decimal(repr(float(number))))


def short(number: float) -> int | float:
    """An integer instead of a fraction with denominator 1.

    Examples
    --------
    >>> short(50.0), short(0.5)
    (50, 0.5)
    """
    return int(number) if abs(number) < _WHOLE and number == int(number) else float(number)


def decimals(*numbers: float) -> int | None:
    """Number of decimals that all the numbers need; None if rounding would not be exact.

    Examples
    --------
    >>> decimals(0.25, 10.0), decimals(1e-20)
    (2, None)
    """
    needed = max(-min(0, int(Decimal(repr(number)).normalize().as_tuple().exponent)) for number in numbers)
    return needed if needed <= _MOST else None


FINEST = 2**53
"""Chances are multiples of 1/FINEST, or simpler fractions: every one of them is a double, and is what is drawn."""

_SIMPLE = 2**20


def share(name: str, probability: float) -> Fraction:
    """Fraction of a probability: the simple one it denotes, otherwise a multiple of 2^-53.

    Examples
    --------
    >>> share("keep", 0.2)
    Fraction(1, 5)
    >>> share("keep", 2.0**-60)
    Fraction(0, 1)
    """
    if isinstance(probability, bool) or not isinstance(probability, int | float) or not 0 <= probability <= 1:
        raise OptionError(f"{name} must be a probability from 0 to 1")
    simple = Fraction(probability).limit_denominator(_SIMPLE)
    return simple if float(simple) == probability else Fraction(round(Fraction(probability) * FINEST), FINEST)


def toss(chance: Fraction, count: int, rng: np.random.Generator) -> Bools:
    """Bernoulli draws with exactly this probability."""
    drawn = rng.integers(0, chance.denominator, size=count)
    return np.asarray(drawn < chance.numerator, dtype=np.bool_)


def check_codes(codes: Ints, size: int) -> Ints:
    """Codes as an array; refuse codes outside the domain."""
    return _inside(codes, 0, size, "values lie outside the domain of the noise")


def check_outputs(outputs: Ints, possible: range) -> Ints:
    """Outputs as an array; refuse outputs that the distribution cannot produce."""
    return _inside(outputs, possible.start, possible.stop, "outputs cannot have come out of this noise law")


def _inside(codes: Ints, low: int, stop: int, words: str) -> Ints:
    array = np.asarray(codes)
    if array.dtype.kind not in "iu" and array.size:
        raise SchemaError(f"{array.size} codes are not whole numbers; encode them with the domain first")
    array = array.astype(np.int64)
    outside = int(((array < low) | (array >= stop)).sum())
    if outside:
        raise SchemaError(f"{outside} {words}; check that data and specification belong together")
    return array


LARGEST = 2.0**44
"""Largest scale, in steps: products of it still fit into 64 bits."""

SMALLEST = 2.0**-10
"""Smallest scale, in steps: below it a draw would be 0 for ever."""

_FINEST = 2**20  # largest denominator of a scale
_CHUNK = 2**18  # draws at a time, so that temporary arrays stay small


def rational(scale: float) -> Fraction:
    """Fraction of a scale, within 2^-40 of it and exact for integers.

    Examples
    --------
    >>> rational(2.5)
    Fraction(5, 2)
    """
    return Fraction(scale).limit_denominator(max(1, min(_FINEST, int(LARGEST / max(scale, 1.0)) + 1)))


def draw_geometric(scale: float, count: int, rng: np.random.Generator) -> Ints:
    """Draw k = 0, 1, 2, ... with probability proportional to exp(-k / scale).

    The difference of two such draws is a discrete Laplace draw.
    """
    return _collect_accepted(count, lambda size: _geometric(rational(scale), size, rng))


def draw_laplace(scale: float, count: int, rng: np.random.Generator) -> Ints:
    """Draw integers k with probability proportional to exp(-|k| / scale) [CKS20, alg. 2]."""
    return _collect_accepted(count, lambda size: _laplace(rational(scale), size, rng))


def draw_gaussian(sd: float, count: int, rng: np.random.Generator) -> Ints:
    """Draw integers k with probability proportional to exp(-k^2 / (2 sd^2)) [CKS20, alg. 3]."""
    t = math.floor(sd) + 1

    def batch(size: int) -> Ints:
        y = _laplace(Fraction(t), size, rng)
        gamma = ((np.abs(y) - sd * sd / t) / sd) ** 2 / 2.0
        return y[rng.random(len(y)) < np.exp(-gamma)]

    return _collect_accepted(count, batch)


_LARGEST_TERM = 1 << 24  # numerator and denominator of a variance, so that all products stay below 2^63
_LARGEST_SD = 1 << 26  # whole, of a larger variance
_FARTHEST = 32  # scales of the proposal; anything beyond has a probability below e^-480 and is left out


def representable_variance(at_least: Fraction | float) -> Fraction:
    """Smallest variance of at least the given one that `draw_exact_gaussian` accepts.

    A large one is the square of a whole number.

    Examples
    --------
    >>> representable_variance(Fraction(1, 3)), representable_variance(400), representable_variance(10**10 + 1)
    (Fraction(43691, 131072), Fraction(400, 1), Fraction(10000200001, 1))
    """
    variance = Fraction(at_least)
    if not 0 < variance <= _LARGEST_SD**2:
        raise OptionError("the privacy budget is so small that noise would hide every count; use a larger epsilon")
    if variance > _LARGEST_TERM:
        return Fraction((math.isqrt(math.ceil(variance) - 1) + 1) ** 2)
    grid = 1 << 17
    while math.ceil(variance * grid) > _LARGEST_TERM:
        grid >>= 1
    return Fraction(math.ceil(variance * grid), grid)


def draw_exact_gaussian(variance: Fraction, count: int, rng: np.random.Generator) -> Ints:
    """Draw integers k with probability proportional to exp(-k^2 / (2 variance)), exactly [CKS20, alg. 3].

    A proposal of scale t, any whole number, is accepted with probability exp(-(|y| - variance / t)^2 / (2 variance)).
    """
    s, q = variance.numerator, variance.denominator
    sd = math.isqrt(s)
    whole = q == 1 and sd * sd == s
    if not (0 < s <= _LARGEST_SD**2 and q <= _LARGEST_TERM and (whole or s <= _LARGEST_TERM)):
        raise ValueError("the variance is not representable")
    t = sd if whole else math.isqrt(s // q) + 1

    def batch(size: int) -> Ints:
        y = _laplace(Fraction(t), size, rng)
        y = y[np.abs(y) <= _FARTHEST * t]
        if whole:  # t^2 = variance
            top = np.abs(y) - t
            return y[_bernoulli_exp_any(top * top, 2 * s, rng)]
        top = np.abs(y) * (q * t) - s  # (|y| - variance / t)^2 / (2 variance) = top^2 / (2 s q t^2)
        return y[_bernoulli_exp_any(top * top, 2 * s * q * t * t, rng)]

    return _collect_accepted(count, batch)


def _collect_accepted(count: int, batch: Callable[[int], Ints]) -> Ints:
    """Collect accepted draws from batches until there are enough."""
    drawn = np.empty(count, dtype=np.int64)
    done = 0
    while done < count:
        kept = batch(min(_CHUNK, 2 * (count - done) + 16))[: count - done]
        drawn[done : done + len(kept)] = kept
        done += len(kept)
    return drawn


def _geometric(scale: Fraction, size: int, rng: np.random.Generator) -> Ints:
    """Geometric draws from at most ``size`` candidates: X = U + t V, then floor(X / s) [CKS20, alg. 2, steps 1-9]."""
    t, s = scale.numerator, scale.denominator
    u = rng.integers(0, t, size=size)
    u = u[_bernoulli_exp(u, t, rng)]
    v = np.zeros(len(u), dtype=np.int64)
    alive = np.arange(len(u))
    while len(alive):
        alive = alive[_bernoulli_exp(np.ones(len(alive), dtype=np.int64), 1, rng)]
        v[alive] += 1
    return np.asarray((u + t * v) // s, dtype=np.int64)


def _laplace(scale: Fraction, size: int, rng: np.random.Generator) -> Ints:
    """Signed geometric draws; negative zeros are rejected, because zero would count twice."""
    y = _geometric(scale, size, rng)
    negative = rng.integers(0, 2, size=len(y), dtype=np.uint8).astype(np.bool_)
    kept = ~(negative & (y == 0))
    return np.asarray(np.where(negative, -y, y)[kept])


def _bernoulli_exp(upper: Ints, lower: int, rng: np.random.Generator) -> Bools:
    """Bernoulli draws with probability exp(-upper / lower), quotient in [0, 1], exactly [CKS20, alg. 1]."""
    odd = np.zeros(len(upper), dtype=np.bool_)
    alive, k = np.arange(len(upper)), 1
    while len(alive):
        goes_on = rng.integers(0, lower * k, size=len(alive)) < upper[alive]
        if k % 2:
            odd[alive[~goes_on]] = True
        alive, k = alive[goes_on], k + 1
    return odd


def _bernoulli_exp_any(upper: Ints, lower: int, rng: np.random.Generator) -> Bools:
    """Bernoulli draws with probability exp(-upper / lower), any quotient from 0 on, exactly [CKS20, alg. 1]."""
    whole, rest = np.divmod(upper, lower)
    alive = np.flatnonzero(whole > 0)
    while len(alive):
        alive = alive[_bernoulli_exp(np.ones(len(alive), dtype=np.int64), 1, rng)]
        whole[alive] -= 1
        alive = alive[whole[alive] > 0]
    yes = whole == 0
    yes[yes] = _bernoulli_exp(rest[yes], lower, rng)
    return np.asarray(yes)
