"""Every engine and method writes the folder that it wrote before: texts word for word, numbers to their last digits."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.publish.folder import Contents, own_files
from tests.goldens.runs import FINDINGS, FROZEN, REPORTED, RUNS, findings, play, texts

_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_CLOSE = 1e-6  # of linear algebra on another machine


def assert_alike(made: str, frozen: str, file: str) -> None:
    """Compare the words, and the numbers with a point; hashes stand for what is compared itself."""
    (words, numbers), (told_words, told_numbers) = _parts(made), _parts(frozen)
    assert words == told_words, file
    assert numbers == pytest.approx(told_numbers, rel=_CLOSE, abs=_CLOSE), file


def _parts(text: str) -> tuple[list[str], list[float]]:
    text = _DIGEST.sub("hash", text)
    return _NUMBER.split(text), [float(number) for number in _NUMBER.findall(text)]


@pytest.mark.parametrize("name", RUNS)
def test_a_seeded_run_writes_the_folder_that_it_wrote_before(name: str, tmp_path: Path) -> None:
    play(name, tmp_path / name, report=False)
    frozen = {path.name: path.read_text("utf-8") for path in (FROZEN / name).iterdir() if path.name != FINDINGS}
    made = dict(texts(tmp_path / name))
    assert sorted(made) == sorted(frozen)
    for file, text in made.items():
        assert_alike(text, frozen[file], file)
    written = [path.relative_to(tmp_path / name) for path in (tmp_path / name).rglob("*") if path.is_file()]
    assert sorted(own_files(tmp_path / name, Contents.RELEASE)) == sorted(written)


@pytest.mark.slow
@pytest.mark.parametrize("name", REPORTED)
def test_a_seeded_run_measures_what_it_measured_before(name: str, tmp_path: Path) -> None:
    play(name, tmp_path / name, report=True)
    assert_alike(findings(tmp_path / name), (FROZEN / name / FINDINGS).read_text("utf-8"), FINDINGS)


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="needs a processor that can play older ones")
@pytest.mark.parametrize("processor", ["Prescott", "Nehalem", "Sandybridge", "Haswell"])
def test_older_processors_write_the_same_folders(processor: str, tmp_path: Path) -> None:
    """Linear algebra takes other ways on each of them: signs and ties must not hang on its last digits."""
    names = [name for name in RUNS if name.startswith(("condense", "classwise", "laplace", "stream", "joint", "chain"))]
    told = os.environ | {"OPENBLAS_CORETYPE": processor}
    subprocess.run([sys.executable, "-m", "tests.goldens.runs", str(tmp_path), *names], env=told, check=True)
    for name in names:
        made = dict(texts(tmp_path / name))
        for file in ("release-table.csv", "release-schema.toml"):
            assert_alike(made[file], (FROZEN / name / file).read_text("utf-8"), file)
        if name in REPORTED:
            assert_alike(findings(tmp_path / name), (FROZEN / name / FINDINGS).read_text("utf-8"), FINDINGS)
