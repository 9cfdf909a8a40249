"""Verbs that are the work of several rooms: inspect and reconstruct."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import OptionError, SchemaError
from sfumato.laws.domains import Labels
from sfumato.laws.spec import NoiseSpec
from sfumato.privacy.randomized import read_spec
from sfumato.randomize.reconstruct import Reconstruction
from sfumato.randomize.reconstruct import reconstruct as reconstruct_values
from sfumato.randomness import Randomness
from sfumato.tables.cells import absent_cells, plain
from sfumato.tables.frames import to_arrow
from sfumato.tables.infer import MISSING_MARKS
from sfumato.tables.schema import Schema

__all__ = ["inspect", "reconstruct"]


def inspect(table: Any, *, identifiers: Iterable[str] = (), target: str | None = None) -> Schema:
    """What each column is taken for and what will happen to it, to be printed and edited.

    Parameters
    ----------
    table : pandas, polars or pyarrow table
    identifiers : iterable of str
        Columns to drop.
    target : str, optional
        The class or response that will be mined.

    Examples
    --------
    >>> people = pa.table({"age": [31, 45, 28, 52, 39] * 6, "name": ["Ann", "Bob", "Eve"] * 10})
    >>> print(inspect(people, identifiers=["name"]))
    column  role          kind     what happens  why
    age     confidential  integer  sanitized     whole numbers, 5 different
    name    identifier    nominal  dropped       text with 3 categories; identifier, as told
    """
    return Schema.infer(table, identifiers=tuple(identifiers), target=target)


def reconstruct(
    table: Any, column: str, spec: NoiseSpec | str | Path, *, seed: int | None = None, **options: Any
) -> Reconstruction:
    """The distribution behind a column of randomized values, with bands; single values stay unknown.

    Parameters
    ----------
    table : pandas, polars or pyarrow table
        Missing cells of the column are skipped and counted.
    column : str
    spec : NoiseSpec or path
        The noise specification, its file, or a release's ``certificate.json``.
    seed : int, optional
        Draws the bands reproducibly.
    **options
        ``intervals``, ``stop``, ``method``, ``bands``, ``resamples``, ``least`` and ``limit`` of
        `sfumato.randomize.reconstruct.reconstruct`.

    Raises
    ------
    TooFew
        Where the records are too few for the noise.
    """
    known = spec if isinstance(spec, NoiseSpec) else read_spec(spec, column)
    released, missing = _released(to_arrow(table)[0], column, known)
    found = reconstruct_values(released, known, rng=Randomness(seed).generator("bands"), **options)
    return dataclasses.replace(found, missing=missing)


def _released(table: pa.Table, column: str, spec: NoiseSpec) -> tuple[NDArray[Any], int]:
    """Cells of a column that are there, and how many are not."""
    if table.column_names.count(column) != 1:
        raise OptionError(f"there is no single column {column!r}; the table has {table.num_columns} columns, name one")
    cells = plain(table.column(column))
    labels = spec.released.values if isinstance(spec.released, Labels) else None
    absent = absent_cells(cells, tuple(mark for mark in MISSING_MARKS if mark not in (labels or ())))
    present = cells.filter(pa.array(~absent))
    try:
        values = present.cast(pa.string() if labels is not None else pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        wanted = "numbers" if labels is None else "labels"
        raise SchemaError(
            f"column {column!r} holds values that are no {wanted}; check column and specification"
        ) from None
    array = values.to_numpy(zero_copy_only=False)
    try:
        spec.encode_output(array)
    except SchemaError as error:
        raise SchemaError(f"column {column!r}: {error}") from None
    return array, int(absent.sum())
