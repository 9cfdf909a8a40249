"""The whole job: a table and a mechanism in, a release out; two tables in, a report out."""

from __future__ import annotations

from sfumato.pipeline.compare import compare_tables, evaluate
from sfumato.pipeline.prepare import Job, prepare, schema_of
from sfumato.pipeline.whole import sanitize

__all__ = ["Job", "compare_tables", "evaluate", "prepare", "sanitize", "schema_of"]
