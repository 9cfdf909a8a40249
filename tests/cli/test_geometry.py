"""Geometric methods on the command line: a key is read or made, and lies apart."""

from __future__ import annotations

import csv
import json
import stat
from pathlib import Path

import numpy as np
import pytest

from sfumato.methods.geometry.key import Key
from sfumato.methods.geometry.transformations import invert
from sfumato.publish.verify import verify_release
from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("short_reports")

PEOPLE = "age,salary\n29,48000\n38,72000\n34,51000\n43,65000\n42,60000\n48,53000\n"
KEY = 'format = 1\nstep = [{ op = "rotate", columns = ["age", "salary"], degrees = 13.7, units = { salary = 1000 } }]\n'
FIGURE_4 = {(40, 39_766), (54, 60_952), (45, 41_497), (57, 52_967), (55, 48_346), (59, 40_124)}  # salaries rounded too


def test_the_command_line_gives_figure_4_and_says_how_many_rows_undo_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(PEOPLE)
    (tmp_path / "key.toml").write_text(KEY)
    arguments = ("sanitize", tmp_path / "in.csv", "-o", tmp_path / "out", "--method", "rotate")
    assert run(*arguments, "--key", tmp_path / "key.toml").code == 0
    rows = list(csv.DictReader((tmp_path / "out" / "release" / "table.csv").read_text().splitlines()))
    assert {(int(row["age"]), int(row["salary"])) for row in rows} == FIGURE_4
    certificate = json.loads((tmp_path / "out" / "release" / "certificate.json").read_text())
    assert any("reversible by anyone who knows 1 independent row" in each["reason"] for each in certificate["refused"])
    assert all(check.holds for check in verify_release(tmp_path / "out" / "release"))


def test_a_new_key_is_written_apart_and_gives_the_original_back(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(PEOPLE)
    place = tmp_path / "key.toml"
    arguments = ("sanitize", tmp_path / "in.csv", "-o", tmp_path / "out", "--method", "hybrid", "--new-key")
    assert run(*arguments, tmp_path / "out" / "key.toml").code == 3
    assert run(*arguments, place).code == 0
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    table = np.loadtxt(tmp_path / "out" / "release" / "table.csv", delimiter=",", skiprows=1)
    assert (table == np.rint(table)).all()
    people = np.array([line.split(",") for line in PEOPLE.split()[1:]], dtype=float)
    spread = people.std(axis=0)
    back = invert(table, Key.load(place), ("age", "salary")) / spread
    near = np.linalg.norm(back[:, None] - people / spread, axis=2).argmin(axis=0)
    rounding = 2 * 0.5 / spread[0]  # factors are 0.5 or more, and turns keep lengths in these units
    np.testing.assert_allclose(back[near], people / spread, rtol=0, atol=1.01 * rounding)


def test_a_geometric_method_takes_exactly_one_key(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(PEOPLE)
    arguments = ("sanitize", tmp_path / "in.csv", "-o", tmp_path / "out", "--method", "rotate")
    assert run(*arguments).code == 2


def test_extra_noise_for_some_rows_and_a_moved_target_are_told_and_verify(run: Run, tmp_path: Path) -> None:
    rows = "".join(f"{20 + number % 45},{30_000 + 977 * number % 50_000}\n" for number in range(60))
    (tmp_path / "in.csv").write_text("age,salary\n" + rows)
    arguments = ("sanitize", tmp_path / "in.csv", "-o", tmp_path / "out", "--method", "scale", "--target", "salary")
    done = run(*arguments, "--new-key", tmp_path / "key.toml", "--enhance", "0.2", "--enhance-size", "3", "--no-report")
    assert done.code == 0
    assert "The target 'salary' was transformed" in done.out
    assert all(check.holds for check in verify_release(tmp_path / "out" / "release"))
    certificate = json.loads((tmp_path / "out" / "release" / "certificate.json").read_text())
    facts = {fact["fact"]: fact for fact in certificate["facts"]}
    assert facts["enhanced"]["rows"] == 12
    assert facts["target-moved"]["column"] == "salary"
    again = ("sanitize", tmp_path / "in.csv", "-o", tmp_path / "two", "--method", "scale", "--engine", "partitions")
    assert run(*again, "--new-key", tmp_path / "two.toml", "--enhance", "0.2").code == 2
