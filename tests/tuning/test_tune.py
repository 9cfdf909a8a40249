"""Tuning as a whole: a class, a response, no target; reproducible, within a budget, and its recipe runs."""

from __future__ import annotations

import json
import re

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.assess.study import study_of
from sfumato.core.errors import BadInput, LevelError, OptionError
from sfumato.engines.recipe import Recipe
from sfumato.mechanisms.methods import make_mechanism
from sfumato.tables.codec import Codec
from sfumato.tables.schema import Role, Schema
from sfumato.tuning import tune
from sfumato.tuning.metrics import METRICS, choose_metric
from sfumato.tuning.model import Tuning
from sfumato.tuning.page import write_tuning_page
from sfumato.tuning.sizes import check_method
from tests.examples import sized


def people(rows: int = 300, seed: int = 3) -> pa.Table:
    rng = np.random.default_rng(seed)
    ill = rng.random(rows) < 0.3
    age = rng.normal(40, 10, rows) + 15 * ill
    return pa.table(
        {
            "age": age.round(1),
            "weight": (70 + 0.4 * age + rng.normal(0, 5, rows)).round(1),
            "town": rng.choice(["a", "b"], rows).tolist(),
            "state": np.where(ill, "ill", "well").tolist(),
        }
    )


FEWEST = 1e-6
SMALL, SMALLER = sized((150, 120), (300, 160))
"""Seconds that no machine keeps, so that every machine tries the same sizes, the fewest."""


@pytest.fixture(scope="module")
def tuned() -> Tuning:
    return tune(people(SMALL), target="state", method="classwise", seed=1, repeats=3, budget=FEWEST)


@pytest.fixture(scope="module")
def chained() -> Tuning:
    return tune(people(200), target="state", seed=1, repeats=2, budget=FEWEST)


@pytest.mark.slow
def test_a_class_is_tuned_class_by_class_and_the_smallest_class_is_shown(tuned: Tuning) -> None:
    assert tuned.recipe.method == "classwise"
    assert tuned.metric == "accuracy"
    assert all(trial.smallest is not None for trial in tuned.trials)
    assert {mark.rule for mark in tuned.marks} == {"approximate GCD", "rule-based", "brute force"}
    assert all(mark.size in {trial.size for trial in tuned.trials} for mark in tuned.marks)
    assert tuned.choice.size in {trial.size for trial in tuned.trials}


def test_each_size_is_measured_once_and_in_rising_order(tuned: Tuning) -> None:
    sizes = [trial.size for trial in tuned.trials]
    assert sizes == sorted(set(sizes))
    assert set(tuned.front) <= set(sizes)
    assert sizes[0] >= 5


def test_larger_groups_are_linked_less(tuned: Tuning) -> None:
    assert tuned.trials[0].linkage.share > tuned.trials[-1].linkage.share


def test_the_json_form_holds_what_was_tried_and_no_cell(tuned: Tuning) -> None:
    document = tuned.to_json()
    again = json.loads(json.dumps(document, allow_nan=False))
    assert again["k"] == tuned.choice.size
    assert len(again["tried"]) == len(tuned.trials)
    assert set(again["marks"]) == {"approximate GCD", "rule-based", "brute force"}
    assert "well" not in json.dumps(document)


def test_the_summary_says_the_reason_first_and_lists_every_size(tuned: Tuning) -> None:
    lines = tuned.summary().splitlines()
    assert lines[0].startswith(f"k = {tuned.choice.size}: ")
    for trial in tuned.trials:
        assert any(re.match(rf"\s+{trial.size}\s", line) for line in lines)
    assert sum("recommended" in line for line in lines) == 1


def test_the_recipe_runs_the_recommended_size(tuned: Tuning) -> None:
    recipe = Recipe.from_toml(tuned.recipe.to_toml())
    assert recipe.seed is None
    mechanism = make_mechanism(recipe.method, recipe.parameters)
    release = sf.sanitize(people(SMALL), mechanism, schema=recipe.schema, report=False)
    assert release.certificate.levels["smallest_group"] >= tuned.choice.size


def test_the_page_is_whole_and_loads_nothing(tuned: Tuning) -> None:
    page = write_tuning_page(tuned)
    assert page.count("<svg") == 4
    assert "http" not in page.replace("http://www.w3.org/", "").replace("http-equiv=", "")
    assert "<script" not in page
    assert page.index("Content-Security-Policy\" content=\"default-src 'none';") < page.index("<style>")


def test_of_200_rows_the_leaves_of_a_chain_are_tuned_from_25_in_geometric_steps(chained: Tuning) -> None:
    sizes = [trial.size for trial in chained.trials]
    assert (chained.recipe.method, chained.parameter) == ("chain", "leaf")
    assert (sizes[0], sizes[-1]) == (25, 90)  # half of the 180 rows that are not held out
    assert np.ptp(np.diff(np.log(sizes))) < 0.05  # but for rounding to whole people
    assert all(trial.readings[0].groups >= 4 for trial in chained.trials)  # a leaf or more for each column


def test_with_fewer_rows_the_target_decides_and_a_chain_is_tuned_by_name() -> None:
    assert [check_method(None, rows) for rows in (199, 200)] == [None, "chain"]
    named = tune(people(SMALLER), target="state", method="chain", seed=1, repeats=1, budget=FEWEST)
    assert named.recipe.method == "chain"


def test_a_chain_is_chosen_by_use_and_linkage_and_the_paper_s_rules_are_not_run(chained: Tuning) -> None:
    assert chained.marks == ()
    assert chained.choice.reason.startswith(f"leaf = {chained.choice.size}: its 1-NN accuracy of ")
    assert chained.summary().splitlines()[len(chained.notes) + 2].split()[0] == "leaf"
    document = json.loads(json.dumps(chained.to_json(), allow_nan=False))
    assert document["leaf"] == chained.choice.size
    assert [tried["leaf"] for tried in document["tried"]] == [trial.size for trial in chained.trials]
    assert "k" not in document
    page = write_tuning_page(chained)
    assert page.count("<svg") == 3
    assert "Which leaf size, and why" in page
    assert "What each rule chose" not in page
    assert "nterval metric" not in page


def test_the_recipe_of_a_chain_runs_the_recommended_leaf(chained: Tuning) -> None:
    recipe = Recipe.from_toml(chained.recipe.to_toml())
    assert recipe.parameters == {"k": 10, "leaf": chained.choice.size}
    release = sf.sanitize(people(200), recipe=recipe, report=False)
    assert release.certificate.levels["smallest_group"] >= chained.choice.size


@pytest.mark.parametrize(
    ("options", "k", "least"), [({"level": 30}, 2, 30), ({"level": 4}, 2, 25), ({"k": 28}, 28, 28), ({"k": 4}, 4, 25)]
)
def test_leaves_are_no_smaller_than_k_and_the_highest_level(options: dict[str, int], k: int, least: int) -> None:
    tuned = tune(people(200), target="state", seed=1, repeats=1, budget=FEWEST, **options)  # type: ignore[arg-type]
    assert (tuned.recipe.parameters["k"], tuned.trials[0].size) == (k, least)


def test_strata_too_small_for_a_leaf_are_refused() -> None:
    table = people(200)
    town = pa.array(["a"] * 30 + ["b"] * 170)
    with pytest.raises(LevelError, match="too few to try leaves of 25"):
        tune(table.set_column(2, "town", town), target="state", strata="town")


@pytest.mark.slow
def test_the_same_seed_gives_the_same_trials() -> None:
    first, again = (tune(people(SMALLER), target="state", seed=7, repeats=1, k=8, budget=FEWEST) for _ in range(2))
    assert [trial.utility for trial in first.trials] == [trial.utility for trial in again.trials]
    assert [trial.linkage for trial in first.trials] == [trial.linkage for trial in again.trials]
    assert first.choice == again.choice


def test_a_numeric_response_is_judged_by_correlation() -> None:
    tuned = tune(people(SMALLER), target="weight", seed=1, repeats=1, budget=FEWEST)
    assert (tuned.recipe.method, tuned.metric) == ("condense", "correlation")
    assert tuned.baseline is not None
    assert {mark.rule for mark in tuned.marks} == {"rule-based", "brute force"}
    assert all(trial.smallest is None for trial in tuned.trials)


def test_without_a_target_covariances_are_judged() -> None:
    tuned = tune(people(SMALLER), seed=1, repeats=1, budget=FEWEST)
    assert (tuned.metric, tuned.baseline) == ("covariance", None)
    assert max(trial.utility for trial in tuned.trials) > 0.9


def test_a_budget_takes_fewer_splits_then_fewer_sizes_and_says_so(tuned: Tuning) -> None:
    assert tuned.plan.repeats == 1
    assert tuned.plan.steps < 10
    assert tuned.plan.budget == FEWEST
    assert tuned.plan.estimate is not None
    assert any("more than the 1e-06 s granted" in note for note in tuned.notes)


def test_no_size_is_below_the_highest_level() -> None:
    tuned = tune(people(SMALLER), target="state", level="age > 45: 12, else: 6", seed=1, repeats=1, budget=FEWEST)
    assert tuned.trials[0].size >= 12


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"metric": "fame"}, "no metric 'fame'"),
        ({"metric": "correlation"}, "for a response"),
        ({"method": "swap"}, "tuned for"),
        ({"repeats": 0}, "at least 1"),
        ({"holdout": 1.5}, "between 0 and 1"),
        ({"budget": -1.0}, "seconds"),
        ({"target": "colour"}, "colour"),
        ({"target": "weight", "method": "classwise"}, "needs a target that is a class"),
    ],
)
def test_a_wrong_option_gets_one_sentence(options: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        tune(people(80), **{"target": "state", **options})  # type: ignore[arg-type]


def test_a_class_that_is_too_small_to_group_is_refused() -> None:
    table = people(80)
    few = pa.array(["rare"] * 3 + ["well"] * 77)
    with pytest.raises(LevelError, match="too few to try groups"):
        tune(table.set_column(3, "state", few), target="state")


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.of != "response"])
def test_the_original_itself_is_the_best_release_for_every_metric(name: str) -> None:
    table, held = people(400, 1), people(200, 2)
    codec = Codec.fit(table, Schema.infer(table).with_role(Role.TARGET, "state"))
    noise = pa.array(np.random.default_rng(5).permutation(table.column("age").to_numpy()))
    worse = table.set_column(0, "age", noise)
    good, bad = (
        choose_metric(study, name).run(study).value
        for study in (
            study_of(table, side, codec, holdout=held, rng=np.random.default_rng(1)) for side in (table, worse)
        )
    )
    assert good > bad - 0.02


def test_too_few_rows_held_out_cannot_judge() -> None:
    with pytest.raises(OptionError, match="hold more rows out"):
        tune(people(80), target="state", holdout=0.02)


def test_one_column_cannot_be_tuned_by_covariances_nor_predicted_from_nothing() -> None:
    table = people(100).select(["age"])
    with pytest.raises(OptionError, match="no covariances"):
        tune(table)
    with pytest.raises(OptionError, match="only column"):
        tune(table, target="age")


@pytest.mark.slow
def test_a_target_that_nobody_can_learn_and_a_single_split_are_noted() -> None:
    rng = np.random.default_rng(2)
    table = people(200).set_column(3, "state", pa.array(rng.choice(["a", "b"], 200)))
    tuned = tune(table, target="state", method="condense", seed=1, repeats=1, budget=FEWEST)
    assert any("single split" in note for note in tuned.notes)
    assert any("no more than guessing" in note for note in tuned.notes)
    assert any("budget chose 1 splits" in note for note in tuned.notes)
