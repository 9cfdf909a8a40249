"""Streams: groups maintained as records arrive, in a state that survives crashes, and published by epochs."""

from __future__ import annotations

from sfumato.stream.batches import Batch, batch_id, cut_batches
from sfumato.stream.format import StateError
from sfumato.stream.session import Session
from sfumato.stream.status import Acknowledged, Ingested, Status

__all__ = ["Acknowledged", "Batch", "Ingested", "Session", "StateError", "Status", "batch_id", "cut_batches"]
