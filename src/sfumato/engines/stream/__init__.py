"""Streams: groups maintained as records arrive, in a state that survives crashes, and published by epochs."""

from __future__ import annotations

from sfumato.engines.stream.entries import Batch, batch_id, cut_batches
from sfumato.engines.stream.session import StreamSession
from sfumato.engines.stream.settings import Acknowledged, Ingested, StateError, Status

__all__ = ["Acknowledged", "Batch", "Ingested", "StateError", "Status", "StreamSession", "batch_id", "cut_batches"]
