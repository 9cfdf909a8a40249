"""A few statistics of Adult: OpenDP's private answers beside those read off a release; writes results/beside_opendp.md.

Run from the repository root: ``python benchmarks/quality/beside_opendp.py OPENDP_PYTHON``, the Python of an environment
that has opendp. 10,000 people; four means and three columns of counts, asked of OpenDP under one budget, and read off
tables that `chain` has made, which answer any question and prove no such bound.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import sfumato as sf  # noqa: E402
from benchmarks.data import load_table  # noqa: E402

PEOPLE, BUDGETS, RUNS, RELEASES = 10_000, (0.1, 1.0), 10, 3
MEANS = {"age": (17, 90), "education_num": (1, 16), "hours_per_week": (1, 99), "capital_gain": (0, 99_999)}
COUNTS = ("education", "marital_status", "income")


def _answers(table: pa.Table, categories: dict[str, list[str]]) -> dict[str, object]:
    """What the questions get from a table as it stands."""
    entries: dict[str, object] = {name: float(np.mean(table[name].to_numpy())) for name in MEANS}
    for name in COUNTS:
        cells = np.asarray(table[name].to_pylist(), dtype=str)
        entries[name] = [int((cells == each).sum()) for each in categories[name]]
    return entries


def _errors(answers: dict[str, object], true: dict[str, object], spread: dict[str, float]) -> dict[str, float]:
    """Mean absolute errors: of means in hundredths of the column's standard deviation, of counts in people."""
    means = {name: 100 * abs(answers[name] - true[name]) / spread[name] for name in MEANS}  # type: ignore[operator]
    counts = {name: float(np.abs(np.subtract(answers[name], true[name])).mean()) for name in COUNTS}  # type: ignore[call-overload]
    return means | counts


def main(opendp: str) -> None:
    whole = load_table("adult_train")
    table = whole.take(np.random.default_rng(24).permutation(len(whole))[:PEOPLE])
    categories = {name: sorted(set(table[name].to_pylist())) for name in COUNTS}
    true, spread = _answers(table, categories), {name: float(np.std(table[name].to_numpy())) for name in MEANS}
    rows: dict[str, tuple[list[dict[str, float]], list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        file, asked = Path(folder) / "table.csv", Path(folder) / "asked.json"
        pyarrow.csv.write_csv(table, file)
        asked.write_text(json.dumps({"means": MEANS, "counts": categories}))
        for epsilon in BUDGETS:
            errors, seconds = rows.setdefault(f"OpenDP, epsilon = {epsilon:g} for all", ([], []))
            for _ in range(RUNS):
                command = [opendp, str(Path(__file__).with_name("opendp_peer.py")), str(file), str(asked), str(epsilon)]
                done = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
                seconds.append(done.pop("cpu"))
                errors.append(_errors(done, true, spread))
    errors, seconds = rows.setdefault("`chain`, read off the table", ([], []))
    for seed in range(RELEASES):
        begin = time.process_time()
        released = sf.sanitize(table, target="income", seed=seed, report=False).table
        seconds.append(time.process_time() - begin)
        errors.append(_errors(_answers(released, categories), true, spread))
    names = [*MEANS, *COUNTS]
    lines = [
        "# A few statistics: OpenDP beside a release",
        "",
        f"Written by `benchmarks/quality/beside_opendp.py`. Adult, {PEOPLE:,} people; OpenDP 0.16, {RUNS} runs, the",
        "budget split evenly over the seven questions, bounds and categories public; `chain` as it is by default,",
        f"{RELEASES} releases. Mean absolute errors: of means in hundredths of the column's standard deviation, of",
        "counts in people.",
        "",
        "| | " + " | ".join(f"mean {n}" if n in MEANS else f"counts of {n}" for n in names) + " | CPU seconds |",
        "|---" * (len(names) + 2) + "|",
    ]
    for what, (errors, seconds) in rows.items():
        cells = [f"{float(f'{np.mean([each[name] for each in errors]):.2g}'):g}" for name in names]
        lines.append(f"| {what} | " + " | ".join(cells) + f" | {np.median(seconds):.2g} |")
    Path(ROOT / "benchmarks" / "results" / "beside_opendp.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main(sys.argv[1])
