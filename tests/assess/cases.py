"""The three fixed cases: a verbatim copy, an independent redraw from the same law, a constant table."""

from __future__ import annotations

import datetime
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.assess.algebra import Measure, run_measure
from sfumato.assess.findings import Finding
from sfumato.assess.measure import StudyResult, assess, draw_figures, held_out_notes, measure_study
from sfumato.assess.report import Report
from sfumato.assess.study import Sizes, Study, StudyDetails, study_of
from sfumato.core.documents import plain
from sfumato.methods.protocol import OwnerDetails
from sfumato.tables.codec import Codec
from sfumato.tables.schema import Schema

ROWS = 600
CASES = ("copy", "redraw", "constant")


@cache
def draw_table(seed: int, rows: int = ROWS) -> pa.Table:
    """Draw rows of mixed kinds from one law, with links between them and missing cells."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    y = 3.0 * x + rng.normal(size=rows)
    colour = np.array(["amber", "blue", "crimson"])[np.clip(np.rint(x + rng.normal(size=rows)), -1, 1).astype(int) + 1]
    shape = np.where(rng.random(rows) < 0.8, np.where(colour == "blue", "round", "square"), "flat")
    days = (12_000 + 400 * x + 100 * rng.normal(size=rows)).astype(int)
    born = [datetime.date(1970, 1, 1) + datetime.timedelta(days=int(day)) for day in days]
    return pa.table(
        {
            "x": x,
            "y": pa.array(y, mask=rng.random(rows) < 0.1),
            "count": np.rint(20 + 4 * rng.normal(size=rows)).astype(np.int64),
            "colour": colour.tolist(),
            "shape": pa.array(shape.tolist(), mask=rng.random(rows) < 0.05),
            "born": born,
        }
    )


@cache
def constant_table(rows: int = ROWS) -> pa.Table:
    """Repeat one whole row of the original."""
    table = draw_table(1)
    full = np.flatnonzero(np.array(table.column("y").is_valid()) & np.array(table.column("shape").is_valid()))
    return table.take(pa.array(np.full(rows, full[0])))


def released_of(case: str, rows: int = ROWS) -> pa.Table:
    """The released table of a case; the original is drawn with seed 1."""
    if case == "constant":
        return constant_table(rows)
    return draw_table(1 if case == "copy" else 2, rows)


def fit(table: pa.Table, target: str | None = None) -> Codec:
    return Codec.fit(table, Schema.infer(table, target=target))


def with_details(options: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `study_of`, the details among them as one."""
    details = {name: options[name] for name in options if name in StudyDetails._fields}
    rest = {name: value for name, value in options.items() if name not in details}
    return rest | {"details": StudyDetails(**details)}


def study(
    original: pa.Table,
    released: pa.Table,
    *,
    seed: int = 5,
    target: str | None = None,
    sizes: Sizes | None = None,
    **more: Any,
) -> Study:
    made = study_of(original, released, fit(original, target), rng=np.random.default_rng(seed), **with_details(more))
    return made if sizes is None else replace(made, sizes=sizes)


def found_by(each: Measure, original: pa.Table, released: pa.Table, **more: Any) -> dict[str, Finding]:
    """What a measure finds in the study of an original and a released table."""
    return {finding.name: finding for finding in run_measure(each, study(original, released, **more))}


def measure(original: pa.Table, released: pa.Table, seed: int = 5, **more: Any) -> Report:
    return assess(study(original, released, seed=seed, **more))


def find(original: pa.Table, released: pa.Table, seed: int = 5, **more: Any) -> Report:
    """Measure, and draw nothing."""
    found = measure_study(study(original, released, seed=seed, **more))
    return Report(found.findings, (), original.num_rows, released.num_rows)


def ends(interval: tuple[float, float] | None) -> tuple[float, float]:
    assert interval is not None
    return interval


def assert_no_more_than_control(finding: Finding) -> None:
    """Allow about three standard errors either way; intervals of 95 % are about two."""
    assert finding.value is not None
    assert finding.control is not None
    (low, high), (bottom, top) = ends(finding.interval), ends(finding.control_interval)
    gap = finding.value - finding.control
    reach = np.hypot(finding.value - low, top - finding.control)
    assert gap <= 1.5 * reach
    assert -gap <= 1.5 * np.hypot(high - finding.value, finding.control - bottom)


def workings(groups: int = 60, rows: int = ROWS, level: int = 10) -> OwnerDetails:
    return OwnerDetails(np.arange(rows, dtype=np.int64) % groups, np.full(rows, level, dtype=np.int64))


@cache
def _measured(case: str) -> StudyResult:
    """A case measured once, with groups and rows held out."""
    return measure_study(study(draw_table(1), released_of(case), workings=workings(), holdout=draw_table(3)))


@cache
def findings_of(case: str) -> Report:
    """The report of a case, without figures."""
    found = _measured(case)
    rows = len(found.study.original), len(found.study.released)
    return Report(found.findings, (), *rows, plain(found.study.sizes), found.seconds, held_out_notes(found.study))


@cache
def report_of(case: str) -> Report:
    """The report of a case, with its figures."""
    found = _measured(case)
    return replace(findings_of(case), figures=draw_figures(found.study, found.findings))


def value_of(case: str, name: str) -> float:
    value = findings_of(case)[name].value
    assert value is not None
    return value
