"""The first words between parties: in what two differ, and what a stranger may make of them."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from sfumato.parties.connection import Hello, difference, digest_of, read_verdict, verdict

SETTINGS: dict[str, Any] = {"k": 5, "seed": None, "law": {"name": "laplace", "b": 0.2}}
HERE = Hello("1.0", "trial", "channel", 0, digest_of(SETTINGS), SETTINGS)


def there(**changed: Any) -> Hello:
    """Another party, with other settings or words."""
    settings = changed.get("settings", SETTINGS)
    digest = changed.get("digest", digest_of(settings or SETTINGS))
    return dataclasses.replace(HERE, rank=1, **{**changed, "digest": digest})


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (there(), None),
        (there(settings=None), None),
        (there(sfumato="1.1"), "speaks sfumato 1.1 and this party sfumato 1.0; install"),
        (there(protocol=2), "speaks protocol 2 and this party protocol 1; install"),
        (there(protocol=2, sfumato="1.1"), "speaks sfumato 1.1 and this party sfumato 1.0; install"),
        (there(run="other"), "is in the run 'other' and this party in 'trial'; name it alike"),
        (there(run="r" * 90), f"is in the run '{'r' * 59}... and this party"),
        (there(settings={**SETTINGS, "k": 6}), "has k = 6 and this party k = 5; agree on one"),
        (there(settings={**SETTINGS, "seed": 3}), "has seed = 3 and this party no seed; agree on one"),
        (there(settings={**SETTINGS, "law": {"name": "laplace"}}), "has no law.b and this party law.b = 0.2; agree"),
        (there(settings={**SETTINGS, "z": {"y": 1}}), "has z.y = 1 and this party no z.y; agree on one"),
        (there(settings={"k": 5, "law": SETTINGS["law"]}), "has other settings than this party; agree on them"),
        (there(settings=None, digest="0"), "has other settings than this party; agree on them"),
        (there(digest="0"), "has other settings than this party; agree on them"),
    ],
)
def test_a_party_is_told_in_what_another_differs(other: Hello, words: str | None) -> None:
    said = difference(HERE, other, "bank")
    assert said == words if words is None else f"party 'bank' {words}" in str(said)


def test_what_a_stranger_says_cannot_steer_a_terminal_or_fill_it() -> None:
    said = str(difference(HERE, there(sfumato="\x1b[2J" + "9" * 500), "bank"))
    assert said.isprintable()
    assert len(said) < 250
    said = str(difference(HERE, there(settings={**SETTINGS, "\x1b[2J" + "k" * 500: "v" * 500}), "bank"))
    assert said.isprintable()
    assert len(said) < 300


def test_a_greeting_of_a_later_protocol_may_say_more_and_none_says_less() -> None:
    told = json.loads(HERE.to_bytes())
    assert Hello.from_bytes(json.dumps({**told, "later": 1}).encode()) == HERE
    for name in told:
        less = {key: value for key, value in told.items() if key != name}
        with pytest.raises(ValueError, match="not a greeting"):
            Hello.from_bytes(json.dumps(less).encode())
    wrong: list[dict[str, Any]] = [
        {"rank": "0"},
        {"rank": True},
        {"kind": "other"},
        {"settings": []},
        {"protocol": None},
        {"run": 3},
    ]
    for entry in wrong:
        with pytest.raises(ValueError, match="not a greeting"):
            Hello.from_bytes(json.dumps({**told, **entry}).encode())
    for other in (b"[]", b"3", b"null", b"\xff", b""):
        with pytest.raises(ValueError, match="not a greeting"):
            Hello.from_bytes(other)


def test_the_digest_is_that_of_all_settings() -> None:
    assert digest_of(SETTINGS) == digest_of(dict(reversed(SETTINGS.items())))
    assert digest_of(SETTINGS) != digest_of({**SETTINGS, "k": 6})
    assert digest_of({"a": 1, "b": 2}) == "43258cff783fe7036d8a43033f830adfc60ec037382473548ac742b888292777"


def test_a_verdict_is_read_as_plain_words_of_bounded_length() -> None:
    assert read_verdict(verdict()) == ""
    assert read_verdict(verdict("other settings: é")) == "other settings: é"
    assert verdict("é").isascii()
    assert read_verdict(verdict("\x1b[2Jhe\nre" + "x" * 1000)) == " [2Jhe re" + "x" * 291
    for other in (b"", b"[]", b"{}", b'{"reason": 3}', b'{"other": ""}', b"\xff"):
        with pytest.raises(ValueError, match="not a verdict"):
            read_verdict(other)
