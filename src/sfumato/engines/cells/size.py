"""How much memory a run may take, what a table would need of it at once, and how large cells may then be."""

from __future__ import annotations

import os
import re
from pathlib import Path

from sfumato.core.errors import OptionError
from sfumato.engines.cells.cuts import LEAST_ROWS
from sfumato.engines.chunks.source import Source
from sfumato.tables.files import FileFormat

__all__ = ["BASE_BYTES", "cell_rows", "needed_bytes", "parse_size", "size_words", "usual_memory"]

BASE_BYTES = 450 << 20
"""Bytes that the programs themselves take."""

_WORK = 120  # bytes that condensing takes for each cell of the table, beside the table
_AT_ONCE = {"chain": 45}  # bytes of a run in memory for each cell of the table; more where rows become a matrix
_AS_MATRIX = 90
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


def cell_rows(memory: int, columns: int) -> int:
    """Most rows of a cell for so many bytes of memory; at least so many that no half of it has fewer than 50,000."""
    return max(2 * LEAST_ROWS, (memory - BASE_BYTES) // (_WORK * max(columns, 4)))


def needed_bytes(source: Source, method: str | None) -> int:
    """Bytes that a run with the whole table in memory would take, about; its report takes no more for more rows."""
    columns = max(1, len(source.schema.names))
    return BASE_BYTES + _rows_about(source, columns) * columns * _AT_ONCE.get(method or "chain", _AS_MATRIX)


def _rows_about(source: Source, columns: int) -> int:
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
