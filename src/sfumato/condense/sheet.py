"""All distances of a block of arrivals at once, where no index helps: one matrix product, kept true as centroids move.

In many dimensions without clusters every centroid is about as far as every other, and no box can be left out. Then the
squared distances of a block of records to all centroids are written on a sheet by the BLAS. When a centroid moves or is
new, its column is computed anew for the records still to come. A matrix product rounds as it likes, so what lies
within a margin of the smallest number on the sheet is computed again as brute force does it: the same answer exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.compiled import inner
from sfumato.condense.slots import Store
from sfumato.threads import one_blas_thread

__all__ = ["BLOCK", "Sheet", "blank_sheet", "closest_on_sheet", "numbers_on", "rewrite_column", "write_sheet"]

BLOCK = 64
"""Records on a sheet."""

_LANES = 128  # columns that are compared side by side
EPSILON = float(np.finfo(np.float64).eps)


class Sheet(NamedTuple):
    """Squared distances less ``own``, the squared length of each record, about a common origin.

    Row r of ``near`` is of record ``first[0] + r``; columns without a group are infinite. ``reach[r]`` bounds what any
    rounding error is a share of. ``terms`` holds -2 c and |c|^2 of each centroid c about ``origin``, for the next one.
    """

    near: NDArray[np.float64]
    own: NDArray[np.float64]
    reach: NDArray[np.float64]
    first: NDArray[np.int64]
    lanes: NDArray[np.float64]
    terms: NDArray[np.float64]
    origin: NDArray[np.float64]


def blank_sheet() -> Sheet:
    """Give a sheet with no records on it."""
    none = np.empty(0)
    return Sheet(np.empty((0, 0)), none, none, np.zeros(1, dtype=np.int64), np.empty(_LANES), np.empty((0, 0)), none)


def write_sheet(
    before: Sheet,
    store: Store,
    groups: int,
    values: NDArray[np.float64],
    first: int,
    last: int,
    paper: NDArray[np.float64],
) -> Sheet:
    """Write the distances of records ``first`` to ``last`` to the centroids of all groups, with room for new ones.

    ``before`` is the sheet of the records just before, whose terms are still true, or a blank one; ``paper`` is memory
    for at least ``numbers_on`` numbers.
    """
    d = values.shape[1]
    origin, terms = before.origin, before.terms
    if len(terms) != len(store.ids):
        origin = store.mean[:groups].mean(axis=0)  # near the data, so that little cancels
        terms = np.empty((len(store.ids), d + 1))
        centred = store.mean[:groups] - origin
        np.multiply(centred, -2.0, out=terms[:groups, :d])
        np.einsum("ij,ij->i", centred, centred, out=terms[:groups, d])
    records = np.ones((last - first, d + 1))
    np.subtract(values[first:last], origin, out=records[:, :d])
    own = np.einsum("ij,ij->i", records[:, :d], records[:, :d])
    columns = _columns(groups, last - first)
    near = paper[: (last - first) * columns].reshape(last - first, columns)
    with one_blas_thread():  # small products: threads mostly wait for one another
        np.matmul(records, terms[:groups].T, out=near[:, :groups])
    near[:, groups:] = np.inf
    reach = (np.sqrt(own) + np.sqrt(terms[:groups, d].max())) ** 2
    return Sheet(near, own, reach, np.array([first]), np.empty(_LANES), terms, origin)


def numbers_on(groups: int, records: int) -> int:
    """Give how many numbers a sheet holds."""
    return records * _columns(groups, records)


def _columns(groups: int, records: int) -> int:
    return -(-(groups + records) // _LANES) * _LANES


@inner
def closest_on_sheet(sheet: Sheet, store: Store, i: int, x: NDArray[np.float64], level: int) -> int:
    """Give the slot of the closest centroid whose group has at least level - 1 records, or -1; the lowest id of equals.

    Where the closest of all is too small for the level, the row is gone through once more.
    """
    near, lanes, count, ids, mean = sheet.near, sheet.lanes, store.count, store.ids, store.mean
    row = i - sheet.first[0]
    own, reach = sheet.own[row], sheet.reach[row]
    best = _best_within(near, row, _least(near, row, lanes), own, reach, lanes, count, ids, mean, x, level)
    if best >= 0:
        return best
    least = np.inf  # the closest group is too small: look at those that are not
    for slot in range(near.shape[1]):
        if near[row, slot] < least and count[slot] >= level - 1:
            least = near[row, slot]
    return _best_within(near, row, least, own, reach, lanes, count, ids, mean, x, level)


@inner
def _least(near: NDArray[np.float64], row: int, lanes: NDArray[np.float64]) -> float:
    """Give the smallest number of a row, and in ``lanes[j]`` that of columns j, j + 128, j + 256 and so on."""
    width = lanes.shape[0]  # not a constant, which lets the compiler take several at a time
    for j in range(width):
        lanes[j] = np.inf
    for base in range(0, near.shape[1], width):
        for j in range(width):
            own, so_far = near[row, base + j], lanes[j]
            lanes[j] = own if own < so_far else so_far
    least = np.inf
    for j in range(width):
        least = min(least, lanes[j])
    return least


@inner
def _best_within(
    near: NDArray[np.float64],
    row: int,
    least: float,
    own: float,
    reach: float,
    lanes: NDArray[np.float64],
    count: NDArray[np.int64],
    ids: NDArray[np.int64],
    mean: NDArray[np.float64],
    x: NDArray[np.float64],
    level: int,
) -> int:
    """Compute the distances near the least again and give the slot of the smallest; -1 where the least is of no use."""
    if least == np.inf:
        return -1
    d, width, sure, best, nearest = x.shape[0], lanes.shape[0], False, -1, np.inf
    error = 4.0 * (d + 8) * EPSILON * (reach + max(least + own, 0.0))
    limit = least + 2.0 * error
    for lane in range(width):
        if lanes[lane] > limit:
            continue
        for slot in range(lane, near.shape[1], width):
            if near[row, slot] > limit or count[slot] < level - 1:
                continue
            sure = sure or near[row, slot] == least
            apart = 0.0
            for t in range(d):
                gap = x[t] - mean[slot, t]
                apart += gap * gap
            if apart < nearest or (apart == nearest and ids[slot] < ids[best]):
                best, nearest = slot, apart
    return best if sure else -1


@inner
def rewrite_column(sheet: Sheet, store: Store, slot: int, values: NDArray[np.float64], following: int) -> None:
    """Compute a column anew for the records from ``following`` on, after its centroid has moved, and its terms."""
    near, mean, own, first = sheet.near, store.mean, sheet.own, sheet.first[0]
    d, square = mean.shape[1], 0.0
    for t in range(d):
        centred = mean[slot, t] - sheet.origin[t]
        sheet.terms[slot, t] = -2.0 * centred
        square += centred * centred
    sheet.terms[slot, d] = square
    for row in range(following - first, near.shape[0]):
        apart = 0.0
        for t in range(d):
            gap = values[first + row, t] - mean[slot, t]
            apart += gap * gap
        near[row, slot] = apart - own[row]
