"""The collector as a process: a socket, perhaps TLS, limits on who asks how often, and an end that loses nothing."""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from sfumato.core.connections import HEADER_TIMEOUT, http_protocol
from sfumato.core.errors import BadInput, OptionError, PrivacyLeakWarning
from sfumato.survey.questions import Survey
from sfumato.survey.store import AnswerStore, Log

__all__ = [
    "AT_LEAST",
    "CollectorSettings",
    "ListenAddress",
    "RateLimit",
    "serve",
]

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


_BACKLOG = 2048
_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"  # of TLS 1.2: with forward secrecy only; those of TLS 1.3 are not chosen here
_THIS_MACHINE = ("localhost", "127.0.0.1", "[::1]")

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


@dataclass(frozen=True)
class ListenAddress:
    """Where a collector listens."""

    # host, port: port 0 is any free one
    host: str = "127.0.0.1"
    port: int = 8000
    # certificate, key: for TLS, both as PEM files; the key may be in the certificate's file
    certificate: Path | None = None
    key: Path | None = None
    proxy: str | None = None  # address of a proxy whose ``X-Forwarded-For`` is believed

    @property
    def secure(self) -> bool:
        """Whether it speaks TLS."""
        return self.certificate is not None

    @property
    def names(self) -> frozenset[str]:
        """Names that requests may ask for; none is any.

        On this machine only its own are: a page of elsewhere whose name was made to point here is not let in.
        """
        alone = self.proxy is None and _is_loopback(self.host)
        return frozenset((*_THIS_MACHINE, _name(self.host).lower())) if alone else frozenset()

    def check(self) -> None:
        """Refuse certificates that cannot be used and warn where anybody on the way could read along."""
        if self.proxy is not None:
            try:
                ipaddress.ip_network(self.proxy)
            except ValueError:
                hint = "--proxy is not an address or a network of addresses, as in 127.0.0.1; correct it"
                raise OptionError(hint) from None
        if self.key is not None and self.certificate is None:
            raise OptionError("--tls-key needs --tls-cert; give both")
        if self.certificate is not None:
            self._check_certificate()
        elif not _is_loopback(self.host):
            warnings.warn(
                PrivacyLeakWarning(
                    "the collector can be reached from other machines without TLS: anybody on the way can read and "
                    "change answers, tokens and the page itself; give --tls-cert and --tls-key, or put a TLS "
                    "proxy before it"
                ),
                stacklevel=3,
            )

    def _check_certificate(self) -> None:
        assert self.certificate is not None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self.certificate, self.key, password=_no_passphrase)
        except (OSError, ssl.SSLError, ValueError):
            raise OptionError("--tls-cert and --tls-key are not a certificate and its key; check them") from None


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
        import uvicorn

        from sfumato.survey.app import Collector
    except ModuleNotFoundError as error:
        raise OptionError(f"the collector needs {error.name}; install sfumato[survey]") from None
    place.check()
    _join_survey(store, survey)
    listening = _listen(place)
    port = listening.getsockname()[1]
    log.write("started", port=port, questions=len(survey.questions), tls=int(place.secure))
    ready(f"{'https' if place.secure else 'http'}://{_name(place.host)}:{port}/")
    config = uvicorn.Config(
        Collector(survey, store, settings, log),
        http=http_protocol(),
        ssl_certfile=place.certificate,
        ssl_keyfile=place.key,
        ssl_ciphers=_CIPHERS,
        lifespan="on",
        log_config=None,
        access_log=False,
        log_level="critical",
        server_header=False,
        date_header=False,
        headers=[*_HEADERS, *([("strict-transport-security", "max-age=31536000")] if place.secure else [])],
        ws="none",
        proxy_headers=place.proxy is not None,
        forwarded_allow_ips=place.proxy or "127.0.0.1",
        backlog=_BACKLOG,
        timeout_keep_alive=int(HEADER_TIMEOUT),
        timeout_graceful_shutdown=30,
    )
    with suppress(KeyboardInterrupt):  # uvicorn raises the signal again once it has ended
        uvicorn.Server(config).run(sockets=[listening])
    listening.close()
    log.write("stopped")


def _listen(place: ListenAddress) -> socket.socket:
    try:
        found = socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(_BACKLOG)
        except (OSError, OverflowError):
            listening.close()
            raise
    except (OSError, OverflowError) as error:
        number = getattr(error, "errno", None) or 0
        reason = os.strerror(number) if number > 0 else "no such address"
        raise OptionError(f"cannot listen on port {place.port} ({reason}); choose another --port or --host") from None
    return listening


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _name(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _no_passphrase() -> bytes:
    raise ValueError("a key with a passphrase")
