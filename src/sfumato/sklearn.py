"""scikit-learn estimators: adapters around the same pure functions, no logic of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.condense.mechanism import effective_levels
from sfumato.condense.partition import partition
from sfumato.geometry.draw import Ranges
from sfumato.geometry.hybrid import hybrid, invert
from sfumato.geometry.key import Key
from sfumato.groups import Groups, generate, summarize
from sfumato.records import Block, BlockKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Condenser", "GeometricTransformer"]


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
        rows = self._draw(rng)
        of_group = np.zeros(len(self.groups_), dtype=np.int64)
        of_group[self.labels_] = strata
        order = rng.permutation(len(rows))
        return rows[order], classes[np.repeat(of_group, self.groups_.count)[order]]

    def sample(self) -> NDArray[np.float64]:
        """Draw as many synthetic rows as there were real ones, in random order."""
        check_is_fitted(self)
        rng = self._generator(1)
        rows = self._draw(rng)
        return rows[rng.permutation(len(rows))]

    def _group(self, values: NDArray[np.float64], strata: NDArray[np.int64], privacy_levels: Any) -> None:
        asked = np.zeros(len(values), dtype=np.int64)
        if privacy_levels is not None:
            asked = _whole(privacy_levels, len(values))
        levels = effective_levels(asked, self.k, allow_level_1=False)
        self.labels_ = partition(values, levels, strata, self._generator(0), grouping=self.grouping, effort=self.effort)
        self.groups_: Groups = summarize(values, self.labels_, levels)
        self.ssq_ = self.groups_.ssq
        total = float(((values - values.mean(axis=0)) ** 2).sum())
        self.information_loss_ = 100.0 * self.ssq_ / total if total > 0 else 0.0

    def _draw(self, rng: np.random.Generator) -> NDArray[np.float64]:
        d = self.groups_.mean.shape[1]
        layout = tuple(Block(f"x{column}", BlockKind.NUMBER, column, column + 1, (0.0,)) for column in range(d))
        return generate(self.groups_, layout, rng)

    def _generator(self, step: int) -> np.random.Generator:
        """Give the generator of one step: seeded where a state was given, else a release's own randomness."""
        if self.random_state is None:
            from sfumato.randomness import Randomness

            return Randomness().generator("condenser")
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        return np.random.default_rng([int(seed), step])


class GeometricTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Translation, scaling, rotation or a mixture of a numeric matrix by a secret key [OZ03].

    Outsourcing obfuscation: a few known rows undo it. Keep ``key_`` apart from what leaves.

    Parameters
    ----------
    kind : {"translate", "scale", "rotate", "hybrid"}, default="rotate"
    key : Key, default=None
        By default ``fit`` draws one. Its columns are the features' names, x0, x1, ... where they have none; with a key
        neither kind nor ranges matter.
    deviations : (float, float), default=(-3.0, 3.0)
        Between which bounds shifts are drawn, in standard deviations.
    factor : (float, float), default=(0.5, 2.0)
        Between which bounds factors are drawn.
    degrees : (float, float), default=(0.0, 360.0)
        Between which bounds angles are drawn, clockwise.
    units : dict of str to float, default=None
        How much of a column counts as one when it is turned; by default its standard deviation.
    pairs : {"chain", "disjoint"}, default="chain"
        Which columns are turned together.
    random_state : int, RandomState or None, default=None
        A seed marks a rehearsal: never release what was made with one.

    Attributes
    ----------
    key_ : Key
    n_features_in_ : int

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> turned = GeometricTransformer(random_state=0).fit(X)
    >>> bool(np.allclose(turned.inverse_transform(turned.transform(X)), X))
    True
    """

    def __init__(
        self,
        kind: str = "rotate",
        *,
        key: Key | None = None,
        deviations: tuple[float, float] = (-3.0, 3.0),
        factor: tuple[float, float] = (0.5, 2.0),
        degrees: tuple[float, float] = (0.0, 360.0),
        units: dict[str, float] | None = None,
        pairs: str = "chain",
        random_state: Any = None,
    ) -> None:
        self.kind = kind
        self.key = key
        self.deviations = deviations
        self.factor = factor
        self.degrees = degrees
        self.units = units
        self.pairs = pairs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> GeometricTransformer:  # noqa: N803, ARG002
        """Draw a key for the columns, or take the one that was given."""
        values = np.asarray(validate_data(self, X, dtype=np.float64))
        names, spread = self._names(), values.std(axis=0)
        if self.key is not None:
            self.key.check_cover(names)
            self.key_: Key = self.key
            return self
        sizes = dict(zip(names, np.where(spread > 0, spread, 1.0).tolist(), strict=True))
        low, high = self.deviations
        ranges = Ranges(
            {name: (low * size, high * size) for name, size in sizes.items()},
            dict.fromkeys(names, self.factor),
            self.degrees,
            sizes | (self.units or {}),
        )
        self.key_ = Key.generate(names, ranges, _generator(self.random_state, 0), kind=self.kind, pairs=self.pairs)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Move the rows by the key; they keep their order."""
        check_is_fitted(self)
        values = np.asarray(validate_data(self, X, dtype=np.float64, reset=False))
        return hybrid(values, self.key_, self._names())

    def inverse_transform(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Give back what was moved."""
        from sklearn.utils import check_array

        check_is_fitted(self)
        values = np.asarray(check_array(X, dtype=np.float64))
        return invert(values, self.key_, self._names())

    def _names(self) -> tuple[str, ...]:
        known = getattr(self, "feature_names_in_", None)
        return tuple(f"x{place}" for place in range(self.n_features_in_)) if known is None else tuple(known)


def _generator(random_state: Any, step: int) -> np.random.Generator:
    """Give the generator of one step: seeded where a state was given, else a release's own randomness."""
    if random_state is None:
        from sfumato.randomness import Randomness

        return Randomness().generator("estimator")
    seed = check_random_state(random_state).randint(2**31 - 1)
    return np.random.default_rng([int(seed), step])


def _whole(levels: Any, n: int) -> NDArray[np.int64]:
    from sfumato.errors import LevelError

    numbers = np.asarray(levels, dtype=np.float64)
    if numbers.shape != (n,):
        raise LevelError(f"privacy_levels has shape {numbers.shape} for {n} rows; give one level a row")
    odd = int((~np.isfinite(numbers) | (numbers != np.rint(numbers))).sum())
    if odd:
        raise LevelError(f"{odd} privacy levels are missing or not whole numbers; levels are whole numbers from 2")
    return numbers.astype(np.int64)
