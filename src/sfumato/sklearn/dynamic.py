"""`DynamicCondenser`: groups maintained as rows arrive, for scikit-learn and River [AY05, sec. 3]."""

from __future__ import annotations

import hashlib
import io
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from sfumato.core.documents import from_json, write_json
from sfumato.core.errors import LevelError, OptionError, TableError
from sfumato.core.groups import Groups
from sfumato.methods.condense.maintainer import Maintainer, MaintainerState
from sfumato.methods.condense.partition import can_begin, partition
from sfumato.sklearn.transformers import draw_rows, framed, generator_of, levels_of_rows, origin_of, sample_rows
from sfumato.tables.frames import rows_of_series

__all__ = ["DynamicCondenser", "Snapshot", "read_snapshot", "write_snapshot"]

_MAGIC = b"sfumato condenser 2\n"
_DIGEST = 32
_NO_SNAPSHOT = (  # a file in it that is encrypted or packed by another method is a RuntimeError
    *(KeyError, TypeError, ValueError, EOFError, RuntimeError, OSError, OverflowError, MemoryError),
    *(zipfile.BadZipFile, zlib.error),
)


class DynamicCondenser(BaseEstimator):  # type: ignore[misc]
    """Groups of a numeric matrix that arriving rows join, each with its own privacy level [AY05, sec. 3].

    The first rows are held until there are enough, then condensed statically; every later one joins the closest group
    that is large enough for it, and a group that has grown is split by its statistics alone. Rows that no group is
    large enough for wait. How rows are cut into calls changes no bit of the result. Distances are taken as the matrix
    comes: standardize it first.

    If ``y`` holds classes, no group mixes them, and synthetic rows come with the class of their group. A class that has
    no group gets its first as soon as enough of its rows wait. The class of every synthetic row is certain then.

    Do not hand out ``groups_`` or `sample` again after a few arrivals: the difference of two states gives an arrival
    away. ``sfumato stream publish`` keeps the rule that prevents it.

    Parameters
    ----------
    k : int, default=10
        The floor of all levels.
    init_number : int, default=1000
        Rows that are held before the first groups are made, *InitNumber* in the paper; at least k are.
    split : {"strict", "paper"}, default="strict"
        ``"strict"`` splits a group only when both pieces are still as large as the highest level inside; ``"paper"``
        when it has at least twice the average level of its rows [AY05, eq. 3.2].
    grouping : {"compact", "paper", "mdav"}, default="compact"
        How the first rows are grouped; ``"paper"`` is ConstructGroups [AY05, fig. 2].
    pending_limit : int, default=10000
        Rows at most that wait for a group large enough.
    random_state : int, RandomState or None, default=None
        A seed marks a dry run: never release what was drawn with one.

    Attributes
    ----------
    groups_ : Groups
        Counts, means and scatters of the groups as they are now.
    n_records_, n_pending_ : int
        Rows in groups, and rows that are held or wait.
    n_features_in_ : int
    classes_ : ndarray of shape (n_classes,) or None
        Classes in order of their first row; None if rows came without classes.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> condenser = DynamicCondenser(k=5, init_number=100, random_state=0)
    >>> for part in np.array_split(X, 7):
    ...     condenser = condenser.partial_fit(part)
    >>> condenser.n_records_, int(condenser.groups_.count.min()) >= 5, condenser.sample().shape
    (500, True, (500, 3))
    """

    def __init__(
        self,
        k: int = 10,
        *,
        init_number: int = 1000,
        split: str = "strict",
        grouping: str = "compact",
        pending_limit: int = 10_000,
        random_state: Any = None,
    ) -> None:
        self.k = k
        self.init_number = init_number
        self.split = split
        self.grouping = grouping
        self.pending_limit = pending_limit
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, privacy_levels: Any = None) -> DynamicCondenser:  # noqa: N803
        """Fit from scratch; fewer rows than ``init_number`` are condensed at once.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,), optional
            Classes of the rows, which groups keep apart. A continuous ``y`` is a response and is not used.
        privacy_levels : array of shape (n_samples,), optional
            Level that each row asks for; the floor k holds for all.
        """
        values = np.asarray(validate_data(self, X, dtype=np.float64, ensure_min_samples=self.k))
        levels, labels = levels_of_rows(privacy_levels, len(values), self.k), _labels_of(values, y)
        self._forget(labels)
        self._origin = origin_of(self, X)
        self._take(values, levels, labels)
        if not len(self._maintainer.ids):
            self._begin(len(values))
        return self

    def partial_fit(self, X: Any, y: Any = None, *, privacy_levels: Any = None) -> DynamicCondenser:  # noqa: N803
        """Add rows in order; none is added if the pool would overflow.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,), optional
            Classes of the rows, as in `fit`; all calls have classes or none has.
        privacy_levels : array of shape (n_samples,), optional
            Level that each row asks for; the floor k holds for all.
        """
        first = not hasattr(self, "_maintainer")
        values = np.asarray(validate_data(self, X, dtype=np.float64, reset=first))
        levels, labels = levels_of_rows(privacy_levels, len(values), self.k), _labels_of(values, y)
        if first:
            self._forget(labels)
            self._origin = origin_of(self, X)
        self._take(values, levels, labels)
        return self

    def fit_resample(self, X: Any, y: Any, *, privacy_levels: Any = None) -> tuple[Any, Any]:  # noqa: N803
        """Fit rows with their classes, and draw synthetic rows with theirs; Series are returned as such."""
        self.fit(X, y, privacy_levels=privacy_levels)
        if self.classes_ is None:
            raise OptionError("y holds no classes; call fit and sample for rows without classes")
        rows, strata = self._draw(None)
        labels = np.asarray(_labels_of(rows[:0], y, check=False))
        first = np.array([np.flatnonzero(labels == each)[0] for each in self.classes_])
        series = rows_of_series(y, first[strata])
        return framed(self, rows), self.classes_[strata] if series is None else series

    def learn_many(self, X: Any, y: Any = None, *, privacy_levels: Any = None) -> None:  # noqa: N803
        """Add rows; River's name for `partial_fit`."""
        self.partial_fit(X, y, privacy_levels=privacy_levels)

    def learn_one(self, x: Any, y: Any = None, *, privacy_level: int | None = None) -> None:
        """Add one row: a mapping of feature names to numbers as in River, or the numbers in order.

        Parameters
        ----------
        x : mapping or sequence of numbers
            The first mapping fixes names and order; all later ones have the same names.
        y : class, optional
        privacy_level : int, optional
        """
        row = np.array([self._in_order(x) if isinstance(x, Mapping) else list(x)], dtype=np.float64)
        levels = levels_of_rows(None if privacy_level is None else [privacy_level], 1, self.k)
        first = not hasattr(self, "_maintainer")
        if first:
            row = np.asarray(validate_data(self, row, dtype=np.float64))
            if isinstance(x, Mapping):
                self.feature_names_in_ = np.array(list(x), dtype=object)
        labels = None if y is None else _labels_of(row, [y])
        if first:
            self._forget(labels)
        self._take(row, levels, labels)

    @property
    def groups_(self) -> Groups:
        """Current group statistics."""
        check_is_fitted(self)
        if not len(self._maintainer.ids):
            raise NotFittedError(
                f"{self.n_pending_} rows have come and the first groups take {max(self.init_number, self.k)}, or more "
                "where levels are high; learn more, or call fit"
            )
        return self._maintainer.groups

    @property
    def n_records_(self) -> int:
        """Rows in groups."""
        check_is_fitted(self)
        return self._maintainer.records

    @property
    def n_pending_(self) -> int:
        """Rows held for the first groups or waiting for a group large enough."""
        check_is_fitted(self)
        return len(self._held_levels) + self._maintainer.pending

    @property
    def classes_(self) -> NDArray[Any] | None:
        """Classes in order of first occurrence; None without classes."""
        check_is_fitted(self)
        return None if self._classes is None else np.array(self._classes)

    def sample(self, n: int | None = None) -> Any:
        """Synthetic rows in random order: n of them, or as many as there are rows in groups.

        With classes a tuple: the rows, and the class of each.
        """
        rows, strata = self._draw(n)
        classes = self.classes_
        return framed(self, rows) if classes is None else (framed(self, rows), classes[strata])

    def _draw(self, n: int | None) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Synthetic rows in random order, and the stratum of each."""
        groups, of_group = self.groups_, self._maintainer.rows().stratum

        def drawn(rng: np.random.Generator) -> NDArray[np.float64]:
            return np.column_stack([draw_rows(groups, rng), np.repeat(of_group, groups.count)])

        rows = sample_rows(drawn, n, generator_of(self.random_state, 1))
        return rows[:, :-1], rows[:, -1].astype(np.int64)

    def snapshot(self) -> bytes:
        """The full state as bytes, for the owner only, because it contains waiting rows.

        The form is arrays and JSON under a digest, and holds no code.
        """
        check_is_fitted(self)
        if self.random_state is not None and not isinstance(self.random_state, (int, np.integer)):
            raise OptionError("a snapshot cannot keep a RandomState; give random_state as a number or None")
        seed = None if self.random_state is None else int(self.random_state)
        parameters = Parameters(self.k, self.init_number, self.split, self.grouping, self.pending_limit, seed)
        names = getattr(self, "feature_names_in_", None)
        return write_snapshot(
            Snapshot(
                parameters,
                None if names is None else tuple(map(str, names)),
                self._held_values,
                self._held_levels,
                self._held_strata,
                self.classes_,
                self._maintainer.state(),
            )
        )

    @classmethod
    def restore(cls, snapshot: bytes) -> DynamicCondenser:
        """Resume from a snapshot, bit for bit as if uninterrupted.

        Raises
        ------
        TableError
            For bytes that are not a whole snapshot of this form.
        """
        found = read_snapshot(snapshot)
        made = cls(**vars(found.parameters))
        made.n_features_in_ = found.state.d
        if found.names is not None:
            made.feature_names_in_ = np.array(found.names, dtype=object)
        made._held_values, made._held_levels, made._held_strata = found.values, found.levels, found.strata
        made._classes = None if found.classes is None else found.classes.tolist()
        made._maintainer = Maintainer.from_state(found.state)
        return made

    def _in_order(self, x: Mapping[Any, Any]) -> list[Any]:
        """Numbers of a mapping in feature order."""
        names = list(getattr(self, "feature_names_in_", x if not hasattr(self, "_maintainer") else ()))
        if not names:
            raise TableError("earlier rows came without names; give the numbers in order")
        lacking = [name for name in names if name not in x]
        if lacking or len(x) > len(names):
            raise TableError(
                f"a row lacks {len(lacking)} of {len(names)} features and has {len(x) + len(lacking) - len(names)} "
                "others; give each row the features of the first"
            )
        return [x[name] for name in names]

    def _forget(self, labels: NDArray[Any] | None) -> None:
        """Reset, with classes or without."""
        self._classes: list[Any] | None = None if labels is None else []
        self._begin_anew()

    def _begin_anew(self) -> None:
        d, split = self.n_features_in_, self.split
        options: Any = {"pending_limit": self.pending_limit, "track": False, "stratified": self._classes is not None}
        self._maintainer = Maintainer(d, k=self.k, split=split, **options)  # type: ignore[arg-type]
        self._held_values, self._held_levels = np.empty((0, d)), np.empty(0, dtype=np.int64)
        self._held_strata = np.empty(0, dtype=np.int64)

    def _take(self, values: NDArray[np.float64], levels: NDArray[np.int64], labels: NDArray[Any] | None) -> None:
        """Add rows; classes of refused rows are not registered."""
        known = None if self._classes is None else list(self._classes)
        try:
            self._learn(values, levels, self._strata(labels, len(values)))
        except BaseException:
            self._classes = known
            raise

    def _strata(self, labels: NDArray[Any] | None, rows: int) -> NDArray[np.int64]:
        """Index of each row's class in `classes_`; new classes are appended."""
        if (labels is None) != (self._classes is None):
            hint = (
                "without classes, and earlier ones had" if labels is None else "with classes, and earlier ones had none"
            )
            raise OptionError(f"these rows came {hint}; give y in every call or in none, or call fit to begin anew")
        if labels is None or self._classes is None:
            return np.zeros(rows, dtype=np.int64)
        names = labels.tolist()
        self._classes += [name for name in dict.fromkeys(names) if name not in self._classes]
        place = {name: place for place, name in enumerate(self._classes)}
        return np.array([place[name] for name in names], dtype=np.int64)

    def _absorb(self, values: NDArray[np.float64], levels: NDArray[np.int64], strata: NDArray[np.int64]) -> None:
        self._maintainer.absorb(values, levels, None if self._classes is None else strata)

    def _learn(self, values: NDArray[np.float64], levels: NDArray[np.int64], strata: NDArray[np.int64]) -> None:
        if len(self._maintainer.ids):
            self._absorb(values, levels, strata)
            return
        kept = self._held_values, self._held_levels, self._held_strata
        self._held_values, self._held_levels = np.concatenate([kept[0], values]), np.concatenate([kept[1], levels])
        self._held_strata = np.concatenate([kept[2], strata])
        enough = max(self.init_number, self.k, len(kept[1]) + 1)
        try:
            for n in range(enough, len(self._held_levels) + 1):
                if _able(self._held_levels[:n], self._held_strata[:n]).any():
                    self._begin(n)
                    return
                self._check_room(n)
        except BaseException:
            self._begin_anew()
            self._held_values, self._held_levels, self._held_strata = kept
            raise

    def _begin(self, n: int) -> None:
        """Form the first groups from the first n rows and absorb the others; rows of too high a level wait."""
        values, levels, strata = self._held_values, self._held_levels, self._held_strata
        able = _able(levels[:n], strata[:n])
        if not able.any():
            which = f"{n}, the number of rows" if self._classes is None else "the number of rows of its class"
            raise LevelError(f"no level is as low as {which}; add more rows or lower the levels")
        first, asked, own = values[:n][able], levels[:n][able], strata[:n][able]
        labels = partition(first, asked, own, generator_of(self.random_state, 0), grouping=self.grouping)
        self._absorb(values[:n][~able], levels[:n][~able], strata[:n][~able])  # there are no groups yet, so they wait
        self._maintainer.start(first, asked, labels, None if self._classes is None else own)
        self._absorb(values[n:], levels[n:], strata[n:])
        self._held_values, self._held_levels = values[:0].copy(), levels[:0].copy()
        self._held_strata = strata[:0].copy()

    def _check_room(self, n: int) -> None:
        most = max(self.init_number, self.k) + self.pending_limit
        if n > most:
            raise LevelError(
                f"more than {most} rows have come and none has a level as low as their number, so no group can be "
                "made; lower the levels"
            )


def _labels_of(rows: NDArray[np.float64], y: Any, *, check: bool = True) -> NDArray[Any] | None:
    """Classes of rows; None if there are none, or ``y`` is a response."""
    if y is None:
        return None
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # of few rows nearly all may differ
        if type_of_target(y) not in ("binary", "multiclass"):
            return None
    labels = column_or_1d(y)
    if check:
        check_consistent_length(rows, labels)
    return np.array(labels.tolist()) if labels.dtype == object else np.asarray(labels)


def _able(levels: NDArray[np.int64], strata: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Rows of each stratum that can form groups now."""
    able = np.zeros(len(levels), dtype=np.bool_)
    for stratum in np.unique(strata):
        own = np.flatnonzero(strata == stratum)
        able[own] = can_begin(levels[own])
    return able


@dataclass(frozen=True)
class Parameters:
    """Parameters of a `DynamicCondenser`."""

    k: int
    init_number: int
    split: str
    grouping: str
    pending_limit: int
    random_state: int | None


@dataclass(frozen=True, eq=False, repr=False)
class Snapshot:
    """Parameters, feature names, held rows, classes, and the state of the groups."""

    parameters: Parameters
    names: tuple[str, ...] | None
    values: NDArray[np.float64]
    levels: NDArray[np.int64]
    strata: NDArray[np.int64]
    classes: NDArray[Any] | None
    state: MaintainerState

    def __repr__(self) -> str:
        return "Snapshot(owner only)"


@dataclass(frozen=True)
class _SnapshotHeader:
    """Metadata of a snapshot beside its arrays."""

    parameters: Parameters
    names: tuple[str, ...] | None
    state: dict[str, int | str | bool]


def write_snapshot(snapshot: Snapshot) -> bytes:
    """Serialize a snapshot; equal states give equal bytes."""
    state = {field.name: getattr(snapshot.state, field.name) for field in fields(MaintainerState)}
    arrays = {f"state {name}": value for name, value in state.items() if isinstance(value, np.ndarray)}
    numbers = {name: value for name, value in state.items() if not isinstance(value, np.ndarray)}
    about = _SnapshotHeader(snapshot.parameters, snapshot.names, numbers)
    body = io.BytesIO()
    text = np.frombuffer(write_json(about, escaped=True).encode(), dtype=np.uint8)
    given: Any = {"about": text, "values": snapshot.values, "levels": snapshot.levels, **arrays}
    given |= {"strata": snapshot.strata} | ({} if snapshot.classes is None else {"classes": snapshot.classes})
    np.savez(body, **given)
    return _MAGIC + hashlib.sha256(body.getvalue()).digest() + body.getvalue()


def read_snapshot(data: bytes) -> Snapshot:
    """Deserialize a snapshot; a `TableError` for invalid bytes."""
    start = len(_MAGIC) + _DIGEST
    if data[: len(_MAGIC)] != _MAGIC:
        raise TableError("these bytes are no snapshot of a condenser of this version; provide one")
    if hashlib.sha256(data[start:]).digest() != data[len(_MAGIC) : start]:
        raise TableError("the snapshot is damaged or only half copied; use a complete one")
    try:
        with np.load(io.BytesIO(data[start:]), allow_pickle=False) as held:
            about = from_json(_SnapshotHeader, held["about"].tobytes())
            arrays = {name.removeprefix("state "): held[name] for name in held.files if name.startswith("state ")}
            state = MaintainerState(**arrays, **cast(Any, about.state))
            classes = held["classes"] if "classes" in held.files else None
            rows = held["values"], held["levels"], held["strata"]
            return Snapshot(about.parameters, about.names, *rows, classes, state)
    except _NO_SNAPSHOT:
        raise TableError("the snapshot was written by another version; use that one") from None
