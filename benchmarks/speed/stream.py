"""Arrivals a second of dynamic condensation: against the number of groups, dimensions, brute force and its peers.

Run from the repository root: ``python benchmarks/speed/stream.py [--quick]``.
Two streams: a mixture of 100 spherical clusters, whose centres are uniform in [-10, 10]^d, and one Gaussian without any
structure. The maintainer starts from groups of ten records and absorbs a part of the stream before it is timed, so that
groups have moved and split. What is timed is `Maintainer.absorb` of batches of 1,000 records, all of it: search, update
of the statistics, splits, and building the index anew when that falls due. Beside it stands the search alone, one
record after the other, by NumPy over the same centroids: (a) ``((C - x)**2).sum(1).argmin()`` and (b)
``(c2 - 2*C@x).argmin()``. They take turns, one BLAS thread, CPU time, the best of several rounds of each.

Peers run on the same streams in the same run, d = 10: River's CluStream and DenStream and scikit-learn's Birch. How
well the groups fit is the sum of squared distances of all records to the closest centre (SSQ). The levels of the
maintainer, k and k + 1 in some mixture, are chosen such that it ends with as many groups as the peer, or just fewer;
its time includes the static condensation of the first 500 records. Peers know no level: *below k* counts those of
their groups that are the closest to fewer than k records, which condensation may not make.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.speed.stream_peers import PEERS, Peer, compare  # noqa: E402
from sfumato.core.compiled import compiled, fixed  # noqa: E402
from sfumato.methods.condense.centroid_index import (  # noqa: E402  # noqa: E402
    BLOCK,
    DistanceCache,
    Index,
    cache_size,
    closest_cached,
    closest_in_index,
    empty_cache,
    fill_cache,
)
from sfumato.methods.condense.maintainer import Maintainer  # noqa: E402
from sfumato.methods.condense.slots import Slots  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
K, BATCH = 10, 1_000
SIZES, QUICK_SIZES = (100, 1_000, 10_000, 100_000), (100, 1_000, 10_000)
DIMENSIONS, QUICK_DIMENSIONS = (5, 10, 20, 50), (10,)
KINDS = ("clustered", "unstructured")
GOAL_A, GOAL_B = 40.0, 8.0  # at 10,000 groups, d = 10, clustered
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """Microseconds of CPU: a whole arrival here, the search alone here, and the search alone by (a) and (b)."""

    kind: str
    d: int
    groups: int
    arrival: float
    search: float
    search_a: float
    search_b: float
    means: str
    megabytes: float


def draw(kind: str, n: int, d: int, rng: np.random.Generator) -> Floats:
    values = rng.normal(size=(n, d))
    if kind == "clustered":
        values += np.random.default_rng(d).uniform(-10.0, 10.0, (100, d))[rng.integers(100, size=n)]
    return values


def rough_groups(values: Floats, size: int) -> NDArray[np.int64]:
    """Label records by cutting them at medians until a part has ``size`` records: quick, and good enough to start."""
    labels, following = np.empty(len(values), dtype=np.int64), 0
    parts = [np.arange(len(values))]
    while parts:
        rows = parts.pop()
        if len(rows) < 2 * size:
            labels[rows] = following
            following += 1
            continue
        widest = int(np.argmax(np.var(values[rows[:: max(1, len(rows) // 200)]], axis=0)))
        cut = len(rows) // size // 2 * size
        rows = rows[np.argpartition(values[rows, widest], cut)]
        parts += [rows[:cut], rows[cut:]]
    return labels


def least_time(calls: list[Callable[[], int]], rounds: int) -> list[float]:
    """Give the least microseconds a record of each call, which returns how many it dealt with; calls take turns."""
    least = [math.inf] * len(calls)
    for _ in range(rounds):
        for place, call in enumerate(calls):
            began = process_time()
            records = call()
            least[place] = min(least[place], (process_time() - began) / records * 1e6)
    return least


def measure(kind: str, d: int, groups: int, rounds: int) -> Row:
    rng = np.random.default_rng(7)
    first = draw(kind, groups * K, d, rng)
    maintainer = Maintainer(d, k=K, split="paper")
    maintainer.start(first, np.full(len(first), K), rough_groups(first, K))
    del first
    slow = groups * d > 1_000_000 and kind == "unstructured"
    warm = 300 if slow else min(2 * groups, 10_000)
    for _ in range(2):  # after the first it knows whether the index pays
        maintainer.absorb(draw(kind, warm, d, rng), np.full(warm, K))
    batch = 300 if slow else BATCH
    batches = iter([draw(kind, batch, d, rng) for _ in range(rounds)])
    centres = maintainer.rows().mean
    squares, asked = (centres**2).sum(axis=1), draw(kind, max(5, min(200, 2_000_000 // groups // d)), d, rng)

    def ours() -> int:
        return len(maintainer.absorb(next(batches), np.full(batch, K)).where)

    def plain() -> int:
        return len([int(((centres - x) ** 2).sum(1).argmin()) for x in asked])

    def by_product() -> int:
        return len([int((squares - 2 * centres @ x).argmin()) for x in asked])

    means = "cache" if maintainer._search._caching else "index"
    search_only = searcher(maintainer, draw(kind, batch, d, rng), means)
    arrival, search, search_a, search_b = least_time([ours, search_only, plain, by_product], rounds)
    held = sum(array[: len(centres)].nbytes for array in maintainer._store) / 1e6
    return Row(kind, d, len(centres), arrival, search, search_a, search_b, means, held)


@compiled
def ask_all(
    store: Slots,
    index: Index,
    cache: DistanceCache,
    values: Floats,
    first: int,
    last: int,
    x: Floats,
    found: NDArray[np.int64],
) -> None:
    """Find the closest groups of records, and change nothing."""
    for i in range(first, last):
        x[:] = values[i]
        found[i] = (
            closest_cached(cache, store, i, x, K, 0) if cache.near.shape[0] else closest_in_index(index, store, x, K, 0)
        )


def searcher(maintainer: Maintainer, values: Floats, means: str) -> Callable[[], int]:
    """Give a call that only searches, the way the maintainer does at present."""
    values, found = fixed(values, np.float64), np.empty(len(values), dtype=np.int64)
    paper = np.empty(cache_size(2 * len(maintainer.ids) + 1_000, BLOCK))

    def search() -> int:
        store, index, cache = maintainer._store, maintainer._search.index, empty_cache()
        for first in range(0, len(values), BLOCK):
            last = min(len(values), first + BLOCK)
            if means == "cache":
                cache = fill_cache(cache, store, maintainer._g, values, first, last, paper)
            ask_all(store, index, cache, values, first, last, np.empty(maintainer.d), found)
        return len(values)

    search()
    return search


def table(rows: list[Row]) -> list[str]:
    titles = (
        "stream, d, groups, us an arrival, a second, search us, (a) us, (b) us, (a) / arrival, (b) / arrival, by, MB"
    )
    return _lines(titles, [
        (
            row.kind, f"{row.d}", f"{row.groups:,}", f"{row.arrival:.2f}", f"{1e6 / row.arrival:,.0f}",
            f"{row.search:.2f}", f"{row.search_a:.1f}", f"{row.search_b:.1f}", f"{row.search_a / row.arrival:.1f}",
            f"{row.search_b / row.arrival:.1f}", row.means, f"{row.megabytes:,.1f}",
        )
        for row in rows
    ])  # fmt: skip


def peer_table(peers: list[Peer]) -> list[str]:
    titles = "peer, stream, records, us, groups, below k, SSQ, k, ours us, groups, SSQ, us / ours, SSQ ours / peer"
    return _lines(titles, [
        (
            peer.peer, peer.kind, f"{peer.records:,}", f"{peer.peer_us:.1f}", f"{peer.peer_groups}",
            f"{peer.peer_below}", f"{peer.peer_ssq:.4g}", f"{peer.k:.1f}", f"{peer.own_us:.1f}", f"{peer.own_groups}",
            f"{peer.own_ssq:.4g}", f"{peer.peer_us / peer.own_us:.1f}", f"{peer.own_ssq / peer.peer_ssq:.3f}",
        )
        for peer in peers
    ])  # fmt: skip


def _lines(titles: str, cells: list[tuple[str, ...]]) -> list[str]:
    names = tuple(titles.split(", "))
    return [f"| {' | '.join(line)} |" for line in (names, ("---",) * len(names), *cells)]


def growth(rows: list[Row], kind: str, d: int) -> float | None:
    """Give the exponent with which an arrival grows from 1,000 groups to the most that were measured."""
    own = sorted((row.groups, row.arrival) for row in rows if row.kind == kind and row.d == d and row.groups >= 900)
    if len(own) < 2:
        return None
    return math.log(own[-1][1] / own[0][1]) / math.log(own[-1][0] / own[0][0])


def verdicts(rows: list[Row], peers: list[Peer]) -> list[str]:
    lines = []
    for row in rows:
        if (row.kind, row.d) == ("clustered", 10) and 9_000 < row.groups < 20_000:
            a, b = row.search_a / row.arrival, row.search_b / row.arrival
            lines.append(f"clustered, 10,000 groups, d = 10: {a:.0f} times (a), goal {GOAL_A:.0f}: {_met(a >= GOAL_A)}")
            lines.append(f"clustered, 10,000 groups, d = 10: {b:.1f} times (b), goal {GOAL_B:.0f}: {_met(b >= GOAL_B)}")
    slower = [row for row in rows if row.kind == "unstructured" and row.search > row.search_b]
    cases = ", ".join(f"d = {row.d} with {row.groups:,} groups" for row in slower)
    lines.append(f"unstructured: the search is never slower than (b): {_met(not slower)} {cases}")
    for d in sorted({row.d for row in rows}):
        exponent = growth(rows, "clustered", d)
        if exponent is not None:
            lines.append(f"clustered, d = {d}: an arrival grows as groups^{exponent:.2f}: {_met(exponent < 1.0)}")
    for peer in peers:
        fast, close = peer.own_us < peer.peer_us, peer.own_ssq <= peer.peer_ssq
        lines.append(f"{peer.kind}, against {peer.peer}: faster {_met(fast)}, SSQ equal or lower {_met(close)}")
    return [f"- {line.strip()}" for line in lines]


def _met(good: bool) -> str:
    return "met" if good else "MISSED"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="d = 10, 10,000 groups at most; writes nothing.")
    options = parser.parse_args()
    sizes, dimensions = (QUICK_SIZES, QUICK_DIMENSIONS) if options.quick else (SIZES, DIMENSIONS)
    with threadpool_limits(1):
        rows = []
        for kind in KINDS:
            for d in dimensions:
                for groups in sizes:
                    rows.append(measure(kind, d, groups, 4 if options.quick else 7))
                    print(table(rows)[-1], flush=True)
        peers = []
        for name, (_, long, short) in PEERS.items():
            for kind in KINDS:
                values = draw(kind, short if options.quick else long, 10, np.random.default_rng(11))
                peers.append(compare(name, kind, values))
                print(peer_table(peers)[-1], flush=True)
    found = [*table(rows), "", *peer_table(peers), "", *verdicts(rows, peers)]
    print("\n".join(found))
    if options.quick:
        return
    head = [
        "# Arrivals a second of dynamic condensation",
        "",
        "`python benchmarks/speed/stream.py`; two shared cores, one used.",
        "",
        *(__doc__ or "").splitlines()[3:],
        "",
        "A whole arrival stands beside the search alone by (a) and (b), which favours these: at d = 50 splits and",
        "updates take most of an arrival while groups are few. *Search* is the search alone here; *by* tells how the",
        "closest centroid was found; MB is the memory of the groups, nearly all of it the scatters.",
        "",
    ]
    (RESULTS / "stream.md").write_text("\n".join([*head, *found]) + "\n", encoding="utf-8")
    parts = {"rows": [asdict(row) for row in rows], "peers": [asdict(peer) for peer in peers]}
    (RESULTS / "stream.json").write_text(json.dumps(parts, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
