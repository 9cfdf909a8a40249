"""Noise taken off within groups: known errors, the three fixed cases, and when it is not run."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from sfumato.assess.attacks.noise_filter import GROUP_FILTER, estimate_in_group
from sfumato.assess.study import Study
from sfumato.methods.perturb.facts import ComponentNoise
from sfumato.methods.protocol import OwnerDetails
from tests.assess.cases import study
from tests.assess.privacy_studies import AWKWARD, awkward, case, check_sound, found, numbers, value
from tests.examples import at_length

ERROR, NEAR = "group-filtered-error", "group-filtered-near"
NOISE = (ComponentNoise("laplace", 0.2, 8, "component", 0.001, 2.0**-20),)


def with_rows(made: Study, facts: tuple[ComponentNoise, ...] = NOISE) -> Study:
    origin = np.arange(len(made.released), dtype=np.int64) % len(made.original)
    return dataclasses.replace(made, facts=facts, workings=dataclasses.replace(made.workings, origin=origin))


def test_the_estimate_has_the_error_of_theory() -> None:
    rng = np.random.default_rng(1)
    members = rng.normal(size=(20_000, 2)) * [2.0, 0.5]
    scale = 0.1
    noised = members + rng.laplace(size=members.shape) * scale * np.ptp(members, axis=0)
    variance, noise = members.var(axis=0), 2.0 * (scale * np.ptp(members, axis=0)) ** 2
    error = ((estimate_in_group(members, noised, scale) - members) ** 2).mean(axis=0)
    np.testing.assert_allclose(error, variance * noise / (variance + noise), rtol=0.1)


def test_without_noise_in_the_law_the_row_is_believed() -> None:
    members = np.random.default_rng(1).normal(size=(30, 3))
    np.testing.assert_allclose(estimate_in_group(members, members + 0.5, 1e-9), members + 0.5, atol=1e-6)


def test_a_group_of_equal_records_is_given_as_it_is() -> None:
    np.testing.assert_array_equal(estimate_in_group(np.ones((5, 2)), np.zeros((3, 2)), 0.2), np.ones((3, 2)))


def test_a_copy_is_found_exactly_and_a_redraw_or_a_constant_table_adds_nothing_to_the_groups() -> None:
    copy = found(GROUP_FILTER, with_rows(case("copy")))
    assert copy[ERROR].value == 0.0
    assert copy[NEAR].value == 1.0
    for name in ("redraw", "constant"):
        of = found(GROUP_FILTER, with_rows(case(name)))
        error, idle = of[ERROR].value, of[ERROR].baseline
        assert error is not None
        assert idle is not None
        assert error > 0.98 * idle
        near, guessed = of[NEAR].value, of[NEAR].baseline
        assert near is not None
        assert guessed is not None
        assert near < guessed + 0.02


@pytest.mark.parametrize("seed", [0, *at_length(1, 2)])
def test_less_noise_is_taken_off_to_a_smaller_error(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(400, 3))
    labels = np.repeat(np.arange(4), 100)
    errors = []
    for scale in (0.02, 0.1, 0.5):
        noised = rows + rng.laplace(size=rows.shape) * scale * np.ptp(rows, axis=0)
        facts = (dataclasses.replace(NOISE[0], scale=scale, components=3),)
        workings = OwnerDetails(labels, np.full(400, 100), labels, np.arange(400))
        made = study(numbers(rows), numbers(noised), facts=facts, workings=workings)
        check_sound(GROUP_FILTER, made)
        errors.append(value(GROUP_FILTER, made, ERROR))
    assert errors[0] < errors[1] < errors[2] < 1.1
    assert errors[0] < 0.4


@pytest.mark.parametrize("name", AWKWARD)
def test_it_gets_through_awkward_tables(name: str) -> None:
    check_sound(GROUP_FILTER, with_rows(awkward(name)))


def test_it_is_not_run_without_such_noise_groups_or_origins() -> None:
    plain = found(GROUP_FILTER, with_rows(case("redraw"), ()))
    assert "no noise was put on the principal components" in str(plain[ERROR].reason)
    unknown = dataclasses.replace(case("redraw"), facts=NOISE)
    assert "descends" in str(found(GROUP_FILTER, unknown)[ERROR].reason)
    alone = dataclasses.replace(unknown, workings=OwnerDetails())
    assert "groups" in str(found(GROUP_FILTER, alone)[ERROR].reason)
