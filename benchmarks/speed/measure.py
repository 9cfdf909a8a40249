"""One measured run in a process of its own: CPU, wall, peak memory, information loss, and whether levels hold.

``run_apart`` starts it; ``python -m benchmarks.speed.measure`` is the other end. The data are read from a file, the
kernels are warmed on a few rows, and memory is the peak above what the process held with the data loaded.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.speed.cases import Case, Run, make_levels
from benchmarks.speed.peers import METHODS, Job, Method

__all__ = ["Row", "information_loss", "run_apart"]

ROOT = Path(__file__).resolve().parents[2]
WARM_ROWS, WARM_LEVEL = 100, 25
PILOT_ROWS = 10_000  # rows at most on which a quadratic method is tried before the whole
MOST_REPEATS, REPEAT_WITHIN = 3, 0.5  # repeat while the runs so far took less wall seconds than this
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Row:
    """What one run measured; ``note`` says why there are no numbers, or what to know about them."""

    table: str
    n: int
    d: int
    k: int
    levels: str
    method: str
    threads: int
    seeds: int
    cpu_s: float = float("nan")
    wall_s: float = float("nan")
    memory_mb: float = float("nan")
    loss: float = float("nan")
    losses: str = ""
    groups: int = 0
    below: float = float("nan")
    digest: str = ""
    load: float = float("nan")
    note: str = ""
    measured: str = ""
    key: str = ""

    @property
    def run(self) -> Run:
        """The run that this row is of; of a reference table the sizes are those found."""
        return Run(Case(self.table, self.n, self.d, self.k, self.levels), self.method, self.threads, self.seeds)

    @property
    def each_loss(self) -> NDArray[np.float64]:
        """Information loss for each seed."""
        return np.array([float(part) for part in self.losses.split()])

    @classmethod
    def parse(cls, cells: dict[str, str]) -> Row:
        """Read a row of the CSV."""
        kinds: dict[str, Callable[[str], Any]] = {"int": int, "float": lambda cell: float(cell or "nan"), "str": str}
        return cls(**{f.name: kinds[str(f.type)](cells[f.name]) for f in fields(cls)})

    def cells(self) -> dict[str, str]:
        """Write a row for the CSV; what was not measured is empty."""
        shown = asdict(self)
        return {
            name: ("" if value != value else f"{value:.6g}") if isinstance(value, float) else str(value)
            for name, value in shown.items()
        }


def run_apart(run: Run, data: Path, budget: float, checkout: Path | None = None) -> dict[str, Any]:
    """Measure one run in a fresh process with one BLAS thread; a failure becomes a note.

    With a checkout our methods are those of its sources.
    """
    other = {} if checkout is None else {"PYTHONPATH": str(checkout / "src")}
    order = json.dumps({"run": asdict(run), "data": str(data), "budget": budget})
    limit = 3.0 * budget + 120.0
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.speed.measure", order],
            cwd=ROOT, env=os.environ | ONE_THREAD | other, capture_output=True, text=True, timeout=limit, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"note": f"not run: stopped after {limit:.0f} s"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return {"note": f"failed: {last[:160]}"}
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def measure(run: Run, values: NDArray[np.float64], budget: float) -> dict[str, Any]:
    """Warm up, estimate, time, and look at the labels."""
    method, n = METHODS[run.method], len(values)
    jobs = [Job(values, make_levels(run.case, n, seed), seed, run.threads) for seed in range(run.seeds)]
    few = np.minimum(jobs[0].levels[:WARM_ROWS], WARM_LEVEL)
    method.run(Job(values[: len(few)].copy(), few, 0, run.threads))
    if method.quadratic and n > PILOT_ROWS and (guess := estimate(method, jobs[0])) > budget:
        return {"note": f"not run: estimated {guess:.0f} s"}
    held = settle_memory()
    seconds, labels = clock(method, jobs)
    found = {"cpu_s": seconds[0], "wall_s": seconds[1], "memory_mb": max(0.0, (peak_bytes() - held) / 1e6)}
    if labels[0] is None:
        return found
    losses = [information_loss(values, own) for own in labels if own is not None]
    sizes, below = zip(*(below_level(own, job.levels) for own, job in zip(labels, jobs, strict=True)), strict=True)
    return found | {
        "loss": float(np.mean(losses)),
        "losses": " ".join(f"{loss:.6g}" for loss in losses),
        "groups": sizes[0],
        "below": float(np.mean(below)),
        "digest": digest(labels[0]),
    }


def estimate(method: Method, job: Job) -> float:
    """Time a part of the rows and scale by the square."""
    part = max(min(PILOT_ROWS, len(job.values) // 5), 2 * job.highest)
    began = time.process_time()
    method.run(Job(job.values[:part].copy(), job.levels[:part].copy(), job.seed, job.threads))
    return (time.process_time() - began) * (len(job.values) / part) ** 2


def clock(method: Method, jobs: list[Job]) -> tuple[tuple[float, float], list[Any]]:
    """Give CPU and wall seconds, the mean over seeds or the best of a few runs of one seed, and the labels."""
    taken: list[tuple[float, float]] = []
    labels: list[Any] = []
    for job in jobs if len(jobs) > 1 else jobs * MOST_REPEATS:
        if len(jobs) == 1 and sum(wall for _, wall in taken) > REPEAT_WITHIN:
            break
        cpu, wall = time.process_time(), time.perf_counter()
        labels.append(method.run(job))
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        taken.append((cpu + job.added_seconds, wall + job.added_seconds))
    cpus, walls = zip(*taken, strict=True)
    if len(jobs) > 1:
        return (float(np.mean(cpus)), float(np.mean(walls))), labels
    return (min(cpus), min(walls)), labels[:1]


def information_loss(values: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """Give 100 SSE / SST: the share of the sum of squares that lies inside groups."""
    counts = np.bincount(labels)
    inside = 0.0
    for column in values.T:
        mean = np.bincount(labels, column) / np.maximum(counts, 1)
        inside += float(((column - mean[labels]) ** 2).sum())
    return 100.0 * inside / float(((values - values.mean(axis=0)) ** 2).sum())


def below_level(labels: NDArray[np.int64], levels: NDArray[np.int64]) -> tuple[int, float]:
    """Count groups and give the share of them that are smaller than the highest level inside."""
    counts = np.bincount(labels)
    highest = np.zeros(len(counts), dtype=np.int64)
    np.maximum.at(highest, labels, levels)
    filled = counts > 0
    return int(filled.sum()), float((counts < highest)[filled].mean())


def digest(labels: NDArray[np.int64]) -> str:
    """Hash a partition, whatever its groups are called."""
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    names = np.empty(len(first), dtype=np.int64)
    names[np.argsort(first)] = np.arange(len(first))
    return hashlib.sha256(names[codes].tobytes()).hexdigest()[:12]


def settle_memory() -> int:
    """Give back what is free, forget the peak so far, and tell the bytes held."""
    gc.collect()
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets VmHWM
    except OSError:  # not Linux, or not allowed: then the peak is that of the process's life
        pass
    return _status("VmRSS") or peak_bytes()


def peak_bytes() -> int:
    """Give the peak of resident memory since `settle_memory`."""
    return _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _status(name: str) -> int:
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith(f"{name}:")), 0)


def main() -> int:
    """Read the order, run it, and print the answer as one line of JSON."""
    order = json.loads(sys.argv[1])
    asked = order["run"]
    run = Run(Case(**asked.pop("case")), **asked)
    print(json.dumps(measure(run, np.load(order["data"]), order["budget"])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
