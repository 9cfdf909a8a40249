"""A table that seems to hold several rows of a person is not sanitized before the owner says what a row is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from tests.cli.conftest import Run
from tests.condense import test_persons
from tests.tables.test_proposed_person import visits


def test_the_command_line_ends_with_3(run: Run, tmp_path: Path) -> None:
    pyarrow.csv.write_csv(visits(), tmp_path / "visits.csv")
    said = run("sanitize", tmp_path / "visits.csv", "-o", tmp_path / "out", "--k", 5, "--no-report")
    assert said.code == 3
    assert "add --person 'who'" in said.err
    assert not (tmp_path / "out").exists()
    told = run("sanitize", tmp_path / "visits.csv", "-o", tmp_path / "out", "--k", 5, "--no-report", "--person", "who")
    assert told.code == 0, told.err


def test_a_file_in_batches_is_looked_through_for_persons_too(run: Run, tmp_path: Path) -> None:
    table = visits().append_column("size", pa.array(np.random.default_rng(1).normal(size=visits().num_rows).round(3)))
    pa.csv.write_csv(table, tmp_path / "visits.csv")
    told = ("sanitize", tmp_path / "visits.csv", "-o", tmp_path / "out", "--method", "scale", "--engine", "partitions")
    words = ("--new-key", tmp_path / "key.toml", "--pass-categories", "--no-report")
    stopped = run(*told, *words)
    assert stopped.code == 3
    assert "add --person 'who'" in stopped.err
    assert run(*told, *words, "--person", "who").code == 0
    header = (tmp_path / "out" / "release" / "table.csv").read_text(encoding="utf-8").splitlines()[0]
    assert "who" not in header.split(",")
    assert run(*told, "--key", tmp_path / "key.toml", *words[2:], "--rows-are-people", "--overwrite").code == 0


def test_rows_of_a_person_stay_together_and_are_counted_again(run: Run, tmp_path: Path) -> None:
    pa.csv.write_csv(test_persons.visits(), tmp_path / "visits.csv")
    told = ("sanitize", tmp_path / "visits.csv", "-o", tmp_path / "out", "--k", 5, "--no-report", "--person", "patient")
    said = run(*told, "--keep-persons")
    assert said.code == 0, said.err
    assert "passed released persons" in run("verify", tmp_path / "out" / "release").out
    again = ("--recipe", tmp_path / "out" / "owner" / "recipe.toml", "--no-report")
    assert run("sanitize", tmp_path / "visits.csv", "-o", tmp_path / "again", *again).code == 0
    assert "released_person" in (tmp_path / "again" / "release" / "table.csv").read_text().splitlines()[0]
    refused = run(*told[:-2], "--rows-are-people", "--keep-persons", "--overwrite")
    assert refused.code == 2
    assert "--person" in refused.err
