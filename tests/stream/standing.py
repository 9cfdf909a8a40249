"""What a state knows of its sources, as connectors receive it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sfumato.stream.connectors import ReadOptions, read_batches
from sfumato.stream.session import StreamSession
from sfumato.stream.settings import IngestSummary


def standing(session: StreamSession, **told: Any) -> ReadOptions:
    """What a connector needs to know of a state."""
    given: dict[str, Any] = {
        "rows": session.settings.batch_rows,
        "columns": session.codec.schema.names,
        "known": session.known,
    }
    return ReadOptions(**(given | told))


def take_from(state: Path, place: Path | str, **told: Any) -> IngestSummary:
    """Ingest an input in a session of its own."""
    with StreamSession.open(state) as session:
        return session.ingest(read_batches(place, standing(session, **told)))
