"""scikit-learn transformers of a matrix: group condensation [AY05], and translation, scaling and rotation [OZ03]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.core.errors import LevelError, OptionError
from sfumato.core.groups import Groups, nearest_centre, summarize
from sfumato.core.groups.generate import GroupAxes, generate
from sfumato.core.records import Block, BlockKind
from sfumato.methods.condense import effective_levels
from sfumato.methods.condense.partition import partition
from sfumato.methods.geometry.key import Key
from sfumato.methods.geometry.transformations import Ranges, hybrid, invert
from sfumato.tables.frames import Origin, restore, rows_of_series, to_arrow

__all__ = [
    "Condenser",
    "GeometricTransformer",
    "draw_rows",
    "framed",
    "generator_of",
    "levels_of_rows",
    "origin_of",
    "sample_rows",
]

_MOST_PRODUCTS = 1 << 24  # numbers of scatters that are held; beyond, axes of the groups are


class Condenser(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Group condensation of a numeric matrix, with a privacy level for each row [AY05].

    Distances are taken as the matrix comes: standardize it first, for instance in a pipeline. There it stands before a
    classifier: what is learnt is learnt of centroids. `sample` and `fit_resample` draw synthetic rows, in a frame of
    the kind that was fitted; a release should be made by `sfumato.sanitize`, which certifies it.

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
        A seed marks a dry run: never release what was drawn with one.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Group of each row.
    groups_ : Groups
        Counts, means and scatters of the groups; of very many columns they are computed when they are asked for.
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
        self._origin = origin_of(self, X)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Replace each row by the centroid of its nearest group; preprocessing, not a release.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        values = np.asarray(validate_data(self, X, dtype=np.float64, reset=False))
        return np.asarray(self._statistics.mean[nearest_centre(values, self._statistics.mean)])

    def fit_resample(self, X: Any, y: Any, *, privacy_levels: Any = None) -> tuple[Any, Any]:  # noqa: N803
        """Synthetic rows with classes, drawn from groups of one class each.

        No group mixes classes, so the class of every synthetic row is certain. Frames and Series come back as such.
        """
        values, labels = validate_data(self, X, y, dtype=np.float64)
        classes, first, strata = np.unique(labels, return_index=True, return_inverse=True)
        self._group(np.asarray(values), strata.astype(np.int64), privacy_levels)
        self._origin = origin_of(self, X)
        rng = generator_of(self.random_state, 1)
        rows = self._draw(rng)
        sizes = np.bincount(self.labels_)
        of_group = np.zeros(len(sizes), dtype=np.int64)
        of_group[self.labels_] = strata
        order = rng.permutation(len(rows))
        drawn = np.repeat(of_group, sizes)[order]
        series = rows_of_series(y, first[drawn])
        return framed(self, rows[order]), classes[drawn] if series is None else series

    def sample(self, n: int | None = None) -> Any:
        """Synthetic rows in random order.

        Parameters
        ----------
        n : int, optional
            How many; by default as many as there were real ones.
        """
        check_is_fitted(self)
        return framed(self, sample_rows(self._draw, n, generator_of(self.random_state, 1)))

    @property
    def groups_(self) -> Groups:
        """Counts, means and scatters of the groups."""
        check_is_fitted(self)
        held = self._statistics
        return held if isinstance(held, Groups) else held.groups()

    def _draw(self, rng: np.random.Generator) -> NDArray[np.float64]:
        held = self._statistics
        return draw_rows(held, rng) if isinstance(held, Groups) else held.draw(rng)

    def _group(self, values: NDArray[np.float64], strata: NDArray[np.int64], privacy_levels: Any) -> None:
        levels = levels_of_rows(privacy_levels, len(values), self.k)
        self.labels_ = partition(
            values, levels, strata, generator_of(self.random_state, 0), grouping=self.grouping, effort=self.effort
        )
        wide = (int(self.labels_.max()) + 1) * values.shape[1] ** 2 > _MOST_PRODUCTS
        self._statistics = (GroupAxes.of if wide else summarize)(values, self.labels_, levels)
        self.ssq_ = self._statistics.ssq
        total = float(((values - values.mean(axis=0)) ** 2).sum())
        self.information_loss_ = 100.0 * self.ssq_ / total if total > 0 else 0.0


def generator_of(random_state: Any, step: int) -> np.random.Generator:
    """Generator for one step: seeded if a state is given, otherwise from the operating system."""
    if random_state is None:
        from sfumato.core.randomness import Randomness

        return Randomness().generator("estimator")
    seed = check_random_state(random_state).randint(2**31 - 1)
    return np.random.default_rng([int(seed), step])


def levels_of_rows(levels: Any, n: int, k: int) -> NDArray[np.int64]:
    """Effective level of each row; the minimum k is at least 2."""
    if k < 2:
        raise LevelError(f"k is {k}, which is no protection; use k of at least 2")
    return effective_levels(_whole_levels(levels, n), k, allow_level_1=False)


def _whole_levels(levels: Any, n: int) -> NDArray[np.int64]:
    """Privacy levels, one per row, none missing; zeros, which request nothing, if not given."""
    if levels is None:
        return np.zeros(n, dtype=np.int64)
    numbers = np.asarray(levels, dtype=np.float64)
    if numbers.shape != (n,):
        raise LevelError(f"privacy_levels has shape {numbers.shape} for {n} rows; give one level a row")
    odd = int((~np.isfinite(numbers) | (numbers != np.rint(numbers))).sum())
    if odd:
        raise LevelError(f"{odd} privacy levels are missing or not whole numbers; levels are whole numbers from 2")
    return numbers.astype(np.int64)


def draw_rows(groups: Groups, rng: np.random.Generator) -> NDArray[np.float64]:
    """As many rows as the groups have records, group after group; all coordinates are numeric."""
    d = groups.mean.shape[1]
    layout = tuple(Block(f"x{column}", BlockKind.NUMBER, column, column + 1, (0.0,)) for column in range(d))
    return generate(groups, layout, rng)


def sample_rows(
    draw: Callable[[np.random.Generator], NDArray[np.float64]], n: int | None, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Rows in random order: n of them, or as many as are drawn at once; each group in proportion to its size."""
    if n is None:
        rows = draw(rng)
        return rows[rng.permutation(len(rows))]
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise OptionError(
            "the number of rows to draw is a whole number above 0; leave it out for as many as there were"
        )
    draws = [sample_rows(draw, None, rng)]
    while sum(map(len, draws)) < n:
        draws.append(sample_rows(draw, None, rng))
    return np.concatenate(draws)[:n]


def origin_of(estimator: Any, X: Any) -> Origin | None:  # noqa: N803
    """Kind of frame of a matrix; None without column names."""
    return None if getattr(estimator, "feature_names_in_", None) is None else to_arrow(X[:0])[1]


def framed(estimator: Any, rows: NDArray[np.float64]) -> Any:
    """Rows as a frame of the fitted kind, if it was a frame."""
    origin = getattr(estimator, "_origin", None)
    if origin is None:
        return rows
    names = [str(name) for name in estimator.feature_names_in_]
    return restore(pa.table(list(rows.T), names=names), origin, frozenset(names))


class GeometricTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Translate, scale or rotate a numeric matrix by a secret key [OZ03].

    Outsourcing obfuscation: a few known rows undo it. Keep ``key_`` apart from the release.

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
        A seed marks a dry run: never release what was made with one.

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
        """Draw a key for the columns, or take the given one."""
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
        self.key_ = Key.generate(names, ranges, generator_of(self.random_state, 0), kind=self.kind, pairs=self.pairs)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Transform the rows by the key; their order is kept."""
        check_is_fitted(self)
        values = np.asarray(validate_data(self, X, dtype=np.float64, reset=False))
        return hybrid(values, self.key_, self._names())

    def inverse_transform(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Recover the original rows."""
        from sklearn.utils import check_array

        check_is_fitted(self)
        values = np.asarray(check_array(X, dtype=np.float64))
        return invert(values, self.key_, self._names())

    def _names(self) -> tuple[str, ...]:
        known = getattr(self, "feature_names_in_", None)
        return tuple(f"x{place}" for place in range(self.n_features_in_)) if known is None else tuple(known)
