"""Answers that stand for sets of values: the design, the bound and what they tell."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.distributions.domains import Labels
from sfumato.core.distributions.finite import choose_design, subset_response
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.errors import OptionError
from sfumato.survey.calculator import solve
from sfumato.survey.reconstruct import reconstruct
from tests.examples import examples


@given(st.integers(2, 300), st.floats(0.1, 6.0))
@examples(15)
def test_no_answer_is_likelier_than_epsilon_allows_for_any_two_values(size: int, epsilon: float) -> None:
    made = subset_response(size, epsilon)
    assert made.size == size
    assert made.epsilon == pytest.approx(epsilon, abs=1e-9)
    weights = made.weights
    ratio = max(int(high) / int(low) for high, low in zip(weights.max(axis=0), weights.min(axis=0), strict=True))
    assert math.log(ratio) == pytest.approx(made.epsilon, abs=1e-12)


@pytest.mark.parametrize(("size", "epsilon"), [(13, 1.0), (100, 1.0), (57, 2.0), (300, 0.5)])
def test_all_sets_are_equally_large_and_any_two_share_equally_many_answers(size: int, epsilon: float) -> None:
    design = choose_design(size, epsilon)
    assert design is not None
    q, dimension = design
    matrix = np.array(subset_response(size, epsilon).matrix)
    own = (matrix > matrix.mean()).astype(np.int64)
    shared = own @ own.T
    assert set(np.diag(shared)) == {(q**dimension - 1) // (q - 1)}
    assert set(shared[~np.eye(size, dtype=bool)]) == {(q ** (dimension - 1) - 1) // (q - 1)}


def test_few_values_or_little_noise_are_answered_plainly() -> None:
    assert choose_design(4, 3.0) is None
    assert len(subset_response(4, 3.0).outputs) == 4


def test_many_labels_are_told_with_less_error_than_by_a_plain_response() -> None:
    """At epsilon 1 among 150 labels the plain response has three times the variance."""
    labels = Labels(tuple(f"v{place}" for place in range(150)))
    truth = 1.0 / np.arange(1, 151)
    truth /= truth.sum()
    errors = []
    for name in ("subset", "response"):
        spec = NoiseSpec(labels, {"name": name, "epsilon": 1.0})
        rng = np.random.default_rng(1)
        sent = spec.operator.randomize(rng.choice(150, size=20_000, p=truth), rng)
        found = reconstruct(spec.decode_output(sent), spec, least=0)
        errors.append(float(((found.probability - truth) ** 2).sum()))
        assert found.values == labels.values
        assert ((found.lower <= truth) & (truth <= found.upper)).mean() > 0.9
        assert found.fit > 1e-4
    assert errors[0] < errors[1] / 2


def test_a_subset_law_is_written_read_solved_and_spoken() -> None:
    spec = NoiseSpec(Labels(tuple("abcdefghijklmnop")), {"name": "subset", "epsilon": 1})
    assert NoiseSpec.from_toml(spec.to_toml()) == spec
    assert "stands for" in spec.describe()
    found = solve(spec, 0.1, 0.3)
    assert found.parameter == "epsilon"
    assert found.spec is not None
    assert found.spec.gamma <= found.gamma * (1 + 1e-9)
    with pytest.raises(OptionError, match="number above 0"):
        NoiseSpec(spec.domain, {"name": "subset", "epsilon": 0})
    with pytest.raises(OptionError, match="2 to 4000"):
        NoiseSpec(Labels(tuple(map(str, range(5000)))), {"name": "subset", "epsilon": 1})


def test_a_survey_may_ask_with_it_and_the_page_draws_from_the_same_chances() -> None:
    from sfumato.survey.app import question_plan
    from sfumato.survey.questions import Question

    spec = NoiseSpec(Labels(tuple("abcdefghijkl")), {"name": "subset", "epsilon": 1.0})
    question = Question("town", spec)
    plan = question_plan(question)
    assert (plan["law"]["kind"], plan["released"]["kind"], plan["released"]["size"]) == ("response", "integers", 13)
    assert [[int(chance) for chance in row] for row in plan["law"]["rows"]] == spec.operator.weights.tolist()  # type: ignore[attr-defined]
    assert spec.encode_output([0, 12]).tolist() == [0, 12]
