"""What the horizontal protocol shows to whom, declared: nothing else can be opened [BCG10, sec. 4.2, security]."""

from __future__ import annotations

from sfumato.errors import OptionError
from sfumato.parties.codecs import LEAKS as CODEC_LEAKS
from sfumato.parties.plan import CENTRES
from sfumato.parties.transcript import Leak

__all__ = ["leaks"]

_STATISTICS = (
    "over all owners; with two owners each sees the other's by subtracting its own, and a sum over a group in which "
    "one owner has a single row tells it to all the others together"
)
_ALWAYS = (
    Leak("own rows", "told", "all", "how many rows each owner has; the noised rows show it too", implied=True),
    Leak(
        "moments",
        "sum",
        "all",
        "mean and covariance of all rows, from which the first centres are drawn; the statistics of the groups add up "
        "to them",
        implied=True,
    ),
    Leak(
        "first centres",
        "told",
        "all",
        "the centres that K-means starts from: random points, drawn from the mean and covariance of all rows",
        implied=True,
    ),
    Leak("changed", "opened", "all", "after each round, whether any row of any owner changed its cluster"),
    Leak(
        "sizes",
        "sum",
        "all",
        "how many rows of all owners each cluster has, after each round and each time that a group is filled",
    ),
    Leak("moved", "opened", "owner", "each owner sees which of its own rows go to a group that is filled"),
    Leak(
        "present cells",
        "sum",
        "all",
        "how many rows each group has and, of each column with missing cells, how many that are not; the sums of the "
        "groups tell the same",
        implied=True,
    ),
    Leak("group sums", "sum", "all", f"the sum of the rows of each group, {_STATISTICS}"),
    Leak("group products", "sum", "all", f"the covariance of each group, {_STATISTICS}"),
    Leak("axes", "told", "all", "the principal axes of each group, which follow from its covariance", implied=True),
    Leak(
        "ranges",
        "opened",
        "all",
        "the range of each principal component of each group, without where it lies: the size of the noise",
    ),
    Leak(
        "noised rows",
        "told",
        "all",
        "the principal components of each owner's rows with their noise and their group, in random order within it; "
        "all parties see which released rows came from which owner, readers of the release do not",
    ),
)
_CENTRES = {
    "each": Leak(
        "centres",
        "sum",
        "all",
        "the centre of each cluster in every round: from two rounds, or from a cluster before and after it is filled, "
        "follows the sum of the rows that moved, and where one row moved that is the row itself",
    ),
    "last": Leak(
        "cluster",
        "opened",
        "owner",
        "in every round each owner sees the clusters of its own rows; the centres stay hidden from all",
    ),
}


def leaks(centres: str) -> dict[str, Leak]:
    """Everything that the protocol shows, by label: with open centres or with hidden ones.

    Examples
    --------
    >>> sorted(set(leaks("each")) ^ set(leaks("last")))
    ['centres', 'cluster']
    """
    if centres not in CENTRES:
        raise OptionError(f"there are no centres {centres!r} of a joint run; choose one of {', '.join(CENTRES)}")
    return {**CODEC_LEAKS, **{leak.label: leak for leak in (*_ALWAYS, _CENTRES[centres])}}
