"""Values that one person alone holds, and whole rows, that stand in the release."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.attacks.shown import SHOWN
from tests.assess.cases import ROWS
from tests.assess.privacy_studies import AWKWARD, awkward, case, check_sound, found, overlap, redraw, study, value
from tests.examples import at_length


@pytest.mark.parametrize("name", ["copy", "redraw", "constant"])
def test_every_finding_of_a_fixed_case_is_complete(name: str) -> None:
    check_sound(SHOWN, case(name))


@pytest.mark.parametrize("name", AWKWARD)
def test_no_awkward_table_stops_it(name: str) -> None:
    for finding in found(SHOWN, awkward(name)).values():
        assert finding.value is not None
        assert finding.interval is not None
        assert 0.0 <= finding.interval[0] <= finding.value <= finding.interval[1] <= 1.0


def test_a_copy_shows_everybody_and_a_constant_release_one_at_most() -> None:
    for name in ("unique-values-shown", "whole-rows-shown"):
        assert value(SHOWN, case("copy"), name) == 1.0
        assert value(SHOWN, case("constant"), name) <= 1 / ROWS


@pytest.mark.parametrize("seed", [0, 1, *at_length(2, 3)])
def test_a_redraw_shows_those_inside_no_more_than_those_held_out(seed: int) -> None:
    for finding in found(SHOWN, redraw(seed)).values():
        assert overlap(finding)


def test_values_and_rows_are_counted_by_hand() -> None:
    original = pa.table({"pay": [10, 20, 20, 30, 40, None], "town": ["a", "a", "b", "b", "c", "a"]})
    released = pa.table({"pay": [10, 20, 30, 50, None, None], "town": ["b", "b", "b", "a", "a", "b"]})
    outside = pa.table({"pay": [50, 60, 20, 30], "town": ["a", "a", "b", "a"]})
    findings = found(SHOWN, study(original, released, holdout=outside))
    unique, rows = findings["unique-values-shown"], findings["whole-rows-shown"]
    assert unique.value == pytest.approx(2 / 6)  # 10 and 30; 40 and c are held by one and not shown
    assert unique.control == pytest.approx(1 / 4)  # 50
    assert "3 people are alone with a value in some column" in unique.meaning
    assert rows.value == pytest.approx(3 / 6)  # (20, b), (30, b), (missing, a)
    assert rows.control == pytest.approx(2 / 4)  # (50, a), (20, b)


def test_a_person_of_several_rows_is_one_holder() -> None:
    original = pa.table({"pay": [10, 10, 20, 20, 30]})
    findings = found(SHOWN, study(original, original, persons=np.array([0, 0, 1, 2, 2]), holdout=original.slice(0, 1)))
    assert findings["unique-values-shown"].value == pytest.approx(2 / 3)  # persons 0 and 2; two hold 20
    assert findings["whole-rows-shown"].value == 1.0


def test_without_people_held_out_other_rows_of_the_original_are_the_baseline() -> None:
    rng = np.random.default_rng(3)
    table = pa.table({"x": rng.normal(size=300), "n": rng.integers(0, 3, 300)})
    finding = found(SHOWN, study(table, table))["unique-values-shown"]
    assert finding.value == 1.0
    assert finding.baseline is not None
    assert finding.baseline < 0.05
