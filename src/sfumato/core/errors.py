"""The tree of errors.

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
    PrivacyLeakWarning           it was done, and it discloses more than the caller may expect

Every message names a column or a count, never a cell, and ends with what to do.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable
from typing import Any

__all__ = [
    "BadInput",
    "DoesNotFit",
    "LevelError",
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
]

_LONGEST, _LONGEST_MESSAGE = 200, 1_000


class SfumatoError(Exception):
    """Anything this package raises on purpose."""

    exit_code = 1
    in_python: str | None = None
    """Message with the names of Python arguments, if a function of the package was called from Python."""

    @property
    def on_command_line(self) -> str:
        """Message with the names of command-line options; a message that is too long is cut in its middle."""
        return _cut(super().__str__())

    def __str__(self) -> str:
        """Message with the names that the caller knows."""
        return self.on_command_line if self.in_python is None else _cut(self.in_python)


class BadInput(SfumatoError, ValueError):
    """The caller's table, schema or options cannot be used."""

    exit_code = 2


class TableError(BadInput):
    """The file or frame itself cannot be read as a table."""


class SchemaError(BadInput):
    """A column does not fit its kind, role or domain."""


class LevelError(BadInput):
    """Privacy levels are missing, malformed or cannot be met."""


class OptionError(BadInput):
    """An option names something unknown or contradicts another."""


class PrivacyRefusal(SfumatoError):
    """A rule of the house stopped the work."""

    exit_code = 3


class TooFew(SfumatoError):
    """There are too few records for the noise in them; an answer would be guesswork."""

    exit_code = 3


class DoesNotFit(SfumatoError):
    """Randomized values do not look like anything that the law they are read by can have made."""

    exit_code = 3


class PrivacyLeakWarning(UserWarning):
    """The work was done and discloses more than the caller may expect."""


def _cut(text: str) -> str:
    half = _LONGEST_MESSAGE // 2
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:half]} ... {text[-half:]}"


def printable(text: str, *, lines: bool = False) -> str:
    r"""Write out what could steer a terminal: controls, overrides of direction, half characters.

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
    r"""Quote a name from outside for a sentence: on one line, cut where it is overlong.

    Examples
    --------
    >>> print(shown("a\nb"), len(shown("x" * 100_000)))
    'a\nb' 105
    """
    text = str(name)
    quarter = _LONGEST // 4
    return repr(text if len(text) <= _LONGEST else f"{text[:quarter]}...{text[-quarter:]}")


def closest_name(name: str, names: Iterable[str]) -> str | None:
    """The one of the names that was probably meant, whatever its case; None where none is near.

    Examples
    --------
    >>> closest_name("Incme", ["age", "income"]), closest_name("x", ["age", "income"])
    ('income', None)
    """
    plain = {each.lower(): each for each in names}
    near = difflib.get_close_matches(name.lower(), plain, n=1, cutoff=0.65)
    return plain[near[0]] if near else None


def no_column(name: str, names: Iterable[str]) -> str:
    """Say that there is no such column, and which was probably meant, or which there are."""
    known = list(names)
    meant = closest_name(name, known)
    told = f"did you mean {shown(meant)}?" if meant is not None else f"the columns are {', '.join(map(shown, known))}"
    return f"there is no column {shown(name)}; {told}"
