"""Read, type-check and write small JSON and TOML documents; the only place that does.

Whatever lies in a folder that someone sent is hostile until it is parsed. Size, depth, numbers, entries and their
types are bounded here; what a document means is its reader's business.
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
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import cache
from pathlib import Path
from textwrap import wrap
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from sfumato.core.errors import BadInput, OptionError, shown

__all__ = [
    "DEEPEST",
    "MOST_BYTES",
    "UNLESS_DEFAULT",
    "CommentedValue",
    "DocumentMismatch",
    "Inline",
    "Lines",
    "Unparsable",
    "fits",
    "from_json",
    "open_regular",
    "parse_json",
    "parse_toml",
    "plain",
    "read_bytes",
    "read_text",
    "toml_entries",
    "toml_value",
    "typed",
    "write_json",
    "write_toml",
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
        raise OptionError(f"the {what} {shown(path)} is larger than {size}, the limit; {do}")
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


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, object]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise Unparsable("a key that comes twice")
    return document


T = TypeVar("T")
EntryPath = tuple[str | int, ...]
Reader = Callable[[Any], Any]

_PLAIN = frozenset((str, int, float, bool, NoneType))

_WIDEST = 116  # characters of a line of TOML, where a list or a comment can go on in the next
UNLESS_DEFAULT: Mapping[str, bool] = {"unless default": True}
"""Metadata of a dataclass field that is written only if it is not its default."""


class DocumentMismatch(Unparsable):
    """Which entry of a document has the wrong shape, without quoting the document.

    ``problem`` is "unknown", "missing" or "wrong". ``path`` has the names of entries, and places in lists counted from
    0, down to the table or value; ``entry`` is what is unknown or missing there, or the last name of the path; ``hint``
    is the type that was wanted.
    """

    def __init__(self, problem: str, path: EntryPath = (), entry: str | None = None, hint: Any = None) -> None:
        super().__init__()
        self.problem, self.path, self.hint = problem, path, hint
        self._entry = entry

    @property
    def entry(self) -> str:
        """The unknown or missing entry, or the last name of the path."""
        return self._entry if self._entry is not None else (self._names or [""])[-1]

    @property
    def _names(self) -> list[str]:
        return [name for name in self.path if isinstance(name, str)]

    def __str__(self) -> str:
        where = ".".join(self._names)
        hint = f"an entry {where!r} that is not of type {_named(self.hint)}" if where else f"no {_named(self.hint)}"
        inside = f" in {where!r}" if where else ""
        words = {"unknown": "other entries than it should", "missing": "fewer entries than it should"}
        return words[self.problem] + inside if self.problem in words else hint

    def within(self, name: str | int) -> DocumentMismatch:
        """The same mismatch, seen from the enclosing table or list."""
        return DocumentMismatch(self.problem, (name, *self.path), self._entry, self.hint)


def from_json(shape: type[T], text: str | bytes, *, most: int | None = None) -> T:
    """Read a typed value from a JSON document: `parse_json`, then `typed`."""
    return typed(shape, parse_json(text, most=most))


def typed(shape: type[T], document: object) -> T:
    """Convert a document's plain values to a type; no unknown and no missing entries.

    A field that has a default may be left out.

    Parameters
    ----------
    shape : type
        A dataclass, or a tuple, list or mapping; inside it dataclasses, texts, numbers, yes or no, None, dates,
        enumerations, literals, choices between these, tuples, lists and mappings of them.
    document : object
        Of `parse_json` or `parse_toml`.

    Raises
    ------
    Misfit
        Which says what is wrong, and never a value.

    Examples
    --------
    >>> @dataclasses.dataclass
    ... class Point:
    ...     x: float
    ...     names: tuple[str, ...] = ()
    >>> typed(Point, {"x": 1, "names": ["a"]})
    Point(x=1, names=('a',))
    """
    reader: Reader = _reader(cast(Any, shape))
    return cast(T, reader(document))


def fits(shape: Any, document: object) -> bool:
    """Whether plain values match a type; entries of a dataclass are checked one by one and may be missing."""
    if dataclasses.is_dataclass(shape):
        hints = _hints(cast(type, shape))
        return isinstance(document, Mapping) and all(
            name in hints and fits(hints[name], value) for name, value in document.items()
        )
    try:
        _reader(shape)(document)
    except DocumentMismatch:
        return False
    return True


def plain(value: Any) -> Any:
    """Plain values of a document: dataclasses as tables, tuples and arrays as lists, enumerations by value.

    Examples
    --------
    >>> @dataclasses.dataclass
    ... class Point:
    ...     x: float
    ...     names: tuple[str, ...] = dataclasses.field(default=(), metadata=UNLESS_DEFAULT)
    >>> plain([Point(1.0), Point(2.0, ("a",))])
    [{'x': 1.0}, {'x': 2.0, 'names': ['a']}]
    """
    if type(value) in _PLAIN:
        return value
    if dataclasses.is_dataclass(value):
        return {
            field.name: plain(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if not field.metadata.get("unless default") or getattr(value, field.name) != _default(field)
        }
    if isinstance(value, Mapping):
        return {key: plain(inside) for key, inside in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inside) for inside in value]
    if isinstance(value, Enum):
        return value.value
    return value.tolist() if hasattr(value, "tolist") else value


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


@cache
def _entries(shape: type) -> dict[str, tuple[Reader, bool]]:
    """Reader of each entry of a dataclass, and whether it is required."""
    hints, fields = _hints(shape), (field for field in dataclasses.fields(shape) if field.init)
    return {field.name: (_reader(hints[field.name]), _default(field) is dataclasses.MISSING) for field in fields}


@cache
def _hints(shape: type) -> dict[str, object]:
    hints = get_type_hints(shape)
    return {field.name: hints[field.name] for field in dataclasses.fields(shape)}


@cache
def _reader(hint: Any) -> Reader:
    """Reader of values of a type, built once per type."""
    if hint is Any or hint is object:
        return lambda value: value
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return lambda value: _shape(hint, value)
    kind, inside = get_origin(hint), get_args(hint)
    if kind in (Union, UnionType):
        return _choice(hint, inside)
    if kind in (tuple, list, Sequence):
        return _items(hint, list if kind is list else tuple, inside)
    if kind in (dict, Mapping):
        return _named_items(hint, _reader(inside[1]))
    if kind is Literal:
        return _checked(hint, lambda value: any(value == each and type(value) is type(each) for each in inside))
    if hint is int:
        return _checked(hint, _is_whole)
    if hint is float:
        return _checked(hint, lambda value: _is_whole(value) or (isinstance(value, float) and math.isfinite(value)))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _of_enumeration(hint)
    return _checked(hint, lambda value: isinstance(hint, type) and isinstance(value, hint))


def _checked(hint: Any, holds: Callable[[Any], bool]) -> Reader:
    def read(value: Any) -> Any:
        if not holds(value):
            raise DocumentMismatch("wrong", hint=hint)
        return value

    return read


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _of_enumeration(hint: type[Enum]) -> Reader:
    known = {each.value: each for each in hint if isinstance(each.value, str)}

    def read(value: Any) -> Any:
        if not isinstance(value, str) or value not in known:
            raise DocumentMismatch("wrong", hint=hint)
        return known[value]

    return read


def _items(hint: Any, kind: type[list[Any]] | type[tuple[Any, ...]], inside: tuple[Any, ...]) -> Reader:
    alike = len(inside) == 1 or inside[1:] == (...,)
    readers = [_reader(each) for each in (inside[:1] if alike else inside)]

    def read(value: Any) -> Any:
        if not isinstance(value, list | tuple) or (not alike and len(readers) != len(value)):
            raise DocumentMismatch("wrong", hint=hint)
        place = 0
        found = list(value)
        try:
            for place, item in enumerate(value):
                found[place] = readers[0 if alike else place](item)
        except DocumentMismatch as wrong:
            if wrong.path or wrong.problem != "wrong":
                raise wrong.within(place) from None
            raise DocumentMismatch("wrong", hint=hint) from None
        return found if kind is list else tuple(found)

    return read


def _named_items(hint: Any, item: Reader) -> Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise DocumentMismatch("wrong", hint=hint)
        return {key: item(each) for key, each in value.items()}

    return read


def _choice(hint: Any, inside: tuple[Any, ...]) -> Reader:
    optional = NoneType in inside
    readers = [_reader(each) for each in inside if each is not NoneType]

    def read(value: Any) -> Any:
        if optional and value is None:
            return None
        if len(readers) == 1:  # or None, which it is not: the error inside is reported
            return readers[0](value)
        for each in readers:
            try:
                return each(value)
            except DocumentMismatch:
                continue
        raise DocumentMismatch("wrong", hint=hint)

    return read


def _shape(shape: type, document: object) -> Any:
    if not isinstance(document, Mapping):
        raise DocumentMismatch("wrong", hint=shape)
    entries = _entries(shape)
    unknown = next((name for name in document if name not in entries), None)
    if unknown is not None:
        raise DocumentMismatch("unknown", (), str(unknown), shape)
    given = {}
    for name, (read, needed) in entries.items():
        if name in document:
            try:
                given[name] = read(document[name])
            except DocumentMismatch as wrong:
                raise wrong.within(name) from None
        elif needed:
            raise DocumentMismatch("missing", (), name, shape)
    return shape(**given)


def _named(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint).replace("typing.", "")


class _JsonForm(NamedTuple):
    separators: tuple[str, str] | None = None
    sort_keys: bool = False
    indent: int | None = None


_FORMS = {
    "line": _JsonForm(),
    "compact": _JsonForm((",", ":")),
    "canonical": _JsonForm((",", ":"), sort_keys=True),
    "pretty": _JsonForm(indent=2),
}


def write_json(
    document: Any, form: Literal["line", "compact", "canonical", "pretty"] = "line", *, escaped: bool = False
) -> str:
    """JSON of plain values, dates and dataclasses; numbers must be finite.

    The form is a line, one without spaces, one with sorted keys for a digest, or a file that a person reads, with a
    line break at its end. Characters beyond ASCII are kept unless they are to be ``escaped``.

    Examples
    --------
    >>> write_json({"b": (1, 2), "a": "é"}, "canonical")
    '{"a":"é","b":[1,2]}'
    """
    text = json.dumps(document, ensure_ascii=escaped, allow_nan=False, default=_plain, **_FORMS[form]._asdict())
    return text + "\n" if form == "pretty" else text


def _plain(value: Any) -> Any:
    known = value.isoformat() if hasattr(value, "isoformat") else plain(value)
    if known is value:
        raise TypeError(f"a {type(value).__name__} is no value of a document")
    return known


class Inline(dict[str, object]):
    """A table that is written on one line of TOML."""


class Lines(list[Any]):
    """A list that is written with one item per line of TOML."""


class CommentedValue:
    """A TOML value with comments above it."""

    def __init__(self, value: Any, note: str) -> None:
        self.value, self.note = value, note


def write_toml(document: Mapping[str, Any], note: str = "") -> str:
    r"""TOML of plain values, with comments; None is left out, because TOML has no null.

    Tables and lists of tables are sections and come last; values of `Inline`, `Lines` and `CommentedValue` are
    written as they say.
    The note stands at the top.

    Examples
    --------
    >>> content = {"a": CommentedValue(1, "first"), "b": {"c": [True, "x"], "d": Inline(e=0.5)}}
    >>> print(write_toml(content, "about"), end="")
    # about
    # first
    a = 1
    <BLANKLINE>
    [b]
    c = [true, "x"]
    d = {e = 0.5}
    """
    return "".join(f"{line}\n" for line in [*_comment(note), *_section(document, "", headed=True)])


def _section(table: Mapping[str, Any], path: str, *, headed: bool) -> Iterator[str]:
    """Lines of a table: header, values, then subsections."""
    entries = {key: value for key, value in table.items() if value is not None}
    sections = {key: value for key, value in entries.items() if _is_section(value)}
    if path and headed and (not sections or len(sections) < len(entries)):  # one of sections alone needs no header
        yield from ("", f"[{path}]")
    for key, value in entries.items():
        if key not in sections:
            note, value = (value.note, value.value) if isinstance(value, CommentedValue) else ("", value)
            yield from (*_comment(note), f"{_key(key)} = {toml_value(value)}")
    for key, value in sections.items():
        inside = f"{path}.{_key(key)}" if path else _key(key)
        if isinstance(value, Mapping):
            yield from _section(value, inside, headed=True)
            continue
        for each in value:
            yield from ("", f"[[{inside}]]")
            yield from _section(each, inside, headed=False)


def _is_section(value: Any) -> bool:
    if isinstance(value, list | tuple) and not isinstance(value, Lines):
        return len(value) > 0 and all(isinstance(each, Mapping) and not isinstance(each, Inline) for each in value)
    return isinstance(value, Mapping) and not isinstance(value, Inline)


def toml_value(value: Any) -> str:
    """One value as TOML writes it after the equals sign."""
    value = plain(value) if not isinstance(value, Mapping | list | tuple) else value
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int | float):
        return str(value)
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    if isinstance(value, Mapping):
        inside = (f"{_key(key)} = {toml_value(each)}" for key, each in value.items() if each is not None)
        return f"{{{', '.join(inside)}}}"
    if isinstance(value, list | tuple):
        items = [toml_value(each) for each in value]
        line = f"[{', '.join(items)}]"
        if len(line) <= _WIDEST and not isinstance(value, Lines):
            return line
        rows = items if isinstance(value, Lines) else _wrap_items(items)
        return "".join(["[\n", *(f"    {row},\n" for row in rows), "]"])
    raise TypeError(f"a {type(value).__name__} is no value of TOML")


def _wrap_items(items: Sequence[str]) -> Iterator[str]:
    """Items side by side, wrapped to the page width."""
    row = ""
    for item in items:
        if row and len(row) + len(item) + 2 > _WIDEST:
            yield row
            row = ""
        row = f"{row}, {item}" if row else item
    yield row


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("-", "0").replace("_", "0").isalnum()
    return name if bare else toml_value(name)


def _comment(note: str) -> Iterator[str]:
    """Comment lines, wrapped with indentation."""
    for line in note.splitlines():
        wide = len(line) > _WIDEST
        parts = wrap(line, _WIDEST, subsequent_indent=" " * 8, break_long_words=False) if wide else [line]
        yield from (f"# {part}" for part in parts)
