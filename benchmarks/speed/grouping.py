"""Grouping beside others: time, CPU, peak memory, information loss, and whether levels hold.

Run from the repository root: ``python benchmarks/speed/grouping.py [--quick | --full]``. Every run has a process of
its own; rows are kept in .benchmarks/grouping.csv under the hash of the code behind them, so that a run that was
stopped goes on where it was (``--fresh`` measures all again). The default writes results/grouping.csv and .md and
docs/grouping.svg; rows that only ``--full`` measures are carried over from there while the code behind them is the
same. ``--quick`` is a smoke run of about a minute and writes under .benchmarks/quick only. ``--before CHECKOUT`` sets
the sources of an earlier checkout beside these on usual and wide tables, the one run after the other; it writes
results/grouping_before.csv, its part of grouping.md, and its own new rows into grouping.csv, and leaves all other rows.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import inspect
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.data import TableNotFoundError  # noqa: E402
from benchmarks.speed import cases  # noqa: E402
from benchmarks.speed.cases import Case, Run, compared, design, make_values, values_of  # noqa: E402
from benchmarks.speed.goals import Results  # noqa: E402
from benchmarks.speed.measure import Row, run_apart  # noqa: E402
from benchmarks.speed.peers import METHODS, fingerprint, is_installed  # noqa: E402
from benchmarks.speed.plot import draw  # noqa: E402
from benchmarks.speed.report import Machine, case_lines, cpu_model, read_rows, verdict_lines, write_csv, write_page  # noqa: E402

KEPT = ROOT / ".benchmarks" / "grouping.csv"
BUDGETS = {"quick": 10.0, "default": 25.0, "full": 400.0}
ALL_ROWS = 10**9


class Keys:
    """The key of a run: its case, the code that makes the data and the code behind the method, and the processor."""

    def __init__(self) -> None:
        made: list[Callable[..., object]] = [
            make_values,
            cases.make_levels,
            cases._mixture,
            cases._categories,
            cases._reference,
        ]
        self._data = "".join(inspect.getsource(part) for part in made) + f"{cases.COMPONENTS} {cases.SEPARATION}"
        self._processor = cpu_model()

    def of(self, run: Run) -> str:
        """Hash all that a row depends on."""
        text = f"{run} {fingerprint(METHODS[run.method])} {self._processor} {self._data}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def keep(row: Row) -> None:
    """Append a row to the kept ones."""
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    if KEPT.is_file() and not read_rows(KEPT):
        KEPT.unlink()  # of an older shape
    new = not KEPT.is_file()
    with KEPT.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(Row)], lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row.cells())


def still_good(row: Row | None, budget: float) -> bool:
    """Tell whether a kept row need not be measured again: it has numbers, or would still exceed the budget."""
    if row is None:
        return False
    guess = row.note.removeprefix("not run: estimated ").removesuffix(" s")
    return not np.isnan(row.cpu_s) or (guess != row.note and float(guess) > budget)


def measure_case(runs: list[Run], keys: Keys, known: dict[str, Row], budget: float, *, save: bool) -> list[Row]:
    """Measure the runs of one case that are not known yet."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="sfumato-bench-") as folder:
        data = Path(folder) / "values.npy"
        for run in runs:
            key = keys.of(run)
            if still_good(known.get(key), budget):
                rows.append(known[key])
                continue
            blank = blank_row(run, key)
            if not is_installed(METHODS[run.method]):
                rows.append(replace(blank, note=f"not installed: pip install {METHODS[run.method].package}"))
                continue
            try:
                if not data.is_file():
                    np.save(data, values_of(run.case))
            except TableNotFoundError as error:
                rows.append(replace(blank, note=f"skipped: {error}"))
                continue
            rows.append(replace(blank, **run_apart(run, data, budget)))
            if save and keys.of(run) == key:  # else the code was edited meanwhile
                keep(rows[-1])
    return rows


def blank_row(run: Run, key: str) -> Row:
    """Begin a row, with the load of the machine before the run."""
    case, now = run.case, time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    load = Machine().load[0]
    what = (case.table, case.n, case.d, case.k, case.levels, run.method, run.threads, run.seeds)
    return Row(*what, load=load, measured=now, key=key)


def carried_over(mode: str, keys: Keys, done: list[Row], results: Path) -> list[Row]:
    """Give rows of the full design that were measured earlier with the same code."""
    if mode != "default":
        return []
    kept = {row.key: row for row in (*read_rows(results), *read_rows(KEPT)) if not np.isnan(row.cpu_s)}
    here = {row.key for row in done if not np.isnan(row.cpu_s)}
    return [kept[key] for run in design("full", ALL_ROWS) if (key := keys.of(run)) in kept and key not in here]


def in_order(rows: list[Row]) -> list[Row]:
    """Put rows in the order of the full design, cases together; a row with numbers wins over one without."""
    places: dict[tuple[Case, str, int], Row] = {}
    for row in rows:
        place = (row.run.case, row.method, row.threads)
        if place not in places or np.isnan(places[place].cpu_s):
            places[place] = row
    tables = list(dict.fromkeys(run.case.table for run in design("full", ALL_ROWS)))
    methods = list(METHODS)

    def rank(row: Row) -> tuple[int, str, int, int, int, int, int]:
        return (
            tables.index(row.table), row.levels, row.n, row.d != 10, row.d * 1000 + row.k, methods.index(row.method),
            row.threads,
        )  # fmt: skip

    return sorted(places.values(), key=rank)


def outdated(rows: list[Row], keys: Keys) -> int:
    """Count rows of ours that were measured with sources that have changed since."""
    return sum(bool(METHODS[row.method].source) and keys.of(row.run) != row.key for row in rows)


def set_beside(checkout: Path, keys: Keys, budget: float, only: str) -> tuple[list[Row], list[Row]]:
    """Measure an earlier checkout and these sources, the one run after the other; rows of both.

    On the wide tables also these sources' other methods, which tell what the default might have missed.
    """
    named = subprocess.run(
        ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    )
    earlier, present = [], []
    with tempfile.TemporaryDirectory(prefix="sfumato-bench-") as folder:
        data = Path(folder) / "values.npy"
        for run in (run for run in compared() if only in str(run.case)):
            np.save(data, values_of(run.case))
            for rows, source in ((earlier, checkout), (present, None)):
                row = replace(blank_row(run, keys.of(run)), **run_apart(run, data, budget, source))
                rows.append(row if source is None else replace(row, key=named.stdout.strip()))
            print(f"{run.case}: loss {earlier[-1].loss:.4f} -> {present[-1].loss:.4f}, ", end="")
            print(f"CPU {earlier[-1].cpu_s:.3f} -> {present[-1].cpu_s:.3f} s", flush=True)
    wide = [run for run in design("default", ALL_ROWS) if run.case.table == cases.NORMAL and run not in compared()]
    for case in dict.fromkeys(run.case for run in wide):
        if only in str(case):
            present += measure_case([run for run in wide if run.case == case], keys, {}, budget, save=False)
    return earlier, present


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", dest="mode", action="store_const", const="quick", help="a smoke run of about a minute")
    size.add_argument("--full", dest="mode", action="store_const", const="full", help="more cases, and MDAV at 300,000")
    parser.set_defaults(mode="default")
    parser.add_argument("--fresh", action="store_true", help="measure again what was kept")
    parser.add_argument("--budget", type=float, help="CPU seconds that a quadratic method may take")
    parser.add_argument("--most-rows", type=int, default=ALL_ROWS, help="leave out larger cases")
    parser.add_argument("--only", default="", help="measure only the cases whose description contains this")
    parser.add_argument("--before", type=Path, metavar="CHECKOUT", help="set an earlier checkout beside these sources")
    parser.add_argument("--out", type=Path, help="folder for grouping.csv, grouping.md and grouping.svg")
    return parser.parse_args()


def main() -> int:
    """Measure, print, write; exit with 1 where a run failed or a level of ours was not held."""
    began, asked, machine, keys = time.perf_counter(), parse(), Machine(), Keys()
    quick, budget = asked.mode == "quick", asked.budget or BUDGETS[asked.mode]
    out = asked.out or (ROOT / ".benchmarks" / "quick" if quick else ROOT / "benchmarks" / "results")
    if asked.before:
        earlier, present = set_beside(asked.before.resolve(), keys, BUDGETS["full"], asked.only)
        again = {row.run for row in earlier}
        earlier = [row for row in read_rows(out / "grouping_before.csv") if row.run not in again] + earlier
        write_csv(earlier, out / "grouping_before.csv")
        rows = in_order([*present, *read_rows(out / "grouping.csv")])
        write_csv(rows, out / "grouping.csv")
        write_page(Results(rows), machine, out / "grouping.md", Results(earlier), outdated(rows, keys))
        return 0
    known = {} if asked.fresh or quick else {row.key: row for row in read_rows(KEPT)}
    runs = [run for run in design(asked.mode, asked.most_rows) if asked.only in str(run.case)]
    there = sum(still_good(known.get(keys.of(run)), budget) for run in runs)
    print(f"{machine}\n{len(runs)} runs, {there} of them kept from before (--fresh measures them again)")
    rows = []
    for case in dict.fromkeys(run.case for run in runs):
        rows += measure_case([run for run in runs if run.case == case], keys, known, budget, save=not quick)
        print("\n".join(case_lines(case, Results(rows))), flush=True)
    picture = out / "grouping.svg" if asked.out or quick else ROOT / "docs" / "grouping.svg"
    rows = in_order(rows + carried_over(asked.mode, keys, rows, out / "grouping.csv"))
    results = Results(rows)
    write_csv(rows, out / "grouping.csv")
    earlier = Results(read_rows(out / "grouping_before.csv"))
    verdicts = write_page(results, machine, out / "grouping.md", earlier, outdated(rows, keys))
    drawn = f", {picture}" if draw(results, picture) else ""
    print("\n".join(verdict_lines(verdicts)))
    print(f"\n{time.perf_counter() - began:.0f} s; {out / 'grouping.md'}{drawn}; load now {Machine().load[0]:.2f}")
    failed = [row for row in rows if row.note.startswith("failed")]
    broken = [row for row in rows if METHODS[row.method].source and row.below > 0.0]
    for row in (*failed, *broken):
        print(f"wrong: {row.run.case}, {row.run.name}: {row.note or 'groups below their level'}", file=sys.stderr)
    return 1 if failed or broken else 0


if __name__ == "__main__":
    sys.exit(main())
