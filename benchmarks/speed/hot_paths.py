"""Paths that most of a run goes through, each beside a yardstick in the same run, in CPU seconds.

Run from the repository root: ``python benchmarks/speed/hot_paths.py``. CPU seconds and ratios, for machines are shared;
path and yardstick take turns and the best of each is taken. Kernels are compiled before.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import sfumato as sf  # noqa: E402
from benchmarks.speed.stream import draw, rough_groups  # noqa: E402
from sfumato.core.distributions.domains import Integers, Reals  # noqa: E402
from sfumato.core.distributions.spec import NoiseSpec  # noqa: E402
from sfumato.core.neighbours import nearest  # noqa: E402
from sfumato.methods.condense.maintainer import Maintainer  # noqa: E402
from sfumato.stream.connectors import ReadOptions, read_batches  # noqa: E402
from sfumato.stream.session import StreamSession  # noqa: E402
from sfumato.survey.reconstruct import reconstruct  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "hot_paths.md"
TURNS = 2
K = 10


@dataclass(frozen=True)
class HotPath:
    """One path and what it stands beside; either gives back the CPU seconds that it took."""

    name: str
    beside: str
    ours: Callable[[], float]
    yardstick: Callable[[], float]


def spent(work: Callable[[], object]) -> float:
    before = os.times()
    work()
    after = os.times()
    return after.user + after.system - before.user - before.system


def mixture(rows: int, columns: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(7)
    return np.asarray(
        rng.normal(scale=3.0, size=(20, columns))[rng.integers(0, 20, rows)] + rng.normal(size=(rows, columns))
    )


def search(name: str, rows: NDArray[np.float64]) -> HotPath:
    from sklearn.neighbors import NearestNeighbors

    queries, rows = rows[:2_000], rows[2_000:]
    nearest(rows[:300], queries[:3])

    def brute() -> None:
        with threadpool_limits(limits=1):
            NearestNeighbors(n_neighbors=1, algorithm="brute").fit(rows).kneighbors(queries)

    label = f"nearest row of 2,000 among {len(rows):,} x {rows.shape[1]}, {name}"
    return HotPath(label, "scikit-learn, brute", lambda: spent(lambda: nearest(rows, queries)), lambda: spent(brute))


def reconstruction() -> HotPath:
    spec = NoiseSpec(Integers(0, 400), {"name": "keep-or-replace", "keep": 0.3})
    rng = np.random.default_rng(1)
    sent = np.where(rng.random(50_000) < 0.3, rng.binomial(400, 0.4, 50_000), rng.integers(0, 401, 50_000))
    free = reconstruct.__wrapped__  # type: ignore[attr-defined]

    def run(call: Callable[..., object]) -> float:
        return spent(lambda: call(sent, spec))

    return HotPath(
        "reconstruct, 401 values, 50,000 records",
        "the same on all threads",
        lambda: run(reconstruct),
        lambda: run(free),
    )


def fine_grid() -> HotPath:
    """A column in steps of 0.0001 with bands, beside one of as many records in steps of 0.05."""
    incomes = np.clip(np.random.default_rng(3).lognormal(np.log(3.5), 0.5, 20_640), 0.5, 15.0)

    def run(step: float) -> float:
        spec = NoiseSpec(Reals(0.5, 15.0, step), {"name": "laplace", "scale": 7.25})
        sent = spec.randomize(incomes, np.random.default_rng(4))
        return spent(lambda: reconstruct(sent, spec, intervals=20))

    return HotPath(
        "reconstruct, 20,640 records on 145,001 places, 20 intervals with bands",
        "the same on 291 places",
        lambda: run(0.0001),
        lambda: run(0.05),
    )


def ingestion(folder: str, rows: int = 20_000, first: int = 2_000) -> HotPath:
    values = mixture(rows + first, 10).round(3)
    table = pa.table({f"x{column}": values[:, column] for column in range(10)})
    pa.csv.write_csv(table.slice(first), Path(folder) / "rows.csv")
    names = iter(range(10 * TURNS))

    def begun() -> StreamSession:
        state = Path(folder) / f"{next(names)}.state"
        sf.stream(state, table.slice(0, first), k=K, seed=1)
        return StreamSession.open(state)

    def ours() -> float:
        with begun() as session:
            reading = ReadOptions(rows=session.settings.batch_rows, columns=session.codec.schema.names)
            return spent(lambda: session.ingest(read_batches(str(Path(folder) / "rows.csv"), reading)))

    def alone() -> float:
        with begun() as session:
            coordinates = session.codec.encode(table.slice(first)).values
            return spent(lambda: session.maintainer.absorb(coordinates, np.full(rows, K)))

    return HotPath(f"stream ingest of {rows:,} x 10 from CSV", "the maintainer alone", ours, alone)


def arrivals(groups: int, count: int = 1_000) -> HotPath:
    def one_by_one(kind: str) -> float:
        rng = np.random.default_rng(7)
        first = draw(kind, groups * K, 10, rng)
        maintainer = Maintainer(10, k=K)
        maintainer.start(first, np.full(len(first), K), rough_groups(first, K))
        values, level = draw(kind, count, 10, rng), np.array([K])
        return spent(lambda: [maintainer.absorb(values[row : row + 1], level) for row in range(count)])

    return HotPath(
        f"{count:,} arrivals one by one, {groups:,} groups, unstructured",
        "the same, clustered",
        lambda: one_by_one("unstructured"),
        lambda: one_by_one("clustered"),
    )


def main() -> None:
    lines = ["| path | CPU s | beside | CPU s | ratio |", "|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        gaussian = np.random.default_rng(3).normal(size=(240_000, 20))
        for path in (
            search("a mixture", mixture(300_000, 20)),
            search("one Gaussian", gaussian),
            reconstruction(),
            fine_grid(),
            ingestion(folder),
            arrivals(300),
            arrivals(3_000),
        ):
            path.ours()
            turns = [(path.ours(), path.yardstick()) for _ in range(TURNS)]
            ours, other = (min(column) for column in zip(*turns, strict=True))
            lines.append(f"| {path.name} | {ours:.2f} | {path.beside} | {other:.2f} | {ours / other:.2f} |")
            print(lines[-1], flush=True)
    text = RESULTS.read_text().split("\n| path |")
    tail = text[1].split("\n\n", 1)[1] if len(text) > 1 else ""
    RESULTS.write_text(text[0] + "\n" + "\n".join(lines) + "\n\n" + tail)


if __name__ == "__main__":
    main()
