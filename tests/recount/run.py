"""Makes the releases of generated tables and recounts them: ``python -m tests.recount.run --table 17``, or all."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.recount.making import make_release
from tests.recount.recount import Complaint, recount_release
from tests.recount.tables import TABLES, make_case

__all__ = ["main", "recount_table"]


def recount_table(number: int, folder: Path) -> list[Complaint]:
    """Make the release of a table in a folder, and count every sentence of its certificate."""
    make_release(make_case(number), folder)
    return recount_release(folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is false; exit code 1 if anything is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=int, action="append", help="number of a table; repeatable, by default all")
    parser.add_argument("--folder", type=Path, help="keep originals and releases here")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        folder, failed = options.folder or Path(scratch), 0
        for number in options.table or range(1, TABLES + 1):
            case = make_case(number)
            complaints = recount_table(number, folder / f"{number}")
            failed += bool(complaints)
            print(f"{number} {case.kind} {case.method}: {'; '.join(each.problem for each in complaints) or 'holds'}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
