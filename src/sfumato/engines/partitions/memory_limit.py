"""How much memory a run may take, what it takes at least, and how large the partitions of a table may then be.

The figures are peaks of whole processes, measured on tables of 5 to 40 columns (``benchmarks/results/large.md``).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from sfumato.core.errors import OptionError
from sfumato.engines.memory import MEASURED_ROWS, MEASURED_WHOLE
from sfumato.engines.partitions.sampling import SAMPLE_ROWS
from sfumato.tables.files import FileFormat
from sfumato.tables.source import TableSource

__all__ = [
    "LEAST_ROWS",
    "check_memory",
    "least_bytes",
    "needed_bytes",
    "parse_size",
    "partition_rows",
    "size_words",
    "usual_memory",
]

LEAST_ROWS = 50_000
"""Rows of a partition, about, below which none is cut."""

_BASE = 470 << 20  # bytes that interpreter, libraries and compiled code take
_TEXT = 64 << 20  # more, where CSV is read
_WORK = 120  # bytes that a value of a partition takes while it is sanitized
_LEAST_WORK = 147  # the same for the smallest partition, with what was learnt of the whole table
_AT_ONCE = {"chain": 45}  # bytes that a value takes if all rows are sanitized at once; more where rows become a matrix
_AS_MATRIX = 90
_REPORT = 150 << 20  # bytes that a report takes, beside those of the values that it measures
_MEASURED = 400  # bytes that a value takes while it is measured
_FEWEST_COLUMNS = 4
_USUAL = 3 << 29
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"\s*(\d{1,6}(?:\.\d{1,3})?)\s*([KMGT]?)(?:i?B)?\s*", re.IGNORECASE)
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_HEAD = 1 << 20
_UNZIPPED = 5  # times the size of a compressed file


def parse_size(text: str | int) -> int:
    """Bytes of a size such as 512M or 2G.

    Examples
    --------
    >>> parse_size("512M") == 512 * 2**20, parse_size("1.5 GiB") == 3 * 2**29
    (True, True)
    """
    if isinstance(text, int) and not isinstance(text, bool) and text > 0:
        return text
    found = _SIZE.fullmatch(text) if isinstance(text, str) else None
    if found is None or not float(found[1]):
        raise OptionError("the memory is a size such as 512M or 2G; write it so")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def size_words(size: int) -> str:
    """A size as a person writes it.

    Examples
    --------
    >>> size_words(3 * 2**29), size_words(300 << 20)
    ('1.5 GB', '300 MB')
    """
    return f"{size / (1 << 30):.1f} GB" if size >= 1 << 30 else f"{size / (1 << 20):.0f} MB"


def usual_memory() -> int:
    """1.5 GB, or half of the memory that the machine, or what this process is confined to, has where that is less."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 8 << 30
    for path in _LIMITS:
        try:
            text = path.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            continue
        whole = min(whole, int(text)) if text.isdigit() and int(text) else whole
    return min(_USUAL, whole // 2)


def partition_rows(memory: int, columns: int) -> int:
    """Most rows of a partition for the given memory; no half of it has fewer than 50,000."""
    return max(2 * LEAST_ROWS, (memory - _BASE) // (_WORK * max(columns, _FEWEST_COLUMNS)))


def needed_bytes(source: TableSource, method: str | None, *, report: bool = False) -> int:
    """Bytes that a run takes, about, if all rows are in memory; with its ``report`` if told."""
    columns = max(1, len(source.schema.names))
    rows = _rows_about(source, columns)
    work = _BASE + rows * columns * _AT_ONCE.get(method or "chain", _AS_MATRIX)
    measured = rows if rows <= MEASURED_WHOLE else MEASURED_ROWS
    return max(work, _report_bytes(measured, columns)) if report else work


def least_bytes(source: TableSource, *, report: bool) -> int:
    """Bytes that a run in partitions takes at least: the smallest partition, or the report of a sample."""
    columns = max(_FEWEST_COLUMNS, len(source.schema.names))
    text = _TEXT if source.form.format is FileFormat.CSV else 0
    rows = min(SAMPLE_ROWS, _rows_about(source, columns))
    work = _BASE + text + min(2 * LEAST_ROWS, rows) * columns * _LEAST_WORK
    return max(work, _report_bytes(rows, columns) + text) if report else work


def _report_bytes(rows: int, columns: int) -> int:
    return _BASE + _REPORT + rows * columns * _MEASURED


def check_memory(memory: int, least: int, less: int) -> None:
    """Refuse less memory than a run takes at least; ``less`` is what it takes at least without a report.

    Raises
    ------
    OptionError
        Which names both.
    """
    if memory >= least:
        return
    programs, rest = size_words(_BASE), size_words(least - _BASE)
    instead = "" if less >= least else f", or {_rounded(less)} with --no-report"
    raise OptionError(
        f"{size_words(memory)} of memory are too little for this run: the programs take about {programs} and the least "
        f"work on this table {rest}; grant at least --memory {_rounded(least)}{instead}"
    )


def _rounded(size: int) -> str:
    """A size as --memory takes it, rounded up to 10 MB."""
    step = 10 << 20
    return f"{-(-size // step) * 10}M"


def _rows_about(source: TableSource, columns: int) -> int:
    if source.rows is not None:
        return source.rows
    size = source.path.stat().st_size
    if source.form.format is not FileFormat.CSV:
        return size // (8 * columns)
    if source.path.name.lower().endswith(".gz"):
        return _UNZIPPED * size // (6 * columns)
    with source.path.open("rb") as file:
        head = file.read(_HEAD)
    return size * max(1, head.count(b"\n")) // max(1, len(head))
