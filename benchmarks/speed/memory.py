"""Peak of memory of a run of the command with its report: a million rows of 20 mixed columns, all rows at once.

Run from the repository root: ``python benchmarks/speed/memory.py [--rows N] [CASE ...]``, cases being ``chain``,
``condense``, ``evaluate`` and ``verify`` (the last two of what ``chain`` writes). The table has 10 columns of numbers,
2 of dates, 6 of categories and 2 of yes or no, a twentieth of the cells of five missing; it is generated into a
temporary folder, which is removed at the end. Each case is a process of its own, so that its peak is its own.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[2]
CASES = ("chain", "condense", "evaluate", "verify")
GAPS = ("x1", "x4", "n2", "c1", "ended")


def mixed(rows: int) -> pa.Table:
    """Numbers, dates and categories that hang together through six kinds of people."""
    rng = np.random.default_rng(8)
    kind = rng.integers(0, 6, rows)
    base = rng.normal(size=(rows, 4)) + kind[:, None]
    columns = {}
    for place in range(6):
        slopes = np.random.default_rng(place).normal(size=4)
        columns[f"x{place}"] = pa.array((base @ slopes + rng.normal(size=rows)).round(3))
    for place in range(4):
        counts = np.maximum(0, (base[:, place] * 10 + 40 + rng.normal(scale=4, size=rows)).round())
        columns[f"n{place}"] = pa.array(counts.astype(np.int64))
    begun = (12_000 + 900 * kind + rng.integers(0, 2_000, rows)).astype(np.int32)
    columns["begun"] = pa.array(begun).cast(pa.date32())
    columns["ended"] = pa.array((begun + rng.integers(0, 400, rows)).astype(np.int32)).cast(pa.date32())
    for place, many in enumerate((3, 4, 5, 6, 8, 12)):
        labels = pa.array([f"{'abcdef'[place]}-label-{each}" for each in range(many)])
        columns[f"c{place}"] = labels.take(pa.array((kind + rng.integers(0, 3, rows)) % many))
    columns["b0"], columns["b1"] = pa.array(base[:, 0] > 2), pa.array(rng.random(rows) < 0.3)
    for name in GAPS:
        gone = pa.array(rng.random(rows) < 0.05)
        columns[name] = pc.if_else(gone, pa.scalar(None, columns[name].type), columns[name])
    return pa.table(columns)


def timed(words: list[str]) -> str:
    """CPU seconds and peak of memory of the command, in words; its exit may be that of a policy that is not met."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = ["/usr/bin/time", "-f", "%M", sys.executable, "-m", "sfumato.cli", *words, "--quiet"]
    done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=ROOT, env={**os.environ})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    peak = int(done.stderr.strip().splitlines()[-1]) / 1024
    return f"{seconds:.0f} CPU s, peak {peak:.0f} MiB (exit {done.returncode})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="CASE")
    parser.add_argument("--rows", type=int, default=1_000_000)
    told = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    source, out = str(folder / "table.parquet"), str(folder / "out")
    try:
        pq.write_table(mixed(told.rows), source)
        words = {
            "chain": ["sanitize", source, "-o", out, "--overwrite"],
            "condense": ["sanitize", source, "-o", f"{out}-groups", "--method", "condense"],
            "evaluate": ["evaluate", source, f"{out}/release/table.parquet"],
            "verify": ["verify", f"{out}/release"],
        }
        for case in told.cases:
            if case in ("evaluate", "verify") and not Path(out).exists():
                timed([*words["chain"], "--no-report"])
            print(f"{case}, {told.rows} rows: {timed(words[case])}", flush=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
