"""Each step says what the verb of the command line says, and changes nothing that was not chosen."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.documents import plain
from sfumato.core.errors import OptionError, SchemaError, TableError
from sfumato.survey.store import AnswerStore
from sfumato.tables.reading import FileReading, read_people
from sfumato.tables.schema import Kind, Role
from sfumato.web.steps import Steps, _words
from sfumato.web.visit import Choices, ColumnChoice, Setting, command_line, edited, python_lines
from tests.web.asking import serving

ROWS = 120


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A table with an identifier, dates in order, a rare town and decimal commas."""
    monkeypatch.chdir(tmp_path)
    lines = ["id;came;went;pay;town"]
    for row in range(ROWS):
        town = "Zork" if row == 7 else "AB"[row % 2]
        day, stay = 1 + row % 20, row * 7 % 8
        dates = f"2024-01-{day:02d};2024-01-{day + stay:02d}"
        lines.append(f"N{row * 7919};{dates};{row * 37 % 90},5;{town}")
    Path("people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return "people.csv"


def look(file: str, choices: Choices) -> dict[str, Any]:
    steps = Steps(lambda *_told, **_more: None, nullcontext)
    return steps.run({"step": "look", "file": file, "choices": json.loads(json.dumps(plain(choices)))})


def as_shown(found: dict[str, Any], **changes: dict[str, Any]) -> tuple[ColumnChoice, ...]:
    """The columns as the page sends them back, some of them changed."""
    names = ("name", "role", "kind", "hierarchy", "coarsened", "known")
    shown = [{name: column[name] for name in names} | changes.get(column["name"], {}) for column in found["columns"]]
    return tuple(ColumnChoice(**{**each, "role": Role(each["role"]), "kind": Kind(each["kind"])}) for each in shown)


def test_columns_are_what_inspect_says_of_them(file: str) -> None:
    found = look(file, Choices())
    table, _ = read_people(file)
    schema = sf.inspect(table)
    assert found["rows"] == ROWS
    assert [(each["name"], each["role"], each["kind"], each["why"]) for each in found["columns"]] == [
        (each.name, each.role.value, each.kind.value, each.reason) for each in schema
    ]
    assert found["rules"] == found["found"] == list(schema.rules)
    assert "came <= went" in found["rules"]
    assert "Zork" not in json.dumps({**found, "schema": ""})
    assert [each["first_values"] for each in found["columns"] if each["name"] in ("pay", "town")] == [
        ["0.5", "37.5", "74.5"],
        ["A", "B", "A"],
    ]
    assert found["read"].startswith("CSV with semicolons as delimiter.")


def test_a_file_is_read_and_its_cells_are_missing_as_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{('Köln', 'Mühlheim')[row % 2]};{999 if row % 9 == 0 else 20 + row % 60}" for row in range(200)]
    Path("people.csv").write_bytes("\n".join(["Umfrage", "", "Ort;Alter", *rows]).encode("latin-1"))
    found = look("people.csv", Choices())
    assert [each["name"] for each in found["columns"]] == ["Ort", "Alter"]
    assert (found["encoding"], found["header_row"], found["detected"]) == ("cp1252", 3, True)
    assert "The header is line 3; 1 line above it is skipped; 'Header row' names another." in found["read"]
    choices = Choices(reading=FileReading(encoding="mac-roman", header_row=3), missing=("999",))
    other = look("people.csv", choices)
    assert (other["encoding"], other["detected"]) == ("mac-roman", False)
    assert "missing: '999' (23 cells)" in other["columns"][1]["why"]
    assert "999" not in other["columns"][1]["domain"]
    words = shlex.join(_words("tune", "people.csv", choices))
    assert " --encoding mac-roman --header-row 3 " in words
    assert "--missing 999" in words


def test_what_is_sent_back_as_it_was_changes_nothing(file: str) -> None:
    found = look(file, Choices())
    again = look(file, Choices(columns=as_shown(found)))
    assert again == found


def test_what_is_chosen_is_what_happens(file: str) -> None:
    found = look(file, Choices())
    columns = as_shown(
        found,
        town={"role": "target", "known": True},
        pay={"kind": "nominal"},
        came={"hierarchy": "calendar", "coarsened": 1},
        id={"role": "person"},
    )
    changed = look(file, Choices(columns=columns, rules=()))
    by_name = {each["name"]: each for each in changed["columns"]}
    assert (by_name["town"]["role"], by_name["town"]["known"]) == ("target", True)
    assert by_name["id"]["fate"] == "person identifier: counts persons, then dropped"
    assert by_name["pay"]["why"].startswith("nominal, as specified")
    schema = sf.Schema.from_toml(changed["schema"])
    assert schema["pay"].kind is Kind.NOMINAL
    assert (schema["came"].hierarchy, schema["came"].coarsened) == ("calendar", 1)
    assert schema.rules == ()
    assert changed["rules"] == []


def test_a_rule_of_ones_own_is_kept_beside_those_found(file: str) -> None:
    rules = ("came <= went", "town -> pay")
    assert look(file, Choices(rules=rules))["rules"] == list(rules)
    with pytest.raises(SchemaError, match="rule"):
        look(file, Choices(rules=("came ! went",)))


def test_a_column_that_is_not_there_is_refused(file: str) -> None:
    proposed = sf.inspect(read_people(file)[0])
    with pytest.raises(OptionError, match="there is no column 'twon'; did you mean 'town'"):
        edited(proposed, Choices(columns=(ColumnChoice("twon", Role.PUBLIC, Kind.NOMINAL),)))


def test_a_single_role_passes_from_one_column_to_another(file: str) -> None:
    proposed = sf.inspect(read_people(file)[0], target="town")
    wanted = {"town": Role.CONFIDENTIAL, "pay": Role.TARGET}
    columns = tuple(ColumnChoice(each.name, wanted.get(each.name, each.role), each.kind) for each in proposed)
    assert edited(proposed, Choices(columns=columns)).target == edited(proposed, Choices(columns=columns))["pay"]


def test_a_column_is_known_by_a_level_of_its_hierarchy(file: str) -> None:
    found = look(file, Choices())
    leveled = {each["name"]: each["leveled"] for each in found["columns"]}
    assert leveled["came"]
    assert not leveled["pay"]
    columns = as_shown(found, went={"known": True, "known_level": 2, "hierarchy": "calendar"})
    choices = Choices(columns=columns)
    again = {each["name"]: each for each in look(file, choices)["columns"]}["went"]
    assert (again["known"], again["known_level"]) == (True, 2)
    assert choices.quasi_identifiers == ("went@2",)
    assert "--quasi-identifier went@2" in command_line("people.csv", choices, Setting(), recipe="recipe.toml")
    wrong = as_shown(found, pay={"known": True, "known_level": 2})
    with pytest.raises(OptionError, match="'pay'"):
        look(file, Choices(columns=wrong))


def test_the_lines_hold_names_as_a_shell_and_python_need_them() -> None:
    choices = Choices(
        columns=(ColumnChoice("it's $(id)", Role.CONFIDENTIAL, Kind.INTEGER, known=True),),
    )
    name, setting = "my 'people' $(id).csv", Setting(despite=True)
    words = shlex.split(command_line(name, choices, setting, recipe="owner/recipe.toml"))
    assert words[:7] == ["sfumato", "sanitize", name, "-o", "FOLDER", "--recipe", "owner/recipe.toml"]
    assert words[words.index("--quasi-identifier") + 1] == "it's $(id)"
    assert words[-1] == "--despite-policy"
    lines = python_lines(name, choices, setting, recipe="owner/recipe.toml")
    compile(lines, "lines", "exec")
    assert repr(name) in lines
    assert "despite_policy=True" in lines


def test_what_to_try_next_repeats_what_was_chosen() -> None:
    words = _words("sanitize", "a.csv", Choices(k=12, level="5", rare="pool", policy="public"))
    assert shlex.join(words) == (
        "sfumato sanitize a.csv -o FOLDER --schema owner/schema-private.toml --k 12 --level 5 --rare pool "
        "--policy public --holdout 0.3"
    )


def test_a_stream_and_a_survey_are_told_as_they_stand(tmp_path: Path) -> None:
    people = pa.table({"age": [20 + 7 * row % 61 for row in range(200)], "pay": [1000.5 + row for row in range(200)]})
    sf.stream(tmp_path / "state.db", people, k=5, seed=1)
    steps = Steps(lambda *_told, **_more: None, nullcontext)
    told = steps.run({"step": "stream", "state": str(tmp_path / "state.db")})
    assert told["lines"] == sf.stream(tmp_path / "state.db").status().lines()
    assert re.match("200 records in ", told["lines"][0])
    AnswerStore.open(str(tmp_path / "answers.db")).close()
    with pytest.raises(OptionError, match="no survey yet"):
        steps.run({"step": "survey", "db": str(tmp_path / "answers.db")})


def test_a_packed_file_does_not_unpack_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bomb.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"0,0\n" * 1_000_000))
    steps = Steps(lambda *_told, **_more: None, nullcontext, most_bytes=1 << 20)
    with pytest.raises(TableError, match=r"unpacks to more than 1 MiB; .* with most_bytes="):
        steps.run({"step": "look", "file": "bomb.csv.gz", "choices": {}})


@pytest.mark.slow
def test_what_a_killed_page_has_left_is_removed_by_the_next(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, _):
        process.kill()
        process.wait(timeout=300)
        left = [path.name for path in tmp_path.iterdir()]
        assert len(left) == 1
    with serving(tmp_path) as (again, _):
        assert left[0] not in [path.name for path in tmp_path.iterdir()]
        assert len(list(tmp_path.iterdir())) == 1
    assert again.returncode == 0
    assert list(tmp_path.iterdir()) == []
