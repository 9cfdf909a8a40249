"""Tuning as a whole: judged by the policy, confirmed on unused people, stopped at any time, and the command runs."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.assess.study import study_of
from sfumato.assess.utility.prediction import PREDICTION, is_class
from sfumato.core.errors import BadInput, OptionError
from sfumato.core.progress import listening
from sfumato.engines.outcome import Recipe
from sfumato.publish.policy import Policy
from sfumato.tables.codec import Codec
from sfumato.tables.schema import Role, Schema
from sfumato.tuning import Tuning, tune
from sfumato.tuning import trials as trials_module
from sfumato.tuning.candidates import Candidate
from sfumato.tuning.model import StopReason, write_tuning_page
from sfumato.tuning.trials import METRICS, Part, Reading, TrialRunner, choose_metric, guess_of, kind_of_target
from tests.assess.mining import found
from tests.examples import at_length

LAX = Policy("lax", {"membership-auc": 0.99}, {"control": True, "min_group_size": 20})
"""Met by anything that has groups of twenty, whatever is drawn."""
HARSH = Policy("harsh", {"membership-auc": 0.5}, {"control": True, "min_group_size": 20})
"""Met by nothing: no interval ends at a coin."""
RNG = np.random.default_rng(1)
GRANTED = 300.0
"""Seconds that no machine needs for a table so small."""


def people(rows: int = 200, seed: int = 3) -> pa.Table:
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


@pytest.fixture(scope="module")
def tuned() -> Tuning:
    return tune(people(), holdout=0.3, target="state", policy=LAX, methods="chain", seed=1, time_limit=GRANTED)


@pytest.fixture(scope="module")
def hopeless() -> Tuning:
    return tune(people(), holdout=0.3, target="state", policy=HARSH, methods=["chain"], seed=1, time_limit=GRANTED)


def test_the_best_meets_the_policy_on_people_whom_the_search_has_not_used(tuned: Tuning) -> None:
    assert tuned.best is not None
    reading = tuned.best.reading
    assert reading.part == "confirmation"
    assert reading.verdict.outcome.value == "meets"
    assert reading.people == 140  # all but the 30 % who are held out
    assert all(each.people < 140 for each in tuned.bench.readings if each.part not in ("confirmation", "again"))
    assert tuned.stopped is StopReason.DONE


def test_no_size_is_below_what_the_policy_asks_and_sizes_double(tuned: Tuning) -> None:
    assert sorted({each.candidate.size for each in tuned.bench.readings}) == [20, 40]
    assert tuned.best is not None
    assert tuned.best.reading.candidate.mechanism(tuned.table.k).k == 20  # type: ignore[attr-defined]


def test_the_share_of_responses_within_the_tolerance_can_be_tuned_for() -> None:
    table = people()
    told: dict[str, Any] = {"target": "weight", "policy": LAX, "methods": "chain", "seed": 1, "time_limit": GRANTED}
    near, far = (tune(table, metric="response-accuracy-1nn", accurate_within=each, **told) for each in (1.0, 12.0))
    for tuned, within in ((near, 1.0), (far, 12.0)):
        weights = np.array(table["weight"])
        assert tuned.bench.guess == pytest.approx((np.abs(weights - np.median(weights)) <= within).mean(), abs=0.12)
        uses = [each.use.value for each in tuned.bench.readings]
        assert all(0.0 <= use <= 1.0 for use in uses)
        assert set(np.unique(np.concatenate([each.use.parts for each in tuned.bench.readings]))) <= {0.0, 1.0}
    assert max(each.use.value for each in near.bench.readings) < min(each.use.value for each in far.bench.readings)


def test_no_release_is_called_better_than_the_original(tuned: Tuning) -> None:
    assert tuned.best is not None
    said, reading = tuned.use_words, tuned.best.reading
    assert re.match(r"AUC of (boosted trees|logistic regression) \d\.\d{3} \(original \d", said)
    assert f"{reading.use.value:.3f} (original {reading.original.value:.3f}, majority class 0.5); " in said
    assert "; no significant loss (95\u00a0% CI up to " in said or "; loss 0." in said
    assert "gain" not in said
    assert "better" not in "\n".join(text for _, text in tuned.lines())


def test_the_json_form_holds_what_was_tried_and_no_cell(tuned: Tuning) -> None:
    document = json.loads(json.dumps(tuned.to_json(), allow_nan=False))
    assert document["best"]["method"] == "chain"
    assert document["command"] == document["best"]["command"]
    assert document["nearest"] is None
    assert len(document["tried"]) == len(tuned.bench.readings)
    assert len(document["alternatives"]) == 1
    assert "well" not in json.dumps(document)


def test_the_command_holds_all_that_is_needed(tuned: Tuning) -> None:
    assert tuned.best is not None
    size = tuned.best.reading.candidate.size
    assert shlex.split(tuned.command_of(tuned.best.reading)) == [
        "sfumato", "sanitize", "INPUT", "-o", "FOLDER", "--method", "chain", "--leaf", str(size), "--k", "20",
        "--holdout", "0.3", "--policy", "FILE", "--target", "state",
    ]  # fmt: skip


def test_the_recipe_makes_the_release(tuned: Tuning) -> None:
    assert tuned.recipe is not None
    assert tuned.best is not None
    recipe = Recipe.from_toml(tuned.recipe.to_toml())
    release = sf.sanitize(people(), recipe=dataclasses.replace(recipe, policy=None), report=False)
    assert (recipe.options.holdout, recipe.policy, recipe.options.seed) == (0.3, "lax", None)
    assert recipe.parameters["leaf"] == tuned.best.reading.candidate.size
    assert release.certificate.levels["smallest_group"] >= 20


def test_a_chance_that_is_not_quite_enough_is_not_rounded_up_to_it(tuned: Tuning) -> None:
    assert tuned.best is not None
    doubtful = dataclasses.replace(tuned, confirmed=(dataclasses.replace(tuned.best, chance=0.9499),))
    assert doubtful.best is None
    assert doubtful.reason == "an estimated 94\u00a0% of runs meet the policy; 95\u00a0% are required"


def test_a_notebook_shows_the_frontier(tuned: Tuning) -> None:
    shown = tuned._repr_html_()
    assert shown.startswith("<iframe ")
    assert "The frontier" in shown
    assert "<svg" not in shown  # escaped, in a frame of its own


def test_where_nothing_qualifies_it_says_what_comes_nearest_and_why(hopeless: Tuning) -> None:
    assert hopeless.best is None
    assert hopeless.recipe is None
    assert hopeless.nearest is not None
    document = hopeless.to_json()
    assert (document["best"], document["command"]) == (None, None)
    assert document["nearest"]["reason"] == hopeless.reason
    assert "; limit 0.50" in hopeless.reason
    lines = [text for _, text in hopeless.lines()]
    assert lines[0] == 'No setting (of 2 tried) is shown to meet policy "harsh".'
    assert not any(line.startswith("Run it") for line in lines)
    assert hopeless.binding in lines
    assert hopeless.binding.startswith("Binding limit: membership inference")
    assert re.search(r'the only limit that it fails; column "\w+" contributes most\.$', hopeless.binding)


def test_the_page_is_whole_and_loads_nothing(tuned: Tuning, hopeless: Tuning) -> None:
    for each in (tuned, hopeless):
        page = write_tuning_page(each)
        assert page.count("<svg") == 1
        assert "http" not in page.replace("http://www.w3.org/", "").replace("http-equiv=", "")
        assert "<script" not in page
        assert page.index("Content-Security-Policy\" content=\"default-src 'none';") < page.index("<style>")
    assert "Nearest setting: " in write_tuning_page(hopeless)
    assert ">Command<" in write_tuning_page(tuned)


def _fake(monkeypatch: pytest.MonkeyPatch, stop_after: int, stop: type[BaseException]) -> None:
    """Let the bench stop in the middle of a trial."""
    read, calls = TrialRunner.read, iter(range(1000))

    def stopping(bench: TrialRunner, candidate: Candidate, part: Part, change: object = None) -> Reading:
        if next(calls) >= stop_after:
            raise stop
        return read(bench, candidate, part, change)  # type: ignore[arg-type]

    monkeypatch.setattr(trials_module.TrialRunner, "read", stopping)


def test_an_interrupt_ends_with_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    _fake(monkeypatch, 1, KeyboardInterrupt)
    tuned = tune(people(), holdout=0.3, target="state", policy=LAX, methods="chain", seed=1, time_limit=GRANTED)
    assert tuned.stopped is StopReason.INTERRUPTED
    assert tuned.best is None
    assert len(tuned.bench.readings) == 1
    assert tuned.to_json()["stopped"] == "interrupted"
    assert any("Interrupted: " in note for note in tuned.notes)
    assert "not confirmed" in tuned.reason


def test_an_interrupt_before_anything_was_measured_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    _fake(monkeypatch, 0, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        tune(people(), holdout=0.3, target="state", policy=LAX, methods="chain", seed=1)


def test_a_time_limit_that_ends_before_one_trial_is_refused() -> None:
    with pytest.raises(OptionError, match="before one setting could be tried"):
        tune(people(), holdout=0.3, target="state", policy=LAX, methods="chain", seed=1, time_limit=1e-3)


def test_it_tells_how_far_it_is_and_nothing_of_the_steps_inside() -> None:
    told: list[tuple[str, float]] = []
    seen: list[Reading] = []
    watched: dict[str, Any] = {"methods": "chain", "metric": "covariance", "watch": seen.append}
    with listening(lambda stage, fraction: told.append((stage, fraction))):
        tuned = tune(people(120), holdout=0.3, policy=LAX, seed=1, time_limit=GRANTED, **watched)
    assert {stage for stage, _ in told} == {"tuning"}
    assert told[-1] == ("tuning", 1.0)
    assert len(seen) > 1
    assert seen == tuned.bench.readings


def test_people_are_kept_together_and_no_more_than_some_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.tuning.run.MOST_PEOPLE", 100)
    table = people(360).append_column("who", pa.array([f"p{place // 2}" for place in range(360)]))
    tuned = tune(
        table, person="who", holdout=0.3, policy=LAX, methods="chain", metric="covariance", seed=1, time_limit=GRANTED
    )
    assert tuned.people == (100, 180)
    assert any("100 of 180 people" in note for note in tuned.notes)
    assert {each.people for each in tuned.bench.readings if each.part == "confirmation"} == {70}


@pytest.mark.parametrize(
    ("target", "kind"), [("stays", "response"), ("state", "class"), ("weight", "response"), (None, "table")]
)
def test_a_target_is_a_class_or_a_response_by_its_kind_as_in_the_report(target: str | None, kind: str) -> None:
    table = people().append_column("stays", pa.array(np.random.default_rng(1).integers(1, 4, 200)))
    schema = Schema.infer(table)
    codec = Codec.fit(table, schema if target is None else schema.with_role(Role.TARGET, target))
    study = study_of(table, table, codec, holdout=people(60, 4).append_column("stays", pa.array([1] * 60)), rng=RNG)
    assert kind_of_target(study) == kind
    if target is not None:
        assert is_class(study.pair(target).field) == (kind == "class")


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.of != "response"])
def test_the_original_itself_is_the_best_release_for_every_metric(name: str) -> None:
    table, held = people(300, 1), people(150, 2)
    codec = Codec.fit(table, Schema.infer(table).with_role(Role.TARGET, "state"))
    noise = pa.array(np.random.default_rng(5).permutation(table.column("age").to_numpy()))
    study = study_of(table, table.set_column(0, "age", noise), codec, holdout=held, rng=np.random.default_rng(1))
    metric = METRICS[name]
    assert metric.original(study).value > metric.released(study).value - 0.02


@pytest.mark.parametrize(("classes", "measure"), [(2, "auc-"), (3, "balanced-accuracy-")])
def test_use_is_measured_above_chance(classes: int, measure: str) -> None:
    table, held = people(300, 1), people(150, 2)
    states = [f"s{place}" for place in range(classes)]
    table, held = (
        each.set_column(each.column_names.index("state"), "state", pa.array(states * (each.num_rows // classes)))
        for each in (table, held)
    )
    study = study_of(table, table, Codec.fit(table, Schema.infer(table, target="state")), holdout=held, rng=RNG)
    metric = choose_metric(study, None)
    assert metric.name in {f"{measure}boosting", f"{measure}logistic"}
    assert guess_of(study, metric) == pytest.approx(1 / classes)
    assert guess_of(study, METRICS["accuracy-1nn"]) == pytest.approx(1 / classes)
    if classes > 2:
        with pytest.raises(
            OptionError, match="'auc-1nn' is for two classes, and the target has more; choose balanced-"
        ):
            choose_metric(study, "auc-1nn")


@pytest.mark.parametrize("search", ["rule-based", *at_length("brute-force")])
def test_the_searches_of_the_paper_range_to_the_smallest_class_and_name_what_they_chose(search: str) -> None:
    seen: list[Reading] = []
    told: dict[str, Any] = {"target": "state", "policy": LAX, "methods": "classwise", "search": search, "seed": 1}
    tuned = tune(people(300), watch=seen.append, time_limit=GRANTED, **told)
    assert {each.candidate.method for each in tuned.bench.readings} == {"classwise"}
    assert tuned.confirmed
    chosen = tuned.searched
    assert chosen is not None
    assert chosen.high == 42  # people of the smaller class; the grid of sizes ends at 40
    assert (chosen.low, chosen.high) == (min(chosen.tried), max(chosen.tried))
    assert set(chosen.tried) <= {each.candidate.size for each in seen}
    sizes = f"of the sizes from {chosen.low} to {chosen.high} (the smallest class)"
    words = f"The {search} search chose {chosen.candidate.words} {sizes}"
    assert any(words in line for _, line in tuned.lines())
    assert words in write_tuning_page(tuned)
    document = tuned.to_json()["searched"]
    assert (document["k"], document["tried"]) == (chosen.candidate.size, list(chosen.tried))
    with pytest.raises(OptionError, match="group sizes"):
        tune(people(), holdout=0.3, target="state", methods="chain", search=search)
    with pytest.raises(OptionError, match=r"the smallest class has \d+ people and the smallest size is 60"):
        tune(people(300), k=60, time_limit=GRANTED, **told)


def test_accuracy_on_the_smallest_class_stands_beside_that_of_all(tuned: Tuning) -> None:
    reading = tuned.confirmed[0].reading
    smallest = reading.use.smallest
    assert smallest is not None
    assert reading.original.smallest is not None
    tried = tuned.to_json()["tried"]
    assert all("use_smallest_class_original" in each for each in tried)
    assert any(f"accuracy {smallest:.2f} (original" in line for _, line in tuned.lines())
    assert "Smallest class" in write_tuning_page(tuned)


def test_the_smallest_class_of_a_metric_is_that_of_the_report() -> None:
    table, held = people(300), people(200, seed=4)
    codec = Codec.fit(table, Schema.infer(table).with_role(Role.TARGET, "state"))
    study = study_of(table, people(300, seed=5), codec, holdout=held, rng=np.random.default_rng(1))
    score = METRICS["accuracy-1nn"].released(study)
    finding = found(PREDICTION, study)["accuracy-smallest-class-1nn"]
    assert score.smallest == finding.value
    assert score.smallest != score.value
    assert METRICS["likeness"].released(study).smallest is None


@pytest.mark.slow
def test_methods_are_compared_with_one_another() -> None:
    tuned = tune(people(400), target="state", policy=LAX, seed=1, time_limit=GRANTED)
    assert {each.candidate.method for each in tuned.bench.readings} == {"chain", "condense", "classwise"}
    assert tuned.best is not None


@pytest.fixture(params=["level", *at_length("strata")])
def narrow(request: pytest.FixtureRequest) -> dict[str, object]:
    return {"level": 30} if request.param == "level" else {"strata": "town"}


@pytest.mark.slow
def test_levels_and_strata_are_kept(narrow: dict[str, object]) -> None:
    tuned = tune(
        people(),
        policy=LAX,
        methods="chain",
        metric="covariance",
        quasi_identifiers=["town"],
        seed=1,
        time_limit=GRANTED,
        **narrow,  # type: ignore[arg-type]
    )
    assert "--quasi-identifier town" in tuned.command_of(tuned.bench.readings[0])
    assert min(each.candidate.size for each in tuned.bench.readings) >= (30 if "level" in narrow else 20)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"metric": "fame"}, "no metric 'fame'"),
        ({"metric": "r2-ridge"}, "for a response"),
        ({"methods": "swap"}, "no size is tuned of 'swap'"),
        ({"methods": "chian"}, "did you mean 'chain'"),
        ({"search": "luck"}, "no search 'luck'"),
        ({"holdout": 1.5}, "between 0 and 1"),
        ({"time_limit": -1.0}, "seconds"),
        ({"target": "colour"}, "colour"),
        ({"quasi_identifiers": ["twon"]}, "did you mean 'town'"),
        ({"policy": "nobody"}, "policy"),
        ({"k": 500}, "smallest size that may be tried is 500"),
        ({"target": "weight", "methods": "classwise"}, "response and not a class"),
    ],
)
def test_a_wrong_option_gets_one_sentence(options: dict[str, object], words: str) -> None:

    with pytest.raises(BadInput, match=words):
        tune(people(), **{"target": "state", "policy": LAX, "seed": 1, **options})  # type: ignore[arg-type]
