"""Noise by name, drawn exactly, and the grid to which numbers are rounded before noise, so that no bit shows through.

With the procedure to improve privacy: more noise for some of the rows [OZ03, sec. 5.4].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.errors import OptionError, SchemaError

__all__ = [
    "FINEST",
    "LARGEST",
    "LAWS",
    "SMALLEST",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DiscreteUniform",
    "Law",
    "Means",
    "Pairs",
    "add_noise",
    "check_codes",
    "check_columns",
    "check_enhance",
    "check_outputs",
    "check_size",
    "choose_step",
    "decimals",
    "draw_exact_gaussian",
    "draw_gaussian",
    "draw_geometric",
    "draw_laplace",
    "enhance_rows",
    "exact",
    "law_of_size",
    "means_of",
    "pairs_of",
    "rational",
    "representable_variance",
    "share",
    "short",
    "snap",
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


LAWS = ("gaussian", "uniform", "laplace")
"""The laws by name."""

_Shape = int | tuple[int, ...]
_FEW = 2.0  # deviations in steps from which sums over the grid are integrals to the last bit
_TAIL = 40


class _GridDistribution:
    """Shared part of the distributions: noise in steps, times the step."""

    if TYPE_CHECKING:

        @property
        def step(self) -> float: ...

        def _draw(self, count: int, rng: np.random.Generator) -> Ints: ...

    def draw(self, shape: _Shape, rng: np.random.Generator) -> Ints:
        """Draw noise, counted in steps."""
        sizes = (shape,) if isinstance(shape, int) else shape
        return self._draw(math.prod(sizes), rng).reshape(sizes)

    def values(self, shape: _Shape, rng: np.random.Generator) -> Floats:
        """Draw noise in the units of the step."""
        return np.asarray(self.draw(shape, rng) * self.step, dtype=np.float64)


@dataclass(frozen=True)
class DiscreteLaplace(_GridDistribution):
    """Noise of k steps with probability proportional to exp(-|k| step / scale).

    Parameters
    ----------
    scale : float
        In the units of the step. Taken as a fraction of steps, see `sfumato.core.distributions.noise.rational`.
    step : float

    Examples
    --------
    >>> law = DiscreteLaplace(scale=2.0, step=0.5)
    >>> float(law.pmf(1) / law.pmf(0)) == math.exp(-1 / 4)
    True
    """

    scale: float
    step: float = 1.0

    def __post_init__(self) -> None:
        _check("scale", self.scale, self.step)

    @property
    def _decay(self) -> float:
        return 1.0 / float(rational(self.scale / self.step))

    @property
    def variance(self) -> float:
        """Variance of the values."""
        return self.step**2 / (2.0 * math.sinh(self._decay / 2.0) ** 2)

    def pmf(self, k: ArrayLike) -> Floats:
        """Probability of k steps."""
        return np.asarray(math.tanh(self._decay / 2.0) * np.exp(-np.abs(np.asarray(k)) * self._decay))

    def _draw(self, count: int, rng: np.random.Generator) -> Ints:
        return draw_laplace(self.scale / self.step, count, rng)


@dataclass(frozen=True)
class DiscreteGaussian(_GridDistribution):
    """Noise of k steps with probability proportional to exp(-(k step)^2 / (2 sd^2)).

    Parameters
    ----------
    sd : float
        In the units of the step; the standard deviation, where that is a step or more.
    step : float

    Examples
    --------
    >>> round(DiscreteGaussian(sd=3.0).variance, 9)
    9.0
    """

    sd: float
    step: float = 1.0

    def __post_init__(self) -> None:
        _check("sd", self.sd, self.step)

    @property
    def variance(self) -> float:
        """Variance of the values."""
        if self.sd >= _FEW * self.step:
            return self.sd**2
        return self.step**2 * math.fsum(k * k * float(self.pmf(k)) for k in range(-_TAIL, _TAIL + 1))

    def pmf(self, k: ArrayLike) -> Floats:
        """Probability of k steps."""
        sd = self.sd / self.step
        total = math.sqrt(2.0 * math.pi) * sd
        if sd < _FEW:
            total = math.fsum(math.exp(-((j / sd) ** 2) / 2.0) for j in range(-_TAIL, _TAIL + 1))
        return np.asarray(np.exp(-((np.asarray(k) / sd) ** 2) / 2.0) / total)

    def _draw(self, count: int, rng: np.random.Generator) -> Ints:
        return draw_gaussian(self.sd / self.step, count, rng)


@dataclass(frozen=True)
class DiscreteUniform(_GridDistribution):
    """Uniform noise on the grid from -reach to reach. It is bounded, so it can prove facts.

    Parameters
    ----------
    reach : float
        In the units of the step; what is left over of the last step does not count.
    step : float

    Examples
    --------
    >>> DiscreteUniform(reach=1.0).variance  # -1, 0 or 1
    0.6666666666666666
    """

    reach: float
    step: float = 1.0

    def __post_init__(self) -> None:
        _check("reach", self.reach, self.step)
        if self.steps < 1:
            raise OptionError("the reach of uniform noise is below one step, so it would be none; choose a finer step")

    @property
    def steps(self) -> int:
        """The reach in steps."""
        return math.floor(self.reach / self.step * (1.0 + 1e-12))

    @property
    def variance(self) -> float:
        """Variance of the values."""
        return self.step**2 * self.steps * (self.steps + 1) / 3.0

    def pmf(self, k: ArrayLike) -> Floats:
        """Probability of k steps."""
        return np.where(np.abs(np.asarray(k)) <= self.steps, 1.0 / (2 * self.steps + 1), 0.0)

    def _draw(self, count: int, rng: np.random.Generator) -> Ints:
        return rng.integers(-self.steps, self.steps, size=count, endpoint=True)


Law = DiscreteLaplace | DiscreteGaussian | DiscreteUniform
"""A symmetric noise law with mean 0 on the multiples of a step."""


def law_of_size(name: str, size: float, step: float) -> Law:
    """Noise distribution by name with standard deviation ``size``; uniform noise takes the nearest on the grid.

    Examples
    --------
    >>> round(law_of_size("laplace", 2.0, 0.01).variance, 6)
    4.0
    """
    if name not in LAWS:
        raise OptionError(f"unknown noise distribution {name!r}; choose one of {', '.join(LAWS)}")
    _check("size", size, step)
    if name == "gaussian":
        return DiscreteGaussian(size, step)
    variance = (size / step) ** 2
    if name == "uniform":  # r (r + 1) / 3 = variance
        return DiscreteUniform(step * max(1, round((math.sqrt(1.0 + 12.0 * variance) - 1.0) / 2.0)), step)
    return DiscreteLaplace(step / (2.0 * math.asinh(math.sqrt(0.5 / variance))), step)  # 2 sinh(1/2b)^2 = 1/variance


def _check(name: str, size: float, step: float) -> None:
    for each, number in ((name, size), ("step", step)):
        if isinstance(number, bool) or not math.isfinite(number) or number <= 0:
            raise OptionError(f"the {each} of a noise law must be a number above 0")
    if not SMALLEST <= size / step <= LARGEST:
        raise OptionError(f"the {name} of a noise law is out of proportion to its step; choose another step")


_FINENESS = 16  # the step is 2^-16 to 2^-17 of the noise, which no analysis feels
_EXACT = 2.0**53


def choose_step(size: float, fineness: int = _FINENESS) -> float:
    """Power of two as the step for noise of a size, independent of the data.

    Examples
    --------
    >>> choose_step(1.0) == 2.0**-16, choose_step(0.3) == 2.0**-18
    (True, True)
    """
    if isinstance(size, bool) or not math.isfinite(size) or size <= 0:
        raise OptionError("the size of noise must be a number above 0")
    return 2.0 ** (math.floor(math.log2(size)) - fineness)


def snap(values: Floats, step: float) -> Ints:
    """Nearest grid point of each number, counted in steps.

    Raises
    ------
    SchemaError
        For numbers so far out that doubles do not tell two places of the grid apart.
    """
    places = np.rint(values / step)
    far = int((~(np.abs(places) < _EXACT)).sum())
    if far:
        raise SchemaError(f"{far} numbers lie too far out for the grid of the noise; bound the column, or take more")
    return places.astype(np.int64)


def add_noise(values: Floats, law: Law, rng: np.random.Generator) -> Floats:
    """Round numbers to the grid and add noise there, so that the possible outputs do not depend on the number.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.core.distributions.noise import DiscreteLaplace
    >>> noised = add_noise(np.array([0.1, 0.7]), DiscreteLaplace(1.0, step=0.25), np.random.default_rng(1))
    >>> noised % 0.25
    array([0., 0.])
    """
    return np.asarray((snap(values, law.step) + law.draw(values.shape, rng)) * law.step, dtype=np.float64)


Pairs = tuple[tuple[str, str], ...]
"""Columns and the law of each."""
Means = tuple[tuple[str, float], ...]
"""Columns and the mean of the noise of each."""

_SMALLEST, _LARGEST = 0.01, 100.0  # below a hundredth of the deviation nothing is hidden, above a hundredfold none left


def pairs_of(given: Mapping[str, str] | Iterable[Any]) -> Pairs:
    """Distributions by column from a mapping, or from pairs of column and name as in a recipe.

    Examples
    --------
    >>> pairs_of({"age": "uniform"}) == pairs_of([["age", "uniform"]])
    True
    """
    pairs = _pairs(given)
    if any(len(pair) != 2 or not all(isinstance(word, str) for word in pair) for pair in pairs):
        raise OptionError("enhance_laws takes columns and their laws, such as {'age': 'uniform'}")
    return tuple((pair[0], pair[1]) for pair in pairs)


def means_of(given: Mapping[str, float] | Iterable[Any]) -> Means:
    """Mean of the noise by column, as `pairs_of` reads distributions."""
    pairs = _pairs(given)
    if any(len(pair) != 2 or not isinstance(pair[0], str) or not _is_finite(pair[1]) for pair in pairs):
        raise OptionError("enhance_means takes columns and finite numbers, such as {'age': 0.5}")
    return tuple((pair[0], float(pair[1])) for pair in pairs)


def _pairs(given: Mapping[str, Any] | Iterable[Any]) -> tuple[tuple[Any, ...], ...]:
    rows = given.items() if isinstance(given, Mapping) else given
    return tuple(tuple(row) if isinstance(row, list | tuple) else (row,) for row in rows)


def _is_finite(number: Any) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)


def check_size(name: str, size: float) -> None:
    """Refuse an invalid noise size."""
    if isinstance(size, bool) or not math.isfinite(size) or not _SMALLEST <= size <= _LARGEST:
        raise OptionError(f"{name} must lie between {_SMALLEST:g} and {_LARGEST:g} standard deviations; try 1")


class _EnhancementOptions(Protocol):
    """Parameters of the additional noise that a share of the rows gets."""

    @property
    def enhance(self) -> float: ...

    @property
    def enhance_size(self) -> float: ...

    @property
    def enhance_laws(self) -> Pairs | Mapping[str, str]: ...

    @property
    def enhance_means(self) -> Means | Mapping[str, float]: ...


def check_enhance(noise: _EnhancementOptions) -> None:
    """Refuse unknown distributions, invalid sizes or means, and a share outside 0 to 1."""
    laws, means = pairs_of(noise.enhance_laws), means_of(noise.enhance_means)
    check_size("enhance_size", noise.enhance_size)
    for _, name in laws:
        if name not in LAWS:
            raise OptionError(f"unknown noise distribution {name!r}; choose one of {', '.join(LAWS)}")
    if any(abs(mean) > _LARGEST for _, mean in means):
        raise OptionError(f"enhance_means lie between -{_LARGEST:g} and {_LARGEST:g} standard deviations; try 0.5")
    if isinstance(noise.enhance, bool) or not 0.0 <= noise.enhance <= 1.0:
        raise OptionError("enhance is a share of the rows and must lie between 0 and 1; the paper takes 0.05")
    for option, columns in _named_columns(laws, means):
        if len(set(columns)) < len(columns):
            raise OptionError(f"{option} names a column twice; name each column once")
        if columns and not noise.enhance:
            raise OptionError(f"{option} needs a share of rows; set enhance, the paper takes 0.05")


def check_columns(laws: Pairs, means: Means, columns: Iterable[str]) -> None:
    """Refuse a distribution or mean for a column without noise."""
    known = set(columns)
    for option, named in _named_columns(laws, means):
        unknown = [column for column in named if column not in known]
        if unknown:
            raise OptionError(f"{option} names {unknown[0]!r}, which is no column of numbers; name another")


def _named_columns(laws: Pairs, means: Means) -> tuple[tuple[str, list[str]], ...]:
    """Columns that each option names."""
    return ("enhance_laws", [column for column, _ in laws]), ("enhance_means", [column for column, _ in means])


def enhance_rows(
    values: Floats, share: float, laws: Sequence[Law], rng: np.random.Generator, means: Sequence[float] = ()
) -> tuple[Floats, Ints]:
    """Add noise to a share of the rows, by each column's distribution; return which rows.

    Implements the three steps of [OZ03, sec. 5.4]; the laws are the choice of its step 1. ``means`` are those of the
    noise of each attribute, brought to the grid of its law; 0 if none are given. The paper's example has uniform noise
    on [-12, 18], of mean 3, and normal noise of mean 15,000. At least one row is chosen.
    """
    rho = min(len(values), max(1, round(share * len(values))))
    chosen = rng.choice(len(values), size=rho, replace=False)  # step 2
    enhanced = values.copy()
    for place, law in enumerate(laws):
        enhanced[chosen, place] = add_noise(values[chosen, place], law, rng)  # step 3, by ADP
        if means:
            enhanced[chosen, place] += round(means[place] / law.step) * law.step
    return enhanced, np.asarray(chosen, dtype=np.int64)
