"""Laws of the reconstruction that hold for any data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.distributions.domains import Integers, Labels, Reals, Universe
from sfumato.core.distributions.operators import transition
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.errors import OptionError, SchemaError, TooFew
from sfumato.survey.reconstruct import Reconstruction, reconstruct
from tests.examples import examples, sized

LAWS: list[tuple[Universe, dict[str, Any]]] = [
    (Integers(0, 40), {"name": "keep-or-replace", "keep": 0.4}),
    (Integers(0, 40), {"name": "shift-modulo", "reach": 6}),
    (Integers(0, 40), {"name": "mixture", "weight": 0.6, "of": {"name": "shift-modulo", "reach": 6}}),
    (Integers(0, 40), {"name": "uniform", "reach": 7}),
    (Integers(0, 40), {"name": "interval", "edges": [10, 25]}),
    (Reals(0.0, 4.0, sized(0.1, 0.05)), {"name": "gaussian", "sd": 0.5}),
    (Reals(0.0, 4.0, sized(0.1, 0.05)), {"name": "laplace", "scale": 0.5}),
    (Labels(("a", "b", "c", "d")), {"name": "response", "epsilon": 1.2}),
]


def _draw(domain: Universe, law: dict[str, Any], n: int, seed: int) -> tuple[NoiseSpec, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    spec = NoiseSpec(domain, law)
    return spec, spec.randomize(domain.decode((domain.size * rng.beta(2, 4, n)).astype(np.int64)), rng)


@pytest.mark.parametrize(("domain", "law"), LAWS)
@pytest.mark.parametrize("method", ["em", "bayes", "direct"])
def test_probabilities_are_probabilities_inside_their_bands(domain: Universe, law: dict[str, Any], method: str) -> None:
    spec, released = _draw(domain, law, 800, 3)
    found = reconstruct(released, spec, method=method)
    assert found.probability.min() >= 0
    assert found.probability.sum() == pytest.approx(1.0, abs=1e-12)
    assert (found.lower >= 0).all()
    assert (found.upper <= 1).all()
    assert (found.lower <= found.probability).all()
    assert (found.probability <= found.upper).all()
    assert found.records == 800
    assert 0 <= found.effective_records <= 800


@pytest.mark.parametrize(("domain", "law"), LAWS)
@pytest.mark.parametrize("method", ["em", "direct"])
def test_the_order_of_records_changes_nothing(domain: Universe, law: dict[str, Any], method: str) -> None:
    spec, released = _draw(domain, law, 500, 5)
    turned = np.random.default_rng(0).permutation(released)
    one, other = (reconstruct(each, spec, method=method) for each in (released, turned))
    for field in ("probability", "lower", "upper"):
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field))


@pytest.mark.parametrize("stop", ["likelihood", "chi-square"])
@pytest.mark.parametrize("method", ["em", "bayes"])
@given(st.lists(st.integers(0, 9), min_size=30, max_size=200))
@examples(20)
def test_without_noise_the_histogram_comes_back(stop: str, method: str, values: list[int]) -> None:
    spec = NoiseSpec(Integers(0, 9), {"name": "keep-or-replace", "keep": 1.0})
    found = reconstruct(values, spec, stop=stop, method=method)
    np.testing.assert_allclose(found.probability, np.bincount(values, minlength=10) / len(values), atol=1e-12)
    assert found.effective_records == pytest.approx(len(values))


def test_a_rising_number_of_records_brings_the_estimate_to_the_truth() -> None:
    """Errors of 15 seeds: 3 to 10 % from 3,000 records, at most 0.5 % from a million."""
    truth = np.array([0.05, 0.1, 0.4, 0.3, 0.15])
    spec = NoiseSpec(Labels(tuple("abcde")), {"name": "response", "epsilon": 1.0})
    rng = np.random.default_rng(8)
    errors = []
    for n in (3_000, 1_000_000):
        codes = rng.choice(5, size=n, p=truth)
        found = reconstruct(spec.randomize(spec.domain.decode(codes), rng), spec)
        errors.append(np.abs(found.probability - truth).sum() / 2)
    assert errors[1] < 0.01
    assert errors[1] < errors[0]


def test_a_constant_column_comes_back_as_one_value() -> None:
    spec = NoiseSpec(Integers(0, 20), {"name": "uniform", "reach": 5})
    rng = np.random.default_rng(4)
    found = reconstruct(spec.randomize(np.full(20_000, 7), rng), spec)
    assert int(found.probability.argmax()) == 7
    assert found.probability[7] > 0.9


def test_one_interval_holds_everything() -> None:
    spec, released = _draw(Reals(0.0, 1.0, 0.01), {"name": "gaussian", "sd": 0.2}, 40, 1)
    found = reconstruct(released, spec, intervals=1)
    for each in (found.probability, found.lower, found.upper):
        assert each.tolist() == pytest.approx([1.0], abs=1e-3)
    assert found.edges is not None
    assert found.edges.tolist() == [0.0, 1.0]


def test_edges_may_be_given_and_end_where_the_domain_ends() -> None:
    spec, released = _draw(Integers(0, 99), {"name": "gaussian", "sd": 5}, 500, 1)
    found = reconstruct(released, spec, intervals=[0, 20, 30, 99])
    assert found.edges is not None
    assert found.edges.tolist() == [-0.5, 19.5, 29.5, 99.5]
    for wrong in ([0, 20], [0, 30, 20, 99], [0, 20.2, 20.8, 99], [5, 99], []):
        with pytest.raises(OptionError, match="edges"):
            reconstruct(released, spec, intervals=wrong)


@pytest.mark.parametrize(
    ("domain", "law", "cells"),
    [
        (Integers(0, 200), {"name": "shift-modulo", "reach": 20}, "values"),
        (Integers(0, 5000), {"name": "shift-modulo", "reach": 500}, "edges"),
        (Reals(0.0, 1.0, 0.001), {"name": "laplace", "scale": 0.1}, "edges"),
        (Labels(("no", "yes")), {"name": "keep-or-replace", "keep": 0.75}, "values"),
        (Integers(0, 99), {"name": "interval", "edges": [10, 50]}, "edges"),
    ],
)
def test_the_document_has_values_or_edges_as_the_domain_asks(domain: Universe, law: Any, cells: str) -> None:
    spec, released = _draw(domain, law, 3_000, 2)
    document = reconstruct(released, spec, limit=20).to_document()
    assert ("edges" in document, "values" in document) == (cells == "edges", cells == "values")
    assert len(document[cells]) == len(document["probability"]) + (cells == "edges")


def test_an_interval_law_is_told_in_its_own_intervals_and_needs_no_noise() -> None:
    spec = NoiseSpec(Integers(0, 99), {"name": "interval", "edges": [10, 50]})
    found = reconstruct(spec.randomize(np.arange(100), np.random.default_rng(0)), spec)
    np.testing.assert_allclose(found.probability, [0.1, 0.4, 0.5])
    finer = reconstruct(spec.randomize(np.arange(100), np.random.default_rng(0)), spec, intervals=10)
    np.testing.assert_allclose(finer.probability, 0.1)
    assert any("gives no information on 7 of 9 directions" in note for note in finer.notes)


def test_no_records_are_refused_whatever_is_allowed() -> None:
    spec = NoiseSpec(Integers(0, 9), {"name": "keep-or-replace", "keep": 1.0})
    with pytest.raises(TooFew, match="0 records are too few"):
        reconstruct([], spec, least=0)


def test_the_refusal_names_the_number_that_is_enough() -> None:
    """Binary answers with epsilon 1 keep a share tanh(1/2)^2 of the information."""
    spec = NoiseSpec(Labels(("no", "yes")), {"name": "response", "epsilon": 1.0})
    needed = int(np.ceil(30 / np.tanh(0.5) ** 2))
    with pytest.raises(TooFew, match=f"at least {needed} are needed"):
        reconstruct(["yes"] * (needed - 1), spec)
    found = reconstruct(["yes", "no"] * ((needed + 1) // 2), spec)
    assert found.effective_records == pytest.approx(found.records * np.tanh(0.5) ** 2, rel=1e-9)
    with pytest.raises(TooFew, match="use a weaker noise"):
        reconstruct(["a", "b"] * 500, NoiseSpec(Labels(("a", "b")), {"name": "response", "matrix": [[0.5, 0.5]] * 2}))


def test_a_wider_noise_needs_more_records() -> None:
    needed = []
    for sd in (20, 40, 80):
        spec = NoiseSpec(Integers(0, 100), {"name": "gaussian", "sd": sd})
        with pytest.raises(TooFew) as refusal:
            reconstruct([50] * 10, spec)
        needed.append(int(str(refusal.value).split("at least ")[1].split()[0]))
    assert needed[0] < needed[1] < needed[2]
    assert needed[2] > 240  # at best 30 (1 + noise variance / variance of the uniform truth)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "magic"}, "no method"),
        ({"stop": "never"}, "no stop"),
        ({"method": "direct", "stop": "likelihood"}, "leave the stop out"),
        ({"bands": 1.0}, "between 0 and 1"),
        ({"limit": 0}, "limit"),
        ({"least": -1.0}, "0 or more"),
        ({"intervals": 0}, "from 1 to 41"),
        ({"intervals": 42}, "from 1 to 41"),
        ({"intervals": True}, "number of intervals"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], words: str) -> None:
    spec, released = _draw(Integers(0, 40), {"name": "uniform", "reach": 7}, 100, 1)
    with pytest.raises(OptionError, match=words):
        reconstruct(released, spec, **options)


def test_values_that_the_law_cannot_send_are_counted_and_not_shown() -> None:
    spec = NoiseSpec(Integers(0, 40), {"name": "uniform", "reach": 7})
    with pytest.raises(SchemaError, match=r"^2 values") as refusal:
        reconstruct([3, 777, -321], spec)
    assert "777" not in str(refusal.value)
    far = NoiseSpec(Integers(0, 40), {"name": "gaussian", "sd": 2})
    with pytest.raises(SchemaError, match=r"^1 values lie so far out"):
        reconstruct([20] * 50 + [100_000], far)
    with pytest.raises(OptionError, match="no order"):
        reconstruct(["a"], NoiseSpec(Labels(("a", "b")), {"name": "keep-or-replace", "keep": 0.9}), intervals=2)


def test_more_labels_than_can_be_told_apart_are_refused_at_once() -> None:
    spec = NoiseSpec(Labels(tuple(map(str, range(20_000)))), {"name": "keep-or-replace", "keep": 0.9})
    with pytest.raises(OptionError, match="20,000 labels and at most 4,096"):
        reconstruct(["7"] * 1_000, spec)


def test_a_mixture_with_a_response_is_reconstructed_in_intervals() -> None:
    law = {"name": "mixture", "weight": 0.9, "of": {"name": "response", "epsilon": 5.0}}
    spec, released = _draw(Integers(0, 39), law, 5_000, 1)
    coarse, fine = (reconstruct(released, spec, intervals=each) for each in (4, None))
    np.testing.assert_allclose(coarse.probability, fine.probability.reshape(4, 10).sum(axis=1), atol=0.05)


def test_a_limit_ends_the_iteration_and_says_so() -> None:
    spec, released = _draw(Integers(0, 40), {"name": "uniform", "reach": 7}, 5_000, 1)
    found = reconstruct(released, spec, method="em", limit=2)
    assert (found.iterations, found.stopped_by) == (2, "limit")
    assert any("ended after 2 steps" in note for note in found.notes)


def _of_two() -> Reconstruction:
    spec = NoiseSpec(Integers(0, 99), {"name": "keep-or-replace", "keep": 1.0})
    return reconstruct([10] * 75 + [80] * 25, spec, intervals=2)


def test_mean_quantiles_and_samples_are_those_of_the_distribution() -> None:
    found = _of_two()
    assert found.mean() == pytest.approx(0.75 * 24.5 + 0.25 * 74.5)
    assert found.quantile(0.0) == -0.5
    assert found.quantile(0.75) == pytest.approx(49.5)
    assert found.quantile(1.0) == pytest.approx(99.5)
    drawn = found.sample(20_000, np.random.default_rng(1))
    assert drawn.min() >= 0
    assert drawn.max() <= 99
    assert abs((drawn < 50).mean() - 0.75) < 0.02  # six standard deviations
    spec = NoiseSpec(Integers(0, 9), {"name": "keep-or-replace", "keep": 1.0})
    single = reconstruct([2] * 50 + [7] * 50, spec)
    assert (single.quantile(0.5), single.quantile(0.51), single.mean()) == (2.0, 7.0, 4.5)
    with pytest.raises(OptionError, match="share from 0 to 1"):
        single.quantile(1.5)
    labels = reconstruct(["a"] * 60, NoiseSpec(Labels(("a", "b")), {"name": "keep-or-replace", "keep": 1.0}))
    assert set(labels.sample(10, np.random.default_rng(1))) == {"a"}
    with pytest.raises(OptionError, match="no mean"):
        labels.mean()
    assert "a: 100.0 %" in labels.describe()


def test_a_reconstruction_shows_no_record() -> None:
    """Its repr has numbers of cells, which are what is published; the released values are not kept."""
    found = _of_two()
    assert "records=100" in repr(found)
    assert not any(len(np.atleast_1d(value)) == 100 for value in vars(found).values() if isinstance(value, np.ndarray))


def test_a_matrix_and_its_law_give_the_same() -> None:
    from sfumato.survey.reconstruct import reconstruct_counts

    spec, released = _draw(Integers(0, 30), {"name": "shift-modulo", "reach": 5}, 2_000, 6)
    bare = reconstruct_counts(np.bincount(released, minlength=31), transition(spec.operator))
    found = reconstruct(released, spec)
    np.testing.assert_allclose(found.probability, bare.probability, atol=1e-9)
    assert (found.iterations, found.stopped_by) == (int(bare.iterations), bare.stopped_by[0])


def test_intervals_wider_than_the_truth_are_right_with_many_records() -> None:
    rng = np.random.default_rng(11)
    spec = NoiseSpec(Integers(0, 1000), {"name": "uniform", "reach": 100})
    true = np.clip(np.rint(rng.normal(305.0, 12.0, 200_000)), 0, 1000)
    found = reconstruct(spec.randomize(true.astype(np.int64), rng), spec, intervals=50)
    assert found.edges is not None
    wanted = np.histogram(true, found.edges)[0] / len(true)
    assert 0.5 * np.abs(found.probability - wanted).sum() < 0.04  # measured 0.01; over whole intervals 0.1 and more
