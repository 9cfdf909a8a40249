"""`DynamicCondenser`: groups maintained as rows arrive, for scikit-learn and in River's way [AY05, sec. 3]."""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.core.documents import from_json, write_json
from sfumato.core.errors import LevelError, OptionError, TableError
from sfumato.core.groups import Groups
from sfumato.mechanisms.condense.maintainer import Maintainer, MaintainerState
from sfumato.mechanisms.condense.partition import can_begin, partition
from sfumato.sklearn.transformers import draw_rows, framed, generator_of, levels_of_rows, origin_of, sample_rows

__all__ = ["DynamicCondenser", "Snapshot", "read_snapshot", "write_snapshot"]

_MAGIC = b"sfumato condenser 1\n"
_DIGEST = 32
_NO_SNAPSHOT = (  # a file in it that is encrypted or packed by another method is a RuntimeError
    *(KeyError, TypeError, ValueError, EOFError, RuntimeError, OSError, OverflowError, MemoryError),
    *(zipfile.BadZipFile, zlib.error),
)
_PARAMETERS = ("k", "init_number", "split", "grouping", "pending_limit", "random_state")


class DynamicCondenser(BaseEstimator):  # type: ignore[misc]
    """Groups of a numeric matrix that arriving rows join, each with its own privacy level [AY05, sec. 3].

    The first rows are held until there are enough, then condensed statically; every later one joins the closest group
    that is large enough for it, and a group that has grown is split by its statistics alone. Rows that no group is
    large enough for wait. How rows are cut into calls changes no bit of the result. Distances are taken as the matrix
    comes: standardize it first.

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
        A seed marks a rehearsal: never release what was drawn with one.

    Attributes
    ----------
    groups_ : Groups
        Counts, means and scatters of the groups as they are now.
    n_records_, n_pending_ : int
        Rows in groups, and rows that are held or wait.
    n_features_in_ : int

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

    def fit(self, X: Any, y: Any = None, *, privacy_levels: Any = None) -> DynamicCondenser:  # noqa: N803, ARG002
        """Forget everything and learn these rows; where they are fewer than ``init_number``, all are condensed at once.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : ignored
        privacy_levels : array of shape (n_samples,), optional
            Level that each row asks for; the floor k holds for all.
        """
        values = np.asarray(validate_data(self, X, dtype=np.float64, ensure_min_samples=self.k))
        levels = levels_of_rows(privacy_levels, len(values), self.k)
        self._forget()
        self._origin = origin_of(self, X)
        self._learn(values, levels)
        if not len(self._maintainer.ids):
            self._begin(len(values))
        return self

    def partial_fit(self, X: Any, y: Any = None, *, privacy_levels: Any = None) -> DynamicCondenser:  # noqa: N803, ARG002
        """Learn more rows, in their order; nothing of them is learnt where the pool would overflow.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : ignored
        privacy_levels : array of shape (n_samples,), optional
            Level that each row asks for; the floor k holds for all.
        """
        first = not hasattr(self, "_maintainer")
        values = np.asarray(validate_data(self, X, dtype=np.float64, reset=first))
        levels = levels_of_rows(privacy_levels, len(values), self.k)
        if first:
            self._forget()
            self._origin = origin_of(self, X)
        self._learn(values, levels)
        return self

    def learn_many(self, X: Any, y: Any = None, *, privacy_levels: Any = None) -> None:  # noqa: N803
        """Learn more rows, under River's name for `partial_fit`."""
        self.partial_fit(X, y, privacy_levels=privacy_levels)

    def learn_one(self, x: Any, y: Any = None, *, privacy_level: int | None = None) -> None:  # noqa: ARG002
        """Learn one row: a mapping of feature names to numbers, as River gives it, or the numbers in order.

        Parameters
        ----------
        x : mapping or sequence of numbers
            The first mapping fixes names and order; all later ones have the same names.
        y : ignored
        privacy_level : int, optional
        """
        row = np.array([self._in_order(x) if isinstance(x, Mapping) else list(x)], dtype=np.float64)
        levels = levels_of_rows(None if privacy_level is None else [privacy_level], 1, self.k)
        first = not hasattr(self, "_maintainer")
        if first:
            row = np.asarray(validate_data(self, row, dtype=np.float64))
            if isinstance(x, Mapping):
                self.feature_names_in_ = np.array(list(x), dtype=object)
            self._forget()
        self._learn(row, levels)

    @property
    def groups_(self) -> Groups:
        """The statistics of the groups as they are now."""
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
        """Rows that are held for the first groups or wait for one large enough."""
        check_is_fitted(self)
        return len(self._held_levels) + self._maintainer.pending

    def sample(self, n: int | None = None) -> Any:
        """Synthetic rows in random order, n of them or as many as there are rows in groups."""
        rows = sample_rows(partial(draw_rows, self.groups_), n, generator_of(self.random_state, 1))
        return framed(self, rows)

    def snapshot(self) -> bytes:
        """Everything that later results depend on, as bytes; for the owner alone, since waiting rows are inside.

        The form is arrays and JSON under a digest, and holds no code.
        """
        check_is_fitted(self)
        if self.random_state is not None and not isinstance(self.random_state, (int, np.integer)):
            raise OptionError("a snapshot cannot keep a RandomState; give random_state as a number or None")
        parameters = {name: getattr(self, name) for name in _PARAMETERS}
        if self.random_state is not None:
            parameters["random_state"] = int(self.random_state)
        names = getattr(self, "feature_names_in_", None)
        return write_snapshot(
            Snapshot(
                parameters,
                None if names is None else tuple(map(str, names)),
                self._held_values,
                self._held_levels,
                self._maintainer.state(),
            )
        )

    @classmethod
    def restore(cls, snapshot: bytes) -> DynamicCondenser:
        """Continue from a snapshot as if there had been no interruption, bit for bit.

        Raises
        ------
        TableError
            For bytes that are not a whole snapshot of this form.
        """
        found = read_snapshot(snapshot)
        made = cls(**found.parameters)
        made.n_features_in_ = found.state.d
        if found.names is not None:
            made.feature_names_in_ = np.array(found.names, dtype=object)
        made._held_values, made._held_levels = found.values, found.levels
        made._maintainer = Maintainer.from_state(found.state)
        return made

    def _in_order(self, x: Mapping[Any, Any]) -> list[Any]:
        """Numbers of a mapping in the order of the features."""
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

    def _forget(self) -> None:
        d = self.n_features_in_
        split: Any = self.split
        self._maintainer = Maintainer(d, k=self.k, split=split, pending_limit=self.pending_limit, track=False)
        self._held_values, self._held_levels = np.empty((0, d)), np.empty(0, dtype=np.int64)

    def _learn(self, values: NDArray[np.float64], levels: NDArray[np.int64]) -> None:
        if len(self._maintainer.ids):
            self._maintainer.absorb(values, levels)
            return
        kept = self._held_values, self._held_levels
        self._held_values, self._held_levels = np.concatenate([kept[0], values]), np.concatenate([kept[1], levels])
        enough = max(self.init_number, self.k, len(kept[1]) + 1)
        try:
            for n in range(enough, len(self._held_levels) + 1):
                if can_begin(self._held_levels[:n]).any():
                    self._begin(n)
                    return
                self._check_room(n)
        except BaseException:
            self._forget()
            self._held_values, self._held_levels = kept
            raise

    def _begin(self, n: int) -> None:
        """Make the first groups of the first n rows, and let the others come; rows of too high a level wait."""
        values, levels = self._held_values, self._held_levels
        able = can_begin(levels[:n])
        if not able.any():
            raise LevelError(f"no level is as low as {n}, the number of rows; bring more rows or lower the levels")
        first, asked = values[:n][able], levels[:n][able]
        strata = np.zeros(len(asked), dtype=np.int64)
        labels = partition(first, asked, strata, generator_of(self.random_state, 0), grouping=self.grouping)
        self._maintainer.absorb(values[:n][~able], levels[:n][~able])  # there are no groups yet, so they wait
        self._maintainer.start(first, asked, labels)
        self._maintainer.absorb(values[n:], levels[n:])
        self._held_values, self._held_levels = values[:0].copy(), levels[:0].copy()

    def _check_room(self, n: int) -> None:
        most = max(self.init_number, self.k) + self.pending_limit
        if n > most:
            raise LevelError(
                f"more than {most} rows have come and none asks for a level as low as their number, so no group can be "
                "made; lower the levels"
            )


@dataclass(frozen=True, eq=False, repr=False)
class Snapshot:
    """Parameters, names of features, rows that are held for the first groups, and the state of the groups."""

    parameters: dict[str, Any]
    names: tuple[str, ...] | None
    values: NDArray[np.float64]
    levels: NDArray[np.int64]
    state: MaintainerState

    def __repr__(self) -> str:
        return "Snapshot(owner only)"


@dataclass(frozen=True)
class _About:
    """What a snapshot says beside its arrays."""

    parameters: dict[str, Any]
    names: tuple[str, ...] | None
    state: dict[str, Any]


def write_snapshot(snapshot: Snapshot) -> bytes:
    """Write everything; the same state gives the same bytes."""
    state = {field.name: getattr(snapshot.state, field.name) for field in fields(MaintainerState)}
    arrays = {f"state {name}": value for name, value in state.items() if isinstance(value, np.ndarray)}
    numbers = {name: value for name, value in state.items() if not isinstance(value, np.ndarray)}
    about = _About(snapshot.parameters, snapshot.names, numbers)
    body = io.BytesIO()
    text = np.frombuffer(write_json(about, escaped=True).encode(), dtype=np.uint8)
    given: dict[str, Any] = {"about": text, "values": snapshot.values, "levels": snapshot.levels, **arrays}
    np.savez(body, **given)
    return _MAGIC + hashlib.sha256(body.getvalue()).digest() + body.getvalue()


def read_snapshot(data: bytes) -> Snapshot:
    """Read what `write_snapshot` wrote; a `TableError` for bytes that are not a whole snapshot of this form."""
    start = len(_MAGIC) + _DIGEST
    if data[: len(_MAGIC)] != _MAGIC:
        raise TableError("these bytes are no snapshot of a condenser of this version; bring one")
    if hashlib.sha256(data[start:]).digest() != data[len(_MAGIC) : start]:
        raise TableError("the snapshot is damaged or only half copied; bring a whole one")
    try:
        with np.load(io.BytesIO(data[start:]), allow_pickle=False) as held:
            about = from_json(_About, held["about"].tobytes())
            arrays = {name.removeprefix("state "): held[name] for name in held.files if name.startswith("state ")}
            state = MaintainerState(**arrays, **about.state)
            return Snapshot(about.parameters, about.names, held["values"], held["levels"], state)
    except _NO_SNAPSHOT:
        raise TableError("the snapshot was written by another version; use that one") from None
