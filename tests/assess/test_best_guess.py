"""The best guess behind a randomized answer: known shares, the three fixed cases, and when it is not run."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.assess.attacks.noise_filter import BEST_GUESS, best_guesses, estimate_prior
from sfumato.assess.findings import Finding
from sfumato.assess.study import Study
from sfumato.core.distributions.domains import Integers, Labels
from sfumato.core.distributions.operators import KeepOrReplace, transition
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.facts import Shuffled
from sfumato.methods.protocol import OwnerDetails
from sfumato.methods.randomize.facts import Randomized
from tests.assess.cases import ROWS, draw_table, released_of, study
from tests.assess.privacy_studies import AWKWARD, awkward, case, check_sound, found
from tests.examples import at_length

GUESS = "bayes-inference"
TRUTHFUL = {
    "colour": NoiseSpec(Labels(("amber", "blue", "crimson")), {"name": "response", "epsilon": 6.0}),
    "shape": NoiseSpec(Labels(("flat", "round", "square", "")), {"name": "response", "epsilon": 6.0}),
    "count": NoiseSpec(Integers(0, 60), {"name": "keep-or-replace", "keep": 0.95}),
}


def facts_of(specs: dict[str, NoiseSpec]) -> tuple[Randomized, ...]:
    return tuple(
        Randomized(name, spec.canonical, spec.digest, spec.gamma, spec.epsilon)
        if math.isfinite(spec.gamma)
        else Randomized(name, spec.canonical, spec.digest, None, None)
        for name, spec in specs.items()
    )


def with_facts(of: Study, specs: dict[str, NoiseSpec]) -> Study:
    origin = np.arange(len(of.released), dtype=np.int64) % len(of.original)
    return dataclasses.replace(of, facts=facts_of(specs), workings=OwnerDetails(origin=origin))


def fixed(name: str) -> dict[str, Finding]:
    made = with_facts(study(draw_table(1), released_of(name)), TRUTHFUL)
    check_sound(BEST_GUESS, made)
    return found(BEST_GUESS, made)


def randomized(spec: NoiseSpec, values: list[str], seed: int = 1) -> dict[str, Finding]:
    """Randomize one column of labels and guess it."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(values))
    sent = spec.randomize(values, rng)[order]
    made = study(
        pa.table({"x": values}),
        pa.table({"x": sent.tolist()}),
        facts=(*facts_of({"x": spec}), Shuffled(len(values))),
        workings=OwnerDetails(origin=order.astype(np.int64)),
    )
    check_sound(BEST_GUESS, made)
    return found(BEST_GUESS, made)


def test_a_copy_is_guessed_in_every_cell() -> None:
    findings = fixed("copy")
    assert findings[GUESS].value == 1.0
    assert {f"{GUESS}/{column}" for column in TRUTHFUL} <= set(findings)


def test_an_independent_redraw_is_guessed_no_better_than_by_the_most_frequent_value() -> None:
    for name, finding in fixed("redraw").items():
        assert finding.interval is not None
        assert finding.baseline is not None
        assert finding.interval[0] <= finding.baseline, name


def test_a_constant_table_is_guessed_no_better_than_by_the_most_frequent_value() -> None:
    for finding in fixed("constant").values():
        assert finding.value is not None
        assert finding.baseline is not None
        assert finding.value <= finding.baseline


@pytest.mark.parametrize("keep", [0.5, 0.9])
@pytest.mark.parametrize("seed", [0, *at_length(1, 2)])
def test_with_equal_shares_the_guess_is_right_as_often_as_the_truth_is_sent(keep: float, seed: int) -> None:
    spec = NoiseSpec(Labels(("a", "b", "c", "d")), {"name": "keep-or-replace", "keep": keep})
    finding = randomized(spec, ["a", "b", "c", "d"] * 1000, seed)[GUESS]
    assert finding.value == pytest.approx(keep, abs=0.05)
    assert finding.baseline == 0.25


def test_where_one_value_is_common_and_the_law_hides_much_the_guess_is_the_common_value() -> None:
    spec = NoiseSpec(Labels(("a", "b")), {"name": "response", "epsilon": 0.5})
    finding = randomized(spec, ["a"] * 3600 + ["b"] * 400)[f"{GUESS}/x"]
    assert finding.value == finding.baseline == 0.9


def test_missing_cells_that_are_a_label_are_guessed_too() -> None:
    made = with_facts(study(draw_table(1), draw_table(1)), {"shape": TRUTHFUL["shape"]})
    assert found(BEST_GUESS, made)[GUESS].attempts == ROWS
    without = {"shape": NoiseSpec(Labels(("flat", "round", "square")), {"name": "response", "epsilon": 6.0})}
    made = with_facts(study(draw_table(1), draw_table(1)), without)
    assert found(BEST_GUESS, made)[GUESS].attempts == ROWS - draw_table(1).column("shape").null_count


@given(st.integers(2, 6), st.floats(0.3, 0.99), st.integers(0, 2**32 - 1))
def test_the_prior_is_that_of_the_inverted_matrix_where_it_is_one(size: int, keep: float, seed: int) -> None:
    if abs(keep - 1.0 / size) < 0.15:
        return  # answers that hardly depend on the value
    true = np.random.default_rng(seed).dirichlet(np.full(size, 20.0))
    matrix = transition(KeepOrReplace(size, keep))
    counts = np.rint(1e9 * (true @ matrix)).astype(np.int64)
    np.testing.assert_allclose(estimate_prior(counts, matrix.T), true, atol=0.02)


def test_the_guess_is_that_of_a_slow_loop() -> None:
    operator = KeepOrReplace(4, 0.4)
    answers = np.random.default_rng(3).choice(4, 500, p=[0.55, 0.25, 0.15, 0.05])
    matrix = transition(operator)
    prior = np.full(4, 0.25)
    for _ in range(200):  # each answer gives each value its posterior; their mean is the next estimate
        posterior = [prior * matrix[:, y] / (prior @ matrix[:, y]) for y in answers]
        prior = np.mean(posterior, axis=0)
    slow = [int(np.argmax(prior * matrix[:, y])) for y in answers]
    assert best_guesses(answers, operator).tolist() == slow


@pytest.mark.parametrize("name", AWKWARD)
def test_no_awkward_table_stops_it(name: str) -> None:
    numbers = {
        column: NoiseSpec(Integers(-5, 50), {"name": "laplace", "scale": 5}) for column in ("x", "count", "born")
    }
    check_sound(BEST_GUESS, with_facts(awkward(name), {**TRUTHFUL, **numbers}))


def test_laws_of_another_kind_than_the_column_guess_nothing() -> None:
    wrong = {"x": TRUTHFUL["colour"], "colour": TRUTHFUL["count"]}
    made = with_facts(study(draw_table(1), draw_table(2)), wrong)
    assert "no randomized column" in (found(BEST_GUESS, made)[GUESS].reason or "")


def test_without_randomized_columns_known_origins_or_small_domains_it_is_not_run() -> None:
    assert "no column was randomized" in (found(BEST_GUESS, case("copy"))[GUESS].reason or "")
    alone = study(draw_table(1), draw_table(2), facts=facts_of(TRUTHFUL))
    assert "descends" in (found(BEST_GUESS, alone)[GUESS].reason or "")
    wide = {"count": NoiseSpec(Integers(0, 5000), {"name": "laplace", "scale": 50})}
    made = with_facts(study(draw_table(1), draw_table(2)), wide)
    assert "at most 1000 values" in (found(BEST_GUESS, made)[GUESS].reason or "")
