"""Dynamic maintenance of groups, one function a step [AY05, sec. 3]: closest group, join, split test, split.

The steps are compiled and work in place on a `Slots`, so that a batch of arrivals is one call. What a step does to the
statistics does not depend on how arrivals are cut into batches: absorbing a batch is absorbing its records one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import compiled, inner, whole
from sfumato.methods.condense.centroid_index import (
    SINCE,
    DistanceCache,
    Index,
    closest_cached,
    closest_in_index,
    insert,
    is_stale,
    lower_counts,
    move,
    rewrite_column,
)
from sfumato.methods.condense.slots import (
    ADMITTED,
    GAPS,
    GROUPS,
    LEAST,
    NEXT_ID,
    NO_ROOM,
    NOTED,
    PENDING,
    RIPE,
    SPLITS,
    STOPPED,
    Journal,
    Pool,
    Slots,
)

__all__ = [
    "Arrivals",
    "StreamArrays",
    "Work",
    "absorb_record",
    "leading_axis",
    "maintain",
    "padded",
    "rows_of",
    "split_group",
    "splits_by_paper",
    "splits_strictly",
]

_ROUNDING = 1.0 + 1e-12  # parts of Ps after odd splits are rounded; equality still splits


class Work(NamedTuple):
    """Memory for the steps: a record's gap to a centroid, an axis, and what finding the axis takes."""

    gap: Floats
    e1: Floats
    matrix: Floats
    lines: Floats


@inner
def absorb_record(store: Slots, slot: int, x: Floats, level: int, gap: Floats) -> None:
    """Add a record to the statistics of a group: n, Fs, Sc and Ps, of which mean and scatter are kept (errata AY05.9).

    The mean moves by (x - mean) / (n + 1) and the scatter gains n / (n + 1) (x - mean)(x - mean)^T. Cost O(d^2).
    """
    d, n = x.shape[0], store.count[slot]
    for t in range(d):
        gap[t] = x[t] - store.mean[slot, t]
        store.mean[slot, t] += gap[t] / (n + 1)
    weight, place = n / (n + 1), 0
    row = store.triangle[slot]
    for i in range(d):
        for j in range(i, d):
            row[place + j - i] += weight * (gap[i] * gap[j])
        place += d - i
    store.count[slot] = n + 1
    store.level_sum[slot] += level
    store.level_max[slot] = max(store.level_max[slot], level)
    store.fresh[slot] += 1
    store.fresh_level_max[slot] = max(store.fresh_level_max[slot], level)
    store.written[slot] = True


@inner
def splits_by_paper(store: Slots, slot: int) -> bool:
    """Tell whether n(G) >= 2 Ps(G) / n(G) [AY05, eq. 3.2, errata AY05.2]."""
    n = store.count[slot]
    return bool(n >= 2 and n * n * _ROUNDING >= 2.0 * store.level_sum[slot])


@inner
def splits_strictly(store: Slots, slot: int) -> bool:
    """Tell whether both pieces will still be as large as the highest level inside; not in the paper."""
    n = store.count[slot]
    return bool(n >= 2 and n >= 2 * store.level_max[slot])


@inner
def split_group(store: Slots, slot: int, other: int, first_id: int, work: Work) -> None:
    """Cut the statistics of a group along its longest axis into two, which get new ids [AY05, sec. 3, fig. 7].

    The formulas are those of `core.groups.split_groups` (errata AY05.1 and AY05.3). Fresh records are shared out in
    whole numbers, so that their sum over a family stays what came. Cost O(d^3).
    """
    n, e1 = store.count[slot], work.e1
    half = n // 2
    share = half / n
    lambda1 = leading_axis(store.triangle[slot], work.matrix, work.lines, e1) / n
    reach = np.sqrt(12.0 * lambda1)  # a
    for t in range(e1.shape[0]):
        middle = store.mean[slot, t]
        store.mean[other, t] = middle + share * reach / 2.0 * e1[t]
        store.mean[slot, t] = middle - (1.0 - share) * reach / 2.0 * e1[t]
    _write_piece(store, slot, other, n - half, 1.0 - share, lambda1, e1)
    _write_piece(store, slot, slot, half, share, lambda1, e1)  # over the whole, so last
    fresh = store.fresh[slot]
    store.fresh[slot], store.fresh[other] = fresh // 2, fresh - fresh // 2
    store.ids[slot], store.ids[other] = first_id, first_id + 1


@inner
def _write_piece(store: Slots, slot: int, into: int, count: int, share: float, lambda1: float, e1: Floats) -> None:
    """Write scatter and levels of the piece of a group that is ``share`` of its range along e1."""
    d, n, place = e1.shape[0], store.count[slot], 0
    lost = lambda1 * (share * share - 1.0)  # lambda1 -> share^2 lambda1
    for i in range(d):
        for j in range(i, d):
            store.triangle[into, place] = count * (store.triangle[slot, place] / n + lost * (e1[i] * e1[j]))
            place += 1
    store.level_sum[into] = store.level_sum[slot] * count / n
    store.level_max[into] = store.level_max[slot]
    store.family[into] = store.family[slot]
    store.stratum[into] = store.stratum[slot]
    store.fresh_level_max[into] = store.fresh_level_max[slot]
    store.pseudo[into] = True
    store.written[into] = True
    store.count[into] = count


class StreamArrays(NamedTuple):
    """All that the steps read and write.

    ``ripe`` is of each stratum the size of a group that has grown, until its waiting records have been looked at again.
    """

    store: Slots
    search: Index
    cache: DistanceCache
    numbers: Ints
    pool: Pool
    ripe: Ints
    journal: Journal


class Arrivals(NamedTuple):
    """Records that arrive; ``where`` gets the id of the group that each joined, -1 if it waits."""

    values: Floats
    levels: Ints
    strata: Ints
    where: Ints


@compiled
def maintain(
    arrays: StreamArrays, arrivals: Arrivals, first: int, last: int, strict: bool, stratified: bool
) -> tuple[int, bool]:
    """Absorb the records from ``first`` to ``last``; give the next one, and whether all is done.

    Stops early where slots, columns of the cache or places of the pool are used up or the index is stale, or, of
    ``stratified`` groups, where waiting records can form the first group of their stratum: see to it and call again.
    The cache is used if it is of these records, and the index otherwise; the groups do not depend on it. Joins and
    splits are noted in the journal.
    """
    store, index, cache, pool = arrays.store, arrays.search, arrays.cache, arrays.pool
    numbers, ripe = arrays.numbers, arrays.ripe
    d, cached = arrivals.values.shape[1], cache.near.shape[0] > 0
    x, width = np.empty(d), padded(d)
    work = Work(np.empty(d), np.empty(d), np.empty((d, width)), np.empty((6, width)))
    i = first
    room = min(store.ids.shape[0], cache.near.shape[1]) if cached else store.ids.shape[0]
    while numbers[GROUPS] < room and not is_stale(index, numbers[GROUPS]):
        waiting = _first_ripe(pool, numbers, ripe)
        if waiting >= 0:
            level, stratum = _copy(pool.values, pool.levels, waiting, x), pool.strata[waiting]
        else:
            if numbers[RIPE]:
                numbers[RIPE], ripe[:] = 0, 0
            if numbers[GAPS]:
                _close_ranks(pool, numbers)
            if i == last:
                return i, True
            level, stratum = _copy(arrivals.values, arrivals.levels, i, x), arrivals.strata[i]
        if cached and waiting < 0:
            slot = closest_cached(cache, store, i, x, level, stratum)
        else:
            slot = closest_in_index(index, store, x, level, stratum)
        if slot < 0 and waiting >= 0:  # the group that was large enough has split meanwhile
            ripe[stratum] = _largest(store, numbers[GROUPS], stratum)
            continue
        if slot < 0 and numbers[PENDING] == pool.levels.shape[0]:
            numbers[STOPPED] = NO_ROOM
            return i, False
        if waiting >= 0:
            _leave(pool, numbers, waiting)
        else:
            arrivals.where[i] = store.ids[slot] if slot >= 0 else -1
            i += 1
        if slot < 0:
            _wait(pool, numbers, x, level, stratum)
            if stratified and _can_found(store, pool, numbers, stratum):
                numbers[STOPPED] = stratum + 1
                return i, False
        else:
            _join(store, index, cache, numbers, ripe, slot, x, level, strict, arrivals.values, i, work, arrays.journal)
    return i, False


@inner
def _copy(values: Floats, levels: Ints, i: int, x: Floats) -> int:
    """Copy a record into ``x`` and give its level."""
    for t in range(x.shape[0]):
        x[t] = values[i, t]
    return int(levels[i])


@inner
def _largest(store: Slots, groups: int, stratum: int) -> int:
    """Size of the largest group of a stratum."""
    largest = whole(0)
    for slot in range(groups):
        if store.stratum[slot] == stratum:
            largest = max(largest, store.count[slot])
    return largest


@inner
def _can_found(store: Slots, pool: Pool, numbers: Ints, stratum: int) -> bool:
    """Tell whether a stratum has no group and enough waiting records for one: none asks for more than there are."""
    if _largest(store, numbers[GROUPS], stratum):
        return False
    before, able = whole(-1), whole(numbers[PENDING])
    while able != before:
        before, able = able, whole(0)
        for place in range(numbers[PENDING]):
            if pool.strata[place] == stratum and pool.levels[place] <= before:
                able += 1
    return bool(able > 0)


@inner
def _join(
    store: Slots,
    index: Index,
    cache: DistanceCache,
    numbers: Ints,
    ripe: Ints,
    slot: int,
    x: Floats,
    level: int,
    strict: bool,
    values: Floats,
    following: int,
    work: Work,
    journal: Journal,
) -> None:
    """Let a record join a group, split the group if it has grown enough, once at most, and tell index and cache."""
    groups, noting = numbers[GROUPS], journal.followed.shape[0] > 0
    absorb_record(store, slot, x, level, work.gap)
    if noting:
        _note_join(journal, numbers, store.ids[slot], x)
    grown = splits_strictly(store, slot) if strict else splits_by_paper(store, slot)
    if grown:
        before = store.ids[slot]
        split_group(store, slot, groups, numbers[NEXT_ID], work)
        if noting:
            _note_split(journal, numbers, before, store, slot, groups)
        numbers[GROUPS] += 1
        numbers[NEXT_ID] += 2
        numbers[SPLITS] += 1
    elif numbers[PENDING]:  # pieces are no larger than the group was: only one that did not split can serve more
        numbers[RIPE] = max(numbers[RIPE], store.count[slot])
        ripe[store.stratum[slot]] = max(ripe[store.stratum[slot]], store.count[slot])
    index.numbers[SINCE] += 1
    move(index, store, slot)
    if grown:
        insert(index, store, groups, slot)
        lower_counts(index, store, slot)
    if cache.near.shape[0] > 0:
        rewrite_column(cache, store, slot, values, following)
        if grown:
            rewrite_column(cache, store, groups, values, following)


@inner
def _note_join(journal: Journal, numbers: Ints, group: int, x: Floats) -> None:
    """Write down which group a record joined, with its coordinates that are followed."""
    line = numbers[NOTED]
    journal.ids[line], journal.into[line] = group, -1
    for place in range(journal.followed.shape[0]):
        journal.values[line, place] = x[journal.followed[place]]
    numbers[NOTED] = line + 1


@inner
def _note_split(journal: Journal, numbers: Ints, before: int, store: Slots, slot: int, other: int) -> None:
    """Write down which group became which two, and how far apart they lie in the coordinates that are followed."""
    line = numbers[NOTED]
    journal.ids[line], journal.into[line] = before, store.ids[slot]
    for place in range(journal.followed.shape[0]):
        t = journal.followed[place]
        journal.values[line, place] = store.mean[other, t] - store.mean[slot, t]
    numbers[NOTED] = line + 1


@inner
def _wait(pool: Pool, numbers: Ints, x: Floats, level: int, stratum: int) -> None:
    """Put a record at the end of the pool."""
    place = numbers[PENDING]
    for t in range(x.shape[0]):
        pool.values[place, t] = x[t]
    pool.levels[place], pool.strata[place] = level, stratum
    numbers[LEAST] = min(numbers[LEAST], level) if place else level
    numbers[PENDING] = place + 1


@inner
def _first_ripe(pool: Pool, numbers: Ints, ripe: Ints) -> int:
    """First record in the pool that some group of its stratum is now large enough for, or -1."""
    if numbers[PENDING] and numbers[LEAST] <= numbers[RIPE] + 1:
        for place in range(numbers[PENDING]):
            if 0 < pool.levels[place] <= ripe[pool.strata[place]] + 1:
                return place
    return -1


@inner
def _leave(pool: Pool, numbers: Ints, place: int) -> None:
    """Take a record out of the pool; its place stays empty until the ranks are closed."""
    pool.levels[place] = 0
    numbers[GAPS] += 1
    numbers[ADMITTED] += 1


@inner
def _close_ranks(pool: Pool, numbers: Ints) -> None:
    """Close the gaps that admitted records have left in the pool, keeping the order."""
    left, least = 0, 0
    for place in range(numbers[PENDING]):
        if pool.levels[place]:
            least = min(least, pool.levels[place]) if left else pool.levels[place]
            for t in range(pool.values.shape[1]):
                pool.values[left, t] = pool.values[place, t]
            pool.levels[left], pool.strata[left] = pool.levels[place], pool.strata[place]
            left += 1
    numbers[PENDING], numbers[LEAST], numbers[GAPS] = left, least, 0


_CLOSE = 1e-13  # width of the last interval around lambda1, as a share of the largest entry
_LEAST = 1e-30  # stands for a pivot that is zero
_TINY = 1e-200  # squared length of a column that is as good as zero; 2 over less may be infinite
_STEPS = 4  # of inverse iteration; each divides what is not e1 by its share of the gap


@inner
def padded(d: int) -> int:
    """Length of a row of d numbers with room for whole turns of the compiled loops."""
    return (d + 31) // 32 * 32


@inner
def leading_axis(triangle: Floats, matrix: Floats, lines: Floats, e1: Floats) -> float:
    """Write the leading eigenvector of a symmetric matrix into ``e1`` and give its eigenvalue, which is never negative.

    The upper triangle of d rows is given, one row after the other; ``matrix`` (d, w) and ``lines`` (6, w)
    are for work, with w from `padded`.
    The sign of e1 is that of `sfumato.core.groups.eigen`, so that each piece of a split has its side.
    """
    d = e1.shape[0]
    scale = 0.0
    for place in range(triangle.shape[0]):
        scale = max(scale, abs(triangle[place]))
    for t in range(d):
        e1[t] = 0.0
    if scale == 0.0:  # records that are all equal: any axis will do
        e1[0] = 1.0
        return 0.0
    place = 0
    for i in range(d):
        for j in range(i, d):
            matrix[i, j] = triangle[place] / scale
            matrix[j, i] = matrix[i, j]
            place += 1
        for j in range(d, matrix.shape[1]):
            matrix[i, j] = 0.0
    diagonal, off, weight, pivot = lines[0], lines[1], lines[2], lines[3]
    _tridiagonal(matrix, diagonal, off, weight, lines[4], lines[5])
    _inverse_iteration(diagonal, off, pivot, _above_largest(diagonal, off, d), e1)
    for k in range(d - 3, -1, -1):  # back through the reflections, which stand in the columns of the matrix
        dot = 0.0
        for t in range(k + 1, d):
            dot += matrix[t, k] * e1[t]
        for t in range(k + 1, d):
            e1[t] -= weight[k] * dot * matrix[t, k]
    _normalize(e1)
    return max(_variance_along(triangle, e1), 0.0)


@inner
def _tridiagonal(
    matrix: Floats, diagonal: Floats, off: Floats, weight: Floats, product: Floats, vector: Floats
) -> None:
    """Reduce the matrix by reflections I - weight v v^T, whose v are left in its columns below the diagonal.

    The long loops run over whole padded rows, zeros and all: that many numbers at a time are less work than few alone.
    """
    d, width = matrix.shape
    for t in range(width):
        vector[t] = 0.0
    for k in range(d - 2):
        vector[k] = 0.0
        norm = 0.0
        for t in range(k + 1, d):
            vector[t] = matrix[t, k]
            norm += vector[t] * vector[t]
        norm = np.sqrt(norm)
        off[k] = -norm if vector[k + 1] > 0.0 else norm
        vector[k + 1] -= off[k]
        length = 0.0
        for t in range(k + 1, d):
            length += vector[t] * vector[t]
            matrix[t, k] = vector[t]
        weight[k] = 2.0 / length if length > _TINY else 0.0
        _times(matrix, vector, k + 1, product)
        half = 0.0
        for t in range(d):
            product[t] = weight[k] * product[t] if t > k else 0.0
            half += product[t] * vector[t]
        for t in range(width):
            product[t] -= 0.5 * weight[k] * half * vector[t]
        for s in range(k + 1, d):
            own, other = vector[s], product[s]
            for t in range(width):
                matrix[s, t] -= own * product[t] + other * vector[t]
    for t in range(d):
        diagonal[t] = matrix[t, t]
    if d > 1:
        off[d - 2] = matrix[d - 1, d - 2]


@inner
def _times(matrix: Floats, vector: Floats, first: int, product: Floats) -> None:
    """Multiply the rows of a symmetric matrix from ``first`` on with a vector."""
    d, width, s = matrix.shape[0], product.shape[0], first
    for t in range(width):
        product[t] = 0.0
    while s + 4 <= d:
        a, b, c, e = vector[s], vector[s + 1], vector[s + 2], vector[s + 3]
        for t in range(width):
            ab, ce = a * matrix[s, t] + b * matrix[s + 1, t], c * matrix[s + 2, t] + e * matrix[s + 3, t]
            product[t] += ab + ce
        s += 4
    while s < d:
        a = vector[s]
        for t in range(width):
            product[t] += a * matrix[s, t]
        s += 1


@inner
def _above_largest(diagonal: Floats, off: Floats, d: int) -> float:
    """A number just above all eigenvalues of the tridiagonal matrix."""
    low, high = diagonal[0], diagonal[0]
    for t in range(d):
        reach = (abs(off[t - 1]) if t > 0 else 0.0) + (abs(off[t]) if t < d - 1 else 0.0)
        low, high = max(low, diagonal[t]), max(high, diagonal[t] + reach)  # a diagonal entry is no larger than lambda1
    high += _CLOSE
    while high - low > _CLOSE * max(1.0, abs(high)):
        middle = 0.5 * (low + high)
        pivot, below = 1.0, True
        for t in range(d):
            pivot = middle - diagonal[t] - (off[t - 1] * off[t - 1] / pivot if t > 0 else 0.0)
            if pivot <= 0.0:  # an eigenvalue is at least this large (Sturm)
                below = False
                break
        if below:
            high = middle
        else:
            low = middle
    return float(high)


@inner
def _inverse_iteration(diagonal: Floats, off: Floats, pivot: Floats, above: float, e1: Floats) -> None:
    """Solve (above I - T) z = e1 a few times; the matrix is positive definite, so nothing need be pivoted."""
    d = e1.shape[0]
    for t in range(d):
        pivot[t] = above - diagonal[t] - (off[t - 1] * off[t - 1] / pivot[t - 1] if t > 0 else 0.0)
        pivot[t] = max(pivot[t], _LEAST)
        e1[t] = 1.0 + 0.125 * (t % 7)
    for _ in range(_STEPS):
        for t in range(1, d):
            e1[t] += off[t - 1] / pivot[t - 1] * e1[t - 1]
        e1[d - 1] /= pivot[d - 1]
        for t in range(d - 2, -1, -1):
            e1[t] = (e1[t] + off[t] * e1[t + 1]) / pivot[t]
        _normalize(e1)


@inner
def _normalize(vector: Floats) -> None:
    """Scale to length 1, on the side that `sfumato.core.groups.eigen` takes."""
    largest = 0.0
    for t in range(vector.shape[0]):
        largest = max(largest, abs(vector[t]))
    length, side = 0.0, 0.0
    for t in range(vector.shape[0]):
        vector[t] /= largest
        length += vector[t] * vector[t]
        side += np.cos(t + 1.0) * vector[t]
    length = -np.sqrt(length) if side < 0.0 else np.sqrt(length)
    for t in range(vector.shape[0]):
        vector[t] /= length


@inner
def _variance_along(triangle: Floats, e1: Floats) -> float:
    d, place, total = e1.shape[0], 0, 0.0
    for i in range(d):
        total += triangle[place] * e1[i] * e1[i]
        for j in range(i + 1, d):
            total += 2.0 * triangle[place + j - i] * e1[i] * e1[j]
        place += d - i
    return total


def rows_of(triangle: Floats, d: int) -> Floats:
    """Full symmetric matrices (g, d, d) of upper triangles (g, d (d + 1) / 2)."""
    i, j = np.triu_indices(d)
    full = np.empty((len(triangle), d, d))
    full[:, i, j] = triangle
    full[:, j, i] = triangle
    return full
