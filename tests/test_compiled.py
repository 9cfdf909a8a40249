"""Kernels that are kept on disk: what was compiled from other sources is not used again."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, cast

import pytest

from sfumato.core import compiled as module

INNER = "from sfumato.core.compiled import inner\n\n\n@inner\ndef part(x):\n    return x + 1\n"
OUTER = """from sfumato.core.compiled import compiled


@compiled
def whole_of(x):
    return x
"""


def kept(room: Path) -> Path:
    """Import a kernel of this folder as a new process would; a file that stands for what was compiled from it."""
    module._source_digest.cache_clear()
    spec = importlib.util.spec_from_file_location("outer", room / "outer.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return Path(cast(Any, loaded).whole_of.stats.cache_path) / "outer.whole_of-1.py311.nbi"


@pytest.mark.parametrize(("changed", "stays"), [("inner.py", False), ("words.py", True), (None, True)])
def test_what_another_file_of_its_folder_is_compiled_into_is_dropped_with_it(
    changed: str | None, tmp_path: Path, *, stays: bool
) -> None:
    for name, text in (("inner.py", INNER), ("outer.py", OUTER), ("words.py", "WORDS = 1\n")):
        (tmp_path / name).write_text(text)
    index = kept(tmp_path)
    index.write_bytes(b"")
    if changed is not None:
        (tmp_path / changed).write_text((tmp_path / changed).read_text() + "# other words\n")
    assert kept(tmp_path) == index
    assert index.exists() is stays
