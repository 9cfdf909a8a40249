"""Groups of rows that lie at several owners: secure K-means and filling [BCG10, alg. 2, lines 4 to 11].

Rows are counted in whole steps of 2^-bits, so that distances are exact whole numbers. With ``centres="each"`` the
centres are opened in every round and each owner compares its own rows with them. With ``centres="last"`` they stay
shared between two parties; products and comparisons are the engine's, and an owner learns the clusters of its own rows
alone. Both count alike, so the groups are the same to the last row.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import BadInput
from sfumato.parties.channel import PartyError
from sfumato.parties.fixed import bits_for, decode, encode
from sfumato.parties.groupwise import next_to_fill, shared_sum, tell_numbers
from sfumato.parties.horizontal_centres import Centres, Pool
from sfumato.parties.plan import JointPlan
from sfumato.parties.session import Session
from sfumato.parties.words import possible
from sfumato.records import BlockKind, Layout

__all__ = ["cluster_rows", "fill_groups", "first_centres", "pool_rows"]

Whole = NDArray[np.int64]
Matrix = NDArray[np.float64]

_SLACK = 1.02  # roundings of means, deviations and fixed point
_FINE = 12  # bits behind the point of a row that is compared; selecting the nearest costs a comparison for each bit


def pool_rows(session: Session, values: Matrix, layout: Layout, weights: Matrix, n: int) -> Pool:
    """Bring this owner's rows to whole steps, by bounds that all owners know.

    A standardized number is sqrt(n) at most, for the squares of its column add up to n; the coordinates of a category
    have a squared length of 1/2 at most and a mark of a missing cell is 0 or 1.
    """
    bound = {BlockKind.NUMBER: float(n), BlockKind.CATEGORY: 0.5, BlockKind.MISSING: 1.0}
    reach = _SLACK * max(1.0, sum(float(weights[block.start]) * bound[block.kind] for block in layout))
    scaled = values * np.sqrt(weights)
    near = ((scaled**2).sum(axis=1) <= reach) & (values**2 <= _SLACK * max(1, n)).all(axis=1)  # a weight may be 0
    far = int((~near).sum())
    if far:
        raise BadInput(f"{far} rows lie farther out than standardized columns can; make the codec with all owners")
    bits = min(_FINE, bits_for(16.0 * reach, products=2))  # (2 sqrt(reach))^2 between two points, and room left
    room = math.ceil(math.log2(4.0 * reach)) + 2 * bits
    own = np.array([len(values)])
    counts = tuple(
        int(tell_numbers(session, own if rank == session.rank else None, rank, "own rows", (1,), "<i8", within=n)[0])
        for rank in range(session.parties)
    )
    possible(np.array(counts), 0, n, "own rows")
    if sum(counts) != n:
        raise PartyError(f"the owners bring {sum(counts)} rows and {n} were counted; start all parties again")
    return Pool(counts, encode(scaled, bits), bits, room, reach)


def first_centres(session: Session, pool: Pool, g: int) -> Whole:
    """Draw g points from the normal law with mean and covariance of all rows: no row is a centre.

    The first party computes and tells them, so that machines which round differently still have the same ones.
    """
    d = pool.own.shape[1]
    upper = np.triu_indices(d)
    rows = decode(pool.own, pool.bits)
    bits = bits_for(4.0 * pool.n)  # |sum of y_a y_b| <= n, for the weights are 1 at most
    products = (rows.T @ rows)[upper]
    moments = decode(session.sum(encode(np.concatenate([rows.sum(axis=0), products]), bits), "moments"), bits)
    sums = possible(moments, -4.0 * pool.n, 4.0 * pool.n, "moments") / pool.n
    rng = session.public_rng("first centres")
    drawn = None
    if session.rank == 0:
        mean, covariance = sums[:d], np.zeros((d, d))
        covariance[upper] = sums[d:]
        covariance = covariance + np.triu(covariance, 1).T - mean[:, None] * mean
        lengths, axes = np.linalg.eigh(covariance)
        points = mean + rng.standard_normal((g, d)) * np.sqrt(np.maximum(lengths, 0.0)) @ axes.T
        away = np.sqrt((points**2).sum(axis=1, keepdims=True) / pool.reach)
        drawn = encode(points / np.maximum(1.0, away), pool.bits)  # none beyond where rows can be
    return tell_numbers(session, drawn, 0, "first centres", (g, d), "<i8", within=pool.far)


def cluster_rows(session: Session, plan: JointPlan, centres: Centres, g: int, n: int) -> tuple[Whole, Whole, int]:
    """Run secure K-means [BCG10, line 4]; give this owner's clusters, the sizes of all, and the rounds.

    It ends when no row of any owner changes its cluster, or after the rounds of the plan.
    """
    labels, sizes, rounds = np.zeros(0, dtype=np.int64), np.zeros(g, dtype=np.int64), 0
    while rounds < plan.rounds:
        session.phase(f"round {rounds + 1}")
        found = centres.nearest()
        rounds += 1
        if rounds > 1 and not _any_changed(session, int((found != labels).sum())):
            break
        labels = found
        sizes = _sizes(session, labels, g, n)
        centres.move(labels, sizes)
    return labels, sizes, rounds


def fill_groups(session: Session, pool: Pool, centres: Centres, labels: Whole, sizes: Whole) -> tuple[Whole, Whole]:
    """Move rows from larger clusters to smaller ones until each has floor(n/g) [BCG10, lines 5 to 11].

    As `sfumato.groups.modified.fill_clusters` (errata BCG10.4): the next cluster is the smallest one now that is not
    final, it takes the closest rows of the others that are not final either, and equal distances go to the lower row.
    """
    size = pool.n // len(sizes)
    final = np.zeros(len(sizes), dtype=np.bool_)
    while (smallest := next_to_fill(sizes, final, size)) is not None:
        session.phase(f"filling group {smallest + 1}")
        candidates = ~final[labels] & (labels != smallest)
        moved = centres.closest(smallest, candidates, int(size - sizes[smallest]))
        labels = np.where(moved, smallest, labels)
        sizes = _sizes(session, labels, len(sizes), pool.n)
        if sizes[smallest] != size:
            raise PartyError(
                f"a group was filled to {sizes[smallest]} rows where {size} were asked for, so a party sent or "
                "computed wrong numbers; start all parties again"
            )
        final[smallest] = True
    return labels, sizes


def _sizes(session: Session, labels: Whole, g: int, n: int) -> Whole:
    """Rows of all owners in each of g clusters, n together."""
    sizes = possible(session.sum(np.bincount(labels, minlength=g), "sizes"), 0, n, "sizes")
    possible(sizes.sum(keepdims=True), n, n, "sizes")
    return sizes


def _any_changed(session: Session, changed: int) -> bool:
    """Whether any row of any owner changed its cluster, and not how many."""
    total = shared_sum(session, np.array([changed], dtype=np.int64), "rows that change")
    bit = session.open(session.less_than(session.scale(total, 0), total), "changed")
    return bit is not None and bool(possible(bit, 0, 1, "changed")[0])
