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
    PrivacyLeakWarning           it was done, and it discloses more than the caller may expect

Every message names a column or a count, never a cell, and ends with what to do.
"""

from __future__ import annotations

__all__ = [
    "BadInput",
    "LevelError",
    "OptionError",
    "PrivacyLeakWarning",
    "PrivacyRefusal",
    "SchemaError",
    "SfumatoError",
    "TableError",
    "TooFew",
]


class SfumatoError(Exception):
    """Anything this package raises on purpose."""

    exit_code = 1


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


class PrivacyLeakWarning(UserWarning):
    """The work was done and discloses more than the caller may expect."""
