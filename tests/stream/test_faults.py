"""Real processes, killed at random moments: what was acknowledged is there, everything counts once, bit for bit."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.csv
import pytest

from sfumato.cli.main import app
from sfumato.release import verify_release
from sfumato.stream.book import Book
from tests.stream.cases import SCHEMA, groups_of, look, people

COMMAND = [sys.executable, "-m", "sfumato.cli", "stream"]
ROOT = Path(__file__).parents[2]


def run(*arguments: object) -> None:
    """Run the command to its end, in this process: it starts faster."""
    app.main(["stream", *map(str, arguments)], standalone_mode=False)


def begin(folder: Path, rows: int, name: str, batch_rows: int = 100) -> tuple[Path, Path]:
    """Write a table to a file and make a state of its first rows."""
    source, state = folder / "people.csv", folder / name
    if not source.exists():
        pyarrow.csv.write_csv(people(rows), source)
        (folder / "schema.toml").write_text(SCHEMA.to_toml(), encoding="utf-8")
    run("init", source, "--state", state, "--schema", folder / "schema.toml", "--init-number", 250,
        "--k", 3, "--batch-rows", batch_rows, "--seed", 4, "--quiet")  # fmt: skip
    return source, state


def batches_on_disk(state: Path) -> set[str]:
    book = Book.open(state, write=False)
    try:
        return set(book.keys("batch"))
    finally:
        book.close()


def ingest_until_killed(source: Path, state: Path, new: int, chance: random.Random) -> tuple[set[str], bool]:
    """Ingest in a process that is killed after some new batches; give what it told, and whether it was killed."""
    known = len(batches_on_disk(state))
    process = subprocess.Popen(
        [*COMMAND, "ingest", str(source), "--state", str(state), "--acknowledge"],
        cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    told: set[str] = set()
    for line in process.stderr:
        told.add(line.removeprefix("acknowledged ").strip())
        if len(told) >= known + new:
            time.sleep(chance.random() * 0.03)
            process.send_signal(signal.SIGKILL)
            break
    left = process.stderr.read()
    told |= {
        line.removeprefix("acknowledged ").strip() for line in left.splitlines(keepends=True) if line.endswith("\n")
    }
    process.stderr.close()
    return told, process.wait() == -signal.SIGKILL


def survive(tmp_path: Path, kills: int, most: int, rows: int = 12_000) -> None:
    """Kill processes that ingest a file until enough were killed; whenever the file has ended, begin another state."""
    chance = random.Random()
    source, whole = begin(tmp_path, rows, "whole.db")
    run("ingest", source, "--state", whole, "--json")
    done = rounds = 0
    while done < kills:
        rounds += 1
        assert rounds <= kills, "processes end before they can be killed; make the file longer"
        _, state = begin(tmp_path, rows, f"killed{rounds}.db")
        killed = True
        while killed and done < kills:
            told, killed = ingest_until_killed(source, state, chance.randint(1, most), chance)
            done += killed
            assert told <= batches_on_disk(state)
        run("ingest", source, "--state", state, "--json")
        assert groups_of(state) == groups_of(whole)
        assert look(state) == look(whole)
        assert look(state).records + look(state).pending == look(state).rows == rows
        assert look(state).pending > 0


def test_ten_kills_change_no_bit(tmp_path: Path) -> None:
    survive(tmp_path, kills=10, most=9)


@pytest.mark.slow
def test_two_hundred_kills_change_no_bit(tmp_path: Path) -> None:
    survive(tmp_path, kills=200, most=3)


def test_kills_while_publishing_leave_a_whole_folder_or_none(tmp_path: Path) -> None:
    chance = random.Random()
    source, state = begin(tmp_path, 6_000, "s.db")
    run("ingest", source, "--state", state)
    out = tmp_path / "out"
    started = time.monotonic()
    subprocess.run([*COMMAND, "publish", "--state", str(state), "-o", str(tmp_path / "first")], cwd=ROOT, check=True)
    usual = time.monotonic() - started
    for _ in range(4):
        process = subprocess.Popen(
            [*COMMAND, "publish", "--state", str(state), "-o", str(out), "--overwrite"],
            cwd=ROOT, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(usual * chance.uniform(0.3, 1.0))
        process.kill()
        process.wait()
        if out.exists():
            checks = verify_release(out / "release")
            assert [check.name for check in checks if not check.holds] == ["made for release"]
        assert look(state).records + look(state).pending == 6_000
    run("publish", "--state", state, "-o", out, "--overwrite")
    status = look(state)
    assert status.delivered
    assert [line.renewed for line in status.ledger[1:]] == [0] * (
        status.epoch - 1
    )  # nothing came, so nothing left anew
    tables = [
        sorted((folder / "release" / "table.csv").read_text().splitlines()) for folder in (out, tmp_path / "first")
    ]
    assert tables[0] == tables[1]


def test_an_interrupt_keeps_what_was_acknowledged_and_seals_the_state(tmp_path: Path) -> None:
    source, state = begin(tmp_path, 12_000, "s.db")
    process = subprocess.Popen(
        [*COMMAND, "ingest", str(source), "--state", str(state), "--acknowledge"],
        cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    told = [process.stderr.readline() for _ in range(6)]
    process.send_signal(signal.SIGINT)
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 1
    assert "batches before are on disk" in err
    assert "Traceback" not in err
    assert not Path(f"{state}-wal").exists()
    assert {line.removeprefix("acknowledged ").strip() for line in told} <= batches_on_disk(state)
    run("ingest", source, "--state", state)
    _, whole = begin(tmp_path, 12_000, "whole.db")
    run("ingest", source, "--state", whole)
    assert groups_of(state) == groups_of(whole)
