"""What a release costs: cells changed, seconds and bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.utility.distortion import CHANGES, cost_findings
from sfumato.methods.protocol import OwnerDetails
from sfumato.tables.facts import Aggregated
from tests.assess.cases import study
from tests.assess.privacy_studies import found as run

TABLE = pa.table({"x": [1.0, 2.0, 3.0, 4.0], "y": ["a", "a", "b", None]})


def changed(released: pa.Table, origin: list[int]) -> float | None:
    told = study(TABLE, released, workings=OwnerDetails(origin=np.array(origin)))
    return run(CHANGES, told)["cells-changed"].value


def test_cells_are_compared_with_those_of_the_row_they_descend_from() -> None:
    assert changed(TABLE, [0, 1, 2, 3]) == 0.0
    assert changed(TABLE.take([3, 2, 1, 0]), [3, 2, 1, 0]) == 0.0
    assert changed(TABLE, [1, 0, 2, 3]) == pytest.approx(2 / 8)  # both have the same y
    blocked = TABLE.set_column(1, "y", pa.array([None, "a", "b", "b"]))
    assert changed(blocked, [0, 1, 2, 3]) == pytest.approx(2 / 8)


def test_cells_of_widened_columns_are_changed_unless_they_are_missing() -> None:
    told = study(
        TABLE, TABLE, workings=OwnerDetails(origin=np.arange(4)), facts=(Aggregated(("y",), ("intervals",), (1,)),)
    )
    assert run(CHANGES, told)["cells-changed"].value == pytest.approx(3 / 8)


def test_rows_that_descend_from_nobody_are_not_compared() -> None:
    finding = run(CHANGES, study(TABLE, TABLE))["cells-changed"]
    assert finding.value is None
    assert not finding.applies


def test_seconds_and_bytes_are_told_where_they_were_taken_and_stay_with_the_owner() -> None:
    found = {finding.name: finding for finding in cost_findings(1.5, 2_048)}
    assert {name: finding.value for name, finding in found.items()} == {"seconds-taken": 1.5, "bytes-exchanged": 2048.0}
    assert not any(finding.public for finding in found.values())
    assert cost_findings(0.0, None) == ()
