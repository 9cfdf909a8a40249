"""Small documents: the one place where JSON and TOML are read, typed and written.

Whatever lies in a folder that somebody sent is hostile until it is parsed. Size, depth, numbers, entries and their
types are bounded here; what a document means is its reader's business.
"""

from __future__ import annotations

from sfumato.core.documents.parsing import (
    DEEPEST,
    MOST_BYTES,
    Unparsable,
    open_regular,
    parse_json,
    parse_toml,
    read_bytes,
    read_text,
    toml_entries,
)
from sfumato.core.documents.shapes import UNLESS_DEFAULT, Misfit, fits, from_json, plain, typed
from sfumato.core.documents.writing import Inline, Lines, Noted, toml_value, write_json, write_toml

__all__ = [
    "DEEPEST",
    "MOST_BYTES",
    "UNLESS_DEFAULT",
    "Inline",
    "Lines",
    "Misfit",
    "Noted",
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
