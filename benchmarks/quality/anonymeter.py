"""The three risks of Anonymeter beside ours: same tables, same run, same known columns, secrets and attempts.

Run from the repository root: ``python benchmarks/quality/anonymeter.py [--quick] [--data FOLDER] [--venv FOLDER]``.
Anonymeter pins an older numpy, so it runs in an environment of its own, which the script makes where it is missing;
the two sides exchange CSV and JSON files. Table: Adult, half held out, so that original and control have equally many
rows; released as a verbatim copy, condensed with k=5 and k=50, and as an independent redraw (half of the rows are the
original, the other half are released). The risk is Anonymeter's, (attack - control) / (1 - control), cut off at 0, for
both sides. Time is that of the attacks after a warm-up; ours counts the encoding of the tables too.

How often a description fits exactly one row depends on the number of rows, so singling out must scale its control where
that has fewer. That is tried apart: a quarter as many rows are held out, and the control that each side reports stands
beside what its descriptions do to fresh tables of the original's size, which is what a control wants to know.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

VERSION = "1.1.0"
SECRETS = {"income": False, "occupation": False, "age": True}
"""Columns that are inferred, and whether as a number."""
RELEASES = ("copy", "k=5", "k=50", "redraw")
SCALED = ("k=5", "k=50", "redraw")
"""Releases for which a smaller control is tried; fresh tables are known for them."""
FRESH = 2
ROOT = Path(__file__).resolve().parents[2]
Row = dict[str, Any]


def inside(folder: Path) -> None:
    """Run Anonymeter's three evaluators; called in the environment that has it."""
    import warnings

    import pandas as pd
    from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator

    warnings.simplefilter("ignore")
    plan = json.loads((folder / "plan.json").read_text())

    def read(release: str, part: str) -> Any:
        return pd.read_csv(folder / f"{release}-{part}.csv", keep_default_na=False)

    def attacks(ori: Any, syn: Any, control: Any, count: int) -> dict[str, Callable[[], Any]]:
        columns = list(ori.columns)
        common = {"n_attacks": count, "control": control}

        def infer(secret: str, number: bool) -> Any:
            known = [column for column in columns if column != secret]
            return InferenceEvaluator(ori, syn, known, secret, number, **common).evaluate(n_jobs=-1)

        def single(mode: str) -> Any:
            return SinglingOutEvaluator(ori, syn, **common).evaluate(mode)

        made: dict[str, Callable[[], Any]] = {
            f"inference of {s}": lambda s=s, n=n: infer(s, n) for s, n in plan["secrets"].items()
        }
        made["linkability"] = lambda: LinkabilityEvaluator(
            ori, syn, (columns[0::2], columns[1::2]), n_neighbors=1, **common
        ).evaluate(n_jobs=-1)
        return made | {f"singling out, {m}": lambda m=m: single(m) for m in plan["modes"]}

    for attack in attacks(*(read("copy", part)[:400] for part in plan["parts"]), 50).values():
        attack()  # compiles
    rows: list[Row] = []
    for release in plan["releases"]:
        for name, attack in attacks(*(read(release, part) for part in plan["parts"]), plan["attempts"]).items():
            begin = time.perf_counter()
            done = attack()
            seconds = time.perf_counter() - begin
            risk, rates = done.risk(), done.results()
            rows.append(
                {
                    "release": release,
                    "risk": name,
                    "value": risk.value,
                    "low": risk.ci[0],
                    "high": risk.ci[1],
                    "attack": rates.attack_rate.value,
                    "control": rates.control_rate.value,
                    "seconds": seconds,
                }
            )
            (folder / "theirs.json").write_text(json.dumps(rows))
            print(f"anonymeter: {name} ({release}), {seconds:.1f} s", file=sys.stderr, flush=True)

    def rate(original: Any, released: Any, control: Any, mode: str) -> Any:
        asked = {"n_attacks": plan["attempts"], "seed": 1}  # the same seed makes the same descriptions
        return SinglingOutEvaluator(original, released, control=control, **asked).evaluate(mode).results()

    scaled: list[Row] = []
    for release in plan["scaled"]:
        original, released, control = (read(f"scaled {release}", part) for part in plan["parts"])
        for mode in plan["modes"]:
            told = rate(original, released, control, mode)
            fresh = [rate(read(f"scaled {release}", f"fresh-{i}"), released, None, mode) for i in range(plan["fresh"])]
            scaled.append(
                {
                    "release": release,
                    "risk": f"singling out, {mode}",
                    "attack": told.attack_rate.value,
                    "control": told.control_rate.value,
                    "true": sum(one.attack_rate.value for one in fresh) / len(fresh),
                }
            )
            (folder / "theirs-scaled.json").write_text(json.dumps(scaled))
            print(f"anonymeter: {mode} singling out, scaled ({release})", file=sys.stderr, flush=True)


def tables(folder: Path, data: str | None, most: int | None) -> dict[str, tuple[Any, ...]]:
    """Make the original, the released table and the control of every release, and write them for the other side."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv

    from benchmarks.data import load_table

    table = load_table("adult_train", data)
    rng = np.random.default_rng(1)
    order = rng.permutation(table.num_rows)[:most]
    held, train = (table.take(pa.array(part)) for part in np.array_split(order[: len(order) // 2 * 2], 2))
    half = train.num_rows // 2
    made = {
        "copy": (train, train, held),
        "redraw": (train.slice(0, half), train.slice(half, half), held.slice(0, half)),
    }
    for k in (5, 50):
        made[f"k={k}"] = (train, _condensed(train, k), held)
    n = len(order) // 4
    parts = [table.take(pa.array(part)) for part in np.split(order, [n, n + n // 4, 2 * n + n // 4, 3 * n + n // 4])]
    original, control, *fresh, rest = parts
    for name in SCALED:
        released = rest if name == "redraw" else _condensed(original, int(name.removeprefix("k=")))
        made[f"scaled {name}"] = (original, released, control, *fresh)
    for name, parts in made.items():
        names = ("original", "released", "control", *(f"fresh-{i}" for i in range(FRESH)))
        for part, one in zip(names, parts, strict=False):
            filled = [pc.fill_null(c, "?") if pa.types.is_string(c.type) else c for c in one.columns]
            pyarrow.csv.write_csv(pa.table(filled, names=one.column_names), folder / f"{name}-{part}.csv")
    return made


def _condensed(table: Any, k: int) -> Any:
    import pyarrow as pa

    import sfumato as sf

    return pa.table(sf.sanitize(table, sf.Condensation(k=k), target="income", seed=k, report=False).table)


def ours(release: str, parts: tuple[Any, Any, Any], attempts: int) -> list[Row]:
    """Run our three with the same settings."""
    import numpy as np

    from sfumato.assess.algebra import Number, run_measure
    from sfumato.assess.attacks.inference import Reader, attack_column
    from sfumato.assess.attacks.singling import SINGLING_OUT
    from sfumato.assess.findings import Family
    from sfumato.assess.study import Sizes, study_of
    from sfumato.tables.codec import Codec
    from sfumato.tables.schema import Schema

    original, released, control = parts
    begin = time.perf_counter()
    codec, rng = Codec.fit(original, Schema.infer(original, target="income")), np.random.default_rng(7)
    study = study_of(original, released, codec, holdout=control, rng=rng)
    study = dataclasses.replace(study, sizes=Sizes(attempts=attempts))
    rows = [{"release": release, "risk": "encoding", "seconds": time.perf_counter() - begin}]

    def timed(name: str, attack: Callable[[], Any]) -> None:
        begin = time.perf_counter()
        finding = attack()
        rows.append(_row(release, name, finding, time.perf_counter() - begin))

    def infer(secret: str) -> Any:
        known = [column for column in original.column_names if column != secret]
        trial = attack_column(study, Reader(study), secret, known, attempts, rng)
        assert trial is not None
        return Number("inference").means("").finding(Family.ATTACK, trial.success)

    begin = time.perf_counter()
    both = run_measure(SINGLING_OUT, study)
    seconds = (time.perf_counter() - begin) / len(both)
    rows += [_row(release, f"singling out, {one.name.rpartition('-')[2]}", one, seconds) for one in both]
    timed("linkability", lambda: _link(study, original.column_names, attempts, rng))
    for secret in SECRETS:
        timed(f"inference of {secret}", lambda secret=secret: infer(secret))
    return rows


def ours_scaled(release: str, parts: tuple[Any, ...], attempts: int) -> list[Row]:
    """Run our singling out with the smaller control, and on fresh tables in place of the original."""
    import numpy as np

    from sfumato.assess.algebra import run_measure
    from sfumato.assess.attacks.singling import SINGLING_OUT
    from sfumato.assess.study import Sizes, study_of
    from sfumato.tables.codec import Codec
    from sfumato.tables.schema import Schema

    original, released, control, *fresh = parts
    codec = Codec.fit(original, Schema.infer(original, target="income"))

    def findings(people: Any, holdout: Any) -> Any:
        study = study_of(people, released, codec, holdout=holdout, rng=np.random.default_rng(7))
        return run_measure(SINGLING_OUT, dataclasses.replace(study, sizes=Sizes(attempts=attempts)))

    told, truths = findings(original, control), [findings(table, None) for table in fresh]
    return [
        {
            "release": release,
            "risk": f"singling out, {one.name.rpartition('-')[2]}",
            "attack": one.value,
            "control": one.control,
            "true": sum(truth[place].value for truth in truths) / len(truths),
        }
        for place, one in enumerate(told)
    ]


def _link(study: Any, columns: list[str], attempts: int, rng: Any) -> Any:
    """Link the halves that the other side links: every other column."""
    import numpy as np

    from sfumato.assess.algebra import Number, success
    from sfumato.assess.attacks.linkage import pick_near
    from sfumato.assess.findings import Family, Tries
    from sfumato.assess.study import sample

    people = [rows[sample(len(rows), attempts, rng)] for rows in (study.original, study.holdout)]
    halves = [study.coordinates(half) for half in (columns[0::2], columns[1::2])]
    both = np.concatenate(people)
    first, second = (pick_near(study.released[:, half], both[:, half], 1, rng)[:, 0] for half in halves)
    inside, outside = np.split(first == second, [len(people[0])])
    attack, control = Tries(int(inside.sum()), len(inside)), Tries(int(outside.sum()), len(outside))
    values = success(attack, guess=1 / len(study.released), control=control)
    return Number("linkability").means("").finding(Family.ATTACK, values)


def _row(release: str, name: str, finding: Any, seconds: float) -> Row:
    """Turn shares into the risk, with the errors carried over as Anonymeter does it."""
    row: Row = {"release": release, "risk": name, "seconds": seconds, "value": None}
    if finding.value is None or finding.control is None or finding.control >= 1:
        return row | {"reason": finding.reason or "the control always succeeds"}
    rest = 1 - finding.control
    risk = (finding.value - finding.control) / rest
    halves = [(high - low) / 2 for low, high in (finding.interval, finding.control_interval)]
    error = ((halves[0] / rest) ** 2 + (halves[1] * (1 - finding.value) / rest**2) ** 2) ** 0.5
    value, low, high = (min(max(number, 0.0), 1.0) for number in (risk, risk - error, risk + error))
    shares = {"attack": finding.value, "control": finding.control}
    return row | shares | {"value": value, "low": low, "high": high}


def environment(folder: Path) -> Path:
    """Give the interpreter of an environment that has Anonymeter; make it where it is missing."""
    python = folder / "bin" / "python"
    if not python.is_file():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", f"anonymeter=={VERSION}"], check=True)
    return python


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="3,000 rows and 200 attempts; writes no results")
    parser.add_argument("--data", help="the folder of the tables; by default that of SFUMATO_DATA")
    parser.add_argument("--attempts", type=int, default=500, help="in each attack; 500 is Anonymeter's own default")
    parser.add_argument("--limit", type=float, help="seconds after which Anonymeter is stopped")
    parser.add_argument("--venv", type=Path, default=Path(tempfile.gettempdir()) / "sfumato-anonymeter")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside is not None:
        inside(options.inside)
        return
    sys.path.insert(0, str(ROOT))
    from benchmarks.quality.anonymeter_report import lay_out, lay_out_scaled

    machine = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.0f} by other work at the start"
    attempts = 200 if options.quick else options.attempts
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = tables(folder, options.data, 3000 if options.quick else None)
        plan = {"attempts": attempts, "releases": RELEASES, "secrets": SECRETS}
        plan |= {"modes": ("univariate", "multivariate"), "parts": ("original", "released", "control")}
        plan |= {"scaled": SCALED, "fresh": FRESH}
        (folder / "plan.json").write_text(json.dumps(plan))
        ours("copy", tuple(table.slice(0, 400) for table in made["copy"]), 50)  # compiles
        mine = [row for release in RELEASES for row in ours(release, made[release], attempts)]
        mine_scaled = [row for release in SCALED for row in ours_scaled(release, made[f"scaled {release}"], attempts)]
        # -I: the script's own folder, which holds a module of the same name, stays out of the path
        side = [str(environment(options.venv)), "-I", str(Path(__file__).resolve()), "--inside", str(folder)]
        try:
            subprocess.run(side, check=True, timeout=options.limit)
        except subprocess.TimeoutExpired:
            print("anonymeter: stopped at the limit", file=sys.stderr)
        theirs = json.loads((folder / "theirs.json").read_text())
        late = folder / "theirs-scaled.json"
        theirs_scaled = json.loads(late.read_text()) if late.is_file() else []
    rows = made["copy"][0].num_rows, made["copy"][2].num_rows
    text = lay_out(mine, theirs, rows, attempts, VERSION, machine) + lay_out_scaled(mine_scaled, theirs_scaled)
    print(text)
    if not options.quick:
        results = ROOT / "benchmarks" / "results"
        (results / "anonymeter.md").write_text(text, encoding="utf-8")
        document = {
            "anonymeter": VERSION,
            "machine": machine,
            "attempts": attempts,
            "rows": rows,
            "ours": mine,
            "theirs": theirs,
            "ours_scaled": mine_scaled,
            "theirs_scaled": theirs_scaled,
        }
        (results / "anonymeter.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
