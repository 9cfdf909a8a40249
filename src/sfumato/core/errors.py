"""The exception hierarchy, and messages that name options and columns safely.

::

    SfumatoError                 anything this package raises on purpose
    +-- BadInput                 the caller's table, schema or options cannot be used (exit code 2)
    |   +-- TableError           the file or frame itself
    |   +-- SchemaError          a column against its declared kind, role or domain
    |   +-- LevelError           privacy levels that are missing, malformed or infeasible
    |   +-- OptionError          an option that names something unknown or contradicts another
    +-- PrivacyRefusal           a rule of the house stopped it (exit code 3)
    +-- TooFew                   too few records for their noise: it would be guesswork (exit code 3)
    +-- DoesNotFit               values that do not look like what their noise makes (exit code 3, where asked for)
    Notice                       it was done, and the caller should know something of it
    +-- PrivacyLeakWarning       it discloses more than the caller may expect

Every message names a column or a count, never a cell, and ends with what to do. It names options as the command line
spells them; outside the command line they are shown as arguments of Python, by `spelled`.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from types import MappingProxyType
from typing import Any

__all__ = [
    "BadInput",
    "DoesNotFit",
    "LevelError",
    "Notice",
    "OptionError",
    "PrivacyLeakWarning",
    "PrivacyRefusal",
    "SchemaError",
    "SfumatoError",
    "TableError",
    "TooFew",
    "closest_name",
    "no_column",
    "printable",
    "shown",
    "spelled",
    "with_options",
]

_LONGEST, _LONGEST_MESSAGE = 200, 1_000


class SfumatoError(Exception):
    """Base class of all errors that this package raises on purpose."""

    exit_code = 1

    def __str__(self) -> str:
        """Message in one piece; one that a very long name made long is cut in its middle."""
        text = spelled(super().__str__())
        half = _LONGEST_MESSAGE // 2
        return text if len(text) <= _LONGEST_MESSAGE else f"{text[:half]} ... {text[-half:]}"


class BadInput(SfumatoError, ValueError):
    """The caller's table, schema or options cannot be used."""

    exit_code = 2


class TableError(BadInput):
    """The file or frame cannot be read as a table; ``proposed`` holds options that may help, by name."""

    proposed: Mapping[str, Any] = MappingProxyType({})

    def propose(self, **options: Any) -> TableError:
        """The error with options that may help to read the file."""
        self.proposed = options
        return self


class SchemaError(BadInput):
    """A column does not fit its kind, role or domain."""


class LevelError(BadInput):
    """Privacy levels are missing, malformed or cannot be met."""


class OptionError(BadInput):
    """An option has an unknown value or contradicts another option."""


class PrivacyRefusal(SfumatoError):
    """A privacy rule forbids the operation."""

    exit_code = 3


class TooFew(SfumatoError):
    """There are too few records for the noise in them to estimate anything."""

    exit_code = 3


class DoesNotFit(SfumatoError):
    """Randomized values cannot come from the stated noise distribution."""

    exit_code = 3


class Notice(UserWarning):
    """The work was done, and the caller should know something about it; options are named as in errors."""

    def __str__(self) -> str:
        """Message with the options that it names spelled for its reader."""
        return spelled(super().__str__())


class PrivacyLeakWarning(Notice):
    """The work was done and discloses more than the caller may expect."""


_labels: ContextVar[Mapping[str, str] | None] = ContextVar("labels", default=None)
"""How options are shown: by these labels and else as the command line spells them; None: as arguments of Python."""

_FLAGS = frozenset({
    "allow-http", "allow-level-1", "allow-observed", "correlated", "despite-policy", "exact-digits", "keep-persons",
    "no-rules", "overwrite", "pass-categories", "pass-missing", "replace", "rows-are-people", "spreadsheet-safe",
    "strict",
})  # fmt: skip
_ARGUMENTS = {
    "format": "form",
    "identifier": "identifiers",
    "no-report": "report=False",
    "no-sign": "sign=False",
    "noise": "kind",
    "spec": "specs",
}
"""Arguments whose names are not those of their options."""

_WORDS = frozenset({
    "chain", "classwise", "code", "condense", "csv", "encrypted", "itemsets", "keep", "leaves", "lift",
    "likeness", "mac-roman", "memory", "partitions", "pool", "randomize", "smooth", "strict",
})  # fmt: skip
"""Words that stand as values after options in messages; numbers, names in quotes and in capitals do too."""

_OPTION = re.compile(
    r"""(?P<command>'sfumato\ [^']*')
    | (?<![\w'"-])--(?P<name>[a-z][a-z0-9-]*)
      (?:\ (?:(?P<size>\d+[KMG]\b) | (?P<number>[+-]?\d+(?:\.\d+)?)(?![\w.]*\w) | (?P<quoted>'[^']*')
        | (?P<pair>[A-Z]+=\w+) | (?P<place>[A-Z][A-Z|]+\b) | (?P<word>[a-z][a-z0-9-]*)(?![\w-])
        | (?P<mark>[.,])(?=\ |$)))?""",
    re.VERBOSE,
)


@contextmanager
def with_options(labels: Mapping[str, str] | None = None) -> Iterator[None]:
    """Context in which messages name options as the command line or a web page does."""
    before = _labels.set(labels or {})
    try:
        yield
    finally:
        _labels.reset(before)


def spelled(text: str) -> str:
    """A message with its options spelled for the reader: as arguments, or as on the command line.

    Examples
    --------
    >>> spelled("give --header-row 3, or --rare pool, or drop --sheet")
    "give header_row=3, or rare='pool', or drop sheet="
    >>> with with_options():
    ...     spelled("give --header-row 3")
    'give --header-row 3'
    """
    labels = _labels.get()
    return _OPTION.sub(_argument if labels is None else partial(_labelled, labels), text)


def _labelled(labels: Mapping[str, str], found: re.Match[str]) -> str:
    label = labels.get(found["name"] or "")
    return found[0] if label is None else f"'{label}'{found[0][len(found['name']) + 2 :]}"


def _argument(found: re.Match[str]) -> str:
    name = found["name"]
    if name is None:
        return found[0]
    operand = found[0].partition(" ")[2]
    argument = _ARGUMENTS.get(name, name.replace("-", "_")) + ("=True" if name in _FLAGS else "")
    argument += "" if "=" in argument else "="
    if not operand or argument[-1] != "=":
        return f"{argument} {operand}".rstrip()
    if found["pair"]:
        column, _, value = operand.partition("=")
        return f"{argument}[({column}, {value})]"
    if found["number"] or found["quoted"] or found["place"]:
        return f"{argument}{operand}"
    is_value = found["size"] or found["mark"] or operand in _WORDS or any(mark.isdigit() for mark in operand)
    return f"{argument}{operand!r}" if is_value else f"{argument} {operand}"


def printable(text: str, *, lines: bool = False) -> str:
    r"""Escape characters that could control a terminal: control codes, direction overrides, surrogates.

    Parameters
    ----------
    text : str
    lines : bool
        Whether line ends stay.

    Examples
    --------
    >>> printable("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    if text.isprintable():
        return text
    return "".join(
        mark
        if mark.isprintable() or unicodedata.category(mark) == "Zs" or (lines and mark == "\n")
        else mark.encode("unicode_escape").decode("ascii")
        for mark in text
    )


def shown(name: Any) -> str:
    r"""Quote a foreign name for a message: on one line, truncated if too long.

    Examples
    --------
    >>> print(shown("a\nb"), len(shown("x" * 100_000)))
    'a\nb' 105
    """
    text = str(name)
    quarter = _LONGEST // 4
    return repr(text if len(text) <= _LONGEST else f"{text[:quarter]}...{text[-quarter:]}")


def closest_name(name: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant, ignoring case; None if none is close.

    Examples
    --------
    >>> closest_name("Incme", ["age", "income"]), closest_name("x", ["age", "income"])
    ('income', None)
    """
    plain = {each.lower(): each for each in names}
    near = difflib.get_close_matches(name.lower(), plain, n=1, cutoff=0.65)
    return plain[near[0]] if near else None


def no_column(name: str, names: Iterable[str]) -> str:
    """Message for an unknown column, with the closest name or the list of columns."""
    known = list(names)
    meant = closest_name(name, known)
    hint = f"did you mean {shown(meant)}?" if meant is not None else f"the columns are {', '.join(map(shown, known))}"
    return f"there is no column {shown(name)}; {hint}"
