"""What the grouping benchmark prints and writes: tables of rows, verdicts, grouping.csv and grouping.md."""

from __future__ import annotations

import csv
import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np

from benchmarks.speed.cases import MADE, NORMAL, Case
from benchmarks.speed.goals import Results, Verdict, judge
from benchmarks.speed.measure import Row
from benchmarks.speed.peers import METHODS, QUERY_ALL_BELOW, queried

__all__ = ["Machine", "case_lines", "read_rows", "verdict_lines", "write_csv", "write_page"]

HEADS = (
    "method",
    "CPU s",
    "wall s",
    "rows / CPU s",
    "CPU / KDTree",
    "memory MB",
    "loss %",
    "loss / MDAV",
    "below level",
)
WIDTHS = (9, 9, 14, 14, 11, 11, 13, 13)
NOTES = (
    "CPU and wall are seconds of the grouping alone, one thread unless said, best of up to three runs where a run is "
    "short; data and compiled kernels are ready before the clock starts. Memory is the peak of the process above what "
    "it held with the data loaded. Loss is the information loss, 100 SSE / SST on standardized columns (categories as "
    "the codec scales them). Below level is the share of groups smaller than the highest level inside: where it is not "
    "zero the method does not give what condensation promises. With more than one level, MDAV and naive condensation "
    "group at the highest, since they know one only."
)


class Machine:
    """Where and under what load the run was made."""

    def __init__(self) -> None:
        self.cores = len(os.sched_getaffinity(0))
        self.cpu = cpu_model()
        self.load = os.getloadavg()

    def __str__(self) -> str:
        load = ", ".join(f"{one:.2f}" for one in self.load)
        versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
        return f"{self.cpu}, {self.cores} cores, {versions}; load average at the start (1, 5, 15 minutes): {load}"


def cpu_model() -> str:
    """Name the processor."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name"))
    return next(names, platform.machine())


def read_rows(path: Path) -> list[Row]:
    """Read rows that were written before; those of another shape are left out."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if list(reader.fieldnames or ()) != [f.name for f in fields(Row)]:
            return []
        return [Row.parse(cells) for cells in reader if None not in cells.values()]


def write_csv(rows: Iterable[Row], path: Path) -> None:
    """Write all rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(row.cells() for row in rows)


def _cells(row: Row, results: Results) -> list[str]:
    """Give the cells of one row; what was not measured stays empty."""
    title = METHODS[row.method].title + (f", {row.threads} threads" if row.threads > 1 else "")
    if np.isnan(row.cpu_s):
        return [title, row.note, *[""] * (len(HEADS) - 2)]
    case = row.run.case
    relative = results.ratio(case, row.method, "kdtree", "cpu_s", threads=row.threads)
    loss = results.ratio(case, row.method, "mdav", "loss", threads=row.threads)
    shown = [
        (row.cpu_s, _seconds(row.cpu_s)),
        (row.wall_s, _seconds(row.wall_s)),
        (row.cpu_s, f"{row.n / row.cpu_s:,.0f}"),
        (relative, f"{relative:.3f}"),
        (row.memory_mb, f"{row.memory_mb:.0f}"),
        (row.loss, f"{row.loss:.4f}"),
        (loss, f"{loss:.3f}"),
        (row.below, f"{100 * row.below:.0f} %"),
    ]
    return [title, *("" if np.isnan(number) else text for number, text in shown)]


def _seconds(number: float) -> str:
    return f"{number:.3f}" if number < 1.0 else f"{number:.2f}" if number < 100.0 else f"{number:.0f}"


def case_lines(case: Case, results: Results) -> Iterator[str]:
    """Give the aligned lines of one case for the terminal."""
    yield f"\n{case}"
    yield _aligned(HEADS)
    for row in results.rows:
        if row.run.case == case:
            cells = _cells(row, results)
            yield f"  {cells[0]:<38}{cells[1]}" if np.isnan(row.cpu_s) else _aligned(cells)


def _aligned(cells: Sequence[str]) -> str:
    return f"  {cells[0]:<36}" + "".join(f"{cell:>{w}}" for cell, w in zip(cells[1:], WIDTHS, strict=True)).rstrip()


def verdict_lines(verdicts: list[Verdict]) -> Iterator[str]:
    """Give the verdicts for the terminal."""
    yield "\nGoals"
    for one in verdicts:
        if one.measured:
            yield f"  {one.word:<11} {one.subject}: {one.measured} (goal {one.goal})"
    words = dict.fromkeys(["met", "MISSED", *(one.word for one in verdicts)])
    yield "  " + ", ".join(f"{sum(one.word == word for one in verdicts)} {word}" for word in words)


def write_page(results: Results, machine: Machine, path: Path, earlier: Results, outdated: int) -> list[Verdict]:
    """Write grouping.md and give the verdicts in it.

    Parameters
    ----------
    results : Results
    machine : Machine
    path : path
    earlier : Results
        Rows of an earlier version, to be set beside those of this one; may be none.
    outdated : int
        Rows of ours that were measured with sources that have changed since.
    """
    verdicts = judge(results)
    cases = list(dict.fromkeys(row.run.case for row in results.rows))
    parts = [
        "# Grouping: speed, memory and compactness beside others",
        f"Written by `benchmarks/speed/grouping.py`; all rows are in `grouping.csv`. {machine}; "
        f"before single runs: {_loads(results)}. Seconds are of this machine and its load; ratios and exponents travel "
        "better.",
        NOTES + f" {_sampling()}",
        *(
            [f"{outdated} rows of ours are of sources that have changed since; measured again by `--fresh`."]
            * (outdated > 0)
        ),
        "## Goals",
        _table(("case", "goal", "measured", "verdict"), [(v.subject, v.goal, v.measured, v.word) for v in verdicts]),
        "## Loss against exact MDAV, and CPU seconds",
        _summary(results, [case for case in cases if case.table in MADE]),
        "## Growth",
        _growth(results),
        *_beside(results, earlier),
    ]
    for title, chosen in (("Made tables", True), ("Reference tables", False)):
        parts.append(f"## {title}, all rows")
        for case in cases:
            if (case.table in (*MADE, NORMAL)) is chosen:
                rows = [_cells(row, results) for row in results.rows if row.run.case == case]
                parts += [f"### {case}", _table(HEADS, rows)]
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return verdicts


def _beside(results: Results, earlier: Results) -> list[str]:
    """An earlier version beside this one, in which each pair of rows was measured one after the other."""
    rows = []
    for row in earlier.rows:
        now = results.get(row.run.case, row.method)
        if now is None or np.isnan(row.cpu_s):
            continue
        losses = [f"{row.loss:.3f}", f"{now.loss:.3f}", f"{now.loss / row.loss:.4f}"]
        times = [_seconds(row.cpu_s), _seconds(now.cpu_s), f"{now.cpu_s / row.cpu_s:.2f}"]
        rows.append([str(row.run.case), *losses, *times])
    if not rows:
        return []
    heads = ("case", "loss % before", "now", "now / before", "CPU s before", "now", "now / before")
    text = (
        f"The default effort beside that of commit {earlier.rows[0].key}, each pair one run after the other under "
        "the same load; usual tables the mean of five seeds, wide ones (independent normal columns) one seed."
    )
    return ["## Beside an earlier version", text, _table(heads, rows)]


def _loads(results: Results) -> str:
    loads = [row.load for row in results.rows]
    return f"median {np.median(loads):.1f}, highest {max(loads):.1f}"


def _sampling() -> str:
    return (
        "The yardstick is scikit-learn's KDTree (leaf 30): build, and the k nearest neighbours of every point; above "
        f"{QUERY_ALL_BELOW:,} rows {queried(10**6, 10):,} sampled points are asked ({queried(10**6, 50):,} from 50 "
        "columns on) and the query is scaled up. "
        'A row "not run" was estimated from a part of the table, by the square of the rows, to exceed its budget.'
    )


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = list(heads)
    lines = ["| " + " | ".join(heads) + " |", "| --- |" + " ---: |" * (len(heads) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _summary(results: Results, cases: list[Case]) -> str:
    """One line a case: loss of each method over that of MDAV, and CPU seconds."""
    losses = ("compact fast", "compact", "compact thorough", "paper", "naive", "kmeans", "constrained")
    times = ("compact fast", "compact", "compact thorough", "mdav", "kdtree")
    heads = ["case", *(f"{_short(m)}, loss" for m in losses), *(f"{_short(m)}, CPU s" for m in times)]
    rows = []
    for case in cases:
        cells = [results.ratio(case, method, "mdav", "loss") for method in losses]
        seconds = [row.cpu_s if (row := results.get(case, method)) else float("nan") for method in times]
        shown = ["" if np.isnan(cell) else f"{cell:.3f}" for cell in cells]
        rows.append([str(case), *shown, *("" if np.isnan(s) else _seconds(s) for s in seconds)])
    return _table(heads, rows)


def _short(method: str) -> str:
    return {"mdav": "MDAV", "kdtree": "KDTree", "paper": "AY05", "kmeans": "KMeans (not k-anonymous)"}.get(
        method, method
    )


def _growth(results: Results) -> str:
    spans = ((10_000, 100_000), (100_000, 1_000_000))
    rows = []
    for method, what in METHODS.items():
        powers = [results.exponent(method, *span) for span in spans]
        if not all(np.isnan(powers)):
            rows.append([what.title, *("" if np.isnan(power) else f"{power:.2f}" for power in powers)])
    head = "Exponent b of CPU seconds ~ n^b, mixture, d = 10, k = 5.\n\n"
    return head + _table(("method", *(f"{low:,} to {high:,}" for low, high in spans)), rows)
