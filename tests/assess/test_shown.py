"""Values that one person alone holds, and whole rows, that stand in the release."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.attacks.rare_combinations import UNIQUE_VALUES, WHOLE_ROWS
from sfumato.assess.findings import gains
from tests.assess.cases import ROWS, study
from tests.assess.privacy_studies import AWKWARD, awkward, case, found, overlap, redraw, value
from tests.examples import at_length

BOTH = {"unique-values-disclosed": UNIQUE_VALUES, "exact-row-matches": WHOLE_ROWS}


@pytest.mark.parametrize("name", AWKWARD)
def test_no_awkward_table_stops_it(name: str) -> None:
    for measure in BOTH.values():
        (finding,) = found(measure, awkward(name)).values()
        assert finding.value is not None
        assert finding.interval is not None
        assert 0.0 <= finding.interval[0] <= finding.value <= finding.interval[1] <= 1.0


def test_a_copy_shows_everybody_and_a_constant_release_one_at_most() -> None:
    for name, measure in BOTH.items():
        assert value(measure, case("copy"), name) == 1.0
        assert value(measure, case("constant"), name) <= 1 / ROWS


@pytest.mark.parametrize("seed", [0, 1, *at_length(2, 3)])
def test_a_redraw_shows_those_inside_no_more_than_those_held_out(seed: int) -> None:
    for measure in BOTH.values():
        for finding in found(measure, redraw(seed)).values():
            assert overlap(finding)


def test_values_and_rows_are_counted_by_hand() -> None:
    original = pa.table({"pay": [10, 20, 20, 30, 40, None], "town": ["a", "a", "b", "b", "c", "a"]})
    released = pa.table({"pay": [10, 20, 30, 50, None, None], "town": ["b", "b", "b", "a", "a", "b"]})
    outside = pa.table({"pay": [50, 60, 20, 30], "town": ["a", "a", "b", "a"]})
    compared = study(original, released, holdout=outside)
    (unique,), (rows,) = (found(measure, compared).values() for measure in BOTH.values())
    assert unique.value == pytest.approx(2 / 6)  # 10 and 30; 40 and c are held by one and not shown
    assert unique.control == pytest.approx(1 / 4)  # 50
    assert "3 people are alone with a value in some column" in unique.meaning
    assert rows.value == pytest.approx(3 / 6)  # (20, b), (30, b), (missing, a)
    assert rows.control == pytest.approx(2 / 4)  # (50, a), (20, b)


def test_a_person_of_several_rows_is_one_holder() -> None:
    original = pa.table({"pay": [10, 10, 20, 20, 30]})
    compared = study(original, original, persons=np.array([0, 0, 1, 2, 2]), holdout=original.slice(0, 1))
    (unique,), (rows,) = (found(measure, compared).values() for measure in BOTH.values())
    assert unique.value == pytest.approx(2 / 3)  # persons 0 and 2; two hold 20
    assert rows.value == 1.0


def test_without_people_held_out_a_copy_stands_beside_numbers_that_nobody_holds() -> None:
    rng = np.random.default_rng(3)
    table = pa.table({"x": rng.normal(size=300), "n": rng.integers(0, 3, 300)})
    finding = found(UNIQUE_VALUES, study(table, table))["unique-values-disclosed"]
    assert finding.value == 1.0
    assert finding.baseline == 0.0


@pytest.mark.parametrize(("spread", "step"), [(300.0, 1.0), (30.0, 0.1), (3_000.0, 1.0)])
def test_a_redraw_on_a_grid_shows_unique_numbers_as_often_as_their_neighbours(spread: float, step: float) -> None:
    """Of 3,000 people; each share is off by at most six standard deviations, so that it fails once in 1e8 times."""
    rng = np.random.default_rng(5)
    original, released = (
        pa.table({"pay": np.round(np.rint(rng.normal(500.0, spread, 3_000) / step) * step, 6)}) for _ in range(2)
    )
    finding = found(UNIQUE_VALUES, study(original, released))["unique-values-disclosed"]
    assert finding.value is not None
    assert finding.baseline is not None
    assert finding.baseline > 0.01
    assert abs(finding.value - finding.baseline) < 6 * np.sqrt(finding.baseline / 3_000)


def test_numbers_by_chance_are_counted_by_hand() -> None:
    original = pa.table({"pay": [100, 101, 110, 111, 300]})  # none recurs, so that no redraw would show it
    released = pa.table({"pay": [102, 105, 105, 301, 299]})
    finding = found(UNIQUE_VALUES, study(original, released))["unique-values-disclosed"]
    # of 92 to 108 without 101; of 93 to 109 without 100; of 102 to 118 and of 103 to 119; of 292 to 308
    near = (2 / 15, 2 / 15, 2 / 15, 1 / 15, 2 / 16)
    assert finding.value == 0.0
    assert finding.baseline == pytest.approx(sum(near) / 5)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_months_of_birth_that_any_table_shows_are_chance(seed: int) -> None:
    """Months have 28 to 31 days: those beside a unique one are months, and no steps of the shortest."""
    rng = np.random.default_rng(seed)

    def born(rows: int) -> pa.Table:
        days = rng.integers(-14_000, 14_000, rows)
        return pa.table({"born": pa.array(days.astype(np.int32)).view(pa.date32()), "x": rng.integers(0, 3, rows)})

    finding = found(UNIQUE_VALUES, study(born(2_000), born(2_000)))["unique-values-disclosed"]
    assert finding.value is not None
    assert finding.baseline is not None
    assert finding.value > 0.03  # of some 900 months each is shown nine times of ten
    assert finding.baseline == pytest.approx(finding.value, rel=0.2)
    assert not gains([finding])[0].certain


def test_coincidence_counts_a_person_of_several_rows_once() -> None:
    """Of rows with unique values; each person has three, so that one of them is shown three times as often."""
    rng = np.random.default_rng(2)
    draws = [pa.table({"x": rng.integers(0, 3_000, 1_500)}) for _ in range(2)]
    alone, together = (
        found(UNIQUE_VALUES, study(*draws, persons=persons))["unique-values-disclosed"].baseline
        for persons in (None, np.arange(1_500) // 3)
    )
    assert alone is not None
    assert together is not None
    assert together == pytest.approx(1.0 - (1.0 - alone) ** 3, rel=0.05)
    assert together > 2.0 * alone


@pytest.mark.parametrize("ratio", [0.25, 1.0, 3.0])
def test_whole_rows_stand_beside_what_a_redraw_of_that_size_shows(ratio: float) -> None:
    """Of 4,000 people and some 2,700 kinds of rows; the shares are off by 0.02 at most, the estimates by 0.04."""

    def draw(seed: int, rows: int) -> pa.Table:
        rng = np.random.default_rng(seed)
        return pa.table({"a": np.floor(rng.gamma(2.0, 20.0, rows)).astype(int), "b": rng.integers(0, 20, rows)})

    finding = found(WHOLE_ROWS, study(draw(1, 4_000), draw(2, round(4_000 * ratio))))["exact-row-matches"]
    assert finding.value is not None
    assert finding.value == pytest.approx(finding.baseline, abs=0.06)
    assert finding.baseline_interval is not None
    assert finding.baseline_interval[0] < finding.value < finding.baseline_interval[1] + 0.06
