"""The example extension: its method and its attack are used, its facts are honest, and verify runs none of its code."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from tests.extensions.test_registry import install

EXAMPLE = Path(__file__).parents[2] / "examples" / "extension"
COMMAND = "from sfumato.cli import main; main()"
IN_PYTHON = """
import pyarrow.csv, sfumato
release = sfumato.sanitize(pyarrow.csv.read_csv("people.csv"), method="marginals", k=20, report=False)
assert release.certificate.method == "marginals"
assert release.certificate.parameters == {"k": 20}
"""
VERIFY = """
import sys, sfumato
checks = sfumato.verify("out")
assert not checks.holds
assert {each.name for each in checks if not each.holds} == {"facts known", "method follows from facts"}
assert sfumato.verify("out", allow_unknown=True).holds
assert "sfumato_marginals" not in sys.modules
"""


def run(folder: Path, *arguments: str, path: Path | None = None, python: str = sys.executable) -> tuple[int, str]:
    """Exit code and output of a command in a process of its own, with an installation folder on its path."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "OPENBLAS_NUM_THREADS": "1"}
    environment |= {} if path is None else {"PYTHONPATH": str(path)}
    done = subprocess.run(
        [python, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )
    return done.returncode, done.stdout + done.stderr


def write_people(folder: Path) -> None:
    """A table without anything rare, and people beside it for the control group."""
    rng = np.random.default_rng(5)
    age, sex = rng.integers(20, 70, 400), rng.choice(["f", "m"], 400)
    people = {"age": age, "sex": sex, "pay": (900.0 + 40 * age + rng.normal(0, 300, 400)).round(2)}
    pa.csv.write_csv(pa.table(people), folder / "people.csv")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with what an installer leaves of the example: the package, and the entry point of its metadata."""
    folder = tmp_path_factory.mktemp("installed")
    install(folder, "sfumato_marginals", "")
    shutil.copytree(EXAMPLE / "src" / "sfumato_marginals", folder / "sfumato_marginals")
    return folder


@pytest.fixture(scope="module")
def released(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder in which the method of the example has released a table, with a report, after it ran in Python."""
    folder = tmp_path_factory.mktemp("released")
    write_people(folder)
    words = ("people.csv", "-o", "out", "--method", "marginals", "--k", "12", "--holdout", "0.3", "--rows-are-people")
    code, said = run(folder, "-c", IN_PYTHON + COMMAND, "sanitize", *words, path=installed)
    assert code == 0, said
    return folder


def test_the_method_is_reached_by_name_and_certified_by_its_own_facts(released: Path) -> None:
    certificate = json.loads((released / "out" / "release" / "certificate.json").read_text("utf-8"))
    assert (certificate["method"], certificate["parameters"]) == ("marginals", {"k": 12})
    claims = {each["claim"] for each in certificate["claims"]}
    assert "Every released number or date was computed from at least 12 records." in claims
    refused = {each["claim"] for each in certificate["refused"]}
    assert "Relationships between columns are those of the original." in refused


def test_the_attack_runs_in_the_report(released: Path) -> None:
    report = json.loads((released / "out" / "owner" / "report.json").read_text("utf-8"))
    (finding,) = [each for each in report["findings"] if each["name"] == "value-matching-auc"]
    assert finding["family"] == "attack"
    assert 0.0 <= finding["interval"][0] <= finding["value"] <= finding["interval"][1] <= 1.0


def test_verify_runs_no_code_of_an_extension_and_sanitize_names_a_broken_one(released: Path, tmp_path: Path) -> None:
    install(tmp_path, "sfumato_marginals", "raise RuntimeError")
    code, said = run(released, "-c", VERIFY + COMMAND, "sanitize", "people.csv", "-o", "other", path=tmp_path)
    assert "the extension 'sfumato_marginals' (sfumato_marginals 1.2) cannot be loaded (RuntimeError)" in said
    assert code == 2


@pytest.mark.slow
def test_the_package_is_installed_into_an_environment_of_its_own(tmp_path: Path) -> None:
    """Installed by pip; the environment sees this one's packages, so that nothing but the example is installed."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    (folder,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (folder / "of_the_tests.pth").write_text(f"import site; site.addsitedir({sysconfig.get_paths()['purelib']!r})\n")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", str(EXAMPLE)]
    subprocess.run(pip, check=True)
    write_people(tmp_path)
    words = ("people.csv", "-o", "out", "--method", "marginals", "--no-report", "--rows-are-people")
    code, said = run(tmp_path, "-c", COMMAND, "sanitize", *words, python=str(python))
    assert code == 0, said
    code, said = run(tmp_path, "-c", COMMAND, "doctor", python=str(python))
    assert code == 0, said
    assert "Extensions:          marginals (sfumato-marginals 0.1.0)." in said
