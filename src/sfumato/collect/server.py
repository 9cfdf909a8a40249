"""The collector as a process: a socket, perhaps TLS, and an end that loses nothing."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import ssl
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.collect.limits import CONNECTION, CollectorSettings, GuardedConnection, OpenConnections, watched
from sfumato.collect.store import AnswerStore
from sfumato.collect.survey import Survey
from sfumato.collect.writer import Log
from sfumato.core.errors import BadInput, OptionError, PrivacyLeakWarning

__all__ = ["ListenAddress", "serve"]

_BACKLOG = 2048
_MOSTCONNECTIONS = 2000
_OWN_FILES = 100  # that the database, the log and others need beside connections
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
        if self.proxy is not None and not _is_network(self.proxy):
            raise OptionError("--proxy is not an address or a network of addresses, as in 127.0.0.1; correct it")
        if self.key is not None and self.certificate is None:
            raise OptionError("--tls-key needs --tls-cert; give both")
        if self.certificate is not None:
            try:
                ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
                    self.certificate, self.key, password=_no_passphrase
                )
            except (OSError, ssl.SSLError, ValueError):
                raise OptionError("--tls-cert and --tls-key are not a certificate and its key; check them") from None
        elif not _is_loopback(self.host):
            warnings.warn(
                PrivacyLeakWarning(
                    "the collector can be reached from other machines without TLS: anybody on the way can read and "
                    "change answers, tokens and the page itself; give --tls-cert and --tls-key, or put a TLS "
                    "proxy before it"
                ),
                stacklevel=3,
            )


def _join_survey(store: AnswerStore, survey: Survey) -> None:
    """Begin a survey in a database, or go on with the one that is there.

    Raises
    ------
    BadInput
        If the database holds answers to another specification.
    """
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
    """Serve until the process is told to end (Ctrl-C or SIGTERM); answers on their way are stored first.

    Parameters
    ----------
    ready : callable
        Told the address once connections are accepted.
    """
    try:
        import uvicorn

        from sfumato.collect.app import Collector
    except ModuleNotFoundError as error:
        raise OptionError(f"the collector needs {error.name}; install sfumato[collect]") from None
    place.check()
    _join_survey(store, survey)
    listening = _listen(place)
    port = listening.getsockname()[1]
    log.write("started", port=port, questions=len(survey.questions), tls=int(place.secure))
    ready(f"{'https' if place.secure else 'http'}://{_name(place.host)}:{port}/")
    config = uvicorn.Config(
        watched(Collector(survey, store, settings, log)),
        http=_protocol(OpenConnections(settings.connections, place.proxy)),
        lifespan="on",
        log_config=None,
        access_log=False,
        log_level="critical",
        server_header=False,
        date_header=False,
        headers=[*_HEADERS, *([("strict-transport-security", "max-age=31536000")] if place.secure else [])],
        ws="none",
        ssl_certfile=None if place.certificate is None else str(place.certificate),
        ssl_keyfile=None if place.key is None else str(place.key),
        ssl_ciphers=_CIPHERS,
        proxy_headers=place.proxy is not None,
        forwarded_allow_ips=place.proxy or "127.0.0.1",
        limit_concurrency=_most_connections(),
        backlog=_BACKLOG,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=30,
    )
    with suppress(KeyboardInterrupt):  # uvicorn raises the signal again once it has ended
        uvicorn.Server(config).run(sockets=[listening])
    listening.close()
    log.write("stopped")


def _protocol(connections: OpenConnections) -> Any:
    """What uvicorn makes for each connection."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    def made(*, app_state: dict[str, Any], **told: Any) -> GuardedConnection:
        def http(own: GuardedConnection) -> asyncio.Protocol:
            return AutoHTTPProtocol(app_state={**app_state, CONNECTION: own}, **told)  # type: ignore[call-arg]

        return GuardedConnection(connections, http)

    return made


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


def _most_connections() -> int:
    """Connections that are taken at once: no more than there may be open files, else all of them stall."""
    try:
        import resource
    except ModuleNotFoundError:  # not on Windows
        return _MOSTCONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOSTCONNECTIONS if files < 0 else max(_OWN_FILES, min(_MOSTCONNECTIONS, files - _OWN_FILES))


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _name(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _no_passphrase() -> bytes:
    raise ValueError("a key with a passphrase")
