"""The verb sample: rows from the model of a private release, into a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sfumato as sf
from tests.cli.conftest import Run
from tests.private.test_release import frame, release


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("model") / "out"
    release(frame(), epsilon=3.0).save(place, sign=False)
    return place / "release" / "model.json"


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet", ".arrow"])
def test_the_command_draws_rows_into_a_file(run: Run, model: Path, tmp_path: Path, ending: str) -> None:
    output = tmp_path / f"rows{ending}"
    result = run("sample", model, "-o", output, "--rows", 70_000, "--where", "age > 30", "--seed", 1, "--json")
    assert result.code == 0
    assert json.loads(result.out) == {"file": str(output), "rows": 70_000, "dry_run": False}
    assert sf.inspect(output).names == ("age", "pay", "weight", "seen", "grade", "town", "class")
    again = run("sample", model, "-o", output)
    assert again.code == 2
    assert "--overwrite" in again.err


def test_bad_input_of_the_command_has_exit_code_2_and_leaves_nothing(run: Run, model: Path, tmp_path: Path) -> None:
    for words in (
        (tmp_path / "none.json", "-o", tmp_path / "rows.csv"),
        (model, "-o", tmp_path / "rows.xlsx"),
        (model, "-o", tmp_path / "rows.csv", "--where", "height > 3"),
        (model, "-o", tmp_path / "rows.csv", "--rows", 0),
    ):
        assert run("sample", *words).code == 2
    assert not list(tmp_path.iterdir())


def test_a_dry_run_says_so_in_its_model(run: Run, tmp_path: Path) -> None:
    release(frame(200), seed=4).save(tmp_path / "out", sign=False)
    result = run("sample", tmp_path / "out" / "release" / "model.json", "-o", tmp_path / "rows.csv")
    assert "not for release" in result.out
