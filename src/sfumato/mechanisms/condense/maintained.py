"""What a `Maintainer` hands out: counts of a batch, rows of its groups, its whole state, its units of publication."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import PrivacyRefusal
from sfumato.core.groups import Groups
from sfumato.mechanisms.condense.axis import rows_of

__all__ = [
    "Absorbed",
    "GroupRows",
    "MaintainerState",
    "PublishMarks",
    "check_due",
    "first_rows",
    "marks_of",
    "refusal_of",
]


@dataclass(frozen=True, eq=False)
class Absorbed:
    """What became of a batch: counts, and for the owner alone the group of each record.

    Parameters
    ----------
    absorbed, pending : int
        Records of the batch that joined a group on arrival, and records of it that had to wait.
    admitted : int
        Records that had waited, of this batch or an earlier one, and were taken in.
    splits : int
    where : ndarray of shape (n,)
        Id of the group that each record joined on arrival, which may have split since; -1 where it had to wait.
    """

    absorbed: int
    pending: int
    admitted: int
    splits: int
    where: NDArray[np.int64]

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}={getattr(self, name)}" for name in ("absorbed", "pending", "admitted", "splits"))
        return f"Absorbed({counts})"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GroupRows:
    """All that is kept of some groups, in order of id; ``triangle`` is the upper triangle of the scatter."""

    ids: NDArray[np.int64]
    count: NDArray[np.int64]
    mean: NDArray[np.float64]
    triangle: NDArray[np.float64]
    level_sum: NDArray[np.float64]
    level_max: NDArray[np.int64]
    family: NDArray[np.int64]
    fresh: NDArray[np.int64]
    fresh_level_max: NDArray[np.int64]
    pseudo: NDArray[np.bool_]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(g={len(self.ids)}, d={self.mean.shape[1]})"

    @property
    def groups(self) -> Groups:
        """The statistics, as the rest of the house knows them."""
        scatter = rows_of(self.triangle, self.mean.shape[1])
        return Groups(self.count.copy(), self.mean.copy(), scatter, self.level_sum.copy(), self.level_max.copy())


def first_rows(groups: Groups) -> GroupRows:
    """Rows of groups that a stream starts from: each a family of its own, all its records fresh."""
    ids, upper = np.arange(len(groups)), np.triu_indices(groups.mean.shape[1])
    return GroupRows(
        ids=ids,
        count=groups.count,
        mean=groups.mean,
        triangle=groups.scatter[:, upper[0], upper[1]],
        level_sum=groups.level_sum,
        level_max=groups.level_max,
        family=ids,
        fresh=groups.count,
        fresh_level_max=groups.level_max,
        pseudo=np.zeros(len(groups), dtype=np.bool_),
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MaintainerState(GroupRows):
    """Everything that later results depend on; for the owner alone, since the pool holds records as they came."""

    d: int
    k: int
    split: str
    pending_limit: int
    track: bool
    next_id: int
    splits: int
    pending_values: NDArray[np.float64]
    pending_levels: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PublishMarks:
    """The units of publication, in order of family: what has come since each last left, and what must have come.

    A family is all groups that descend by splits from one group as it last left, or was started. It is ``due`` when its
    fresh records are at least the highest level inside it, and k (errata AY05.10).
    """

    family: NDArray[np.int64]
    fresh: NDArray[np.int64]
    needed: NDArray[np.int64]

    @property
    def due(self) -> NDArray[np.bool_]:
        """Whether the present state of each family may leave."""
        return np.asarray(self.fresh >= self.needed)

    def __repr__(self) -> str:
        return f"PublishMarks(families={len(self.family)}, due={int(self.due.sum())})"


def marks_of(rows: GroupRows, k: int) -> PublishMarks:
    """Add up the fresh records of each family and find the highest level in it."""
    family, where = np.unique(rows.family, return_inverse=True)
    fresh, needed = np.zeros(len(family), dtype=np.int64), np.full(len(family), k, dtype=np.int64)
    np.add.at(fresh, where, rows.fresh)
    np.maximum.at(needed, where, np.maximum(rows.level_max, rows.fresh_level_max))
    return PublishMarks(family, fresh, needed)


def check_due(marks: PublishMarks, families: NDArray[np.int64]) -> None:
    """Refuse families that are not due."""
    asked = np.unique(families)
    early = int((~np.isin(asked, marks.family[marks.due])).sum())
    if early:
        raise PrivacyRefusal(
            f"{early} of {len(asked)} families have too few fresh records for their new state to leave; publish those "
            "that are due and repeat the earlier rows of the others"
        )


def refusal_of(limit: int, records: int) -> PrivacyRefusal:
    """Say that the pool cannot hold the records of a batch that would have to wait."""
    return PrivacyRefusal(
        f"more than {limit} records would wait for a group as large as their privacy level asks, which is all that the "
        f"pool holds; none of these {records} was taken in; lower the highest levels, or start anew from more "
        "records or with a higher limit of the pool"
    )
