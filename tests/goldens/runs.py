"""Seeded runs of every engine and method, each a folder that must come out the same, number by number.

``python -m tests.goldens.runs FOLDER`` writes the folders whole, with pages, to be compared to the byte on one machine;
``python -m tests.goldens.runs`` writes the texts that the tests compare.
"""

from __future__ import annotations

import datetime
import json
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

import sfumato as sf
from sfumato.core.errors import PrivacyLeakWarning
from sfumato.methods.geometry import Hybrid, Rotation
from sfumato.parties.plan import JointPlan
from sfumato.parties.publish import joint_in_one_process
from sfumato.publish.sanitize import sanitize
from sfumato.stream.entries import cut_batches
from sfumato.stream.session import StreamSession
from sfumato.tables.schema import Domain, Field, Kind, Role, Schema

FROZEN = Path(__file__).parent / "folders"
KEPT = (
    "table.csv", "certificate.json", "schema.toml", "schema-private.toml", "recipe.toml", "epochs.json", "ledger.json",
    "rules.txt",
)  # fmt: skip
FINDINGS = "findings.txt"
COSTS = ("seconds-taken", "bytes-exchanged")  # of the machine, and of the clock
ROWS = 90
TOWNS = ("Bari", "Oslo", "Ulm")


def people(rows: int = ROWS) -> pa.Table:
    """Mixed columns with missing cells, a column of names, one of levels, and a class."""
    rng = np.random.default_rng(20)
    age = rng.integers(18, 90, rows)
    pay = (900 + 40 * age + rng.gamma(2.0, 300.0, rows)).round(2)
    born = [datetime.date(2020 - int(years), 1 + int(years) % 12, 1 + int(years) % 28) for years in age]
    return pa.table(
        {
            "name": [f"p{place}" for place in range(rows)],
            "age": age,
            "pay": pa.array([None if place % 17 == 3 else float(value) for place, value in enumerate(pay)]),
            "town": pa.array([None if place % 19 == 5 else TOWNS[place * place % 3] for place in range(rows)]),
            "smoker": rng.random(rows) < 0.3,
            "born": pa.array(born),
            "level": np.where(age > 70, 8, 5),
            "ill": np.where(age + rng.normal(0, 12, rows) > 60, "yes", "no"),
        }
    )


def numbers() -> pa.Table:
    """Three columns of numbers and a class."""
    return people().select(["age", "ill"]).append_column("pay", people()["pay"].fill_null(1500.0)).append_column(
        "stay", pa.array(np.random.default_rng(3).gamma(2.0, 3.0, ROWS).round(1))
    )  # fmt: skip


Run = Callable[[Path, bool], None]
"""Writes a folder of that name, with or without a report."""


def _memory(mechanism: sf.Condensation | Any, table: Callable[[], pa.Table] = people, **options: Any) -> Run:
    def run(folder: Path, report: bool) -> None:
        told = {"identifiers": ["name"], "target": "ill"} if table is people else {"target": "ill"}
        release = sf.sanitize(table(), mechanism, seed=7, report=report, **{**told, **options})
        release.save(folder)

    return run


def _chunks(mechanism: Rotation | Hybrid) -> Run:
    def run(folder: Path, report: bool) -> None:
        with tempfile.TemporaryDirectory() as work:
            pa.csv.write_csv(numbers(), Path(work, "in.csv"))
            sanitize(
                Path(work, "in.csv"), mechanism, folder=folder, engine="partitions",
                new_key=Path(work, "key.toml"), public=["ill"], batch_rows=40,
                seed=7, report=report,
            )  # fmt: skip

    return run


def _stream(epochs: int) -> Run:
    def run(folder: Path, report: bool) -> None:
        with tempfile.TemporaryDirectory() as work:
            state, table = Path(work, "state.db"), people(300)
            sf.stream(state, table.slice(0, 100), identifiers=["name"], level="level", k=5, seed=7)
            for epoch in range(epochs):
                with StreamSession.open(state) as session:
                    rows = table.slice(100 * (epoch + 1), 100)
                    session.ingest(cut_batches([rows], session.settings.batch_rows))
                sf.stream(state).publish(folder, report=report, overwrite=True)

    return run


def _joint(partition: str) -> Run:
    def run(folder: Path, report: bool) -> None:
        rows = people().filter(people()["town"].is_valid()).select(["name", "age", "town", "smoker", "ill"])
        plan = JointPlan(partition, ("bank", "clinic"), sf.LaplacePCA(k=8), "ill", rounds=3, few="allow", seed=7)
        with tempfile.TemporaryDirectory() as work:
            places = [Path(work, "bank"), Path(work, "clinic")]
            if partition == "vertical":
                parts = [rows.select(["name", "age", "town"]), rows.select(["name", "smoker", "ill"])]
                joint_in_one_process(parts, plan, key="name", folders=places, report=report)
            else:
                parts, schema = [rows.slice(0, 50), rows.slice(50)], _declared()
                joint_in_one_process(parts, plan, schemas=[schema, schema], folders=places, report=report)
            shutil.copytree(places[0], folder)

    return run


def _declared() -> Schema:
    return Schema(
        (
            Field("name", Kind.NOMINAL, Role.IDENTIFIER),
            Field("age", Kind.INTEGER, domain=Domain(declared=True, low=0, high=120)),
            Field("town", Kind.NOMINAL, domain=Domain(declared=True, categories=TOWNS)),
            Field("smoker", Kind.BOOLEAN, domain=Domain(declared=True, categories=(False, True))),
            Field("ill", Kind.NOMINAL, domain=Domain(declared=True, categories=("no", "yes"))),
        )
    )


def shop() -> pa.Table:
    """Transactions of few items, of persons with two each, in which butter mostly stands beside bread."""
    rng = np.random.default_rng(8)
    names = np.array(["bread", "butter", "milk", "jam", "beer", "tea", "rice", "salt"])
    held = rng.random((ROWS, len(names))) < [0.5, 0.1, 0.4, 0.3, 0.2, 0.3, 0.2, 0.1]
    held[:, 1] |= held[:, 0] & (rng.random(ROWS) < 0.8)
    held[:, 2] |= ~held.any(axis=1)
    return pa.table({"who": [f"p{row // 2}" for row in range(ROWS)], "items": [";".join(names[row]) for row in held]})


def _transactions(verb: str, *rules: list[str], **told: Any) -> Run:
    def run(folder: Path, report: bool) -> None:
        getattr(sf.transactions(shop(), person="who"), verb)(*rules, seed=7, holdout=0.2, report=report, **told).save(
            folder
        )

    return run


RUNS: dict[str, Run] = {
    "condense": _memory(sf.Condensation(k=5), level="level", holdout=0.2),
    "condense-paper": _memory(sf.Condensation(k=5, grouping="paper"), strata="ill"),
    "classwise": _memory(sf.ClasswiseCondensation(k=5), level="level"),
    "chain": _memory(sf.Chain(k=5, leaf=10), level="level", holdout=0.2),
    "translate": _memory(sf.Translation(), numbers, public=["ill"], target=None),
    "scale": _memory(sf.Scaling(), numbers, public=["ill"], target=None),
    "rotate": _memory(sf.Rotation(), numbers, public=["ill"], target=None),
    "hybrid": _memory(sf.Hybrid(), numbers, public=["ill"], target=None, holdout=0.2),
    "noise": _memory(sf.AdditiveNoise(size=0.3), numbers, public=["ill"], target=None),
    "noise-multiplicative": _memory(sf.MultiplicativeNoise(size=0.2), numbers, public=["ill"], target=None),
    "laplace-pca": _memory(sf.LaplacePCA(k=8), holdout=0.2),
    "randomize": _memory(
        sf.Randomization(epsilon=2.0, allow_observed=True, pass_missing=True), identifiers=["name", "born"]
    ),
    "swap": _memory(sf.Swapping(window=10, pass_categories=True), identifiers=["name", "level"]),
    "swap-leaves": _memory(sf.Swapping(within="leaves", leaf=15), identifiers=["name", "level"]),
    "subsample": _memory(sf.Subsampling(share=0.4), identifiers=["name", "level"], holdout=0.2),
    "aggregate": _memory(
        sf.Aggregation(widths={"age": 10, "pay": 500}, coarsened={"born": 3}), identifiers=["name", "level"]
    ),
    "block": _memory(sf.Blocking(columns=("age", "town", "smoker"), k=3), level="level"),
    "downgrade": _memory(sf.Downgrading("ill", leaf=15, limit=0.2), identifiers=["name", "level"]),
    "transactions-randomize": _transactions("randomize"),
    "transactions-sizes": _transactions("randomize", operator="select-a-size"),
    "transactions-hide": _transactions("hide", ["bread -> butter"], min_support=0.1),
    "transactions-block": _transactions("block", ["bread -> butter"], min_support=0.1),
    "chunks-rotate": _chunks(Rotation()),
    "chunks-hybrid": _chunks(Hybrid()),
    "stream-first": _stream(1),
    "stream-second": _stream(2),
    "joint-columns": _joint("vertical"),
    "joint-rows": _joint("horizontal"),
}

REPORTED = (
    "condense", "classwise", "hybrid", "noise", "laplace-pca", "randomize", "transactions-randomize",
    "transactions-hide", "transactions-block", "chunks-hybrid", "stream-second", "joint-columns", "joint-rows",
)  # fmt: skip
"""Runs whose report is compared too; it takes seconds of each."""


def play(name: str, folder: Path, *, report: bool) -> None:
    """Write the folder of a run; what leaks is the run's own business."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        warnings.filterwarnings("ignore", ".*other cells become missing")
        RUNS[name](folder, report)


def texts(folder: Path) -> Iterator[tuple[str, str]]:
    """The texts of a folder that are compared, by name, without the time at which they were made."""
    for path in sorted(folder.rglob("*")):
        if path.name in KEPT:
            yield f"{path.parent.name}-{path.name}", _timeless(path.read_text("utf-8"))


def _timeless(text: str) -> str:
    text = re.sub(r'("created": ?)"[^"]*"', r'\1"then"', text)
    return re.sub(r',?\s*"report-public.html": ?"[0-9a-f]*",?', "", text)  # its hash: a page is not compared


def findings(folder: Path) -> str:
    """One line a finding of the report: its name and its numbers."""
    report = json.loads((folder / "owner" / "report.json").read_text("utf-8"))
    keys = ("value", "interval", "baseline", "control", "status")
    return "".join(
        " ".join([finding["name"], *(json.dumps(finding[key]) for key in keys)]) + "\n"
        for finding in report["findings"]
        if finding["name"] not in COSTS
    )


def main(place: str | None = None, *names: str) -> None:
    """Write folders whole at a place, or freeze the texts of all of them beside the tests."""
    for name in names or RUNS:
        if place:
            play(name, Path(place, name), report=name in REPORTED)
            for path in Path(place, name).rglob("*.json"):
                path.write_text(_timeless(path.read_text("utf-8")), "utf-8")
            continue
        with tempfile.TemporaryDirectory() as work:
            (FROZEN / name).mkdir(parents=True, exist_ok=True)
            play(name, Path(work, "plain"), report=False)
            for file, text in texts(Path(work, "plain")):
                (FROZEN / name / file).write_text(text, "utf-8")
            if name in REPORTED:
                play(name, Path(work, "measured"), report=True)
                (FROZEN / name / FINDINGS).write_text(findings(Path(work, "measured")), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
