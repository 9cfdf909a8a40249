"""The smallest frequency of a released category."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sfumato.assess.findings import Direction
from sfumato.assess.risk.uniqueness import RAREST_CATEGORY
from tests.assess.cases import study
from tests.assess.privacy_studies import found

TOWNS = pa.table({"town": ["a"] * 5 + ["b"] * 3 + ["c"], "smokes": [True, False, None] * 3, "age": list(range(9))})


@pytest.mark.parametrize(("rows", "fewest"), [(range(9), 1), (range(8), 3), ([0, 1], 3), ([0, 2], 3), ([2], 5)])
def test_the_rarest_category_that_is_released_is_counted_in_the_original(rows: list[int], fewest: int) -> None:
    finding = found(RAREST_CATEGORY, study(TOWNS, TOWNS.take(pa.array(list(rows)))))["rarest-category"]
    assert (finding.value, finding.baseline) == (fewest, 1)
    assert finding.direction is Direction.HIGHER
    assert not finding.public


def test_a_table_without_categories_has_none_that_is_rare() -> None:
    numbers = TOWNS.select(["age"])
    finding = found(RAREST_CATEGORY, study(numbers, numbers))["rarest-category"]
    assert finding.value is None
    assert not finding.applies
