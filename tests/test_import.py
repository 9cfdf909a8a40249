"""What loads when: measured as modules, because seconds depend on the machine."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "cryptography",
    "numba",
    "pyarrow",
    "sklearn",
    "scipy",
    "narwhals",
    "randomgen",
    "jinja2",
)  # numpy is 0.1 s and everywhere


@pytest.mark.parametrize(
    "code",
    [
        "import sfumato",
        "import sys; sys.argv = ['sfumato', '--help']; from sfumato.cli import main\n"
        "try: main()\nexcept SystemExit: pass",
        "import sfumato; sfumato.Condensation(k=5); sfumato.Schema",
    ],
    ids=["import", "help", "parameters"],
)
def test_heavy_libraries_load_when_used(code: str) -> None:
    probe = f"{code}\nimport sys; print(sorted(m for m in {HEAVY!r} if m in sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stderr.strip().splitlines()[-1] == "[]"
