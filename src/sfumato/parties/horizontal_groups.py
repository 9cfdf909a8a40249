"""Centres of clusters for owners of rows, opened or hidden [BCG10, alg. 2, lines 4 to 11].

Coordinates are integers in steps of 2^-bits, so that distances are exact. With ``centres="each"`` the centres are
opened in every round, and each owner compares its own rows with them. With ``centres="last"`` they stay shared between
two parties, the engine multiplies and compares, and an owner learns the clusters of its own rows only. Both give the
same groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import BadInput
from sfumato.core.groups import eigen
from sfumato.core.records import BlockKind, Layout
from sfumato.parties.arithmetic import check_range, fraction_bits, from_fixed_point, to_fixed_point
from sfumato.parties.channel import PartyError
from sfumato.parties.groupwise import broadcast_numbers, row_blocks, shared_sum
from sfumato.parties.rounds import SeenRounds
from sfumato.parties.session import Session, SharedArray

__all__ = [
    "HiddenCentres",
    "JointRows",
    "OpenCentres",
    "first_centres",
    "scale_rows",
]

Whole = NDArray[np.int64]
Matrix = NDArray[np.float64]

_SLACK = 1.02  # roundings of means, deviations and fixed point
_FINE = 12  # bits behind the point of a row that is compared; selecting the nearest costs a comparison for each bit


@dataclass(frozen=True, eq=False, repr=False)
class JointRows:
    """The joined rows, of which each owner sees its own: one owner's after the other's, in the order of their ranks."""

    counts: tuple[int, ...]  # rows of each owner
    own: Whole  # (counts[rank], d): this owner's rows in whole steps, scaled by the roots of the weights
    bits: int  # a step is 2^-bits
    room: int  # squared distances between rows and centres lie below 2^room steps
    reach: float  # no row is farther from the origin than its root

    def __repr__(self) -> str:
        return f"JointRows(n={self.n}, owners={len(self.counts)})"

    @property
    def n(self) -> int:
        """Rows of all owners."""
        return sum(self.counts)

    @property
    def far(self) -> int:
        """Steps from the origin at which a coordinate of a row or a centre can lie, what each owner rounds included."""
        return int(2.0**self.bits * self.reach**0.5) + 1 + len(self.counts)


class _RowCentres:
    """Sizes and changes of both kinds of centres: sizes are secure sums, the number of changes stays hidden."""

    def __init__(self, session: Session, pool: JointRows, first: Whole) -> None:
        self._session, self._pool, self._shape = session, pool, first.shape

    def any_changed(self, before: Whole, after: Whole) -> bool:
        """Whether any row of any owner changed its cluster, and not how many."""
        session, changed = self._session, np.array([(before != after).sum()], dtype=np.int64)
        total = shared_sum(session, changed, "rows that change")
        bit = session.open_to_all(session.less_than(session.scale(total, 0), total), "changed")
        return bool(check_range(bit, 0, 1, "changed")[0])

    def sizes(self, labels: Whole) -> Whole:
        """Rows of all owners in each cluster."""
        n = self._pool.n
        sizes = self._session.sum(np.bincount(labels, minlength=self._shape[0]), "sizes")
        check_range(sizes.sum(keepdims=True), n, n, "sizes")
        return check_range(sizes, 0, n, "sizes")


class OpenCentres(_RowCentres):
    """Centres that all owners see in every round."""

    def __init__(self, session: Session, pool: JointRows, first: Whole) -> None:
        super().__init__(session, pool, first)
        self._centres = first
        self._seen: list[tuple[Whole, Whole, Whole]] = []
        self._most = pool.n // len(first)

    def nearest(self) -> Whole:
        """Cluster of each of this owner's rows, of equally near centres the first."""
        return _nearest(self._pool.own, self._centres)

    def move(self, labels: Whole, sizes: Whole) -> None:
        """Put each centre at the mean of its cluster over all owners; that of an empty one stays."""
        means, far = self._session.sum(_parts_of_means(self._pool.own, labels, sizes), "centres"), self._pool.far
        self._centres = np.where(sizes[:, None] > 0, check_range(means, -far, far, "centres"), self._centres)
        self._seen.append((labels, sizes, means))

    def seen(self) -> SeenRounds:
        """What this owner has seen of the rounds."""
        labels, sizes, means = (np.stack(part) for part in zip(*self._seen, strict=True))
        return SeenRounds(
            own=self._pool.own, labels_seen=labels, counts=sizes, centres=means, owners=len(self._pool.counts)
        )

    def closest(self, cluster: int, candidates: NDArray[np.bool_], count: int) -> NDArray[np.bool_]:
        """Closest among the closest candidates of each owner.

        Each owner offers as many candidates as are needed; no other can be among them, so the engine compares few rows.
        Of equal distances, the lower row and the lower owner come first.
        """
        session, own = self._session, self._pool.own
        away = (own**2).sum(axis=1) + _scores(own, self._centres[cluster : cluster + 1])[:, 0]
        rows = np.flatnonzero(candidates)
        offered = rows[np.argsort(away[rows], kind="stable")[:count]]
        apart = np.full(self._most, 2**self._pool.room)
        apart[: len(offered)] = away[offered]
        counts = (self._most,) * session.parties
        offers = _joined(session, counts, apart, "distances")
        chosen = session.top(offers, count, self._pool.room + 1)
        mask = np.zeros(len(own), dtype=np.bool_)
        mask[offered] = _own_part(session, counts, chosen, "moved", 1)[: len(offered)] == 1
        return mask


class HiddenCentres(_RowCentres):
    """Centres that stay hidden, but for the first, which depend on no row; rows are shared once."""

    def __init__(self, session: Session, pool: JointRows, first: Whole) -> None:
        super().__init__(session, pool, first)
        self._first: Whole | None = first
        d = pool.own.shape[1]
        rows = np.column_stack([pool.own, (pool.own**2).sum(axis=1)])
        columns = session.arrange(_joined(session, pool.counts, rows, "rows"), (pool.n, d + 1), (1, 0))
        self._rows = session.arrange(session.part(columns, slice(0, d)), (d, pool.n), (1, 0))
        self._squares = session.arrange(session.part(columns, slice(d, d + 1)), (pool.n,))
        self._centres: SharedArray | None = None
        self._scored: SharedArray | None = None

    def nearest(self) -> Whole:
        """Compare shared rows with shared centres, and open to each owner the clusters of its rows."""
        if self._first is not None:
            return _nearest(self._pool.own, self._first)
        nearest = _by_rows(self._session, self._scores(), self._shape[0], self._session.argmin)
        return _own_part(self._session, self._pool.counts, nearest, "cluster", self._shape[0] - 1)

    def move(self, labels: Whole, sizes: Whole) -> None:
        """Add up every owner's part of the means, as shares."""
        session = self._session
        moved = shared_sum(session, _parts_of_means(self._pool.own, labels, sizes), "parts of centres")
        empty = (sizes == 0).astype(np.int64)[:, None]
        if empty.any():
            stay = self._centres
            if stay is None:
                stay = session.share(self._first if session.rank == 0 else None, 0, self._shape, "first centres")
            moved = session.add(moved, session.scale(stay, empty))
        self._centres, self._first, self._scored = moved, None, None

    def closest(self, cluster: int, candidates: NDArray[np.bool_], count: int) -> NDArray[np.bool_]:
        """Closest of all rows to the hidden centre, with a penalty for rows that are no candidates.

        The engine compares all rows, because no owner knows which of its own are close.
        """
        session, pool = self._session, self._pool
        scores = session.arrange(self._scores(), (pool.n, self._shape[0]), (1, 0))
        column = session.arrange(session.part(scores, slice(cluster, cluster + 1)), (pool.n,))
        penalties = _joined(session, pool.counts, np.where(candidates, 0, 2**pool.room), "no candidates")
        chosen = session.top(session.add(column, self._squares, penalties), count, pool.room + 1)
        return np.asarray(_own_part(session, pool.counts, chosen, "moved", 1) == 1)

    def _scores(self) -> SharedArray:
        """|C_j|^2 - 2 x.C_j of all rows and centres by one product; the rest of a distance is the row's alone."""
        if self._scored is None:
            session, (g, d), n = self._session, self._shape, self._pool.n
            assert self._centres is not None  # the first centres are compared in the clear
            centres = session.arrange(self._centres, (g, d), (1, 0))
            products = _by_rows(
                session,
                session.join([self._rows, self._centres]),
                g,
                lambda some: session.cross(session.arrange(some, some.shape, (1, 0)), centres),
            )
            among = session.arrange(session.part(products, slice(n, n + g)), (g * g,))
            lengths = session.arrange(session.part(among, np.arange(g) * (g + 1)), (1, g))
            spread = session.scale(lengths, np.ones((n, 1), dtype=np.int64))
            self._scored = session.subtract(spread, session.scale(session.part(products, slice(0, n)), 2))
        return self._scored


def _scores(rows: Whole, centres: Whole) -> Whole:
    """|C_j|^2 - 2 x.C_j, exact: squared distances without the row's own length."""
    return np.asarray((centres**2).sum(axis=1) - 2 * (rows @ centres.T))


def _nearest(rows: Whole, centres: Whole) -> Whole:
    return np.asarray(np.argmin(_scores(rows, centres), axis=1), dtype=np.int64)


def _parts_of_means(rows: Whole, labels: Whole, sizes: Whole) -> Whole:
    """Divide this owner's sums of clusters by the sizes over all owners, rounded half up; 0 for empty clusters."""
    sums = np.zeros((len(sizes), rows.shape[1]), dtype=np.int64)
    np.add.at(sums, labels, rows)
    size = np.maximum(sizes, 1)[:, None]
    return np.asarray((2 * sums + size) // (2 * size))


def _by_rows(
    session: Session, shared: SharedArray, wide: int, function: Callable[[SharedArray], SharedArray]
) -> SharedArray:
    """Apply the engine to blocks of rows of one shape; the last row is repeated as padding."""
    rows = shared.shape[0]
    blocks, size = row_blocks(rows, wide)
    if blocks == 1:
        return function(shared)
    places = np.minimum(np.arange(blocks * size), rows - 1).reshape(blocks, size)
    return session.part(session.join([function(session.part(shared, some)) for some in places]), slice(0, rows))


def _joined(session: Session, counts: tuple[int, ...], own: Whole, label: str) -> SharedArray:
    """Shared numbers of the rows of all owners, in the order of the owners."""
    return session.join(
        [
            session.share(own if owner == session.rank else None, owner, (count, *own.shape[1:]), label)
            for owner, count in enumerate(counts)
        ]
    )


def _own_part(session: Session, counts: tuple[int, ...], shared: SharedArray, label: str, most: int) -> Whole:
    """Open to each owner the numbers of its own rows, which lie between 0 and ``most``."""
    mine = np.zeros(0, dtype=np.int64)
    ends = np.cumsum(counts).tolist()
    for owner, (count, end) in enumerate(zip(counts, ends, strict=True)):
        seen = session.open(session.part(shared, slice(end - count, end)), label, to=(owner,))
        mine = seen if seen is not None else mine
    return check_range(mine, 0, most, label)


def scale_rows(session: Session, values: Matrix, layout: Layout, weights: Matrix, n: int) -> JointRows:
    """Rows of this owner in fixed point, by bounds that all owners know.

    A standardized number is sqrt(n) at most, for the squares of its column add up to n; the coordinates of a category
    have a squared length of 1/2 at most and a mark of a missing cell is 0 or 1.
    """
    bound = {BlockKind.NUMBER: float(n), BlockKind.CODE: float(n), BlockKind.CATEGORY: 0.5, BlockKind.MISSING: 1.0}
    reach = _SLACK * max(1.0, sum(float(weights[block.start]) * bound[block.kind] for block in layout))
    scaled = values * np.sqrt(weights)
    near = ((scaled**2).sum(axis=1) <= reach) & (values**2 <= _SLACK * max(1, n)).all(axis=1)  # a weight may be 0
    far = int((~near).sum())
    if far:
        raise BadInput(f"{far} rows lie farther out than standardized columns can; make the codec with all owners")
    bits = min(_FINE, fraction_bits(16.0 * reach, products=2))  # (2 sqrt(reach))^2 between two points, and room left
    room = math.ceil(math.log2(4.0 * reach)) + 2 * bits
    own = np.array([len(values)])
    counts = tuple(
        int(
            broadcast_numbers(session, own if rank == session.rank else None, rank, "own rows", (1,), "<i8", within=n)[
                0
            ]
        )
        for rank in range(session.parties)
    )
    check_range(np.array(counts), 0, n, "own rows")
    if sum(counts) != n:
        raise PartyError(f"the owners contribute {sum(counts)} rows and {n} were counted; start all parties again")
    return JointRows(counts, to_fixed_point(scaled, bits), bits, room, reach)


def first_centres(session: Session, pool: JointRows, g: int) -> Whole:
    """First centres: g points of the normal distribution with mean and covariance of all rows; no row is a centre.

    The first party computes and sends them, because machines may round differently.
    """
    d = pool.own.shape[1]
    upper = np.triu_indices(d)
    rows = from_fixed_point(pool.own, pool.bits)
    bits = fraction_bits(4.0 * pool.n)  # |sum of y_a y_b| <= n, for the weights are 1 at most
    products = (rows.T @ rows)[upper]
    moments = from_fixed_point(
        session.sum(to_fixed_point(np.concatenate([rows.sum(axis=0), products]), bits), "moments"), bits
    )
    sums = check_range(moments, -4.0 * pool.n, 4.0 * pool.n, "moments") / pool.n
    rng = session.public_rng("first centres")
    drawn = None
    if session.rank == 0:
        mean, covariance = sums[:d], np.zeros((d, d))
        covariance[upper] = sums[d:]
        covariance = covariance + np.triu(covariance, 1).T - mean[:, None] * mean
        lengths, axes = eigen(covariance)
        points = mean + rng.standard_normal((g, d)) * np.sqrt(np.maximum(lengths, 0.0)) @ axes.T
        away = np.sqrt((points**2).sum(axis=1, keepdims=True) / pool.reach)
        drawn = to_fixed_point(points / np.maximum(1.0, away), pool.bits)  # none beyond where rows can be
    return broadcast_numbers(session, drawn, 0, "first centres", (g, d), "<i8", within=pool.far)
