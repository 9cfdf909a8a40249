"""The verb `sfumato.stream`: a stream by the path or URL of its state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.core.arguments import checked
from sfumato.core.errors import OptionError
from sfumato.publish.release import Release
from sfumato.stream.entries import cut_batches
from sfumato.stream.publish import EpochAttack, attack_epochs, publish_stream, stream_on_spark
from sfumato.stream.run import StreamOptions, forget_rows, init_stream
from sfumato.stream.session import StreamSession
from sfumato.stream.settings import IngestSummary, Status
from sfumato.tables.frames import to_arrow
from sfumato.tables.reading import FileReading

__all__ = ["Stream", "status_page", "stream"]


@dataclass(frozen=True)
class Stream:
    """A stream by its state, which each call opens and closes again."""

    state: str | Path

    def ingest(
        self,
        table: Any,
        *,
        source: str = "",
        encoding: str | None = None,
        sheet: str | None = None,
        header_row: int | None = None,
        pending_key: str | Path | None = None,
        measure_key: str | Path | None = None,
        person_key: str | Path | None = None,
    ) -> IngestSummary:
        """How many rows of a frame were taken in, wait, or were kept out; known rows are not counted again.

        Parameters
        ----------
        table : pandas, polars or pyarrow table, or path
        source : str
            Name of the source, if two sources may contain the same rows.
        encoding, sheet, header_row : optional
            How a file is read, as in `sfumato.inspect`.
        pending_key, measure_key, person_key : path, optional
            Key files that the state was begun with.
        """
        with StreamSession.open(
            self.state, pending_key=pending_key, measure_key=measure_key, person_key=person_key
        ) as session:
            rows = session.settings.batch_rows
            reading = FileReading(encoding=encoding, sheet=sheet, header_row=header_row)
            return session.ingest(cut_batches([to_arrow(table, reading=reading)[0]], rows, source=source))

    def publish(self, folder: str | Path, **options: Any) -> Release:
        """Release of a new epoch, written into a folder; options are those of `publish_stream`."""
        return publish_stream(self.state, folder, **options)

    def on_spark(self, frame: Any, folder: str | Path, *, checkpoint: str | Path, **options: Any) -> Any:
        """Query of Spark that goes on with the stream on a cluster, and publishes each batch in a folder of its own.

        Parameters
        ----------
        frame : streaming data frame of Spark
        folder : path
            For the folders of batches.
        checkpoint : path or URL
            Of Spark; on storage that all workers reach.
        **options
            Those of `sfumato.stream.publish.stream_on_spark`, such as ``once``, ``every`` and ``cells``.
        """
        return stream_on_spark(self.state, frame, folder, checkpoint=checkpoint, **options)

    def status(self) -> Status:
        """How the stream stands; the whole state is checked."""
        with StreamSession.open(self.state, write=False) as session:
            return session.status()

    def attack(self, releases: Sequence[str | Path], *, measure_key: str | Path | None = None) -> EpochAttack:
        """What published epochs give away to an attacker who compares them."""
        return attack_epochs(self.state, releases, measure_key=measure_key)

    def forget(self) -> Status:
        """How the stream stands once the rows kept for measuring are deleted, for good."""
        return forget_rows(self.state)


def stream(state: str | Path, first: Any = None, **options: Any) -> Stream:
    """A stream of records that are condensed as they arrive, and published by epochs [AY05, sec. 3].

    Parameters
    ----------
    state : path or URL
        A file, or ``postgresql://USER@HOST/NAME``; it stays with the owner.
    first : pandas, polars or pyarrow table, or path, optional
        Begins a new stream with these records; without it the state is that of an earlier one.
    **options
        With ``first``: those of `sfumato.stream.run.StreamOptions`, such as ``k``, ``level`` and ``schema``.
    """
    if first is not None:
        init_stream(state, first, checked(StreamOptions)(**options))
    elif options:
        raise OptionError(f"{next(iter(options))!r} is for the beginning of a stream; give its first records too")
    return Stream(state)


def status_page(state: str) -> dict[str, Any]:
    """How a stream stands, in sentences and by epoch."""
    status = Stream(state).status()
    return {"lines": status.lines(), "epoch": status.epoch, "k": status.k, "families_due": status.families_due}
