"""Plain values, and dataclasses as such, written as JSON and TOML: the same values give the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from sfumato.core.documents.shapes import plain

__all__ = ["Inline", "Lines", "Noted", "toml_value", "write_json", "write_toml"]

_FORMS: dict[str, dict[str, Any]] = {
    "line": {},
    "compact": {"separators": (",", ":")},
    "canonical": {"separators": (",", ":"), "sort_keys": True},
    "pretty": {"indent": 2},
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
    text = json.dumps(document, ensure_ascii=escaped, allow_nan=False, default=_plain, **_FORMS[form])
    return text + "\n" if form == "pretty" else text


def _plain(value: Any) -> Any:
    known = value.isoformat() if hasattr(value, "isoformat") else plain(value)
    if known is value:
        raise TypeError(f"a {type(value).__name__} is no value of a document")
    return known


class Inline(dict[str, Any]):
    """A table that TOML has on one line."""


class Lines(list[Any]):
    """A list that TOML has one item a line."""


class Noted:
    """A value of TOML with comments above it."""

    def __init__(self, value: Any, note: str) -> None:
        self.value, self.note = value, note


def write_toml(document: Mapping[str, Any], note: str = "") -> str:
    r"""TOML of plain values, with comments; what is None is left out, for TOML has no null.

    Tables and lists of tables are sections and come last; values of `Inline`, `Lines` and `Noted` say otherwise.
    The note stands at the top.

    Examples
    --------
    >>> print(write_toml({"a": Noted(1, "first"), "b": {"c": [True, "x"], "d": Inline(e=0.5)}}, "about"), end="")
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
    """Lines of a table: its header, its values, then its sections."""
    told = {key: value for key, value in table.items() if value is not None}
    sections = {key: value for key, value in told.items() if _is_section(value)}
    if path and headed and (not sections or len(sections) < len(told)):  # one of sections alone needs no header
        yield from ("", f"[{path}]")
    for key, value in told.items():
        if key not in sections:
            note, value = (value.note, value.value) if isinstance(value, Noted) else ("", value)
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
    """One value as TOML has it after the equals sign."""
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
        if isinstance(value, Lines):
            return "".join(["[\n", *(f"    {item},\n" for item in items), "]"])
        return f"[{', '.join(items)}]"
    raise TypeError(f"a {type(value).__name__} is no value of TOML")


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("-", "0").replace("_", "0").isalnum()
    return name if bare else toml_value(name)


def _comment(note: str) -> Iterator[str]:
    return (f"# {line}" for line in note.splitlines())
