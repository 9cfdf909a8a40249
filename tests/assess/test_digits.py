"""The factor of a column, read off the digits of the released numbers alone."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import sfumato as sf
from sfumato.assess.attacks.unknown_input import DIGITS, find_factor, find_spacing
from sfumato.methods.geometry import Rotation, Scaling, Translation
from sfumato.methods.geometry.key import Add, Key, Mult
from sfumato.methods.geometry.transformations import invert
from sfumato.tables.schema import Field, Kind, Schema
from tests.assess.moved import claimed, draw, moved
from tests.assess.privacy_studies import check_sound, found
from tests.examples import at_length

SOME, MORE = (0.51, 0.87, 1.37, 1.93), (0.62, 0.73, 1.13, 1.28, 1.41, 1.62, 1.77, 1.86)
FACTORS = [*SOME, *at_length(*MORE)]


def measured(seed: int = 1, rows: int = 500) -> pa.Table:
    """Draw columns that count in tenths and hundredths."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {"weight": np.round(rng.normal(70, 12, rows), 1), "height": np.round(1.7 + 0.1 * rng.normal(size=rows), 2)}
    )


def scaled(table: pa.Table, key: Key) -> pa.Table:
    return pa.table({step.columns[0]: np.asarray(table[step.columns[0]]) * step.term for step in key.steps})  # type: ignore[union-attr]


@pytest.mark.parametrize("column", ["weight", "height"])
@pytest.mark.parametrize("factor", [*FACTORS, -1.37])
def test_numbers_written_in_full_tell_their_factor(column: str, factor: float) -> None:
    values = np.asarray(measured()[column])
    assert find_factor(factor * values) == pytest.approx(abs(factor), rel=1e-9)


@pytest.mark.parametrize("factor", FACTORS)
def test_numbers_rounded_one_digit_finer_than_their_step_tell_it_too(factor: float) -> None:
    values = np.asarray(measured()["weight"])
    assert find_factor(np.round(factor * values, 2)) == pytest.approx(factor, rel=1e-3)


@pytest.mark.parametrize("factor", FACTORS)
def test_numbers_written_as_a_release_writes_them_do_not_tell_it(factor: float) -> None:
    table = measured()
    key = Key((Mult("weight", factor), Mult("height", factor)))
    release = sf.sanitize(table, Scaling(key=key), report=False, seed=1)
    for column, step in (("weight", 0.1), ("height", 0.01)):
        written = np.asarray(release.table[column])
        grid = key.written_steps({column: step})[column]
        assert find_factor(written) is None
        np.testing.assert_allclose(written / grid, np.rint(written / grid), atol=1e-9)


def counted(rows: int = 500) -> dict[str, NDArray[np.int64]]:
    """Draw whole numbers: from 0 or a far start, on both sides of 0, and in steps that no type tells."""
    rng = np.random.default_rng(1)
    return {
        "age": rng.integers(18, 90, rows),
        "balance": rng.integers(-40, 40, rows),
        "salary": 1000 * rng.integers(10, 120, rows),
        "rent": 50 * rng.integers(4, 60, rows) + 25,
    }


@pytest.mark.parametrize("form", ["whole", "double", "declared continuous"])
@pytest.mark.parametrize("column", counted())
def test_whole_numbers_do_not_tell_their_factor_either(column: str, form: str) -> None:
    """The first cell is missing and counts as the mean: that hides no spacing."""
    cells = counted()[column]
    kind = pa.int64() if form == "whole" else pa.float64()
    table = pa.table({column: pa.array([None, *cells[1:].tolist()], kind)})
    schema = Schema((Field(column, Kind.CONTINUOUS),)) if form == "declared continuous" else None
    for factor in (*SOME, *MORE, 1.035, 2.7, 37.21):
        key = Key((Mult(column, factor),))
        release = sf.sanitize(table, Scaling(key=key), schema=schema, report=False, seed=1)
        written = np.asarray(release.table[column].drop_null(), dtype=np.float64)
        assert find_factor(written) is None, factor
        assert release.table.schema.field(column).type == kind
        back = np.sort(written / factor)
        spacing = np.gcd.reduce(np.diff(np.unique(cells)))
        np.testing.assert_allclose(back, np.sort(cells[1:]), rtol=0, atol=1.26 * spacing + 0.5 / factor)


def test_the_owner_gets_the_numbers_back_to_a_step() -> None:
    table = measured()
    release = sf.sanitize(table, Scaling(), report=False, seed=3)
    assert release.key is not None
    back = invert(np.column_stack([release.table[name] for name in table.column_names]), release.key)
    for place, step in enumerate((0.1, 0.01)):
        ours = np.sort(np.asarray(table.column(place)))
        np.testing.assert_allclose(np.sort(back[:, place]), ours, rtol=0, atol=1.01 * step)


def test_a_shift_is_written_in_the_steps_of_the_original() -> None:
    table = measured()
    key = Key((Add("weight", 3.14159265), Add("height", -0.57721566)))
    release = sf.sanitize(table, Translation(key=key), report=False, seed=1)
    written = np.asarray(release.table["weight"])
    np.testing.assert_array_equal(written, np.round(written, 1))
    apart = np.sort(written) - np.sort(np.asarray(table["weight"]))
    np.testing.assert_allclose(apart, 3.1, atol=1e-9)


def test_numbers_without_a_step_have_no_spacing() -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        assert find_spacing(rng.normal(size=400)) is None
        assert find_spacing(np.round(rng.normal(50, 20, size=400), 1)) is None
    assert find_spacing(np.array([2.0, 2.0, 0.0])) is None


def test_a_table_that_was_multiplied_and_written_in_full_is_recovered_without_one_known_row() -> None:
    table, key = measured(), Key((Mult("weight", 1.37), Mult("height", 0.73)))
    study = claimed(table, scaled(table, key), ("mult",))
    check_sound(DIGITS, study)
    finding = found(DIGITS, study)["digit-spacing-recovery"]
    assert finding.value == 1.0
    assert finding.baseline == pytest.approx(0.08, abs=0.05)
    assert "stands out in 2 of 2 columns" in finding.meaning


def test_a_redraw_a_constant_table_and_numbers_without_a_step_give_no_more_than_guessing() -> None:
    table = measured()
    constant = table.take(pa.array(np.zeros(500, dtype=np.int64)))
    tables = [claimed(table, other, ("mult",)) for other in (measured(2), constant)]
    for study in (*tables, moved(draw(1), Scaling(), 1)):
        finding = found(DIGITS, study)["digit-spacing-recovery"]
        assert finding.value is not None
        assert finding.baseline is not None
        assert finding.value <= finding.baseline + 0.05


def test_tables_without_factors_are_not_attacked() -> None:
    for mechanism in (Translation(), Rotation()):
        finding = found(DIGITS, moved(draw(1), mechanism, 1))["digit-spacing-recovery"]
        assert "neither a shift nor a turn" in str(finding.reason)


def factor_by_places(written: NDArray[np.float64], apart: float, low: float, high: float) -> float:
    """Factor under which the differences of a few numbers come nearest to whole places of a unit that is known."""
    factors = np.linspace(low, high, 400_001)
    turns = [np.exp(2j * np.pi * (number - written[0]) / (apart * factors)) for number in written[1:]]
    return float(factors[np.abs(np.sum(turns, axis=0)).argmax()])


@pytest.mark.parametrize("factor", [0.93, 1.027, 1.07])
def test_places_that_are_no_short_decimals_do_not_tell_the_factor(factor: float) -> None:
    rng = np.random.default_rng(3)
    psi = 0.000689476  # a tenth of it, in MPa
    strength = np.where(rng.random(500) < 0.02, 1 / 7, 0) * psi + psi * rng.integers(3_000, 120_000, 500)
    assert factor_by_places(factor * strength[:25], psi, 0.9, 1.1) == pytest.approx(factor, abs=1e-6)
    table, key = pa.table({"strength": strength}), Key((Mult("strength", factor),))
    written = np.asarray(sf.sanitize(table, Scaling(key=key), report=False, seed=1).table["strength"])
    assert find_factor(written) is None
    assert abs(factor_by_places(written[:25], psi, 0.9, 1.1) - factor) > 1e-4
    assert np.abs(written * 100 - np.rint(written * 100)).max() < 1e-6
    np.testing.assert_allclose(np.sort(written), np.sort(factor * strength), atol=0.001 * strength.std())


@pytest.mark.parametrize("factor", [0.93, 1.07])
def test_degrees_that_were_fahrenheit_do_not_tell_the_factor(factor: float) -> None:
    celsius = (np.random.default_rng(5).integers(20, 100, 400) - 32) * 5 / 9
    assert factor_by_places(factor * celsius[:25], 5 / 9, 0.9, 1.1) == pytest.approx(factor, abs=1e-6)
    table, key = pa.table({"degrees": celsius}), Key((Mult("degrees", factor),))
    written = np.asarray(sf.sanitize(table, Scaling(key=key), report=False, seed=1).table["degrees"])
    assert find_factor(written) is None
    assert abs(factor_by_places(written[:25], 5 / 9, 0.9, 1.1) - factor) > 1e-4


def test_columns_that_tell_no_factor_count_as_guessed_and_constant_ones_not_at_all() -> None:
    table = measured().append_column("full", pa.array(np.random.default_rng(4).normal(50, 9, 500)))
    table = table.append_column("same", pa.array(np.full(500, 0.1)))
    factors = {"weight": 1.37, "height": 0.73, "full": 1.9, "same": 3.0}
    after = pa.table({name: factor * np.asarray(table[name]) for name, factor in factors.items()})
    finding = found(DIGITS, claimed(table, after, ("mult",)))["digit-spacing-recovery"]
    shares = [
        np.mean(np.abs(column - column.mean()) <= 0.1 * column.std()) for column in map(np.asarray, table.columns)
    ]
    assert finding.baseline == pytest.approx(np.mean(shares[:3]))
    assert finding.value == pytest.approx((2.0 + shares[2]) / 3)
    assert "stands out in 2 of 4 columns" in finding.meaning
    assert finding.attempts == 375  # cells of columns that differ, for each column
    assert finding.interval is not None
    assert finding.value is not None
    assert finding.interval[0] < finding.value < finding.interval[1]


def test_only_columns_that_were_multiplied_are_attacked_in_rows_that_have_them_on_both_sides() -> None:
    table = measured()
    study = claimed(table, scaled(table, Key((Mult("weight", 1.37), Mult("height", 0.73)))), ("mult",))
    pair, other = study.pairs
    gone = np.arange(500) < 200
    original = dataclasses.replace(pair.original, absent=gone, values=np.where(gone, 1e5, pair.original.values))
    behind = gone[::-1]
    released = dataclasses.replace(pair.released, absent=behind, values=np.where(behind, 0.123, pair.released.values))
    facts = tuple(dataclasses.replace(fact, columns=("weight",)) for fact in study.facts)  # type: ignore[call-arg]
    pairs = (dataclasses.replace(pair, original=original, released=released), other)
    finding = found(DIGITS, dataclasses.replace(study, pairs=pairs, facts=facts))["digit-spacing-recovery"]
    assert finding.value == 1.0
    assert finding.attempts == 100
    assert "stands out in 1 of 1 columns" in finding.meaning


@pytest.mark.parametrize("rows", [30, 120, 2000])
@pytest.mark.parametrize("factor", [0.51, 1.37, 1.93])
def test_rounded_numbers_far_from_0_tell_their_factor_together_with_small_ones(rows: int, factor: float) -> None:
    """The small ones tell it roughly, the others, behind a gap, to their last digits."""
    rng = np.random.default_rng(rows)
    values = np.concatenate([np.arange(1, 15), rng.integers(100, 3_000, rows)]) / 10
    assert find_factor(np.round(factor * values, 2)) == pytest.approx(factor, rel=1e-4)


@pytest.mark.parametrize("step", [1, 2, 5, 20])
def test_a_copy_in_steps_of_one_two_or_five_tells_at_most_its_own_step(step: int) -> None:
    factor = find_factor(step / 10 * np.random.default_rng(1).integers(1, 500, 300).astype(np.float64))
    assert factor is None or factor == pytest.approx(step / 10.0 ** np.rint(np.log10(step)))
