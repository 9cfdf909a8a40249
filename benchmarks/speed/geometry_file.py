"""A file larger than memory, turned by a key in one pass: time beside a plain read and write, and peak of memory.

Run from the repository root: ``python benchmarks/speed/geometry_file.py [--quick] [--rows N] [--one-group]``.
The file is generated in chunks into a temporary folder, which is removed at the end. Each case is a process of its own,
so that its peak of memory is its own. The yardstick of the same run is a loop of pyarrow that reads the same batches
and writes them with the same settings (rows of a batch, no dictionary, compression); a second one, with pyarrow's
default settings, is shown beside it. Cases take turns and the fastest of each counts.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.core.randomness import Randomness
from sfumato.engines.partitions.batches import try_on_sample
from sfumato.engines.partitions.gather import PartitionSettings
from sfumato.engines.partitions.memory_limit import Spill
from sfumato.engines.partitions.run import FileRows
from sfumato.methods.geometry import Rotation
from sfumato.options import RunOptions
from sfumato.tables.source import form_of, open_people

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
COLUMNS = [f"x{column}" for column in range(10)]
CHUNK = 500_000
CASES = ("plain", "plain, defaults of pyarrow", "rotate")
GOAL_RATIO, GOAL_MEGABYTES = 3.0, 1_000.0


def generate(path: Path, rows: int, *, one_group: bool) -> None:
    rng = np.random.default_rng(7)
    mix = rng.normal(size=(len(COLUMNS), len(COLUMNS)))
    schema = pa.schema([(name, pa.float64()) for name in COLUMNS])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        if one_group:  # the worst case: no part of the file can be skipped to
            values = rng.normal(size=(rows, len(COLUMNS)))
            table = pa.table([np.ascontiguousarray(column) for column in values.T], schema=schema)
            writer.write_table(table, row_group_size=rows)
            return
        for start in range(0, rows, CHUNK):
            values = rng.normal(size=(min(CHUNK, rows - start), len(COLUMNS))) @ mix
            writer.write_table(pa.table([np.ascontiguousarray(column) for column in values.T], schema=schema))


def plain(source: Path, target: Path, *, like_ours: bool) -> None:
    settings: dict[str, Any] = {"use_dictionary": False} if like_ours else {}
    rows = (1 << 25) // (8 * len(COLUMNS))
    with (
        pq.ParquetFile(source, buffer_size=1 << 20, pre_buffer=False) as file,
        pq.ParquetWriter(target, file.schema_arrow, **settings) as writer,
    ):
        for batch in file.iter_batches(batch_size=rows, use_threads=True):
            writer.write_batch(batch, row_group_size=rows)


def rotate(source: Path, target: Path) -> None:
    rows, options = FileRows(open_people(source), Spill()), RunOptions(rows_are_people=True)
    settings = PartitionSettings(Randomness().repeatable(), place=target, form=form_of(target))
    rows.transform(try_on_sample(rows, Rotation(), options, settings), settings)


def run(case: str, source: Path) -> dict[str, Any]:
    target = source.with_name("out.parquet")
    begin, cpu = perf_counter(), os.times()
    if case.startswith("plain"):
        plain(source, target, like_ours=case == "plain")
    else:
        rotate(source, target)
    seconds, after = perf_counter() - begin, os.times()
    target.unlink()
    return {
        "case": case,
        "seconds": seconds,
        "cpu": after.user + after.system - cpu.user - cpu.system,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def apart(*arguments: str) -> str:
    """Run a part in a process of its own; Linux counts the peak of a parent as the least of its children's."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def measure(source: Path, repeats: int) -> list[dict[str, Any]]:
    best: dict[str, dict[str, Any]] = {}
    for _ in range(repeats):
        for case in CASES:
            result = json.loads(apart("--case", case, "--source", str(source)).splitlines()[-1])
            print(f"{case}: {result['seconds']:.1f} s, CPU {result['cpu']:.1f} s, peak {result['megabytes']:.0f} MB")
            before = best.get(case, result)
            best[case] = {
                "case": case,
                "seconds": min(result["seconds"], before["seconds"]),
                "cpu": min(result["cpu"], before["cpu"]),
                "megabytes": max(result["megabytes"], before["megabytes"]),
            }
    return list(best.values())


def lines_of(results: list[dict[str, Any]], rows: int, size: int, repeats: int) -> list[str]:
    yardstick = results[0]
    lines = [
        f"{rows:,} rows x {len(COLUMNS)} columns of doubles, {size / 1e6:,.0f} MB on disk, best of {repeats}.",
        "",
        "| case | seconds | / plain | CPU s | / plain | peak MB |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {result['case']} | {result['seconds']:.1f} | {result['seconds'] / yardstick['seconds']:.2f} | "
        f"{result['cpu']:.1f} | {result['cpu'] / yardstick['cpu']:.2f} | {result['megabytes']:.0f} |"
        for result in results
    ]
    turned = next(result for result in results if result["case"] == "rotate")
    ratio, peak = turned["seconds"] / yardstick["seconds"], turned["megabytes"]
    fast, small = (("met" if good else "MISSED") for good in (ratio <= GOAL_RATIO, peak <= GOAL_MEGABYTES))
    verdicts = [
        f"time {ratio:.2f} of a plain read and write (goal {GOAL_RATIO:g}): {fast}",
        f"peak {peak:.0f} MB (goal {GOAL_MEGABYTES:.0f}): {small}",
    ]
    return [*lines, "", *(f"- {verdict}" for verdict in verdicts)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--quick", action="store_true", help="2,000,000 rows, once; writes no results.")
    parser.add_argument("--one-group", action="store_true", help="All rows in one row group; writes no results.")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--folder", help="Where the temporary folder is made.")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case == "generate":
        generate(options.source, options.rows, one_group=options.one_group)
        return
    if options.case:
        print(json.dumps(run(options.case, options.source)))
        return
    rows, repeats = (2_000_000, 1) if options.quick else (options.rows, options.repeats)
    with tempfile.TemporaryDirectory(prefix="geometry-file-", dir=options.folder) as folder:
        needed = 2.5 * 8 * rows * len(COLUMNS)
        if shutil.disk_usage(folder).free < needed:
            sys.exit(f"{needed / 1e9:.1f} GB of disk are needed in {folder}; take fewer --rows or another --folder")
        source = Path(folder) / "in.parquet"
        shape = ["--rows", str(rows), *(["--one-group"] if options.one_group else [])]
        apart("--case", "generate", "--source", str(source), *shape)
        found = lines_of(measure(source, repeats), rows, source.stat().st_size, repeats)
    print("\n".join(found))
    if options.quick or options.one_group or rows != 20_000_000:
        return
    head = [
        "# A file larger than memory, turned by a key in one pass",
        "",
        "`python benchmarks/speed/geometry_file.py`; two shared cores. A chain of nine rotations over ten columns,",
        "each case in a process of its own. *plain* reads and writes the same batches with pyarrow and the same",
        "settings. The peak is that of the whole process.",
        "",
    ]
    (RESULTS / "geometry_file.md").write_text("\n".join([*head, *found]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
