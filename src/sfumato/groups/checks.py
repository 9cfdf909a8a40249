"""What is refused of records before they are grouped, and of groups after: no grouping may fall short of a level."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import LevelError, PrivacyRefusal, TableError

__all__ = ["check_feasible", "check_partition", "check_values"]


def check_values(values: NDArray[np.float64]) -> None:
    """Refuse records that no distance can be taken between."""
    if not values.shape[1]:
        raise TableError("the records have no coordinates to group by; sanitize at least one column")
    unmeasurable = int((~np.isfinite(values)).any(axis=1).sum())
    if unmeasurable:
        raise TableError(f"{unmeasurable} records hold a number that is not finite; remove them or mark them missing")


def check_feasible(levels: NDArray[np.int64], strata: NDArray[np.int64]) -> None:
    """Refuse levels that no grouping can meet."""
    if not len(levels):
        raise LevelError("there are 0 records; bring at least as many as the highest privacy level")
    if (levels < 1).any():
        raise LevelError(f"{int((levels < 1).sum())} privacy levels are zero or negative; levels start at 1")
    names, codes = np.unique(strata, return_inverse=True)
    sizes = np.bincount(codes)
    highest = np.zeros(len(names), dtype=np.int64)
    np.maximum.at(highest, codes, levels)
    short = sizes < highest
    if not short.any():
        return
    if len(names) == 1:
        raise LevelError(
            f"there are {sizes[0]} records and the highest privacy level is {highest[0]}; "
            "lower the level or bring more records"
        )
    smallest = int(np.argmin(np.where(short, sizes, sizes.max() + 1)))
    raise LevelError(
        f"{int(short.sum())} of {len(names)} strata have fewer records than the highest privacy level in them (the "
        f"smallest has {sizes[smallest]} and level {highest[smallest]}); pool small strata or lower the level"
    )


def check_partition(labels: NDArray[np.int64], levels: NDArray[np.int64]) -> None:
    """Fail closed if a record has no group or a group is smaller than a level inside it."""
    sizes = np.bincount(labels) if len(labels) and labels.min() >= 0 else np.zeros(1, dtype=np.int64)
    violations = int((sizes[labels] < levels).sum()) if len(sizes) > labels.max(initial=0) else len(labels)
    if violations or (sizes == 0).any():
        raise PrivacyRefusal(
            f"{violations} records came out in a group smaller than their privacy level; nothing is released. "
            "Please report this as a defect"
        )
