"""Rate limits: a bucket for each client that fills at a rate and empties with every request."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

__all__ = ["RateLimit"]

_MOST = 100_000  # clients that are remembered; beyond, those not seen for longest begin anew


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
        """Count a request and give 0, or give the seconds after which the next one will be let through."""
        if self._rate <= 0:
            return 0.0
        now = self._clock()
        full_at = max(now, self._full_at.pop(client, now)) + 1.0 / self._rate
        wait = full_at - now - self._burst / self._rate
        self._full_at[client] = full_at if wait <= 1e-9 else full_at - 1.0 / self._rate
        if len(self._full_at) > _MOST:
            self._full_at.popitem(last=False)
        return wait if wait > 1e-9 else 0.0
