"""Finds benchmark tables: in the folder that SFUMATO_DATA names, else at OpenML. Nothing is copied into the project."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

__all__ = ["TableNotFoundError", "find_file", "load_table"]

_OPENML = {"ionosphere": 59, "ecoli": 39, "pima_diabetes": 37, "abalone": 183}


class TableNotFoundError(LookupError):
    """A benchmark table is neither in the folder of SFUMATO_DATA nor to be had from OpenML."""


def find_file(name: str, folder: str | Path | None = None) -> Path | None:
    """Give the path of NAME.csv or NAME.csv.gz in a folder, by default that of SFUMATO_DATA; None if it is not there.

    Examples
    --------
    >>> find_file("no_such_table", folder=".") is None
    True
    """
    home = folder or os.environ.get("SFUMATO_DATA")
    if not home:
        return None
    return next((path for end in (".csv", ".csv.gz") if (path := Path(home) / f"{name}{end}").is_file()), None)


def load_table(name: str, folder: str | Path | None = None) -> pa.Table:
    """Read a benchmark table, class or response last.

    Raises
    ------
    TableNotFoundError
        Where neither the folder nor OpenML has it.
    """
    path = find_file(name, folder)
    return _from_openml(name) if path is None else pyarrow.csv.read_csv(path)


def _from_openml(name: str) -> pa.Table:
    advice = f"set SFUMATO_DATA to a folder that holds {name}.csv or {name}.csv.gz"
    if name not in _OPENML:
        raise TableNotFoundError(f"table {name!r} is not in the folder of SFUMATO_DATA; {advice}")
    from sklearn.datasets import fetch_openml

    try:
        frame = fetch_openml(data_id=_OPENML[name], as_frame=True).frame
    except (OSError, ValueError, ImportError) as error:
        raise TableNotFoundError(
            f"table {name!r} is not in the folder of SFUMATO_DATA and OpenML gave nothing "
            f"({type(error).__name__}); {advice}, or go online with pandas installed"
        ) from error
    table = pa.Table.from_pandas(frame, preserve_index=False)
    plain = [pa.field(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type) for f in table.schema]
    return table.cast(pa.schema(plain))
