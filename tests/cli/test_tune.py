"""The verb tune: a folder whole or not at all, a command line that runs, and a partial result at an interrupt."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pyarrow.csv
import pytest

from tests.cli.conftest import Run
from tests.tuning.test_tune import people

LAX = """format = 1
name = "lax"
[limits]
membership-auc = 0.99
[require]
control = true
min_group_size = 20
"""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    pyarrow.csv.write_csv(people(160), "some people.csv")
    Path("lax.toml").write_text(LAX)
    return "some people.csv"


TOLD = ("--policy", "lax.toml", "--methods", "chain", "--metric", "covariance", "--time-limit", "300", "--seed", "1")


@pytest.mark.usefixtures("short_reports")
def test_the_command_line_that_tune_prints_runs_as_printed(run: Run, table: str) -> None:
    Path("lax.toml").write_text(LAX.replace("[limits]\nmembership-auc = 0.99\n", ""))
    done = run("tune", table, *TOLD, "--identifier", "town", "--delimiter", ",", "-o", "tuning")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert len(lines) <= 10
    assert lines[0].startswith("Best:   chain, leaf ")
    words = shlex.split(next(line for line in lines if line.startswith("Run it:")).removeprefix("Run it:"))
    assert words[:5] == ["sfumato", "sanitize", table, "-o", "FOLDER"]
    assert "--holdout" in words
    assert sorted(file.name for file in Path("tuning").iterdir()) == ["recipe.toml", "report.html", "report.json"]
    done = run(*words[1:])
    assert done.code == 0, done.err
    certificate = json.loads(Path("FOLDER", "release", "certificate.json").read_text())
    report = json.loads(Path("tuning", "report.json").read_text())
    assert (certificate["method"], certificate["randomness"]) == ("chain", "release")
    assert certificate["parameters"]["leaf"] == report["best"]["leaf"]
    assert "town" not in Path("FOLDER", "release", "table.csv").read_text().splitlines()[0]
    verdict = json.loads(Path("FOLDER", "owner", "report.json").read_text())["verdict"]
    assert (verdict["policy"], verdict["outcome"]) == ("lax", "meets")


def test_nothing_that_qualifies_is_no_error(run: Run, table: str) -> None:
    Path("lax.toml").write_text(LAX.replace("0.99", "0.5"))
    done = run("tune", table, *TOLD, "--json", "-o", "tuning")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert (document["best"], document["command"]) == (None, None)
    assert document["nearest"]["reason"]
    assert sorted(file.name for file in Path("tuning").iterdir()) == ["report.html", "report.json"]


def test_ctrl_c_writes_what_was_measured(run: Run, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.tuning.test_tune import _fake

    _fake(monkeypatch, 1, KeyboardInterrupt)
    done = run("tune", table, *TOLD, "--json", "-o", "tuning")
    assert done.code == 0, done.err
    assert json.loads(done.out)["stopped"] == "interrupted"
    assert len(json.loads(Path("tuning", "report.json").read_text())["tried"]) == 1


def test_only_an_earlier_tuning_is_replaced(run: Run, table: str) -> None:
    Path("mine").mkdir()
    Path("mine", "thesis.txt").write_text("do not lose me")
    kept = run("tune", table, *TOLD, "-o", "mine", "--overwrite")
    assert (kept.code, Path("mine", "thesis.txt").exists()) == (2, True)


def test_a_target_that_is_not_there_is_one_sentence_and_leaves_nothing(run: Run, table: str) -> None:
    done = run("tune", table, "--target", "colour", "-o", "tuning")
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert not Path("tuning").exists()
