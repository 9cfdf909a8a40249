"""Peers of dynamic condensation on the same streams: River's CluStream and DenStream and scikit-learn's Birch.

Part of ``benchmarks/speed/stream.py``. How well groups fit is the sum of squared distances of all records to the
closest centre (SSQ). The levels of the maintainer, k and k + 1 in some mixture, are chosen such that it ends with as
many groups as the peer, or just fewer; its time includes the static condensation of the first 500 records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import process_time

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.condense.compact import CompactSearch
from sfumato.methods.condense.maintainer import Maintainer
from sfumato.methods.condense.partition import partition

__all__ = ["PEERS", "Peer", "compare"]

BATCH = 1_000
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Peer:
    """A peer and the maintainer on the same records; ``peer_below`` of the peer's groups have fewer than k records."""

    peer: str
    kind: str
    records: int
    peer_us: float
    peer_groups: int
    peer_below: int
    peer_ssq: float
    k: float
    own_us: float
    own_groups: int
    own_ssq: float


def fit(values: Floats, centres: Floats, k: float) -> tuple[float, int]:
    """Give the sum of squared distances to the closest centres, and how many of these have fewer than k records."""
    total, sizes = 0.0, np.zeros(len(centres), dtype=np.int64)
    for part in np.array_split(values, -(-len(values) // 500)):
        apart = ((part[:, None, :] - centres[None]) ** 2).sum(axis=2)
        total += float(apart.min(axis=1).sum())
        sizes += np.bincount(apart.argmin(axis=1), minlength=len(centres))
    return total, int((sizes < k).sum())


def condensed(values: Floats, level: float, first: int = 500) -> tuple[float, Floats]:
    """Run the maintainer over a stream with this mean level; CPU seconds, those of the start too, and centroids."""
    low = int(level)
    levels = low + (np.random.default_rng(3).random(len(values)) < level - low)
    first = min(max(first, 4 * low + 4), len(values) // 2)
    began = process_time()
    maintainer, strata = Maintainer(values.shape[1], k=2, split="paper"), np.zeros(first, dtype=np.int64)
    labels = partition(
        values[:first], levels[:first], strata, np.random.default_rng(1), effort="fast", search=CompactSearch(threads=1)
    )
    maintainer.start(values[:first], levels[:first], labels)
    for start in range(first, len(values), BATCH):
        maintainer.absorb(values[start : start + BATCH], levels[start : start + BATCH])
    return process_time() - began, maintainer.rows().mean


def with_at_most(values: Floats, groups: int) -> tuple[float, float, Floats]:
    """Find the mean level that leaves as many groups as possible, but no more than these; level, seconds, centroids."""
    low, high = 2.0, 4.0 * len(values) / groups
    found: tuple[float, float, Floats] | None = None
    for _ in range(14):
        level = (low + high) / 2.0
        seconds, centres = condensed(values, level)
        if len(centres) > groups:
            low = level
            continue
        high = level
        if found is None or len(centres) > len(found[2]):
            found = (level, seconds, centres)
    if found is None:
        raise ValueError(f"no level leaves at most {groups} groups; give the peer other options")
    return found


def run_clustream(values: Floats) -> tuple[float, Floats]:
    from river import cluster

    peer = cluster.CluStream(n_macro_clusters=5, max_micro_clusters=200, time_gap=10**9, seed=1)
    rows = [dict(enumerate(row)) for row in values.tolist()]
    began = process_time()
    for row in rows:
        peer.learn_one(row)
    seconds = process_time() - began
    return seconds, np.array([[part.center[t] for t in rows[0]] for part in peer.micro_clusters.values()])


def run_denstream(values: Floats) -> tuple[float, Floats]:
    from river import cluster

    peer = cluster.DenStream(decaying_factor=1e-6, beta=0.5, mu=2.5, epsilon=4.0, n_samples_init=500)
    rows = [dict(enumerate(row)) for row in values.tolist()]
    began = process_time()
    for row in rows:
        peer.learn_one(row)
    seconds = process_time() - began
    parts = [*peer.p_micro_clusters.values(), *peer.o_micro_clusters.values()]
    return seconds, np.array([[part.calc_center(peer.timestamp)[t] for t in rows[0]] for part in parts])


def run_birch(values: Floats) -> tuple[float, Floats]:
    from sklearn.cluster import Birch

    peer = Birch(threshold=3.0, n_clusters=None)
    began = process_time()
    for start in range(0, len(values), BATCH):
        peer.partial_fit(values[start : start + BATCH])
    return process_time() - began, np.asarray(peer.subcluster_centers_)


PEERS: dict[str, tuple[Callable[[Floats], tuple[float, Floats]], int, int]] = {
    "River CluStream": (run_clustream, 4_000, 1_000),
    "River DenStream": (run_denstream, 20_000, 3_000),
    "scikit-learn Birch": (run_birch, 20_000, 3_000),
}


def compare(name: str, kind: str, values: Floats) -> Peer:
    """Run a peer over a stream, and the maintainer with as many groups."""
    seconds, centres = PEERS[name][0](values)
    k, own, own_centres = with_at_most(values, len(centres))
    per = 1e6 / len(values)
    peer_ssq, below = fit(values, centres, k)
    return Peer(
        peer=name, kind=kind, records=len(values), peer_us=seconds * per, peer_groups=len(centres), peer_below=below,
        peer_ssq=peer_ssq, k=k, own_us=own * per, own_groups=len(own_centres), own_ssq=fit(values, own_centres, k)[0],
    )  # fmt: skip
