"""The verb tune: three files, whole or not at all, and a recipe that sanitize runs."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pyarrow.csv
import pytest

from tests.cli.conftest import Run
from tests.examples import sized
from tests.tuning.test_tune import people


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    pyarrow.csv.write_csv(people(sized(100, 160)), path)
    return path


def test_tune_writes_a_recipe_that_sanitize_runs(run: Run, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "tuning"
    done = run("tune", table, "--target", "state", "-o", out, "--budget", "1e-6", "--repeats", "1")
    assert done.code == 0, done.err
    assert done.out.startswith("k = ")
    assert sorted(file.name for file in out.iterdir()) == ["recipe.toml", "report.html", "report.json"]
    report = json.loads((out / "report.json").read_text())
    done = run("sanitize", table, "-o", tmp_path / "out", "--recipe", out / "recipe.toml", "--no-report")
    assert done.code == 0, done.err
    certificate = json.loads((tmp_path / "out" / "release" / "certificate.json").read_text())
    assert certificate["parameters"]["k"] == report["k"]
    assert certificate["method"] == "classwise"


def test_the_command_line_that_tune_prints_runs_as_printed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pyarrow.csv.write_csv(people(200), "some people.csv")
    told = ("--target", "state", "--identifier", "town", "--k", "8", "--delimiter", ",")
    done = run("tune", "some people.csv", *told, "--budget", "1e-6", "--repeats", "1", "--seed", "1")
    assert done.code == 0, done.err
    line = next(line for line in done.out.splitlines() if line.startswith("Run it:"))
    words = shlex.split(line.removeprefix("Run it:"))
    leaf = int(done.out.removeprefix("leaf = ").partition(":")[0])
    assert f"--method chain --leaf {leaf} " in line
    assert words[:4] == ["sfumato", "sanitize", "some people.csv", "-o"]
    done = run(*words[1:], "--no-report")
    assert done.code == 0, done.err
    certificate = json.loads(Path("FOLDER", "release", "certificate.json").read_text())
    assert (certificate["method"], certificate["randomness"]) == ("chain", "release")
    assert certificate["parameters"] == {"k": 8, "leaf": leaf, "order": None}
    assert "town" not in Path("FOLDER", "release", "table.csv").read_text().splitlines()[0]


def test_of_few_rows_the_printed_command_line_names_the_group_size(run: Run, table: Path) -> None:
    done = run("tune", table, "--k", "6", "--budget", "1e-6", "--repeats", "1", "--json")
    report = json.loads(done.out)
    assert shlex.split(report["command"]) == [
        "sfumato", "sanitize", str(table), "-o", "FOLDER", "--method", "condense", "--k", str(report["k"])
    ]  # fmt: skip


def test_tune_speaks_json_and_replaces_only_a_tuning(run: Run, table: Path, tmp_path: Path) -> None:
    options = ("--budget", "1e-6", "--repeats", "1", "--json")
    done = run("tune", table, "-o", tmp_path / "tuning", *options)
    assert json.loads(done.out)["metric"] == "covariance"
    again = run("tune", table, "-o", tmp_path / "tuning", *options)
    assert (again.code, "exists" in again.err) == (2, True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("do not lose me")
    kept = run("tune", table, "-o", tmp_path / "mine", "--overwrite", *options)
    assert (kept.code, (tmp_path / "mine" / "thesis.txt").exists()) == (2, True)


def test_a_target_that_is_not_there_is_one_sentence_and_leaves_nothing(run: Run, table: Path, tmp_path: Path) -> None:
    done = run("tune", table, "--target", "colour", "-o", tmp_path / "tuning")
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert not (tmp_path / "tuning").exists()
