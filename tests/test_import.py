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


EXTRAS = ("psycopg", "starlette", "uvicorn", "httptools", "uvloop", "python_calamine", "xlsxwriter")
OTHERS = ("pandas", "polars", "pyspark", "jax", "spu", "matplotlib")
VERTICALS = ("parties", "stream", "survey", "transactions", "web")


def test_the_core_loads_without_the_packages_of_extras() -> None:
    code = f"""
import importlib, pathlib, sys
sys.modules.update(dict.fromkeys({EXTRAS + OTHERS!r}))  # an import of these fails
import sfumato
root = pathlib.Path(sfumato.__file__).parent
for path in sorted(root.rglob("*.py")):
    folder, *rest = path.relative_to(root).with_suffix("").parts
    if folder not in {VERTICALS!r} and "__main__" not in (folder, *rest):
        importlib.import_module(".".join(("sfumato", folder, *rest)).removesuffix(".__init__"))
loaded = {{name.split(".")[1] for name in sys.modules if name.startswith("sfumato.")}}
assert not loaded & set({VERTICALS!r}), loaded
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
