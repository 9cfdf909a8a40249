"""Columns with declared domains, as whole places, and their released histograms."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.methods.private.estimate import nearest_counts, shares
from sfumato.methods.private.ledger import OneWayCounts
from sfumato.methods.private.people import Cells, Counter, People

__all__ = ["Domain", "Histogram", "measure_columns"]

_BRANCHES = 8
_MOST_LEVELS = 6
_LISTED = 1 << 18  # places of a domain whose leaves are looked up
_LEAST_SHARE = 0.01  # of all people, below which an interval is not divided
_NOISY = 0.5  # share of the differences between categories that noise explains
_FEW_SD = 4.0  # missing cells that noise explains are taken as none


@dataclass(frozen=True)
class Domain:
    """Declared places of a column: ``size`` categories, or as many steps between two bounds.

    A missing cell is the place -1; there is none unless the column is ``nullable``.
    """

    name: str
    size: int
    ordered: bool
    nullable: bool = True


@dataclass(frozen=True, eq=False, repr=False)
class Histogram:
    """Released shares of a column's leaves: half-open intervals of places, or categories; missing cells come first.

    Parameters
    ----------
    domain : Domain
    starts : ndarray of shape (leaves,)
        First place of each leaf, -1 of missing cells.
    shares : ndarray of shape (leaves,)
    sd : float
        Of the noise of each count, in persons.
    total : float
        Noisy number of people.
    measured : int
        Counts that the total is a sum of.
    """

    domain: Domain
    starts: Ints
    shares: Floats
    sd: float
    total: float
    measured: int

    def __len__(self) -> int:
        return len(self.starts)

    def __repr__(self) -> str:
        return f"Histogram({self.domain.name!r}, {len(self)} leaves)"

    @cached_property
    def widths(self) -> Ints:
        """Places of each leaf."""
        return np.diff(np.append(self.starts, self.domain.size))

    @property
    def ordered(self) -> bool:
        """Whether the leaves lie on a line."""
        return self.domain.ordered

    @property
    def cardinality(self) -> int:
        """Categories; 99 of an ordered column, which has as many as its noise allows."""
        return 99 if self.ordered else len(self)

    def leaves_of(self, places: Ints) -> Ints:
        """Leaf of each place."""
        if self.domain.size <= _LISTED:
            return self._leaves[places + 1]
        return np.searchsorted(self.starts, places, side="right") - 1

    @cached_property
    def _leaves(self) -> Ints:
        """Leaf of the missing cell and of every place."""
        return np.searchsorted(self.starts, np.arange(-1, self.domain.size), side="right") - 1

    def bins(self, most: int, key: Floats | None = None) -> Ints:
        """Bin of each leaf, at most about ``most`` of them, with equal shares.

        Neighbouring leaves share a bin; categories share one in the order of ``key``, or, without it, all rare ones
        do.
        """
        if not self.ordered and len(self) <= most:
            return np.arange(len(self))
        bins = np.zeros(len(self), dtype=np.int64)
        if not self.ordered and key is None:
            bins[np.argsort(-self.shares, kind="stable")] = np.minimum(np.arange(len(self)), most - 1)
            return bins
        order = np.arange(len(self)) if self.ordered or key is None else np.argsort(key, kind="stable")
        current, full, left, remaining = 0, 0.0, 1.0, most
        for leaf in order:
            share = self.shares[leaf]
            if full > 0 and full + share / 2 > left / max(remaining, 1) and current < most - 1:
                left, remaining, current, full = left - full, remaining - 1, current + 1, 0.0
            bins[leaf] = current
            full += share
        return bins

    def draw_places(self, leaves: Ints, rng: np.random.Generator) -> Ints:
        """A place within each leaf, by a density that is linear between the middles of leaves."""
        start, width = self.starts[leaves], self.widths[leaves]
        uniform = rng.random(len(leaves))
        if self.ordered and (self.widths > 1).any():
            density = self.shares / self.widths
            edges = np.concatenate([density[:1], (density[1:] + density[:-1]) / 2, density[-1:]])
            low = np.minimum(edges[:-1], 3 * density)[leaves]
            high = np.minimum(edges[1:], 3 * density)[leaves]
            slope = (high - low) / np.maximum(high + low, 1e-300)
            flat = np.abs(slope) < 1e-6
            safe = np.where(flat, 1.0, slope)
            sloped = (np.sqrt((1 - safe) ** 2 + 4 * safe * uniform) - (1 - safe)) / (2 * safe)
            uniform = np.where(flat | (width == 1), uniform, sloped)
        return start + np.minimum((uniform * width).astype(np.int64), width - 1)


_Request = tuple[int, Callable[[Ints], Cells]]
"""A number of cells, and the cell of each place of a column."""


def measure_columns(counter: Counter, domains: tuple[Domain, ...], rhos: list[float], split: float) -> list[Histogram]:
    """Histogram of each column: counts of categories, or an adaptive tree of intervals.

    An interval is divided if its noisy count exceeds ``split`` standard deviations of the noise. The intervals of a
    level are disjoint, so that each level is one measurement. The same level of all columns is counted in one pass.
    """
    steps = {i: _steps(counter, domain, rhos[i], split) for i, domain in enumerate(domains)}
    requests, done = {i: next(each) for i, each in steps.items()}, dict[int, Histogram]()
    while requests:
        asked = [(i, cells) for i, (_, cells) in requests.items()]
        found = counter.counts([size for size, _ in requests.values()], _InColumns(asked))
        requests = {}
        for (i, _), counts in zip(asked, found, strict=True):
            try:
                requests[i] = steps[i].send(counts)
            except StopIteration as end:
                done[i] = end.value
    return [done[i] for i in range(len(domains))]


@dataclass(frozen=True, eq=False)
class _InColumns:
    """Cells of rows in some columns, wherever the rows are."""

    cells: list[tuple[int, Callable[[Ints], Cells]]]

    def __call__(self, people: People) -> Iterator[Cells]:
        return (cells(people.places[i]) for i, cells in self.cells)


def _steps(counter: Counter, domain: Domain, rho: float, split: float) -> Generator[_Request, Ints, Histogram]:
    """Ask for exact counts, add noise to them, and go on by what comes out."""
    if not domain.ordered:
        counts = yield domain.size + 1, lambda places: (places + 1, slice(None))
        noisy, sd = counter.noisy(OneWayCounts, counts, rho)
        return _histogram(domain, np.arange(-1, domain.size), noisy, sd, noisy.sum())
    levels = next(
        level for level in range(1, _MOST_LEVELS + 1) if level == _MOST_LEVELS or _BRANCHES**level >= domain.size
    )
    nodes, leaves, total = [(0, domain.size, -1.0)], list[tuple[int, float]](), 0.0
    for level in range(levels):
        edges = [_children(low, high) for low, high, _ in nodes]
        children = _Children(np.concatenate([e[:-1] for e in edges]), np.concatenate([e[1:] for e in edges]), level > 0)
        noisy, sd = counter.noisy(OneWayCounts, (yield len(children), children), rho / levels)
        if level == 0:
            total = float(noisy.sum())
            noisy = nearest_counts(noisy, max(total, 0.0))
            leaves.append((-1, noisy[0]))
            noisy = noisy[1:]
        nodes, at, parents = [], 0, nodes
        for ends, (_, _, whole) in zip(edges, parents, strict=True):
            many = len(ends) - 1
            own = noisy[at : at + many] if level == 0 else nearest_counts(noisy[at : at + many], whole)
            at += many
            for low, high, count in zip(ends[:-1].tolist(), ends[1:].tolist(), own.tolist(), strict=True):
                divisible = level + 1 < levels and high - low > 1
                if divisible and count > max(split * sd, _LEAST_SHARE * total):
                    nodes.append((low, high, count))
                else:
                    leaves.append((low, count))
        if not nodes:
            break
    leaves.sort()
    first = np.array([start for start, _ in leaves])
    return _histogram(domain, first, np.array([count for _, count in leaves]), sd, total)


@dataclass(frozen=True, eq=False)
class _Children:
    """Intervals of places, disjoint and in order; the first level has a cell of missing ones before them."""

    starts: Ints
    stops: Ints
    below: bool  # the first level

    def __len__(self) -> int:
        return len(self.starts) + (not self.below)

    def __call__(self, places: Ints) -> Cells:
        found = np.searchsorted(self.starts, places, side="right") - 1
        if not self.below:  # the intervals of the first level cover the domain
            return np.where(places < 0, 0, found + 1), slice(None)
        rows = np.flatnonzero((found >= 0) & (places < self.stops[np.maximum(found, 0)]))
        return found[rows], rows


def _histogram(domain: Domain, starts: Ints, noisy: Floats, sd: float, total: float) -> Histogram:
    if not domain.ordered:
        noisy = _towards_equal(noisy, max(total, 1.0), sd)
    counts = nearest_counts(noisy, max(total, 1.0))
    if not domain.nullable or counts[0] <= _FEW_SD * sd:
        counts[0] = 0.0
    measured = len(noisy) if not domain.ordered else _BRANCHES + 1
    return Histogram(domain, starts, shares(counts), sd, float(total), measured)


def _towards_equal(noisy: Floats, total: float, sd: float) -> Floats:
    """Noisy counts of categories; drawn towards equal ones if noise explains most of how they differ.

    Else the few categories with the largest noise would take all people. The weight is that of James and Stein.
    """
    equal = np.full(len(noisy), total / (len(noisy) - 1))
    equal[0] = 0.0  # missing cells
    explained = (len(noisy) - 1) * sd**2 / max(((noisy - equal) ** 2).sum(), 1e-12)
    return noisy if explained < _NOISY else equal + (1 - min(explained, 1.0)) * (noisy - equal)


def _children(low: int, high: int) -> Ints:
    """Edges of the half-open intervals that an interval is divided into."""
    return np.unique(low + (high - low) * np.arange(_BRANCHES + 1, dtype=np.int64) // _BRANCHES)
