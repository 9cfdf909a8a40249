"""What the terminal and the JSON of a reviewer show of a hostile folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Run

ESCAPES = "\x1b[2J\x1b[HThe release holds.\n\u202e[red]"
NAMES = [ESCAPES, os.fsdecode(b"\xff\x9b2J"), "x" * 255]


@pytest.fixture
def release(run: Run, people: Path, tmp_path: Path) -> Path:
    assert (
        run("sanitize", people, "-o", tmp_path / "out", "--method", "noise", "--pass-categories", "--no-report").code
        == 0
    )
    return tmp_path / "out" / "release"


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_file_name_cannot_write_a_verdict(run: Run, release: Path, name: str) -> None:
    (release / name).touch()
    said = run("verify", release)
    assert said.code == 3
    assert all(line.isprintable() for line in (said.out + said.err).splitlines())
    assert "The release holds." not in said.out.splitlines()
    assert said.out.splitlines()[-1] == "The release failed verification."
    told = run("verify", release, "--json")
    assert told.code == 3
    assert json.loads(told.out)["holds"] is False
    assert all(line.isprintable() for line in told.out.splitlines())


def test_a_folder_whose_own_name_is_hostile_is_named_without_its_escapes(run: Run, tmp_path: Path) -> None:
    said = run("verify", tmp_path / ESCAPES)
    assert said.code == 2
    assert len(said.err.splitlines()) == 1
    assert said.err.rstrip("\n").isprintable()


def test_a_pipe_as_certificate_is_one_sentence(run: Run, release: Path) -> None:
    (release / "certificate.json").unlink()
    os.mkfifo(release / "certificate.json")
    said = run("verify", release)
    assert said.code == 2
    assert "not a regular file" in said.err
    assert len(said.err.splitlines()) == 1


@pytest.mark.parametrize("name", [os.fsdecode(b"out\xff"), "x" * 300])
def test_a_folder_of_no_usable_name_is_one_sentence(run: Run, people: Path, tmp_path: Path, name: str) -> None:
    said = run("sanitize", people, "-o", tmp_path / name, "--method", "noise", "--pass-categories", "--no-report")
    assert said.code == 2
    assert "has a name that cannot be used" in said.err
    assert list(tmp_path.iterdir()) == [people]


@pytest.mark.parametrize("verb", ["inspect", "verify"])
@pytest.mark.parametrize("ending", [".csv", ".parquet", ".csv.gz"])
def test_an_input_of_no_usable_name_is_one_sentence(run: Run, tmp_path: Path, verb: str, ending: str) -> None:
    said = run(verb, tmp_path / ("x" * 300 + ending))
    assert said.code == 2
    assert len(said.err.splitlines()) == 1


@pytest.fixture
def formulas(tmp_path: Path) -> Path:
    path = tmp_path / "formulas.csv"
    rows = (f"{row % 19 - 4},{('=A1', '-x', 'y')[row % 3]}" for row in range(60))
    path.write_text("\n".join(["@age,city", *rows]) + "\n")
    return path


IN_MEMORY = ("--method", "noise", "--pass-categories", "--no-report")
CHUNKED = ("--method", "translate", "--engine", "partitions", "--batch-rows", 20, "--pass-categories", "--no-report")


@pytest.mark.parametrize("way", [IN_MEMORY, CHUNKED], ids=["memory", "chunked"])
def test_formulas_are_told_and_written_as_text_where_asked(
    run: Run, formulas: Path, tmp_path: Path, way: tuple[object, ...]
) -> None:
    key = ("--new-key", tmp_path / "first.toml") if way is CHUNKED else ()
    plain = run("sanitize", formulas, "-o", tmp_path / "plain", *way, *key)
    assert plain.code == 0
    assert "40 cells and 1 column names begin like a spreadsheet formula; --spreadsheet-safe" in plain.out
    assert run("verify", tmp_path / "plain" / "release").code == 0
    key = ("--new-key", tmp_path / "second.toml") if way is CHUNKED else ()
    safe = run("sanitize", formulas, "-o", tmp_path / "safe", *way, *key, "--spreadsheet-safe")
    assert safe.code == 0
    assert "column names begin like" not in safe.out
    text = (tmp_path / "safe" / "release" / "table.csv").read_text()
    assert text.startswith("'@age,city\n")
    assert text.count(",'=A1\n") == text.count(",'-x\n") == 20
    assert "formulas: 41 texts begin like a spreadsheet formula, after a leading apostrophe, as" in (
        run("verify", tmp_path / "safe" / "release").out
    )


def test_apostrophes_for_a_spreadsheet_are_for_csv(run: Run, formulas: Path, tmp_path: Path) -> None:
    said = run("sanitize", formulas, "-o", tmp_path / "out", *IN_MEMORY, "--spreadsheet-safe", "--format", "parquet")
    assert said.code == 2
    assert "--spreadsheet-safe applies to CSV only" in said.err
