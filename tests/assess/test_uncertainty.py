"""What an intruder still does not know: entropies with known answers, the three fixed cases; and perturbation."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.risk.uncertainty import UNCERTAINTY, step_of, surprisal, surprisal_given
from sfumato.assess.utility.distortion import PERTURBATION
from sfumato.methods.protocol import OwnerDetails
from tests.assess.cases import study
from tests.assess.privacy_studies import case, found, numbers, overlap, redraw, value
from tests.examples import at_length

NAME = "conditional-entropy"


@pytest.mark.parametrize("spread", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("seed", [0, *at_length(1, 2)])
def test_the_entropy_of_normal_numbers_is_known(spread: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    bits = surprisal(rng.normal(scale=spread, size=2000), 1e-3, rng).mean()
    assert bits == pytest.approx(0.5 * np.log2(2 * np.pi * np.e * (spread / 1e-3) ** 2), abs=0.12)


def test_the_entropy_of_a_die_is_that_of_its_sides_and_of_one_number_is_none() -> None:
    rng = np.random.default_rng(1)
    assert surprisal(rng.integers(1, 7, 3000).astype(float), 1.0, rng).mean() == pytest.approx(np.log2(6), abs=0.08)
    assert surprisal(np.full(3000, 4.0), 1.0, rng).mean() == pytest.approx(0.0, abs=0.08)


def test_the_step_is_that_of_the_grid() -> None:
    assert step_of(np.array([0.0, 0.5, 0.5, 1.0, 7.0, 7.5])) == 0.5


def test_entropy_given_another_category_agrees_with_the_formula() -> None:
    rng = np.random.default_rng(2)
    given = rng.integers(0, 2, 50_000)
    codes = np.where(rng.random(50_000) < 0.9, given, 1 - given)
    bits, more = surprisal_given(codes, given)
    assert bits.mean() + more == pytest.approx(-(0.9 * np.log2(0.9) + 0.1 * np.log2(0.1)), abs=0.02)
    certain, none = surprisal_given(given, given)
    assert not certain.any()
    assert none == 0.0


@pytest.mark.parametrize("seed", [0, *at_length(1, 2)])
def test_two_linked_normal_columns_leave_the_deviation_given_the_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=(2, 2, 3000))
    y = 3.0 * x + z
    table, release = (numbers(np.column_stack([x[side], y[side]])) for side in (0, 1))
    left = value(UNCERTAINTY, study(table, release, seed=seed), f"{NAME}/v1")
    assert 0.27 < left < 0.40  # 1 / sqrt(10) = 0.316; the mean of ten nearest leaves sqrt(1.1) of it


def test_columns_that_have_nothing_to_do_with_one_another_teach_nothing() -> None:
    rng = np.random.default_rng(3)
    table, release = (
        pa.table({"a": rng.normal(size=2000), "b": rng.choice(["p", "q", "r"], 2000), "c": rng.normal(size=2000)})
        for _ in range(2)
    )
    for name in (NAME, f"{NAME}/a", f"{NAME}/b"):
        assert value(UNCERTAINTY, study(table, release), name) > 0.93


def test_a_copy_leaves_nothing_open() -> None:
    rng = np.random.default_rng(4)
    table = pa.table({"a": rng.normal(size=500), "b": rng.normal(size=500), "c": rng.choice(["p", "q"], 500)})
    findings = found(UNCERTAINTY, study(table, table))
    assert findings[NAME].value == pytest.approx(0.0, abs=1e-3)
    assert findings["uncertainty-width"].value == 0.0
    assert findings[f"{NAME}/c"].value == 0.0


def test_a_constant_release_teaches_nothing() -> None:
    findings = found(UNCERTAINTY, case("constant"))
    assert findings[NAME].value == pytest.approx(1.0, abs=0.05)
    width = findings["uncertainty-width"]
    assert width.value == pytest.approx(width.baseline, rel=1e-9)


@pytest.mark.parametrize("seed", [0, 1, *at_length(2, 3)])
def test_a_redraw_teaches_no_more_about_those_inside_than_about_those_held_out(seed: int) -> None:
    findings = found(UNCERTAINTY, redraw(seed))
    assert overlap(findings[NAME])
    assert overlap(findings["uncertainty-width"])
    assert overlap(found(PERTURBATION, redraw(seed))["perturbation"])


def test_columns_where_most_people_share_one_number_are_still_seen_through() -> None:
    rng = np.random.default_rng(5)
    inside = rng.random(2000) < 0.5
    hours = np.where(inside, 40.0, rng.integers(1, 99, 2000))
    table = pa.table({"hours": hours, "works": np.where(inside, "full", "part"), "z": rng.normal(size=2000)})
    assert value(UNCERTAINTY, study(table, table.slice(1000)), f"{NAME}/hours") < 0.75


def test_a_rotation_leaves_nothing_open_to_one_who_knows_whose_row_is_whose() -> None:
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(400, 2)) * [1.0, 3.0]
    turned = rows @ np.array([[0.6, 0.8], [-0.8, 0.6]])
    left = value(UNCERTAINTY, study(numbers(rows), numbers(turned), workings=OwnerDetails(origin=np.arange(400))), NAME)
    assert left < 0.02


def test_perturbation_is_none_for_a_copy_and_that_of_neighbours_for_a_redraw() -> None:
    assert value(PERTURBATION, case("copy"), "perturbation") == 0.0
    finding = found(PERTURBATION, case("redraw"))["perturbation"]
    assert finding.value == pytest.approx(finding.baseline, rel=0.15)
    assert value(PERTURBATION, case("constant"), "perturbation") > 2 * (finding.value or 0.0)


def test_perturbation_of_rows_that_descend_is_their_own() -> None:
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(300, 2))
    moved = rows + 2.0 * rows.std(axis=0)
    of = study(numbers(rows), numbers(moved), workings=OwnerDetails(origin=np.arange(300)))
    assert value(PERTURBATION, of, "perturbation") == pytest.approx(2.0, rel=0.01)
