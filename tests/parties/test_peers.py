"""Keys and certificates: pinned by the fingerprint that openssl prints, refused where they do not belong together."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from sfumato.core.errors import OptionError
from sfumato.parties.peers import (
    Identity,
    TrialAuthority,
    fingerprint_of,
    read_fingerprint,
    tls_contexts,
)
from tests.parties.meetings import self_signed, write_made


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl")
def test_the_fingerprint_is_the_one_that_openssl_prints(tmp_path: Path) -> None:
    made = self_signed("ann", "ann.example")
    _, certificate = write_made(tmp_path, "ann", made)
    command = ["openssl", "x509", "-noout", "-fingerprint", "-sha256", "-in", str(certificate)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert read_fingerprint(printed) == made.fingerprint == fingerprint_of(certificate)


def test_an_authority_signs_what_it_issues(tmp_path: Path) -> None:
    from cryptography import x509

    authority = TrialAuthority("trial")
    signer = x509.load_pem_x509_certificate(authority.certificate)
    for host in ("127.0.0.1", "::1", "bank.example"):
        one = x509.load_pem_x509_certificate(authority.issue("bank", host).certificate)
        one.verify_directly_issued_by(signer)
        names = one.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert host in [str(name.value) for name in names]


def test_no_two_certificates_are_alike() -> None:
    authority = TrialAuthority("trial")
    assert len({authority.issue("x", "x.example").fingerprint for _ in range(5)}) == 5


def test_secrets_are_not_shown() -> None:
    made = self_signed("ann", "127.0.0.1")
    assert "PRIVATE" not in repr(made)
    assert "PRIVATE" in made.key.decode()
    assert "PRIVATE" not in repr(TrialAuthority("trial"))


def test_a_key_of_another_certificate_is_refused(tmp_path: Path) -> None:
    key, _ = write_made(tmp_path, "ann", self_signed("ann", "127.0.0.1"))
    _, certificate = write_made(tmp_path, "ben", self_signed("ben", "127.0.0.1"))
    with pytest.raises(OptionError, match="not a key and its certificate"):
        tls_contexts(Identity(key, certificate, None, (certificate,)))


def test_an_encrypted_key_is_refused_without_asking(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization

    made = self_signed("ann", "127.0.0.1")
    key, certificate = write_made(tmp_path, "ann", made)
    locked = serialization.load_pem_private_key(made.key, None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    key.write_bytes(locked)
    with pytest.raises(OptionError, match="is encrypted"):
        tls_contexts(Identity(key, certificate, None, (certificate,)))


@pytest.mark.parametrize("name", ["key", "certificate", "authority", "trusted"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    key, certificate = write_made(tmp_path, "ann", self_signed("ann", "127.0.0.1"))
    lost = tmp_path / "lost.pem"
    changed = {
        "key": Identity(lost, certificate, None, (certificate,)),
        "certificate": Identity(key, lost, None, (certificate,)),
        "authority": Identity(key, certificate, lost),
        "trusted": Identity(key, certificate, None, (lost,)),
    }[name]
    with pytest.raises(OptionError, match=r"lost\.pem' is not there"):
        tls_contexts(changed)


@pytest.mark.parametrize("text", ["", "abc", "ab" * 31, "zz" * 32, "ab" * 33])
def test_what_is_no_fingerprint_is_none(text: str) -> None:
    assert read_fingerprint(text) is None


def test_a_file_that_is_no_certificate_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.pem").write_text("hello", encoding="utf-8")
    with pytest.raises(OptionError, match="cannot be read as a certificate"):
        fingerprint_of(tmp_path / "x.pem")


def test_both_sides_ask_for_certificates_under_tls_1_3_alone(tmp_path: Path) -> None:
    key, certificate = write_made(tmp_path, "ann", self_signed("ann", "127.0.0.1"))
    for context in tls_contexts(Identity(key, certificate, None, (certificate,))):
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert context.minimum_version is ssl.TLSVersion.TLSv1_3
