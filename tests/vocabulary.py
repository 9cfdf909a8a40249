"""The vocabulary that everything a person reads keeps to: phrases that are not used, and the length of sentences."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["NAMES_NOT_USED", "NOT_USED", "phrases_in", "phrases_not_used", "sentences", "words"]


def _listed(text: str) -> dict[str, str]:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {phrase: term for phrase, _, term in (line.partition(" | ") for line in lines)}


_PHRASES, _NAMES = Path(__file__).with_suffix(".txt").read_text("utf-8").split("[names]\n")

NOT_USED = _listed(_PHRASES)
"""Phrases of a home-made idiom, in lower case, each with the words of the field that replace it."""

NAMES_NOT_USED = _listed(_NAMES)
"""Identifiers that are not used, each with the names that replace it."""

_ANY_PHRASE = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(NOT_USED, key=len, reverse=True)))})\b")
_QUOTED = re.compile(r"""(?<!\w)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?!\w)""")
"""Names in quotes, as `repr` writes them."""

_REFERENCE = re.compile(r"\[[^\]]*\]|\(errata [^)]*\)")
_END = re.compile(r"[.!?] (?=[A-Z\d])")


def _without_names(text: str) -> str:
    return _QUOTED.sub("NAME", text)


def words(text: str) -> int:
    """How many words a text has; a name in quotes is one."""
    return len(_without_names(text).split())


def sentences(text: str) -> list[str]:
    """The sentences of a text, with a name in quotes and a reference as one word."""
    return _END.split(_REFERENCE.sub("REFERENCE", _without_names(text)))


def phrases_in(text: str) -> list[str]:
    """Phrases of a text that the vocabulary replaces, across line breaks, sorted."""
    return sorted({found[0] for found in _ANY_PHRASE.finditer(" ".join(text.lower().split()))})


def phrases_not_used(text: str) -> list[str]:
    """Phrases of a text that the vocabulary replaces, outside names in quotes."""
    return phrases_in(_without_names(text))
