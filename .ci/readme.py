"""Runs the README's example as a reader has it: ``python readme.py README.md``, in an empty folder, sfumato installed.

The file ``patients.csv`` of the example is made from the demo's made-up patients, of whom there are enough that the
attacks are significant.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow.csv

import sfumato
from sfumato.cli.verbs import population

PEOPLE = 40_000


def main(readme: Path) -> int:
    """Exit code of the first command that fails, or 0."""
    assert "site-packages" in str(sfumato.__file__), "not the installed package"
    table = population(PEOPLE).drop_columns(["patient"])
    renamed = table.rename_columns(["diagnosis" if name == "cause" else name for name in table.column_names])
    pyarrow.csv.write_csv(renamed, "patients.csv")
    section = readme.read_text("utf-8").partition("## One example")[2]
    block = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert block is not None
    for line in block[1].splitlines():
        words = shlex.split(line, comments=True)
        print("$", shlex.join(words), flush=True)
        done = subprocess.run([str(Path(sys.executable).parent / words[0]), *words[1:]], check=False)
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
