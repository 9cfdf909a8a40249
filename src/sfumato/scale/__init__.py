"""Files larger than memory: read in chunks, moved by a key, written in one pass; and samples of their rows."""

from __future__ import annotations

from sfumato.facts import ShuffledWithin
from sfumato.scale.source import sample_file
from sfumato.scale.transform import MovedFile, transform_file

__all__ = ["MovedFile", "ShuffledWithin", "sample_file", "transform_file"]
