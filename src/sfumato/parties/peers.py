"""Identities of the parties: keys, certificates, pinned fingerprints, addresses."""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import re
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.documents import read_bytes
from sfumato.core.errors import OptionError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.x509 import Certificate, CertificateBuilder, Name

__all__ = [
    "Address",
    "Identity",
    "KeyAndCertificate",
    "NetworkSettings",
    "Peer",
    "TrialAuthority",
    "check_name",
    "fingerprint_of",
    "read_fingerprint",
    "tls_contexts",
]

_DAYS = 30  # a trial is short; whoever needs longer brings certificates of their own
_EARLY = datetime.timedelta(hours=1)  # clocks differ
_HEX = re.compile(r"[0-9a-f]{64}")

_MOST_PORT = 65535
_NAME = re.compile(r"[^\W_][\w.-]{0,63}")


@dataclass(frozen=True)
class KeyAndCertificate:
    """A new key and its certificate, both as PEM; the key is not shown."""

    key: bytes
    certificate: bytes

    def __repr__(self) -> str:
        return f"KeyAndCertificate({self.fingerprint})"

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the certificate, in hexadecimal."""
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(self.certificate.decode("ascii"))).hexdigest()


@dataclass(frozen=True)
class Identity:
    """Files of a party's key and certificate, and of the certificates that it trusts."""

    # key, certificate: PEM files of this party
    key: Path
    certificate: Path
    authority: Path | None = None  # certificate of the authority that signed those of the others
    trusted: tuple[Path, ...] = ()  # the certificates of the others, if there is no authority

    def __repr__(self) -> str:
        return f"Identity({str(self.certificate)!r})"


class TrialAuthority:
    """A private certificate authority for a trial, whose key stays in memory unless requested."""

    def __init__(self, name: str) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self._key = Ed25519PrivateKey.generate()
        self._name = _name(f"sfumato trial {name}")
        signed = _builder(self._name, self._name, self._key)
        self._certificate = _authority(signed).sign(self._key, None)

    def __repr__(self) -> str:
        return "TrialAuthority()"

    @property
    def certificate(self) -> bytes:
        """The authority's certificate, as PEM."""
        return _pem(self._certificate)

    @property
    def key(self) -> bytes:
        """The authority's key as PEM, with which anyone can issue certificates of the authority."""
        return _key_pem(self._key)

    def issue(self, name: str, host: str) -> KeyAndCertificate:
        """Make a key and a certificate for a party."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        key = Ed25519PrivateKey.generate()
        builder = _party(_builder(_name(name), self._name, key), host)
        return KeyAndCertificate(_key_pem(key), _pem(builder.sign(self._key, None)))


def fingerprint_of(path: Path) -> str:
    """SHA-256 fingerprint of a certificate file, in hexadecimal.

    Of several certificates in the file the first counts, as in TLS.
    """
    try:
        text = read_bytes(path, "certificate", "check its name").decode("ascii")
        start = text.index("-----BEGIN CERTIFICATE-----")
        end = text.index("-----END CERTIFICATE-----") + len("-----END CERTIFICATE-----")
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(text[start:end])).hexdigest()
    except OptionError:
        raise
    except ValueError:
        raise OptionError(f"{str(path)!r} cannot be read as a certificate; pass a PEM file") from None


def read_fingerprint(text: str) -> str | None:
    """Fingerprint in hexadecimal, from the forms of openssl and of people; None if the text is none.

    Examples
    --------
    >>> read_fingerprint("SHA256 Fingerprint=" + ":".join(["AB"] * 32)) == "ab" * 32
    True
    """
    plain = text.rpartition("=")[2].replace(":", "").strip().lower()
    return plain if _HEX.fullmatch(plain) else None


def tls_contexts(identity: Identity) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """TLS contexts of this party as server and as client.

    TLS 1.3 alone; both sides must show a certificate that the authority signed or, without one, that is one of the
    trusted. Which party it is, the fingerprint says.
    """
    made = []
    for protocol in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT):
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # the pin says more than a name would
        context.verify_mode = ssl.CERT_REQUIRED
        _load_own(context, identity)
        if identity.authority is not None:
            _trust(context, [identity.authority])
        else:
            _trust(context, identity.trusted)
            context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN  # a pinned one need not be self-signed
        made.append(context)
    made[0].num_tickets = 0  # nothing is resumed
    return made[0], made[1]


def _load_own(context: ssl.SSLContext, identity: Identity) -> None:
    def no_passphrase() -> str:
        raise OptionError(f"the key {str(identity.key)!r} is encrypted; decrypt it for the run")

    for path in (identity.certificate, identity.key):
        if not path.is_file():
            raise OptionError(f"the file {str(path)!r} is not there; check its name")
    try:
        context.load_cert_chain(identity.certificate, identity.key, password=no_passphrase)
    except (ssl.SSLError, OSError):
        raise OptionError(
            f"{str(identity.key)!r} and {str(identity.certificate)!r} are not a key and its certificate; pass PEM files"
        ) from None


def _trust(context: ssl.SSLContext, paths: Sequence[Path]) -> None:
    for path in paths:
        try:
            context.load_verify_locations(cafile=path)
        except FileNotFoundError:
            raise OptionError(f"the certificate {str(path)!r} is not there; check its name") from None
        except (ssl.SSLError, OSError):
            raise OptionError(f"{str(path)!r} cannot be read as a certificate; pass a PEM file") from None


def _name(text: str) -> Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _builder(subject: Name, issuer: Name, key: Ed25519PrivateKey) -> CertificateBuilder:
    from cryptography import x509

    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - _EARLY).not_valid_after(now + datetime.timedelta(days=_DAYS))


def _authority(builder: CertificateBuilder) -> CertificateBuilder:
    from cryptography import x509

    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    return builder.add_extension(_usage(sign=False, issue=True), critical=True)


def _party(builder: CertificateBuilder, host: str) -> CertificateBuilder:
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    both = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(sign=True, issue=False), critical=True).add_extension(both, critical=False)
    return builder.add_extension(x509.SubjectAlternativeName([_host_name(host)]), critical=False)


def _host_name(host: str) -> Any:

    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host.encode("idna").decode("ascii"))


def _usage(*, sign: bool, issue: bool) -> Any:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=issue,
        crl_sign=issue,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _key_pem(key: Ed25519PrivateKey) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


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
    """A party as the others know it."""

    name: str
    address: Address  # where others reach it
    fingerprint: str  # SHA-256 of its certificate, in hexadecimal


@dataclass(frozen=True)
class NetworkSettings:
    """Settings of the network of a party."""

    rank: int  # which of the parties this one is
    peers: tuple[Peer, ...]  # all parties, in the order of their ranks
    run: str  # name of the run
    identity: Identity
    listen: Address  # where this party waits for others
    settings: Mapping[str, Any]  # what all parties must agree on, as plain values
    version: str  # of the package, the same at all parties
    timeout: float = 60.0  # seconds of silence after which a party is taken for gone
    wait: float = 60.0  # seconds to wait for all parties at the start
    step: float = 1800.0  # seconds to wait at most for any one message of a party that gives signs of life

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parties."""
        return tuple(peer.name for peer in self.peers)


def check_name(name: str) -> None:
    """Refuse a name of a party that could not be the name of a folder too."""
    if not _NAME.fullmatch(name):
        raise OptionError(f"{name!r} is no name of a party; use letters, digits, '.', '_' and '-'")
