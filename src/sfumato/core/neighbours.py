"""Exact nearest-neighbour search in bounded memory, with boxes of rows that are pruned by distance.

scipy's cKDTree takes two to six times the CPU beyond 12 dimensions, and of equally near rows it gives any.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.core.compiled import compiled, fixed, inner

__all__ = ["BOX_DIMENSIONS", "nearest", "nearest_persons", "nearest_without_each_column"]

BOX_DIMENSIONS = 12
"""Dimensions up to which a search skips most boxes; with more, attacks on large tables try fewer people."""

_BOX = 256  # most rows in a box
_LOOK = 64  # rows of a part by which the coordinate is chosen that it is halved along
_FIRST = 8  # nearest boxes that a query opens in turn
_SAMPLE = 4096  # rows by which coordinates are ordered
_STEP = 16  # coordinates after which a box is left whose rows are all too far already
_PART = 64  # queries that one thread looks up at a time
_CHUNK = 512  # rows whose distances are held at a time, so that they stay in the fastest memory
_KEEP = 3  # tables whose boxes are kept: original, released and held out; each takes as much memory as its rows
_Matrix = NDArray[np.float64]
_Places = NDArray[np.int64]


class _Boxes(NamedTuple):
    """Rows grouped in boxes.

    ``cells[b]`` holds the rows of box b as columns, the widest coordinate first, and ``places[b]`` where they stand, in
    rising order; ``sizes[b]`` is how many there are. ``low`` and ``high`` of shape (d, boxes) are the ends of each box,
    ``widest`` is the order of the coordinates.
    """

    cells: NDArray[np.float64]
    places: _Places
    low: _Matrix
    high: _Matrix
    sizes: _Places
    widest: _Places


_kept: list[tuple[weakref.ref[_Matrix], _Boxes]] = []  # goes with the rows, the oldest first


def nearest(
    rows: _Matrix, queries: _Matrix, count: int = 1, *, own: NDArray[np.int64] | None = None
) -> tuple[_Places, _Matrix]:
    """Nearest rows of each query, exactly and without a full distance matrix.

    Rows that nobody may write to, as those of a study, are put into boxes once for all searches among them. ``count``
    is at most the number of rows, less one with ``own``: the place of each query among the rows, where it is one of
    them and not its own neighbour. A twin is. Of shape (q, count) come out first the places, then Euclidean distances
    in rising order; rows at the same distance in theirs.

    Examples
    --------
    >>> rows = np.array([[0.0], [1.0], [5.0]])
    >>> nearest(rows, rows, own=np.arange(3))[0].ravel().tolist()
    [1, 0, 1]
    """
    wanted = count if own is None else count + 1
    if not 0 < wanted <= len(rows):
        raise ValueError(f"{wanted} neighbours were asked of {len(rows)} rows")
    places = _search(_boxes_of(rows), queries, wanted)
    if own is not None:
        places = _without_self(places, own)
    return _by_distance(rows, queries, places)


def nearest_persons(
    rows: _Matrix,
    queries: _Matrix,
    persons: _Places | None,
    count: int = 1,
    *,
    own: NDArray[np.int64] | None = None,
) -> tuple[_Places, _Matrix]:
    """Nearest row of each of the ``count`` nearest persons of each query; like `nearest` if each row is a person.

    With ``own`` no row of the query's own person counts. There must be as many persons.

    Examples
    --------
    >>> rows = np.array([[0.0], [0.1], [1.0], [5.0]])
    >>> nearest_persons(rows, rows, np.array([7, 7, 8, 9]), own=np.arange(4))[0].ravel().tolist()
    [2, 2, 1, 2]
    """
    if persons is None:
        return nearest(rows, queries, count, own=own)
    places, distances = np.zeros((len(queries), count), dtype=np.int64), np.full((len(queries), count), np.inf)
    open_, look = np.arange(len(queries)), min(len(rows), 2 * count + 2)
    while len(open_):
        found, apart = nearest(rows, queries[open_], look)
        whose = persons[found]
        first = np.ones(whose.shape, dtype=np.bool_)
        for column in range(1, look):
            first[:, column] = (whose[:, :column] != whose[:, column, None]).all(axis=1)
        if own is not None:
            first &= whose != persons[own[open_], None]
        done = first.sum(axis=1) >= count
        if look == len(rows) and not done.all():
            raise ValueError(f"{count} persons were asked for, and there are fewer")
        chosen = np.argsort(~first[done], axis=1, kind="stable")[:, :count]
        places[open_[done]] = np.take_along_axis(found[done], chosen, axis=1)
        distances[open_[done]] = np.take_along_axis(apart[done], chosen, axis=1)
        open_, look = open_[~done], min(len(rows), 2 * look)
    return places, distances


def _without_self(places: _Places, own: NDArray[np.int64]) -> _Places:
    """Remove each query's own index, or the last neighbour if duplicates displaced it."""
    stays = places != own[:, None]
    stays[stays.all(axis=1), -1] = False
    return np.asarray(places[stays].reshape(len(places), -1))


def _by_distance(rows: _Matrix, queries: _Matrix, places: _Places) -> tuple[_Places, _Matrix]:
    squares = np.empty(places.shape)
    for column in range(places.shape[1]):
        squares[:, column] = ((queries - rows[places[:, column]]) ** 2).sum(axis=1)
    order = np.argsort(squares, axis=1, kind="stable")
    return np.take_along_axis(places, order, axis=1), np.sqrt(np.take_along_axis(squares, order, axis=1))


def _boxes_of(rows: _Matrix) -> _Boxes:
    """Boxes of the rows, cached for arrays that cannot have changed."""
    if rows.flags.writeable or rows.base is not None:
        return _build_boxes(rows)
    kept = next((boxes for known, boxes in list(_kept) if known() is rows), None)
    if kept is None:
        kept = _build_boxes(rows)
        _kept.append((weakref.ref(rows, _drop_cached), kept))
        del _kept[:-_KEEP]
    return kept


def _drop_cached(gone: weakref.ref[_Matrix]) -> None:
    _kept[:] = [pair for pair in _kept if pair[0] is not gone]


def _build_boxes(rows: _Matrix) -> _Boxes:
    """Halve the rows along their widest coordinates until boxes are small."""
    n, d = rows.shape
    depth = max(0, int(np.ceil(np.log2(max(1, n) / _BOX))))
    boxes = 2**depth
    values, order = fixed(rows, np.float64), np.arange(n)
    widest = np.argsort(-rows[:: max(1, n // _SAMPLE)].var(axis=0), kind="stable")
    _order_by_boxes(values, order, depth)
    most = -(-n // boxes)
    made = _Boxes(
        np.full((boxes, d, most), np.inf),
        np.zeros((boxes, most), dtype=np.int64),
        np.full((d, boxes), np.inf),
        np.full((d, boxes), -np.inf),
        np.diff(n * np.arange(boxes + 1) // boxes),
        widest,
    )
    _fill_boxes(values, order, *made)
    return made


def _search(boxes: _Boxes, queries: _Matrix, count: int) -> _Places:
    """Indices of the nearest rows of all queries."""
    asked = fixed(queries[:, boxes.widest], np.float64)
    found = np.full((len(queries), count), boxes.places.size)
    _search_parallel(lambda begin, end: _look_up(boxes, asked, found, begin, end), len(queries), _PART)
    return found


def _search_parallel(work: Callable[[int, int], None], queries: int, part: int) -> None:
    """Search for queries in parallel parts; an interrupt is handled between parts."""
    starts = range(0, queries, max(1, part))
    if len(starts) < 2:
        work(0, queries)
        return
    pool = ThreadPoolExecutor(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())
    try:
        for _ in pool.map(lambda begin: work(begin, min(begin + part, queries)), starts):
            pass
    finally:
        pool.shutdown(cancel_futures=True)


@inner
def _widest(values: _Matrix, order: _Places, begin: int, end: int) -> int:
    """Coordinate with the largest range among some rows."""
    step = max(1, (end - begin) // _LOOK)
    best, most = 0, -1.0
    for t in range(values.shape[1]):
        total, squares, seen = 0.0, 0.0, 0
        shift = values[order[begin], t]
        for i in range(begin, end, step):
            x = values[order[i], t] - shift
            total, squares, seen = total + x, squares + x * x, seen + 1
        spread = squares - total * total / seen
        if spread > most:
            best, most = t, spread
    return best


@inner
def _select(keys: _Matrix, order: _Places, begin: int, end: int, middle: int) -> None:
    """Partition so that no key before the middle exceeds any key from it on (Hoare's selection)."""
    low, high = begin, end - 1
    while low < high:
        first, mid, last = keys[low], keys[(low + high) // 2], keys[high]
        pivot = max(min(first, mid), min(max(first, mid), last))
        i, j = low, high
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                order[i], order[j] = order[j], order[i]
                i, j = i + 1, j - 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@compiled
def _order_by_boxes(values: _Matrix, order: _Places, depth: int) -> None:
    """Order the rows by boxes: each part is cut at the median of its widest coordinate."""
    n = len(order)
    keys = np.empty(n)
    for level in range(depth):
        parts = 2**level
        for part in range(parts):
            begin, middle, end = n * part // parts, n * (2 * part + 1) // (2 * parts), n * (part + 1) // parts
            t = _widest(values, order, begin, end)
            for i in range(begin, end):
                keys[i] = values[order[i], t]
            _select(keys, order, begin, end, middle)


@compiled
def _fill_boxes(
    values: _Matrix,
    order: _Places,
    cells: NDArray[np.float64],
    places: _Places,
    low: _Matrix,
    high: _Matrix,
    sizes: _Places,
    widest: _Places,
) -> None:
    """Write the rows into their boxes, ordered by index."""
    n, d = values.shape
    box, filled, at = np.empty(n, dtype=np.int64), np.zeros(len(sizes), dtype=np.int64), 0
    for b in range(len(sizes)):
        for _ in range(sizes[b]):
            box[order[at]] = b
            at += 1
    for place in range(n):
        b = box[place]
        i = filled[b]
        places[b, i] = place
        for t in range(d):
            x = values[place, widest[t]]
            cells[b, t, i] = x
            low[t, b], high[t, b] = min(low[t, b], x), max(high[t, b], x)
        filled[b] = i + 1


@inner
def _merge_box(
    cells: _Matrix, places: _Places, size: int, query: _Matrix, apart: _Matrix, least: _Matrix, found: _Places
) -> None:
    """Merge the rows of a box that are nearer than the farthest found so far."""
    last, d = len(least) - 1, len(query)
    apart[:] = 0.0
    for begin in range(0, d, _STEP):
        for t in range(begin, min(begin + _STEP, d)):
            x, line = query[t], cells[t]
            for r in range(len(line)):
                gap = x - line[r]
                apart[r] += gap * gap
        farthest, within = least[last], 0
        for r in range(len(apart)):
            within += apart[r] <= farthest
        if not within:
            return
    for r in range(size):
        here, place = apart[r], places[r]
        if here < least[last] or (here == least[last] and place < found[last]):
            at = last
            while at > 0 and (least[at - 1] > here or (least[at - 1] == here and found[at - 1] > place)):
                least[at], found[at] = least[at - 1], found[at - 1]
                at -= 1
            least[at], found[at] = here, place


@inner
def _measure_boxes(low: _Matrix, high: _Matrix, query: _Matrix, bound: _Matrix) -> None:
    """Squared distance of a query to each box.

    A box is no farther than its rows also as rounded, for each of its gaps is no wider and they are summed alike.
    """
    bound[:] = 0.0
    for t in range(len(query)):
        x, lows, highs = query[t], low[t], high[t]
        for b in range(len(bound)):
            gap = max(lows[b] - x, x - highs[b], 0.0)
            bound[b] += gap * gap


@compiled
def _look_up(rows: _Boxes, asked: _Matrix, found: _Places, begin: int, end: int) -> None:
    """Search for a range of queries.

    Each opens its nearest boxes first, which mostly ends it; those that are left over meet box by box, so that a box
    is fetched once for all of them.
    """
    cells, places, low, high, sizes = rows.cells, rows.places, rows.low, rows.high, rows.sizes
    boxes = len(sizes)
    bound, apart = np.empty((end - begin, boxes)), np.empty(cells.shape[2])
    least = np.full((end - begin, found.shape[1]), np.inf)
    for i in range(end - begin):
        query, mine, near = asked[begin + i], found[begin + i], bound[i]
        _measure_boxes(low, high, query, near)
        for _ in range(min(_FIRST, boxes)):
            next_one = np.argmin(near)
            if near[next_one] > least[i, -1]:
                break
            if near[next_one] < least[i, -1] or places[next_one, 0] < mine[-1]:
                _merge_box(cells[next_one], places[next_one], sizes[next_one], query, apart, least[i], mine)
            near[next_one] = np.inf
    for b in range(boxes):
        for i in range(end - begin):
            mine = found[begin + i]
            if bound[i, b] < least[i, -1] or (bound[i, b] == least[i, -1] and places[b, 0] < mine[-1]):
                _merge_box(cells[b], places[b], sizes[b], asked[begin + i], apart, least[i], mine)


def nearest_without_each_column(rows: _Matrix, queries: _Matrix, column_of: _Places, count: int) -> _Places:
    """For each column, the nearest rows of each query in the coordinates of all other columns, exactly.

    A search for each column would sum the same squares again: here each column's part is summed once and subtracted
    from the whole. Rows at the same distance come in their order. ``column_of`` is the column of each coordinate, from
    0; the result has the shape (columns, q, count).

    Examples
    --------
    >>> rows = np.array([[0.0, 5.0], [4.0, 0.0]])
    >>> nearest_without_each_column(rows, np.array([[0.0, 0.0]]), np.array([0, 1]), 1).ravel().tolist()
    [1, 0]
    """
    if not 0 < count <= len(rows):
        raise ValueError(f"{count} neighbours were asked of {len(rows)} rows")
    across, asked, owner = fixed(rows.T, np.float64), fixed(queries, np.float64), fixed(column_of, np.int64)
    found = np.zeros((int(column_of.max()) + 1, len(queries), count), dtype=np.int64)
    part = -(-len(queries) // min(os.cpu_count() or 1, 8))  # every thread reads all rows, so each takes one part
    _search_parallel(lambda begin, end: _search_without(across, asked, owner, found, begin, end), len(queries), part)
    return found


@inner
def _insert_nearer(whole: _Matrix, part: _Matrix, least: _Matrix, found: _Places, start: int, width: int) -> None:
    """Merge the rows of a chunk that are nearer than the farthest found so far."""
    last = len(least) - 1
    for r in range(width):
        apart = whole[r] - part[r]
        if apart < least[last]:
            at = last
            while at > 0 and least[at - 1] > apart:
                least[at], found[at] = least[at - 1], found[at - 1]
                at -= 1
            least[at], found[at] = apart, start + r


@compiled
def _search_without(across: _Matrix, asked: _Matrix, owner: _Places, found: _Places, begin: int, end: int) -> None:
    """Search for a range of queries; ``across`` holds the transposed rows."""
    columns, _, count = found.shape
    d, m = across.shape
    part, whole = np.empty((columns, _CHUNK)), np.empty(_CHUNK)
    least = np.full((end - begin, columns, count), np.inf)
    for start in range(0, m, _CHUNK):  # all queries meet a chunk while it is at hand
        for i in range(begin, end):
            part[:] = 0.0
            for t in range(d):
                x, own, line = asked[i, t], part[owner[t]], across[t, start : start + _CHUNK]
                for r in range(len(line)):
                    gap = x - line[r]
                    own[r] += gap * gap
            whole[:] = 0.0
            for c in range(columns):
                for r in range(_CHUNK):
                    whole[r] += part[c, r]
            for c in range(columns):
                _insert_nearer(whole, part[c], least[i - begin, c], found[c, i], start, min(_CHUNK, m - start))
