"""Chances of cells against plain sums over their places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.core.distributions.noise import DiscreteGaussian, DiscreteLaplace, DiscreteUniform
from sfumato.core.distributions.operators import (
    Additive,
    KeepOrReplace,
    Membership,
    Mixture,
    Operator,
    Response,
    ShiftModulo,
)
from sfumato.survey.reconstruct.channel import at_midpoints, summed

SIZE = 101
CUTS = np.array([0, 3, 10, 11, 40, SIZE])
BEYOND = np.array([-25, -10, -5, 0, 3, 10, 11, 40, SIZE, 110, 126])


def _place_by_place(operator: Operator, inputs: NDArray[np.int64], outputs: NDArray[np.int64] | None) -> Any:
    low, high = (operator.outputs.start, operator.outputs.stop) if operator.outputs is not None else (-3000, 3000)
    places = np.arange(low, high)
    rows = np.add.reduceat(operator.probabilities(places).T, inputs[:-1], axis=0) / np.diff(inputs)[:, None]
    if outputs is None:
        return rows
    tails = isinstance(operator, Additive)
    cell = np.searchsorted(outputs, places, side="right") - (0 if tails else 1)
    matrix = np.zeros((len(inputs) - 1, len(outputs) + (1 if tails else -1)))
    np.add.at(matrix.T, cell, rows.T)
    return matrix


@pytest.mark.parametrize(
    "law",
    [DiscreteGaussian(7.0), DiscreteGaussian(0.4), DiscreteLaplace(9.0), DiscreteUniform(25.0), DiscreteUniform(1.0)],
)
@pytest.mark.parametrize("inputs", [CUTS, np.arange(SIZE + 1)])
def test_additive_noise_is_summed_exactly(law: Any, inputs: NDArray[np.int64]) -> None:
    operator = Additive(SIZE, law)
    np.testing.assert_allclose(
        summed(operator, inputs, BEYOND), _place_by_place(operator, inputs, BEYOND), rtol=1e-11, atol=1e-300
    )


def test_what_bounded_noise_never_sends_has_no_chance() -> None:
    matrix = summed(Additive(SIZE, DiscreteUniform(4.0)), np.arange(SIZE + 1), np.arange(-4, SIZE + 5))
    assert int((matrix > 0).sum()) == SIZE * 9


@pytest.mark.parametrize(
    "operator",
    [
        KeepOrReplace(SIZE, 0.2),
        ShiftModulo(SIZE, 20),
        ShiftModulo(SIZE, 250),
        ShiftModulo(SIZE, 3 * SIZE),
        ShiftModulo(SIZE, SIZE - 1),
        Mixture(0.5, ShiftModulo(SIZE, 10), SIZE),
        Mixture(0.3, KeepOrReplace(SIZE, 0.3), SIZE),
        Mixture(0.7, Response.for_epsilon(SIZE, 2.0), SIZE),
        Mixture(0.7, Mixture(0.7, Response.for_epsilon(SIZE, 2.0), SIZE), SIZE),
        Response.for_epsilon(SIZE, 1.0),
        Membership(SIZE, tuple((np.arange(SIZE) // 10).tolist())),
    ],
)
def test_finite_laws_are_summed_exactly(operator: Operator) -> None:
    outputs = None if isinstance(operator, Response | Membership) else CUTS
    matrix = summed(operator, CUTS, outputs)
    np.testing.assert_allclose(matrix, _place_by_place(operator, CUTS, outputs), atol=1e-13)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize("law", [DiscreteGaussian(900.0), DiscreteLaplace(700.0), DiscreteUniform(2500.0)])
def test_a_coarse_table_changes_next_to_nothing(law: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, outputs = np.arange(0, 10_001, 100), np.arange(-2500, 12_501, 100)
    fine = summed(Additive(10_000, law), inputs, outputs)
    monkeypatch.setattr("sfumato.survey.reconstruct.channel._LONGEST", 4096)
    coarse = summed(Additive(10_000, law), inputs, outputs)
    assert np.abs(fine - coarse).max() < (1e-3 if isinstance(law, DiscreteUniform) else 1e-4)


def test_a_shift_of_very_many_turns_leads_everywhere_alike() -> None:
    matrix = summed(ShiftModulo(SIZE, 10**12), CUTS, CUTS)
    np.testing.assert_allclose(matrix, np.tile(np.diff(CUTS) / SIZE, (len(CUTS) - 1, 1)), rtol=1e-9)


def test_a_domain_of_a_billion_places_has_its_matrix_at_once() -> None:
    inputs = np.arange(0, 10**9 + 1, 10**7)
    matrix = summed(Additive(10**9, DiscreteLaplace(1e8)), inputs, inputs)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    same, apart = 1 - (1 - np.exp(-0.1)) / 0.1, (np.cosh(0.1) - 1) / 0.1  # Laplace, cells of a tenth of its scale
    np.testing.assert_allclose(np.diag(matrix[:, 1:-1]), same, rtol=1e-6)
    np.testing.assert_allclose(matrix[50, 53], np.exp(-0.2) * apart, rtol=1e-6)


def test_midpoints_of_single_places_are_the_chances_themselves() -> None:
    operator = Additive(SIZE, DiscreteGaussian(7.0))
    cuts, outputs = np.arange(SIZE + 1), np.arange(-20, SIZE + 21)
    exact = summed(operator, cuts, outputs)
    np.testing.assert_allclose(at_midpoints(operator, cuts, outputs, exact), exact, rtol=1e-9)
