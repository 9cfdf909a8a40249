"""Sec: its formula, its blind spot, and when it is not run."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.assess.utility.distortion import SECURITY, security
from sfumato.methods.protocol import OwnerDetails
from tests.assess.cases import study
from tests.assess.privacy_studies import case, check_sound, found, numbers
from tests.examples import at_length

NAME = "security"


def of(rows: np.ndarray, released: np.ndarray, origin: np.ndarray, seed: int = 5) -> dict[str, object]:
    made = study(numbers(rows), numbers(released), seed=seed, workings=OwnerDetails(origin=origin))
    check_sound(SECURITY, made)
    return dict(found(SECURITY, made))


def test_without_known_origins_it_is_not_run() -> None:
    assert "descends" in (found(SECURITY, case("copy"))[NAME].reason or "")


def test_a_copy_and_a_shift_have_none() -> None:
    rows, order = np.random.default_rng(1).normal(size=(100, 3)), np.random.default_rng(2).permutation(100)
    for shift in (0.0, 77.0):
        findings = of(rows, rows[order] + shift, order)
        assert findings[NAME].value == pytest.approx(0.0, abs=1e-12)  # type: ignore[attr-defined]
        assert "read it with the known-input attack" in findings[NAME].meaning  # type: ignore[attr-defined]


def test_a_change_of_scale_has_the_square_of_its_distance_to_one() -> None:
    rows = np.random.default_rng(3).normal(size=(200, 2))
    finding = of(rows, rows * 0.9, np.arange(200))[f"{NAME}/v1"]
    assert finding.value == pytest.approx(0.01, rel=1e-9)  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", [0, *at_length(1, 2)])
def test_an_independent_redraw_reaches_the_baseline_of_rows_that_are_strangers(seed: int) -> None:
    rows, other = np.random.default_rng(seed).normal(size=(2, 3000, 2))
    finding = of(rows, other, np.arange(3000), seed)[NAME]
    assert finding.value == pytest.approx(2.0, rel=0.1)  # type: ignore[attr-defined]
    assert finding.baseline == pytest.approx(2.0, rel=0.1)  # type: ignore[attr-defined]


def test_a_constant_release_has_one() -> None:
    rows = np.random.default_rng(4).normal(size=(200, 2))
    finding = of(rows, np.zeros((200, 2)), np.arange(200))[NAME]
    assert finding.value == pytest.approx(1.0, rel=1e-9)  # type: ignore[attr-defined]


def test_the_variance_of_the_difference_is_divided_by_that_of_the_original() -> None:
    assert security(np.array([0.0, 2.0, 4.0]), np.array([1.0, 2.0, 6.0])) == pytest.approx(0.25)  # (2/3) / (8/3)
