"""Naive Bayes learned from randomized records, by reconstructed distributions.

Each column's distribution inside each class is reconstructed as AS00's tree does it by class (R. Agrawal, R. Srikant:
Privacy-Preserving Data Mining, SIGMOD 2000, sec. 4); naive Bayes needs nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Floats
from sfumato.core.distributions.domains import Labels
from sfumato.core.distributions.operators import transition
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.errors import BadInput, OptionError
from sfumato.mining.clusters import check_fitted, check_whole
from sfumato.survey.mining.intervals import (
    Intervals,
    ReleasedRecords,
    Source,
    check_classes,
    check_stop,
    distributions,
    read_released,
    true_intervals,
)
from sfumato.survey.reconstruct.iterate import reconstruct_counts

__all__ = ["ReconstructedNaiveBayes"]


@dataclass(kw_only=True, eq=False)
class ReconstructedNaiveBayes:
    """Naive Bayes for true values, learned from randomized ones; numbers and labels, and also a randomized class.

    Parameters
    ----------
    specs : mapping of str to NoiseSpec or domain
        The law of each column; for a column that was not randomized, its domain.
    target : NoiseSpec, optional
        The law of the class, where that was randomized too: its domain must be labels. Class and column are then
        reconstructed together, on all pairs of a class and an interval.
    intervals : int, optional
        Of each column of numbers; by default one for every 100 records, but 10 to 100. Labels are each their own.
    smoothing : float, default=1.0
        Records that every interval of every class is given besides its own.
    stop : {"chi-square", "likelihood"}, default="chi-square"
        When the iteration of the reconstruction ends.

    Attributes
    ----------
    classes_ : ndarray of shape (c,)
    columns_ : tuple of Intervals
    class_prior_ : ndarray of shape (c,)
    shares_ : tuple of ndarray of shape (c, m)
        Distribution of each column inside each class.
    n_features_in_ : int

    Examples
    --------
    >>> from sfumato.core.distributions.domains import Labels
    >>> rng = np.random.default_rng(0)
    >>> ill = rng.random(3000) < 0.5
    >>> smokes = np.where(rng.random(3000) < np.where(ill, 0.8, 0.2), "yes", "no")
    >>> spec = NoiseSpec(Labels(("no", "yes")), {"name": "response", "epsilon": 1.0})
    >>> miner = ReconstructedNaiveBayes(specs={"smokes": spec}).fit({"smokes": spec.randomize(smokes, rng)}, ill)
    >>> miner.predict({"smokes": ["no", "yes"]}).tolist()
    [False, True]
    """

    specs: Mapping[str, Source]
    target: NoiseSpec | None = None
    intervals: int | None = None
    smoothing: float = 1.0
    stop: str = "chi-square"
    classes_: NDArray[Any] = field(init=False, repr=False)
    columns_: tuple[Intervals, ...] = field(init=False, repr=False)
    class_prior_: Floats = field(init=False, repr=False)
    shares_: tuple[Floats, ...] = field(init=False, repr=False)
    n_features_in_: int = field(init=False, repr=False)

    def fit(self, X: Any, y: Any) -> ReconstructedNaiveBayes:  # noqa: N803
        """Learn from randomized records.

        Parameters
        ----------
        X : table or array of shape (n, d)
            Randomized values. A table (mapping, pandas, polars, arrow) is read by the names of ``specs``, an array in
            their order.
        y : array of shape (n,)
            True classes, or, with ``target``, randomized ones.
        """
        self._check()
        released = read_released(self.specs, X, y, self.intervals)
        if self.target is None:
            check_classes(released)
            classes, held = released.classes, np.bincount(released.code).astype(np.float64)
            shares = [self._by_class(released, at) for at in range(len(released.columns))]
        else:
            classes, held, shares = self._with_classes(released, self.target)
        size = held[:, None]
        self.shares_ = tuple(
            (share * size + self.smoothing) / (size + self.smoothing * share.shape[1]) for share in shares
        )
        self.classes_, self.class_prior_ = classes, held / held.sum()
        self.columns_, self.n_features_in_ = released.columns, len(released.columns)
        return self

    def predict_log_proba(self, X: Any) -> Floats:  # noqa: N803
        """Logarithm of the probability of each class for each row of true values."""
        check_fitted(self, "shares_")
        codes = true_intervals(self.columns_, X)
        joint = np.tile(_log(self.class_prior_), (len(codes), 1))
        for at, shares in enumerate(self.shares_):
            joint += _log(shares).T[codes[:, at]]
        highest = joint.max(axis=1, keepdims=True)
        shifted = joint - np.where(np.isfinite(highest), highest, 0.0)
        return np.asarray(shifted - _log(np.exp(shifted).sum(axis=1, keepdims=True)))

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """Probability of each class for each row of true values."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Likeliest class of each row of true values."""
        chances = self.predict_log_proba(X)
        return np.asarray(self.classes_[np.argmax(chances, axis=1)])

    def _check(self) -> None:
        check_stop(self.stop)
        if self.intervals is not None:
            check_whole("intervals", self.intervals, 2)
        if not (math.isfinite(self.smoothing) and self.smoothing > 0.0):
            raise OptionError("smoothing must be a number above 0, else an empty interval rules a class out")
        if self.target is not None and not isinstance(self.target.domain, Labels):
            raise OptionError("the target's specification must be of labels; leave it out where classes are true")

    def _by_class(self, released: ReleasedRecords, at: int) -> Floats:
        everyone = np.arange(len(released.code))
        counts = released.counts(at, everyone, released.code, len(released.classes))
        return distributions(released.columns[at], counts, self.stop)

    def _with_classes(self, released: ReleasedRecords, target: NoiseSpec) -> tuple[NDArray[Any], Floats, list[Floats]]:
        """Reconstruct classes, and each column together with them: noise on both is one matrix, their product."""
        sent = target.encode_output(released.classes[released.code])
        chances = transition(target.operator)
        everyone = np.arange(len(sent))
        prior = reconstruct_counts(np.bincount(sent, minlength=chances.shape[1]), chances, stop=self.stop).probability
        shares = []
        for at, column in enumerate(released.columns):
            inner = np.eye(column.size) if column.matrix is None else column.matrix
            counts = released.counts(at, everyone, sent, chances.shape[1])
            joint = reconstruct_counts(counts.ravel(), np.kron(chances, inner), stop=self.stop).probability
            table = joint.reshape(len(chances), column.size)
            held = table.sum(axis=1, keepdims=True)
            shares.append(np.where(held > 0.0, table / np.where(held > 0.0, held, 1.0), 1.0 / column.size))
        if int((prior > 0.0).sum()) < 2:
            raise BadInput("the randomized classes come from a single one by reconstruction; add more records")
        return np.array(target.domain.decode(np.arange(target.domain.size))), prior * len(sent), shares


def _log(numbers: Floats) -> Floats:
    """Logarithms, of 0 minus infinity."""
    return np.log(numbers, out=np.full_like(numbers, -np.inf), where=numbers > 0.0)
