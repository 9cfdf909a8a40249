"""The greeting of two parties: name, rank and settings of the run; any difference is named."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sfumato.core.documents import Unparsable, from_json, parse_json, typed, write_json
from sfumato.core.errors import printable
from sfumato.parties.channel import PartyError

__all__ = ["Hello", "PartyMismatch", "Purpose", "difference", "digest_of", "read_verdict", "verdict"]

_PROTOCOL = 1
"""Version of the protocol between parties; those who speak another are refused."""

_SHOWN = 60
_MOST_WORDS = 300

Purpose = Literal["channel", "engine"]
"""Purpose of a connection."""


class PartyMismatch(PartyError):
    """Two parties have different settings of the run, or one has another identity; nothing is written."""

    exit_code = 2


@dataclass(frozen=True)
class Hello:
    """First message of a party."""

    sfumato: str  # version of the package
    run: str  # name of the run
    kind: Purpose  # {"channel", "engine"}: what the connection is for
    rank: int
    digest: str  # SHA-256 of the settings
    settings: Mapping[str, Any] | None = None  # the settings themselves, on a channel
    protocol: int = _PROTOCOL

    def to_bytes(self) -> bytes:
        """Write it for the stream."""
        return write_json(self).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Hello:
        """Read it; a later protocol may say more, which is passed over.

        Raises
        ------
        ValueError
            If it is no greeting.
        """
        try:
            fields = parse_json(data)  # of one frame
            return typed(cls, {name: fields[name] for name in cls.__dataclass_fields__})
        except (Unparsable, KeyError, TypeError):
            raise ValueError("not a greeting") from None


def digest_of(settings: Mapping[str, Any]) -> str:
    """SHA-256 of settings, whatever the order of their keys."""
    text = write_json(settings, "canonical")
    return hashlib.sha256(text.encode()).hexdigest()


def difference(mine: Hello, theirs: Hello, name: str) -> str | None:
    """First difference between a party and this one, as a sentence; None if there is none.

    Examples
    --------
    >>> here = Hello("0.2.0", "trial", "channel", 0, "", {"k": 5})
    >>> difference(here, Hello("0.2.0", "trial", "channel", 1, "x", {"k": 6}), "bank")
    "party 'bank' has k = 6 and this party k = 5; agree on one and start all parties again"
    """
    if mine.protocol != theirs.protocol or mine.sfumato != theirs.sfumato:
        them, us = f"sfumato {_plain(theirs.sfumato)}", f"sfumato {mine.sfumato}"
        if mine.sfumato == theirs.sfumato:
            them, us = f"protocol {theirs.protocol}", f"protocol {mine.protocol}"
        return f"party {name!r} speaks {them} and this party {us}; install the same version at all parties"
    if mine.run != theirs.run:
        return f"party {name!r} is in the run {_brief(theirs.run)} and this party in {_brief(mine.run)}; name it alike"
    if mine.digest == theirs.digest:
        return None
    if mine.settings is None or theirs.settings is None:
        return f"party {name!r} has other settings than this party; agree on them and start all parties again"
    ours, other = dict(_flat(mine.settings)), dict(_flat(theirs.settings))
    for key in (*ours, *other):
        if ours.get(key) != other.get(key):
            return (
                f"party {name!r} has {_said(key, other)} and this party {_said(key, ours)}; agree on one and start "
                "all parties again"
            )
    return f"party {name!r} has other settings than this party; agree on them and start all parties again"


def verdict(reason: str = "") -> bytes:
    """Message to a caller: why it is refused, or an empty reason."""
    return write_json({"reason": reason}, escaped=True).encode()


def read_verdict(payload: bytes) -> str:
    """Reason why this party is refused; empty if it is not.

    Raises
    ------
    ValueError
        If it is no verdict.
    """
    try:
        reason = from_json(dict[str, str], payload)["reason"]
    except (Unparsable, KeyError):
        raise ValueError("not a verdict") from None
    return "".join(sign if sign.isprintable() else " " for sign in reason)[:_MOST_WORDS]


def _flat(settings: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """List settings by their dotted names, in their order."""
    found: list[tuple[str, Any]] = []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{before}{key}.")
        else:
            found.append((f"{before}{key}", value))
    return found


def _said(key: str, settings: Mapping[str, Any]) -> str:
    value = settings.get(key)
    return f"no {_plain(key)}" if value is None else f"{_plain(key)} = {_brief(value)}"


def _plain(text: str) -> str:
    """Text of a peer, shortened and without control characters."""
    return printable(text[:_SHOWN])


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
