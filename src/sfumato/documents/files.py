"""Small files from outside: read whole, and only where they are regular files of a bounded size."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sfumato.errors import OptionError, shown

__all__ = ["MOST_BYTES", "open_regular", "read_bytes", "read_text"]

MOST_BYTES = 1 << 24
"""Bytes of the largest document: a schema of a hundred thousand categories has a few million."""

_OPENING = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)  # a pipe that nobody writes to would be waited for
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


@contextmanager
def open_regular(path: str | Path, *, linked: bool = True) -> Iterator[io.BufferedReader]:
    """Open a file for reading, never a pipe, a device or a folder.

    Parameters
    ----------
    path : path
    linked : bool
        Whether the name may be a link to the file.

    Raises
    ------
    OSError
        Whose ``strerror`` says what it is instead.
    """
    try:
        handle = os.open(path, _OPENING | (0 if linked else getattr(os, "O_NOFOLLOW", 0)))
    except ValueError:  # a name that no file system can hold
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)) from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "a link, not a regular file") from None
        raise
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        yield file


def read_bytes(path: str | Path, what: str, do: str, *, most: int = MOST_BYTES, linked: bool = True) -> bytes:
    """Bytes of a small document.

    Parameters
    ----------
    path : path
    what : str
        What it is, for the sentence of an error: "schema file".
    do : str
        What to do where there is none.
    most : int
        Bytes that it may have.
    linked : bool
        Whether the name may be a link to the file.

    Raises
    ------
    OptionError
        Where there is none, or it is no regular file, or larger.
    """
    try:
        with open_regular(path, linked=linked) as file:
            data = file.read(most + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise OptionError(f"there is no {what} {shown(path)}; {do}") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OptionError(f"the {what} {shown(path)} cannot be read ({reason.lower()}); {do}") from None
    if len(data) > most:
        size = f"{most >> 20} MiB" if most >= 1 << 20 else f"{most >> 10} KiB"
        raise OptionError(f"the {what} {shown(path)} is larger than {size}, so it is none; {do}")
    return data


def read_text(path: str | Path, what: str, do: str, *, most: int = MOST_BYTES, linked: bool = True) -> str:
    """Text of a small document; as `read_bytes`, and UTF-8."""
    try:
        return read_bytes(path, what, do, most=most, linked=linked).decode("utf-8")
    except UnicodeDecodeError:
        raise OptionError(f"the {what} {shown(path)} is not UTF-8 text; {do}") from None
