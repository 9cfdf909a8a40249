"""The whole job: a table and a mechanism in, a release out; two tables in, a report out; large files and streams."""

from __future__ import annotations

from sfumato.pipeline.compare import compare_tables, evaluate
from sfumato.pipeline.large import FileRelease, release_file
from sfumato.pipeline.prepare import Job, prepare, schema_of
from sfumato.pipeline.stream import StreamRelease, init_stream, publish_stream
from sfumato.pipeline.whole import sanitize

__all__ = [
    "FileRelease",
    "Job",
    "StreamRelease",
    "compare_tables",
    "evaluate",
    "init_stream",
    "prepare",
    "publish_stream",
    "release_file",
    "sanitize",
    "schema_of",
]
