"""Studies of the fixed cases, and of small tables of numbers, for the privacy measures."""

from __future__ import annotations

import math
import re
from functools import cache
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.algebra import Measure, run_measure
from sfumato.assess.findings import Finding
from sfumato.assess.measure import number_of
from sfumato.assess.study import Study
from sfumato.methods.protocol import OwnerDetails
from tests.assess.cases import ROWS, constant_table, draw_table, released_of, study

AWKWARD = ("one row", "two rows", "one column", "constant", "missing", "small release", "small holdout", "strange")


@cache
def case(name: str, seed: int = 5, target: str | None = "colour") -> Study:
    """A fixed case with rows held out and groups of ten neighbours in the table."""
    labels = np.arange(ROWS, dtype=np.int64) // 10
    made = OwnerDetails(labels, np.full(ROWS, 10), labels[: released_of(name).num_rows])
    return study(draw_table(1), released_of(name), seed=seed, target=target, workings=made, holdout=draw_table(3, 300))


@cache
def redraw(seed: int) -> Study:
    """An independent redraw of the same law, another for each seed."""
    first, second, third = (draw_table(3 * seed + step + 100, 400) for step in range(3))
    return study(first, second, seed=seed, target="colour", holdout=third)


def numbers(values: np.ndarray) -> pa.Table:
    return pa.table({f"v{place}": column for place, column in enumerate(values.T)})


@cache
def awkward(name: str) -> Study:
    """A study that a measure must get through without a crash."""
    table, other = draw_table(1, 60), draw_table(2, 60)
    strange = other.set_column(3, "colour", pa.array(["mauve"] * 60)).set_column(2, "count", pa.nulls(60, pa.int64()))
    originals = {"one row": constant_table(1), "two rows": table.slice(0, 2), "constant": constant_table(60)}
    originals |= {"one column": table.select(["x"]), "missing": table.set_column(1, "y", _nothing(60))}
    original = originals.get(name, table)
    released = {"one column": other.select(["x"]), "small release": other.slice(0, 1), "strange": strange}.get(
        name, other
    )
    held = draw_table(3, 2).select(original.column_names) if name == "small holdout" else None
    rows = original.num_rows
    drawn = np.arange(released.num_rows, dtype=np.int64) % max(rows // 5, 1)
    made = OwnerDetails(np.arange(rows, dtype=np.int64) % max(rows // 5, 1), np.full(rows, 5), drawn)
    return study(original, released, target=original.column_names[-1], workings=made, holdout=held)


def _nothing(rows: int) -> pa.Array:
    return pa.array([1.5] + [None] * (rows - 1), pa.float64())


_FOUND: WeakKeyDictionary[Study, dict[str, dict[str, Finding]]] = WeakKeyDictionary()


def found(measure: Measure, of: Study) -> dict[str, Finding]:
    """What a measure finds in a study, run once for all tests that look at it."""
    kept = _FOUND.setdefault(of, {})
    if measure.name not in kept:
        kept[measure.name] = {finding.name: finding for finding in run_measure(measure, of)}
    return kept[measure.name]


def value(measure: Measure, of: Study, name: str) -> float:
    finding = found(measure, of)[name]
    assert finding.value is not None, finding.reason
    return finding.value


def check_sound(measure: Measure, of: Study) -> None:
    """Check that all findings are complete, within range, inside their interval, and that none failed."""
    findings = found(measure, of)
    assert set(measure.names) <= set(findings)
    for finding in findings.values():
        assert finding.meaning.endswith(".")
        assert all(len(part.split()) <= 45 for part in re.split(r"[.;:] ", finding.meaning)), finding.meaning
        number = number_of(finding.name)
        assert number is not None
        assert finding.public == number.scale.public
        if finding.value is None:
            assert finding.reason
            assert "failed" not in finding.reason, finding.reason
            continue
        numbers_of = [finding.value, finding.baseline, *(finding.interval or ()), *(finding.control_interval or ())]
        assert all(number is not None and math.isfinite(number) for number in numbers_of), finding.name
        low, high = finding.range
        assert low is None or low <= finding.value, finding.name
        assert high is None or finding.value <= high, finding.name
        if finding.interval is not None:
            assert finding.interval[0] <= finding.value <= finding.interval[1]
        if finding.control is not None:
            assert finding.control_interval is not None
            assert finding.control_interval[0] <= finding.control <= finding.control_interval[1]


def overlap(finding: Finding) -> bool:
    """Tell whether what was found and its control may be the same."""
    if finding.interval is None or finding.control_interval is None:
        pytest.fail(f"{finding.name} has no control")
    return finding.interval[0] <= finding.control_interval[1] and finding.control_interval[0] <= finding.interval[1]
