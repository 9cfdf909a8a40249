"""Running the command inside the test process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from sfumato.cli import main
from sfumato.methods.condense.compact import EFFORTS


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["sfumato", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        assert isinstance(stop.value.code, int)
        return Outcome(stop.value.code, captured.out, captured.err)

    return call


@pytest.fixture(autouse=True)
def quick_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search as the fast effort does where the default is asked for: the verbs are tested here, not the groups."""
    monkeypatch.setitem(EFFORTS, "default", EFFORTS["fast"])


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A small table of mixed kinds with missing cells."""
    rows = ["id,age,income,sex,joined,smoker,level"]
    for row in range(120):
        income = "?" if row % 17 == 0 else f"{20000 + (row * 7919) % 90000}"
        rows.append(
            f"p{row:03d},{20 + (row * 37) % 60},{income},{'fm'[row % 2]},20{10 + row % 9}-0{1 + row % 9}-1{row % 10},"
            f"{'yes' if row % 3 else 'no'},{3 + row % 4}"
        )
    path = tmp_path / "people.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path
