"""What another party says is read within bounds, whichever reader it goes to: what is off is refused in a sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from sfumato.core.documents import MOST_BYTES
from sfumato.parties.channel import PartyError
from sfumato.parties.connection import Hello, _reason, read_verdict
from sfumato.parties.folder import _differing
from sfumato.parties.part import _document
from sfumato.parties.vertical import _read

WRITTEN = {"table.csv": "0" * 64}
GREETING = Hello("0.2.0", "trial", "channel", 1, "00", {"k": 5})
HONEST: dict[str, dict[str, Any]] = {
    "greeting": GREETING.__dict__,
    "verdict": {"reason": "no"},
    "reason": {"reason": "no", "code": 2},
    "agreement": {"version": "0.2.0", "plan": "00", "format": "csv ,", "schema": "", "dropped": ["name"], "empty": []},
    "columns": {"columns": [["age", "number", 1]], "rows": 5},
    "written": dict(WRITTEN),
}
READERS: dict[str, Callable[[bytes], object]] = {
    "greeting": Hello.from_bytes,
    "verdict": read_verdict,
    "reason": _reason,
    "agreement": lambda data: _document(data, "shop"),
    "columns": lambda data: _read(data, "shop"),
    "written": lambda data: _differing(data, WRITTEN),
}
REFUSED: dict[str, object] = {"reason": ("it did not say why", 1), "written": "release"}
"""What readers give where they do not raise."""

SPOILT: dict[str, Callable[[str], str]] = {
    "a key twice": lambda text: text.replace("{", '{"more": 1, "more": 2, ', 1),
    "no number": lambda text: text.replace("{", '{"more": NaN, ', 1),
    "beyond floats": lambda text: text.replace("{", '{"more": 1e999, ', 1),
    "half a character": lambda text: text.replace("{", '{"more": "\\ud800", ', 1),
    "too deep": lambda text: text.replace("{", '{"more": ' + "[" * 40 + "]" * 40 + ", ", 1),
    "far too deep": lambda text: text.replace("{", '{"more": ' + "[" * 100_000 + "]" * 100_000 + ", ", 1),
    "no JSON": lambda text: text[:-1],
}
WHOLE_MESSAGES = ("agreement", "columns", "written")  # the others come in one frame


def outcome(reader: str, data: bytes) -> object:
    try:
        return READERS[reader](data)
    except (PartyError, ValueError) as error:
        return type(error)


@pytest.mark.parametrize("reader", READERS)
def test_honest_words_are_read(reader: str) -> None:
    got = outcome(reader, json.dumps(HONEST[reader]).encode())
    assert got not in (PartyError, ValueError, REFUSED.get(reader, 0))


@pytest.mark.parametrize("how", SPOILT)
@pytest.mark.parametrize("reader", READERS)
def test_words_that_are_off_are_refused(reader: str, how: str) -> None:
    got = outcome(reader, SPOILT[how](json.dumps(HONEST[reader])).encode())
    assert got in (PartyError, ValueError) if reader not in REFUSED else got == REFUSED[reader]


@pytest.mark.parametrize("reader", WHOLE_MESSAGES)
def test_words_without_end_are_refused_before_they_are_parsed(reader: str) -> None:
    got = outcome(reader, json.dumps(HONEST[reader]).encode() + b" " * MOST_BYTES)
    assert got is PartyError if reader not in REFUSED else got == REFUSED[reader]


def test_dropped_columns_are_named_by_text() -> None:
    with pytest.raises(PartyError, match="sent something else than its columns"):
        _document(json.dumps(HONEST["agreement"] | {"dropped": [["name"]]}).encode(), "shop")


def test_no_name_of_another_partys_files_is_repeated() -> None:
    assert _differing(json.dumps({**WRITTEN, "\x1b[2J": ""}).encode(), WRITTEN) == "release"
    assert _differing(json.dumps({"table.csv": ""}).encode(), WRITTEN) == "table.csv"
    assert _differing(json.dumps(WRITTEN).encode(), WRITTEN) is None
