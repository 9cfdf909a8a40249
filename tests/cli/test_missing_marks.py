"""A file with decimal commas and marks for missing cells: from inspect to a release that verifies."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.tables.files import read_file
from tests.cli.conftest import Run
from tests.tables.test_missing_marks import write_visits

MADE = ("--k", 10, "--no-report", "--rows-are-people")


def marks_of(folder: Path) -> Counter[str]:
    table, _ = read_file(folder / "release" / "table.csv")
    return Counter(cell for cell in table.column("Gewicht").to_pylist() if not cell[:1].isdigit())


@pytest.mark.filterwarnings("default::UserWarning")
@pytest.mark.parametrize("engine", ["memory", "partitions"])
def test_marks_that_are_found_are_released_and_read_again(run: Run, tmp_path: Path, engine: str) -> None:
    path, schema, folder = write_visits(tmp_path / "visits.csv"), tmp_path / "schema.toml", tmp_path / "made"
    found = run("inspect", path, "-o", schema)
    assert "missing: 'k.A.' (60 cells), 'n/a' (4 cells), empty (30 cells)" in found.out
    assert 'missing = ["k.A.", "", "n/a"]' in schema.read_text("utf-8")
    made = run("sanitize", path, "-o", folder, *MADE, "--engine", engine)
    assert made.code == 0, made.err
    assert "k.A." not in made.out + made.err
    assert set(marks_of(folder)) == {"k.A.", ""}  # of the others there are fewer than k
    assert 0.5 < marks_of(folder)["k.A."] / marks_of(folder).total() < 0.9
    assert run("verify", folder).code == 0
    released = sf.inspect(folder / "release" / "table.csv")
    assert [field.kind.value for field in released] == ["continuous", "date"]
    again = run("sanitize", path, "-o", tmp_path / "again", "--recipe", folder / "owner" / "recipe.toml", "--no-report")
    assert again.code == 0, again.err


def test_a_mark_is_given_on_the_command_line_for_every_column(run: Run, tmp_path: Path) -> None:
    lines = ["size;sex", *(f"{150 + row % 50};{'mw'[row % 2]}" for row in range(200)), *["999;k.A."] * 40]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    plain = json.loads(run("inspect", path, "--json").out)["columns"]
    assert [each.get("missing") for each in plain] == [None, None]
    assert "999 (40 cells); if that means missing, say --missing 999" in plain[0]["reason"]
    told = json.loads(run("inspect", path, "--json", "--missing", "999", "--missing", "k.A.").out)["columns"]
    assert [each["missing"] for each in told] == [["999"], ["k.A."]]
    assert told[0]["domain"]["high"] == 199
    made = run("sanitize", path, "-o", tmp_path / "made", *MADE, "--missing", "999", "--missing", "k.A.")
    assert made.code == 0, made.err
    table, _ = read_file(tmp_path / "made" / "release" / "table.csv")
    assert {"999"} < set(table.column("size").to_pylist()) <= {*map(str, range(150, 200)), "999"}
    assert run("verify", tmp_path / "made").code == 0


def test_a_stream_begins_with_given_marks(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    rows = [*(f"{150 + row % 50};{row % 7}" for row in range(200)), *["999;1"] * 20]
    path.write_text("\n".join(["size;wards", *rows]) + "\n", encoding="utf-8")
    begun = run("stream", "init", path, "--state", tmp_path / "state.db", "--missing", "999")
    assert begun.code == 0, begun.err
    published = run("stream", "publish", "-o", tmp_path / "made", "--state", tmp_path / "state.db", "--no-report")
    assert published.code == 0, published.err
    table, _ = read_file(tmp_path / "made" / "release" / "table.csv")
    assert all(int(size) < 200 or size == "999" for size in table.column("size").to_pylist())


@pytest.mark.filterwarnings("default::UserWarning")
def test_a_recipe_says_itself_what_means_missing(run: Run, tmp_path: Path) -> None:
    path = write_visits(tmp_path / "visits.csv")
    assert run("sanitize", path, "-o", tmp_path / "made", *MADE).code == 0
    recipe = tmp_path / "made" / "owner" / "recipe.toml"
    refused = run("sanitize", path, "-o", tmp_path / "again", "--recipe", recipe, "--missing", "lost")
    assert refused.code == 2
    assert "--recipe already sets --missing" in refused.err


def test_cells_that_are_no_numbers_are_counted_and_what_to_do_is_said(run: Run, tmp_path: Path) -> None:
    path = write_visits(tmp_path / "visits.csv")
    schema = '[[column]]\nname = "Gewicht"\nkind = "continuous"\nmissing = ["k.A.", "", "n/a"]\n'
    schema += '[[column]]\nname = "Datum"\nkind = "nominal"\n'
    (tmp_path / "schema.toml").write_text(f"format = 1\n{schema}", encoding="utf-8")
    refused = run("sanitize", path, "-o", tmp_path / "made", *MADE[:3], "--schema", tmp_path / "schema.toml")
    assert refused.code == 2
    assert "column 'Gewicht' is declared continuous but 2 cells are not numbers such as 12.5" in refused.err
    assert "lost" not in refused.err
