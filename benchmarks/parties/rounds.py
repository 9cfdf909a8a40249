"""One owner of a joint run against the others: rows from what K-means opens round by round [BCG10, line 4; errata 7].

Sums of a cluster minus the own rows are the sums of the others. What a cluster has lost from one round to the next is a
row, where it lost one. The attacker needs no truth: a row must lie in its column's domain, must have been nearest to
the centres of the clusters that it left and entered, and must fit the sums of all other rounds; and a row once found is
known in every round, like one of the attacker's own. Numbers are whole steps of fixed point, so sums are exact up to
what each owner rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.core.records import CATEGORY_SCALE, BlockKind, Layout

__all__ = [
    "Rounds",
    "after_filling",
    "centres_of",
    "follow",
    "in_domain",
    "nearest_centre",
    "peel",
    "small_groups",
    "without",
]

Whole = NDArray[np.int64]
_Matrix = NDArray[np.float64]
Fits = Callable[[Whole], NDArray[np.bool_]]
"""Tells of each of some rows whether it can be a row at all."""

_RANK_ONE = 1e-6  # share of the scatter of two rows that rounding may put outside one direction


@dataclass(frozen=True, eq=False, repr=False)
class Rounds:
    """What the attacker knows of rows that are not known yet, round by round.

    Parameters
    ----------
    centres : ndarray of shape (t, g, d)
        Those that rows were compared with in each round, in steps.
    weights : ndarray of shape (d,)
        Of the coordinates in the distance.
    count : ndarray of shape (t, g)
        Unknown rows of each cluster.
    total : ndarray of shape (t, g, d)
        Their sums, in steps.
    slack : int
        Steps that sums are off by at most, because owners round.
    """

    centres: _Matrix
    weights: _Matrix
    count: Whole
    total: Whole
    slack: int = 0


def centres_of(start: _Matrix, count: Whole, total: Whole) -> _Matrix:
    """Give the centres that rows were compared with in each round, from what was opened in the rounds before.

    Parameters
    ----------
    start : ndarray of shape (g, d)
        First centres, which are public.
    count, total : ndarray of shape (t, g) and (t, g, d)
        Sizes and sums of the clusters of all owners.
    """
    centres = [np.asarray(start, dtype=np.float64)]
    for size, sums in zip(count[:-1], total[:-1], strict=True):
        means = sums / np.maximum(size, 1)[:, None]
        centres.append(np.where(size[:, None] > 0, means, centres[-1]))  # an empty cluster keeps its centre
    return np.stack(centres)


def follow(rows: Whole, centres: _Matrix, weights: _Matrix) -> Whole:
    """Give the cluster of each row in each round; of equally near centres the first.

    Examples
    --------
    >>> centres = np.array([[[0.0], [10.0]], [[0.0], [4.0]]])
    >>> follow(np.array([[3], [9]]), centres, np.ones(1)).tolist()
    [[0, 1], [1, 1]]
    """
    labels = np.empty((len(rows), len(centres)), dtype=np.int64)
    for t, these in enumerate(centres):
        labels[:, t] = nearest_centre(rows, these, weights)
    return labels


def nearest_centre(rows: Whole | _Matrix, centres: _Matrix, weights: _Matrix) -> Whole:
    """Give the centre that each row is nearest to, of equally near ones the first."""
    scaled = centres * weights
    return np.asarray(((scaled * centres).sum(axis=1) - 2.0 * (rows @ scaled.T)).argmin(axis=1), dtype=np.int64)


def without(rounds: Rounds, rows: Whole) -> Rounds:
    """Take rows that are known out of every round."""
    count, total = rounds.count.copy(), rounds.total.copy()
    for t, label in enumerate(follow(rows, rounds.centres, rounds.weights).T):
        np.subtract.at(count[t], label, 1)
        np.subtract.at(total[t], label, rows)
    return replace(rounds, count=count, total=total)


def in_domain(layout: Layout, low: _Matrix, high: _Matrix, one: _Matrix, slack: int = 0) -> Fits:
    """Make the test whether rows lie in their columns' domains.

    Parameters
    ----------
    layout : tuple of Block
    low, high : ndarray of shape (d,)
        Bounds of the coordinates, in steps.
    one : ndarray of shape (d,)
        Steps of the number 1 in each coordinate.
    slack : int
        Steps that rows are off by at most.
    """

    def fits(rows: Whole) -> NDArray[np.bool_]:
        good = ((rows >= low - slack) & (rows <= high + slack)).all(axis=1)
        for block in layout:
            if block.kind is not BlockKind.NUMBER:
                scale = CATEGORY_SCALE if block.kind is BlockKind.CATEGORY else 1.0
                cells, mark = rows[:, block.where], np.rint(scale * one[block.where])
                marked = np.abs(cells - mark) <= slack + 1
                good &= (marked | (np.abs(cells) <= slack + 1)).all(axis=1)
                if block.kind is BlockKind.CATEGORY:
                    good &= marked.sum(axis=1) == 1
        return np.asarray(good)

    return fits


def peel(rounds: Rounds, fits: Fits) -> tuple[Whole, Rounds]:
    """Claim rows from the differences of rounds, and take each out of all of them, until nothing more follows.

    Returns
    -------
    rows : ndarray of shape (m, d)
        Claimed, each verified as this module says.
    rounds : Rounds
        What is left.

    Notes
    -----
    A cluster that lost two rows and gained one shows their combination x + y - z, which can look like a row. Claims
    that clear more clusters go first; a combination mostly implies moves that other rounds do not show.
    """
    rows: list[Whole] = []
    while True:
        found = _candidates(rounds)
        found = found[fits(found)]
        labels = follow(found, rounds.centres, rounds.weights)
        cleared = np.array([_cleared(rounds, *one) for one in zip(found, labels, strict=True)], dtype=np.int64)
        before = len(rows)
        for place in np.argsort(-cleared, kind="stable").tolist():
            if _cleared(rounds, found[place], labels[place]) > 0:
                rows.append(found[place])
                rounds = without(rounds, found[[place]])
        if len(rows) == before:
            return np.array(rows, dtype=np.int64).reshape(-1, rounds.total.shape[2]), rounds


def _candidates(rounds: Rounds) -> Whole:
    """Give the sums of single rows, and the differences of clusters whose size changed by one."""
    change = np.diff(rounds.count, axis=0)
    moved = np.diff(rounds.total, axis=0)[np.abs(change) == 1] * change[np.abs(change) == 1, None]
    return np.unique(np.concatenate([rounds.total[rounds.count == 1], moved]), axis=0)


def _cleared(rounds: Rounds, row: Whole, label: Whole) -> int:
    """Count the clusters and moves that a row explains alone; -1 where a round contradicts it."""
    ts = np.arange(len(label))
    count, total = rounds.count[ts, label], rounds.total[ts, label]
    if (count < 1).any() or ((count == 1) & (np.abs(total - row) > rounds.slack).any(axis=1)).any():
        return -1
    cleared = int((count == 1).sum())
    for t in np.flatnonzero(label[1:] != label[:-1]).tolist():
        for cluster, sign in ((label[t], -1), (label[t + 1], 1)):
            change = rounds.count[t + 1, cluster] - rounds.count[t, cluster]
            moved = rounds.total[t + 1, cluster] - rounds.total[t, cluster]
            if change == 0 and bool((np.abs(moved) <= rounds.slack).all()):
                return -1  # nothing moved where this row would have
            cleared += int(change == sign and bool((np.abs(moved - sign * row) <= rounds.slack).all()))
    return cleared


def after_filling(last: Rounds, count: Whole, total: Whole, fits: Fits) -> Whole:
    """Claim rows that went from one cluster to another when small clusters were filled.

    Parameters
    ----------
    last : Rounds
        Of one round: the clusters before they were filled, without the rows that are known, and the final centres.
    count, total : ndarray of shape (g,) and (g, d)
        Of the groups afterwards, without the rows that are known.
    fits : callable

    Returns
    -------
    ndarray of shape (m, d)
        A row that a cluster alone lost or gained, that was nearest to a centre whose cluster lost some, and, if a
        cluster lost it, to the centre of that one.
    """
    change, moved = count - last.count[-1], total - last.total[-1]
    single = np.flatnonzero(np.abs(change) == 1)
    rows = moved[single] * change[single, None]
    came_from = follow(rows, last.centres[-1:], last.weights)[:, 0]
    lost = change[single] < 0
    possible = np.where(lost, came_from == single, (came_from != single) & (change[came_from] < 0))
    return np.unique(rows[possible & fits(rows)], axis=0)


def small_groups(count: Whole, total: Whole, products: _Matrix, fits: Fits) -> Whole:
    """Claim rows of groups of which one or two are unknown: statistics of so few are the rows themselves.

    Parameters
    ----------
    count, total : ndarray of shape (g,) and (g, d)
        Unknown rows and their sums, in steps.
    products : ndarray of shape (g, d, d)
        Sums of their products, in steps squared.
    fits : callable

    Examples
    --------
    >>> rows = np.array([[1, 5], [3, -1]])
    >>> products = (rows.T @ rows).astype(float)[None]
    >>> small_groups(np.array([2]), rows.sum(axis=0)[None], products, lambda rows: np.ones(len(rows), bool)).tolist()
    [[1, 5], [3, -1]]
    """
    claims = [total[count == 1]]
    for place in np.flatnonzero(count == 2).tolist():
        both = total[place].astype(np.float64)
        sizes, axes = np.linalg.eigh(products[place] - np.outer(both, both) / 2.0)  # (x - y)(x - y)^T / 2
        if np.abs(sizes[:-1]).max(initial=0.0) <= _RANK_ONE * max(sizes[-1], 0.0):
            apart = np.sqrt(max(2.0 * sizes[-1], 0.0)) * axes[:, -1]
            claims.append(np.rint([(both + apart) / 2.0, (both - apart) / 2.0]).astype(np.int64))
    rows = np.unique(np.concatenate(claims), axis=0)
    return rows[fits(rows)]
