"""Hidden work folders: a killed run's is removed by the next one, a living run's never."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core import replacing
from sfumato.core.replacing import replacing_file
from sfumato.publish.folder import replacing_folder

HANGING = """
import sys
from pathlib import Path
from sfumato.publish.folder import replacing_folder
with replacing_folder(sys.argv[1]) as work:
    (work / "release").mkdir()
    (work / "release" / "table.csv").write_text("half")
    print(work, flush=True)
    sys.stdin.read()
"""


def begun(folder: Path) -> tuple[subprocess.Popen[str], Path]:
    """A run that has written half of its output, and its work folder."""
    run = subprocess.Popen(
        [sys.executable, "-c", HANGING, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert run.stdout is not None
    return run, Path(run.stdout.readline().strip())


def end(run: subprocess.Popen[str]) -> None:
    run.kill()
    run.communicate()


@cache
def certificate() -> str:
    """A certificate that lists the files of a release."""
    table = pa.table({"age": [20, 30, 40, 50] * 5, "pay": [5, 5, 6, 7] * 5})
    with tempfile.TemporaryDirectory() as folder:
        sf.sanitize(table, sf.Condensation(k=5), report=False).save(Path(folder, "out"))
        return Path(folder, "out", "release", "certificate.json").read_text()


def write(folder: Path, text: str, *, overwrite: bool = False) -> None:
    with replacing_folder(folder, overwrite=overwrite) as work:
        (work / "release").mkdir()
        (work / "release" / "certificate.json").write_text(certificate())
        (work / "release" / "table.csv").write_text(text)


def read(folder: Path) -> str:
    return (folder / "release" / "table.csv").read_text()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_a_killed_run_left_is_removed_by_the_next_with_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run, work = begun(tmp_path / "out")
    end(run)
    assert names(tmp_path) == [work.name]
    with caplog.at_level(logging.WARNING, "sfumato"):
        write(tmp_path / "out", "new")
    assert names(tmp_path) == ["out"]
    assert "removed 1 unfinished output that stopped runs had left beside 'out'" in caplog.text


@pytest.mark.slow
def test_what_a_living_run_holds_stays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run, work = begun(tmp_path / "out")
    try:
        write(tmp_path / "out", "new")
        assert names(tmp_path) == [work.name, "out"]
        assert caplog.text == ""
    finally:
        end(run)


def test_only_what_is_ours_is_removed(tmp_path: Path) -> None:
    others = [".out.sfumato-backup", ".out.0a1b2c3d", ".other.sfumato-0a1b2c3d"]
    for name in others:
        (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / ".out.sfumato-00000000")
    (tmp_path / ".out.sfumato-11111111").symlink_to(tmp_path / ".other.sfumato-0a1b2c3d")
    write(tmp_path / "out", "new")
    assert set(others) <= set(names(tmp_path))
    assert (tmp_path / ".out.sfumato-11111111").is_symlink()


def test_a_leftover_file_is_removed_too(tmp_path: Path) -> None:
    (tmp_path / ".table.csv.sfumato-0a1b2c3d").write_text("half")
    with replacing_file(tmp_path / "table.csv") as work:
        work.write_text("whole")
    assert names(tmp_path) == ["table.csv"]


def test_an_interrupted_block_leaves_nothing(tmp_path: Path) -> None:
    def interrupted() -> None:
        with replacing_folder(tmp_path / "deep" / "out"):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert names(tmp_path) == []


@pytest.mark.parametrize("exchange", [True, False])
def test_an_output_is_replaced_with_or_without_an_exchange(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool
) -> None:
    if not exchange:
        monkeypatch.setattr(replacing, "_exchange", lambda *_: False)
    write(tmp_path / "out", "old")
    write(tmp_path / "out", "new", overwrite=True)
    assert (read(tmp_path / "out"), names(tmp_path)) == ("new", ["out"])


def test_an_old_output_that_was_put_aside_when_a_run_was_killed_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "out", "old")
    monkeypatch.setattr(replacing, "_exchange", lambda *_: False)
    pid = os.fork()
    if not pid:
        monkeypatch.setattr(replacing, "rename_synced", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        write(tmp_path / "out", "new", overwrite=True)
    os.waitpid(pid, 0)
    assert "out" not in names(tmp_path)
    assert len(names(tmp_path)) == 2
    with caplog.at_level(logging.WARNING, "sfumato"), pytest.raises(RuntimeError), replacing_folder(tmp_path / "x"):
        raise RuntimeError
    assert len(names(tmp_path)) == 2
    with pytest.raises(ValueError, match="exists"):
        write(tmp_path / "out", "newer")
    assert (read(tmp_path / "out"), names(tmp_path)) == ("old", ["out"])
    assert "put back 'out'" in caplog.text


def test_a_work_folder_that_another_run_took_for_a_leftover_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []
    open_: Callable[..., int] = os.open

    def removed_first(path: Path, flags: int, *mode: int, **more: int) -> int:
        if not opened and Path(path).name.startswith(".out."):
            opened.append(Path(path))
            Path(path).rmdir()
        return open_(path, flags, *mode, **more)

    monkeypatch.setattr(os, "open", removed_first)
    write(tmp_path / "out", "new")
    assert opened
    assert names(tmp_path) == ["out"]
