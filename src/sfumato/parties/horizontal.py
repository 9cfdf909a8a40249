"""Algorithm 2 for owners who each have some of the rows [BCG10, lines 1 to 19].

Sums are secure sums, and the engine compares. Each owner assigns its rows to open centres, projects them, adds noise
and rotates back. No row leaves its owner without noise.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import OptionError
from sfumato.core.groups import Groups, response_weights, summarize
from sfumato.core.groups.discrete import coded_blocks
from sfumato.core.records import BlockKind, Layout
from sfumato.methods.condense import Condensation
from sfumato.methods.perturb.laplace_pca import LaplacePCA, component_places, most_components, project
from sfumato.parties.arithmetic import check_range, fraction_bits, from_fixed_point, to_fixed_point
from sfumato.parties.channel import PartyError
from sfumato.parties.codecs import LEAKS as CODEC_LEAKS
from sfumato.parties.codecs import refuse_exposed_rows
from sfumato.parties.groupwise import (
    FARTHEST,
    LONGEST,
    Statistics,
    broadcast_axes,
    broadcast_numbers,
    check_component_ranges,
    cluster_rows,
    component_scales,
    draw_noise,
    draw_rows,
    fill_groups,
    group_sizes,
    release_rows,
    varying_ranges,
)
from sfumato.parties.horizontal_groups import (
    HiddenCentres,
    OpenCentres,
    first_centres,
    scale_rows,
)
from sfumato.parties.ledger import Leak
from sfumato.parties.plan import CENTRES, JointPlan, JointResult, SeenGroups
from sfumato.parties.rounds import SeenRounds
from sfumato.parties.row_tails import LEAKS as TAIL_LEAKS
from sfumato.parties.session import Session

__all__ = ["form_groups", "group_statistics", "leaks", "sanitize_horizontal", "secure_ranges"]

Whole = NDArray[np.int64]
Matrix = NDArray[np.float64]

_STATISTICS = (
    "over all owners; with two owners each sees the other's by subtracting its own, and a sum over a group in which "
    "one owner has a single row tells it to all the others together"
)
_ALWAYS = (
    Leak.message("own rows", "how many rows each owner has; the noised rows show it too", implied=True),
    Leak.sum(
        "moments",
        "mean and covariance of all rows, from which the first centres are drawn; the statistics of the groups add up "
        "to them",
        implied=True,
    ),
    Leak.message(
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
    Leak.message("axes", "the principal axes of each group, which follow from its covariance", implied=True),
    Leak.opened(
        "ranges", "the range of each principal component of each group, without where it lies: the size of the noise"
    ),
    Leak.message(
        "noised rows",
        "the principal components of each owner's rows with their noise and their group, in random order within it; "
        "all parties see which released rows came from which owner, readers of the release do not",
    ),
)
_BY_CENTRES = {
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


def leaks(centres: str) -> dict[str, Leak]:
    """Declared openings of the protocol by label, with open or hidden centres.

    Examples
    --------
    >>> sorted(set(leaks("each")) ^ set(leaks("last")))
    ['centres', 'cluster']
    """
    if centres not in CENTRES:
        raise OptionError(f"there are no centres {centres!r} of a joint run; choose one of {', '.join(CENTRES)}")
    return {**CODEC_LEAKS, **TAIL_LEAKS, **{leak.label: leak for leak in (*_ALWAYS, _BY_CENTRES[centres])}}


def sanitize_horizontal(session: Session, plan: JointPlan, values: Matrix, layout: Layout, n: int) -> JointResult:
    """Sanitize the rows of all owners as one table [BCG10, alg. 2, horizontal].

    Parameters
    ----------
    plan : JointPlan
        The same at every owner.
    values : ndarray of shape (n_l, d)
        This owner's rows, standardized alike at all owners (`sfumato.parties.codecs.joint_codec`).
    n : int
        Rows of all owners [line 2].

    Returns
    -------
    JointResult
        The same at every owner, to the bit.
    """
    level, g = group_sizes(plan.mechanism, n)
    values = np.ascontiguousarray(values, dtype=np.float64)
    watched: list[SeenRounds] = []
    labels, sizes, rounds = form_groups(session, plan, values, layout, n, g, watched)
    session.phase("statistics of the groups")
    present = _present(values, layout, labels, g)
    total = check_range(session.sum(present, "present cells"), 0, n, "present cells")
    bare = refuse_exposed_rows(session, present, total, plan.few)
    order = np.argsort(labels, kind="stable")
    values, own = values[order], np.bincount(labels, minlength=g).astype(np.int64)  # group after group from here on
    statistics = group_statistics(session, values, own, sizes)
    held = _held_codes(session, values, layout, own, total)
    if isinstance(plan.mechanism, Condensation):
        result = draw_rows(session, statistics, layout, held)
    else:
        result = _with_noise(session, plan.mechanism, _GroupRows(values, own, statistics, layout, held))
    seen = watched[0] if watched else None
    return dataclasses.replace(result, level=level, rounds=rounds, bare=bare, seen=seen)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class _GroupRows:
    """Rows of this owner, group after group, and what all owners know of the groups."""

    values: Matrix
    own: Whole  # (g,): rows of each group here
    statistics: Statistics
    layout: Layout
    held: list[Matrix]


def _with_noise(session: Session, mechanism: LaplacePCA, rows: _GroupRows) -> JointResult:
    """Add noise to the components of all rows [BCG10, lines 14 to 19]."""
    own, statistics, layout, step = rows.own, rows.statistics, rows.layout, mechanism.grid
    axes = broadcast_axes(session, statistics, layout, "axes")
    session.phase("ranges of the components")
    places = _components(rows.values, own, statistics, axes, step)
    varying = varying_ranges(check_component_ranges(secure_ranges(session, places, own), statistics, axes, step), 1)
    session.phase("noise")
    scales = component_scales(varying, mechanism.scale(most_components(layout)))
    noised = _noised(session, places, own, varying, scales)
    session.phase("released rows")
    joined = _broadcast_rows(session, noised, own, statistics.sizes)
    result = release_rows(session, joined.astype(np.float64) * step, axes, varying, statistics, layout, rows.held)
    return dataclasses.replace(result, seen_groups=SeenGroups(statistics, axes, scales * step))


def form_groups(
    session: Session,
    plan: JointPlan,
    values: Matrix,
    layout: Layout,
    n: int,
    g: int,
    watched: list[SeenRounds] | None = None,
) -> tuple[Whole, Whole, int]:
    """Group the rows of all owners [BCG10, lines 4 to 11].

    What this owner saw of opened centres is appended to ``watched``, if given.

    Returns
    -------
    labels : ndarray of shape (n_l,)
        Groups of this owner's rows.
    sizes : ndarray of shape (g,)
        Rows of all owners in each group, floor(n/g) or more.
    rounds : int
        Rounds of K-means.
    """
    session.phase("first centres")
    weights = response_weights(layout, plan.target, plan.response_weight)
    pool = scale_rows(session, values, layout, weights, n)
    if g == 1:
        return np.zeros(len(values), dtype=np.int64), np.array([n]), 0
    first = first_centres(session, pool, g)
    hidden = plan.centres == "last"
    centres = HiddenCentres(session, pool, first) if hidden else OpenCentres(session, pool, first)
    labels, sizes, rounds = cluster_rows(session, centres, plan.rounds)
    if watched is not None and isinstance(centres, OpenCentres):
        watched.append(centres.seen())
    labels, sizes = fill_groups(session, centres, labels, sizes)
    return labels, sizes, rounds


def _present(values: Matrix, layout: Layout, labels: Whole, g: int) -> Whole:
    """Count this owner's rows of each group and, of columns with missing cells, those that are not: (g, 1 + c)."""
    rows = np.bincount(labels, minlength=g)
    marks = [values[:, block.start] for block in layout if block.kind is BlockKind.MISSING]
    gone = [np.bincount(labels, weights=mark, minlength=g) for mark in marks]
    return np.rint(np.column_stack([rows, *(rows - each for each in gone)])).astype(np.int64)


def group_statistics(session: Session, values: Matrix, own: Whole, sizes: Whole) -> Statistics:
    """Add up the statistics of the groups [BCG10, lines 12 and 13]: first the means, then products about them.

    Parameters
    ----------
    values : ndarray of shape (n_l, d)
        This owner's rows, group after group.
    own, sizes : ndarray of shape (g,)
        Rows of each group here, and over all owners.
    """
    g, d = len(own), values.shape[1]
    bound = 4.0 * float(sizes.sum())  # |sum of x_a x_b| <= n, for the squares of a column add up to n
    bits = fraction_bits(bound)
    first, _ = _sums(values, own, np.zeros((g, d)))
    sums = from_fixed_point(session.sum(to_fixed_point(first, bits), "group sums"), bits)
    mean = check_range(sums, -bound, bound, "group sums") / sizes[:, None]
    upper = np.triu_indices(d)
    _, second = _sums(values, own, mean)
    products = from_fixed_point(session.sum(to_fixed_point(second[:, *upper], bits), "group products"), bits)
    covariance = np.zeros((g, d, d))
    covariance[:, *upper] = check_range(products, -bound, bound, "group products") / sizes[:, None]
    below = np.tril_indices(d, -1)
    covariance[:, *below] = covariance.transpose(0, 2, 1)[:, *below]
    return Statistics(sizes, mean, covariance)


def _held_codes(session: Session, values: Matrix, layout: Layout, own: Whole, present: Whole) -> list[Matrix]:
    """Coordinates of the categories of each group, ascending, of columns that have very many: counts are added up.

    Parameters
    ----------
    values : ndarray of shape (n_l, d)
        This owner's rows, group after group.
    own : ndarray of shape (g,)
        Rows of each group here.
    present : ndarray of shape (g, 1 + c)
        Over all owners, as `_present` counts.
    """
    held, labels = [], np.repeat(np.arange(len(own)), own)
    marks = [block.start for block in layout if block.kind is BlockKind.MISSING]
    for block, mark in coded_blocks(layout):
        there = np.arange(len(values)) if mark is None else np.flatnonzero(values[:, mark] < 0.5)
        cells = labels[there] * block.categories + block.places(values)[there]
        counted = np.bincount(cells, minlength=len(own) * block.categories).astype(np.int64)
        counts = check_range(session.sum(counted, "group categories"), 0, int(present[:, 0].sum()), "group categories")
        counts = counts.reshape(len(own), block.categories)
        if not np.array_equal(counts.sum(axis=1), present[:, 0 if mark is None else 1 + marks.index(mark)]):
            raise PartyError("the owners sent other numbers of categories than of rows; start all parties again")
        places = np.tile(np.arange(block.categories), len(own))
        held.append(np.repeat(block.coordinates(places), counts.ravel()))
    return held


def _sums(values: Matrix, own: Whole, origin: Matrix) -> tuple[Matrix, Matrix]:
    """Sums and sums of products of this owner's groups about public points; 0 for absent groups."""
    g, d = origin.shape
    first, second = np.zeros((g, d)), np.zeros((g, d, d))
    present = np.flatnonzero(own)
    if len(present):
        labels = np.repeat(np.arange(len(present)), own[present])
        groups: Groups = summarize(values, labels, np.zeros(len(values), dtype=np.int64))
        _, first[present], second[present] = groups.to_sums(origin[present])
    return first, second


def _components(values: Matrix, own: Whole, statistics: Statistics, axes: Matrix, step: float) -> Whole:
    """Project this owner's rows on the axes of their groups, in whole steps from the mean [BCG10, line 16]."""
    places = np.zeros((len(values), axes.shape[2]), dtype=np.int64)
    ends = np.cumsum(own)
    for group in np.flatnonzero(own):
        rows = slice(int(ends[group] - own[group]), int(ends[group]))
        places[rows] = component_places(project(values[rows] - statistics.mean[group], axes[group]), step)
    return places


def secure_ranges(session: Session, places: Whole, own: Whole) -> Whole:
    """Ranges of the components; the minima and maxima of the owners stay hidden [BCG10, line 17].

    Maxima are negated, so that an owner without rows of a group contributes a number that is never the least.

    Parameters
    ----------
    places : ndarray of shape (n_l, m)
        Components of this owner's rows, group after group.
    own : ndarray of shape (g,)
        Rows of each group here.

    Returns
    -------
    ndarray of shape (g, m)
        In steps.
    """
    g, m = len(own), places.shape[1]
    never = 2**60  # component_places gives less than 2^53
    lowest = np.full((2, g, m), never, dtype=np.int64)
    present = np.flatnonzero(own)
    if len(present):
        starts = (np.cumsum(own) - own)[present]
        lowest[0, present] = np.minimum.reduceat(places, starts)
        lowest[1, present] = np.minimum.reduceat(-places, starts)
    shares = [
        session.share(lowest.reshape(1, -1) if owner == session.rank else None, owner, (1, 2 * g * m), "extremes")
        for owner in range(session.parties)
    ]
    low, _ = session.extremes(session.join(shares))
    both = session.add(session.part(low, slice(0, g * m)), session.part(low, slice(g * m, 2 * g * m)))
    ranges = session.open_to_all(session.scale(both, -1), "ranges")
    return check_range(ranges, 0, LONGEST, "ranges").reshape(g, m)


def _noised(session: Session, places: Whole, own: Whole, varying: Whole, scales: Matrix) -> Whole:
    """Add this owner's Laplace noise [BCG10, line 18]; components that do not vary are set to the mean."""
    group = np.repeat(np.arange(len(own)), own)
    noise = draw_noise("laplace", scales, own, session.private_rng("noise"))
    return np.where(varying[group] > 0, places, 0) + noise


def _broadcast_rows(session: Session, noised: Whole, own: Whole, sizes: Whole) -> Whole:
    """Noised components of all owners, group after group; within a group, each owner sends its own in random order.

    The order of an owner's table would disclose which row is which.
    """
    rng = session.private_rng("order of the told rows")
    group = np.repeat(np.arange(len(own)), own)
    shuffled = noised[np.lexsort((rng.permutation(len(group)), group))]
    counts, rows = [], []
    for owner in range(session.parties):
        mine = owner == session.rank
        counts.append(
            broadcast_numbers(
                session, own if mine else None, owner, "noised rows", own.shape, "<i8", within=sizes.sum()
            )
        )
        check_range(counts[-1], 0, sizes, "noised rows")
        shape = (int(counts[-1].sum()), noised.shape[1])
        rows.append(
            broadcast_numbers(session, shuffled if mine else None, owner, "noised rows", shape, "<i8", within=FARTHEST)
        )
    if not np.array_equal(np.sum(counts, axis=0), sizes):
        raise PartyError("the owners sent other numbers of rows than were grouped; start all parties again")
    belongs = np.concatenate([np.repeat(np.arange(len(sizes)), count) for count in counts])
    return np.concatenate(rows)[np.argsort(belongs, kind="stable")]
