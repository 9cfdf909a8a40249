"""Group sizes, levels asked and got, and information loss."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from sfumato.assess.findings import Finding
from sfumato.assess.risk.groups import COMPACTNESS, GROUPS, compactness, group_sizes
from sfumato.core.groups.facts import Grouped
from sfumato.methods.protocol import OwnerDetails


def by_name(findings: tuple[Finding, ...]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


def of(labels: list[int], levels: list[int]) -> OwnerDetails:
    return OwnerDetails(np.array(labels, dtype=np.int64), np.array(levels, dtype=np.int64))


def test_sizes_levels_and_tiny_groups_are_counted() -> None:
    found = by_name(GROUPS.findings(group_sizes(of([0, 0, 7, 7, 7, 7, 7], [2, 3, 5, 5, 5, 5, 5]))))
    assert found["group-size-smallest"].value == 2
    assert found["group-size-median"].value == 3.5
    assert found["group-size-largest"].value == 5
    assert found["level-met"].value == pytest.approx(6 / 7)
    assert found["groups-below-four"].value == 1


def test_only_the_smallest_group_may_leave_the_house() -> None:
    found = GROUPS.findings(group_sizes(of([0, 0], [2, 2])))
    assert [finding.name for finding in found if finding.public] == ["group-size-smallest"]


def test_a_fact_tells_the_smallest_group_where_the_workings_are_gone() -> None:
    fact = Grouped("any", 100, 9, 11, 0, 0, 0, 0)
    found = by_name(GROUPS.findings(group_sizes(OwnerDetails(), (fact,))))
    assert found["group-size-smallest"].value == 11
    assert found["group-size-largest"].status == "not-run"


def test_information_loss_is_none_for_single_records_all_for_one_group_and_between_for_random_groups() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=(400, 3))
    alone, together = np.arange(400), np.zeros(400, dtype=np.int64)
    shuffled = rng.permutation(np.arange(400) // 10)
    losses = []
    for labels in (alone, together, shuffled):
        ssq, loss = COMPACTNESS.findings(compactness(values, labels))
        assert ssq.value is not None
        assert loss.value is not None
        losses.append(loss.value)
    assert losses[0] == pytest.approx(0.0)
    assert losses[1] == pytest.approx(100.0)
    assert losses[2] == pytest.approx(loss.baseline, rel=0.05)


def test_information_loss_of_a_table_that_does_not_vary_is_not_run() -> None:
    ssq, loss = COMPACTNESS.findings(compactness(np.ones((6, 2)), np.array([0, 0, 0, 1, 1, 1])))
    assert ssq.value == 0.0
    assert loss.status == "not-run"


def test_a_finding_that_was_not_run_has_no_number_in_its_json() -> None:
    document = COMPACTNESS.not_run("it was not asked for")[0].to_json()
    assert document["value"] is None
    assert document["status"] == "not-run"
    assert dataclasses.fields(Finding)[0].name in document
