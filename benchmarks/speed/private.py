"""The private chain over the number of rows: CPU time and memory of the whole command, from CSV to a release folder.

Run from the repository root: ``python benchmarks/speed/private.py``. Tables of 15 columns: nine numbers, five lists of
2 to 30 categories and a target of two classes, all declared. Start-up is the same command on 100 rows. Writes
results/private_speed.md.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

import sfumato as sf

RESULT = Path(__file__).resolve().parents[1] / "results" / "private_speed.md"
ROWS = (100, 10_000, 100_000, 300_000, 1_000_000, 3_000_000)
CATEGORIES = (2, 3, 5, 10, 30)
MEBIBYTE = 1024  # kibibytes


def made(rows: int) -> tuple[pa.Table, sf.Schema]:
    """Draw a table whose columns hang together, and declare its domains."""
    rng = np.random.default_rng(rows)
    common = rng.normal(size=rows)
    columns: dict[str, object] = {}
    fields = []
    for at in range(9):
        values = 500 + 100 * (common * rng.uniform(0.2, 0.8) + rng.normal(size=rows))
        columns[f"n{at}"] = values.round(2 * (at % 2)).clip(0, 1000)
        domain = sf.Domain(declared=True, low=0, high=1000, step=0.01 if at % 2 else 1)
        fields.append(sf.Field(f"n{at}", sf.Kind.CONTINUOUS, domain=domain))
    for at, many in enumerate(CATEGORIES):
        labels = tuple(f"v{each}" for each in range(many))
        place = (np.abs(common + rng.normal(size=rows)) * many / 3).astype(int).clip(0, many - 1)
        columns[f"c{at}"] = np.array(labels)[place]
        fields.append(sf.Field(f"c{at}", sf.Kind.NOMINAL, domain=sf.Domain(declared=True, categories=labels)))
    columns["y"] = np.where(common + rng.normal(size=rows) > 0.5, "yes", "no")
    domain = sf.Domain(declared=True, categories=("no", "yes"))
    fields.append(sf.Field("y", sf.Kind.NOMINAL, role=sf.Role.TARGET, domain=domain))
    return pa.table(columns), sf.Schema(tuple(fields))


def measured(rows: int) -> tuple[float, float]:
    """CPU seconds and peak MiB of the command, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        table, schema = made(rows)
        pa.csv.write_csv(table, home / "in.csv")
        (home / "schema.toml").write_text(schema.to_toml(), encoding="utf-8")
        command = [sys.executable, "-m", "sfumato.cli", "sanitize", "in.csv", "-o", "out", "--method", "private"]
        command += ["--epsilon", "1", "--schema", "schema.toml", "--no-report", "--no-sign", "--quiet"]
        child = subprocess.Popen(command, cwd=home, env=os.environ)
        _, status, used = os.wait4(child.pid, 0)
        if status:
            raise SystemExit(status)
        return used.ru_utime + used.ru_stime, used.ru_maxrss / MEBIBYTE


def main() -> None:
    """Measure each number of rows and write the page."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    lines, start = [], 0.0
    for rows in ROWS:
        seconds, peak = measured(rows)
        start = start or seconds
        each = "" if rows == ROWS[0] else f"{1e6 * (seconds - start) / rows:.1f}"
        lines.append(f"| {rows:,} | {seconds:.2f} | {seconds - start:.2f} | {each} | {peak:.0f} |")
        print(lines[-1], flush=True)
    head = (
        "# The private chain over the number of rows\n\n"
        "`python benchmarks/speed/private.py`; two shared cores with other work on them, one thread. 15 columns,\n"
        "CSV, the whole command without a report. Goals: 10,000 rows in 1 CPU second beyond start-up, 1,000,000 in\n"
        "15 CPU seconds and 1,024 MiB, linear in the rows. Files that need more than 1.5 GB at once go through in\n"
        "partitions.\n\n"
        "| rows | CPU s | beyond start-up | µs a row | peak MiB |\n| ---: | ---: | ---: | ---: | ---: |\n"
    )
    RESULT.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
