"""The pure function behind mechanism and scikit-learn adapter: records to group labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.core.compiled import fixed
from sfumato.core.errors import OptionError
from sfumato.core.groups.kmeans import holistic_groups
from sfumato.core.groups.model import check_feasible, check_partition, check_values
from sfumato.core.groups.modified import modified_groups
from sfumato.mechanisms.condense.compact import EFFORTS, compact_groups
from sfumato.mechanisms.condense.mdav import mdav_groups
from sfumato.mechanisms.condense.paper import construct_groups

__all__ = ["GROUPINGS", "can_begin", "check_choice", "partition"]

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
    widths: bool = False,
    among: int = 0,
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
    widths : bool
        Let the compact grouping search on for groups of different width.
    among : int
        Records of a table that these are a cell of: the compact grouping searches as long as for that.

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
            groups = compact_groups(own, asked, rng, effort=effort, threads=threads, widths=widths, among=among)
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


def check_choice(grouping: str, effort: str) -> None:
    """Refuse a grouping or an effort that there is not."""
    if grouping not in GROUPINGS:
        raise OptionError(f"there is no grouping {grouping!r}; choose one of {', '.join(GROUPINGS)}")
    if effort not in EFFORTS:
        raise OptionError(f"there is no effort {effort!r}; choose one of {', '.join(EFFORTS)}")


def can_begin(levels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the largest set of records none of which asks for a level above the size of the set.

    The others must wait until a group is large enough for them.

    Examples
    --------
    >>> can_begin(np.array([3, 2, 9, 3])).tolist(), can_begin(np.array([2, 5])).tolist()
    ([True, True, False, True], [False, False])
    """
    kept = np.ones(len(levels), dtype=np.bool_)
    while (levels[kept] > kept.sum()).any():
        kept = levels <= kept.sum()
    return kept
