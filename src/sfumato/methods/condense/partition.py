"""Partition records into groups: the pure function behind mechanism and scikit-learn adapter.

A trial of two groupings class by class: the one after which a nearest neighbour tells the classes better.

Compact groups of different width are better where a class has dense and scattered parts. In a class that is one even
cloud they follow noise, and the looser groups of K-means with small clusters filled [KCG12, fig. 3] are as good or
better. Which of the two a table is like is seen by trying: a part of the records is set aside, the others are grouped
and redrawn both ways, and the class of the nearest drawn row is compared with the true one.
"""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.compiled import compiled, fixed
from sfumato.core.groups import label_by_stratum
from sfumato.core.groups.kmeans import holistic_groups, modified_groups
from sfumato.core.progress import tell
from sfumato.core.records import Layout
from sfumato.methods.condense import check_options
from sfumato.methods.condense.compact import CompactSearch, compact_groups
from sfumato.methods.condense.paper import construct_groups
from sfumato.methods.condense.synthesize import redraw_coded
from sfumato.methods.condense.trees import squared_gap

__all__ = ["TRIED", "better_grouping", "can_begin", "can_try", "mdav_groups", "partition"]


def partition(
    values: Floats,
    levels: Ints,
    strata: Ints,
    rng: np.random.Generator,
    *,
    grouping: str = "compact",
    effort: str = "default",
    search: CompactSearch | None = None,
) -> Ints:
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
    search : CompactSearch, optional
        What else the compact grouping takes into account.

    Raises
    ------
    LevelError
        If a stratum has fewer records than the highest level in it.
    PrivacyRefusal
        If a group came out smaller than a level inside it; nothing is released then.
    """
    check_options(grouping, effort)

    def group(rows: Ints) -> list[Ints]:
        own = fixed(values if len(rows) == len(values) else values[rows], np.float64)
        asked = fixed(levels[rows], np.int64)
        if grouping == "compact":
            return compact_groups(own, asked, rng, effort=effort, search=search)
        if grouping == "paper":
            return construct_groups(own, asked, rng.permutation(len(rows)))
        return _one_level_groups(own, int(asked.max()), grouping, rng)

    return label_by_stratum(values, levels, strata, group)


def _one_level_groups(values: Floats, k: int, grouping: str, rng: np.random.Generator) -> list[Ints]:
    """Group the records of a stratum at its highest level."""
    if grouping == "mdav":
        return mdav_groups(values, k)
    if grouping == "modified":
        return modified_groups(values, k, rng)
    return holistic_groups(values, k, rng)


def can_begin(levels: Ints) -> Bools:
    """Largest set of records none of which requests a level above the size of the set.

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


TRIED = ("compact", "modified")
"""The groupings of a trial; of equally good ones the first is taken."""

_FOLDS = 5
_ENOUGH = 5_000  # records set aside in all: two points of accuracy are then about three standard errors
_DRAWS = 3  # rows are drawn so often from each grouping, since drawing is cheap and makes half of the noise
_LONG = 2e9  # coordinates that a round of K-means may compare: beyond that the trial would take minutes
_BLOCK = 500  # records whose nearest rows are looked up at a time


def better_grouping(
    values: Floats,
    levels: Ints,
    classes: Ints,
    cells: Ints,
    layout: Layout,
    rng: np.random.Generator,
    *,
    shared: slice | None = None,
) -> str:
    """Choose the grouping whose synthetic rows predict the class of held-out records better, by nearest row.

    Parameters
    ----------
    values : ndarray of shape (n, d)
    levels : ndarray of shape (n,)
    classes : ndarray of shape (n,)
    cells : ndarray of shape (n,)
        Groups never cross cells, and a cell is of one class.
    layout : tuple of Block
    rng : numpy.random.Generator
    shared : slice, optional
        Coordinates of the class among the values, which a neighbour must not see.

    Returns
    -------
    str
        ``"compact"`` or ``"modified"``. Without a trial ``"compact"``; see `can_try`.
    """
    if not can_try(values, levels, classes, cells):
        return TRIED[0]
    fold, counts = _folds(cells, rng), np.bincount(cells)
    many = min(_FOLDS, -(-_ENOUGH * _FOLDS // len(values)))
    right = np.zeros(len(TRIED), dtype=np.int64)
    seen = np.ones(values.shape[1], dtype=np.bool_)
    seen[shared or slice(0, 0)] = False
    for out in range(many):
        aside, kept = np.flatnonzero(fold == out), np.flatnonzero(fold != out)
        left = np.bincount(cells[kept], minlength=len(counts)) / counts
        asked = np.maximum(1, (levels[kept] * left[cells[kept]]).astype(np.int64))  # as many groups as there will be
        for place, grouping in enumerate(TRIED):
            search = CompactSearch(widths=True)
            labels = partition(values[kept], asked, cells[kept], rng, grouping=grouping, effort="fast", search=search)
            of_group = np.zeros(int(labels.max()) + 1, dtype=np.int64)
            of_group[labels] = classes[kept]
            for _ in range(_DRAWS):
                rows = redraw_coded(values[kept], labels, layout, rng)[:, seen]
                nearest_classes = _nearest_class(rows, np.repeat(of_group, np.bincount(labels)), values[aside][:, seen])
                right[place] += int((nearest_classes == classes[aside]).sum())
    return TRIED[int(np.argmax(right))]


def can_try(values: Floats, levels: Ints, classes: Ints, cells: Ints) -> bool:
    """Whether both groupings can be compared.

    There is nothing where there is one class only, where levels differ within a cell (the other grouping knows the
    highest alone), and where the table is too large for K-means.
    """
    one = classes.min() == classes.max()
    return not (one or not _is_one_level(levels, cells) or _is_long(values, levels, cells))


def _is_one_level(levels: Ints, cells: Ints) -> bool:
    """Whether all records of each stratum have the same level."""
    pairs = np.unique(np.column_stack([cells, levels]), axis=0)
    return len(pairs) == len(np.unique(cells))


def _is_long(values: Floats, levels: Ints, cells: Ints) -> bool:
    """Whether K-means would compare too many records with too many centres."""
    counts = np.bincount(cells).astype(np.float64)
    level = np.ones(len(counts))
    level[cells] = levels
    return bool((counts**2 / level).sum() * values.shape[1] > _LONG)


def _folds(cells: Ints, rng: np.random.Generator) -> Ints:
    """Random folds within each stratum; every fifth record is held out at a time."""
    mixed = rng.permutation(len(cells))
    by_cell = mixed[np.argsort(cells[mixed], kind="stable")]
    counts = np.bincount(cells)
    inside = np.arange(len(cells)) - np.repeat(np.cumsum(counts) - counts, counts)
    fold = np.empty(len(cells), dtype=np.int64)
    fold[by_cell] = np.where(np.repeat(counts, counts) > 1, inside % _FOLDS, -1)
    return fold


def _nearest_class(rows: Floats, classes: Ints, queries: Floats) -> Ints:
    """Class of the row nearest to each query, in blocks of bounded memory."""
    rows, lengths = fixed(rows, np.float64), (rows**2).sum(axis=1)
    nearest_classes = np.empty(len(queries), dtype=np.int64)
    for first in range(0, len(queries), _BLOCK):
        some = queries[first : first + _BLOCK]
        nearest_classes[first : first + _BLOCK] = classes[np.argmin(lengths - 2.0 * (some @ rows.T), axis=1)]
    return nearest_classes


_PAIRS_A_CALL = 50_000_000  # coordinates compared between two looks at Ctrl-C and the progress bar


def mdav_groups(values: Floats, k: int) -> list[Ints]:
    """Group records by MDAV, which supports one level only.

    While at least 3k records are left, the one farthest from their mean takes its k-1 nearest, and then the one
    farthest from that record does. Of 2k to 3k-1 records one more group is taken and the rest is the last; fewer
    than 2k are one group.

    Parameters
    ----------
    values : ndarray of shape (n, d)
    k : int

    Returns
    -------
    list of ndarray
        The groups as rows of values.

    Notes
    -----
    Equal distances go to the lower row. Cost O(n^2 d / k).
    """
    n, d = values.shape
    values = fixed(values, np.float64)
    left = np.arange(n)
    members = np.empty((n // k + 1, k), dtype=np.int64)
    distance = np.empty(n)
    remaining, groups = n, 0
    while remaining >= 2 * k:
        batch = max(1, _PAIRS_A_CALL // (remaining * d + 1))
        remaining, groups = _take_groups(values, k, left, remaining, members, groups, distance, batch)
        tell("grouping", 1.0 - remaining / n)
    made = list(members[:groups])
    return [*made, left[:remaining].copy()] if remaining else made


@compiled
def _take_groups(
    values: Floats, k: int, left: Ints, remaining: int, members: Ints, groups: int, distance: Floats, batch: int
) -> tuple[int, int]:
    """Take some more groups from the records left, which stay in the order of their rows."""
    d = values.shape[1]
    centre = np.empty((1, d))
    for _ in range(batch):
        if remaining < 2 * k:
            break
        pair = 2 if remaining >= 3 * k else 1
        for t in range(d):
            total = 0.0
            for place in range(remaining):
                total += values[left[place], t]
            centre[0, t] = total / remaining
        for _turn in range(pair):
            far, widest = 0, -1.0
            for place in range(remaining):
                apart = squared_gap(values, left[place], centre, 0)
                if apart > widest:
                    far, widest = left[place], apart
            for t in range(d):
                centre[0, t] = values[far, t]
            remaining = _take_nearest(values, centre, left, remaining, members[groups], distance)
            groups += 1
    return remaining, groups


@compiled
def _take_nearest(values: Floats, centre: Floats, left: Ints, remaining: int, group: Ints, distance: Floats) -> int:
    """Move the records nearest to a point from those left into a group."""
    k, held = group.shape[0], 0
    for place in range(remaining):
        apart = squared_gap(values, left[place], centre, 0)
        if held == k and apart >= distance[k - 1]:
            continue
        spot = held if held < k else k - 1
        while spot > 0 and distance[spot - 1] > apart:
            distance[spot] = distance[spot - 1]
            group[spot] = group[spot - 1]
            spot -= 1
        distance[spot] = apart
        group[spot] = left[place]
        held = min(held + 1, k)
    kept = 0
    for place in range(remaining):
        taken = False
        for member in range(k):
            if group[member] == left[place]:
                taken = True
                break
        if not taken:
            left[kept] = left[place]
            kept += 1
    return kept
