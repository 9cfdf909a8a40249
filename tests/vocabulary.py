"""The vocabulary that everything a person reads keeps to: phrases that are not used, and the length of sentences."""

from __future__ import annotations

import re

__all__ = ["NOT_USED", "phrases_not_used", "sentences", "words"]

NOT_USED = (
    # risks and attacks
    "accused of",
    "beyond others",
    "cell read by who knows",
    "descriptions that fit one person",
    "in the table or not",
    "linked to a row",
    "outsiders know",
    "people held out",
    "people of whom nothing is in it",
    "people outside",
    "price of being in the table",
    "what guessing gives",
    "what it tells",
    "who is who",
    # values, groups and rows
    "as any of these asked for",
    "crowd",
    "drawn afresh",
    "drawn anew",
    "holders",
    "made anew",
    "once tails are coded",
    "outreached",
    "people hold",
    "persons hold",
    "records hold",
    "trees that copy",
    # verdicts
    "as far as this policy goes",
    "cannot be told",
    "handed over",
    "it may be 0 to",
    "may be chance",
    "surely",
    # style
    "be told",
    "beside each other",
    "by whoever",
    "comes on top",
    "from whoever",
    "is told",
    "may be said",
    "mend it",
    "must not be said",
    "nobody else's",
    "save in",
    "save what",
    "says nothing of",
    "somebody",
    "told too much",
    "to whoever",
)
"""Phrases of a home-made idiom, in lower case; the terms of the field are used instead."""

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


def phrases_not_used(text: str) -> list[str]:
    """Phrases of a text that the vocabulary replaces, outside names in quotes."""
    plain = _without_names(text).lower()
    return [phrase for phrase in NOT_USED if re.search(rf"\b{re.escape(phrase)}\b", plain)]
