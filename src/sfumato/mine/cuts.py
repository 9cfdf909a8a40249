"""Cutting groups into finer pieces before they are mined, by the split of statistics [AY05, sec. 3, fig. 7]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sfumato.mine.inputs import check_groups, check_whole

if TYPE_CHECKING:
    from sfumato.groups import Groups

__all__ = ["cut_groups"]


def cut_groups(groups: Groups, *, times: int = 3) -> Groups:
    """Cut every group along its longest axis, then the pieces, and so on; a piece of one record stays.

    A miner that sends a whole group one way is coarse where a group lies across a border; its pieces need not go
    together. They are made of the group's statistics alone, by `sfumato.groups.split_groups`, so they say nothing about
    a record that the group did not, although they count fewer than k.

    Parameters
    ----------
    groups : Groups
    times : int, default=3
        Cuts one after the other, which give up to 2^times pieces a group.

    Notes
    -----
    Merged again, the pieces are the group, so counts, means and scatters of all records stay as they were.

    Examples
    --------
    >>> from sfumato.groups import summarize
    >>> groups = summarize(np.arange(8.0)[:, None], np.zeros(8, dtype=np.int64), np.full(8, 8))
    >>> len(cut_groups(groups, times=2)), np.sort(cut_groups(groups, times=2).mean.ravel()).round(2).tolist()
    (4, [0.52, 2.51, 4.49, 6.48])
    """
    from sfumato.groups import concat, split_groups

    check_whole("times", times, 0)
    check_groups(groups)
    for _ in range(times):
        larger, single = np.flatnonzero(groups.count > 1), np.flatnonzero(groups.count == 1)
        groups = concat(*split_groups(groups.take(larger)), groups.take(single)) if len(larger) else groups
    return groups
