"""Reports of three generated tables, as they were recorded: one meets its policy, one is inconclusive, one is refused.

``python -m tests.assess.recorded`` records them again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import sfumato
from sfumato.assess.findings import ColumnRisk, Direction, Family, Finding, Tries
from sfumato.assess.report import ChangeTried, ExceededLimit, LimitResult, Report, Ruling, UndecidedLimit, Verdict
from sfumato.publish.judge import PolicyNotMet
from sfumato.publish.policy import PURPOSES

__all__ = ["OUTCOMES", "recorded"]

OUTCOMES = {"meets": Ruling.MEETS, "inconclusive": Ruling.INCONCLUSIVE, "refused": Ruling.DOES_NOT_MEET}
_FOLDER = Path(__file__).parent / "recorded"
_RUNS: dict[str, tuple[int, Any, str]] = {
    "meets": (6_000, sfumato.Chain(k=10, leaf=200), "trusted"),
    "inconclusive": (700, sfumato.Chain(k=10, leaf=50), "research"),
    "refused": (3_000, sfumato.Condensation(k=3), "research"),
}
_LEFT_OUT = ("meaning", "figures", "seconds")


def recorded(name: str) -> tuple[Report, dict[str, Any]]:
    """A recorded report and the document of its certificate."""
    document = json.loads((_FOLDER / f"{name}.json").read_text("utf-8"))
    report = document["report"]
    numbers = ("rows_original", "rows_released", "sizes", "rows_held_out", "target")
    return (
        Report(
            tuple(map(_finding, report["findings"])),
            (),
            verdict=_verdict(report["verdict"]),
            notes=tuple(report["notes"]),
            columns=tuple(ColumnRisk(**column) for column in report["columns"]),
            **{key: report[key] for key in numbers},
        ),
        document["certificate"],
    )


def _pair(ends: list[float] | None) -> tuple[float, float] | None:
    return None if ends is None else (ends[0], ends[1])


def _finding(document: dict[str, Any]) -> Finding:
    kept = {key: value for key, value in document.items() if key not in ("excess", "status")}
    intervals = {key: _pair(kept.get(key)) for key in ("interval", "control_interval", "baseline_interval")}
    tries = {key: None if key not in kept else Tries(**kept[key]) for key in ("inside", "outside")}
    kinds = {"family": Family(kept["family"]), "direction": Direction(kept["direction"])}
    fixed = {"value": kept.get("value"), "range": tuple(kept["range"]), "meaning": "Recorded."}
    return Finding(**{**kept, **intervals, **tries, **kinds, **fixed})


def _verdict(document: dict[str, Any]) -> Verdict:
    def each(kind: type, key: str) -> tuple[Any, ...]:
        return tuple(kind(**{**entry, "interval": _pair(entry["interval"])}) for entry in document[key])

    limits = tuple(
        LimitResult(**{**entry, "interval": _pair(entry["interval"]), "outcome": Ruling(entry["outcome"])})
        for entry in document["limits"]
    )
    return Verdict(
        document["policy"],
        Ruling(document["outcome"]),
        each(ExceededLimit, "exceeded"),
        each(UndecidedLimit, "missing"),
        tuple(document["try"]),
        purpose=PURPOSES[document["policy"]],
        edited=document["edited"],
        tried=document["tried"],
        asked=document["asked"],
        changes=tuple(ChangeTried(**change) for change in document["changes"]),
        limits=limits,
    )


def _people(rows: int) -> pa.Table:
    """Draw people with linked columns, and a target that can be predicted."""
    rng = np.random.default_rng(rows)
    age = rng.integers(18, 80, rows)
    region = rng.choice(["north", "south", "east", "west"], rows, p=[0.4, 0.3, 0.2, 0.1])
    income = np.rint(np.exp(7.2 + 0.01 * age + rng.normal(0, 0.4, rows)))
    visits = rng.poisson(1.0 + age / 30)
    weight = np.round(60 + 0.2 * age + rng.normal(0, 9, rows), 1)
    risk = 0.05 * (age - 50) + 0.4 * (visits - 2) + rng.logistic(0, 1, rows)
    return pa.table(
        {
            "age": age,
            "region": region.tolist(),
            "income": income,
            "visits": visits,
            "weight": weight,
            "ill": np.where(risk > 0, "yes", "no").tolist(),
        }
    )


def _record(name: str) -> None:
    rows, method, policy = _RUNS[name]
    try:
        release = sfumato.sanitize(_people(rows), method, target="ill", policy=policy, holdout=0.4, seed=7)
    except PolicyNotMet as refusal:
        kept = refusal._kept
    else:
        kept = release
    assert kept is not None
    release = kept
    assert release.report is not None
    assert release.report.verdict is not None
    assert release.report.verdict.outcome is OUTCOMES[name], release.report.summary()
    report = {key: value for key, value in release.report.to_json().items() if key not in _LEFT_OUT}
    report["findings"] = [
        {key: value for key, value in finding.items() if key not in _LEFT_OUT} for finding in report["findings"]
    ]
    certificate = {
        key: value
        for key, value in release.certificate.to_document().items()
        if key in ("method", "parameters", "levels", "claims", "refused")
    }
    _FOLDER.mkdir(exist_ok=True)
    _write(name, {"report": report, "certificate": certificate})


def _write(name: str, document: dict[str, Any]) -> None:
    """Write a finding on each line, without what is null."""
    findings = [
        {key: value for key, value in each.items() if value is not None} for each in document["report"]["findings"]
    ]
    rest = {**document, "report": {**document["report"], "findings": []}}
    lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in findings)
    text = json.dumps(rest, ensure_ascii=False).replace('"findings": []', f'"findings": [\n{lines}\n]')
    (_FOLDER / f"{name}.json").write_text(f"{text}\n", "utf-8")


if __name__ == "__main__":
    for run in _RUNS:
        _record(run)
