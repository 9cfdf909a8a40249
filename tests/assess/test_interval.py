"""The interval that holds a person's number: known answers, the paper's reading, the three fixed cases."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.assess.risk.uncertainty import INTERVAL, central_width, counterparts, interval_privacy
from sfumato.core.neighbours import nearest_without_each_column
from sfumato.methods.protocol import OwnerDetails
from tests.assess.cases import study
from tests.assess.privacy_studies import awkward, case, check_sound, found, numbers, overlap, redraw, value
from tests.examples import at_length

NAME = "interval-privacy"


def test_a_copy_is_known_exactly() -> None:
    table = numbers(np.random.default_rng(1).normal(size=(300, 4)))
    assert value(INTERVAL, study(table, table), NAME) == 0.0


def test_a_constant_release_leaves_what_the_column_itself_leaves() -> None:
    finding = found(INTERVAL, case("constant"))[NAME]
    assert finding.value == pytest.approx(finding.baseline, rel=1e-9)


@pytest.mark.parametrize("seed", [0, 1, *at_length(2, 3)])
def test_a_redraw_is_no_narrower_than_its_control(seed: int) -> None:
    assert overlap(found(INTERVAL, redraw(seed))[NAME])


def test_the_middle_of_numbers_is_that_of_numpy_and_passes_over_what_is_missing() -> None:
    values = np.random.default_rng(2).normal(size=(5, 101))
    low, high = np.quantile(values, [0.025, 0.975], axis=1)
    np.testing.assert_allclose(central_width(values), high - low, rtol=1e-12)
    holes = np.insert(values, [3, 50], np.nan, axis=1)
    np.testing.assert_allclose(central_width(holes), high - low, rtol=1e-12)
    assert np.isnan(central_width(np.full(3, np.nan)))


def test_noise_of_known_spread_leaves_its_own_interval() -> None:
    rng = np.random.default_rng(3)
    rows = rng.uniform(size=(20_000, 2))
    noisy = rows + rng.normal(scale=0.1, size=rows.shape)
    np.testing.assert_allclose(interval_privacy(rows, noisy, partners=np.arange(20_000)), 0.392, rtol=0.05)


@pytest.mark.parametrize("count", [1, 3])
def test_rows_nearest_in_all_columns_but_one_agree_with_a_slow_loop(count: int) -> None:
    rng = np.random.default_rng(5)
    rows, queries, owner = rng.normal(size=(1100, 5)), rng.normal(size=(9, 5)), np.array([0, 1, 1, 2, 2])
    places = nearest_without_each_column(rows, queries, owner, count)
    for column in range(3):
        apart = ((rows[None] - queries[:, None])[:, :, owner != column] ** 2).sum(axis=2)
        np.testing.assert_array_equal(places[column], np.argsort(apart, axis=1)[:, :count])


def test_counterparts_are_of_the_same_group_and_each_is_used_once_where_groups_are_whole() -> None:
    rng = np.random.default_rng(6)
    labels, drawn_from = rng.permutation(np.repeat(np.arange(20), 7)), rng.permutation(np.repeat(np.arange(20), 7))
    partners = counterparts(labels, drawn_from, rng)
    np.testing.assert_array_equal(drawn_from[partners], labels)
    assert len(np.unique(partners)) == len(labels)
    assert (counterparts(labels, np.full(5, 99), rng) == -1).all()


def test_one_group_of_normal_numbers_has_the_width_of_a_difference_of_two() -> None:
    rng = np.random.default_rng(7)
    rows, released = rng.normal(size=(2, 20_000, 2))
    label = np.zeros(20_000, dtype=np.int64)
    widths = interval_privacy(rows, released, partners=counterparts(label, label, rng)) * np.ptp(rows, axis=0)
    np.testing.assert_allclose(widths, 2 * 1.96 * np.sqrt(2), rtol=0.04)


def test_within_groups_stays_with_the_owner_and_needs_groups() -> None:
    name = "interval-privacy-within-groups"
    assert not found(INTERVAL, case("redraw"))[name].public
    assert "no groups" in (found(INTERVAL, redraw(1))[name].reason or "")


def test_a_shift_is_found_out_where_it_is_known_who_descends_from_whom() -> None:
    rng = np.random.default_rng(8)
    rows, order = rng.normal(size=(200, 3)), rng.permutation(200)
    made = OwnerDetails(origin=order)
    findings = found(INTERVAL, study(numbers(rows), numbers(rows[order] + 1000.0), workings=made))
    assert findings[NAME].value == pytest.approx(0.0, abs=1e-9)
    assert findings[NAME].control is None
    check_sound(INTERVAL, study(numbers(rows), numbers(rows[order] + 1000.0), workings=made))


def test_a_single_column_is_not_run() -> None:
    assert found(INTERVAL, awkward("one column"))[NAME].reason == "the table has a single column"
