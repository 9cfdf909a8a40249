"""Which methods meet the limits of the built-in policies: what must be reachable by good ones and not by bad ones.

Run from the repository root: ``python benchmarks/quality/policies.py [--tables a,b] [--cache FOLDER]``; the tables and
methods are those of ``frontier.py``. Half of each table is inside, at most 10,000 people, and half outside. Limits are
judged alone, without what a policy requires of a certificate, so that tables of any tool can be compared. What
was judged is kept, so that a run goes on where it stopped; results/policies.md is written at the end.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import frontier  # noqa: E402

import sfumato as sf  # noqa: E402
from sfumato.publish.judge import judge  # noqa: E402
from sfumato.publish.policy import BUILT_IN  # noqa: E402

METHODS = {
    **{name: frontier.METHODS[name] for name in ("chain, leaf 25", "chain, leaf 50", "chain, leaf 100")},
    "chain, leaf 200": frontier.METHODS["chain, leaf 200"],
    **{name: frontier.METHODS[name] for name in ("condense, k = 10", "condense, k = 100", "condense, k = 250")},
    **{name: frontier.METHODS[name] for name in ("cart, leaf 5", "cart, leaf 50")},
    "a copy": frontier.METHODS["original"],
}
MARKS = {"meets": "meets", "does-not-meet": "no", "inconclusive": "?"}


def outcomes(table: str, method: str) -> dict[str, dict[str, str | None]]:
    """Outcome of each policy's limits on one release, and the limit that is exceeded most or not told."""
    inside, outside, columns = frontier.split(table, 0)
    released = METHODS[method](inside, columns, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = sf.evaluate(inside, released, target=columns.target, holdout=outside, policy="public", seed=0)
    found = {}
    for name, policy in BUILT_IN.items():
        verdict = judge(report, dataclasses.replace(policy, require={"control": True}))
        reasons = [*(each.limit for each in verdict.exceeded), *(each.limit for each in verdict.missing if each.needed)]
        found[name] = {"outcome": verdict.outcome.value, "by": reasons[0] if reasons else None}
    return found


def write_results(kept: Path, tables: list[str]) -> None:
    """The table of outcomes, a line a method."""
    lines = [
        "# Which methods meet the built-in policies",
        "",
        "`benchmarks/quality/policies.py`: half of each table inside, half outside, one split. Limits alone are",
        "judged. *no*: a limit is significantly exceeded, and which one most; *?*: too few people, and at which",
        "limit. Constants of the chain and the limits were chosen with these tables in sight.",
    ]
    for policy in BUILT_IN:
        lines += ["", f"## `{policy}`", "", f"| method | {' | '.join(tables)} |", "|---" * (len(tables) + 1) + "|"]
        for method in METHODS:
            cells = []
            for table in tables:
                file = kept / f"{table}; {method}.json"
                told = json.loads(file.read_text())[policy] if file.exists() else None
                words = "" if told is None else MARKS[told["outcome"]]
                cells.append(words if told is None or told["by"] is None else f"{words} ({told['by']})")
            lines.append(f"| {method} | {' | '.join(cells)} |")
    (ROOT / "benchmarks" / "results" / "policies.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Judge what is asked for and not yet kept, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default="adult,magic,patients,waveform,abalone")
    parser.add_argument("--cache", type=Path, default=ROOT / ".policies")
    asked = parser.parse_args()
    asked.cache.mkdir(exist_ok=True)
    tables = asked.tables.split(",")
    for table in tables:
        for method in METHODS:
            file = asked.cache / f"{table}; {method}.json"
            if not file.exists():
                file.write_text(json.dumps(outcomes(table, method)))
                print(f"{table}, {method}: {file.read_text()}", flush=True)
    write_results(asked.cache, tables)


if __name__ == "__main__":
    main()
