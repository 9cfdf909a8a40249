"""Steps that both protocols share: K-means, filling of groups, sizes, axes, noise, released rows, and batches.

Every value that decides a released number is either sent by one party or computed here without a library for linear
algebra: two machines may round a product of matrices differently, and all parties must have the same table to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.core.distributions.noise import DiscreteLaplace, draw_geometric, draw_laplace
from sfumato.core.groups import Groups, check_feasible
from sfumato.core.groups.discrete import as_numbers, assign_codes, coded_blocks, discretize_noised
from sfumato.core.groups.generate import generate
from sfumato.core.records import BlockKind, Layout, Records, width
from sfumato.core.threads import one_blas_thread
from sfumato.methods.condense import Condensation
from sfumato.methods.perturb.laplace_pca import (
    LaplacePCA,
    levels_to_reach,
    most_components,
    noise_scales,
    principal_axes,
)
from sfumato.parties.arithmetic import check_range
from sfumato.parties.channel import PartyError
from sfumato.parties.plan import DRAWN_ROWS, JointResult, SeenGroups
from sfumato.parties.session import Session, SharedArray
from sfumato.tables.contact import MIN_EVIDENCE

__all__ = [
    "FARTHEST",
    "LONGEST",
    "MOST_CELLS",
    "Batch",
    "Centres",
    "Statistics",
    "batches",
    "broadcast_axes",
    "broadcast_numbers",
    "check_component_ranges",
    "cluster_rows",
    "component_scales",
    "draw_noise",
    "draw_rows",
    "fill_groups",
    "group_sizes",
    "next_to_fill",
    "padded",
    "padded_choice",
    "release_rows",
    "row_blocks",
    "shared_sum",
    "tail_persons",
    "varying_ranges",
]

LONGEST = 2**54
"""Steps that a component reaches at most from its lowest to its highest record: each place lies within 2^53."""

_ROUNDING = 0.1  # by which a range may exceed what its group allows: statistics and components are rounded

FARTHEST = 2**62
"""Steps from the mean at which a component with its noise can lie."""

_UNIT = 1.0 + 2.0**-20  # no coordinate of an axis is larger than its length, which is 1

# ------------------------------------------------------------------------------------------------------------- sizes

MOST_CELLS = 2**20
"""Numbers that go into one call of the engine, about: it needs some thousand bytes for each."""

_FEW_ROWS = 4096
_FEW_CELLS = 2**17  # so little work that a second shape costs more to prepare than padding to the first


def group_sizes(mechanism: LaplacePCA | Condensation, n: int) -> tuple[int, int]:
    """Level that groups must reach and the number of groups; refuses a level that n records cannot reach.

    Examples
    --------
    >>> group_sizes(LaplacePCA(k=10), 105)
    (10, 10)
    """
    nothing = np.zeros(n, dtype=np.int64)
    if isinstance(mechanism, Condensation):
        levels, groups = np.full(n, mechanism.k, dtype=np.int64), None
    else:
        levels = levels_to_reach(mechanism, Records(np.empty((n, 0)), (), nothing, nothing.copy()))
        groups = mechanism.groups
    check_feasible(levels, nothing)
    level = int(levels.max())
    return level, groups or n // level


def tail_persons(level: int) -> int:
    """Persons that a cut-off of a tail is computed from: those of a group, 10 at most.

    Groups of a joint run are large because noise grows with their ranges; as many persons at either end would be a
    large part of a column.
    """
    return min(level, MIN_EVIDENCE)


def next_to_fill(counts: NDArray[np.int64], final: NDArray[np.bool_], size: int) -> int | None:
    """Smallest cluster that is not final, if it lacks records; of equal ones the first.

    The order of lines 5 and 6 of [BCG10, alg. 2] with errata BCG10.4.

    Examples
    --------
    >>> next_to_fill(np.array([5, 3, 2]), np.array([False, False, True]), 4)
    1
    """
    left = np.flatnonzero(~final)
    if not len(left):
        return None
    smallest = int(left[np.argmin(counts[left])])
    return smallest if counts[smallest] < size else None


# ------------------------------------------------------------------------------------------------- telling numbers


def broadcast_numbers(
    session: Session,
    values: NDArray[Any] | None,
    owner: int,
    label: str,
    shape: tuple[int, ...],
    kind: str,
    *,
    within: float,
) -> NDArray[Any]:
    """Send an array of a public shape to all parties; its numbers are at most ``within`` in absolute value.

    ``kind`` is ``"<i8"`` or ``"<f8"``.
    """
    count = int(np.prod(shape, dtype=np.int64))
    payload = None if values is None else np.ascontiguousarray(values, dtype=kind).tobytes()
    received = session.broadcast(payload, owner, label, count)
    if len(received) != 8 * count:
        raise PartyError(
            f"party {session.names[owner]!r} sent {len(received)} bytes instead of {8 * count}; start all parties again"
        )
    numbers = np.frombuffer(received, dtype=kind).reshape(shape).astype(kind[1:])
    return check_range(numbers, -within, within, label, sender=session.names[owner])


def shared_sum(session: Session, own: NDArray[np.int64], label: str) -> SharedArray:
    """Sum over all owners, as shares of the first and the last party."""
    return session.add(
        *(
            session.share(own if owner == session.rank else None, owner, own.shape, label)
            for owner in range(session.parties)
        )
    )


# ------------------------------------------------------------------------------------------------- axes and noise


@dataclass(frozen=True, eq=False, repr=False)
class Statistics:
    """Statistics of the groups, known to all: sizes (g,), means (g, d), covariances (g, d, d) with divisor n."""

    sizes: NDArray[np.int64]
    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]

    def __repr__(self) -> str:
        return f"Statistics(groups={len(self.sizes)})"


def broadcast_axes(session: Session, statistics: Statistics, layout: Layout, label: str) -> NDArray[np.float64]:
    """Principal axes of all groups, computed by the first party and sent to all [BCG10, line 14].

    Every party could compute them from the same statistics, but the last bits differ between machines.

    Returns
    -------
    ndarray of shape (g, d, m)
        The axes in which a group can vary as columns, the longest first; see `most_components`.
    """
    components = most_components(layout)
    shape = (len(statistics.sizes), width(layout), components)
    axes = None
    if session.rank == 0:
        with one_blas_thread():  # many small matrices: threads only cost
            axes = np.stack([_axes(covariance, layout) for covariance in statistics.covariance])[:, :, :components]
    return broadcast_numbers(session, axes, 0, label, shape, "<f8", within=_UNIT)


def _axes(covariance: NDArray[np.float64], layout: Layout) -> NDArray[np.float64]:
    """All axes, those last that cannot vary: the categories of a column sum to one.

    Fixed point blurs the covariance a little, so these directions are put in by hand: as eigenvectors of a negative
    eigenvalue, which none of a covariance comes near.
    """
    fixed = [block for block in layout if block.kind is BlockKind.CATEGORY]
    still = np.zeros((len(covariance), len(fixed)))
    for place, block in enumerate(fixed):
        still[block.where, place] = 1.0 / np.sqrt(block.stop - block.start)
    free = np.eye(len(covariance)) - still @ still.T
    return principal_axes(free @ covariance @ free - (1.0 + np.trace(covariance)) * (still @ still.T))


def check_component_ranges(
    ranges: NDArray[np.int64], statistics: Statistics, axes: NDArray[np.float64], step: float
) -> NDArray[np.int64]:
    """Ranges of the components in steps, if the statistics of their groups allow them.

    The squares of a component add up to n times its variance, which follows from the covariance that all parties know.
    So no record lies farther than sqrt(n) deviations from the mean; a tenth of a unit is left for rounding.
    """
    spread = np.sqrt(np.maximum(np.einsum("gdm,gde,gem->gm", axes, statistics.covariance, axes), 0.0))
    longest = 2.02 * np.sqrt(statistics.sizes)[:, None] * spread + _ROUNDING
    return check_range(ranges, 0, longest / step, "ranges")


def varying_ranges(ranges: NDArray[np.int64], summands: int) -> NDArray[np.int64]:
    """Ranges, 0 for components that do not vary: rounding alone can add one step for each rounded summand."""
    return np.where(ranges > summands, ranges, 0)


def component_scales(varying: NDArray[np.int64], b: float) -> NDArray[np.float64]:
    """Scale of the noise on each component of each group, in steps [BCG10, lines 17 and 23]."""
    scales = noise_scales(varying, b)
    for scale in np.unique(scales[scales > 0]).tolist():
        DiscreteLaplace(scale)  # refuses a scale that is out of proportion
    return scales


def draw_noise(
    law: str, scales: NDArray[np.float64], sizes: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw noise for rows that stand group after group, in whole steps [BCG10, lines 18 and 24].

    Parameters
    ----------
    law : {"geometric", "laplace"}
        One half of the noise, of which two are subtracted, or all of it.
    scales : ndarray of shape (g, m)
    sizes : ndarray of shape (g,)
    """
    draw = draw_geometric if law == "geometric" else draw_laplace
    noise = np.zeros((int(sizes.sum()), scales.shape[1]), dtype=np.int64)
    ends = np.cumsum(sizes)
    for group, component in zip(*np.nonzero(scales), strict=True):
        size, end = int(sizes[group]), int(ends[group])
        noise[end - size : end, component] = draw(float(scales[group, component]), size, rng)
    return noise


# --------------------------------------------------------------------------------------------------- released rows


def release_rows(
    session: Session,
    noised: NDArray[np.float64],
    axes: NDArray[np.float64],
    varying: NDArray[np.int64],
    statistics: Statistics,
    layout: Layout,
    held: Sequence[NDArray[np.float64]],
) -> JointResult:
    """Map noised components back to the columns, settle categories and missing cells, and shuffle [BCG10, line 26].

    Parameters
    ----------
    session : Session
        For the public randomness of the order.
    noised : ndarray of shape (n, m)
        Components of the rows' distances from the mean of their group, with noise; group after group.
    axes : ndarray of shape (g, d, m)
    varying : ndarray of shape (g, m)
        Ranges; 0 for components that are published as the group's mean.
    layout : tuple of Block
        Of all columns.
    held : sequence of ndarray
        Of each column of very many categories the coordinates of those of each group, group after group, ascending.
    """
    sizes = statistics.sizes
    group = np.repeat(np.arange(len(sizes)), sizes)
    places = np.where(varying[group] > 0, noised, 0.0)
    values = statistics.mean[group]
    for component in range(axes.shape[2]):  # sum after sum, in one order on every machine
        values += places[:, component, None] * axes[group, :, component]
    values = discretize_noised(values, sizes, statistics.mean, as_numbers(layout))
    for (block, mark), coordinates in zip(coded_blocks(layout), held, strict=True):
        assign_codes(values, group, block, mark, coordinates)
    return _shuffled(session, values, layout, statistics, int((varying > 0).sum(axis=1).max()))


def draw_rows(
    session: Session,
    statistics: Statistics,
    layout: Layout,
    held: Sequence[NDArray[np.float64]],
    spans: tuple[slice, ...] = (),
) -> JointResult:
    """Draw as many rows as each group has records from its statistics, and shuffle [AY05, sec. 2].

    The first party draws them with randomness that all have, and sends them: machines may round differently. The others
    check that they lie where rows of these statistics can.

    Parameters
    ----------
    held : sequence of ndarray
        As in `release_rows`.
    spans : tuple of slice
        Coordinates of each owner of columns.
    """
    session.phase("drawing rows")
    sizes, (g, d) = statistics.sizes, statistics.mean.shape
    scatter, nothing = statistics.covariance * sizes[:, None, None], np.zeros(g, dtype=np.int64)
    groups = Groups(sizes, statistics.mean, scatter, nothing.astype(np.float64), nothing)
    labels = np.repeat(np.arange(g), sizes)
    rng, drawn = session.public_rng(DRAWN_ROWS.label), None
    if session.rank == 0:
        drawn = generate(groups, as_numbers(layout), rng)
    bound = 4.0 * max(1.0, float(sizes.sum()))
    values = broadcast_numbers(session, drawn, 0, DRAWN_ROWS.label, (int(sizes.sum()), d), "<f8", within=bound)
    _check_drawn(session, values, labels, statistics, layout)
    for (block, mark), coordinates in zip(coded_blocks(layout), held, strict=True):
        assign_codes(values, labels, block, mark, coordinates)
    result = _shuffled(session, values, layout, statistics, 0)
    return replace(result, seen_groups=SeenGroups(statistics, np.zeros((g, d, 0)), np.zeros((g, 0)), spans))


def _check_drawn(
    session: Session, values: NDArray[np.float64], labels: NDArray[np.int64], statistics: Statistics, layout: Layout
) -> None:
    """Refuse drawn numbers farther from the mean of their group than uniform draws along its axes can be.

    Along axis k a row is sqrt(3 lambda_k) from the mean at most, so that coordinate j is within sqrt(3 d S_jj).
    """
    marked = {block.column for block in layout if block.kind is BlockKind.MISSING}
    numbers = [block.start for block in layout if block.kind is BlockKind.NUMBER and block.column not in marked]
    spread = np.einsum("gjj->gj", statistics.covariance)[:, numbers]
    farthest = np.sqrt(3.0 * values.shape[1] * np.maximum(spread, 0.0)) + _ROUNDING
    away = np.abs(values[:, numbers] - statistics.mean[labels][:, numbers])
    check_range(away, 0.0, farthest[labels], DRAWN_ROWS.label, sender=session.names[0])


def _shuffled(
    session: Session, values: NDArray[np.float64], layout: Layout, statistics: Statistics, noised: int
) -> JointResult:
    group = np.repeat(np.arange(len(statistics.sizes)), statistics.sizes)
    order = session.public_rng("order of the released rows").permutation(len(group))
    return JointResult(values[order], layout, group[order], statistics.sizes, noised)


def padded(count: int) -> int:
    """Size rounded up to one of four in each doubling, so at most by a quarter.

    Examples
    --------
    >>> [padded(count) for count in (1, 7, 9, 1000, 1030)]
    [1, 7, 10, 1024, 1280]
    """
    step = max(1, 1 << max(0, (count - 1).bit_length() - 3))
    return -(-count // step) * step


def padded_choice(count: int) -> int:
    """Number of candidates rounded up: to a power of two if compiling for another size costs more than padding.

    Examples
    --------
    >>> [padded_choice(count) for count in (7, 600, 1030, 5000)]
    [8, 1024, 2048, 5120]
    """
    power = 1 << max(0, (count - 1).bit_length())
    return power if power <= _FEW_ROWS else padded(count)


def row_blocks(rows: int, wide: int) -> tuple[int, int]:
    """Split rows so that a block has about `MOST_CELLS` numbers at most; gives how many blocks, and rows of each.

    All blocks are of one size; the last may reach a little beyond the rows.

    Examples
    --------
    >>> row_blocks(100_000, 8), row_blocks(100_000, 100)
    ((1, 100000), (10, 10000))
    """
    blocks = max(1, -(-rows * wide // MOST_CELLS))
    size = -(-rows // blocks)
    return -(-rows // size), size


@dataclass(frozen=True, eq=False)
class Batch:
    """Some groups, padded to one number of rows."""

    groups: NDArray[np.int64]  # (c,)
    # (c, s): places of their rows where rows stand group after group; the first of a group stands again where rows lack
    rows: NDArray[np.int64]
    real: NDArray[np.bool_]  # (c, s): which rows are not such repetitions


def batches(sizes: NDArray[np.int64], wide: int) -> Iterator[Batch]:
    """Collect groups of about equal size, so that the engine sees few shapes and little padding.

    Parameters
    ----------
    sizes : ndarray of shape (g,)
    wide : int
        Numbers of each row.
    """
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    largest = int(sizes.max())
    together = len(sizes) * largest * wide <= _FEW_CELLS
    lengths = np.array([largest if together else min(largest, padded(size)) for size in sizes.tolist()])
    for rows in np.unique(lengths).tolist():
        same = np.flatnonzero(lengths == rows)
        for groups in np.array_split(same, max(1, -(-len(same) * rows * wide // MOST_CELLS))):
            if len(groups):
                place = np.arange(rows)
                real = place < sizes[groups, None]
                yield Batch(groups, starts[groups, None] + np.where(real, place, 0), real)


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
