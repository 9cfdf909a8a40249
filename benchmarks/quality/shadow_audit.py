"""Verdicts on shadow releases: what is decided on four tables, in how much CPU time, and how often intervals hold.

``python benchmarks/quality/shadow_audit.py [coverage | tune TABLE | TABLE METHOD=SIZE ...]`` writes a line for each
audit by the policy ``research``; ``coverage`` simulates audits that stop early; ``tune`` writes what tuning recommends.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
import pyarrow as pa

import sfumato as sf
from benchmarks.data import load_table
from sfumato.assess.verdict import FAMILIES
from sfumato.core.randomness import Randomness
from sfumato.engines.memory import resolve_run
from sfumato.engines.plan import make_plan, prepare
from sfumato.methods.chain import Chain
from sfumato.methods.condense import Condensation
from sfumato.methods.protocol import Mechanism
from sfumato.options import RunOptions
from sfumato.publish.policy import BUILT_IN
from sfumato.publish.shadows import audit
from tests.assess.test_audit import coverage


def measurements() -> pa.Table:
    """5,000 people, 12 correlated measurements."""
    rng = np.random.default_rng(1)
    values = rng.normal(size=(5_000, 3)) @ rng.normal(size=(3, 12)) + rng.normal(size=(5_000, 12))
    return pa.table({f"m{place}": column.round(2) for place, column in enumerate(values.T)})


def persons() -> pa.Table:
    """4,000 people, 7 columns."""
    rng = np.random.default_rng(2)
    level = rng.normal(size=4_000)
    return pa.table(
        {
            "age": (45 + 15 * rng.normal(size=4_000)).round(),
            "pay": np.exp(8 + 0.6 * level + 0.5 * rng.normal(size=4_000)).round(),
            "hours": rng.choice([20, 30, 36, 38, 40, 40, 45, 50], 4_000),
            "weight": (75 + 12 * rng.normal(size=4_000)).round(1),
            "region": rng.choice([f"r{place}" for place in range(16)], 4_000),
            "job": np.where(level > 1, "lead", rng.choice(["office", "craft", "care", "trade"], 4_000)),
            "owner": np.where(level + rng.normal(size=4_000) > 0.5, "yes", "no"),
        }
    )


def patients() -> pa.Table:
    """3,500 patients with one to five visits each."""
    rng = np.random.default_rng(3)
    visits = rng.integers(1, 6, 3_500)
    who = np.repeat(np.arange(3_500), visits)
    ill, age = rng.normal(size=3_500), rng.integers(18, 90, 3_500)
    return pa.table(
        {
            "patient": [f"p{place}" for place in who],
            "age": age[who],
            "sex": rng.choice(["f", "m"], 3_500)[who],
            "ward": rng.choice([f"w{place}" for place in range(8)], len(who)),
            "pressure": (125 + 12 * ill[who] + 8 * rng.normal(size=len(who))).round(),
            "glucose": np.exp(4.6 + 0.2 * ill[who] + 0.1 * rng.normal(size=len(who))).round(),
            "days": rng.geometric(0.25, len(who)),
            "code": rng.choice([f"c{place}" for place in range(30)], len(who), p=np.arange(30, 0, -1) / 465),
        }
    )


def survey() -> pa.Table:
    """2,500 people, 60 questions of five answers."""
    rng = np.random.default_rng(4)
    factors = rng.normal(size=(2_500, 4)) @ rng.normal(size=(4, 60)) + 1.5 * rng.normal(size=(2_500, 60))
    answers = np.clip(np.rint(factors + 3), 1, 5).astype(np.int64)
    return pa.table({f"q{place}": column for place, column in enumerate(answers.T)})


TABLES: dict[str, tuple[Callable[[], pa.Table], RunOptions]] = {
    "persons": (persons, RunOptions(rows_are_people=True, target="owner")),
    "measurements": (measurements, RunOptions(rows_are_people=True)),
    "patients": (patients, RunOptions(person="patient")),
    "survey": (survey, RunOptions(rows_are_people=True)),
    "adult": (lambda: load_table("adult_train"), RunOptions(rows_are_people=True, target="income")),
}


def _mechanism(words: str) -> Mechanism:
    method, _, size = words.partition("=")
    return Chain(k=10, leaf=int(size)) if method == "chain" else Condensation(k=int(size))


def tune_table(name: str) -> None:
    """What tuning recommends for a table, and in how many CPU seconds."""
    make, options = TABLES[name]
    begin = time.process_time()
    known = {"target": options.target, "person": options.person, "rows_are_people": options.rows_are_people}
    tuning = sf.tune(make(), policy="research", **known)  # type: ignore[arg-type]
    chosen = tuning.best or tuning.nearest
    assert chosen is not None
    meets = "yes" if tuning.best is not None else f"no: {tuning.binding}"
    row = (name, chosen.reading.candidate.words, meets, tuning.use_words, f"{time.process_time() - begin:.0f}")
    print(f"|{'|'.join(row)}|", flush=True)


def main(words: list[str]) -> None:
    """Audit a table with some methods, or simulate coverage."""
    warnings.simplefilter("ignore")
    if words[0] == "coverage":
        for kind in ("rate", "area"):
            for excess, limit in ((0.0, 0.02), (0.04, 0.05), (0.05, 0.05), (0.06, 0.05)):
                allowed = limit if kind == "rate" else 0.5 + limit / 2
                print(
                    f"|{kind}|{excess}|{allowed}|{coverage(excess, allowed, 1_000, kind=kind, seed=7):.3f}|", flush=True
                )
        return
    if words[0] == "tune":
        tune_table(words[1])
        return
    make, options = TABLES[words[0]]
    table, policy = make(), BUILT_IN["research"]
    for each in words[1:]:
        plan = make_plan(table, _mechanism(each), options)
        run = resolve_run(prepare(table, plan), plan, plan.randomness.generator("sanitize"))
        found = audit(run, policy, Randomness().generator("shadow releases"))
        decided = "no" if found.needed else "yes"
        print(f"|{words[0]}|{each}|{decided}|{found.releases}|{found.seconds:.0f}|", end="")
        for limit in policy.limits:
            some = [
                finding for finding in found.findings if FAMILIES[limit](finding.name) and finding.value is not None
            ]
            worst = max(
                some, key=lambda finding: (finding.interval or (0.0, 0.0))[1] - _against(limit, finding.control)
            )
            low, high = (end - _against(limit, worst.control) for end in worst.interval or (0.0, 0.0))
            print(f"{(worst.value or 0.0) - _against(limit, worst.control):.3f} ({low:.3f} to {high:.3f})|", end="")
        print(flush=True)


def _against(limit: str, control: float | None) -> float:
    return control or 0.0 if limit.endswith("-excess") else 0.0


if __name__ == "__main__":
    main(sys.argv[1:])
