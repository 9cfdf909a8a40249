"""Statistics, components and noise where several owners hold the columns [BCG10, alg. 2, lines 13 and 20 to 26]."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.core.groups import Groups
from sfumato.core.groups.discrete import coded_blocks, missing_counts, ranked_rows
from sfumato.core.records import CATEGORY_SCALE, Block, BlockKind, Layout
from sfumato.methods.perturb.laplace_pca import component_places, project
from sfumato.parties.arithmetic import MOST_BITS, check_range, fraction_bits, from_fixed_point, to_fixed_point
from sfumato.parties.channel import PartyError
from sfumato.parties.groupwise import (
    FARTHEST,
    LONGEST,
    Statistics,
    batches,
    broadcast_numbers,
    component_scales,
    draw_noise,
    shared_sum,
    varying_ranges,
)
from sfumato.parties.session import Session, SharedArray

__all__ = [
    "add_noise",
    "broadcast_codes",
    "component_ranges",
    "count_lone_values",
    "group_statistics",
    "grouped",
    "share_components",
    "with_fills",
]


_ROUNDED = 1.01  # by which what was rounded may exceed what bounds the exact numbers
_MOST_PLACES = 2**31  # categories of a column that are exchanged


@dataclass(frozen=True, eq=False, repr=False)
class GroupedColumns:
    """One owner's columns, rows group after group."""

    sizes: NDArray[np.int64]  # (g,)
    mean: NDArray[np.int64]  # (g, d_l): in whole steps of 2^-bits, as it is sent
    bits: int
    centred: NDArray[np.float64]  # (n, d_l): distances from the mean of the group


def grouped(session: Session, values: NDArray[np.float64], labels: NDArray[np.int64]) -> GroupedColumns:
    """Rows group after group, centred on the mean of their group."""
    session.phase("group statistics")
    order, sizes = np.argsort(labels, kind="stable"), np.bincount(labels).astype(np.int64)
    ordered = values[order]
    bits = fraction_bits(2.0 * np.sqrt(len(values)))  # no standardized number exceeds sqrt(n), nor does a mean of some
    sums = np.add.reduceat(ordered, np.concatenate([[0], np.cumsum(sizes)[:-1]]), axis=0)
    mean = to_fixed_point(sums / sizes[:, None], bits)
    return GroupedColumns(sizes, mean, bits, ordered - np.repeat(from_fixed_point(mean, bits), sizes, axis=0))


def group_statistics(session: Session, own: GroupedColumns, spans: tuple[slice, ...]) -> Statistics:
    """Means and covariances of each group over all columns [BCG10, line 13].

    Each owner tells those of its own columns; products across owners are formed among shares and opened as sums over
    each group. All are sums of products of the same whole numbers.

    Notes
    -----
    The squares of a coordinate sum up to n at most, over all records, and less in a group about its mean; so do
    products of two (Cauchy and Schwarz), and 2 n leaves room for rounding.
    """
    bits = fraction_bits(2.0 * len(own.centred), products=2)
    centred = to_fixed_point(own.centred, bits)
    g, d = len(own.sizes), spans[-1].stop
    mean, scatter = np.empty((g, d), dtype=np.int64), np.empty((g, d, d), dtype=np.int64)
    squares = _own_products(centred, own.sizes)
    for owner, span in enumerate(spans):
        wide = span.stop - span.start
        upper = np.triu_indices(wide)
        own_numbers = np.hstack([own.mean, squares[:, *upper]]) if owner == session.rank else None
        shape = (g, wide + len(upper[0]))
        numbers = broadcast_numbers(
            session, own_numbers, owner, "statistics of own columns", shape, "<i8", within=2**MOST_BITS
        )
        _check_own_statistics(session.names[owner], numbers, own, bits, wide)
        mean[:, span] = numbers[:, :wide]
        block = np.empty((g, wide, wide), dtype=np.int64)
        block[:, *upper] = block[:, upper[1], upper[0]] = numbers[:, wide:]
        scatter[:, span, span] = block
    _open_products(session, centred, own.sizes, spans, scatter)
    deviations = np.sqrt(np.einsum("gjj->gj", scatter).astype(np.float64))
    farthest = deviations[:, :, None] * deviations[:, None, :] * _ROUNDED + own.sizes[:, None, None] * 2.0**bits
    check_range(scatter, -farthest, farthest, "covariances across owners")
    return Statistics(
        own.sizes, from_fixed_point(mean, own.bits), from_fixed_point(scatter, 2 * bits) / own.sizes[:, None, None]
    )


def _check_own_statistics(name: str, numbers: NDArray[np.int64], own: GroupedColumns, bits: int, wide: int) -> None:
    """Refuse statistics that no standardized columns have, in the name of their owner.

    The squares of a column add up to n over all records: in each group those about its mean and, size times, that of
    the mean.
    """
    label, n = "statistics of own columns", float(own.sizes.sum())
    mean = from_fixed_point(numbers[:, :wide], own.bits)
    diagonal = np.cumsum(np.arange(wide, 0, -1)) - np.arange(wide, 0, -1)  # of the upper triangle, row after row
    squares = from_fixed_point(numbers[:, wide:][:, diagonal], 2 * bits)
    check_range(squares, 0.0, _ROUNDED * n, label, sender=name)
    total = (squares + own.sizes[:, None] * mean**2).sum(axis=0)
    check_range(total, 0.0, _ROUNDED * n, label, sender=name)
    upper = np.triu_indices(wide)
    most = np.sqrt(squares[:, upper[0]] * squares[:, upper[1]]) * _ROUNDED + n * 2.0**-bits
    check_range(np.abs(from_fixed_point(numbers[:, wide:], 2 * bits)), 0.0, most, label, sender=name)


def share_components(session: Session, own: GroupedColumns, axes: NDArray[np.float64], step: float) -> SharedArray:
    """Project own columns, bring them to the grid, and add the summands of all owners as shares [lines 21 and 22].

    A component is at most sqrt(n d) in size, about 2^32 steps for a hundred columns of 100,000 rows.

    Parameters
    ----------
    axes : ndarray of shape (g, d_l, m)
        The rows of the transform matrices that belong to own columns.
    step : float
        Of the grid.
    """
    projected = np.empty((len(own.centred), axes.shape[2]))
    ends = np.cumsum(own.sizes)
    for group, (size, end) in enumerate(zip(own.sizes.tolist(), ends.tolist(), strict=True)):
        projected[end - size : end] = project(own.centred[end - size : end], axes[group])
    return shared_sum(session, component_places(projected, step), "components")


def component_ranges(session: Session, components: SharedArray, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Range of each component of each group, in steps; 0 for components that do not vary [BCG10, line 23].

    Only the difference is opened, neither end of it.
    """
    session.phase("ranges")
    m = components.shape[1]
    parts, groups = [], []
    for batch in batches(sizes, m):
        c, s = batch.rows.shape
        rows = session.arrange(session.part(components, batch.rows.ravel()), (c, s, m), (1, 0, 2))
        low, high = session.extremes(session.arrange(rows, (s, c * m)))
        parts.append(session.subtract(high, low))
        groups.append(batch.groups)
    opened = session.open_to_all(session.join(parts), "ranges")
    ranges = np.empty((len(sizes), m), dtype=np.int64)
    ranges[np.concatenate(groups)] = check_range(opened, 0, LONGEST, "ranges").reshape(-1, m)
    return varying_ranges(ranges, session.parties)


def add_noise(
    session: Session,
    components: SharedArray,
    varying: NDArray[np.int64],
    sizes: NDArray[np.int64],
    b: float,
    noise: str,
) -> NDArray[np.int64]:
    """Add the noise that the first and the last party draw, and open the sum [BCG10, lines 24 and 25].

    Parameters
    ----------
    components : SharedArray of shape (n, m)
    varying : ndarray of shape (g, m)
        Ranges of the components. What does not vary is not opened at all: 0 stands for it.
    sizes : ndarray of shape (g,)
    b : float
        Scale of the noise, in ranges.
    noise : {"each", "split"}
        Two whole discrete Laplace draws, or two geometric halves to be subtracted, whose difference is one.
    """
    session.phase("noise")
    scales = component_scales(varying, b)
    first, last = 0, session.parties - 1
    drawn = None
    if session.rank in (first, last):
        law = "geometric" if noise == "split" else "laplace"
        drawn = draw_noise(law, scales, sizes, session.private_rng("noise on components"))
    here, there = (
        session.share(drawn if end == session.rank else None, end, components.shape, "noise") for end in (first, last)
    )
    shown = np.repeat((varying > 0).astype(np.int64), sizes, axis=0)
    hidden = session.add(session.scale(components, shown), here)
    total = session.subtract(hidden, there) if noise == "split" else session.add(hidden, there)
    opened = session.open_to_all(total, "noised components")
    return check_range(opened, -FARTHEST, FARTHEST, "noised components")


def with_fills(layout: Layout, statistics: Statistics) -> Layout:
    """Coordinates of the missing cells of each column: the mean over all groups, which they pull nowhere."""
    total = np.zeros(statistics.mean.shape[1])
    for size, mean in zip(statistics.sizes.tolist(), statistics.mean, strict=True):  # in one order on every machine
        total += size * mean
    overall = total / float(statistics.sizes.sum())
    fills: dict[BlockKind, tuple[float, ...]] = {
        BlockKind.NUMBER: (0.0,),
        BlockKind.CODE: (0.0,),
        BlockKind.MISSING: (),
    }
    return tuple(
        dataclasses.replace(block, fill=fills.get(block.kind, tuple(overall[block.where].tolist()))) for block in layout
    )


def broadcast_codes(
    session: Session,
    own: Layout,
    values: NDArray[np.float64],
    labels: NDArray[np.int64],
    whole: Layout,
    spans: tuple[slice, ...],
    statistics: Statistics,
) -> list[NDArray[np.float64]]:
    """Codes of the categories of each group, ascending, for columns of very many; sent by their owners.

    Parameters
    ----------
    own : tuple of Block
        Of this owner's columns.
    values : ndarray of shape (n, d_l)
    labels : ndarray of shape (n,)
        Group of each record.
    whole, spans, statistics
        What all parties know of the columns of all owners: their blocks, whose they are, and their groups.
    """
    mine = {block.column: (block, mark) for block, mark in coded_blocks(own)}
    held = []
    for block, mark in coded_blocks(whole):
        owner = next(rank for rank, span in enumerate(spans) if span.start <= block.start < span.stop)
        own_numbers, present = None, statistics.sizes
        if mark is not None:
            indicator = Block(block.column, BlockKind.MISSING, mark, mark + 1)
            present = present - missing_counts(_counts_and_means(statistics), indicator)
        if owner == session.rank:
            here, gone = mine[block.column]
            own_numbers = here.places(values)[ranked_rows(values, labels, here, gone)]
        label, room = "categories of own columns", (int(present.sum()),)
        places = broadcast_numbers(session, own_numbers, owner, label, room, "<i8", within=_MOST_PLACES)
        ends = np.cumsum(present)
        if any((np.diff(places[end - size : end]) < 0).any() for end, size in zip(ends, present, strict=True)):
            raise PartyError("an owner sent categories out of order; start all parties again")
        held.append(places.astype(np.float64))
    return held


def _counts_and_means(statistics: Statistics) -> Groups:
    g, d = statistics.mean.shape
    shell = np.broadcast_to(np.zeros(1), (g, d, d))
    return Groups(statistics.sizes, statistics.mean, shell, np.zeros(g), np.zeros(g, dtype=np.int64))


def count_lone_values(layout: Layout, statistics: Statistics) -> int:
    """Count how often one record of a group alone has a category, a missing cell, or a cell that is not missing.

    The products of such a mark with all columns are the cells of that record, and all parties see them.

    Parameters
    ----------
    layout : tuple of Block
        Of all columns, with the coordinates of missing cells.
    """
    sizes, sums = statistics.sizes, statistics.mean * statistics.sizes[:, None]
    missing = {block.column: np.rint(sums[:, block.start]) for block in layout if block.kind is BlockKind.MISSING}
    lone = sum(int(((gone == 1) | (gone == sizes - 1)).sum()) for gone in missing.values())
    for block in layout:
        if block.kind is BlockKind.CATEGORY:
            filled = missing.get(block.column, np.zeros(len(sizes)))[:, None] * np.asarray(block.fill)
            lone += int((np.rint((sums[:, block.where] - filled) / CATEGORY_SCALE) == 1).sum())
    return lone


def _own_products(centred: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sum up the products of own columns over each group."""
    products = np.empty((len(sizes), centred.shape[1], centred.shape[1]), dtype=np.int64)
    ends = np.cumsum(sizes)
    for group, (size, end) in enumerate(zip(sizes.tolist(), ends.tolist(), strict=True)):
        some = centred[end - size : end]
        products[group] = some.T @ some
    return products


def _open_products(
    session: Session,
    centred: NDArray[np.int64],
    sizes: NDArray[np.int64],
    spans: tuple[slice, ...],
    scatter: NDArray[np.int64],
) -> None:
    """Form the sums of products of each owner's columns with those of all later ones, and open them into scatter."""
    parts, blocks = [], []
    for batch in batches(sizes, spans[-1].stop):
        c, s = batch.rows.shape
        own = np.where(batch.real, centred.T[:, batch.rows], 0)  # (d_l, c, s)
        shared = [
            session.share(
                own if owner == session.rank else None, owner, (span.stop - span.start, c, s), "columns of one owner"
            )
            for owner, span in enumerate(spans)
        ]
        for owner, span in enumerate(spans[:-1]):
            left, right = (
                session.arrange(columns, columns.shape, (1, 2, 0))
                for columns in (shared[owner], session.join(shared[owner + 1 :]))
            )
            products = session.cross(left, right)
            parts.append(session.arrange(products, (int(np.prod(products.shape)),)))
            blocks.append((batch.groups, span, products.shape))
    opened = session.open_to_all(session.join(parts), "covariances across owners")
    check_range(opened, -(2**MOST_BITS), 2**MOST_BITS, "covariances across owners")
    place = 0
    for groups, span, shape in blocks:
        size = int(np.prod(shape))
        block = opened[place : place + size].reshape(shape)
        scatter[groups, span, span.stop :] = block
        scatter[groups, span.stop :, span] = block.transpose(0, 2, 1)
        place += size
