"""One owner of rows against the others: rows from centres that are opened round by round [BCG10, line 4; errata 7].

Sums of a cluster minus the own rows are the sums of the others. What one cluster has lost from one round to the next,
and one other gained, is a row, where it is one row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.findings import Direction, Family, Finding
from sfumato.assess.frame import Measure
from sfumato.assess.study import Study
from sfumato.facts import Fact, Joint
from sfumato.mechanism import Workings

__all__ = ["ROUNDS", "SeenRounds", "claimed_rows", "paired_moves"]

Whole = NDArray[np.int64]
_Matrix = NDArray[np.float64]

_CLAIMED = (
    "The share of the other owners' rows that this owner can claim from the cluster centres that all owners saw in "
    "every round, with nothing but its own rows. It does not know which claims are right; in trials most were. None "
    "can be claimed where centres stay hidden (baseline)."
)


@dataclass(frozen=True, eq=False, repr=False)
class SeenRounds(Workings):
    """What an owner saw of the rounds of a joint K-means, in whole steps; for this owner alone.

    Parameters
    ----------
    own : ndarray of shape (n_l, d)
        Its rows.
    labels_seen : ndarray of shape (t, n_l)
        Their clusters in each round.
    counts : ndarray of shape (t, g)
        Rows of all owners in each cluster.
    centres : ndarray of shape (t, g, d)
        Means of the clusters over all owners, each owner's part rounded.
    owners : int
    """

    own: Whole | None = None
    labels_seen: Whole | None = None
    counts: Whole | None = None
    centres: Whole | None = None
    owners: int = 0


def claimed_rows(seen: SeenRounds) -> tuple[Whole, _Matrix]:
    """Moves and rows of the others that an owner claims.

    It takes its own part of every mean off to the step, so that what blurs a sum is the others' rounding.
    """
    if seen.own is None or seen.labels_seen is None or seen.counts is None or seen.centres is None:
        return np.empty((0, 3), dtype=np.int64), np.empty((0, 0))
    g = seen.counts.shape[1]
    count, total = seen.counts.copy(), np.empty(seen.centres.shape)
    for t, labels in enumerate(seen.labels_seen):
        count[t] -= np.bincount(labels, minlength=g)
        sums, size = np.zeros(total.shape[1:], dtype=np.int64), np.maximum(seen.counts[t], 1)[:, None]
        np.add.at(sums, labels, seen.own)
        total[t] = (seen.centres[t] - (2 * sums + size) // (2 * size)) * size
    blur = seen.counts * math.sqrt((seen.owners - 1) / 12.0)
    return paired_moves(count, total, np.asarray(blur, dtype=np.float64))


def paired_moves(
    count: Whole, total: _Matrix, blur: _Matrix, *, apart: float = 4.0
) -> tuple[NDArray[np.int64], _Matrix]:
    """Claim rows where sums are blurred by rounding: what one cluster lost is what one other gained in the same round.

    Parameters
    ----------
    count, total : ndarray of shape (t, g) and (t, g, d)
        Rows of the others in each cluster, and their sums.
    blur : ndarray of shape (t, g)
        Standard deviation of what rounding does to a coordinate of these sums.
    apart : float
        Standard deviations by which loss and gain may differ in a coordinate.

    Returns
    -------
    moves : ndarray of shape (m, 3)
        Round, cluster before and cluster after; a loss or a gain that fits several others is not claimed.
    rows : ndarray of shape (m, d)
        The claimed rows, loss and gain averaged by how sure they are.

    Examples
    --------
    >>> count, total = np.array([[2, 1], [1, 2]]), np.array([[[5.0], [1.0]], [[2.0], [4.0]]])
    >>> paired_moves(count, total, np.full((2, 2), 0.1))[1].tolist()
    [[3.0]]
    """
    change, moved = np.diff(count, axis=0), np.diff(total, axis=0)
    spread = blur[1:] ** 2 + blur[:-1] ** 2
    moves, rows = [], []
    for t in range(len(change)):
        lost, gained = np.flatnonzero(change[t] == -1), np.flatnonzero(change[t] == 1)
        both = np.sqrt(spread[t, lost][:, None] + spread[t, gained])
        differ = np.abs(-moved[t, lost][:, None] - moved[t, gained]).max(axis=2, initial=0.0)
        fits = differ <= apart * both
        sure = fits & (fits.sum(axis=1, keepdims=True) == 1) & (fits.sum(axis=0, keepdims=True) == 1)
        for i, j in zip(*np.nonzero(sure), strict=True):
            a, b = lost[i], gained[j]
            share = spread[t, b] / max(spread[t, a] + spread[t, b], np.finfo(float).tiny)
            moves.append((t, a, b))
            rows.append(-share * moved[t, a] + (1.0 - share) * moved[t, b])
    d = total.shape[2]
    return np.array(moves, dtype=np.int64).reshape(-1, 3), np.array(rows, dtype=np.float64).reshape(-1, d)


def _applies(facts: Sequence[Fact]) -> str | None:
    joint = next((fact for fact in facts if isinstance(fact, Joint)), None)
    if joint is None:
        return "the table was not made by several owners together"
    return None if joint.centres == "each" else "cluster centres were not opened round by round"


def _run(study: Study) -> Iterable[Finding]:
    seen = study.workings
    if not isinstance(seen, SeenRounds) or seen.counts is None or seen.own is None:
        return ROUNDS.not_run("what this owner saw of the rounds is not at hand")
    others = int(seen.counts[0].sum()) - len(seen.own)
    if not others:
        return ROUNDS.not_run("no other owner has rows")
    claimed = len(claimed_rows(seen)[1])
    return (
        Finding(
            "rows-of-others-claimed",
            Family.ATTACK,
            min(1.0, claimed / others),
            Direction.LOWER,
            (0.0, 1.0),
            _CLAIMED,
            baseline=0.0,
            attempts=others,
            public=False,
            unit="share",
        ),
    )


ROUNDS = Measure(
    name="joint-rounds",
    family=Family.ATTACK,
    source="Banu, Chandra & Ganapathi 2010 undone by differences of rounds",
    findings={"rows-of-others-claimed": _CLAIMED},
    run=_run,
    applies=_applies,
    public=False,
)
