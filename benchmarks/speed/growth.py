"""How condensation grows with rows, columns and level, beside all nearest neighbours by a k-d tree in the same run.

Run from the repository root: ``python benchmarks/speed/growth.py``. CPU seconds of one thread, best of up to three
runs, on standard normal rows; memory is the peak of a further run under tracemalloc, results included and the given
rows not, at one size. The yardstick finds the k nearest neighbours of every row with scikit-learn's KDTree. Exponents b
are those of CPU seconds ~ n^b, fitted over all n by least squares on logarithms. Seconds depend on the machine;
ratios and exponents hardly.
"""

from __future__ import annotations

import csv
import resource
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.neighbors import KDTree
from threadpoolctl import threadpool_limits

from sfumato.condense.construct import construct_groups
from sfumato.groups import generate, summarize
from sfumato.records import Block, BlockKind

ROWS = (2_000, 5_000, 10_000, 20_000)
DIMS = (2, 10, 50)
LEVELS = (5, 25)
WEIGHED = 10_000  # rows at which peak memory is taken: tracing slows the grouping
YARDSTICK = "KDTree"
COLUMNS = (YARDSTICK, "one level", "levels k..5k", "generate")
MOST_REPEATS, REPEAT_WITHIN = 3, 0.4  # repeat while the runs so far took less CPU seconds than this
MEGABYTE = 1e6


def best_seconds(task: Callable[[], object]) -> float:
    """Give the least CPU seconds of up to three runs; slow tasks run once."""
    taken: list[float] = []
    while len(taken) < MOST_REPEATS and sum(taken) < REPEAT_WITHIN:
        began = time.process_time()
        task()
        taken.append(time.process_time() - began)
    return min(taken)


def peak_megabytes(task: Callable[[], object]) -> float:
    """Give the peak of memory that one run allocates."""
    tracemalloc.start()
    task()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / MEGABYTE


def tasks(n: int, d: int, k: int) -> dict[str, Callable[[], object]]:
    """Prepare what is timed at one size; data are made here, outside the clock."""
    rng = np.random.default_rng([n, d, k])
    values, order = rng.standard_normal((n, d)), rng.permutation(n)
    one, many = np.full(n, k), rng.integers(k, 5 * k + 1, size=n)
    labels = np.minimum(np.arange(n) // k, n // k - 1)
    groups = summarize(values[np.argsort(values[:, 0])], labels, one)
    layout = tuple(Block(f"x{j}", BlockKind.NUMBER, j, j + 1, (0.0,)) for j in range(d))
    return {
        YARDSTICK: lambda: KDTree(values).query(values, k=k),
        "one level": lambda: construct_groups(values, one, order),
        "levels k..5k": lambda: construct_groups(values, many, order),
        "generate": lambda: generate(groups, layout, np.random.default_rng(0)),
    }


def measure(d: int, k: int) -> list[dict[str, float | str]]:
    """Measure all sizes for one number of columns and one level."""
    rows: list[dict[str, float | str]] = []
    for n in ROWS:
        todo = tasks(n, d, k)
        seconds = {name: best_seconds(task) for name, task in todo.items()}
        for name, task in todo.items():
            weighed = n == WEIGHED and name != YARDSTICK
            memory = peak_megabytes(task) if weighed else float("nan")
            ratio = seconds[name] / seconds[YARDSTICK]
            rows.append({"task": name, "n": n, "d": d, "k": k, "s": seconds[name], "ratio": ratio, "peak_mb": memory})
    return rows


def exponent(rows: list[dict[str, float | str]], task: str) -> float:
    """Fit b of seconds ~ n^b."""
    points = [(float(row["n"]), float(row["s"])) for row in rows if row["task"] == task]
    logs = np.log(np.array(points))
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


def show(rows: list[dict[str, float | str]], d: int, k: int) -> None:
    """Print one block: seconds and ratio to the yardstick for each n, then exponents and peak memory."""
    found = {(row["task"], row["n"]): row for row in rows}
    for n in ROWS:
        cells = [f"{found[YARDSTICK, n]['s']:10.4f}"]
        cells += [f"{found[name, n]['s']:10.4f} {float(found[name, n]['ratio']):7.2f}x" for name in COLUMNS[1:]]
        print(f"{d:3d} {k:3d} {n:7,d} " + " ".join(cells))
    powers = [f"n^{exponent(rows, name):.2f}" for name in COLUMNS]
    memory = ["", *(f"{found[name, WEIGHED]['peak_mb']:.1f} MB" for name in COLUMNS[1:])]
    for head, cells in (("growth", powers), (f"peak, {WEIGHED:,}", memory)):
        print(f"{head:>15} {cells[0]:>10} " + " ".join(f"{cell:>10}{' ' * 9}" for cell in cells[1:]))
    print(flush=True)


def main() -> int:
    """Measure, print and write results/growth.csv."""
    began = time.perf_counter()
    results: list[dict[str, float | str]] = []
    print("CPU seconds of one thread, and their ratio to all k nearest neighbours by KDTree\n")
    heads = [f"{YARDSTICK:>10}", *(f"{name:>19}" for name in COLUMNS[1:])]
    print("  d   k       n " + " ".join(heads))
    with threadpool_limits(limits=1):
        for task in tasks(500, 2, 5).values():
            task()  # compiles, or reads the compiled code
        for d in DIMS:
            for k in LEVELS:
                rows = measure(d, k)
                for row in rows:
                    row["exponent"] = exponent(rows, str(row["task"]))
                show(rows, d, k)
                results += rows
    write(results, Path(__file__).resolve().parents[1] / "results" / "growth.csv")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MEGABYTE
    print(f"{time.perf_counter() - began:.0f} s; the whole process held at most {peak:.0f} MB")
    return 0


def write(results: list[dict[str, float | str]], path: Path) -> None:
    """Write one row for each task and size; peak memory at one size only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["task", "n", "d", "k", "cpu_seconds", "ratio_to_kdtree", "exponent", "peak_mb"])
        for row in results:
            memory = float(row["peak_mb"])
            numbers = [f"{row['s']:.5f}", f"{row['ratio']:.4f}", f"{row['exponent']:.3f}"]
            writer.writerow(
                [row["task"], row["n"], row["d"], row["k"], *numbers, f"{memory:.2f}" if memory > 0 else ""]
            )


if __name__ == "__main__":
    sys.exit(main())
