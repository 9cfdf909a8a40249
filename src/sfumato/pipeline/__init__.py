"""The whole job: a table and a mechanism in, a release out; two tables in, a report out; and large files."""

from __future__ import annotations

from sfumato.pipeline.compare import compare_tables, evaluate
from sfumato.pipeline.large import FileRelease, release_file
from sfumato.pipeline.prepare import Job, prepare, schema_of
from sfumato.pipeline.whole import sanitize

__all__ = [
    "FileRelease",
    "Job",
    "compare_tables",
    "evaluate",
    "prepare",
    "release_file",
    "sanitize",
    "schema_of",
]
