"""How often an independent redraw of the population shows the same values by coincidence.

Values differ in how often they recur: a wage in whole thousands returns in any sample, one to the cent does not. How
many values have one, two, three persons shows how rates of recurrence are distributed. They are estimated as a Poisson
mixture by nonparametric maximum likelihood, from which follows what another sample of any size shows [Good & Toulmin
1956; Efron & Thisted 1976]. No hold-out set is needed, and no table is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.findings import Tries

__all__ = ["BY_RECURRENCE", "MOST_PERSONS", "REPLICATES", "RecurrenceRates", "as_tries"]

BY_RECURRENCE = (
    " No rows were held out; the baseline is what an independent redraw of the same population would show, estimated "
    "from how often values recur in the original."
)
"""What follows the meaning of an attack whose baseline is such an estimate."""
MOST_PERSONS = 20
"""Values held by more people are not part of the mixture: any redraw shows them, and none is unique."""
_GRID = np.concatenate([[0.0], np.geomspace(1e-3, 2.0 * MOST_PERSONS, 60)])
REPLICATES = 24
"""Estimates from resampled numbers of values, which tell how far off an estimate is (parametric bootstrap)."""
_Array = NDArray[np.float64]


def _likelihood() -> _Array:
    """Chance of each count from 1 to `MOST_PERSONS` at each rate, given that it is one of these."""
    from scipy.special import gammaln

    counts = np.arange(1.0, MOST_PERSONS + 1)
    chances = np.exp(counts * np.log(_GRID[1:, None]) - gammaln(counts + 1.0))  # but for a factor of each rate
    at_zero = np.zeros((1, MOST_PERSONS))
    at_zero[0, 0] = 1.0  # the limit: what is seen at all is seen once
    return np.concatenate([at_zero, chances / chances.sum(axis=1, keepdims=True)])


def _weights(chances: _Array, observed: _Array) -> _Array:
    """Weights of the rates whose expected numbers of values are nearest to those observed, each in its deviations."""
    from scipy.optimize import nnls

    deviations = np.sqrt(observed + 1.0)
    return np.asarray(nnls((chances / deviations).T, observed / deviations)[0])


@dataclass(frozen=True, eq=False, repr=False)
class RecurrenceRates:
    """Distribution of the expected frequency of values held by one to `MOST_PERSONS` people.

    ``weights`` has one row for the estimate and one for each bootstrap replicate, and a column for each rate.
    """

    weights: _Array

    @classmethod
    def fit(cls, frequencies: NDArray[np.int64], rng: np.random.Generator) -> RecurrenceRates:
        """Estimate from the number of people with each person's value; values without people are ignored."""
        counts = np.bincount(
            frequencies[(frequencies > 0) & (frequencies <= MOST_PERSONS)], minlength=MOST_PERSONS + 1
        )[1:]
        values = counts / np.arange(1.0, MOST_PERSONS + 1)  # a value of three persons is met three times
        observed = np.concatenate([values[None], rng.poisson(values, (REPLICATES, MOST_PERSONS))])
        chances = _likelihood()
        return cls(np.array([_weights(chances, some) for some in observed]))

    def unique_shown(self, ratio: float) -> _Array:
        """Chance that a redraw shows a value that one person alone holds.

        ``ratio`` is the size of the redraw divided by that of the original. First the estimate, then the replicates.
        """
        unique = self.weights * _likelihood()[:, 0]
        return _mean(unique, 1.0 - np.exp(-ratio * _GRID))

    def unique_in_both(self, ratio: float) -> _Array:
        """Chance that one person alone holds a value that stands in exactly one row of a redraw."""
        once = self.weights * _size_bias() * np.exp(-ratio * _GRID)
        return _mean(once, _GRID * np.exp(-_GRID))

    def person_shown(self, ratio: float) -> _Array:
        """Chance that a redraw shows the value of a person, among those whose values are part of the mixture."""
        return _mean(self.weights * _size_bias(), 1.0 - np.exp(-ratio * _GRID))


def _size_bias() -> _Array:
    """Number of people with a value of each rate, among values that occur."""
    return np.concatenate([[1.0], _GRID[1:] / -np.expm1(-_GRID[1:])])


def _mean(weights: _Array, values: _Array) -> _Array:
    total = weights.sum(axis=1)
    return np.asarray(np.divide(weights @ values, total, out=np.zeros(len(total)), where=total > 0))


def as_tries(share: float, of: int, variance: float) -> Tries:
    """An estimated share with the number of attempts that gives its variance, of people and of the estimate.

    Examples
    --------
    >>> tries = as_tries(0.5, 100, 0.0025)
    >>> round(tries.share, 2), round(tries.of)
    (0.5, 50)
    """
    chance = share * (1.0 - share)
    count = max(1.0, chance / (chance / of + variance)) if chance > 0.0 else float(of)
    return Tries(share * count, count)
