"""The verbs of a stream: what they print, what they refuse, and with which exit code."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sfumato.stream.session import StreamSession
from tests.cli.conftest import Run

SCHEMA = """format = 1
[[column]]
name = "id"
kind = "nominal"
role = "identifier"
[[column]]
name = "age"
kind = "integer"
domain = { source = "declared", low = 0, high = 120 }
[[column]]
name = "sex"
kind = "nominal"
domain = { source = "declared", categories = ["f", "m"] }
[[column]]
name = "pay"
kind = "continuous"
missing = ["?"]
[[column]]
name = "level"
kind = "integer"
role = "level"
"""


def rows(first: int, last: int, **change: str) -> list[str]:
    lines = []
    for row in range(first, last):
        cells = {"id": f"p{row}", "age": f"{20 + row * 37 % 60}", "sex": "fm"[row % 2], "pay": f"{row * 7919 % 900}.5",
                 "level": f"{3 + row % 3}"}  # fmt: skip
        lines.append(",".join((cells | change).values()))
    return lines


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(["id,age,sex,pay,level", *lines]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def begun(tmp_path: Path, run: Run) -> Path:
    """A folder with a schema, the first records, and a state of them."""
    (tmp_path / "schema.toml").write_text(SCHEMA, encoding="utf-8")
    write(tmp_path / "first.csv", rows(0, 60))
    done = run("stream", "init", "--state", tmp_path / "s.db", "--schema", tmp_path / "schema.toml", "--k", 3,
               "--batch-rows", 25, tmp_path / "first.csv", "--json")  # fmt: skip
    assert done.code == 0, done.err
    assert json.loads(done.out)["records"] == 60
    return tmp_path


def test_the_whole_way_from_first_records_to_two_epochs(begun: Path, run: Run) -> None:
    write(
        begun / "more.csv",
        [*rows(60, 200), *rows(200, 203, age="130"), *rows(203, 205, sex="x"), *rows(205, 206, pay="?")],
    )
    done = run("stream", "ingest", "--state", begun / "s.db", begun / "more.csv")
    assert done.code == 0, done.err
    assert "New rows: 146, in batches: 6. Added to groups: 141; pending: 0; excluded: 5; already" in done.out
    assert "excluded for column 'age': 3" in done.out
    status = json.loads(run("stream", "status", "--state", begun / "s.db", "--json").out)
    assert {"records", "groups", "pending", "quarantined", "epoch", "last_batch"} <= set(status)
    assert (status["records"], status["pending"], status["quarantined"], status["epoch"]) == (201, 0, 5, 0)
    assert status["quarantine"] == {"age": 3, "sex": 2}
    for epoch, folder in ((1, "one"), (2, "two")):
        told = run("stream", "publish", "--state", begun / "s.db", "-o", begun / folder, "--json")
        assert told.code == 0, told.err
        assert json.loads(told.out)["epoch"] == epoch
        verified = run("verify", begun / folder / "release")
        assert verified.code == 0, verified.out
    assert (begun / "one" / "release" / "table.csv").read_text().splitlines()[0] == "age,sex,pay"
    again = run("stream", "ingest", "--state", begun / "s.db", begun / "more.csv", begun / "first.csv", "--json")
    assert json.loads(again.out)["ingested"]["rows"] == 0


def test_a_dry_run_says_so(begun: Path, run: Run) -> None:
    run("stream", "init", "--state", begun / "r.db", "--schema", begun / "schema.toml", "--seed", 1, "--quiet",
        begun / "first.csv")  # fmt: skip
    assert "DRY RUN" in run("stream", "status", "--state", begun / "r.db").out
    assert "DRY RUN" in run("stream", "publish", "--state", begun / "r.db", "-o", begun / "out", "--no-report").out
    assert run("verify", begun / "out" / "release").code == 3


def test_one_sentence_and_exit_code_2_for_what_cannot_be_used(begun: Path, run: Run) -> None:
    write(begun / "other.csv", rows(60, 70))
    wrong = begun / "damaged.db"
    wrong.write_bytes((begun / "s.db").read_bytes()[:-1])
    (begun / "taken").mkdir()
    cases = [
        (("status", "--state", begun / "none.db"), "there is no state"),
        (("status", "--state", wrong), "damaged or only half copied"),
        (("ingest", "--state", wrong, begun / "other.csv"), "damaged or only half copied"),
        (("ingest", "--state", begun / "s.db", begun / "none.csv"), "there is no file"),
        (("ingest", "--state", begun / "s.db", "--batch-rows", 7, begun / "other.csv"), "batches of 25 rows"),
        (("ingest", "--state", begun / "s.db", "--pending-key", begun / "k", begun / "other.csv"), "drop --pending"),
        (("init", "--state", begun / "s.db", begun / "first.csv"), "already"),
        (("init", "--state", begun / "n.db", "--k", 1, begun / "first.csv"), "k"),
        (("init", "--state", begun / "n.db", "--level", 99, begun / "first.csv"), "60"),
        (("init", "--state", begun / "n.db", "--init-number", 99, begun / "first.csv"), "there are 60 rows"),
        (("init", "--state", begun / "n.db", "--pending", "encrypted", begun / "first.csv"), "a key"),
        (("publish", "--state", begun / "s.db", "-o", begun / "taken"), "exists"),
        (("ingest", "--state", begun / "s.db"), "INPUT"),
    ]  # fmt: skip
    for arguments, words in cases:
        done = run("stream", *arguments)
        assert (done.code, done.err.count("\n"), done.out) == (2, 1, ""), (arguments, done)
        assert words in done.err
    assert not (begun / "n.db").exists()


def test_a_stream_that_another_process_writes_to_is_refused_and_can_be_looked_at(begun: Path, run: Run) -> None:
    with StreamSession.open(begun / "s.db"):
        done = run("stream", "publish", "--state", begun / "s.db", "-o", begun / "out", "--no-report")
        assert done.code == 2
        assert "another process writes" in done.err
        assert run("stream", "status", "--state", begun / "s.db").code == 0
    assert not (begun / "out").exists()


def test_too_many_waiting_records_are_refused_with_exit_code_3(begun: Path, run: Run) -> None:
    write(begun / "high.csv", rows(60, 90, level="50"))
    done = run("stream", "init", "--state", begun / "p.db", "--schema", begun / "schema.toml", "--pending-limit", 2,
               "--quiet", begun / "first.csv")  # fmt: skip
    assert done.code == 0, done.err
    refused = run("stream", "ingest", "--state", begun / "p.db", begun / "high.csv")
    assert refused.code == 3
    assert "more than 2 records would wait" in refused.err


def test_waiting_records_are_told_of_and_kept_as_was_chosen(begun: Path, run: Run) -> None:
    key = begun / "key"
    key.write_bytes(os.urandom(40))
    key.chmod(0o600)
    write(begun / "high.csv", rows(60, 63, level="50"))
    for name, told in (("memory.db", ()), ("encrypted.db", ("--pending", "encrypted", "--pending-key", key))):
        run("stream", "init", "--state", begun / name, "--schema", begun / "schema.toml", *told, "--quiet",
            begun / "first.csv")  # fmt: skip
        done = run("stream", "ingest", "--state", begun / name, *told[2:], begun / "high.csv")
        assert done.code == 0, done.err
        status = json.loads(run("stream", "status", "--state", begun / name, "--json").out)
        assert (status["pending"], status["awaiting_replay"]) == (3, 0 if told else 3)
    assert "3 pending records were in memory only" in run("stream", "status", "--state", begun / "memory.db").out


def test_bounds_that_were_read_off_data_are_pointed_out(begun: Path, run: Run) -> None:
    seen = SCHEMA.replace('source = "declared", low = 0', 'source = "observed", low = 0')
    (begun / "seen.toml").write_text(seen, encoding="utf-8")
    done = run("stream", "init", "--state", begun / "o.db", "--schema", begun / "seen.toml", begun / "first.csv")
    assert done.code == 0
    assert "1 columns have bounds that were read off data ('age')" in done.err


def test_rows_are_kept_attacked_and_forgotten(tmp_path: Path, run: Run) -> None:
    write(tmp_path / "first.csv", rows(0, 100))
    write(tmp_path / "more.csv", rows(100, 400))
    (tmp_path / "schema.toml").write_text(SCHEMA, encoding="utf-8")
    key = tmp_path / "key"
    key.write_bytes(bytes(range(32)))
    key.chmod(0o600)
    state = ("--state", tmp_path / "s.db")
    told = ("--schema", tmp_path / "schema.toml", "--k", 3, "--seed", 1)
    done = run("stream", "init", *state, *told, "--measure-rows", 30, tmp_path / "first.csv")
    assert done.code == 2
    assert "--measure-key" in done.err
    done = run("stream", "init", *state, *told, "--measure-rows", 30, "--measure-key", key,
               tmp_path / "first.csv")  # fmt: skip
    assert done.code == 0, done.err
    assert "Stored encrypted for measuring: 30 rows" in done.out
    assert run("stream", "publish", *state, "-o", tmp_path / "one", "--no-report").code == 0
    refused = run("stream", "ingest", *state, tmp_path / "more.csv")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "give their key with --measure-key" in refused.err
    done = run("stream", "ingest", *state, "--measure-key", key, tmp_path / "more.csv", "--json")
    status = json.loads(done.out)
    assert status["records"] + status["pending"] + status["outside"] == status["rows"] == 400
    assert run("stream", "publish", *state, "-o", tmp_path / "two", "--no-report").code == 0
    releases = (tmp_path / "one" / "release", tmp_path / "two" / "release")
    shown = run("stream", "attack", *state, *releases)
    assert shown.code == 0, shown.err
    assert "Epoch 1 to 2" in shown.out
    assert "No record was attacked" in shown.out
    shown = run("stream", "attack", *state, "--measure-key", key, *releases, "--json")
    document = json.loads(shown.out)
    assert document["succeeds"] is False
    assert document["epochs"][0]["arrived"] > 0
    assert run("stream", "attack", *state, releases[0]).code == 2
    gone = run("stream", "forget", *state)
    assert "Rows for measuring were deleted" in gone.out
    assert json.loads(run("stream", "status", *state, "--json").out)["rows_forgotten"] is True


def test_decimal_commas_of_the_first_records_are_those_of_the_stream(tmp_path: Path, run: Run) -> None:
    rows = [f"{20 + row * 7 % 50};{row * 13 % 97},{row % 10};{'ab'[row % 2]}" for row in range(600)]
    for name, part in (("first", rows[:300]), ("all", rows), ("more", [f"33;{row % 90};a" for row in range(200)])):
        (tmp_path / f"{name}.csv").write_text("\n".join(["age;pay;sex", *part]) + "\n")
    state = tmp_path / "people.db"
    begun = run("stream", "init", "--state", state, "--k", 10, "--batch-rows", 100, tmp_path / "first.csv")
    assert begun.code == 0, begun.err
    assert "Decimal commas in 'pay'" in begun.out
    done = run("stream", "ingest", "--state", state, tmp_path / "all.csv", "--json")
    told = json.loads(done.out)["ingested"]
    assert (told["rows"], told["repeated"], told["quarantined"]) == (300, 300, 0)
    assert (
        json.loads(run("stream", "ingest", "--state", state, tmp_path / "more.csv", "--json").out)["quarantined"] == 0
    )
    assert run("stream", "publish", "--state", state, "-o", tmp_path / "epoch", "--no-report").code == 0
    header, *rows = (tmp_path / "epoch" / "release" / "table.csv").read_text().splitlines()
    assert header == "age;pay;sex"
    pay = [row.split(";")[1] for row in rows]
    assert any("." in cell for cell in pay)
    assert not any("," in cell for cell in pay)
