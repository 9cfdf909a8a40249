"""A table that seems to hold several rows of a person is not sanitized before somebody says what a row is."""

from __future__ import annotations

from pathlib import Path

import pyarrow.csv

from tests.cli.conftest import Run
from tests.tables.test_proposed_person import visits


def test_the_command_line_ends_with_3(run: Run, tmp_path: Path) -> None:
    pyarrow.csv.write_csv(visits(), tmp_path / "visits.csv")
    said = run("sanitize", tmp_path / "visits.csv", "-o", tmp_path / "out", "--k", 5, "--no-report")
    assert said.code == 3
    assert "add --person who" in said.err
    assert not (tmp_path / "out").exists()
    told = run("sanitize", tmp_path / "visits.csv", "-o", tmp_path / "out", "--k", 5, "--no-report", "--person", "who")
    assert told.code == 0, told.err
