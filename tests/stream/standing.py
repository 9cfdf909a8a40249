"""What a state knows of its sources, as connectors are told it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sfumato.stream import Ingested, Session
from sfumato.stream.connectors import Reading, read_batches


def standing(session: Session, **told: Any) -> Reading:
    """Give what a connector needs to know of a state."""
    given: dict[str, Any] = {
        "rows": session.settings.batch_rows,
        "columns": session.codec.schema.names,
        "known": session.known,
        "awaited": session.awaited,
    }
    return Reading(**(given | told))


def take_from(state: Path, place: Path | str, **told: Any) -> Ingested:
    """Ingest an input in a session of its own."""
    with Session.open(state) as session:
        return session.ingest(read_batches(place, standing(session, **told)))
