"""Operators: chances that add up, amplification in closed form, draws that follow them, outputs that do not betray."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.distributions.noise import FINEST, DiscreteGaussian, DiscreteLaplace, DiscreteUniform, share, toss
from sfumato.core.distributions.operators import (
    Additive,
    KeepOrReplace,
    Membership,
    Mixture,
    Operator,
    Response,
    ShiftModulo,
    likelihoods,
    transition,
)
from sfumato.core.errors import OptionError, SchemaError
from tests.distributions.test_noise import RARE, chi_square, fresh

SKEWED = Response(((0.7, 0.2, 0.1), (0.3, 0.3, 0.4), (0.05, 0.9, 0.05)))
FINITE: list[Operator] = [
    KeepOrReplace(7, 0.2),
    KeepOrReplace(7, 0.01),
    KeepOrReplace(2, math.pi / 4),
    ShiftModulo(11, 2),
    ShiftModulo(5, 2),
    ShiftModulo(4, 9),
    Mixture(0.5, ShiftModulo(11, 2), 11),
    Mixture(0.3, SKEWED, 3),
    Mixture(0.9, Mixture(0.5, KeepOrReplace(4, 0.6), 4), 4),
    SKEWED,
    Response.for_epsilon(5, 1.3),
    Response(((1.0, 0.0), (0.5, 0.5))),
    Response(((0.2, 0.3, 0.5), (0.5, 0.3, 0.2))),
    Additive(6, DiscreteUniform(3.0)),
    Membership(6, (0, 0, 1, 2, 2, 2)),
]
UNBOUNDED = [Additive(6, DiscreteLaplace(2.5)), Additive(6, DiscreteGaussian(1.7))]
ALL = [*FINITE, *UNBOUNDED]
DRAWS = 60_000


def gamma_of_matrix(matrix: np.ndarray[Any, Any]) -> float:
    """Give the amplification by its definition: the largest ratio within a column."""
    used = matrix[:, matrix.max(axis=0) > 0]
    with np.errstate(divide="ignore"):
        return float((used.max(axis=0) / used.min(axis=0)).max())


@pytest.mark.parametrize("operator", FINITE, ids=repr)
def test_the_chances_of_every_input_add_up_to_one(operator: Operator) -> None:
    matrix = transition(operator)
    assert operator.outputs is not None
    assert matrix.shape == (operator.size, len(operator.outputs))
    assert (matrix >= 0).all()
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("operator", FINITE, ids=repr)
def test_gamma_in_closed_form_is_that_of_the_matrix(operator: Operator) -> None:
    assert operator.gamma == pytest.approx(gamma_of_matrix(transition(operator)), rel=1e-9)
    assert operator.epsilon == (math.inf if math.isinf(operator.gamma) else pytest.approx(math.log(operator.gamma)))


def test_gamma_of_laplace_noise_is_that_of_a_wide_matrix_and_gaussian_noise_has_none() -> None:
    laplace, gaussian = UNBOUNDED
    wide = np.arange(-60, 67)
    assert laplace.gamma == pytest.approx(gamma_of_matrix(laplace.probabilities(wide).T), rel=1e-9)
    assert laplace.gamma == pytest.approx(math.exp(5 / 2.5), rel=1e-12)
    assert gaussian.gamma == math.inf
    grows = [gamma_of_matrix(gaussian.probabilities(np.arange(-far, far + 6)).T) for far in (5, 10, 20)]
    assert grows == sorted(grows)
    assert grows[2] > 1e9 * grows[0]


@given(size=st.integers(2, 40), keep=st.floats(0.0, 1.0))
def test_keep_or_replace_has_gamma_of_its_two_chances(size: int, keep: float) -> None:
    assert KeepOrReplace(size, keep).gamma == pytest.approx(
        gamma_of_matrix(transition(KeepOrReplace(size, keep))), rel=1e-9
    )


@given(size=st.integers(2, 30), reach=st.integers(1, 70))
def test_shifts_that_do_not_go_round_prove_facts_and_others_have_at_most_gamma_2(size: int, reach: int) -> None:
    operator = ShiftModulo(size, reach)
    ways = np.zeros((size, size))
    for x in range(size):
        for shift in range(-reach, reach + 1):
            ways[x, (x + shift) % size] += 1
    np.testing.assert_allclose(transition(operator), ways / (2 * reach + 1), rtol=1e-12)
    assert operator.gamma == gamma_of_matrix(ways)
    assert math.isinf(operator.gamma) == (2 * reach + 1 < size)


@given(st.integers(2, 6), st.floats(0.01, 8.0))
def test_the_optimal_response_has_the_wanted_epsilon(size: int, epsilon: float) -> None:
    operator = Response.for_epsilon(size, epsilon)
    assert operator.epsilon == pytest.approx(epsilon, rel=1e-9)
    truth = math.exp(epsilon) / (math.exp(epsilon) + size - 1)
    np.testing.assert_allclose(np.diag(transition(operator)), truth, rtol=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(1, 6))
def test_a_response_is_sampled_with_the_chances_it_declares(seed: int, rows: int, columns: int) -> None:
    """The whole numbers below 2^53 that lead to an answer are counted: as many as the declared chance says."""
    rng = np.random.default_rng(seed)
    given_ = rng.dirichlet(np.full(columns, 0.3), size=rows)
    operator = Response(tuple(map(tuple, given_.tolist())))
    weights = operator.weights
    assert (weights.sum(axis=1) == FINEST).all()
    np.testing.assert_array_equal(transition(operator), weights / FINEST)
    assert ((weights > 0) == (given_ > 0)).all()
    np.testing.assert_allclose(transition(operator), given_, atol=1e-9)
    if columns > 1:
        assert operator.gamma == pytest.approx(gamma_of_matrix(weights / FINEST), rel=1e-12)


def test_a_chance_below_the_resolution_is_still_drawn_and_counted_in_gamma() -> None:
    operator = Response(((1.0 - 1e-30, 1e-30), (0.5, 0.5)))
    assert operator.weights[0].tolist() == [FINEST - 1, 1]
    assert operator.gamma == FINEST / 2


@pytest.mark.parametrize("operator", ALL, ids=repr)
def test_draws_follow_the_chances_of_every_input(operator: Operator) -> None:
    outputs = np.arange(-80, 90) if operator.outputs is None else np.array(operator.outputs)
    rng = fresh()
    for x in range(operator.size):
        drawn = operator.randomize(np.full(DRAWS, x), rng)
        counts = np.bincount(drawn - outputs[0], minlength=len(outputs))
        expected = operator.probabilities(outputs)[:, x] * DRAWS
        assert chi_square(counts, expected) > RARE


@pytest.mark.parametrize("operator", ALL, ids=repr)
def test_draws_for_mixed_inputs_are_those_of_each(operator: Operator) -> None:
    x = np.tile(np.arange(operator.size), (DRAWS // 10, 1))
    drawn = operator.randomize(x, fresh())
    assert drawn.shape == x.shape
    assert drawn.dtype == np.int64
    outputs = np.arange(-80, 90) if operator.outputs is None else np.array(operator.outputs)
    expected = operator.probabilities(outputs) * len(x)
    for column in range(operator.size):
        counts = np.bincount(drawn[:, column] - outputs[0], minlength=len(outputs))
        assert chi_square(counts, expected[:, column]) > RARE


@pytest.mark.parametrize("operator", ALL, ids=repr)
def test_the_same_generator_gives_the_same_answers_and_none_is_possible(operator: Operator) -> None:
    x = np.arange(operator.size).repeat(20)
    first, again = (operator.randomize(x, np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert operator.randomize(np.array([], dtype=np.int64), fresh()).shape == (0,)


@pytest.mark.parametrize("operator", ALL, ids=repr)
def test_likelihoods_are_chances_in_proportion(operator: Operator) -> None:
    outputs = np.arange(-9, 15) if operator.outputs is None else np.array(operator.outputs)
    rows, chances = likelihoods(operator, outputs), operator.probabilities(outputs)
    largest = chances.max(axis=1, keepdims=True)
    np.testing.assert_allclose(rows * largest, chances, rtol=1e-9)
    np.testing.assert_allclose(rows.max(axis=1)[largest[:, 0] > 0], 1.0)


@pytest.mark.parametrize("operator", UNBOUNDED, ids=repr)
def test_likelihoods_do_not_vanish_where_chances_do(operator: Additive) -> None:
    far = np.array([-1_000_000, 1_000_000])
    assert not operator.probabilities(far).any()
    assert likelihoods(operator, far).max(axis=1).tolist() == [1.0, 1.0]
    assert np.argmax(likelihoods(operator, far), axis=1).tolist() == [0, operator.size - 1]


@pytest.mark.parametrize("operator", ALL, ids=repr)
def test_inputs_outside_the_domain_are_counted(operator: Operator) -> None:
    with pytest.raises(SchemaError, match=r"^2 values lie outside"):
        operator.randomize(np.array([0, -1, operator.size]), fresh())


@pytest.mark.parametrize("operator", FINITE, ids=repr)
def test_outputs_that_cannot_come_out_are_counted(operator: Operator) -> None:
    assert operator.outputs is not None
    with pytest.raises(SchemaError, match=r"^1 outputs cannot"):
        operator.probabilities(np.array([operator.outputs.stop]))


def test_only_shifts_wrap() -> None:
    assert {type(operator).__name__ for operator in ALL if operator.wraps} == {"ShiftModulo", "Mixture"}
    assert not Mixture(0.5, KeepOrReplace(3, 0.5), 3).wraps


def test_noise_without_end_has_no_matrix() -> None:
    with pytest.raises(OptionError, match="no end"):
        transition(UNBOUNDED[0])


@given(st.floats(0.0, 1.0))
def test_a_share_is_the_probability_to_the_last_bit_or_to_2_to_the_minus_54(probability: float) -> None:
    fraction = share("p", probability)
    assert abs(float(fraction) - probability) <= 2.0**-54
    assert 0 <= fraction <= 1
    assert fraction.denominator <= FINEST


@pytest.mark.parametrize("written", [0.1, 0.2, 1 / 3, 0.25, 0.999])
def test_a_simple_probability_is_a_simple_fraction(written: float) -> None:
    assert float(share("p", written)) == written
    assert share("p", written).denominator <= 1000


def test_a_certain_and_an_impossible_coin_never_err() -> None:
    assert toss(share("p", 1.0), 10_000, fresh()).all()
    assert not toss(share("p", 0.0), 10_000, fresh()).any()


@pytest.mark.parametrize(
    "make",
    [
        lambda: KeepOrReplace(1, 0.5),
        lambda: KeepOrReplace(5, 1.5),
        lambda: KeepOrReplace(5, math.nan),
        lambda: KeepOrReplace(5, True),
        lambda: ShiftModulo(5, 0),
        lambda: ShiftModulo(5, 1.5),  # type: ignore[arg-type]
        lambda: Mixture(0.5, KeepOrReplace(4, 0.5), 5),
        lambda: Mixture(0.5, Additive(5, DiscreteUniform(2.0)), 5),  # type: ignore[arg-type]
        lambda: Mixture(0.5, Additive(5, DiscreteLaplace(2.0)), 5),  # type: ignore[arg-type]
        lambda: Mixture(-0.5, KeepOrReplace(5, 0.5), 5),
        lambda: Response(((1.0,),)),
        lambda: Response(((0.5, 0.5), (1.0,))),
        lambda: Response(((0.5, 0.4), (0.5, 0.5))),
        lambda: Response(((1.5, -0.5), (0.5, 0.5))),
        lambda: Response(((math.nan, 1.0), (0.5, 0.5))),
        lambda: Response((("a", "b"), ("c", "d"))),  # type: ignore[arg-type]
        lambda: Response.for_epsilon(3, 0.0),
        lambda: Response.for_epsilon(1, 1.0),
        lambda: Response.for_epsilon(3, math.inf),
        lambda: Additive(1, DiscreteLaplace(2.0)),
        lambda: Additive(5, DiscreteLaplace(2.0, step=0.5)),
        lambda: Membership(3, (0, 1)),
        lambda: Membership(3, (0, 2, 2)),
    ],
)
def test_operators_that_are_none_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(OptionError):
        make()
