"""Columns of very many categories: time, memory, and what is left of what they tell, beside 100 categories.

python -m benchmarks.speed.categories; writes benchmarks/results/categories.md. A run is a process of its own, so that
its peak of memory is its own; the yardstick is the same method in the same run on a column of 100 categories.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

RESULTS = Path(__file__).parents[1] / "results" / "categories.md"
CASES = ((12_000, 100), (12_000, 300), (100_000, 100), (100_000, 5_000))
SMALL_CASES = ((12_000, 100), (12_000, 300), (12_000, 5_000))
METHODS = {"condense": CASES, "chain": CASES, "stream": SMALL_CASES}


def measure(method: str, rows: int, categories: int) -> dict[str, float]:
    """CPU seconds and peak memory of one run, and how well a category still tells a number that goes with it."""
    import pyarrow as pa

    import sfumato as sf

    rng = np.random.default_rng(1)
    code, mean = rng.integers(0, categories, rows), rng.normal(size=categories)
    number = mean[code] + rng.normal(0, 0.5, rows)
    labels = np.array([f"c{place:05d}" for place in range(categories)])
    table = pa.table({"code": labels[code], "size": number.round(3), "age": rng.integers(18, 90, rows)})
    if method == "stream":
        _streamed(table.slice(0, 1_000), 500)
        begin = process_time()
        made = _streamed(table, rows - rows // 4)
    else:
        sf.sanitize(table.slice(0, 1_000), method=method, seed=1, report=False, k=10)  # kernels are compiled
        begin = process_time()
        made = sf.sanitize(table, method=method, seed=1, report=False, rows_are_people=True).table
    seconds = process_time() - begin
    places = {label: place for place, label in enumerate(labels)}
    drawn = np.array([places.get(label, -1) for label in made.column("code").to_pylist()])
    told = [np.corrcoef(mean[code], number)[0, 1]]
    told.append(np.corrcoef(mean[drawn[drawn >= 0]], made.column("size").to_numpy()[drawn >= 0])[0, 1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    kept = len(set(made.column("code").to_pylist()) - {"other"})
    return {"seconds": seconds, "megabytes": peak, "kept": kept, "before": told[0], "after": told[1]}


def _streamed(table: pa.Table, first: int) -> pa.Table:
    """What a stream publishes that starts with the given number of rows and ingests the others."""
    import sfumato as sf

    with tempfile.TemporaryDirectory() as folder:
        stream = sf.stream(Path(folder) / "state", table.slice(0, first), k=10, seed=1)
        stream.ingest(table)
        return stream.publish(Path(folder) / "epoch", report=False).table


def main() -> None:
    """Run every case in a process of its own and write the table."""
    lines = [
        "# Columns of very many categories",
        "",
        "Made by `python -m benchmarks.speed.categories`; k = 10, one BLAS thread. A number goes with the category",
        "(correlation with the category's true mean: original, released). That a chain orders very many categories by",
        "what they go with was decided on a table made alike, where without it 0.07 was left of 0.90. A stream begins",
        "with three quarters of the rows; what comes later with a category that is new is kept out.",
        "",
        "| method | rows | categories | released | CPU s | x 100 categories | peak MB | original | released |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for method, cases in METHODS.items():
        usual: dict[int, float] = {}
        for rows, categories in cases:
            words = [sys.executable, "-m", "benchmarks.speed.categories", method, str(rows), str(categories)]
            found = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
            usual.setdefault(rows, found["seconds"])
            lines.append(
                f"| {method} | {rows} | {categories} | {found['kept']:.0f} | {found['seconds']:.1f} | "
                f"{found['seconds'] / usual[rows]:.2f} | {found['megabytes']:.0f} | {found['before']:.3f} | "
                f"{found['after']:.3f} |"
            )
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
    else:
        main()
