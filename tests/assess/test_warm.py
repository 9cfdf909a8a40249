"""What a report needs is compiled by a second process while the first makes the release."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.assess import warm
from sfumato.core.progress import listening


class _Process:
    """A second process that compiles for as long as it is looked at three times."""

    def __init__(self, command: list[str], **_: object) -> None:
        self.command = command
        self.looks = 0
        self.waited = False

    def poll(self) -> int | None:
        self.looks += 1
        return None if self.looks <= 3 else 0

    def kill(self) -> None:
        self.looks = 4

    def wait(self) -> int:
        self.waited = True
        return 0


@pytest.fixture
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "_running", [])
    monkeypatch.setattr(warm, "_LOOK", 0.0)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("subprocess.Popen", _Process)


@pytest.mark.usefixtures("_alone")
def test_what_is_not_compiled_is_compiled_by_one_process_that_does_not_look_into_the_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(warm, "share_compiled", lambda: 0.5)
    monkeypatch.setattr("threading.Thread.start", lambda _: None)
    warm.compile_ahead()
    warm.compile_ahead()
    (process,) = warm._running
    assert process.command[1] == "-P"  # type: ignore[attr-defined]
    warm.wait_for_report()
    assert process.waited  # type: ignore[attr-defined]


@pytest.mark.usefixtures("_alone")
@pytest.mark.parametrize(("share", "cores"), [(1.0, 2), (0.0, 1)])
def test_no_process_is_started_where_all_is_compiled_or_there_is_one_core(
    monkeypatch: pytest.MonkeyPatch, share: float, cores: int
) -> None:
    monkeypatch.setattr(warm, "share_compiled", lambda: share)
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    warm.compile_ahead()
    assert warm._running == []


@pytest.mark.usefixtures("_alone")
def test_a_bar_follows_what_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = iter([0.0, 0.25, 0.5])
    monkeypatch.setattr(warm, "share_compiled", lambda: next(shares))
    told: list[tuple[str, float]] = []
    with listening(lambda stage, fraction: told.append((stage, fraction))):
        warm._watch(_Process([]))  # type: ignore[arg-type]
    assert told == [("compiling", 0.0), ("compiling", 0.25), ("compiling", 0.5), ("compiling", 1.0)]


_ALL = """
from sfumato.assess import neighbours, warm
from sfumato.assess.attacks import singling
from sfumato.assess.risk import estimates
from sfumato.core.itemsets import mining
before = warm.share_compiled()
warm.compile_report()
print(before, warm.share_compiled())
for room in (neighbours, singling, estimates, mining):
    for each in vars(room).values():
        if hasattr(each, "py_func") and len(each.signatures) > 1:
            print(each.py_func.__qualname__)
"""


@pytest.mark.slow
def test_all_kernels_of_a_report_are_compiled_and_hardly_one_twice(tmp_path: Path) -> None:
    """Arrays of three types grow, and cells are looked for from two sides; the rest is compiled once."""
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _ALL],
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == ["0.0", "1.0", "_first", "_grown"]
