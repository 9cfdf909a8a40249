"""What a database said, without anything that could be a cell or a password."""

from __future__ import annotations

import re

__all__ = ["without_cells"]

_USUAL = """
a aggregate all ambiguous an and appear argument arguments at authentication be by can cannot clause closed
column columns connect connection could database denied disk division does driver encrypted entry error exist
failed file for from from-clause function group has have host image in incomplete input invalid is key locked
lost malformed many match missing more must name near no not number of one only open operator or out parameter
password permission query read-only readonly referenced refused relation role schema server statement such
syntax table tables the time timed timeout to token too type unable unknown unrecognized used user value view
wrong you zero
"""
_WORDS = frozenset(_USUAL.split())
_TEXTS, _NAMES = re.compile(r"'[^']*'"), re.compile(r"[^\W\d]\w*(?:\.\w+)*")
_LEFT_OUT, _MOST_WORDS, _MOST_CHARACTERS = "...", 30, 2_000


def without_cells(said: str, query: str) -> str:
    """The first line of what a database said: words that databases usually say and names in the query, nothing else.

    Examples
    --------
    >>> without_cells("no such column: incme", "select incme from people")
    'no such column: incme'
    >>> without_cells('invalid input for type integer: "Ada"', "select age from people where name = 'Ada'")
    'invalid input for type ...'
    """
    asked = set(_NAMES.findall(_TEXTS.sub(" ", query.lower())))
    kept: list[str] = []
    for word in said.strip()[:_MOST_CHARACTERS].partition("\n")[0].split()[:_MOST_WORDS]:
        bare = word.strip("\"'`:;,.()[]").lower()
        known = bare in _WORDS or bare in asked
        if known or kept[-1:] != [_LEFT_OUT]:
            kept.append(word if known else _LEFT_OUT)
    return " ".join(kept) if any(word != _LEFT_OUT for word in kept) else ""
