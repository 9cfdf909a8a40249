"""Groups of records whose columns several owners hold: K-means and filling [BCG10, alg. 2, lines 4 to 11]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.parties.batches import padded_choice, row_blocks
from sfumato.parties.channel import PartyError
from sfumato.parties.fixed import bits_for, encode
from sfumato.parties.groupwise import next_to_fill, shared_sum
from sfumato.parties.session import Session
from sfumato.parties.words import possible

__all__ = ["Distances", "cluster_rows", "distances", "fill_groups", "first_rows"]

_FINE = 16  # bits behind the point of a squared distance; selecting the nearest costs a comparison for each bit


@dataclass(frozen=True, eq=False, repr=False)
class Distances:
    """One owner's part of squared distances, in fixed point.

    Parameters
    ----------
    scaled : ndarray of shape (n, d_l)
        Own coordinates times the root of their weights.
    bits : int
        Behind the point.
    whole : int
        Bits of a distance before the point.
    """

    scaled: NDArray[np.float64]
    bits: int
    whole: int

    def to(self, centres: NDArray[np.float64], rows: slice | NDArray[np.int64]) -> NDArray[np.int64]:
        """Parts of the distances of some rows to each centre, (rows, g)."""
        some = self.scaled[rows]
        apart = np.zeros((len(some), len(centres)))
        for row, centre in zip(some.T, centres.T, strict=True):
            gap = row[:, None] - centre
            apart += gap * gap
        return encode(apart, self.bits)


def distances(session: Session, scaled: NDArray[np.float64]) -> Distances:
    """Choose fixed point for distances of all owners together.

    Centres are means of records, so no record is farther from one than from some record. In a standardized number two
    records differ by 2 n at most, squared, in a column of categories by 1 and in a mark of missing cells by 1; the
    weights of the columns sum to 1. So a distance is at most 2 n + 1, and 4 n leaves room for what each owner rounds.
    """
    bound = 4.0 * max(len(scaled), session.parties)
    return Distances(scaled, min(_FINE, bits_for(bound)), int(np.ceil(np.log2(bound))))


def cluster_rows(
    session: Session, near: Distances, g: int, rounds: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], int]:
    """Run K-means on the columns of all owners [BCG10, line 4].

    In a round each owner shares its part of the distances, the nearest centre of each record is found among shares and
    opened, and each owner moves the centres of its own columns. Ends when no record changes its cluster.

    Returns
    -------
    labels : ndarray of shape (n,)
    centres : ndarray of shape (g, d_l)
        In this owner's columns; an empty cluster keeps the centre that it had.
    rounds : int
    """
    centres = near.scaled[first_rows(session, len(near.scaled), g)]
    labels: NDArray[np.int64] | None = None
    for done in range(rounds):
        session.phase(f"round {done + 1}")
        before, labels = labels, _nearest(session, near, centres)
        if before is not None and (labels == before).all():
            return labels, centres, done + 1
        centres = _means(near.scaled, labels, centres)
    if labels is None:
        raise ValueError("K-means needs a round at least")
    return labels, centres, rounds


def first_rows(session: Session, n: int, g: int) -> NDArray[np.int64]:
    """Draw the records that K-means starts from; nothing of them is opened."""
    return session.public_rng("first centres").choice(n, g, replace=False)


def fill_groups(
    session: Session, near: Distances, labels: NDArray[np.int64], centres: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Move records from larger clusters to smaller ones until each has floor(n/g) [BCG10, lines 5 to 11].

    The same order as `sfumato.groups.modified.fill_clusters`. Who may move is public; only of those distances are
    shared, and only who moves is opened.
    """
    session.phase("filling groups")
    labels, g = labels.copy(), len(centres)
    size = len(labels) // g
    counts, final = np.bincount(labels, minlength=g), np.zeros(g, dtype=np.bool_)
    bits = near.whole + near.bits
    while (cluster := next_to_fill(counts, final, size)) is not None:
        left = np.flatnonzero(~final[labels] & (labels != cluster))
        need = int(size - counts[cluster])
        parts = np.zeros(padded_choice(len(left)), dtype=np.int64)
        parts[: len(left)] = near.to(centres[cluster, None], left)[:, 0]
        if session.rank == 0:
            parts[len(left) :] = 2**bits - 1  # farther than any record can be
        mask = session.open(
            session.part(session.top(shared_sum(session, parts, "partial distances"), need, bits), slice(len(left))),
            "moved records",
        )
        moved = left[mask == 1] if mask is not None else left[:0]
        if len(moved) != need:
            raise PartyError(
                f"{len(moved)} records were moved where {need} were asked for, so a party sent or computed wrong "
                "numbers; start all parties again"
            )
        labels[moved], final[cluster] = cluster, True
        counts = np.bincount(labels, minlength=g)
    return labels


def _nearest(session: Session, near: Distances, centres: NDArray[np.float64]) -> NDArray[np.int64]:
    """Open the nearest centre of each record, of equal ones the first; rows go in blocks of one shape."""
    n, g = len(near.scaled), len(centres)
    if g == 1:
        return np.zeros(n, dtype=np.int64)
    blocks, size = row_blocks(n, g)
    found = []
    for block in range(blocks):
        parts = near.to(centres, slice(block * size, (block + 1) * size))
        filled = np.zeros((size, g), dtype=np.int64)
        filled[: len(parts)] = parts
        found.append(session.argmin(shared_sum(session, filled, "partial distances")))
    labels = session.open(session.part(session.join(found), slice(n)), "clusters")
    if labels is None:
        raise ValueError("clusters are opened to all parties")
    return possible(labels, 0, g - 1, "clusters")


def _means(scaled: NDArray[np.float64], labels: NDArray[np.int64], centres: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean of each cluster in this owner's columns, and of an empty one the centre that it had."""
    sizes = np.bincount(labels, minlength=len(centres))
    sums = np.column_stack([np.bincount(labels, weights=column, minlength=len(centres)) for column in scaled.T])
    return np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centres)
