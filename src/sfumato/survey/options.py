"""How a collector listens and what it limits: options, declared once for the server and the command line."""

from __future__ import annotations

import ipaddress
import warnings
from dataclasses import dataclass, field
from pathlib import Path

from sfumato.core.arguments import Panel, option
from sfumato.core.errors import OptionError, PrivacyLeakWarning

__all__ = ["AT_LEAST", "CollectorSettings", "ListenAddress"]

AT_LEAST = 50
"""Answers from which on figures are shown."""

_THIS_MACHINE = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True)
class CollectorSettings:
    """Limits of a collector."""

    password: str = field(repr=False)  # of the dashboard
    rate: float = option(
        20.0, "Largest number of answers per second from one address; 0 is no limit.", Panel.SERVER, least=0.0
    )
    most_bytes: int = option(
        16_384, "Largest answer, in bytes.", Panel.SERVER, spelled="max-body", least=256, most=1 << 20
    )
    at_least: int = option(
        AT_LEAST, "Smallest number of answers for which the dashboard shows estimates.", Panel.PRIVACY, least=2
    )
    names: frozenset[str] = frozenset()  # names that requests may ask for; none is any


@dataclass(frozen=True)
class ListenAddress:
    """Where a collector listens."""

    host: str = option("127.0.0.1", "Address to listen on; any but localhost needs TLS.", Panel.SERVER)
    port: int = option(8000, "Port to listen on; 0 takes a free one.", Panel.SERVER, least=0, most=65_535)
    certificate: Path | None = option(
        None, "Certificate for TLS (PEM, with its chain).", Panel.SERVER, spelled="tls-cert", path=True
    )
    key: Path | None = option(
        None, "Key of the certificate (PEM, no passphrase).", Panel.SERVER, spelled="tls-key", path=True
    )
    proxy: str | None = option(None, "Reverse proxy whose X-Forwarded-For is trusted.", Panel.SERVER, metavar="ADDRESS")

    @property
    def name(self) -> str:
        """Host as it stands in an address."""
        return f"[{self.host}]" if ":" in self.host else self.host

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
        return frozenset((*_THIS_MACHINE, self.name.lower())) if alone else frozenset()

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
        import ssl

        assert self.certificate is not None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self.certificate, self.key, password=_no_passphrase)
        except (OSError, ssl.SSLError, ValueError):
            raise OptionError("--tls-cert and --tls-key are not a certificate and its key; check them") from None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _no_passphrase() -> bytes:
    raise ValueError("a key with a passphrase")
