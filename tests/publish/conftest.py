"""A release as it should be, which tests alter."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(11)
    table = pa.table({"age": rng.integers(20, 80, 60), "sex": rng.choice(["f", "m"], 60).tolist()})
    folder = tmp_path_factory.mktemp("honest") / "out"
    return sf.sanitize(table, sf.Condensation(k=5), report=False).save(folder, sign=False) / "release"


@pytest.fixture
def folder(tmp_path: Path, honest: Path) -> Path:
    return Path(shutil.copytree(honest, tmp_path / "release"))
