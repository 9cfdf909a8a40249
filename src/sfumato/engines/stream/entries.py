"""Entries of a stream's state: kind, key and bytes under one digest, which every commit carries on.

The digest is the sum of the entries' own SHA-256, so a commit costs what it changes and a reader checks the whole: an
entry that is lost, altered or of another moment shows. It detects damage; it is no protection from a forger.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import NamedTuple

from sfumato.core.documents import parse_json, write_json
from sfumato.core.errors import BadInput

__all__ = [
    "APPLICATION_ID",
    "FORMAT",
    "HEAD",
    "Head",
    "StateEntry",
    "StateError",
    "damaged",
    "entry_digest",
    "whole_number",
]

FORMAT = 1
"""Version of the form; a state of another one is refused."""

APPLICATION_ID = 0x53664D74
"""The mark of an SQLite file that is a stream's state."""

HEAD = ("head", "")
"""Kind and key of the entry that holds the digest of all others."""

_MODULUS = 1 << 256
_WHOLE = re.compile(r"-?[0-9]{1,18}")


class StateError(BadInput):
    """The state of a stream cannot be used."""


def damaged(name: str, why: str) -> StateError:
    """Error of a state that is not whole."""
    return StateError(f"the state {name!r} is damaged or only half copied ({why}); bring back a whole copy of it")


def whole_number(written: str | bytes) -> int:
    """Number that a key or an entry tells: a count, or a place in an order; raises StateError where it is none.

    Examples
    --------
    >>> whole_number("00000012"), whole_number(b"-1")
    (12, -1)
    """
    text = written.decode("ascii", "replace") if isinstance(written, bytes) else written
    if _WHOLE.fullmatch(text) is None:
        raise StateError("the state has something else where a number is due; bring back a whole copy of it")
    return int(text)


class StateEntry(NamedTuple):
    """One thing that is remembered."""

    kind: str
    key: str
    body: bytes


def entry_digest(entry: StateEntry) -> int:
    """Digest of an entry, for adding up."""
    head = f"{len(entry.kind)} {entry.kind} {len(entry.key)} {entry.key} ".encode()
    return int.from_bytes(hashlib.sha256(head + entry.body).digest(), "big")


@dataclass(frozen=True)
class Head:
    """The number of the last commit, the digest of all entries, and the chain of all digests before."""

    number: int
    digest: int
    chain: str

    def following(self, change: int) -> Head:
        """Head of the next commit, whose entries' digests add up to so much more."""
        digest = (self.digest + change) % _MODULUS
        chain = hashlib.sha256(f"{self.chain} {self.number + 1} {digest:064x}".encode()).hexdigest()
        return Head(self.number + 1, digest, chain)

    def to_entry(self) -> StateEntry:
        """Write the head, with a check of its own."""
        text = f"{FORMAT} {self.number} {self.digest:064x} {self.chain}"
        document = {"format": FORMAT, "number": self.number, "digest": f"{self.digest:064x}", "chain": self.chain}
        document["check"] = hashlib.sha256(text.encode()).hexdigest()
        return StateEntry(*HEAD, write_json(document).encode())

    @classmethod
    def from_body(cls, body: bytes, name: str) -> Head:
        """Read a head; raises StateError where it is of another format, or not what was written."""
        try:
            document = parse_json(body)
            if document["format"] != FORMAT:
                raise StateError(f"the state {name!r} is not of format {FORMAT}; use the version that wrote it")
            head = cls(int(document["number"]), int(document["digest"], 16), str(document["chain"]))
        except StateError:
            raise
        except (KeyError, TypeError, ValueError):
            raise damaged(name, "its head cannot be read") from None
        if head.to_entry().body != body:
            raise damaged(name, "its head was altered")
        return head
