"""How inputs are read, and what of them a state knows already."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from sfumato.errors import OptionError

__all__ = ["FORMS", "Reading", "table_of_fields"]

FORMS = ("csv", "jsonl")
"""How standard input may be written."""


@dataclass(frozen=True)
class Reading:
    """What a connector is told.

    Parameters
    ----------
    rows : int
        Rows of a batch, always the same for one state.
    columns : tuple of str, optional
        The columns of the schema, for records that name their own fields: one that lacks is a missing cell, one that
        the schema does not know is left out. By default the fields of the first record.
    known : mapping of str to int
        Ids of the batches that the state has counted, with the rows of each; may grow while it is read.
    awaited : collection of str
        Ids among them whose records wait, were in memory only, and must be given again.
    source : str
        Goes into the ids, to tell inputs apart that may hold the same rows.
    encoding : str
    form : {"csv", "jsonl"}, optional
        How standard input is written, by default as its first character tells.
    follow : bool
        Wait for more at the end of a Redis stream.
    group : str
        The consumer group that a Redis server remembers this state by.
    """

    rows: int
    columns: tuple[str, ...] | None = None
    known: Mapping[str, int] = field(default_factory=dict, repr=False)
    awaited: Collection[str] = ()
    source: str = ""
    encoding: str = "utf-8"
    form: str | None = None
    follow: bool = False
    group: str = "sfumato"

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise OptionError("a batch has at least 1 row; raise the number")
        if self.form not in (None, *FORMS):
            raise OptionError(f"standard input is not read as {self.form!r}; choose {' or '.join(FORMS)}")


def table_of_fields(records: Sequence[Mapping[str, str | None]], columns: Sequence[str]) -> pa.Table:
    """Give records that name their fields as a table of texts; what lacks is a missing cell."""
    return pa.table({name: pa.array([record.get(name) for record in records], pa.string()) for name in columns})
