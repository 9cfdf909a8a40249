"""The pure function behind mechanism and scikit-learn adapter: records to group labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.compiled import fixed
from sfumato.condense.compact import EFFORTS, compact_groups
from sfumato.condense.construct import construct_groups
from sfumato.condense.holistic import holistic_groups
from sfumato.condense.mdav import mdav_groups
from sfumato.condense.modified import modified_groups
from sfumato.errors import LevelError, OptionError, PrivacyRefusal, TableError

__all__ = ["GROUPINGS", "check_choice", "check_feasible", "check_partition", "check_values", "partition"]

GROUPINGS = ("compact", "mdav", "paper", "modified", "holistic")


def partition(
    values: NDArray[np.float64],
    levels: NDArray[np.int64],
    strata: NDArray[np.int64],
    rng: np.random.Generator,
    *,
    grouping: str = "compact",
    effort: str = "default",
    weights: NDArray[np.float64] | None = None,
    threads: int | None = None,
) -> NDArray[np.int64]:
    """Label each record with its group, 0 to g-1.

    Parameters
    ----------
    values : ndarray of shape (n, d)
    levels : ndarray of shape (n,)
        The size that the group of each record must have at least.
    strata : ndarray of shape (n,)
        Groups never cross strata.
    rng : numpy.random.Generator
    grouping : {"compact", "mdav", "paper", "modified", "holistic"}
        ``"compact"`` searches for groups of low sum of squares, ``"paper"`` is ConstructGroups [AY05, fig. 2]. The
        others know one level only and take the highest of each stratum: ``"mdav"`` is exact MDAV, ``"modified"``
        fills the small clusters of K-means [KCG12, fig. 3], ``"holistic"`` dissolves them [BCG10, sec. 3.1].
    effort : {"fast", "default", "thorough"}
        How long the compact grouping searches.
    weights : ndarray of shape (d,), optional
        Weight of each coordinate in the squared distance, by default the same for all.
    threads : int, optional
        Threads of the compact grouping; its partition does not depend on them.

    Raises
    ------
    LevelError
        Where a stratum has fewer records than the highest level in it.
    PrivacyRefusal
        Where a group came out smaller than a level inside it; nothing is released then.
    """
    check_choice(grouping, effort)
    check_feasible(levels, strata)
    check_values(values)
    if weights is not None:
        values = values * np.sqrt(weights)
    labels = np.full(len(values), -1, dtype=np.int64)  # a record that no group takes is refused below
    formed = 0
    for stratum in np.unique(strata):
        rows = np.flatnonzero(strata == stratum)
        own = fixed(values if len(rows) == len(values) else values[rows], np.float64)
        asked = fixed(levels[rows], np.int64)
        if grouping == "compact":
            groups = compact_groups(own, asked, rng, effort=effort, threads=threads)
        elif grouping == "paper":
            groups = construct_groups(own, asked, rng.permutation(len(rows)))
        else:
            groups = _one_level_groups(own, int(asked.max()), grouping, rng)
        sizes = [len(group) for group in groups]
        labels[rows[np.concatenate(groups)]] = np.repeat(np.arange(formed, formed + len(groups)), sizes)
        formed += len(groups)
    check_partition(labels, levels)
    return labels


def _one_level_groups(
    values: NDArray[np.float64], k: int, grouping: str, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Group the records of a stratum at its highest level."""
    if grouping == "mdav":
        return mdav_groups(values, k)
    if grouping == "modified":
        return modified_groups(values, k, rng)
    return holistic_groups(values, k, rng)


def check_values(values: NDArray[np.float64]) -> None:
    """Refuse records that no distance can be taken between."""
    if not values.shape[1]:
        raise TableError("the records have no coordinates to group by; sanitize at least one column")
    unmeasurable = int((~np.isfinite(values)).any(axis=1).sum())
    if unmeasurable:
        raise TableError(f"{unmeasurable} records hold a number that is not finite; remove them or mark them missing")


def check_choice(grouping: str, effort: str) -> None:
    """Refuse a grouping or an effort that there is not."""
    if grouping not in GROUPINGS:
        raise OptionError(f"there is no grouping {grouping!r}; choose one of {', '.join(GROUPINGS)}")
    if effort not in EFFORTS:
        raise OptionError(f"there is no effort {effort!r}; choose one of {', '.join(EFFORTS)}")


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
