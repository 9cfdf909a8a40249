"""Whether what a verdict suggests meets the policy: python benchmarks/quality/what_to_try.py RUNS TABLE...

Each table is first sanitized in a way that fails ``research``. What the verdict suggests is then run RUNS times (10),
each time with another hold-out set and other draws, and judged as ``sanitize --policy research`` judges. Only what the
policy judges is measured, so that ten runs take minutes. Results: ``benchmarks/results/what_to_try.md``.
"""

from __future__ import annotations

import dataclasses
import shlex
import sys
import warnings
from pathlib import Path

import pyarrow as pa

import sfumato as sf
from sfumato.cli.verbs import population
from sfumato.engines.plan import make_plan
from sfumato.methods.catalogue import make_mechanism
from sfumato.methods.protocol import Mechanism
from sfumato.publish.policy import BUILT_IN
from sfumato.publish.suggest import suggesting
from sfumato.publish.trial import try_plan

sys.path.insert(0, str(Path(__file__).parent.parent))

from data import load_table

RESEARCH = BUILT_IN["research"]
FAILING: dict[str, Mechanism] = {
    "magic": sf.Condensation(k=10, effort="fast"),
    "patients": sf.Condensation(k=10, effort="fast"),
    "waveform": sf.Condensation(k=10, effort="fast"),
    "abalone": sf.Chain(leaf=5, k=5),
    "adult": sf.Condensation(k=10, effort="fast"),
    "more patients": sf.Condensation(k=10, effort="fast"),
}
FILES = {"magic": "magic_gamma", "waveform": "waveform5000_noise", "abalone": "abalone", "adult": "adult_train"}


def table_of(name: str) -> pa.Table:
    """The table, or the made-up patients."""
    return load_table(FILES[name]) if name in FILES else population(40_000 if name == "more patients" else 16_000)


def suggested(table: pa.Table, failing: Mechanism) -> tuple[str, int, Mechanism | None, list[str]]:
    """What the verdict on a release that fails suggests, after how many trials, its mechanism, and columns left out."""
    plan = make_plan(table, failing, target=table.column_names[-1], holdout=0.3)
    tried = try_plan(table, plan, RESEARCH)
    if tried.meets:
        return "it does not fail", 0, None, []
    words = ("sfumato", "sanitize", "INPUT", "-o", "FOLDER", "--target", table.column_names[-1], "--holdout", "0.3")
    report = dataclasses.replace(tried.report, verdict=tried.verdict)
    verdict = suggesting(table, plan, words)(report, RESEARCH)
    if not verdict.to_try:
        return verdict.none_found, verdict.tried or 0, None, []
    line = shlex.split(verdict.to_try[0])
    entries = {name: int(line[line.index(f"--{name}") + 1]) for name in ("k", "leaf") if f"--{name}" in line}
    if isinstance(failing, sf.Chain):
        entries = {"k": failing.k, **entries}
    without = [line[place + 1] for place, word in enumerate(line) if word == "--identifier"]
    return verdict.to_try[0], verdict.tried or 0, make_mechanism("chain", entries), without


def main() -> None:
    """Print a line for each table."""
    warnings.simplefilter("ignore")
    runs, names = int(sys.argv[1]) if len(sys.argv) > 1 else 10, sys.argv[2:] or list(FAILING)
    print("| table | people | fails by | suggested | tried before | met in runs |\n|---|---|---|---|---|---|")
    for name in names:
        failing = FAILING[name]
        table = table_of(name)
        line, before, mechanism, without = suggested(table, failing)
        met = "" if mechanism is None else f"{sum(_meets(table, mechanism, without) for _ in range(runs))} of {runs}"
        made = ", ".join(f"{key} {getattr(failing, key)}" for key in ("k", "leaf") if hasattr(failing, key))
        print(f"| {name} | {table.num_rows:,} | {failing.method}, {made} | `{line}` | {before} | {met} |", flush=True)


def _meets(table: pa.Table, mechanism: Mechanism, without: list[str]) -> bool:
    plan = make_plan(table, mechanism, target=table.column_names[-1], holdout=0.3, identifiers=without)
    return try_plan(table, plan, RESEARCH).meets


if __name__ == "__main__":
    main()
