"""Synthetic rows from group statistics: uniform along each eigenvector [AY05, sec. 2, eq. 2.1]."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import ParamSpec

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.groups import Groups, eigen
from sfumato.core.groups.discrete import discretize
from sfumato.core.progress import tell
from sfumato.core.records import BlockKind, Layout
from sfumato.core.threads import one_blas_thread

__all__ = [
    "CHUNK",
    "GroupAxes",
    "axes_of",
    "draw_along_eigenvectors",
    "draw_from_covariance",
    "draw_from_gram",
    "generate",
    "redraw",
]


def generate(groups: Groups, layout: Layout, rng: np.random.Generator) -> Floats:
    """Draw as many rows as each group has records, group after group.

    The coordinates come from the group's eigen-axes; then each discrete block is settled inside its group, so
    that category counts and missing cells are exactly the group's.

    Parameters
    ----------
    groups : Groups
    layout : tuple of Block
        What the coordinates mean; the discrete blocks are the ones that are settled.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (sum of counts, d)
    """
    values = draw_along_eigenvectors(groups, rng)
    return discretize(values, groups, layout)


def draw_along_eigenvectors(groups: Groups, rng: np.random.Generator) -> Floats:
    """Draw rows independently and uniformly along the eigenvectors of each group.

    Implements C(G) = P(G) D(G) P(G)^T [AY05, eq. 2.1]: along eigenvector j the law is uniform with variance
    lambda_j, hence of range sqrt(12 * lambda_j) (errata AY05.1).

    Notes
    -----
    A group of k <= d records has rank k - 1: its rows stay in the flat that its records span.
    """
    with one_blas_thread():  # many small matrices: threads only cost
        axes = axes_of(groups.covariance)
        values = np.empty((int(groups.count.sum()), groups.mean.shape[1]))
        starts = np.concatenate([[0], np.cumsum(groups.count)[:-1]])
        uniform = rng.random(values.shape)
        uniform -= 0.5
        for size in np.unique(groups.count):
            same = np.flatnonzero(groups.count == size)
            rows = starts[same, None] + np.arange(size)
            values[rows] = uniform[rows] @ axes[same] + groups.mean[same, None, :]
    return values


def axes_of(covariance: Floats) -> Floats:
    """Axes (g, d, d) of groups: row j is eigenvector j times the range sqrt(12 * lambda_j).

    An eigenvalue that is rounding alone counts as 0: its root would be visible.
    """
    eigenvalues, eigenvectors = eigen(covariance)
    rounding = eigenvalues[:, -1:] * (covariance.shape[-1] * np.finfo(np.float64).eps)
    reach = np.sqrt(12.0 * np.where(eigenvalues > rounding, eigenvalues, 0.0))
    return np.asarray(reach[:, :, None] * eigenvectors.transpose(0, 2, 1))


@dataclass(frozen=True, eq=False, repr=False)
class GroupAxes:
    """Statistics of groups in very many dimensions: axes instead of scatter matrices, which would not fit in memory.

    ``axes`` has a row for each record, group after group: eigenvectors of its group's scatter, each times the root of
    its eigenvalue, so that the products of a group's rows add up to its scatter. ``labels`` and ``levels`` are those of
    the records.
    """

    labels: Ints
    levels: Ints
    mean: Floats
    axes: Floats

    @classmethod
    def of(cls, values: Floats, labels: Ints, levels: Ints) -> GroupAxes:
        """Axes of the groups 0 .. g-1 given by labels, from the Gram matrices of their records."""
        order, sizes, starts = _by_group(labels)
        axes = values[order]
        mean = np.add.reduceat(axes, starts, axis=0) / sizes[:, None]
        axes -= np.repeat(mean, sizes, axis=0)
        with one_blas_thread():
            for size in np.unique(sizes):
                rows = starts[sizes == size, None] + np.arange(size)
                centred = axes[rows]
                _, vectors = eigen(centred @ centred.transpose(0, 2, 1))
                axes[rows] = vectors.transpose(0, 2, 1) @ centred
        return cls(labels, levels, mean, axes)

    @property
    def ssq(self) -> float:
        """Sum of squared distances of all records to their centroids."""
        return float(np.sum(self.axes**2))

    def groups(self) -> Groups:
        """The groups with their scatter matrices, at full memory cost."""
        order, sizes, starts = _by_group(self.labels)
        levels, parts = self.levels[order], np.split(self.axes, starts[1:])
        scatter = np.array([axes.T @ axes for axes in parts])
        level_sum = np.add.reduceat(levels, starts).astype(np.float64)
        return Groups(sizes.astype(np.int64), self.mean, scatter, level_sum, np.maximum.reduceat(levels, starts))

    def draw(self, rng: np.random.Generator) -> Floats:
        """Draw as many rows as each group has records, uniformly along the axes [AY05, eq. 2.1]."""
        _, sizes, starts = _by_group(self.labels)
        drawn = np.repeat(self.mean, sizes, axis=0)
        with one_blas_thread():
            for size in np.unique(sizes):
                rows = starts[sizes == size, None] + np.arange(size)
                uniform = rng.random((len(rows), size, size)) - 0.5
                drawn[rows] += np.sqrt(12.0 / size) * (uniform @ self.axes[rows])
        return drawn


def _by_group(labels: Ints) -> tuple[Ints, Ints, Ints]:
    """Order of records by group, group sizes, and where each group begins."""
    sizes = np.bincount(labels)
    return np.argsort(labels, kind="stable"), sizes, np.cumsum(sizes) - sizes


CHUNK = 1 << 20
"""Numbers of 8 bytes that a chunk of groups works on. Every thread works on one chunk and one more is being drawn.

A single group is not cut below its own d x d matrices, however many coordinates there are.
"""

P = ParamSpec("P")

_ALONE = 20_000  # records below which threads cost more than they give


def redraw(
    values: Floats, labels: Ints, layout: Layout, rng: np.random.Generator, *, threads: int | None = None
) -> Floats:
    """Draw as many rows as each group has records, as `generate` does, directly from the records.

    Parameters
    ----------
    values : ndarray of shape (n, d)
    labels : ndarray of shape (n,)
        Every group from 0 to the last has at least one record.
    layout : tuple of Block
        What the coordinates mean; the discrete blocks are settled inside each group.
    rng : numpy.random.Generator
    threads : int, optional
        By default as many as the machine lends. All uniform numbers are drawn here, the smallest groups first, before
        their chunk is handed to a thread: the rows do not depend on how many threads there are.

    Returns
    -------
    ndarray of shape (n, d)

    Notes
    -----
    Memory beside the result is at most ``threads + 1`` times `CHUNK` numbers, and a few numbers a record.
    """
    sizes = np.bincount(labels)
    order, starts = np.argsort(labels, kind="stable"), np.cumsum(sizes) - sizes
    drawn = np.empty(values.shape)
    settled = layout if any(block.kind is not BlockKind.NUMBER for block in layout) else ()
    d, done = values.shape[1], 0

    def draw(places: Ints, uniform: Floats) -> None:
        drawn[places] = _draw_chunk(values[order[places]], uniform, settled)

    with one_blas_thread(), _ChunkThreads(_workers(len(values), threads)) as team:
        for size, groups in _chunks(sizes, d, settles=bool(settled)):
            if _is_large(size, d):
                rows = slice(starts[groups[0]], starts[groups[0]] + size)
                _draw_large(values, order[rows], drawn[rows], settled, rng)
            else:
                places = starts[groups, None] + np.arange(size)
                team.hand(draw, places, rng.random((len(groups), size, min(size, d))))
            done += size * len(groups)
            tell("generating", done / len(values))
    return drawn


def draw_from_gram(centred: Floats, uniform: Floats) -> Floats:
    """Draw deviations from the mean of groups of n records, from their Gram matrices.

    With X the centred records and X X^T = W L W^T, the rows of sqrt(12 / n) (U W^T) X have the law of [AY05, eq. 2.1]:
    w_j^T X is eigenvector j of the covariance times sqrt(n lambda_j). Nothing is divided by a small number, and W is
    orthogonal whatever the eigenvalues, so that the moments are the group's up to rounding.

    Parameters
    ----------
    centred : ndarray of shape (g, n, d)
    uniform : ndarray of shape (g, m, n)
        Uniform in (0, 1); m rows are drawn.

    Notes
    -----
    Where eigenvalues are equal the axes are not unique, and this way may choose others than the covariance does.
    """
    _, vectors = eigen(centred @ centred.transpose(0, 2, 1))
    weights = (uniform - 0.5) @ vectors.transpose(0, 2, 1)
    weights *= np.sqrt(12.0 / centred.shape[1])
    return np.asarray(weights @ centred)


def draw_from_covariance(covariance: Floats, uniform: Floats) -> Floats:
    """Draw deviations from the mean of groups, from covariances (g, d, d) and uniforms in (0, 1)."""
    return np.asarray((uniform - 0.5) @ axes_of(covariance))


def _draw_chunk(records: Floats, uniform: Floats, settled: Layout) -> Floats:
    """Draw groups of one size; overwrites the records (g, n, d)."""
    g, n, d = records.shape
    mean = records.mean(axis=1)
    records -= mean[:, None, :]
    needed = bool(settled) or n >= d
    scatter = records.transpose(0, 2, 1) @ records if needed else np.empty((0, d, d))
    rows = draw_from_gram(records, uniform) if n < d else draw_from_covariance(scatter / n, uniform)
    rows += mean[:, None, :]
    if not settled:
        return rows
    return discretize(rows.reshape(g * n, d), _groups(np.full(g, n), mean, scatter), settled).reshape(g, n, d)


def _draw_large(values: Floats, rows: Ints, drawn: Floats, settled: Layout, rng: np.random.Generator) -> None:
    """Draw one group larger than a chunk in blocks of rows, into its place."""
    n, d = drawn.shape
    step = max(1, CHUNK // (4 * d))
    parts = [slice(first, first + step) for first in range(0, n, step)]
    mean = np.sum([values[rows[part]].sum(axis=0) for part in parts], axis=0) / n
    scatter = np.zeros((d, d))
    for part in parts:
        centred = values[rows[part]] - mean
        scatter += centred.T @ centred
    axes = axes_of(scatter[None] / n)[0]
    for part in parts:
        uniform = rng.random(drawn[part].shape)
        uniform -= 0.5
        np.matmul(uniform, axes, out=drawn[part])
        drawn[part] += mean
    if settled:
        discretize(drawn, _groups(np.array([n]), mean[None], scatter[None]), settled)


def _groups(count: Ints, mean: Floats, scatter: Floats) -> Groups:
    return Groups(count, mean, scatter, np.zeros(len(count)), np.zeros(len(count), dtype=np.int64))


def _is_large(size: int, d: int) -> bool:
    """Whether the working arrays of one group exceed a chunk."""
    return size > d and 4 * size * d > CHUNK


def _chunks(sizes: Ints, d: int, *, settles: bool) -> Iterator[tuple[int, Ints]]:
    """Groups by ascending size, in chunks of one size and at most `CHUNK` numbers."""
    by_size = np.argsort(sizes, kind="stable")
    ordered = sizes[by_size]
    ends = np.append(np.flatnonzero(np.diff(ordered)) + 1, len(ordered))
    first = 0
    for end in ends.tolist():
        size = int(ordered[first])
        squares = 3 * d * d if settles or size >= d else 0  # scatter, covariance, eigenvectors or what is left of it
        numbers = size * (4 * d + 4 * min(size, d) + 2) + squares
        step = 1 if _is_large(size, d) else max(1, CHUNK // numbers)
        for low in range(first, end, step):
            yield size, by_size[low : min(low + step, end)]
        first = end


def _workers(records: int, threads: int | None) -> int:
    if threads is not None or records < _ALONE:
        return threads or 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _ChunkThreads:
    """Threads that process one chunk each while the next is prepared; one thread works synchronously."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self._most = threads
        self._open: deque[Future[None]] = deque()

    def __enter__(self) -> _ChunkThreads:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=error[0] is not None)
        if error[0] is None:
            self._collect(0)

    def hand(self, work: Callable[P, None], *arguments: P.args, **named: P.kwargs) -> None:
        """Process a chunk, in a free thread if there are several."""
        if self._pool is None:
            work(*arguments, **named)
            return
        self._collect(self._most - 1)
        self._open.append(self._pool.submit(work, *arguments, **named))

    def _collect(self, left: int) -> None:
        while len(self._open) > left:
            self._open.popleft().result()
