"""The seal of a state at rest: a SHA-256 of all its bytes after the last page, so that no flipped bit goes unseen."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path

from sfumato.stream.format import damaged

__all__ = ["PAGE", "is_sealed", "seal", "unseal"]

PAGE = 16_384
"""Bytes of a page of the file; a group of ten columns takes about one kilobyte."""

_MARK = b"sfumato sealed 1"
_LENGTH = len(_MARK) + hashlib.sha256().digest_size
_BLOCK = 1 << 20


def seal(path: Path) -> None:
    """Put the seal behind the last page, whole or not at all. SQLite does not look there."""
    length = path.stat().st_size
    handle = os.open(path, os.O_WRONLY)
    try:
        if os.pwrite(handle, _MARK + _digest(path, length), length) < _LENGTH:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(handle)
    except OSError:
        os.ftruncate(handle, length)
        raise
    finally:
        os.close(handle)


def unseal(path: Path) -> None:
    """Take the seal off, for writing."""
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // PAGE * PAGE)


def is_sealed(path: Path) -> bool:
    """Tell whether a file is sealed, and check the seal.

    Raises
    ------
    StateError
        Where the bytes are not those that were sealed, or the file ends in the middle.
    """
    size = path.stat().st_size
    pages, rest = divmod(size, PAGE)
    with path.open("rb") as file:
        file.seek(pages * PAGE)
        end = file.read(rest)
    if not end.strip(b"\0"):  # nothing, or room for a seal that a power cut kept from being written
        return False
    if rest != _LENGTH or not end.startswith(_MARK):
        raise damaged(str(path), "it ends in the middle")
    if _digest(path, pages * PAGE) != end[len(_MARK) :]:
        raise damaged(str(path), "its bytes are not those that were sealed")
    return True


def _digest(path: Path, length: int) -> bytes:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while length > 0:
            block = file.read(min(_BLOCK, length))
            if not block:
                break
            digest.update(block)
            length -= len(block)
    return digest.digest()
