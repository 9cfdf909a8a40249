"""Bytes as the program meets them: as a text, or as a file of some name."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["as_bytes", "as_file", "as_json", "as_text", "folder_in_memory"]


def as_text(read: Callable[[str], Any]) -> Callable[[bytes], Any]:
    """Take bytes as the text of a file; what is not UTF-8 is refused before."""
    return lambda data: read(data.decode("utf-8", "replace"))


def as_bytes(write: Callable[[Any], str]) -> Callable[[Any], bytes]:
    """Write what was read as the bytes of its text."""
    return lambda found: write(found).encode()


def as_json(document: Any) -> bytes:
    """Write a document."""
    return json.dumps(document).encode()


@cache
def folder_in_memory() -> Path:
    """A folder in memory where there is one, for thousands of small files are written; removed at the end."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _file_in_memory(name: str) -> Path:
    return folder_in_memory() / name


def as_file(name: str, read: Callable[[Path], Any]) -> Callable[[bytes], Any]:
    """Read the bytes as a file of that name, which only its owner may read."""

    def through(data: bytes) -> Any:
        path = _file_in_memory(name)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(handle, data)
        finally:
            os.close(handle)
        return read(path)

    return through
