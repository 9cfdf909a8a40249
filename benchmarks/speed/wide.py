"""Wide and small tables: CPU time and loss of the compact grouping beside exact MDAV, over n, d and k.

Run from the repository root: ``python benchmarks/speed/wide.py [--quick]``. The yardstick of the same run is exact
MDAV on the same table, which compares coordinates and searches nothing; kernels are compiled before. Writes
results/wide.md; ``--quick`` writes nothing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import process_time

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.condense.compact import CompactSearch
from sfumato.methods.condense.partition import partition

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
HIDDEN = 10  # directions in which the records of the made table differ, beside the noise of each column
CASES = (
    (500, 50, 5), (500, 250, 5), (500, 1_000, 5), (500, 2_000, 5), (500, 4_000, 5),
    (250, 2_000, 5), (1_000, 2_000, 5),
    (500, 2_000, 3), (500, 2_000, 10), (500, 2_000, 25),
)  # fmt: skip
QUICK = ((500, 250, 5),)
GOAL_SECONDS, GOAL_CASE = 3.0, (500, 2_000, 5)
EFFORTS = ("fast", "default")


def made(n: int, d: int) -> NDArray[np.float64]:
    """Draw records of some hidden directions and noise, standardized."""
    rng = np.random.default_rng([n, d])
    values = rng.normal(size=(n, HIDDEN)) @ rng.normal(size=(HIDDEN, d)) + rng.normal(size=(n, d))
    return np.asarray((values - values.mean(axis=0)) / values.std(axis=0))


def measured(values: NDArray[np.float64], k: int, grouping: str, effort: str) -> tuple[float, float]:
    """CPU seconds, and 100 SSE / SST."""
    n = len(values)
    levels, strata, rng = np.full(n, k), np.zeros(n, dtype=np.int64), np.random.default_rng(0)
    begin = process_time()
    labels = partition(values, levels, strata, rng, grouping=grouping, effort=effort, search=CompactSearch(threads=1))
    seconds = process_time() - begin
    means = np.stack([np.bincount(labels, column) for column in values.T], axis=1) / np.bincount(labels)[:, None]
    return seconds, float(100.0 * ((values - means[labels]) ** 2).sum() / values.size)


def main() -> None:
    """Measure each case and write the page."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one case, nothing is written")
    quick = parser.parse_args().quick
    for grouping in ("compact", "mdav"):
        measured(made(60, 90), 5, grouping, "default")
    lines = []
    goal = ""
    for n, d, k in QUICK if quick else CASES:
        values = made(n, d)
        yard, base = measured(values, k, "mdav", "default")
        cells = [f"| {n:,} | {d:,} | {k} | {yard:.2f} | {base:.2f}"]
        for effort in EFFORTS:
            seconds, lost = measured(values, k, "compact", effort)
            cells.append(f"{seconds:.2f} | {seconds / yard:.1f} | {lost / base:.3f}")
            if (n, d, k) == GOAL_CASE and effort == "default":
                verdict = "met" if seconds <= GOAL_SECONDS else "missed"
                goal = f"- {n:,} x {d:,}, k = {k}: {seconds:.2f} CPU seconds (goal {GOAL_SECONDS:g}): {verdict}"
        lines.append(" | ".join(cells) + " |")
        print(lines[-1], flush=True)
    if quick:
        return
    head = [
        "# Wide and small tables",
        "",
        "`python benchmarks/speed/wide.py`; two shared cores with other work on them, one thread, kernels compiled.",
        f"Records of {HIDDEN} hidden directions and noise in every column. Loss is 100 SSE / SST; time and loss of the",
        "compact grouping stand beside those of exact MDAV on the same table in the same run.",
        "",
        "| n | d | k | MDAV CPU s | loss % | fast CPU s | / MDAV | its loss | default CPU s | / MDAV | its loss |",
        "| ---: " * 11 + "|",
    ]
    (RESULTS / "wide.md").write_text("\n".join([*head, *lines, "", goal]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
