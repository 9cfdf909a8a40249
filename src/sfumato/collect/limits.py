"""Limits of a collector: what it is told, and a bucket for each client that fills at a rate."""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

__all__ = ["AT_LEAST", "CollectorSettings", "RateLimit", "network_of"]

AT_LEAST = 50
"""Answers from which on figures are shown."""

_MOST = 100_000  # clients that are remembered; beyond, those not seen for longest begin anew


@dataclass(frozen=True)
class CollectorSettings:
    """Limits of a collector."""

    password: str = field(repr=False)  # of the dashboard
    rate: float = 20.0  # requests with answers or passwords that one address may send, a second; 0 is no limit
    most_bytes: int = 16_384  # of a body
    at_least: int = AT_LEAST  # answers from which on the dashboard shows figures
    connections: int = 1_000  # that one address may hold open at once
    names: frozenset[str] = frozenset()  # names that requests may ask for; none is any


class RateLimit:
    """At most ``burst`` requests at once and ``rate`` a second after that, for each client. A rate of 0 is no limit.

    Examples
    --------
    >>> limit = RateLimit(rate=1.0, burst=2, clock=lambda: 0.0)
    >>> [limit.wait_for("a"), limit.wait_for("a"), limit.wait_for("a"), limit.wait_for("b")]
    [0.0, 0.0, 1.0, 0.0]
    """

    def __init__(self, rate: float, burst: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._full_at: OrderedDict[Hashable, float] = OrderedDict()  # when each bucket will be full again

    def wait_for(self, client: Hashable) -> float:
        """Count a request: 0, or the seconds after which the next one will be let through."""
        if self._rate <= 0:
            return 0.0
        wait, full_at = self._next(client)
        self._full_at.pop(client, None)
        self._full_at[client] = full_at if wait == 0.0 else full_at - 1.0 / self._rate
        if len(self._full_at) > _MOST:
            self._full_at.popitem(last=False)
        return wait

    def would_wait(self, client: Hashable) -> float:
        """What `wait_for` would give, without counting."""
        return self._next(client)[0] if self._rate > 0 else 0.0

    def _next(self, client: Hashable) -> tuple[float, float]:
        """Wait of one more request, and when the bucket would be full again after it."""
        now = self._clock()
        full_at = max(now, self._full_at.get(client, now)) + 1.0 / self._rate
        wait = full_at - now - self._burst / self._rate
        return (wait if wait > 1e-9 else 0.0), full_at


def network_of(address: str) -> str:
    """What is counted as one client: an IPv4 address, or the network of an IPv6 one, who has 2^64 of them.

    Examples
    --------
    >>> network_of("192.0.2.7"), network_of("::ffff:192.0.2.7"), network_of("2001:db8:0:5::aaaa")
    ('192.0.2.7', '192.0.2.7', '2001:db8:0:5::')
    """
    if ":" not in address:
        return address
    try:
        found = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    return str(found.ipv4_mapped or ipaddress.IPv6Address(int(found) >> 64 << 64))
