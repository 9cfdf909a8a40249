"""The first state of a stream: groups that were started, and the batches that their records are known by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from sfumato.condense.maintainer import Maintainer
from sfumato.documents import write_json
from sfumato.stream.batches import Batch
from sfumato.stream.book import Book
from sfumato.stream.format import Entry
from sfumato.stream.groups import entries_of_rows
from sfumato.stream.known import Known
from sfumato.stream.settings import Progress, Settings, entry_of
from sfumato.tables.codec import Codec
from sfumato.tables.stored_codec import codec_to_document

__all__ = ["create_state"]


def create_state(
    place: str | Path,
    settings: Settings,
    codec: Codec,
    maintainer: Maintainer,
    first: Iterable[Batch],
    kept: Iterable[Entry] = (),
    kept_out: Mapping[str, int] | None = None,
    quarantined: int = 0,
) -> None:
    """Write a new state, whole or not at all.

    Parameters
    ----------
    place : path or URL
    settings : Settings
    codec : Codec
        Fitted on the first records.
    maintainer : Maintainer
        Started with them.
    first : iterable of (str, pyarrow.Table)
        The same records as batches, so that they are known when they are given again.
    kept : iterable of Entry
        Rows of them to be measured by.
    kept_out : mapping of str to int, optional
        Cells of each column that kept a record out.
    quarantined : int
        Records that were kept out.

    Raises
    ------
    OptionError
        Where there is a state already.
    """
    known = {identity: table.num_rows for identity, table in first}
    progress = Progress(
        next_id=int(maintainer.ids[-1]) + 1,
        splits=maintainer.splits,
        batches=len(known),
        rows=sum(known.values()),
        quarantined=quarantined,
        last_batch=next(reversed(known), None),
    )
    Book.create(
        place,
        [
            entry_of("settings", settings),
            entry_of("progress", progress),
            Entry("codec", "", write_json(codec_to_document(codec), escaped=True).encode()),
            *entries_of_rows(maintainer.rows()),
            *(Known.entry(identity, rows) for identity, rows in known.items()),
            *(Entry("quarantine", name, str(count).encode()) for name, count in (kept_out or {}).items()),
            *kept,
        ],
    )
