"""Files larger than memory: read in chunks, moved by a key, written in one pass; and samples of their rows."""

from __future__ import annotations

from sfumato.core.facts import ShuffledWithin
from sfumato.engines.chunks.source import sample_file
from sfumato.engines.chunks.transform import MovedFile, transform_file

__all__ = ["MovedFile", "ShuffledWithin", "sample_file", "transform_file"]
