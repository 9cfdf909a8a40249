"""What the papers' pages name is there."""

from __future__ import annotations

import dataclasses
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

PAPERS = Path(__file__).parents[2] / "papers"
ROOT = PAPERS.parent
ROOMS = {path.stem for path in (ROOT / "src" / "sfumato").iterdir() if not path.stem.startswith("_")}


def resolves(name: str) -> bool:
    """Whether a dotted name below ``sfumato`` is a module, or something in one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = import_module("sfumato." + ".".join(parts[:length]))
        except ImportError:
            continue
        for part in parts[length:]:
            if dataclasses.is_dataclass(found) and part in {field.name for field in dataclasses.fields(found)}:
                return True
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


@pytest.mark.parametrize("page", sorted(path.name for path in PAPERS.glob("*.md")))
def test_every_function_and_file_that_a_page_names_is_there(page: str) -> None:
    named = re.findall(r"`([^`\s]+)`", (PAPERS / page).read_text(encoding="utf-8"))
    dotted = [name for name in named if re.fullmatch(r"[a-z_]+(\.\w+)+", name) and name.split(".")[0] in ROOMS]
    assert [name for name in dotted if not resolves(name)] == []
    files = [name for name in named if re.match(r"(tests|benchmarks|docs|src)/", name)]
    assert [name for name in files if not (ROOT / name).exists()] == []
