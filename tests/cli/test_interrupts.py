"""A run that is stopped, or a disk that is full, leaves nothing or the old release."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Run
from tests.examples import at_length

COMMAND = [sys.executable, "-m", "sfumato.cli"]


def big_table(path: Path, rows: int) -> Path:
    values = np.random.default_rng(5).normal(size=(rows, 12)).round(4)
    header = ",".join(f"x{column}" for column in range(12))
    np.savetxt(path, values, delimiter=",", header=header, comments="", fmt="%.4f")
    return path


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("stop", [signal.SIGINT, *at_length(signal.SIGTERM)])
def test_an_interrupt_in_mid_run_leaves_nothing(tmp_path: Path, stop: signal.Signals) -> None:
    table = big_table(tmp_path / "table.csv", 4_000)
    process = subprocess.Popen(
        [*COMMAND, "sanitize", "-", "-o", str(tmp_path / "out"), "--k", "3", "--method", "condense-paper"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(table.read_bytes())  # more than a pipe holds: when it has been taken, the run is under way
    process.stdin.flush()
    process.send_signal(stop)
    _, err = process.communicate()
    assert process.returncode == 130
    assert b"interrupted; nothing was written" in err
    assert b"Traceback" not in err
    assert left(tmp_path) == ["table.csv"]


@pytest.mark.slow
def test_a_full_disk_leaves_the_old_release(tmp_path: Path) -> None:
    table = big_table(tmp_path / "table.csv", 2_000)
    out = tmp_path / "out"
    arguments = [*COMMAND, "sanitize", str(table), "-o", str(out), "--k", "5", "--no-report", "--quiet"]
    assert subprocess.run(arguments, check=False).returncode == 0
    before = (out / "release" / "table.csv").read_bytes()

    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    done = subprocess.run([*arguments, "--overwrite"], preexec_fn=no_room, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "could not be written" in done.stderr
    assert done.stderr.count("\n") == 1
    assert (out / "release" / "table.csv").read_bytes() == before
    assert left(tmp_path) == ["out", "table.csv"]


def test_csv_comes_in_on_standard_input(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = big_table(tmp_path / "table.csv", 200)
    with table.open(encoding="utf-8") as lines:
        monkeypatch.setattr(sys, "stdin", lines)
        done = run("sanitize", "-", "-o", tmp_path / "out", "--k", 5, "--no-report")
    assert done.code == 0, done.err
    assert (tmp_path / "out" / "release" / "table.csv").exists()


def test_a_reader_who_has_read_enough_is_no_defect(tmp_path: Path) -> None:
    code = "import sys; from sfumato.cli import main; sys.argv = ['sfumato', 'policy', 'research']; main()"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        told = running.stderr.read().decode()
    assert "defect" not in told
    assert "Traceback" not in told
