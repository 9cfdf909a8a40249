"""Read untrusted files and texts: size-limited, and refused unless plain JSON or TOML."""

from __future__ import annotations

import errno
import io
import json
import math
import os
import re
import stat
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sfumato.core.errors import BadInput, OptionError, shown

__all__ = [
    "DEEPEST",
    "MOST_BYTES",
    "Unparsable",
    "open_regular",
    "parse_json",
    "parse_toml",
    "read_bytes",
    "read_text",
    "toml_entries",
]

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
    """Open a regular file for reading; refuse pipes, devices and folders.

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
        If there is none, or it is no regular file, or larger.
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
    """UTF-8 text of a small document; see `read_bytes`."""
    try:
        return read_bytes(path, what, do, most=most, linked=linked).decode("utf-8")
    except UnicodeDecodeError:
        raise OptionError(f"the {what} {shown(path)} is not UTF-8 text; {do}") from None


DEEPEST = 32
"""Lists and tables that may stand inside one another."""

_TOO_DEEP = f"nested more than {DEEPEST} deep"
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = rf"(?<![\w.-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{DEEPEST}}}"


class Unparsable(ValueError):
    """Where and why a document cannot be parsed, without quoting it."""


def parse_toml(text: str) -> dict[str, Any]:
    """Values of a TOML document.

    Raises
    ------
    Unparsable
        For what is not TOML, is nested too deeply, or holds a number beyond all floats.
    """
    if re.search(_LONG_KEY, text):  # the parser's time grows with the square of a key's parts
        raise Unparsable(f"a name of more than {DEEPEST} parts")
    import tomllib

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = str(error).rpartition("(")[2].rstrip(")")
        raise Unparsable(place if place.startswith("at ") else "somewhere") from None
    except RecursionError:
        raise Unparsable(_TOO_DEEP) from None
    except ValueError:  # of a number of thousands of digits, or a day that no calendar has
        raise Unparsable("a number or date out of range") from None
    _check_values(document)
    return document


def toml_entries(
    text: str, what: str, do: str, known: Collection[str], *, error: type[BadInput] = OptionError
) -> dict[str, Any]:
    """Entries of a TOML file of ``format = 1``; unknown entries are refused.

    ``what`` and ``do`` say for a sentence what it is ("schema") and what to do where it is no TOML.
    """
    try:
        document = parse_toml(text)
    except Unparsable as wrong:
        raise error(f"the {what} is not valid TOML ({wrong}); {do}") from None
    number = document.pop("format", None)
    if isinstance(number, bool) or number != 1 or not isinstance(number, int):
        raise error(f"the {what} has no 'format = 1'; this version reads no other")
    unknown = sorted(set(document) - set(known))
    if unknown:
        raise error(f"the {what} has an unknown entry {shown(unknown[0])}; known are {', '.join(known)}")
    return document


def parse_json(text: str | bytes, *, most: int | None = None, verbatim: bool = False) -> Any:
    """Values of a JSON document: UTF-8, finite numbers, unique keys.

    Parameters
    ----------
    text : str or bytes
    most : int, optional
        How long it may be, if no one has bounded it before.
    verbatim : bool
        Of records: numbers are given as the texts that they are, whatever their size, and texts are not checked.

    Raises
    ------
    Unparsable
        For anything else, and where it is longer or nested too deeply.
    """
    if most is not None and len(text) > most:
        raise Unparsable("longer than such a document may be")
    try:
        document = json.loads(
            text if isinstance(text, str) else text.decode("utf-8"),
            parse_constant=str if verbatim else _refuse_constant,
            parse_float=str if verbatim else _finite,
            parse_int=str if verbatim else None,
            object_pairs_hook=_unique_keys,
        )
    except Unparsable:
        raise
    except RecursionError:
        raise Unparsable(_TOO_DEEP) from None
    except json.JSONDecodeError as error:
        raise Unparsable(f"at line {error.lineno}, column {error.colno}") from None
    except ValueError:  # not UTF-8, or a number of thousands of digits
        raise Unparsable("not UTF-8 text, or a number out of range") from None
    if not verbatim:
        _check_values(document)
    return document


def _check_values(document: Any) -> None:
    """Refuse excessive depth, numbers beyond floating point, and unprintable texts."""
    level = [document]
    for _ in range(DEEPEST + 1):
        inside: list[Any] = []
        for value in level:
            kind = type(value)  # parsers make plain values only
            if kind is str:
                if not value.isascii():
                    _check_text(value)
            elif kind is dict:
                inside.extend(value)
                inside.extend(value.values())
            elif kind is list:
                inside.extend(value)
            elif kind is int and abs(value) > sys.float_info.max:
                raise Unparsable("a number out of range")
        level = inside
        if not level:
            return
    raise Unparsable(_TOO_DEEP)


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Unparsable("a text with half a character") from None


def _refuse_constant(_name: str) -> Any:
    raise Unparsable("a number that is not finite")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise Unparsable("a number out of range")
    return number


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise Unparsable("a key that comes twice")
    return document
