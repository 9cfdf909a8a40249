"""Section 3 of AY05 transcribed step by step, with the decisions of errata AY05.1 to AY05.3.

Written from the paper: raw sums Fs and Sc about the origin, Ps as a fraction, every centroid, covariance matrix and
eigenvector computed anew, every centroid looked at. Slow on purpose. Where rounding may decide between equals, `Tie` is
raised.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tests.oracles.ay05 import Tie

NEAR = 1e-6
"""Relative difference below which rounding may decide."""


@dataclass
class Condensed:
    """A group: its id, n(G), Fs(G), Sc(G), Ps(G)."""

    name: int
    n: int
    fs: NDArray[np.float64]
    sc: NDArray[np.float64]
    ps: Fraction

    @property
    def centroid(self) -> NDArray[np.float64]:
        """Y(M) = Fs / n [eq. 3.3]."""
        return np.asarray(self.fs / self.n)

    @property
    def covariance(self) -> NDArray[np.float64]:
        """C_ij = Sc_ij / n - Fs_i Fs_j / n^2 [observation 2.2]."""
        return np.asarray(self.sc / self.n - np.outer(self.fs, self.fs) / self.n**2)


@dataclass
class Dynamic:
    """The groups, the records that wait, and the next id."""

    groups: list[Condensed] = field(default_factory=list)
    waiting: list[tuple[NDArray[np.float64], int]] = field(default_factory=list)
    following: int = 0

    def start(self, values: NDArray[np.float64], levels: Sequence[int], labels: Sequence[int]) -> None:
        """Take the groups that the static process made of the first InitNumber records."""
        for label in range(max(labels) + 1):
            rows = [i for i, own in enumerate(labels) if own == label]
            fs, sc = values[rows].sum(axis=0), sum(np.outer(values[i], values[i]) for i in rows)
            ps = Fraction(sum(levels[i] for i in rows))
            self.groups.append(Condensed(self.following, len(rows), fs, np.asarray(sc), ps))
            self.following += 1

    def arrive(self, x: NDArray[np.float64], p: int) -> None:
        """Receive a data point; then let those that wait try again, in order of arrival, until none finds a group."""
        if not self.add(x, p):
            self.waiting.append((x, p))
            return
        tried = 0
        while tried < len(self.waiting):
            if self.add(*self.waiting[tried]):
                del self.waiting[tried]
                tried = 0
            else:
                tried += 1

    def add(self, x: NDArray[np.float64], p: int) -> bool:
        """Add a point to the closest cluster with at least p - 1 points inside it, and split that if (3.2) holds."""
        closest = closest_cluster(self.groups, x, p)
        if closest is None:
            return False
        closest.n += 1
        closest.fs = closest.fs + x
        closest.sc = closest.sc + np.outer(x, x)
        closest.ps += p
        if closest.n >= 2 * closest.ps / closest.n:  # (3.2)
            self.groups.remove(closest)
            self.groups += split(closest, self.following)
            self.following += 2
        return True


def closest_cluster(groups: Sequence[Condensed], x: NDArray[np.float64], p: int) -> Condensed | None:
    """Find the closest centroid among the clusters that are large enough."""
    large = [group for group in groups if group.n >= p - 1]
    if not large:
        return None
    apart = np.array([((x - group.centroid) ** 2).sum() for group in large])
    nearest, *others = np.sort(apart)[:2]
    if others and others[0] - nearest <= NEAR * others[0]:
        raise Tie
    return large[int(apart.argmin())]


def split(m: Condensed, name: int) -> list[Condensed]:
    """Figure 7, with the cut at f = n1 / n for odd counts (errata AY05.3)."""
    covariance = m.covariance
    eigenvalues, eigenvectors = np.linalg.eigh(covariance)
    lambda1, e1 = eigenvalues[-1], eigenvectors[:, -1]
    if len(eigenvalues) > 1 and lambda1 - eigenvalues[-2] <= 1e-3 * lambda1:
        raise Tie  # the axis is not determined well enough
    side = sum(math.cos(place + 1) * component for place, component in enumerate(e1))
    if abs(side) <= NEAR:
        raise Tie  # the side of the first piece is not
    e1 = e1 * math.copysign(1.0, side)
    a = np.sqrt(12.0 * lambda1)
    n1 = m.n // 2
    f = n1 / m.n
    pieces = []
    for place, (n, share, shift) in enumerate([(n1, f, -(1.0 - f) * a / 2.0), (m.n - n1, 1.0 - f, f * a / 2.0)]):
        delta = eigenvalues.copy()
        delta[-1] = share**2 * lambda1  # lambda1 / 4 for even counts
        c = eigenvectors @ np.diag(delta) @ eigenvectors.T  # C(M1) = P Delta P^T
        fs = n * (m.centroid + shift * e1)
        sc = n * c + np.outer(fs, fs) / n
        pieces.append(Condensed(name + place, n, fs, sc, m.ps * n / m.n))
    return pieces
