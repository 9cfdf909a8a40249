"""Baskets of very many items: a warning where nearly all entries are made up, and a release that verifies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.publish import verify as verifying


def test_many_made_up_entries_are_warned_of_and_verify_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    lists = [sorted({f"item {place}" for place in rng.integers(0, 3_000, 3)}) for _ in range(2_000)]
    with pytest.warns(UserWarning, match="times as many entries, nearly all of them made up"):
        release = sf.baskets(pa.table({"items": lists})).randomize(report=False)
    release.save(tmp_path / "out")
    monkeypatch.setattr(verifying, "_FREE", 1 << 10)
    monkeypatch.setattr(verifying, "_CELL", 1)
    assert sf.verify(tmp_path / "out" / "release").holds
    monkeypatch.setattr(verifying, "_ENTRY", 0)
    assert not sf.verify(tmp_path / "out" / "release").holds
