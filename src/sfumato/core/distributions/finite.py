"""Randomization operators on a finite domain: keep or replace, shift modulo, and mixtures [JS07, sec. 3.3, example]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.distributions.noise import FINEST, check_codes, check_outputs, share, toss
from sfumato.core.errors import OptionError

__all__ = [
    "AmplifiedOperator",
    "Extremes",
    "FiniteOperator",
    "KeepOrReplace",
    "Mixture",
    "Operator",
    "Response",
    "ShiftModulo",
    "choose_design",
    "subset_response",
]

Extremes = tuple[tuple[Fraction, Fraction], ...]
"""Highest and lowest chance over all inputs, for each output; one pair where all outputs are alike."""


class Operator(Protocol):
    """A randomization with known probabilities, from codes of a domain to integer outputs."""

    @property
    def size(self) -> int:
        """Number of inputs, 0 to size - 1."""
        ...

    @property
    def outputs(self) -> range | None:
        """All outputs, possibly negative; None if there are infinitely many."""
        ...

    @property
    def gamma(self) -> float:
        """Amplification: largest ratio of the probabilities of one output under two inputs [EGS03]."""
        ...

    @property
    def epsilon(self) -> float:
        """Local differential privacy: the logarithm of gamma."""
        ...

    @property
    def wraps(self) -> bool:
        """Whether the domain is a ring."""
        ...

    def randomize(self, codes: Ints, rng: np.random.Generator) -> Ints:
        """Draw an output for each input, exactly, by comparing integers."""
        ...

    def probabilities(self, outputs: Ints) -> Floats:
        """P[output | input], a row for each output and a column for each input."""
        ...


class FiniteOperator(Operator, Protocol):
    """An operator whose outputs are the codes of its own domain."""

    @property
    def outputs(self) -> range:
        """All outputs."""
        ...

    @property
    def extremes(self) -> Extremes:
        """Highest and lowest probability of the outputs."""
        ...


class AmplifiedOperator:
    """Gamma and epsilon from the extreme probabilities; outputs are the domain's codes by default."""

    if TYPE_CHECKING:

        @property
        def size(self) -> int: ...  # noqa: D102

        @property
        def extremes(self) -> Extremes: ...  # noqa: D102

    @property
    def outputs(self) -> range:
        """All outputs."""
        return range(self.size)

    @cached_property
    def gamma(self) -> float:
        """Amplification: largest ratio of the probabilities of one output under two inputs [EGS03]."""
        if any(low == 0 < high for high, low in self.extremes):
            return math.inf
        return float(max(high / low for high, low in self.extremes if high))

    @property
    def epsilon(self) -> float:
        """Local differential privacy: the logarithm of gamma."""
        return math.log(self.gamma)


@dataclass(frozen=True)
class KeepOrReplace(AmplifiedOperator):
    """R1: the value with probability ``keep``, otherwise one of the *other* values uniformly [JS07; errata JS07.2].

    Parameters
    ----------
    size : int
    keep : float
        Taken as a fraction, see `sfumato.core.distributions.noise.share`.

    Examples
    --------
    >>> KeepOrReplace(1001, 0.2).gamma
    250.0
    """

    wraps: ClassVar[bool] = False  # no: the domain has no order

    size: int
    keep: float

    def __post_init__(self) -> None:
        _check_size(self.size)
        share("keep", self.keep)

    @property
    def chances(self) -> tuple[Fraction, Fraction]:
        """Probability of the value itself, and of each other one."""
        keep = share("keep", self.keep)
        return keep, (1 - keep) / (self.size - 1)

    @property
    def extremes(self) -> Extremes:
        """Highest and lowest probability, equal for all outputs."""
        return ((max(self.chances), min(self.chances)),)

    def randomize(self, codes: Ints, rng: np.random.Generator) -> Ints:
        """Draw an output for each input."""
        x = check_codes(codes, self.size)
        kept = toss(self.chances[0], x.size, rng).reshape(x.shape)
        other = rng.integers(0, self.size - 1, size=x.shape)
        return np.asarray(np.where(kept, x, other + (other >= x)), dtype=np.int64)

    def probabilities(self, outputs: Ints) -> Floats:
        """P[output | input], a row for each output."""
        y = check_outputs(outputs, self.outputs)
        keep, other = map(float, self.chances)
        rows = np.full((len(y), self.size), other)
        rows[np.arange(len(y)), y] = keep
        return rows


@dataclass(frozen=True)
class ShiftModulo(AmplifiedOperator):
    """R2: a uniform shift of -reach to reach, modulo the size of the domain [JS07].

    Where the shifts do not go round the whole domain an output rules out inputs, and gamma is infinite.

    Examples
    --------
    >>> ShiftModulo(1001, 100).gamma, ShiftModulo(3, 2).gamma
    (inf, 2.0)
    """

    wraps: ClassVar[bool] = True  # yes: beyond the end it goes on at the beginning

    size: int
    reach: int

    def __post_init__(self) -> None:
        _check_size(self.size)
        if isinstance(self.reach, bool) or not isinstance(self.reach, int) or not 1 <= self.reach < 2**48:
            raise OptionError("the reach of a shift must be a whole number of places, 1 or more")

    @property
    def extremes(self) -> Extremes:
        """Highest and lowest probability, equal for all outputs."""
        shifts = 2 * self.reach + 1
        return ((Fraction(-(-shifts // self.size), shifts), Fraction(shifts // self.size, shifts)),)

    def randomize(self, codes: Ints, rng: np.random.Generator) -> Ints:
        """Draw an output for each input."""
        x = check_codes(codes, self.size)
        shift = rng.integers(-self.reach, self.reach, size=x.shape, endpoint=True)
        return np.asarray((x + shift) % self.size, dtype=np.int64)

    def probabilities(self, outputs: Ints) -> Floats:
        """P[output | input], a row for each output."""
        y = check_outputs(outputs, self.outputs)
        d = (y[:, None] - np.arange(self.size)) % self.size  # shifts d, d - size, d + size, ... lead from x to y
        ways = (self.reach - d) // self.size + (self.reach + d) // self.size + 1
        return np.asarray(ways / (2 * self.reach + 1), dtype=np.float64)


@dataclass(frozen=True)
class Mixture(AmplifiedOperator):
    """R3: another operator with probability ``weight``, otherwise a uniform value of the domain [JS07].

    Parameters
    ----------
    weight : float
        Taken as a fraction, see `sfumato.core.distributions.noise.share`.
    of : operator
        Its outputs must be the places of the domain.
    size : int

    Examples
    --------
    >>> round(Mixture(0.5, ShiftModulo(1001, 100), 1001).gamma, 4)
    5.9801
    """

    weight: float
    of: FiniteOperator
    size: int

    def __post_init__(self) -> None:
        _check_size(self.size)
        share("weight", self.weight)
        if self.of.size != self.size or getattr(self.of, "outputs", None) != range(self.size):
            raise OptionError(
                "a mixture is with a law whose outputs are the values of the domain; use keep-or-replace, "
                "shift-modulo, response or another mixture"
            )

    @property
    def wraps(self) -> bool:
        """Whether the mixed operator wraps."""
        return self.of.wraps

    @property
    def extremes(self) -> Extremes:
        """Highest and lowest probability of the outputs."""
        weight = share("weight", self.weight)
        rest = (1 - weight) / self.size
        return tuple((weight * high + rest, weight * low + rest) for high, low in self.of.extremes)

    def randomize(self, codes: Ints, rng: np.random.Generator) -> Ints:
        """Draw an output for each input."""
        x = check_codes(codes, self.size)
        taken = toss(share("weight", self.weight), x.size, rng).reshape(x.shape)
        anything = rng.integers(0, self.size, size=x.shape)
        return np.asarray(np.where(taken, self.of.randomize(x, rng), anything), dtype=np.int64)

    def probabilities(self, outputs: Ints) -> Floats:
        """P[output | input], a row for each output."""
        weight = share("weight", self.weight)
        return float(weight) * self.of.probabilities(outputs) + float((1 - weight) / self.size)


def _check_size(size: int) -> None:
    if isinstance(size, bool) or not isinstance(size, int) or size < 2:
        raise OptionError("an operator needs a domain of at least two values")


_SUM = 1e-9  # how far the chances of a row may be from 1 together, for they are written as decimals
_MOST = 4000  # answers: the matrix has their square


@dataclass(frozen=True)
class Response(AmplifiedOperator):
    """Answer y for the true value x with the probability in row x and column y of a matrix.

    A row is brought to multiples of 2^-53: each chance is rounded down, though never to 0 from above it, and the
    largest of the row (of equals the first) takes what is left. For an answer a whole number below 2^53 is drawn
    uniformly and looked up among the row's sums, so it has exactly these chances; ``probabilities`` and ``gamma`` are
    of them.

    Parameters
    ----------
    matrix : tuple of tuples of float
        Rows are inputs, columns outputs; each row adds up to 1.

    Examples
    --------
    >>> Response(((0.75, 0.25), (0.25, 0.75))).gamma
    3.0
    >>> round(Response.for_epsilon(4, 1.5).epsilon, 12)
    1.5
    """

    wraps: ClassVar[bool] = False  # no: answers have no order

    matrix: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        try:
            rows = tuple(tuple(float(chance) for chance in row) for row in self.matrix)
        except (TypeError, ValueError):
            raise OptionError("a response matrix must be a list of rows of numbers") from None
        if len(rows) < 2 or len({len(row) for row in rows}) > 1 or len(rows[0]) < 1:
            raise OptionError("a response matrix needs a row for each of two or more values, all of one length")
        if max(len(rows), len(rows[0])) > _MOST:
            raise OptionError(f"a response matrix has at most {_MOST} rows and columns; use keep-or-replace")
        wrong = sum(1 for row in rows if not (min(row) >= 0 and abs(math.fsum(row) - 1.0) <= _SUM))
        if wrong:
            raise OptionError(f"{wrong} rows of the response matrix are not chances that add up to 1; correct them")
        object.__setattr__(self, "matrix", rows)

    @classmethod
    def for_epsilon(cls, size: int, epsilon: float) -> Response:
        """Matrix that keeps the most information at a given epsilon [Kairouz, Oh, Viswanath 2014].

        The truth has the chance e^epsilon / (e^epsilon + size - 1), every other answer 1 / (e^epsilon + size - 1).

        Notes
        -----
        Optimal for mutual information and Kullback-Leibler divergence where epsilon is not small; for small epsilon
        answers of two values ("binary") can tell more. Cost O(size^2).
        """
        if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0 < epsilon < math.inf:
            raise OptionError("the epsilon of a response must be a number above 0")
        if isinstance(size, bool) or not isinstance(size, int) or not 2 <= size <= _MOST:
            raise OptionError(f"a response is among 2 to {_MOST} values; list wider ones, as a level of a hierarchy")
        less = math.exp(-epsilon)  # divided by e^epsilon, which may be too large for a double
        truth, other = 1.0 / (1.0 + (size - 1) * less), less / (1.0 + (size - 1) * less)
        return cls(tuple((other,) * x + (truth,) + (other,) * (size - 1 - x) for x in range(size)))

    @property
    def size(self) -> int:
        """Number of inputs."""
        return len(self.matrix)

    @property
    def outputs(self) -> range:
        """All outputs."""
        return range(len(self.matrix[0]))

    @cached_property
    def weights(self) -> Ints:
        """Probabilities as integer multiples of 2^-53; rows are inputs."""
        chances = np.array(self.matrix, dtype=np.float64)
        whole = np.floor(chances * FINEST).astype(np.int64)
        whole[(chances > 0) & (whole == 0)] = 1
        largest = chances.argmax(axis=1)
        whole[np.arange(len(whole)), largest] += FINEST - whole.sum(axis=1)
        whole.flags.writeable = False
        return whole

    @cached_property
    def extremes(self) -> Extremes:
        """Highest and lowest probability of each output."""
        pairs = zip(self.weights.max(axis=0).tolist(), self.weights.min(axis=0).tolist(), strict=True)
        return tuple((Fraction(high, FINEST), Fraction(low, FINEST)) for high, low in pairs)

    def randomize(self, codes: Ints, rng: np.random.Generator) -> Ints:
        """Draw an output for each input."""
        x = check_codes(codes, self.size)
        drawn = rng.integers(0, FINEST, size=x.size)
        answers = np.empty(x.size, dtype=np.int64)
        order = np.argsort(x.ravel(), kind="stable")
        ends = np.searchsorted(x.ravel()[order], np.arange(self.size + 1))
        for row in np.unique(x):
            rows = order[ends[row] : ends[row + 1]]
            answers[rows] = np.searchsorted(np.cumsum(self.weights[row]), drawn[rows], side="right")
        return answers.reshape(x.shape)

    def probabilities(self, outputs: Ints) -> Floats:
        """P[output | input], a row for each output: the matrix transposed."""
        return np.asarray(self.weights.T[check_outputs(outputs, self.outputs)] / FINEST, dtype=np.float64)


_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61)


def choose_design(size: int, epsilon: float) -> tuple[int, int] | None:
    """Field and dimension with the lowest frequency variance; None if a plain response is as good.

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
    """Response in which each value has a set of answers, or the plain one if that is as good.

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
    """Variance of a rare value's frequency per record; for sets of one answer, that of the plain response."""
    less = math.exp(-epsilon)
    total = own + (answers - own) * less
    a, b = own / total, (shared + (own - shared) * less) / total
    return b * (1.0 - b) / (a - b) ** 2


def _space(q: int, dimension: int) -> Ints:
    """Points by coordinates, the first nonzero one being 1, in lexicographic order."""
    rows = []
    for zeros in range(dimension, -1, -1):
        free = dimension - zeros
        digits = np.indices((q,) * free).reshape(free, -1).T if free else np.zeros((1, 0), dtype=np.int64)
        lead = np.zeros((len(digits), zeros + 1), dtype=np.int64)
        lead[:, -1] = 1
        rows.append(np.hstack([lead, digits]))
    return np.vstack(rows)
