"""What the horizontal protocol declares to show, and rows that its sums would show [BCG10, sec. 4.2, security]."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import PrivacyRefusal
from sfumato.engines.parties.ledger import Leak
from sfumato.engines.parties.ring import possible
from sfumato.engines.parties.session import Session

__all__ = ["ALWAYS", "BY_CENTRES", "EXPOSED_ROWS", "refuse_exposed_rows"]

EXPOSED_ROWS = Leak.sum(
    "bare rows",
    "how often an owner has all rows but one or two, or all cells of a column that are not missing but one or two, of "
    "a group or of the whole table, without who or where",
)
"""What `refuse_exposed_rows` shows."""

_BARE = 2  # so few rows follow from their sum and products exactly, and so few cells from their sum and squares

_STATISTICS = (
    "over all owners; with two owners each sees the other's by subtracting its own, and a sum over a group in which "
    "one owner has a single row tells it to all the others together"
)
ALWAYS = (
    Leak.told("own rows", "how many rows each owner has; the noised rows show it too", implied=True),
    Leak.sum(
        "moments",
        "mean and covariance of all rows, from which the first centres are drawn; the statistics of the groups add up "
        "to them",
        implied=True,
    ),
    Leak.told(
        "first centres",
        "the centres that K-means starts from: random points, drawn from the mean and covariance of all rows",
        implied=True,
    ),
    Leak.opened("changed", "after each round, whether any row of any owner changed its cluster"),
    Leak.sum(
        "sizes", "how many rows of all owners each cluster has, after each round and each time that a group is filled"
    ),
    Leak.opened("moved", "each owner sees which of its own rows go to a group that is filled", to="owner"),
    Leak.sum(
        "present cells",
        "how many rows each group has and, of each column with missing cells, how many that are not; the sums of the "
        "groups tell the same",
        implied=True,
    ),
    Leak.sum("group sums", f"the sum of the rows of each group, {_STATISTICS}"),
    Leak.sum("group products", f"the covariance of each group, {_STATISTICS}"),
    Leak.sum(
        "group categories",
        f"of columns of more than 200 categories how often each stands in each group, {_STATISTICS}",
    ),
    Leak.told("axes", "the principal axes of each group, which follow from its covariance", implied=True),
    Leak.opened(
        "ranges", "the range of each principal component of each group, without where it lies: the size of the noise"
    ),
    Leak.told(
        "noised rows",
        "the principal components of each owner's rows with their noise and their group, in random order within it; "
        "all parties see which released rows came from which owner, readers of the release do not",
    ),
)
BY_CENTRES = {
    "each": Leak.sum(
        "centres",
        "the centre of each cluster in every round: from two rounds, or from a cluster before and after it is filled, "
        "follows the sum of the rows that moved, and where one row moved that is the row itself",
    ),
    "last": Leak.opened(
        "cluster",
        "in every round each owner sees the clusters of its own rows; the centres stay hidden from all",
        to="owner",
    ),
}


def refuse_exposed_rows(session: Session, own: NDArray[np.int64], total: NDArray[np.int64], few: str) -> int:
    """Count how often an owner would see all rows or cells of the others bare, and refuse unless that is allowed.

    An owner that takes its own rows off a group's sums and products is left with those of the others: of one row that
    is the row, of two it is both, for they lie on either side of their mean along the one axis that is left. Missing
    cells add nothing to the sums of their column, so a cell is as bare as a row where all others are missing.

    Parameters
    ----------
    own, total : ndarray of one shape
        Rows or cells that go into each sum, here and over all owners.
    few : {"refuse", "allow"}

    Raises
    ------
    PrivacyRefusal
        At every party, to be called before the sums are opened.
    """
    others = total - own
    here = int(((others > 0) & (others <= _BARE)).sum())
    shown = session.sum(np.array([here]), EXPOSED_ROWS.label)
    bare = int(possible(shown, 0, own.size * session.parties, EXPOSED_ROWS.label)[0])
    if bare and few == "refuse":
        raise PrivacyRefusal(
            f"{bare} times all owners but one have no more than {_BARE} rows in a group, or cells of a column that are "
            "not missing, and exact sums would show them to that one; ask for larger groups, leave such columns out, "
            'or allow it with few = "allow"'
        )
    return bare
