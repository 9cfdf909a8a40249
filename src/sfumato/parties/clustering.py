"""K-means and filling of small clusters over the records of several owners [BCG10, alg. 2, lines 4 to 11]."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.parties.channel import PartyError
from sfumato.parties.groupwise import next_to_fill
from sfumato.parties.session import Session

__all__ = ["Centres", "cluster_rows", "fill_groups"]

Whole = NDArray[np.int64]


class Centres(Protocol):
    """Centres of clusters, and the records whose clusters this owner sees."""

    def nearest(self) -> Whole:
        """Nearest centre of each record, of equally near ones the first."""

    def any_changed(self, before: Whole, after: Whole) -> bool:
        """Whether any record of any owner changed its cluster."""

    def sizes(self, labels: Whole) -> Whole:
        """Records of all owners in each cluster."""

    def move(self, labels: Whole, sizes: Whole) -> None:
        """Put each centre at the mean of its cluster; that of an empty one stays."""

    def closest(self, cluster: int, candidates: NDArray[np.bool_], count: int) -> NDArray[np.bool_]:
        """The candidates of all owners closest to a centre, a given number; of equal ones the first."""


def cluster_rows(session: Session, centres: Centres, rounds: int) -> tuple[Whole, Whole, int]:
    """Run K-means [BCG10, line 4]; gives the clusters, their sizes over all owners, and the rounds.

    It ends when no record of any owner changes its cluster, or after ``rounds`` rounds.
    """
    session.phase("round 1")
    labels = centres.nearest()
    for done in range(1, rounds + 1):
        sizes = centres.sizes(labels)
        centres.move(labels, sizes)
        if done == rounds:
            break
        session.phase(f"round {done + 1}")
        before, labels = labels, centres.nearest()
        if not centres.any_changed(before, labels):
            return before, sizes, done + 1
    return labels, sizes, rounds


def fill_groups(session: Session, centres: Centres, labels: Whole, sizes: Whole) -> tuple[Whole, Whole]:
    """Move records from larger clusters to smaller ones until each has floor(n/g) [BCG10, lines 5 to 11].

    As `core.groups.kmeans.fill_clusters` (errata BCG10.4): the next cluster is the smallest one now that is not final,
    and it takes the closest records of the others that are not final either.

    Raises
    ------
    PartyError
        If a cluster is filled to another size than asked for.
    """
    size = int(sizes.sum()) // len(sizes)
    final = np.zeros(len(sizes), dtype=np.bool_)
    while (smallest := next_to_fill(sizes, final, size)) is not None:
        session.phase(f"filling group {smallest + 1}")
        candidates = ~final[labels] & (labels != smallest)
        moved = centres.closest(smallest, candidates, int(size - sizes[smallest]))
        labels = np.where(moved, smallest, labels)
        sizes = centres.sizes(labels)
        if sizes[smallest] != size:
            raise PartyError(
                f"a group was filled to {sizes[smallest]} records where {size} were asked for, so a party sent or "
                "computed wrong numbers; start all parties again"
            )
        final[smallest] = True
    return labels, sizes
