"""No column vanishes silently: inspect and sanitize name each that is dropped, with the reason; and tables that fit."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.tables.field import Role
from tests.cli.conftest import Run
from tests.messy_hospital import write_csv

MADE = ("--k", 10, "--no-report", "--no-sign", "--method", "condense", "--effort", "fast")


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A table with an identifier, addresses, an empty column, one that hardly anybody fills, and rare towns alone."""
    draw = random.Random(4)
    lines = ["id,born,age,town,mail,empty,few,lone"]
    for row in range(300):
        day = "31.02.1970" if row == 5 else f"{1 + row % 28:02d}.{1 + row % 12:02d}.{1940 + draw.randrange(60)}"
        age = "4\0" if row == 9 else str(draw.randrange(18, 90))
        town = "Ulm\0" if row == 7 else ("Ulm", "Bonn")[row % 2]
        few = "x" if row < 4 else ""
        lines.append(f"P{row * 7919 % 100003:06d},{day},{age},{town},a{row}@example.org,,{few},v{row // 9}")
    path = tmp_path / "people.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.filterwarnings("default::UserWarning")
def test_a_zero_byte_and_an_impossible_date_drop_no_column_and_every_dropped_one_is_named(
    run: Run, people: Path, tmp_path: Path
) -> None:
    said = run("inspect", people)
    document = json.loads(run("inspect", people, "--json").out)
    names = list(document["dropped"])
    assert names == ["id", "mail", "empty", "few", "lone"]
    assert f"Dropped: 5 of 8 columns ({', '.join(map(repr, names))}); the reasons are above." in said.out
    made = run("sanitize", people, "-o", tmp_path / "out", *MADE)
    assert made.code == 0, made.err
    released = (tmp_path / "out" / "release" / "table.csv").read_text("utf-8").splitlines()[0]
    assert released == "born,age,town"
    assert "Dropped columns (5):" in made.out
    reasons = {
        "id": "text, 300 different in 300 rows: codes that hardly repeat",
        "mail": "text, 300 different in 300 rows: e-mail addresses",
        "empty": "no value in any of its 300 rows",
        "few": "values in fewer than 10 of its 300 rows",
        "lone": "no value of at least 10 persons",
    }
    for name, reason in reasons.items():
        assert f"  {name!r}: {reason}\n" in made.out
        assert reason in document["dropped"][name]
    quiet = run("sanitize", people, "-o", tmp_path / "json", *MADE, "--json")
    assert json.loads(quiet.out)["dropped"] == {name: reasons[name] for name in names}


@pytest.mark.filterwarnings("default::UserWarning")
def test_a_schema_from_a_file_says_what_is_dropped_by_its_roles(run: Run, people: Path, tmp_path: Path) -> None:
    assert run("inspect", people, "-o", tmp_path / "schema.toml").code == 0
    made = run("sanitize", people, "-o", tmp_path / "out", *MADE, "--schema", tmp_path / "schema.toml")
    assert "  'mail': its role in the schema is identifier\n" in made.out
    assert "  'lone': no value of at least 10 persons\n" in made.out


@pytest.mark.filterwarnings("default::UserWarning")
def test_columns_are_named_where_the_policy_keeps_the_release(run: Run, people: Path, tmp_path: Path) -> None:
    words = ("--k", 20, "--no-sign", "--method", "condense", "--effort", "fast", "--policy", "public", "--holdout", 0.3)
    refused = run("sanitize", people, "-o", tmp_path / "out", *words)
    assert refused.code == 3
    assert "  'mail': text, 300 different in 300 rows: e-mail addresses\n" in refused.out


def test_a_column_that_a_run_drops_is_not_called_sanitized(people: Path) -> None:
    schema = sf.inspect(people)
    assert schema["lone"].role is Role.CONFIDENTIAL  # another k may keep it
    assert (schema["lone"].fate, schema["lone"].is_dropped) == ("dropped", True)
    line = next(line for line in str(schema).splitlines() if line.startswith("lone "))
    assert "sanitized" not in line
    assert "sanitized" in str(sf.inspect(people, k=5)).split("lone ")[1]


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_of_inspect_fits_the_terminal(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    path = write_csv(tmp_path / "visits.csv")
    wide = run("inspect", path).out
    assert max(map(len, wide.splitlines())) > width
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    said = run("inspect", path, "-o", tmp_path / "schema.toml").out
    lines = said.replace(str(tmp_path), "").splitlines()
    assert max(map(len, lines)) <= width
    assert "column           kind        what happens, and why" in lines
    words = " ".join(" ".join(lines).split())
    assert "Gewicht continuous sanitized: numbers with up to 1 decimal" in words
    assert "as text" not in words
    assert "P200013" not in (tmp_path / "schema.toml").read_text("utf-8")
