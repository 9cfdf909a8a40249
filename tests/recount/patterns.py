"""Sentences of a certificate as patterns with named numbers, and what to count for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.recount.evidence import Evidence

__all__ = ["Entry", "Parts", "Recount", "beyond", "caution", "counted", "differs", "phrase", "uncountable"]

Parts = dict[str, str]
"""The named parts of a sentence and of what stands behind it."""

Recount = Callable[[Evidence, Parts], Iterator[str]]
"""Counts what a sentence tells and yields a complaint for whatever is not so."""

_FORMS = {
    "": r"\d+",
    "number": r"-?\d[\d.]*(?:e[+-]?\d+)?",
    "names": r"'[^']*'(?:, '[^']*')*",
    "name": r"[^']+",
    "text": r".*?",
}
_TOKEN = re.compile(r"<(\w+):?(\w*)>|\{([^{}]*)\}|(\[\[)|(\]\])")


def _compiled(template: str) -> re.Pattern[str]:
    """Read a template: ``<n>`` a whole number, ``<x:number>`` any, ``{a|b}`` either, ``[[...]]`` perhaps."""
    pattern, place = "", 0
    for token in _TOKEN.finditer(template):
        pattern += re.escape(template[place : token.start()])
        name, form, either, begin, _ = token.groups()
        if name is not None:
            pattern += f"(?P<{name}>{_FORMS[form]})"
        elif either is not None:
            pattern += "(?:" + "|".join(map(re.escape, either.split("|"))) + ")"
        else:
            pattern += "(?:" if begin else ")?"
        place = token.end()
    return re.compile(pattern + re.escape(template[place:]), re.DOTALL)


@dataclass(frozen=True)
class Entry:
    """A form of sentence: its words, the words behind it (basis, or why not), and its recount or why there is none."""

    sentence: str
    behind: str
    recount: Recount | None = None
    why_not: str = ""
    patterns: tuple[re.Pattern[str], re.Pattern[str]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "patterns", (_compiled(self.sentence), _compiled(self.behind)))

    def read(self, sentence: str, behind: str) -> Parts | None:
        """The named parts, or None if these are other words."""
        first, second = (
            pattern.fullmatch(text) for pattern, text in zip(self.patterns, (sentence, behind), strict=True)
        )
        if first is None or second is None:
            return None
        parts = first.groupdict() | second.groupdict()
        return {name: text for name, text in parts.items() if text is not None}


def phrase(template: str) -> re.Pattern[str]:
    """Words with named parts, as a pattern of the whole."""
    return _compiled(template)


def counted(sentence: str, behind: str, recount: Recount) -> Entry:
    """A sentence with something to count."""
    return Entry(sentence, behind, recount)


def caution(sentence: str, behind: str) -> Entry:
    """A general caution: it promises nothing, and no number of this table stands in it."""
    entry = Entry(sentence, behind)
    if any(pattern.groups for pattern in entry.patterns):
        raise ValueError(f"a caution tells no number; count what this one tells: {sentence}")
    return entry


def uncountable(sentence: str, behind: str, why_not: str) -> Entry:
    """A sentence that original and release cannot show to be true, and the reason."""
    return Entry(sentence, behind, None, why_not)


def differs(what: str, stated: Any, counted: Any) -> Iterator[str]:
    """A complaint if a number is not the counted one."""
    if stated != counted:
        yield f"{what}: {stated} is stated, {counted} counted"


def beyond(what: str, stated: float, low: float, high: float) -> Iterator[str]:
    """A complaint if a number lies outside what is possible."""
    if not low <= stated <= high:
        yield f"{what}: {stated} is stated, between {low} and {high} are possible"
