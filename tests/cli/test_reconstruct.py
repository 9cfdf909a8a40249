"""reconstruct on the command line."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from sfumato.core.distributions.domains import Integers, Labels, Reals, Universe
from sfumato.core.distributions.spec import NoiseSpec
from tests.cli.conftest import Run

AGES = 'format = 1\ndomain = { kind = "integers", low = 0, high = 60 }\nlaw = { name = "uniform", reach = 10 }\n'
YES = NoiseSpec(Labels(("no", "yes")), {"name": "keep-or-replace", "keep": 0.75}).to_toml()


@pytest.fixture
def ages(tmp_path: Path) -> tuple[Path, Path]:
    spec = tmp_path / "spec.toml"
    spec.write_text(AGES)
    rng = np.random.default_rng(1)
    released = NoiseSpec.read(spec).randomize(np.clip(rng.normal(30, 6, 2_000).round(), 0, 60), rng)
    cells = [str(value) for value in released.tolist()]
    cells[5], cells[9], cells[11] = "", "?", "NA"
    table = tmp_path / "answers.csv"
    table.write_text("name,age\n" + "".join(f"x{row},{cell}\n" for row, cell in enumerate(cells)))
    return table, spec


def test_the_document_has_what_the_interface_promises(run: Run, ages: tuple[Path, Path]) -> None:
    outcome = run("reconstruct", ages[0], "--column", "age", "--spec", ages[1], "--json")
    assert outcome.code == 0
    found = json.loads(outcome.out)
    assert found["values"] == list(range(61))
    assert sum(found["probability"]) == pytest.approx(1.0)
    assert {"lower", "upper", "iterations", "stopped_by", "effective_records", "notes"} <= set(found)
    assert (found["records"], found["missing"]) == (1_997, 3)
    assert abs(float(np.arange(61) @ found["probability"]) - 30) < 2
    again = run("reconstruct", ages[0], "--column", "age", "--spec", ages[1], "--json")
    assert json.loads(again.out) == found


@pytest.mark.parametrize("options", [("--stop", "chi-square", "--method", "bayes"), ("--method", "direct")])
def test_intervals_are_drawn_and_written(
    run: Run, ages: tuple[Path, Path], tmp_path: Path, options: tuple[str]
) -> None:
    picture, table = tmp_path / "out.svg", tmp_path / "out.csv"
    arguments = ("reconstruct", ages[0], "--column", "age", "--spec", ages[1], "--intervals", 12, *options)
    outcome = run(*arguments, "--plot", picture, "-o", table)
    assert outcome.code == 0
    assert "3 missing cells were skipped" in outcome.out
    ElementTree.fromstring(picture.read_text())
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert len(rows) == 12
    assert (float(rows[0]["from"]), float(rows[-1]["to"])) == (-0.5, 60.5)
    assert sum(float(row["probability"]) for row in rows) == pytest.approx(1.0)
    assert run(*arguments, "-o", table).code == 2
    assert run(*arguments, "-o", table, "--overwrite").code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.csv", "out.csv", "out.svg", "spec.toml"]


def test_labels_and_reals_of_other_formats_are_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(YES)
    (tmp_path / "in.csv").write_text("smokes\n" + "no\n" * 400 + "yes\n" * 600)
    target = tmp_path / "out.csv"
    outcome = run(
        "reconstruct", tmp_path / "in.csv", "--column", "smokes", "--spec", tmp_path / "spec.toml", "-o", target,
        "--plot", tmp_path / "out.svg",
    )  # fmt: skip
    assert outcome.code == 0
    assert "yes: 69.9" in outcome.out
    assert ">yes</text>" in (tmp_path / "out.svg").read_text()
    assert [row["value"] for row in csv.DictReader(target.read_text().splitlines())] == ["no", "yes"]
    domain: Universe = Reals(0.0, 1.0, 0.01)
    spec = NoiseSpec(domain, {"name": "laplace", "scale": 0.2})
    (tmp_path / "real.toml").write_text(spec.to_toml())
    rng = np.random.default_rng(1)
    released = spec.randomize(rng.beta(2, 3, 500), rng)
    (tmp_path / "real.csv").write_text("share\n" + "".join(f"{value}\n" for value in released))
    outcome = run("reconstruct", tmp_path / "real.csv", "--column", "share", "--spec", tmp_path / "real.toml", "--json")
    assert len(json.loads(outcome.out)["edges"]) == 51


def test_too_few_records_are_refused_with_the_number_needed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("age\n" + "30\n" * 20)
    (tmp_path / "spec.toml").write_text(AGES)
    arguments = ("reconstruct", tmp_path / "in.csv", "--column", "age", "--spec", tmp_path / "spec.toml")
    outcome = run(*arguments)
    assert outcome.code == 3
    assert "20 records are too few for this noise: at least" in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1
    outcome = run(*arguments, "--least", 5)  # 30 years all the same are worth less than one plain record for 61 values
    assert outcome.code == 3
    assert "worth about 0.9 without noise; ask for fewer intervals" in outcome.err
    assert run(*arguments, "--least", 5, "--intervals", 3).code == 0
    assert run(*arguments, "--least", 0).code == 0


def test_bad_input_is_one_sentence_and_code_2_without_a_value(
    run: Run, ages: tuple[Path, Path], tmp_path: Path
) -> None:
    table, spec = ages
    (tmp_path / "bad.toml").write_text("format = 7\n")
    (tmp_path / "wrong.csv").write_text("age,word\n" + "31,hello\n" * 50 + "98765,hello\n")
    cases = [
        (table, "nothing", spec, "no single column 'nothing'"),
        (table, "age", tmp_path / "bad.toml", "format = 1"),
        (table, "age", tmp_path / "none.toml", "there is no"),
        (tmp_path / "wrong.csv", "age", spec, "column 'age': 1 values"),
        (tmp_path / "wrong.csv", "word", spec, "column 'word' holds values that are no numbers"),
    ]
    for source, column, declared, words in cases:
        outcome = run("reconstruct", source, "--column", column, "--spec", declared)
        assert outcome.code == 2, words
        assert words in outcome.err
        assert len(outcome.err.strip().splitlines()) == 1
        assert "98765" not in outcome.err
        assert "hello" not in outcome.err
    base = ("reconstruct", table, "--column", "age", "--spec", spec)
    assert run(*base, "--plot", tmp_path / "out.gif").code == 2
    assert run(*base, "-o", tmp_path / "out.txt").code == 2
    assert run(*base, "--method", "direct", "--stop", "chi-square").code == 2
    assert run(*base, "--intervals", 400).code == 2
    assert run(*base, "--bands", 2).code == 2


def test_labels_that_mean_missing_elsewhere_are_labels_where_the_domain_has_them(run: Run, tmp_path: Path) -> None:
    spec = NoiseSpec(Labels(("NA", "EU")), {"name": "keep-or-replace", "keep": 0.9})
    (tmp_path / "spec.toml").write_text(spec.to_toml())
    (tmp_path / "in.csv").write_text("region\n" + "NA\n" * 60 + "EU\n" * 40)
    outcome = run("reconstruct", tmp_path / "in.csv", "--column", "region", "--spec", tmp_path / "spec.toml", "--json")
    assert json.loads(outcome.out)["missing"] == 0
    assert NoiseSpec(Integers(0, 1), {"name": "keep-or-replace", "keep": 0.9}).gamma == spec.gamma


def test_the_distribution_is_shown_and_a_law_that_does_not_fit_is_refused_if_strict(run: Run, tmp_path: Path) -> None:
    (tmp_path / "right.toml").write_text(AGES)
    wrong = NoiseSpec(Integers(0, 60), {"name": "gaussian", "sd": 6})
    (tmp_path / "wrong.toml").write_text(wrong.to_toml())
    rng = np.random.default_rng(1)
    released = NoiseSpec.read(tmp_path / "right.toml").randomize(np.clip(rng.normal(30, 1, 4_000).round(), 0, 60), rng)
    (tmp_path / "in.csv").write_text("age\n" + "".join(f"{value}\n" for value in released))
    base = ("reconstruct", tmp_path / "in.csv", "--column", "age", "--intervals", 12, "--spec")
    outcome = run(*base, tmp_path / "right.toml", "--strict")
    assert outcome.code == 0
    assert "####" in outcome.out
    assert "quantile 0.5: 3" in outcome.out
    outcome = run(*base, tmp_path / "wrong.toml", "--json")
    assert outcome.code == 0
    found = json.loads(outcome.out)
    assert found["fit"] < 0.01
    assert "do not fit the law" in found["notes"][0]
    outcome = run(*base, tmp_path / "wrong.toml", "--strict", "-o", tmp_path / "out.csv")
    assert outcome.code == 3
    assert "do not fit the law" in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1
    assert not (tmp_path / "out.csv").exists()
