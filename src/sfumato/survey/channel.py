"""A noise distribution as a channel from value to answer: informative outputs with their probabilities, in blocks.

What is believed of an answer before it is sent: a probability for each value of the domain.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core.arrays import Floats, Ints
from sfumato.core.distributions.domains import Dates, Labels, Universe
from sfumato.core.distributions.finite import KeepOrReplace, Mixture, ShiftModulo
from sfumato.core.distributions.noise import DiscreteGaussian, DiscreteLaplace, DiscreteUniform, share
from sfumato.core.distributions.operators import Additive, Membership, Operator, likelihoods
from sfumato.core.documents import open_regular
from sfumato.core.errors import OptionError, TableError

__all__ = [
    "MOST",
    "TAIL",
    "Uncertainty",
    "blocks",
    "can_be_counted",
    "entropy",
    "has_form",
    "informative_outputs",
    "is_large",
    "observed_prior",
    "prior_of",
    "read_prior",
    "spread",
    "uncertainty",
    "uniform_prior",
]

TAIL = 8.0
"""Deviations beyond the domain to which outputs of Gaussian noise are looked at: fewer than 1e-14 lie farther."""

LARGE = 2**25
"""Pairs of value and output from which the form of a law is used instead of its matrix."""

_MOST_PAIRS = 2**33
"""Pairs that are looked at in all: about a minute."""

_CELLS = 2**21  # of a block


def informative_outputs(operator: Operator) -> range:
    """Informative outputs: all that differ, or all but a negligible part of them.

    Laplace noise beyond an end of the domain tells what the end itself tells, so the places of the domain are enough.
    """
    if operator.outputs is not None:
        return operator.outputs
    if isinstance(operator, Additive) and isinstance(operator.law, DiscreteGaussian):
        reach = math.ceil(TAIL * max(operator.law.sd, 1.0))
        return range(-reach, operator.size + reach)
    return range(operator.size)


def is_large(operator: Operator) -> bool:
    """Whether there are too many pairs of value and output to enumerate."""
    return len(informative_outputs(operator)) * operator.size > LARGE


def blocks(operator: Operator) -> Iterator[tuple[Ints, Floats, Floats]]:
    """Iterate over the informative outputs with their likelihoods and probabilities.

    Yields
    ------
    outputs : array (m,)
    likelihoods : array (m, size)
        In proportion to P[output | input] in each row, the largest 1.
    chances : array (m, 1)
        Times the likelihoods they are P[output | input]; outputs beyond an end of the domain count with the end.
    """
    outputs, size = informative_outputs(operator), operator.size
    if len(outputs) * size > _MOST_PAIRS:
        raise OptionError(
            f"{len(outputs):,} outputs for {size:,} values are too many to look at; choose a coarser grid"
        )
    laplace = isinstance(operator, Additive) and isinstance(operator.law, DiscreteLaplace)
    rows = max(1, _CELLS // size)
    for start in range(outputs.start, outputs.stop, rows):
        y = np.arange(start, min(start + rows, outputs.stop), dtype=np.int64)
        likely = likelihoods(operator, y)
        chances = operator.probabilities(y).max(axis=1, keepdims=True)
        if laplace:  # P[beyond or at the end] = P[at the end] / (1 - e^(-1/scale))
            ends = (y == 0) | (y == size - 1)
            chances[ends] /= -math.expm1(-operator.epsilon / (size - 1))
        yield y, likely, chances


def has_form(operator: Operator) -> bool:
    """Whether this module supports a distribution: all but Gaussian noise and matrices."""
    if isinstance(operator, Mixture):
        return isinstance(operator.of, KeepOrReplace | ShiftModulo | Mixture) and has_form(operator.of)
    if isinstance(operator, Additive):
        return isinstance(operator.law, DiscreteLaplace | DiscreteUniform)
    return isinstance(operator, KeepOrReplace | ShiftModulo | Membership)


def spread(operator: Operator, weights: Floats) -> Floats:
    """Output distribution, up to scale, for the given weights of inputs, at each of `informative_outputs`.

    Of Laplace noise the outputs beyond the ends are left out. Where no input of positive weight leads to an output the
    sum is exactly 0; else windows are differences of running sums, off by about 1e-16 of all weights.
    """
    if isinstance(operator, KeepOrReplace):
        keep, other = (float(chance) for chance in operator.chances)
        return np.asarray(other * (weights.sum() - weights) + keep * weights, dtype=np.float64)
    if isinstance(operator, Mixture):
        weight = share("weight", operator.weight)
        rest = float((1 - weight) / operator.size)
        inner = operator.of
        return np.asarray(float(weight) * spread(inner, weights) + rest * weights.sum(), dtype=np.float64)
    if isinstance(operator, Membership):
        return np.asarray(np.bincount(operator.cells, weights=weights), dtype=np.float64)
    if isinstance(operator, ShiftModulo):
        rounds, rest = divmod(
            2 * operator.reach + 1, operator.size
        )  # all values so often, and a window from y - reach on
        ring = np.concatenate([weights, weights])
        part = np.roll(_window_sums(ring, rest)[: operator.size], operator.reach) if rest else np.zeros(operator.size)
        return np.asarray(part + rounds * weights.sum()) / (2 * operator.reach + 1)
    assert isinstance(operator, Additive)
    if isinstance(operator.law, DiscreteUniform):
        width = 2 * operator.law.steps + 1
        return _window_sums(np.pad(weights, width - 1), width) / width
    return _laplace_smooth(weights, operator.epsilon / (operator.size - 1))


def _noise_entropy(operator: Operator) -> float:
    """H(Y|X) in bits, the entropy of the noise, equal for every input."""
    if isinstance(operator, Membership):
        return 0.0
    if isinstance(operator, Additive):
        if isinstance(operator.law, DiscreteUniform):
            return math.log2(2 * operator.law.steps + 1)
        decay = operator.epsilon / (operator.size - 1)  # H = -log tanh(d/2) + d E|k|, and E|k| = 1 / sinh d
        return (decay / math.sinh(decay) - math.log(math.tanh(decay / 2.0))) / math.log(2.0)
    row = operator.probabilities(np.array([0]))[0]  # every output has the same chances, in another order
    return entropy(row)


def _answer_entropy(operator: Operator, chances: Floats) -> float:
    """H(Y) in bits, including Laplace answers beyond the ends."""
    if not (isinstance(operator, Additive) and isinstance(operator.law, DiscreteLaplace)):
        return entropy(chances)
    decay, beyond = operator.epsilon / (operator.size - 1), 0.0
    ratio = math.exp(-decay)
    for end in (float(chances[0]), float(chances[-1])):
        first = end * ratio  # and first * ratio, first * ratio^2, ...
        if first > 0:
            total = first / -math.expm1(-decay)
            beyond += -total * math.log2(first) + total * decay / math.log(2.0) * ratio / -math.expm1(-decay)
    return entropy(chances) + beyond


def entropy(chances: Floats) -> float:
    """Entropy in bits."""
    some = chances[chances > 0]
    return float(-(some * np.log2(some)).sum()) + 0.0


def _window_sums(weights: Floats, width: int) -> Floats:
    """Sums of windows of a width; exactly 0 without a positive weight inside."""
    sums = np.concatenate([[0.0], np.cumsum(weights)])
    counts = np.concatenate([[0], np.cumsum(weights > 0)])
    some = counts[width:] > counts[:-width]
    return np.where(some, np.maximum(sums[width:] - sums[:-width], 0.0), 0.0)


def _laplace_smooth(weights: Floats, decay: float) -> Floats:
    """Sums of weights times tanh(d/2) e^(-d |distance|), by one pass from either side."""
    from scipy.signal import lfilter

    ratio = math.exp(-decay)
    left = lfilter([1.0], [1.0, -ratio], weights)
    right = lfilter([1.0], [1.0, -ratio], weights[::-1])[::-1]
    return np.asarray(math.tanh(decay / 2.0) * (left + right - weights), dtype=np.float64)


@dataclass(frozen=True)
class Uncertainty:
    """Uncertainty of a value in bits, before and after its answer.

    Parameters
    ----------
    before : float
        H(X), entropy of the prior.
    after : float
        H(X|Y), mean entropy of the posterior.
    """

    before: float
    after: float

    @property
    def information(self) -> float:
        """I(X;Y), the average information of an answer in bits."""
        return max(0.0, self.before - self.after)

    @property
    def privacy(self) -> float:
        """2^H(X|Y), the number of equally likely values of the same uncertainty."""
        return math.exp2(self.after)

    @property
    def loss(self) -> float:
        """P(X|Y) = 1 - 2^-I, the share of the uncertainty that an answer removes."""
        return -math.expm1(-self.information * math.log(2.0))


def uncertainty(operator: Operator, prior: Floats) -> Uncertainty:
    """Uncertainty about a value given the prior, before and after its answer [AA01].

    With the reconstructed distribution as the prior this is the privacy that is left once it is known; with the uniform
    one it is the nominal privacy of the law.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.core.distributions.operators import Membership
    >>> known = uncertainty(Membership(4, (0, 0, 1, 1)), np.full(4, 0.25))
    >>> known.before, known.after, known.privacy, known.loss
    (2.0, 1.0, 2.0, 0.5)
    """
    before = entropy(prior)
    if is_large(operator) and has_form(operator):  # H(X|Y) = H(X) + H(Y|X) - H(Y)
        answers = _answer_entropy(operator, spread(operator, prior))
        return Uncertainty(before, max(0.0, before + _noise_entropy(operator) - answers))
    after = 0.0
    for _, likely, chances in blocks(operator):
        joint = likely * prior  # in proportion to P[x, y]
        total = joint.sum(axis=1, keepdims=True)
        posterior = np.divide(joint, total, out=np.zeros_like(joint), where=total > 0)
        after += float((chances[:, 0] * total[:, 0] * _entropies(posterior)).sum())
    return Uncertainty(before, after)


def can_be_counted(operator: Operator) -> bool:
    """Whether there are few enough values and outputs to enumerate."""
    return operator.size <= MOST and (
        has_form(operator) or len(informative_outputs(operator)) * operator.size <= _MOST_PAIRS
    )


def _entropies(rows: Floats) -> Floats:
    logs = np.log2(rows, out=np.zeros_like(rows), where=rows > 0)
    return np.asarray(-(rows * logs).sum(axis=1)) + 0.0


MOST = 10_000_000
"""Values of a domain for which a prior is written out."""

_SUM = 1e-3  # how far written probabilities may be from 1 together, for they are rounded


def uniform_prior(domain: Universe) -> Floats:
    """Uniform distribution over the domain."""
    _check_size(domain)
    return np.full(domain.size, 1.0 / domain.size)


def observed_prior(domain: Universe, values: ArrayLike) -> Floats:
    """Relative frequencies of the domain's values among observed values.

    Examples
    --------
    >>> observed_prior(Labels(("no", "yes")), ["yes", "no", "no", "no"])
    array([0.75, 0.25])
    """
    _check_size(domain)
    codes = domain.encode(values)
    if not codes.size:
        raise TableError("a prior needs at least one observed value; the file has none")
    return np.bincount(codes.ravel(), minlength=domain.size) / codes.size


def prior_of(domain: Universe, values: ArrayLike, probabilities: ArrayLike) -> Floats:
    """Prior from listed values and probabilities; other values have probability 0.

    Examples
    --------
    >>> prior_of(Labels(("a", "b", "c")), ["c", "a"], [0.25, 0.75])
    array([0.75, 0.  , 0.25])
    """
    _check_size(domain)
    chances = np.asarray(probabilities, dtype=np.float64)
    bad = int((~(chances >= 0) | np.isinf(chances)).sum())
    if bad:
        raise TableError(f"{bad} probabilities of the prior are not numbers of 0 or more; correct them")
    total = math.fsum(chances)
    if abs(total - 1.0) > _SUM:
        raise TableError(f"the probabilities of the prior add up to {total:.4g}; make it 1")
    return np.bincount(domain.encode(values), weights=chances, minlength=domain.size) / total


def read_prior(path: str | Path, domain: Universe) -> Floats:
    """Read a prior from a CSV file: values and probabilities in two columns, or observed values in one.

    A first row that is no such row is taken as names of the columns.
    """
    try:
        with open_regular(path) as data, io.TextIOWrapper(data, encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"the prior cannot be read ({type(error).__name__}); check the path and the file") from None
    widths = {len(row) for row in rows}
    if not rows or len(widths) > 1 or not widths <= {1, 2}:
        raise TableError("a prior is a CSV file of values and probabilities, or of observed values alone")
    if _is_heading(rows[0], domain):
        rows = rows[1:]
    values = [row[0] if isinstance(domain, Labels | Dates) else _number(row[0]) for row in rows]
    if widths == {1}:
        return observed_prior(domain, values)
    return prior_of(domain, values, [_number(row[1]) for row in rows])


def _is_heading(row: list[str], domain: Universe) -> bool:
    if len(row) == 2:
        return math.isnan(_number(row[1]))
    if isinstance(domain, Dates):
        return not _is_date(row[0], domain)
    return row[0] not in domain.values if isinstance(domain, Labels) else math.isnan(_number(row[0]))


def _is_date(text: str, domain: Dates) -> bool:
    try:
        domain.count(text)
    except OptionError:
        return False
    return True


def _number(text: str) -> float:
    """A number from text; NaN if it is none, which later checks count."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _check_size(domain: Universe) -> None:
    if domain.size > MOST:
        raise OptionError(f"a prior is written out for at most {MOST:,} values; choose a coarser grid")
