"""Each bad input: one sentence that names what, which column, how many and what to do; exit code 2; nothing written."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.cli.conftest import Outcome, Run

ROWS = "".join(f"{20 + row // 2},{'ab'[row % 2]},{5}\n" for row in range(40))
GOOD = "age,sex,lvl\n" + ROWS


def expect_refusal(outcome: Outcome, out: Path, *words: str) -> None:
    assert outcome.code == 2, outcome.err
    assert outcome.out == ""
    assert outcome.err.count("\n") == 1, outcome.err
    assert outcome.err.startswith("sfumato: ")
    for word in words:
        assert word in outcome.err
    assert "Traceback" not in outcome.err
    assert [path for path in out.parent.iterdir() if path.name == out.name or path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["empty"]),
        ("\n\n", ["empty"]),
        ("age,sex,lvl\n", ["header but no rows"]),
        ("age,age,sex\n" + ROWS, ["'age'", "2 times"]),
        ("age,,sex\n" + ROWS, ["without a name", "number 2"]),
        (GOOD + "1,2\n1,2,3,4\n", ["2 rows", "which has 3", "line 42"]),
        (GOOD.replace("20,a", "inf,a"), ["'age'", "1 infinite"]),
        (GOOD.replace("20,a", "-inf,a").replace("21,a", "Infinity,a"), ["'age'", "2 infinite"]),
        ("age,gone\n" + "".join(f"{row},\n" for row in range(30)), ["none of the 1 columns has a value"]),
        ("age,gone\n" + "".join(f"{row},?\n" for row in range(30)), ["none of the 1 columns has a value"]),
        ("code\n" + "".join(f"c{row % 10_000}\n" for row in range(20_000)), ["none of the 1 columns", "5 persons"]),
        ("name\n" + "".join(f"person {row}\n" for row in range(50)), ["no column is left"]),
    ],
    ids=[
        "empty",
        "blank",
        "header only",
        "column twice",
        "nameless column",
        "ragged",
        "infinite",
        "infinite twice",
        "all empty",
        "all marked missing",
        "10,000 categories",
        "nothing left after dropping",
    ],
)
def test_a_bad_table_is_refused(run: Run, tmp_path: Path, content: str, words: list[str]) -> None:
    (tmp_path / "bad.csv").write_text(content)
    out = tmp_path / "out"
    expect_refusal(run("sanitize", tmp_path / "bad.csv", "-o", out, "--k", 5), out, *words)


def test_a_file_that_is_not_utf8_is_refused_with_the_offset(run: Run, tmp_path: Path) -> None:
    data = GOOD.encode() + 5 * "40,é,5\n".encode("latin-1")
    (tmp_path / "bad.csv").write_bytes(data)
    out = tmp_path / "out"
    offset = data.index("é".encode("latin-1"))
    expect_refusal(run("sanitize", tmp_path / "bad.csv", "-o", out, "--k", 5), out, f"offset {offset}", "--encoding")
    done = run("sanitize", tmp_path / "bad.csv", "-o", out, "--k", 5, "--encoding", "latin-1", "--no-report")
    assert done.code == 0, done.err
    assert "é" in (out / "release" / "table.csv").read_text()


def test_an_unknown_encoding_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "good.csv").write_text(GOOD)
    out = tmp_path / "out"
    expect_refusal(run("sanitize", tmp_path / "good.csv", "-o", out, "--encoding", "klingon"), out, "klingon")


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("", ["'lvl'", "1 privacy levels are missing"]),
        ("?", ["'lvl'", "missing"]),
        ("-4", ["'lvl'", "1 privacy levels are zero or negative"]),
        ("0", ["'lvl'", "zero or negative"]),
        ("2.5", ["'lvl'", "1 privacy levels are not whole"]),
        ("1000000000000", ["'lvl'", "1 privacy levels are higher", "40"]),
        ("41", ["'lvl'", "1 privacy levels are higher", "40"]),
        ("1", ["'lvl'", "1 records have privacy level 1", "--allow-level-1"]),
        ("many", ["'lvl'", "not numbers"]),
    ],
)
def test_a_bad_level_column_is_refused(run: Run, tmp_path: Path, cell: str, words: list[str]) -> None:
    (tmp_path / "bad.csv").write_text(GOOD.replace("20,a,5", f"20,a,{cell}"))
    out = tmp_path / "out"
    expect_refusal(run("sanitize", tmp_path / "bad.csv", "-o", out, "--level", "lvl"), out, *words)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--k", "1"], ["k is 1", "no protection", "--allow-level-1"]),
        (["--k", "0"], ["k must be"]),
        (["--k", "41"], ["40 records", "level is 41"]),
        (["--level", "1"], ["level 1", "--allow-level-1"]),
        (["--level", "-3"], ["negative"]),
        (["--level", "300"], ["higher than the number of records", "40"]),
        (["--level", "height"], ["'height'", "'age', 'sex', 'lvl'"]),
        (["--level", "height > 3: 5, else: 4"], ["'height'"]),
        (["--level", "age > old: 5"], ["'age'", "number"]),
        (["--level", "sex > a: 5"], ["'sex'", "=="]),
        (["--level", "age > 30: lots"], ["rule number 1"]),
        (["--level", "else: 4, age > 30: 5"], ["else"]),
        (["--target", "height"], ["'height'"]),
        (["--target", "Aeg"], ["'Aeg'", "did you mean 'age'?"]),
        (["--strata", "height"], ["'height'"]),
        (["--identifier", "height"], ["'height'"]),
        (["--public", "height"], ["'height'"]),
        (["--strata", "age", "--k", "3"], ["20 of 20 strata", "smallest has 2", "level 3"]),
        (["--schema", "nowhere.toml"], ["nowhere.toml"]),
        (["--recipe", "nowhere.toml"], ["nowhere.toml"]),
        (["--recipe", "nowhere.toml", "--k", "4"], ["--recipe", "--k"]),
        (["--method", "magic"], ["'magic'", "condense-paper"]),
        (["--method", "condens"], ["did you mean 'condense'?"]),
        (["--holdout", "1.5"], ["between 0 and 1"]),
        (["--holdout", "nowhere.csv"], ["nowhere.csv"]),
        (["--holdout", "0.9", "--k", "10"], ["4 records", "level is 10"]),
        (["--format", "docx"], ["docx"]),
        (["--colour", "red"], ["--colour"]),
        (["--query", "select 1"], ["--query"]),
        (["--seed", "-1"], ["--seed"]),
    ],
)
def test_a_bad_option_is_refused(run: Run, tmp_path: Path, options: list[str], words: list[str]) -> None:
    (tmp_path / "good.csv").write_text(GOOD)
    out = tmp_path / "out"
    expect_refusal(run("sanitize", tmp_path / "good.csv", "-o", out, *options), out, *words)


def test_a_misspelt_verb_is_answered_with_the_one_that_was_meant(run: Run) -> None:
    done = run("sanitise", "people.csv")
    assert done.code == 2
    assert "No such command 'sanitise'; did you mean 'sanitize'?" in done.err
    assert "did you mean" not in run("frobnicate").err


def test_an_existing_output_folder_is_refused_and_left_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "good.csv").write_text(GOOD)
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    done = run("sanitize", tmp_path / "good.csv", "-o", out, "--k", 5)
    assert (done.code, done.out) == (2, "")
    assert "--overwrite" in done.err
    assert (out / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize(
    "name", ["missing.csv", "table.xlsx", "folder.csv", "broken.parquet", "broken.arrow", "broken.csv.gz"]
)
def test_a_file_that_cannot_be_read_is_refused(run: Run, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "folder.csv":
        path.mkdir()
    elif name != "missing.csv":
        path.write_bytes(gzip.compress(b"a,b\n1,2\n")[:-9] if name.endswith("gz") else b"not what it says")
    out = tmp_path / "out"
    expect_refusal(run("sanitize", path, "-o", out), out, name)


def test_a_database_url_without_query_is_refused(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    expect_refusal(run("sanitize", "sqlite:///nowhere.db", "-o", out), out, "--query")
    expect_refusal(run("sanitize", "sqlite://", "-o", out, "--query", "select * from nothing"), out, "database")


def test_a_schema_for_another_table_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "good.csv").write_text(GOOD)
    assert run("inspect", tmp_path / "good.csv", "-o", tmp_path / "schema.toml").code == 0
    (tmp_path / "other.csv").write_text(GOOD.replace("age,sex", "age,gender"))
    out = tmp_path / "out"
    done = run("sanitize", tmp_path / "other.csv", "-o", out, "--k", 5, "--schema", tmp_path / "schema.toml")
    expect_refusal(done, out, "'sex'")


@pytest.mark.filterwarnings("ignore:columns without a value")
def test_no_message_shows_a_cell(run: Run, tmp_path: Path) -> None:
    canary = "zyxwv98765"
    for content, options in (
        (f"age,sex\n{canary}\n" + ROWS, []),
        (f"age,lvl\n30,{canary}\n" + "31,4\n" * 30, ["--level", "lvl"]),
        ("age,note\n" + "".join(f"1,{canary}{row % 300}\n" for row in range(600)), []),
    ):
        (tmp_path / "bad.csv").write_text(content)
        done = run("sanitize", tmp_path / "bad.csv", "-o", tmp_path / "out", "--k", 5, *options)
        assert done.code == (0 if "note" in content else 2)
        assert canary not in done.err + done.out


def test_an_unforeseen_error_is_one_sentence_without_the_data(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object, **_options: object) -> None:
        raise RuntimeError("the cell 4711")

    monkeypatch.setattr("sfumato.tables.files.read_file", fail)
    done = run("inspect", tmp_path / "x.csv")
    assert (done.code, done.out) == (1, "")
    assert done.err.count("\n") == 1
    assert "RuntimeError" in done.err
    assert "4711" not in done.err


def test_an_output_that_cannot_be_made_is_refused_before_the_work(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a,b\n1,2\n")
    done = run("sanitize", tmp_path / "file", "-o", tmp_path / "file" / "out")
    assert (done.code, "choose another place" in done.err) == (2, True)


def test_a_number_of_many_digits_is_sanitized(run: Run, tmp_path: Path) -> None:
    rows = [f"{value / 7:.15f},{value % 5}.5" for value in range(60)]
    rows[3] = "1e300,2.5"
    (tmp_path / "far.csv").write_text("x,y\n" + "\n".join(rows) + "\n")
    done = run("sanitize", tmp_path / "far.csv", "-o", tmp_path / "out", "--k", 5, "--no-report")
    assert done.code == 0, done.err
    assert "report" not in done.out
