"""Writing one file of a folder, and its hash."""

from __future__ import annotations

import hashlib
from pathlib import Path

from sfumato.documents import open_regular

__all__ = ["sha256_of", "write_text"]


def write_text(path: Path, text: str, *, mode: int | None = None) -> None:
    """Write a text as UTF-8 with plain line ends, closed to others before the first byte where a mode says so."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        if mode is not None:
            path.chmod(mode)
        file.write(text)


def sha256_of(path: Path, *, linked: bool = True) -> str:
    """SHA-256 of a regular file, which the name may be a link to."""
    with open_regular(path, linked=linked) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
