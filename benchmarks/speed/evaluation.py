"""How long a report takes and how much memory: Adult whole, a million rows by declared sampling, and budgets.

Run from the repository root: ``python benchmarks/speed/evaluation.py [--quick] [--data FOLDER]``.
Each case is a process of its own, so that its peak of memory is its own. A fifth of the rows is held out. The yardstick
of the same run is an exact search of the nearest original row of 2,000 released rows by scikit-learn, in the same
coordinates: a single one of the searches of which attacks make dozens. What is timed is `assess`, from two tables in
memory to the finished report with all its figures; the sanitizing before it is not.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.assess.measure import assess
from sfumato.assess.study import StudyDetails, study_of
from sfumato.methods.condense import Condensation
from sfumato.tables.codec import Codec
from sfumato.tables.levels import levels_of_table
from sfumato.tables.schema import Role, Schema

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"


@dataclass(frozen=True)
class Case:
    """One table, the seconds granted, and what is to be reached."""

    name: str
    table: str
    rows: int
    budget: float | None
    goal_seconds: float | None
    goal_megabytes: float | None


CASES = (
    Case("adult", "adult", 32_561, None, 90.0, 1_500.0),
    Case("adult, budget 20 s", "adult", 32_561, 20.0, 20.0, 1_500.0),
    Case("adult, budget 60 s", "adult", 32_561, 60.0, 60.0, 1_500.0),
    Case("1,000,000 x 10", "mixture", 1_000_000, None, 180.0, None),
    Case("1,000,000 x 10, budget 60 s", "mixture", 1_000_000, 60.0, 60.0, None),
    Case("100,000 x 10", "mixture", 100_000, None, None, None),
    Case("10,000 x 10", "mixture", 10_000, None, None, None),
)


def read(case: Case, folder: str | None) -> pa.Table:
    if case.table == "adult":
        from benchmarks.data import load_table

        return load_table("adult_train", folder)
    rng = np.random.default_rng(7)
    centres = rng.normal(scale=3.0, size=(20, 9))
    kinds = rng.integers(0, 20, case.rows)
    values = centres[kinds] + rng.normal(size=(case.rows, 9))
    table = {f"x{column}": values[:, column].round(3) for column in range(9)}
    return pa.table({**table, "kind": [f"k{kind % 4}" for kind in kinds]})


def run(case: Case, folder: str | None) -> dict[str, Any]:
    table = read(case, folder)
    rng = np.random.default_rng(1)
    drawn = rng.permutation(table.num_rows)
    cut = table.num_rows // 5
    original, holdout = table.take(pa.array(np.sort(drawn[cut:]))), table.take(pa.array(np.sort(drawn[:cut])))
    schema = Schema.infer(original).with_role(Role.TARGET, table.column_names[-1])
    asked, schema = levels_of_table(None, original, schema)
    codec = Codec.fit(original, schema, min_frequency=10)
    effort = "fast" if table.num_rows > 200_000 else "default"
    sanitized = Condensation(k=10, effort=effort).sanitize(codec.encode(original, levels=asked), rng=rng)
    released = codec.decode(sanitized.records.values)
    seed = np.random.default_rng(2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    begin, cpu = perf_counter(), os.times()
    study = study_of(
        original,
        released,
        codec,
        facts=sanitized.facts,
        workings=sanitized.workings,
        holdout=holdout,
        details=StudyDetails(time_limit=case.budget),
        rng=seed,
    )
    report = assess(study)
    seconds, after = perf_counter() - begin, os.times()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    unknown = [finding.name for finding in report.findings if finding.reason and "failed" in finding.reason]
    return {
        "case": case.name,
        "rows": table.num_rows,
        "coordinates": int(sanitized.records.values.shape[1]),
        "seconds": round(seconds, 1),
        "cpu_seconds": round(after.user + after.system - cpu.user - cpu.system, 1),
        "yardstick_seconds": round(yardstick(original, released, codec), 3),
        "megabytes_before": round(before),
        "megabytes": round(peak),
        "findings": len(report.findings),
        "failed": unknown,
        "page_megabytes": round(len(report.to_html(edition="owner").encode()) / 1e6, 2),
        "sizes": report.sizes,
        "slowest": dict(sorted(report.seconds.items(), key=lambda item: -item[1])[:12]),
    }


def yardstick(original: pa.Table, released: pa.Table, codec: Codec) -> float:
    from sklearn.neighbors import NearestNeighbors

    study = study_of(original, released, codec, rng=np.random.default_rng(3))
    begin = perf_counter()
    NearestNeighbors(n_neighbors=1, algorithm="brute").fit(study.original).kneighbors(study.released[:2_000])
    return perf_counter() - begin


def write(results: list[dict[str, Any]]) -> None:
    lines = [
        "# How long a report takes",
        "",
        "`python benchmarks/speed/evaluation.py`; two cores. Time of the whole report from two tables in memory, its",
        "figures included, with a fifth of the rows held out; ratio to one exact nearest-row search of 2,000 rows by",
        "scikit-learn in the same run. Memory is the peak of the whole process, the sanitizing before it included.",
        "",
        "| case | coordinates | seconds | CPU s | / yardstick | peak MB (before) | findings | page MB | estimate s | "
        "goal |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        case = next(case for case in CASES if case.name == result["case"])
        goals = []
        if case.goal_seconds is not None:
            met = result["seconds"] <= case.goal_seconds
            goals.append(f"{case.goal_seconds:.0f} s {'met' if met else 'MISSED'}")
        if case.goal_megabytes is not None:
            met = result["megabytes"] <= case.goal_megabytes
            goals.append(f"{case.goal_megabytes:.0f} MB {'met' if met else 'MISSED'}")
        estimate = result["sizes"].get("estimate")
        lines.append(
            f"| {case.name} | {result['coordinates']} | {result['seconds']} | {result['cpu_seconds']} | "
            f"{result['seconds'] / result['yardstick_seconds']:.0f} | {result['megabytes']} "
            f"({result['megabytes_before']}) | {result['findings']} | {result['page_megabytes']} | "
            f"{'' if estimate is None else estimate} | {', '.join(goals)} |"
        )
    lines += [
        "",
        "The estimate was fitted to reports of these same tables, so that budgets kept here are no proof for others.",
        "",
        "Slowest parts, in seconds:",
        "",
    ]
    for result in results:
        parts = ", ".join(f"{name} {seconds:.1f}" for name, seconds in result["slowest"].items() if name != "all")
        lines.append(f"- {result['case']}: {parts}")
    (RESULTS / "evaluation.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (RESULTS / "evaluation.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="Adult and 10,000 rows only; writes nothing.")
    parser.add_argument("--data", help="Folder of the benchmark tables.")
    parser.add_argument("--case", help="Run one case here and print it as JSON.")
    options = parser.parse_args()
    if options.case:
        case = next(case for case in CASES if case.name == options.case)
        print(json.dumps(run(case, options.data)))
        return
    results = []
    for case in CASES:
        if options.quick and case.name not in ("adult", "10,000 x 10"):
            continue
        command = [sys.executable, __file__, "--case", case.name, *(["--data", options.data] if options.data else [])]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
        if done.returncode:
            print(f"{case.name}: not run ({done.stderr.strip().splitlines()[-1]})")
            continue
        results.append(json.loads(done.stdout.splitlines()[-1]))
        print(json.dumps({key: value for key, value in results[-1].items() if key != "sizes"}))
    if not options.quick:
        write(results)


if __name__ == "__main__":
    main()
