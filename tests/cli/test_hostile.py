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
    assert said.out.splitlines()[-1] == "The release does not hold."
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


def test_a_release_in_a_folder_of_no_readable_name_is_written_and_told(run: Run, people: Path, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"out\xff")
    said = run("sanitize", people, "-o", folder, "--method", "noise", "--pass-categories", "--no-report", "--json")
    assert said.code == 0
    assert json.loads(said.out)["folder"] == str(folder)
    assert run("verify", folder / "release").code == 0
