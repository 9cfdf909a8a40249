"""Differencing attack of an owner of rows on the others, by the rounds of a joint K-means with open centres.

What one cluster has lost from one round to the next, and one other cluster gained, is a row if it is a single one
[BCG10, line 4; errata 7].
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.assess.algebra import SHARE, Measure, NotRun, Number, Stated, Values
from sfumato.assess.findings import Family
from sfumato.assess.study import Matrix, Places, Study
from sfumato.core.facts import Context, Fact
from sfumato.methods.protocol import OwnerDetails

__all__ = ["MEASURES", "ROUNDS", "SeenRounds", "claimed_rows", "paired_moves"]


@dataclass(frozen=True, eq=False, repr=False)
class SeenRounds(OwnerDetails):
    """Rounds of a joint K-means as one owner saw them, in fixed point; for this owner alone."""

    own: Places | None = None  # its rows
    labels_seen: Places | None = None  # their clusters in each round
    counts: Places | None = None  # rows of all owners in each cluster
    centres: Places | None = None  # means of the clusters over all owners, each owner's part rounded
    owners: int = 0


def claimed_rows(seen: SeenRounds) -> tuple[Places, Matrix]:
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


def paired_moves(count: Places, total: Matrix, blur: Matrix, *, apart: float = 4.0) -> tuple[Places, Matrix]:
    """Rows claimed where rounding blurs sums: what one cluster lost is what one other gained in the same round.

    Counts and sums are those of the others' rows in each cluster, of shape (t, g) and (t, g, d); ``blur`` is the
    standard deviation of what rounding does to a coordinate of these sums, and loss and gain may differ by ``apart`` of
    them. First the moves (round, cluster before, cluster after), then the rows, loss and gain averaged by how sure they
    are; a loss or a gain that fits several others is not claimed.

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


def _not_opened(facts: Sequence[Fact]) -> str | None:
    joint = Context(tuple(facts)).one("joint")
    if joint is None:
        return "the table was not made by several owners together"
    return None if joint.centres == "each" else "cluster centres were not opened round by round"


def _run_rounds(study: Study) -> Iterator[Stated]:
    seen = study.workings
    if not isinstance(seen, SeenRounds) or seen.counts is None or seen.own is None:
        raise NotRun("what this owner saw in the rounds was not recorded")
    others = int(seen.counts[0].sum()) - len(seen.own)
    if not others:
        raise NotRun("no other owner has rows")
    share = min(1.0, len(claimed_rows(seen)[1]) / others)
    yield "party-rows-inferred", Values(share, baseline=0.0, attempts=others)


ROUNDS = Measure(
    "joint-rounds",
    Family.ATTACK,
    "Banu, Chandra & Ganapathi 2010 undone by differences of rounds",
    _run_rounds,
    applies=_not_opened,
).finds(
    Number("party-rows-inferred", "Rows of other parties inferred from clustering rounds", SHARE.owners).means(
        "The share of other parties' rows that this party can infer from the cluster centres of every round and its "
        "own rows. It does not know which are right; in trials most were. None if centres stay hidden (baseline)"
    )
)

MEASURES = (ROUNDS,)
