"""The rest of a row follows a settled coordinate by regression, and no record is brought back by it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.groups import summarize
from sfumato.core.groups.discrete import carry_along, ridges
from sfumato.core.groups.generate import generate
from sfumato.core.records import Block, BlockKind, Layout
from tests.examples import examples
from tests.groups.drawn_groups import mixed_records, one_hot, random_groups


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(1, 4), st.floats(1e-3, 1.0))
def test_following_is_the_joint_ridge_regression_on_the_move(
    seed: int, discrete: int, numeric: int, ridge: float
) -> None:
    rng = np.random.default_rng(seed)
    groups = random_groups(rng, count=2, size=9, dim=discrete + numeric)
    rows, settled = rng.normal(size=(18, discrete + numeric)), rng.normal(size=(18, discrete))
    given_rows, covariance = rows.copy(), groups.covariance
    carry_along(rows, settled, 0, np.array([0, 9, 18]), covariance, np.array([ridge, 2.0 * ridge]))
    np.testing.assert_array_equal(rows[:, :discrete], settled)
    for group, part in enumerate((slice(0, 9), slice(9, 18))):
        sigma = groups.covariance[group]
        noisy = sigma[:discrete, :discrete] + (1 + group) * ridge * np.eye(discrete)
        gain = np.linalg.solve(noisy, sigma[:discrete, discrete:])
        moved = settled[part] - given_rows[part, :discrete]
        expected = given_rows[part, discrete:] + moved @ gain
        np.testing.assert_allclose(rows[part, discrete:], expected, rtol=1e-7, atol=1e-7)
        left = sigma[discrete:, discrete:] - sigma[discrete:, :discrete] @ gain
        np.testing.assert_allclose(covariance[group][discrete:, discrete:], left, rtol=1e-7, atol=1e-7)
        assert not covariance[group][:discrete].any()


@examples(80)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 25),
    st.lists(st.tuples(st.sampled_from([2, 3, 6, 20]), st.sampled_from([0.0, 0.3])), min_size=1, max_size=6),
)
def test_no_record_weighs_more_than_half_in_its_own_fit(seed: int, size: int, columns: list[tuple[int, float]]) -> None:
    mixed = mixed_records(np.random.default_rng(seed), [size], columns)
    ridge = float(ridges(mixed.groups, mixed.layout)[0])
    deviation = mixed.values - mixed.values.mean(axis=0)
    if ridge > 0.0:
        fit = np.linalg.solve(deviation.T @ deviation + size * ridge * np.eye(deviation.shape[1]), deviation.T)
        leverage = np.einsum("ij,ji->i", deviation, fit)
        assert leverage.max() <= 0.5 + 1e-9
    else:
        np.testing.assert_allclose(deviation, 0.0, atol=1e-12)


def test_a_category_that_one_record_holds_does_not_bring_back_its_number() -> None:
    rng = np.random.default_rng(4)
    part, fill = one_hot(np.arange(10), 10)  # everybody is alone in his category: the regression could interpolate
    numbers = rng.normal(size=10)
    numbers = (numbers - numbers.mean()) / numbers.std()
    layout: Layout = (
        Block("number", BlockKind.NUMBER, 0, 1, (0.0,)),
        Block("name", BlockKind.CATEGORY, 1, 11, fill),
    )
    often = np.tile(np.hstack([numbers[:, None], part]), (500, 1))  # the same group 500 times
    rows = generate(summarize(often, np.repeat(np.arange(500), 10), np.full(5_000, 10)), layout, rng)
    owner, released = numbers[rows[:, 1:].argmax(axis=1)], rows[:, 0]
    slope = np.mean(owner * released)
    residual = released - slope * owner
    assert slope < 0.85  # 1 would be the record itself; the standard error is below 0.015
    assert residual.std() > 0.4


def test_missing_cells_do_not_pull_the_present_ones_towards_the_fill() -> None:
    rng = np.random.default_rng(5)
    size = 4000
    away = rng.random(size) < 0.4
    number = np.where(away, 0.0, 2.0 + rng.normal(size=size))
    layout: Layout = (
        Block("number", BlockKind.NUMBER, 0, 1, (0.0,)),
        Block("number", BlockKind.MISSING, 1, 2),
    )
    values = np.column_stack([number, away.astype(np.float64)])
    groups = summarize(values, np.zeros(size, dtype=np.int64), np.full(size, 2))
    rows = generate(groups, layout, rng)
    here = rows[:, 1] == 0.0
    assert here.sum() == (~away).sum()
    np.testing.assert_array_equal(rows[~here, 0], 0.0)
    # 2400 present cells of standard deviation about 1: 0.15 is 7 standard errors
    np.testing.assert_allclose(rows[here, 0].mean(), number[~away].mean(), atol=0.15)
    np.testing.assert_allclose(rows[here, 0].std(), number[~away].std(), rtol=0.2)  # sqrt(0.6) without widening
