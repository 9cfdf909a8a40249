"""Studies for the measures by mining: a table with a column to predict, and rows held out."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.assess.algebra import Measure, run_measure
from sfumato.assess.findings import Finding
from sfumato.assess.study import Sizes, Study, study_of
from sfumato.tables.codec import Codec
from sfumato.tables.schema import Role, Schema
from tests.assess.cases import draw_table, with_details


def study(
    original: pa.Table,
    released: pa.Table,
    target: str | None = "colour",
    *,
    holdout: pa.Table | None = None,
    schema: Schema | None = None,
    sizes: Sizes | None = None,
    seed: int = 5,
    **more: Any,
) -> Study:
    """Study two tables; by default with rows of the usual law held out."""
    known = Schema.infer(original) if schema is None else schema
    codec = Codec.fit(original, known if target is None else known.with_role(Role.TARGET, target))
    held = draw_table(3) if holdout is None else holdout
    made = study_of(original, released, codec, holdout=held, rng=np.random.default_rng(seed), **with_details(more))
    return made if sizes is None else dataclasses.replace(made, sizes=sizes)


def found(measure: Measure, subject: Study) -> dict[str, Finding]:
    """Run a measure as a report does."""
    return {finding.name: finding for finding in run_measure(measure, subject)}


def value(finding: Finding) -> float:
    assert finding.value is not None, finding.reason
    return finding.value


def base(finding: Finding) -> float:
    assert finding.baseline is not None
    return finding.baseline


def interval(finding: Finding) -> tuple[float, float]:
    assert finding.interval is not None
    return finding.interval


def is_complete(finding: Finding) -> bool:
    """Tell whether a finding is within its range and its interval, or says why it was not run."""
    if not finding.meaning.endswith(".") or ".." in finding.meaning:
        return False
    if finding.value is None:
        return bool(finding.reason) and "fail" not in str(finding.reason)
    low, high = (np.inf * sign if end is None else end for end, sign in zip(finding.range, (-1, 1), strict=True))
    inside = interval(finding)[0] <= finding.value <= interval(finding)[1]
    return bool(inside and low <= finding.value <= high and np.isfinite(base(finding)))
