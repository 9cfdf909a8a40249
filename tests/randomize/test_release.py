"""Randomized tables from end to end: the release holds all that a recipient needs, and the report its attacks."""

from __future__ import annotations

import csv
import json
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.assess.algebra import run_measure
from sfumato.assess.attacks.noise_filter import NOISE_FILTER
from sfumato.assess.study import study_of
from sfumato.certificate import Certificate
from sfumato.core.distributions.domains import Integers, Labels, Reals
from sfumato.core.distributions.operators import transition
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.randomness import Randomness
from sfumato.methods.randomize import Randomization
from sfumato.methods.randomize.facts import specs_of
from sfumato.publish.verify import verify_release
from sfumato.survey.reconstruct import reconstruct
from sfumato.survey.verbs import read_spec
from tests.cli.conftest import Run
from tests.cli.conftest import run as run
from tests.randomize.tables import ROWS, TOWNS, codec_of, declared_schema, draw_table

pytestmark = pytest.mark.usefixtures("without_figures", "without_utility")


@cache
def released() -> sf.Release:
    """A dry run with one specification and an epsilon for the rest, measured."""
    spec = NoiseSpec(Integers(0, 120), {"name": "gaussian", "sd": 20})
    table = draw_table(rows=600)
    return sf.sanitize(table, Randomization(specs={"age": spec}, epsilon=1.0), schema=declared_schema(), seed=3)


def test_table_and_certificate_are_enough_to_recover_what_was_hidden() -> None:
    release = sf.sanitize(draw_table(), Randomization(epsilon=2.0), schema=declared_schema(), report=False)
    spec = specs_of(Certificate.from_json(release.certificate.to_json()).facts)["town"]
    answers = spec.encode_output(release.table.column("town").to_pylist())
    shares = np.linalg.solve(transition(spec.operator).T, np.bincount(answers, minlength=3) / ROWS)
    np.testing.assert_allclose(shares, [0.6, 0.3, 0.1], atol=0.1)  # six standard errors of 4,000 answers
    assert isinstance(spec.domain, Labels)
    assert spec.domain.values == TOWNS


def test_the_distribution_of_a_column_is_reconstructed_from_the_folder_alone(tmp_path: Path) -> None:
    spec = NoiseSpec(Integers(0, 120), {"name": "gaussian", "sd": 15})
    mechanism = Randomization(specs={"age": spec}, epsilon=2.0)
    release = sf.sanitize(draw_table(), mechanism, schema=declared_schema(), report=False)
    release.save(tmp_path / "out")
    folder = tmp_path / "out" / "release"
    rows = list(csv.DictReader((folder / "table.csv").read_text().splitlines()))
    law = read_spec(folder / "certificate.json", "age")
    found = reconstruct([int(float(row["age"])) for row in rows], law, intervals=[0, 18, 54, 90, 120])
    np.testing.assert_allclose(found.probability, [0, 0.5, 0.5, 0], atol=0.12)


def test_the_mean_of_released_numbers_is_that_of_the_true_ones() -> None:
    release = sf.sanitize(draw_table(), Randomization(epsilon=3.0), schema=declared_schema(), report=False)
    for name in ("age", "pay"):
        true, got = (table.column(name).to_numpy() for table in (draw_table(), release.table))
        assert abs(got.mean() - true.mean()) < 6 * got.std() / np.sqrt(ROWS)


def test_the_frame_type_and_the_columns_come_back() -> None:
    pandas = pytest.importorskip("pandas")
    frame = draw_table(rows=300).to_pandas()
    got = sf.sanitize(frame, Randomization(epsilon=1.0), schema=declared_schema(), seed=1, report=False).table
    assert isinstance(got, pandas.DataFrame)
    assert list(got.columns) == list(frame.columns)
    assert set(got["town"]) <= set(TOWNS)


def test_the_report_has_both_attacks_column_by_column() -> None:
    report = released().report
    assert report is not None
    for name in ("noise-filtered-error", "noise-filtered-error/age", "noise-filtered-error/pay"):
        finding = report[name]
        assert finding.value is not None
        assert finding.baseline is not None
        assert finding.value < finding.baseline
    for name in ("bayes-inference", "bayes-inference/age", "bayes-inference/town", "bayes-inference/rank"):
        assert report[name].value is not None
    names = {finding.name for finding in report.findings}
    assert "noise-filtered-error/town" not in names
    assert "bayes-inference/pay" not in names  # 10,001 values


def test_claims_and_refusals_are_on_the_certificate() -> None:
    certificate = released().certificate
    assert any("whole released row" in each.claim for each in certificate.refused)
    assert sum(claim.claim.startswith("Each value of") for claim in certificate.claims) == 3


def test_the_noise_of_the_breast_cancer_table_leaves_the_bayes_attacker_at_half_a_deviation() -> None:
    from sklearn.datasets import load_breast_cancer

    rows = load_breast_cancer().data
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    table = pa.table({f"v{place}": column for place, column in enumerate(rows.T)})
    spec = NoiseSpec(Reals(-20.0, 20.0, 0.001), {"name": "gaussian", "sd": 1.0})
    codec = codec_of(table, sf.Schema.infer(table))
    noise = Randomization(specs=dict.fromkeys(table.column_names, spec))
    made = noise.sanitize(codec.encode(table), rng=Randomness().generator("sanitize"))
    got = codec.decode(made.records.values, moved=made.records.moved, grids=made.records.grids)
    study = study_of(table, got, codec, facts=made.facts, workings=made.workings, rng=np.random.default_rng(1))
    finding = run_measure(NOISE_FILTER, study)[0]
    assert finding.value == pytest.approx(0.51, abs=0.04)
    assert finding.baseline == pytest.approx(1.0, abs=0.05)
    assert "the Bayes estimate" in finding.meaning


@pytest.fixture
def people(tmp_path: Path) -> Path:
    rng = np.random.default_rng(2)
    rows = [f"{age},{town}" for age, town in zip(rng.integers(18, 90, 200), rng.choice(TOWNS, 200), strict=True)]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["age,town", *rows]) + "\n")
    age = NoiseSpec(Integers(0, 120), {"name": "laplace", "scale": 30})
    (tmp_path / "age.toml").write_text(age.to_toml())
    (tmp_path / "town.json").write_text(
        json.dumps(NoiseSpec(Labels(TOWNS), {"name": "keep-or-replace", "keep": 0.6}).to_document())
    )
    return path


def test_the_command_line_randomizes_and_the_release_carries_the_laws(run: Run, people: Path) -> None:
    folder = people.parent / "out"
    arguments = ("sanitize", people, "-o", folder, "--method", "randomize", "--no-report")
    told = run(
        *arguments, "--spec", f"age={people.parent / 'age.toml'}", "--spec", f"town={people.parent / 'town.json'}"
    )
    assert told.code == 0, told.err
    assert "2 columns randomized: local epsilon 5.1 per row" in told.out
    assert all(check.holds for check in verify_release(folder / "release"))
    rows = list(csv.DictReader((folder / "release" / "table.csv").read_text().splitlines()))
    ages = [int(row["age"]) for row in rows]  # whole, as they were
    assert min(ages) < 0 or max(ages) > 120
    spec = read_spec(folder / "release" / "certificate.json", "age")
    spec.encode_output(ages)
    assert spec == NoiseSpec.read(people.parent / "age.toml")


def test_a_recipe_repeats_a_dry_run_to_the_byte(run: Run, people: Path) -> None:
    first, again = people.parent / "first", people.parent / "again"
    arguments = ("--epsilon", 1, "--allow-observed", "--spec", f"age={people.parent / 'age.toml'}", "--seed", 7)
    assert run("sanitize", people, "-o", first, "--method", "randomize", "--no-report", *arguments).code == 0
    (people.parent / "age.toml").unlink()  # the recipe holds the law itself
    assert run("sanitize", people, "-o", again, "--no-report", "--recipe", first / "owner" / "recipe.toml").code == 0
    one, two = ((folder / "release" / "table.csv").read_bytes() for folder in (first, again))
    assert one == two


def test_a_certificate_with_a_smaller_factor_does_not_verify(run: Run, people: Path) -> None:
    folder = people.parent / "out"
    assert (
        run(
            "sanitize", people, "-o", folder, "--method", "randomize", "--no-report", "--epsilon", 4, "--allow-observed"
        ).code
        == 0
    )
    file = folder / "release" / "certificate.json"
    document = json.loads(file.read_text())
    for fact in document["facts"]:
        if fact["fact"] == "randomized":
            fact["gamma"] = 1.5
    file.write_text(json.dumps(document))
    assert run("verify", folder / "release").code == 3


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--epsilon", 1], 3, "were read off the data"),
        ([], 2, "needs to know how much"),
        (["--spec", "age"], 2, "--spec age=age.toml"),
        (["--spec", "age=nowhere.toml"], 2, "there is no noise specification"),
        (["--epsilon", 1, "--k", 5], 2, "no parameter 'k'"),
        (["--epsilon", -1], 2, "epsilon must be"),
        (["--epsilon", 0], 2, "epsilon must be"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_sentence(
    run: Run, people: Path, options: list[object], code: int, words: str
) -> None:
    told = run("sanitize", people, "-o", people.parent / "out", "--method", "randomize", *options)
    assert told.code == code
    assert words in told.err
    assert len(told.err.strip().splitlines()) == 1
    assert not (people.parent / "out").exists()


def test_other_methods_do_not_take_an_epsilon(run: Run, people: Path) -> None:
    told = run("sanitize", people, "-o", people.parent / "out", "--method", "condense", "--epsilon", 1)
    assert told.code == 2
    assert "no parameter 'epsilon'" in told.err
