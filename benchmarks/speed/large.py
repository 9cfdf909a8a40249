"""Tables in cells: memory and time of a file out of core beside a plain read and write, and what seams cost.

RowBlock from the repository root: ``python benchmarks/speed/large.py file [--rows N] [--method NAME] [--effort NAME]
[--memory SIZE]`` or ``python benchmarks/speed/large.py seams [--rows N]``. The file is generated in chunks into a
temporary folder, which is removed at the end; each case is a process of its own, so that its peak of memory is its own.
Seams: sum of squares of the groups of a table cut into cells, as `engines.partitions` cuts it, beside that of the whole
table grouped at once.
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
from time import process_time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.engines.partitions import grow_tree, leaf_in
from sfumato.methods.condense.compact import CompactSearch, compact_groups

ROOT = Path(__file__).resolve().parents[2]
WIDTH, CHUNK = 10, 500_000


def mixture(rows: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """A mixture of 20 Gaussians, as in the benchmarks of the grouping."""
    shape = np.random.default_rng(7)
    centres, mixes = shape.normal(scale=3.0, size=(20, WIDTH)), 0.4 * shape.normal(size=(20, WIDTH, WIDTH))
    which = rng.integers(0, 20, rows)
    return np.asarray(centres[which] + np.einsum("nij,nj->ni", mixes[which], rng.normal(size=(rows, WIDTH))))


def generate(path: Path, rows: int) -> None:
    rng, schema = np.random.default_rng(8), pa.schema([(f"x{place}", pa.float64()) for place in range(WIDTH)])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for start in range(0, rows, CHUNK):
            values = mixture(min(CHUNK, rows - start), rng)
            writer.write_table(pa.table([np.ascontiguousarray(column) for column in values.T], schema=schema))


def plain(source: str, target: str) -> None:
    with (
        pq.ParquetFile(source, buffer_size=1 << 20, pre_buffer=False) as file,
        pq.ParquetWriter(target, file.schema_arrow, use_dictionary=False) as writer,
    ):
        for batch in file.iter_batches(batch_size=1 << 18):
            writer.write_batch(batch)


def timed(command: list[str]) -> tuple[float, float]:
    """CPU seconds and peak of memory in MB of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(["/usr/bin/time", "-f", "%M", *command], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, int(done.stderr.strip().splitlines()[-1]) / 1024


def file(rows: int, method: str, effort: str, memory: str) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        generate(folder / "big.parquet", rows)
        copy = [sys.executable, __file__, "plain", str(folder / "big.parquet"), str(folder / "copy.parquet")]
        seconds, megabytes = timed(copy)
        os.unlink(folder / "copy.parquet")
        print(f"plain read and write of {rows} rows: {seconds:.1f} CPU s, {megabytes:.0f} MB")
        told = ["--engine", "partitions", "--method", method, "--memory", memory, "--no-report"]
        told += ["--effort", effort] if method == "condense" else []
        run = [sys.executable, "-m", "sfumato.cli", "sanitize", str(folder / "big.parquet"), "-o", str(folder / "out")]
        took, peak = timed([*run, *told, "--quiet"])
        ratio, speed = took / seconds, rows / took
        how = f"{method}, {effort}" if method == "condense" else method
        print(f"in cells, {how}: {took:.1f} CPU s ({ratio:.0f} times), {peak:.0f} MB, {speed:.0f} rows/s")
    finally:
        shutil.rmtree(folder)


def ssq(values: NDArray[np.float64], groups: list[NDArray[np.int64]]) -> float:
    return sum(float(((values[rows] - values[rows].mean(axis=0)) ** 2).sum()) for rows in groups)


def seams(rows: int, k: int, effort: str) -> None:
    values = mixture(rows, np.random.default_rng(9))
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    levels, begin = np.full(rows, k), process_time()
    whole = ssq(values, compact_groups(values, levels, np.random.default_rng(1), effort=effort))
    print(f"whole, k={k}, {effort}: sum of squares {whole:.1f}, {process_time() - begin:.1f} CPU s")
    sample = np.random.default_rng(2).permutation(rows)[: min(rows, 100_000)]
    for most in (100_000, 400_000):
        begin = process_time()
        tree, leaves = grow_tree(values[sample], most * len(sample) / rows)
        leaf = leaf_in(tree, values, np.arange(rows))
        total = 0.0
        for number in range(leaves):
            own = values[leaf == number]
            rng = np.random.default_rng(10 + number)
            total += ssq(
                own, compact_groups(own, np.full(len(own), k), rng, effort=effort, search=CompactSearch(among=rows))
            )
        print(
            f"{leaves} cells of {np.bincount(leaf).min()} to {np.bincount(leaf).max()}: {total:.1f}, "
            f"{100 * (total / whole - 1):+.2f} %, {process_time() - begin:.1f} CPU s"
        )


def main() -> None:
    if sys.argv[1:2] == ["plain"]:
        plain(*sys.argv[2:4])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=["file", "seams"])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--method", choices=["chain", "condense", "noise"], default="condense")
    parser.add_argument("--effort", default="default")
    parser.add_argument("--memory", default="1G")
    parser.add_argument("--k", type=int, default=10)
    told = parser.parse_args()
    if told.case == "file":
        file(told.rows, told.method, told.effort, told.memory)
    else:
        seams(told.rows, told.k, told.effort)


if __name__ == "__main__":
    main()
