"""Processes that end at any moment: what was acknowledged is there, everything counts once, bit for bit."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.csv
import pytest

import sfumato as sf
from sfumato.cli import app
from sfumato.publish.verify import verify_release
from sfumato.stream.state import State
from tests.examples import sized
from tests.stream.cases import SCHEMA, groups_of, look, people, take
from tests.stream.cases import begin as begin_small

COMMAND = [sys.executable, "-m", "sfumato.cli", "stream"]
ROOT = Path(__file__).parents[2]
BATCH = 100
CHANGES = {"os.chmod", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate", "sqlite3.connect"}


def run(*arguments: object) -> None:
    """Run the command to its end, in this process: it starts faster."""
    app.main(["stream", *map(str, arguments)], standalone_mode=False)


def begin(folder: Path, rows: int, name: str, *options: str) -> tuple[Path, Path]:
    """Write a table to a file and make a state of its first rows; the paper's way leaves records that wait."""
    source, state = folder / "people.csv", folder / name
    if not source.exists():
        pyarrow.csv.write_csv(people(rows), source)
        (folder / "schema.toml").write_text(SCHEMA.to_toml(), encoding="utf-8")
    run("init", source, "--state", state, "--schema", folder / "schema.toml", "--init-number", 250,
        "--k", 3, "--batch-rows", BATCH, "--seed", 4, "--quiet", "--grouping", "paper", "--split", "paper",
        *options)  # fmt: skip
    return source, state


def batches_on_disk(state: Path) -> set[str]:
    book = State.open(state, write=False)
    try:
        return set(book.keys("batch"))
    finally:
        book.close()


def ingesting(state: Path, rows: list[bytes]) -> subprocess.Popen[bytes]:
    """Ingest rows in a process that then waits for more, so that it never ends by itself, however slow we are."""
    process = subprocess.Popen(
        [*COMMAND, "ingest", "-", "--state", str(state), "--acknowledge"],
        cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.writelines(rows)
    process.stdin.flush()
    return process


def batch_told(line: bytes) -> str:
    return line.decode().removeprefix("acknowledged ").strip()


def ingest_until_killed(source: Path, state: Path, new: int, chance: random.Random) -> set[str]:
    """Ingest in a process that is killed after some new batches, while it works at more; give what it told."""
    end = len(batches_on_disk(state)) + new
    with ingesting(state, source.read_bytes().splitlines(keepends=True)[: 1 + (end + 3) * BATCH]) as process:
        assert process.stderr is not None
        told = {batch_told(process.stderr.readline()) for _ in range(end)}
        time.sleep(chance.random() * 0.03)
        process.kill()
        left = process.stderr.read()
        assert process.wait() == -signal.SIGKILL
    return told | {batch_told(line) for line in left.splitlines(keepends=True) if line.endswith(b"\n")}


def survive(tmp_path: Path, kills: int, most: int, rows: int = 12_000, options: tuple[str, ...] = ()) -> None:
    """Kill processes that ingest a file until enough were killed; whenever the file ends, begin another state."""
    chance = random.Random(8)
    source, whole = begin(tmp_path, rows, "whole.db", *options)
    run("ingest", source, "--state", whole, "--json")
    while kills:
        _, state = begin(tmp_path, rows, f"killed{kills}.db", *options)
        while kills and len(batches_on_disk(state)) < rows // BATCH - most:
            told = ingest_until_killed(source, state, chance.randint(1, most), chance)
            kills -= 1
            assert told <= batches_on_disk(state)
        run("ingest", source, "--state", state, "--json")
        assert groups_of(state) == groups_of(whole)
        assert look(state) == look(whole)
        assert look(state).records + look(state).pending == look(state).rows == rows
        assert look(state).pending > 0


@pytest.mark.parametrize("options", [(), ("--strata", "sex")])
def test_kills_change_no_bit(tmp_path: Path, options: tuple[str, ...]) -> None:
    kills, rows = sized((1, 3_000), (3, 6_000))
    survive(tmp_path, kills=kills, most=9, rows=rows, options=options)


@pytest.mark.slow
def test_two_hundred_kills_change_no_bit(tmp_path: Path) -> None:
    survive(tmp_path, kills=200, most=3)


@contextmanager
def before_each_change(do: Callable[[], object]) -> Iterator[None]:
    """Do something whenever this process is about to change a file or open one for writing."""
    watching = True

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal watching
        if watching and (event in CHANGES or (event == "open" and _writes(arguments))):
            watching = False
            do()
            watching = True

    sys.addaudithook(watch)
    yield
    watching = False  # such a hook stays for good


def _writes(arguments: tuple[object, ...]) -> bool:
    flags = arguments[2]
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR))


@pytest.mark.parametrize("report", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_publishing_killed_before_any_change_leaves_a_whole_folder_or_none(tmp_path: Path, report: bool) -> None:
    """What is on disk at a moment is what a kill leaves then; here before each change that publishing makes."""
    left = tmp_path / "left"
    work, table = tmp_path / "work", people(200 if report else sized(200, 600))
    work.mkdir()
    begin_small(work / "s.db", table)
    take(work / "s.db", table)
    with before_each_change(lambda: shutil.copytree(work, left / f"{len(names(left)):03d}")):
        for _ in range(2):  # the second replaces the first
            sf.stream(work / "s.db").publish(work / "out", overwrite=True, report=report)
    rows = sorted((work / "out" / "release" / "table.csv").read_text().splitlines())
    assert len(names(left)) > 20
    for name in names(left)[:: sized(3, 1)]:
        state, out = left / name / "s.db", left / name / "out"
        status = look(state)
        assert status.records + status.pending == len(table)
        if out.exists():
            checks = verify_release(out / "release")
            assert [check.name for check in checks if not check.holds] == ["made for release"]
        sf.stream(state).publish(out, overwrite=True, report=report)
        status = look(state)
        assert status.delivered
        assert all(line.renewed == 0 for line in status.ledger[1:])  # nothing came, so nothing left anew
        assert sorted((out / "release" / "table.csv").read_text().splitlines()) == rows


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


@pytest.mark.slow
def test_kills_while_publishing_leave_a_whole_folder_or_none(tmp_path: Path) -> None:
    chance = random.Random(9)
    source, state = begin(tmp_path, 6_000, "s.db")
    run("ingest", source, "--state", state)
    out = tmp_path / "out"
    started = time.monotonic()
    subprocess.run(
        [*COMMAND, "publish", "--state", str(state), "-o", str(tmp_path / "first"), "--no-report"], cwd=ROOT, check=True
    )
    usual = time.monotonic() - started
    for _ in range(40):
        process = subprocess.Popen(
            [*COMMAND, "publish", "--state", str(state), "-o", str(out), "--overwrite", "--no-report"],
            cwd=ROOT, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(usual * chance.uniform(0.3, 1.0))
        process.kill()
        process.wait()
        if out.exists():
            checks = verify_release(out / "release")
            assert [check.name for check in checks if not check.holds] == ["made for release"]
        assert look(state).records + look(state).pending == 6_000
    run("publish", "--state", state, "-o", out, "--overwrite", "--no-report")
    status = look(state)
    assert status.delivered
    assert all(line.renewed == 0 for line in status.ledger[1:])  # nothing came, so nothing left anew
    tables = [sorted((each / "release" / "table.csv").read_text().splitlines()) for each in (out, tmp_path / "first")]
    assert tables[0] == tables[1]


@pytest.mark.slow
def test_an_interrupt_keeps_what_was_acknowledged_and_seals_the_state(tmp_path: Path) -> None:
    source, state = begin(tmp_path, sized(1_200, 3_000), "s.db")
    with ingesting(state, source.read_bytes().splitlines(keepends=True)[: 1 + 8 * BATCH]) as process:
        assert process.stderr is not None
        told = {batch_told(process.stderr.readline()) for _ in range(6)}
        process.send_signal(signal.SIGINT)
        err = process.stderr.read().decode()
        assert process.wait() == 1
    assert "batches before are on disk" in err
    assert "Traceback" not in err
    assert not Path(f"{state}-wal").exists()
    assert told <= batches_on_disk(state)
    run("ingest", source, "--state", state)
    _, whole = begin(tmp_path, sized(1_200, 3_000), "whole.db")
    run("ingest", source, "--state", whole)
    assert groups_of(state) == groups_of(whole)
