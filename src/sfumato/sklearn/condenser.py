"""`Condenser`: group condensation of a matrix as a scikit-learn estimator [AY05]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.condense.partition import partition
from sfumato.groups import Groups, summarize
from sfumato.sklearn.arguments import draw_rows, generator_of, levels_of_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Condenser"]


class Condenser(BaseEstimator):  # type: ignore[misc]
    """Group condensation of a numeric matrix, with a privacy level for each row [AY05].

    Distances are taken as the matrix comes: standardize it first, for instance in a pipeline.

    Parameters
    ----------
    k : int, default=10
        The floor: the group of each row has at least max(k, its privacy level) rows.
    grouping : {"compact", "mdav", "paper", "modified", "holistic"}, default="compact"
        ``"compact"`` searches for groups of low sum of squares, ``"mdav"`` is exact MDAV at the highest level,
        ``"paper"`` is ConstructGroups [AY05, fig. 2].
    effort : {"fast", "default", "thorough"}, default="default"
        How long the compact grouping searches.
    random_state : int, RandomState or None, default=None
        A seed marks a rehearsal: never release what was drawn with one.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Group of each row.
    groups_ : Groups
        Counts, means and scatters of the groups.
    ssq_ : float
        Sum of squared distances of the rows to their group's mean.
    information_loss_ : float
        100 * SSE / SST, from 0 (nothing lost) to 100.
    n_features_in_ : int

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> condenser = Condenser(k=5, random_state=0).fit(X)
    >>> int(np.bincount(condenser.labels_).min()), condenser.sample().shape
    (5, (200, 3))
    """

    def __init__(
        self, k: int = 10, *, grouping: str = "compact", effort: str = "default", random_state: Any = None
    ) -> None:
        self.k = k
        self.grouping = grouping
        self.effort = effort
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, privacy_levels: Any = None) -> Condenser:  # noqa: N803, ARG002
        """Group the rows.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : ignored
        privacy_levels : array of shape (n_samples,), optional
            Level that each row asks for; the floor k holds for all.
        """
        values = np.asarray(validate_data(self, X, dtype=np.float64, ensure_min_samples=self.k))
        self._group(values, np.zeros(len(values), dtype=np.int64), privacy_levels)
        return self

    def fit_resample(self, X: Any, y: Any, *, privacy_levels: Any = None) -> tuple[Any, Any]:  # noqa: N803
        """Group the rows of each class and give synthetic rows with their classes in place of the real ones.

        No group mixes classes, so the class of every synthetic row is certain.
        """
        values, y = validate_data(self, X, y, dtype=np.float64)
        classes, strata = np.unique(y, return_inverse=True)
        self._group(np.asarray(values), strata.astype(np.int64), privacy_levels)
        rng = self._generator(1)
        rows = draw_rows(self.groups_, rng)
        of_group = np.zeros(len(self.groups_), dtype=np.int64)
        of_group[self.labels_] = strata
        order = rng.permutation(len(rows))
        return rows[order], classes[np.repeat(of_group, self.groups_.count)[order]]

    def sample(self) -> NDArray[np.float64]:
        """Draw as many synthetic rows as there were real ones, in random order."""
        check_is_fitted(self)
        rng = self._generator(1)
        rows = draw_rows(self.groups_, rng)
        return rows[rng.permutation(len(rows))]

    def _group(self, values: NDArray[np.float64], strata: NDArray[np.int64], privacy_levels: Any) -> None:
        levels = levels_of_rows(privacy_levels, len(values), self.k)
        self.labels_ = partition(values, levels, strata, self._generator(0), grouping=self.grouping, effort=self.effort)
        self.groups_: Groups = summarize(values, self.labels_, levels)
        self.ssq_ = self.groups_.ssq
        total = float(((values - values.mean(axis=0)) ** 2).sum())
        self.information_loss_ = 100.0 * self.ssq_ / total if total > 0 else 0.0

    def _generator(self, step: int) -> np.random.Generator:
        return generator_of(self.random_state, step)
