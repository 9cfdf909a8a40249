"""The collector as a process: a socket, perhaps TLS, limits on who asks how often, and an end that loses nothing."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

from sfumato.core.connections import listen, run_app
from sfumato.core.errors import BadInput, OptionError
from sfumato.survey.options import CollectorSettings, ListenAddress
from sfumato.survey.questions import Survey
from sfumato.survey.store import AnswerStore, Log

__all__ = ["RateLimit", "serve"]

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


_BACKLOG = 2048
_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"  # of TLS 1.2: with forward secrecy only; those of TLS 1.3 are not chosen here

# nothing from elsewhere, nothing inline, no frame around it, no form that a browser sends by itself
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_HEADERS = (
    ("content-security-policy", _POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
    ("cache-control", "no-store"),
)


def _join_survey(store: AnswerStore, survey: Survey) -> None:
    """Begin a survey in a database, or go on with the one that is there; one of another specification is refused."""
    standing = store.set_survey(survey.to_document())
    if Survey.from_document(standing).digest != survey.digest:
        raise BadInput(
            "the database holds a survey with another specification; choose another --db, or the first --spec"
        )


def serve(
    survey: Survey,
    store: AnswerStore,
    place: ListenAddress,
    settings: CollectorSettings,
    log: Log,
    ready: Callable[[str], None],
) -> None:
    """Serve until the process is asked to end (Ctrl-C or SIGTERM); answers on their way are stored first.

    ``ready`` receives the address once connections are accepted.
    """
    try:
        import uvicorn  # noqa: F401

        from sfumato.survey.app import Collector
    except ModuleNotFoundError as error:
        raise OptionError(f"the collector needs {error.name}; install sfumato[survey]") from None
    place.check()
    _join_survey(store, survey)
    listening = listen(place.host, place.port, _BACKLOG, "choose another --port or --host")
    port = listening.getsockname()[1]
    log.write("started", port=port, questions=len(survey.questions), tls=int(place.secure))
    ready(f"{'https' if place.secure else 'http'}://{place.name}:{port}/")
    run_app(
        Collector(survey, store, settings, log),
        listening,
        ssl_certfile=place.certificate,
        ssl_keyfile=place.key,
        ssl_ciphers=_CIPHERS,
        headers=[*_HEADERS, *([("strict-transport-security", "max-age=31536000")] if place.secure else [])],
        proxy_headers=place.proxy is not None,
        forwarded_allow_ips=place.proxy or "127.0.0.1",
        backlog=_BACKLOG,
        timeout_graceful_shutdown=30,
    )
    listening.close()
    log.write("stopped")
