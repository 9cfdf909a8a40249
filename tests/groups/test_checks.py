"""What is refused before records are grouped, and after, at the very edge of what is allowed."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.core.errors import LevelError, PrivacyRefusal, TableError
from sfumato.core.groups import check_feasible, check_partition, check_values


def test_records_without_coordinates_or_with_numbers_that_are_not_finite_are_refused() -> None:
    check_values(np.zeros((0, 1)))
    check_values(np.zeros((3, 1)))
    with pytest.raises(TableError, match="no coordinates"):
        check_values(np.zeros((3, 0)))
    with pytest.raises(TableError, match=r"^2 records hold a number that is not finite"):
        check_values(np.array([[np.nan, np.inf], [0.0, 1.0], [1.0, -np.inf]]))


def feasible(levels: list[int], strata: list[int] | None = None) -> None:
    check_feasible(np.array(levels, dtype=np.int64), np.array(strata or [0] * len(levels), dtype=np.int64))


def test_a_level_may_be_as_high_as_there_are_records_and_no_higher() -> None:
    feasible([1])
    feasible([3, 3, 2])
    with pytest.raises(LevelError, match="there are 3 records and the highest privacy level is 4"):
        feasible([3, 4, 2])
    with pytest.raises(LevelError, match="there are 0 records"):
        feasible([])
    with pytest.raises(LevelError, match=r"^2 privacy levels are zero or negative"):
        feasible([0, 3, -1])


def test_a_stratum_needs_as_many_records_as_the_highest_level_in_it() -> None:
    strata = [7, 7, 5, 5, 5, 9, 9, 9, 9]
    feasible([2, 2, 3, 3, 3, 4, 4, 4, 4], strata)
    with pytest.raises(LevelError, match=r"^1 of 3 strata have fewer .* \(the smallest has 3 and level 4\)"):
        feasible([2, 2, 3, 4, 3, 4, 4, 4, 4], strata)
    with pytest.raises(LevelError, match=r"^2 of 3 strata have fewer .* \(the smallest has 3 and level 4\)"):
        feasible([2, 2, 3, 4, 3, 4, 5, 4, 4], strata)
    with pytest.raises(LevelError, match=r"^2 of 3 strata have fewer .* \(the smallest has 2 and level 3\)"):
        feasible([2, 3, 3, 4, 3, 4, 4, 4, 4], strata)


def whole(labels: list[int], levels: list[int]) -> None:
    check_partition(np.array(labels, dtype=np.int64), np.array(levels, dtype=np.int64))


def test_a_group_is_as_large_as_the_highest_level_in_it_or_nothing_is_released() -> None:
    whole([0, 0, 1, 1, 1], [2, 2, 3, 3, 1])
    for levels, count in (([2, 3, 3, 3, 1], 1), ([3, 3, 4, 3, 1], 3), ([9, 9, 9, 9, 9], 5)):
        with pytest.raises(PrivacyRefusal, match=f"^{count} records came out in a group smaller than"):
            whole([0, 0, 1, 1, 1], levels)


@pytest.mark.parametrize("labels", [[-1, 0, 0], [0, 2, 2], [1, 1, 1], [-1, -1, -1]])
def test_a_record_without_a_group_or_a_group_without_a_record_is_refused(labels: list[int]) -> None:
    with pytest.raises(PrivacyRefusal, match="nothing is released"):
        whole(labels, [1, 1, 1])


def test_a_table_of_no_records_has_no_groups() -> None:
    with pytest.raises(PrivacyRefusal, match="nothing is released"):
        whole([], [])
