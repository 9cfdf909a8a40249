"""Where a party sits: its rank, its address, how to reach the others and how long to wait for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.errors import OptionError
from sfumato.parties.certificates import Identity

__all__ = ["Address", "Peer", "Place", "check_name"]

_MOST_PORT = 65535
_NAME = re.compile(r"[^\W_][\w.-]{0,63}")


@dataclass(frozen=True)
class Address:
    """A host and a port.

    Examples
    --------
    >>> Address.parse("[::1]:7001"), str(Address.parse("bank.example:7001"))
    (Address(host='::1', port=7001), 'bank.example:7001')
    """

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read ``HOST:PORT``."""
        host, colon, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not colon or not host or not port.isdecimal() or not 1 <= int(port) <= _MOST_PORT:
            raise OptionError(f"{text!r} is not an address; write HOST:PORT with a port from 1 to {_MOST_PORT}")
        return cls(host, int(port))


@dataclass(frozen=True)
class Peer:
    """A party as the others know it.

    Parameters
    ----------
    address : Address
        Where others reach it.
    fingerprint : str
        SHA-256 of its certificate, in hexadecimal.
    """

    name: str
    address: Address
    fingerprint: str


@dataclass(frozen=True)
class Place:
    """All that the network of a party needs to know.

    Parameters
    ----------
    rank : int
        Which of the parties this one is.
    peers : tuple of Peer
        All parties, in the order of their ranks.
    run : str
        Name of the run.
    listen : Address
        Where this party waits for others.
    settings : mapping
        What all parties must agree on, as plain values.
    version : str
        Of the package, the same at all parties.
    timeout : float
        Seconds of silence after which a party is taken for gone.
    wait : float
        Seconds to wait for all parties at the start.
    step : float
        Seconds to wait at most for any one message of a party that gives signs of life.
    """

    rank: int
    peers: tuple[Peer, ...]
    run: str
    identity: Identity
    listen: Address
    settings: Mapping[str, Any]
    version: str
    timeout: float = 60.0
    wait: float = 60.0
    step: float = 1800.0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parties."""
        return tuple(peer.name for peer in self.peers)


def check_name(name: str) -> None:
    """Refuse a name of a party that could not be the name of a folder too."""
    if not _NAME.fullmatch(name):
        raise OptionError(f"{name!r} is no name of a party; use letters, digits, '.', '_' and '-'")
