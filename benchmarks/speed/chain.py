"""The chain as a command: CPU time and peak of memory over n and d, beside one scikit-learn tree of the same run.

Run from the repository root: ``python benchmarks/speed/chain.py [ROWSxCOLUMNS ...]``. Columns hang on ten hidden
causes: of ten each six are decimals, two whole numbers, and two categories, of which the first is the target, so that
numbers have slopes for each class. The yardstick is one tree of the last number by all others with leaves of 50: a
sequential CART grows one for each column. Each case is a process of its own; all cases together write results/chain.md.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "chain.md"
CASES = ((100_000, 10), (100_000, 25), (100_000, 50), (10_000, 75), (10_000, 300), (1_000_000, 10))
GROWTH = (((100_000, 10), (100_000, 50)), ((100_000, 25), (100_000, 50)), ((10_000, 75), (10_000, 300)))
HIDDEN, LEAF = 10, 50


def made(n: int, d: int) -> pa.Table:
    """Numbers and categories of some hidden causes, and noise."""
    rng = np.random.default_rng(7)
    values = rng.normal(size=(n, HIDDEN)) @ rng.normal(size=(HIDDEN, d)) + 1.5 * rng.normal(size=(n, d))
    columns = dict[str, pa.Array]()
    for place in range(d):
        column = values[:, place]
        if place % 10 in (3, 9):
            labels = np.clip(column / 3 + 1.5, 0, 2).astype(np.int64)
            columns[f"x{place}"] = pa.array(["low", "middle", "high"]).take(pa.array(labels))
        else:
            columns[f"x{place}"] = pa.array(column.round(0 if place % 10 in (4, 7) else 3))
    return pa.table(columns)


def tree_seconds(table: pa.Table) -> float:
    """CPU seconds of one tree of the last number by all other columns."""
    from sklearn.tree import DecisionTreeRegressor

    columns = [
        column.combine_chunks().dictionary_encode().indices if pa.types.is_string(column.type) else column
        for column in table.columns
    ]
    last = max(place for place, column in enumerate(table.columns) if pa.types.is_floating(column.type))
    x = np.column_stack([column.to_numpy() for place, column in enumerate(columns) if place != last])
    begin = process_time()
    DecisionTreeRegressor(min_samples_leaf=LEAF).fit(x, columns[last].to_numpy())
    return process_time() - begin


def measured(n: int, d: int) -> tuple[float, float, float]:
    """CPU seconds and peak of memory in MB of the command, and CPU seconds of the yardstick."""
    with tempfile.TemporaryDirectory() as folder:
        table = made(n, d)
        pq.write_table(table, Path(folder, "table.parquet"))
        words = ["sanitize", f"{folder}/table.parquet", "-o", f"{folder}/out", "--method", "chain", "--target", "x3"]
        run = ["/usr/bin/time", "-f", "%M", sys.executable, "-m", "sfumato.cli", *words, "--no-report", "--quiet"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(run, capture_output=True, text=True, check=True, cwd=ROOT)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return seconds, int(done.stderr.strip().splitlines()[-1]) / 1024, tree_seconds(table)


def main() -> None:
    """Measure the cases, and write the page if they were all."""
    cases = [tuple(map(int, word.split("x"))) for word in sys.argv[1:]] or list(CASES)
    lines = ["| rows x columns | CPU s | one tree, CPU s | ratio | peak MiB |", "|---|---:|---:|---:|---:|"]
    took = {}
    for n, d in cases:
        took[n, d], peak, tree = measured(n, d)
        lines.append(f"| {n:,} x {d} | {took[n, d]:.1f} | {tree:.1f} | {took[n, d] / tree:.1f} | {peak:.0f} |")
        print(lines[-1], flush=True)
    if len(sys.argv) > 1:
        return
    growth = [
        f"- {n:,} rows, {few} to {many} columns: d^{np.log(took[n, many] / took[n, few]) / np.log(many / few):.2f}"
        for (n, few), (_, many) in GROWTH
    ]
    n_power = np.log10(took[1_000_000, 10] / took[100_000, 10])
    load = f"Load of the machine at the end: {os.getloadavg()[1]:.1f} on {os.cpu_count()} cores."
    head = ["# The chain as a command", "", f"`python benchmarks/speed/chain.py`. {str(__doc__).splitlines()[0]}", load]
    head.append("A sequential CART grows a tree for each column, by half of the others on average.")
    growth.append(f"- 10 columns, 100,000 to 1,000,000 rows: n^{n_power:.2f}")
    RESULTS.write_text("\n".join([*head, "", *lines, "", "Growth:", "", *growth]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
