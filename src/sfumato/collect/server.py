"""The collector as a process: a socket, perhaps TLS, and an end that loses nothing."""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.collect.app import Collector, Settings
from sfumato.collect.logs import Log
from sfumato.collect.store import Store
from sfumato.collect.survey import Survey
from sfumato.errors import BadInput, OptionError, PrivacyLeakWarning

if TYPE_CHECKING:
    import uvicorn

__all__ = ["Place", "join_survey", "serve"]

_BACKLOG = 2048
_MOST_CONNECTIONS = 2000
_OWN_FILES = 100  # that the database, the log and others need beside connections
_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"  # of TLS 1.2: with forward secrecy only; those of TLS 1.3 are not chosen here
_THIS_MACHINE = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True)
class Place:
    """Where a collector listens.

    Parameters
    ----------
    host, port
        Port 0 is any free one.
    certificate, key : Path or None
        For TLS, both as PEM files; the key may be in the certificate's file.
    proxy : str or None
        Address of a proxy whose ``X-Forwarded-For`` is believed.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    certificate: Path | None = None
    key: Path | None = None
    proxy: str | None = None

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


def join_survey(store: Store, survey: Survey) -> None:
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
    survey: Survey, store: Store, place: Place, settings: Settings, log: Log, ready: Callable[[str], None]
) -> None:
    """Serve until the process is told to end (Ctrl-C or SIGTERM); answers on their way are stored first.

    Parameters
    ----------
    survey : Survey
    store : Store
    place : Place
    settings : Settings
    log : Log
    ready : callable
        Told the address once connections are accepted.
    """
    try:
        import uvicorn
    except ModuleNotFoundError:
        raise OptionError("the collector needs uvicorn; install sfumato[collect]") from None
    place.check()
    join_survey(store, survey)
    listening = _listen(place)
    port = listening.getsockname()[1]
    log.write("started", port=port, questions=len(survey.questions), tls=int(place.secure))
    ready(f"{'https' if place.secure else 'http'}://{_name(place.host)}:{port}/")
    with suppress(KeyboardInterrupt):  # uvicorn raises the signal again once it has ended
        uvicorn.Server(_config(Collector(survey, store, settings, log), place)).run(sockets=[listening])
    listening.close()
    log.write("stopped")


def _config(collector: Collector, place: Place) -> uvicorn.Config:
    import uvicorn

    from sfumato.collect.wire import PatientProtocol

    return uvicorn.Config(
        collector,
        http=PatientProtocol,
        lifespan="on",
        log_config=None,
        access_log=False,
        log_level="critical",
        server_header=False,
        date_header=False,
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


def _listen(place: Place) -> socket.socket:
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
    """Give how many connections are taken at once: no more than there may be open files, else all of them stall."""
    try:
        import resource
    except ModuleNotFoundError:  # not on Windows
        return _MOST_CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_CONNECTIONS if files < 0 else max(_OWN_FILES, min(_MOST_CONNECTIONS, files - _OWN_FILES))


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
