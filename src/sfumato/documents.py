"""Small documents from outside: read whole only where they are regular files, parsed only within bounds.

Whatever lies in a folder that somebody sent is hostile until it is parsed. Size, depth and numbers are bounded here, in
one place; what a document means is its reader's business.
"""

from __future__ import annotations

import dataclasses
import errno
import io
import json
import math
import os
import re
import stat
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sfumato.errors import OptionError, shown

__all__ = [
    "DEEPEST",
    "MOST_BYTES",
    "Unparsable",
    "has_type",
    "open_regular",
    "parse_json",
    "parse_toml",
    "read_bytes",
    "read_text",
    "typed",
]

T = TypeVar("T")

MOST_BYTES = 1 << 24
"""Bytes of the largest document: a schema of a hundred thousand categories has a few million."""

DEEPEST = 32
"""Lists and tables that may stand inside one another."""

_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![\w.-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{DEEPEST}}}")
_OPENING = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)  # a pipe that nobody writes to would be waited for
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


class Unparsable(ValueError):
    """Where or why a document cannot be parsed, in words that quote nothing of it."""


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


def parse_toml(text: str) -> dict[str, Any]:
    """Values of a TOML document.

    Raises
    ------
    Unparsable
        For what is not TOML, is nested too deeply, or holds a number beyond all floats.
    """
    if _LONG_KEY.search(text):  # the parser's time grows with the square of a key's parts
        raise Unparsable(f"a name of more than {DEEPEST} parts")
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = str(error).rpartition("(")[2].rstrip(")")
        raise Unparsable(place if place.startswith("at ") else "somewhere") from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError:  # of a number of thousands of digits, or a day that no calendar has
        raise Unparsable("a number or date out of range") from None
    _check_values(document)
    return document


def parse_json(text: str | bytes, *, most: int | None = None) -> Any:
    """Values of a JSON document: UTF-8, finite numbers, every key once.

    Parameters
    ----------
    text : str or bytes
    most : int, optional
        How long it may be, where nobody has bounded it before.

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
            parse_constant=_no_constant,
            parse_float=_finite,
            object_pairs_hook=_each_key_once,
        )
    except Unparsable:
        raise
    except RecursionError:
        raise _too_deep() from None
    except json.JSONDecodeError as error:
        raise Unparsable(f"at line {error.lineno}, column {error.colno}") from None
    except ValueError:  # not UTF-8, or a number of thousands of digits
        raise Unparsable("not UTF-8 text, or a number out of range") from None
    _check_values(document)
    return document


def typed(shape: type[T], document: object, *, extra: bool = False) -> T:
    """Dataclass from the values of a document: every entry of its field's type, none unknown, none lacking.

    A field that has a default may be left out, as it is in files of a version that did not know it.

    Parameters
    ----------
    shape : type
        A dataclass of plain fields: texts, numbers, yes or no, None, tuples and mappings of them.
    document : object
        Of `parse_json` or `parse_toml`.
    extra : bool
        Pass over entries that the shape does not know.

    Raises
    ------
    Unparsable
        Which says what is wrong, and never a value.

    Examples
    --------
    >>> @dataclasses.dataclass
    ... class Point:
    ...     x: float
    ...     names: tuple[str, ...] = ()
    >>> typed(Point, {"x": 1, "names": ["a"]})
    Point(x=1, names=('a',))
    >>> typed(Point, {"x": "1"})
    Traceback (most recent call last):
        ...
    sfumato.documents.Unparsable: an entry 'x' that is not of type float
    """
    fields = {field.name: field for field in dataclasses.fields(shape)}  # type: ignore[arg-type]
    if not isinstance(document, dict) or not (extra or document.keys() <= fields.keys()):
        raise Unparsable("other entries than it should")
    given = {}
    for name, field in fields.items():
        if name not in document:
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
                raise Unparsable("fewer entries than it should")
            continue
        value = document[name]
        if not has_type(value, str(field.type)):
            raise Unparsable(f"an entry {name!r} that is not of type {field.type}")
        given[name] = tuple(value) if isinstance(value, list) and "tuple" in str(field.type) else value
    return shape(**given)


def has_type(value: object, annotation: str) -> bool:
    """Whether a value that was read from a document fits the annotation of a dataclass field.

    A list fits a tuple or what is no plain type; a tuple of texts holds texts alone, a mapping of numbers numbers.

    Examples
    --------
    >>> has_type(3, "int | None"), has_type(True, "int"), has_type({"a": 1}, "dict[str, int]")
    (True, False, True)
    """
    return any(_is_of(value, kind.strip()) for kind in annotation.split("|"))


def _is_of(value: object, kind: str) -> bool:
    if kind in ("None", "bool", "str"):
        return isinstance(value, {"None": type(None), "bool": bool, "str": str}[kind])
    if kind in ("int", "float"):
        whole = isinstance(value, int) and not isinstance(value, bool)
        return whole or (kind == "float" and isinstance(value, float) and math.isfinite(value))
    if kind.startswith(("dict[str, ", "Mapping[str, ")):
        inside = kind.partition(", ")[2].removesuffix("]")
        return isinstance(value, dict) and (inside == "Any" or all(_is_of(item, inside) for item in value.values()))
    if not isinstance(value, list | tuple):
        return False
    return kind != "tuple[str, ...]" or all(isinstance(item, str) for item in value)


def _check_values(document: Any) -> None:
    """Refuse depth, numbers that no float reaches, and texts that cannot be written."""
    level = [document]
    for _ in range(DEEPEST + 1):
        inside: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                inside.extend(value)
                inside.extend(value.values())
            elif isinstance(value, list):
                inside.extend(value)
            elif isinstance(value, str):
                _check_text(value)
            elif isinstance(value, int) and abs(value) > sys.float_info.max:
                raise Unparsable("a number out of range")
        level = inside
        if not level:
            return
    raise _too_deep()


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Unparsable("a text with half a character") from None


def _too_deep() -> Unparsable:
    return Unparsable(f"nested more than {DEEPEST} deep")


def _no_constant(_name: str) -> Any:
    raise Unparsable("a number that is not finite")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise Unparsable("a number out of range")
    return number


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise Unparsable("a key that comes twice")
    return document
