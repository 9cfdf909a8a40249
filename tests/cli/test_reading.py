"""Encoding, sheet and header on the command line: detected and said, given and obeyed, and repeated by a recipe."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.core.errors import OptionError
from sfumato.engines.outcome import Recipe
from sfumato.tables.files import read_file
from tests.cli.conftest import Run
from tests.messy_hospital import COLUMNS, write_csv, write_workbook

MADE = ("--k", 10, "--no-report", "--no-sign", "--rows-are-people", "--method", "condense", "--effort", "fast")
ROWS = [f"{20 + row % 60};{('Köln', 'Nürnberg', 'Ulm')[row % 3]};{row * 7 % 90},5" for row in range(300)]
TITLED = "\r\n".join(["Umfrage 2023", "", "Alter;Ort;Größe", *ROWS])


@pytest.fixture
def titled(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_bytes(TITLED.encode("latin-1"))
    return path


def test_inspect_says_what_it_detected(run: Run, tmp_path: Path) -> None:
    said = run("inspect", write_workbook(tmp_path / "visits.xlsx"))
    assert said.code == 0, said.err
    assert "Sheet 'Aufnahmen': the first, 'Hinweise', holds no table; --sheet reads another." in said.out
    assert "The header is row 3; 1 row above it is skipped; --header-row names another." in said.out
    read = json.loads(run("inspect", write_csv(tmp_path / "visits.csv"), "--json").out)
    assert [each["name"] for each in read["columns"]] == list(COLUMNS)
    assert (read["read"]["encoding"], read["read"]["header_row"]) == ("cp1252", 1)
    assert read["read"]["detected"] == ["Not UTF-8: read as cp1252 (detected); --encoding sets another."]


@pytest.mark.parametrize("engine", ["memory", "partitions"])
@pytest.mark.parametrize("given", [(), ("--encoding", "latin-1", "--header-row", 3)])
def test_a_release_and_its_recipe_read_the_file_alike(
    run: Run, titled: Path, tmp_path: Path, engine: str, given: tuple[object, ...]
) -> None:
    made = run("sanitize", titled, "-o", tmp_path / "out", *MADE, "--engine", engine, "--seed", 3, *given)
    assert made.code == 0, made.err
    assert ("read as cp1252" in made.out, "The header is line 3" in made.out) == (not given, not given)
    table, _ = read_file(tmp_path / "out" / "release" / "table.csv")
    assert table.column_names == ["Alter", "Ort", "Größe"]
    assert set(table.column("Ort").to_pylist()) == {"Köln", "Nürnberg", "Ulm"}
    recipe = Recipe.load(tmp_path / "out" / "owner" / "recipe.toml")
    assert (recipe.reading.encoding, recipe.reading.header_row) == ("latin-1" if given else "cp1252", 3)
    again = run("sanitize", titled, "-o", tmp_path / "again", "--no-report", "--engine", engine, "--recipe",
                tmp_path / "out" / "owner" / "recipe.toml", "--rows-are-people", "--no-sign")  # fmt: skip
    assert again.code == 0, again.err
    assert "suggest" not in again.out  # it was given
    assert read_file(tmp_path / "again" / "release" / "table.csv")[0].equals(table)
    if engine == "memory":
        release = sf.sanitize(titled, recipe=recipe, report=False, rows_are_people=True)
        assert release.recipe.reading == recipe.reading


def test_options_that_do_not_fit_the_file_are_refused(run: Run, titled: Path, tmp_path: Path) -> None:
    for words, told in (
        (("--header-row", 2), "line 2 of .* is empty; name the line of its header with --header-row"),
        (("--encoding", "utf-8"), "is not UTF-8 at byte offset"),
        (("--encoding", "ascii"), "is not ascii at byte offset"),
        (("--sheet", "A"), "drop --sheet"),
    ):
        said = run("inspect", titled, *words)
        assert said.code == 2
        assert re.search(told, said.err), said.err
    partitioned = run("sanitize", titled, "-o", tmp_path / "out", "--engine", "partitions", "--sheet", "A")
    assert (partitioned.code, "does not read workbooks" in partitioned.err) == (2, True)


def test_tune_and_evaluate_take_the_same_options(run: Run, titled: Path, tmp_path: Path) -> None:
    made = run("sanitize", titled, "-o", tmp_path / "out", *MADE, "--seed", 3)
    assert made.code == 0, made.err
    found = run("evaluate", titled, tmp_path / "out", "--encoding", "cp1252", "--header-row", 3, "--json")
    assert found.code == 0, found.err
    table = tmp_path / "out" / "release" / "table.csv"
    report = sf.evaluate(titled, table, encoding="cp1252", header_row=3)
    assert report.rows_original == len(ROWS)
    for verb in (("tune", titled), ("evaluate", titled, table), ("inspect", titled)):
        assert "line 2 of" in run(*verb, "--header-row", 2).err
    for call in (sf.tune, sf.sanitize, sf.inspect):
        with pytest.raises(OptionError, match=r"line 2 of .* with header_row="):
            call(titled, header_row=2)


def test_a_stream_begins_and_goes_on_with_files_below_titles(
    run: Run, titled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state.db"
    begun = run("stream", "init", titled, "--state", state, "--k", 5, "--encoding", "latin-1", "--header-row", 3)
    assert begun.code == 0, begun.err
    more = tmp_path / "more.csv"
    more.write_bytes("\n".join(["Umfrage 2024", "Alter;Ort;Größe", *ROWS[:60]]).encode("latin-1"))
    given = run("stream", "ingest", more, "--state", state, "--encoding", "latin-1", "--header-row", 2)
    assert given.code == 0, given.err
    assert given.out.startswith("New rows: 60,")
    detected = run("stream", "ingest", more, "--state", state, "--source", "second")
    assert detected.out.startswith("New rows: 60,"), detected.err
    assert "read as cp1252" in detected.err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n" + more.read_bytes())))
    words = ("--source", "third", "--header-row", 3, "--encoding", "latin-1")
    piped = run("stream", "ingest", "-", "--state", state, *words)
    assert piped.out.startswith("New rows: 60,"), piped.err
