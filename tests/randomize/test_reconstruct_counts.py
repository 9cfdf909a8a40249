"""The iteration itself: counts and a bare matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sfumato.core.errors import BadInput, OptionError
from sfumato.survey.reconstruct import Channel, reconstruct_counts
from sfumato.survey.reconstruct.channel import onto_simplex
from sfumato.survey.reconstruct.iterate import Step, bayes_step, iterate, log_likelihood
from tests.examples import examples


class Never:
    """Goes on to the limit."""

    def ends(self, step: Step) -> np.ndarray:
        return np.zeros(len(step.gain), dtype=np.bool_)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Channel, np.ndarray]:
    inputs, outputs = draw(st.integers(2, 6)), draw(st.integers(2, 7))
    raw = draw(arrays(np.float64, (inputs, outputs), elements=st.floats(0.01, 1.0)))
    counts = draw(arrays(np.int64, (3, outputs), elements=st.integers(0, 500)))
    counts[:, 0] += 1
    return Channel.of(raw / raw.sum(axis=1, keepdims=True)), counts.astype(np.float64)


@given(problems())
def test_the_likelihood_never_falls(problem: tuple[Channel, np.ndarray]) -> None:
    channel, counts = problem
    heights = [
        log_likelihood(counts, channel.mix(iterate(counts, channel, Never(), limit=steps).probability))
        for steps in (1, 2, 3, 10, 30)
    ]
    start = log_likelihood(counts, channel.mix(np.full((3, channel.inputs), 1 / channel.inputs)))
    steps = np.diff(np.array([start, *heights]), axis=0)
    assert steps.min() >= -1e-9 * counts.sum()


@given(problems())
@examples(30)
def test_rows_together_are_as_each_alone(problem: tuple[Channel, np.ndarray]) -> None:
    channel, counts = problem
    for stop in ("likelihood", "chi-square"):
        together = reconstruct_counts(counts, channel, stop=stop)
        for row, one in enumerate(counts):
            alone = reconstruct_counts(one, channel.matrix, stop=stop)
            np.testing.assert_allclose(together.probability[row], alone.probability, atol=1e-9)
            assert (together.iterations[row], together.stopped_by[row]) == (alone.iterations, alone.stopped_by[0])


@given(problems())
@examples(30)
def test_a_distribution_that_explains_the_counts_exactly_is_left_where_it_is(
    problem: tuple[Channel, np.ndarray],
) -> None:
    channel, _ = problem
    truth = (np.arange(1, channel.inputs + 1) / np.arange(1, channel.inputs + 1).sum())[None, :]
    mixed = channel.mix(truth)
    np.testing.assert_allclose(bayes_step(1e4 * mixed, channel, truth, mixed), truth, atol=1e-12)
    even = np.full((1, channel.inputs), 1 / channel.inputs)
    found = reconstruct_counts(1e4 * channel.mix(even), channel)
    np.testing.assert_allclose(found.probability, even, atol=1e-9)
    assert found.iterations.tolist() == [1]


def test_a_large_sparse_matrix_gives_what_the_dense_one_gives() -> None:
    rng = np.random.default_rng(3)
    m = 150
    matrix = np.full((m, m), 0.4 / (m - 1)) + np.eye(m) * (0.6 - 0.4 / (m - 1))
    counts = rng.multinomial(5_000, np.full(m, 1 / m), size=2).astype(np.float64)
    channel = Channel.of(matrix)
    assert channel._sparse is not None
    weights = rng.random((2, m))
    np.testing.assert_allclose(channel.mix(weights), weights @ matrix, rtol=1e-12)
    np.testing.assert_allclose(channel.unmix(weights), weights @ matrix.T, rtol=1e-12)
    assert reconstruct_counts(counts, channel).probability.sum() == pytest.approx(2.0)


def test_many_records_of_few_answers_give_the_maximum_of_the_likelihood() -> None:
    """For two answers it is known: (share of yes - 1/4) / (1/2); smoothing would draw it towards a half."""
    for yes in (300, 520, 700):
        found = reconstruct_counts([1_000 - yes, yes], [[0.75, 0.25], [0.25, 0.75]])
        assert found.probability[1] == pytest.approx((yes / 1_000 - 0.25) / 0.5, abs=0.002)


def test_counts_of_nothing_give_the_uniform_start() -> None:
    found = reconstruct_counts([[0, 0], [10, 30]], np.eye(2))
    np.testing.assert_allclose(found.probability, [[0.5, 0.5], [0.25, 0.75]])
    assert found.stopped_by == ("start", "likelihood")
    one = reconstruct_counts([3, 4], [[0.5, 0.5]])
    assert one.probability.tolist() == [1.0]
    assert one.iterations == 0


def test_both_stops_and_a_direct_solution_agree_where_the_noise_is_weak() -> None:
    rng = np.random.default_rng(2)
    matrix = 0.9 * np.eye(5) + 0.02
    truth = np.array([0.3, 0.25, 0.2, 0.15, 0.1])
    counts = rng.multinomial(200_000, truth @ matrix)
    for options in ({"stop": "likelihood"}, {"stop": "chi-square"}, {"method": "direct"}):
        found = reconstruct_counts(counts, matrix, **options)  # type: ignore[arg-type]
        assert np.abs(found.probability - truth).max() < 0.01


def test_longer_iterations_sharpen_and_both_stops_end_before() -> None:
    """Wide Gaussian noise on a smooth truth: run on, EM ends in peaks [errata JS07.3]."""
    m, reach = 40, 45
    kernel = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * 9.0**2))
    matrix = np.array([np.r_[np.zeros(i), kernel, np.zeros(m - 1 - i)] for i in range(m)]) / kernel.sum()
    truth = np.exp(-((np.arange(m) - 20) ** 2) / (2 * 7.0**2))
    truth /= truth.sum()
    counts = np.random.default_rng(5).multinomial(2_000, truth @ matrix, size=10).astype(np.float64)
    channel = Channel.of(matrix)
    run_on = iterate(counts, channel, Never(), limit=4_000).probability
    error_run_on = np.abs(run_on - truth).sum(axis=1).mean() / 2
    for stop in ("likelihood", "chi-square"):
        found = reconstruct_counts(counts, channel, stop=stop)
        assert np.abs(found.probability - truth).sum(axis=1).mean() / 2 < 0.6 * error_run_on


@pytest.mark.parametrize(
    ("counts", "matrix", "words"),
    [
        ([1, 2, 3], np.eye(2), "each of the 2 outputs"),
        ([-1, 2], np.eye(2), "negative"),
        ([float("nan"), 2], np.eye(2), "no numbers"),
        (["a", "b"], np.eye(2), "must be numbers"),
        ([1, 2, 1], [[0.5, 0.5, 0.0], [0.1, 0.9, 0.0]], "1 records lie at outputs that the noise never gives"),
        ([1, 2], [[0.5, 0.6], [0.5, 0.5]], "1 rows"),
        ([1, 2], [[-0.5, 1.5], [0.5, 0.5]], "1 rows"),
        ([1, 2], [["a", "b"]], "rows of numbers"),
        ([1, 2], [1.0, 0.0], "a row for each input"),
    ],
)
def test_counts_and_matrices_that_cannot_be_are_refused(counts: object, matrix: object, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        reconstruct_counts(counts, matrix)  # type: ignore[arg-type]


def test_unknown_methods_and_stops_are_refused() -> None:
    with pytest.raises(OptionError, match="no method"):
        reconstruct_counts([1, 2], np.eye(2), method="magic")
    with pytest.raises(OptionError, match="no stop"):
        reconstruct_counts([1, 2], np.eye(2), stop="never")
    with pytest.raises(OptionError, match="limit"):
        reconstruct_counts([1, 2], np.eye(2), limit=0)


@given(arrays(np.float64, (4, 5), elements=st.floats(-3, 3)))
def test_the_projection_is_the_nearest_point_of_the_simplex(points: np.ndarray) -> None:
    near = onto_simplex(points)
    assert near.min() >= 0
    np.testing.assert_allclose(near.sum(axis=1), 1.0, atol=1e-9)
    for vertex in np.eye(5):  # the angle at a nearest point of a convex set is never acute
        assert (((points - near) * (vertex - near)).sum(axis=1) <= 1e-7).all()
