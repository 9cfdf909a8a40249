"""Ports that nobody else takes between the asking and the listening."""

from __future__ import annotations

import itertools
import random
import socket

# Below the ports that systems hand out on request, so that no connection of another test gets one.
_LOWEST, _COUNT = 15_000, 15_000
_next = itertools.count(random.SystemRandom().randrange(_COUNT))


def free_port() -> int:
    """A port of this machine that is free, another one at every call."""
    for number in itertools.islice(_next, _COUNT):
        port = _LOWEST + number % _COUNT
        with socket.socket() as found:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                found.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise OSError("no port is free")
