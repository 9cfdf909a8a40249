from __future__ import annotations

import base64
import importlib.util
import json
import pickle
import shutil
import subprocess
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa, x25519
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import sfumato as sf
from sfumato.certificate.signature import PASSPHRASE, Signature, Signer, expected_signer
from sfumato.core.errors import BadInput, OptionError, PrivacyLeakWarning, PrivacyRefusal
from sfumato.publish.verify import verify_release
from tests.examples import sized

_PEM, _PKCS8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
_OPENSSH = serialization.PrivateFormat.OpenSSH
_PLAIN = serialization.NoEncryption()


@cache
def a_release(seed: int | None = None) -> sf.Release:
    rng = np.random.default_rng(11)
    table = pa.table({"age": rng.integers(20, 80, 60), "sex": rng.choice(["f", "m"], 60).tolist()})
    return sf.sanitize(table, sf.Condensation(k=5), seed=seed, report=False)


def write_private(path: Path, key: Ed25519PrivateKey, form: serialization.PrivateFormat = _PKCS8) -> Path:
    path.write_bytes(key.private_bytes(_PEM, form, _PLAIN))
    path.chmod(0o600)
    return path


def write_public(path: Path, key: Ed25519PrivateKey, *, ssh: bool = False) -> Path:
    form = serialization.PublicFormat.OpenSSH if ssh else serialization.PublicFormat.SubjectPublicKeyInfo
    encoding = serialization.Encoding.OpenSSH if ssh else _PEM
    path.write_bytes(key.public_key().public_bytes(encoding, form) + (b" me@home\n" if ssh else b""))
    return path


@pytest.fixture
def key() -> Ed25519PrivateKey:
    return Ed25519PrivateKey.generate()


@pytest.fixture
def public(tmp_path: Path, key: Ed25519PrivateKey) -> Path:
    return write_public(tmp_path / "key.pub.pem", key)


@pytest.fixture
def signed(tmp_path: Path, key: Ed25519PrivateKey) -> Path:
    return a_release().save(tmp_path / "out", sign=key) / "release"


def failing(folder: Path, signer: Path | None = None) -> list[str]:
    return [check.name for check in verify_release(folder, signer=signer) if not check.holds]


@pytest.mark.parametrize("form", [_PKCS8, _OPENSSH], ids=["pkcs8", "openssh"])
@pytest.mark.parametrize("ssh", [False, True], ids=["pem", "ssh-line"])
def test_a_signed_release_holds_for_the_key_that_signed_it(
    tmp_path: Path, key: Ed25519PrivateKey, form: serialization.PrivateFormat, ssh: bool
) -> None:
    private = write_private(tmp_path / "key", key, form)
    folder = a_release().save(tmp_path / "out", sign=private) / "release"
    assert failing(folder, write_public(tmp_path / "key.pub", key, ssh=ssh)) == []


def test_without_a_signer_the_last_line_says_that_who_signed_is_not_confirmed(
    signed: Path, key: Ed25519PrivateKey
) -> None:
    found, fingerprint = verify_release(signed), Signer(key).fingerprint
    assert (found.holds, found.intact, found.signed_by, found.confirmed) == (True, True, fingerprint, False)
    last = f"Intact. Signed by {fingerprint}, which you have not confirmed."
    assert found.describe().splitlines()[-1] == found.verdict == found.unproved == last
    assert [check.name for check in found if not check.checked] == ["signer"]


def test_with_its_signer_a_release_is_intact_and_signed(signed: Path, key: Ed25519PrivateKey, public: Path) -> None:
    fingerprint = Signer(key).fingerprint
    for signer in (public, str(public), fingerprint, f" {fingerprint}\n"):
        found = verify_release(signed, signer=signer)
        assert (found.holds, found.intact, found.signed_by, found.confirmed) == (True, True, fingerprint, True)
        assert found.describe().splitlines()[-1] == f"Intact and signed by {fingerprint}."
        assert found.unproved == ""


def test_an_unsigned_release_proves_integrity_and_nothing_else(tmp_path: Path, public: Path) -> None:
    folder = a_release().save(tmp_path / "plain", sign=False) / "release"
    assert not (folder / "certificate.sig").exists()
    found = verify_release(folder)
    assert (found.holds, found.intact, found.signed_by, found.confirmed) == (True, True, None, False)
    last = "Intact, but not signed: this proves integrity, not authorship. Anyone could have written it."
    assert found.describe().splitlines()[-1] == found.unproved == last
    for options in ({"signer": public}, {"require_signature": True}, {"signer": public, "require_signature": True}):
        found = verify_release(folder, **options)
        assert [check.name for check in found if not check.holds] == ["signer"]
        assert (found.holds, found.intact) == (False, True)
        assert found.describe().endswith("The release failed verification.")


def test_a_required_signature_may_be_anybodys(signed: Path) -> None:
    assert verify_release(signed, require_signature=True).holds


def test_another_key_does_not_hold(signed: Path, tmp_path: Path, key: Ed25519PrivateKey) -> None:
    stranger = Ed25519PrivateKey.generate()
    for other in (write_public(tmp_path / "other.pem", stranger), Signer(stranger).fingerprint):
        found = verify_release(signed, signer=other)
        assert [check.name for check in found if not check.holds] == ["signer"]
        assert (found.intact, found.signed_by, found.confirmed) == (True, Signer(key).fingerprint, False)


def test_a_release_that_a_stranger_signed_anew_is_not_that_of_its_owner(signed: Path, public: Path) -> None:
    stranger = Signer(Ed25519PrivateKey.generate())
    (signed / "certificate.sig").write_text(stranger.sign((signed / "certificate.json").read_bytes()).to_text())
    assert failing(signed, public) == ["signer"]
    assert verify_release(signed).verdict == f"Intact. Signed by {stranger.fingerprint}, which you have not confirmed."


@pytest.mark.parametrize(
    "text", ["SHA256:", "SHA256:" + 42 * "A", "SHA256:" + 44 * "A", "SHA256:" + 42 * "A" + "B", "SHA256:" + 43 * "-"]
)
def test_a_part_of_a_fingerprint_is_refused(signed: Path, text: str) -> None:
    with pytest.raises(OptionError, match="not a whole fingerprint"):
        verify_release(signed, signer=text)


def test_the_folder_around_a_release_is_looked_into(signed: Path) -> None:
    assert verify_release(signed.parent).holds
    (signed.parent / "certificate.json").write_text("{}")
    with pytest.raises(BadInput, match="not of format"):
        verify_release(signed.parent)
    (signed.parent / "certificate.json").unlink()
    signed.rename(signed.with_name("elsewhere"))
    signed.symlink_to(signed.with_name("elsewhere"))
    with pytest.raises(BadInput, match="there is no certificate"):
        verify_release(signed.parent)
    assert verify_release(signed).holds, "a folder that is named may be a link"


def test_every_changed_byte_of_the_signature_file_is_seen(signed: Path, public: Path) -> None:
    path = signed / "certificate.sig"
    data = path.read_bytes()
    for place in range(0, len(data), sized(5, 1)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert failing(signed, public) == ["signature"], place
    for changed in (data + b" ", data[:-1], b"", b"\xff" * 40, data.replace(b'"format": 2', b'"format": 1')):
        path.write_bytes(changed)
        assert failing(signed, public) == ["signature"]
        assert failing(signed) == ["signature"], "a file that is no signature must not travel along"


def test_changed_bytes_of_the_certificate_are_seen(signed: Path, public: Path) -> None:
    path = signed / "certificate.json"
    data = path.read_bytes()
    for place in np.linspace(0, len(data) - 1, 60).astype(int):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        try:
            assert "signature" in failing(signed, public)
        except BadInput:  # it is no certificate any more
            continue
    path.write_bytes(data.replace(b"\n", b"\r\n"))
    assert failing(signed, public) == ["signature", "certificate"], (
        "the same text in other bytes is not what was signed"
    )
    assert failing(signed) == ["signature", "certificate"]


def test_changed_bytes_of_the_table_are_seen(signed: Path, public: Path) -> None:
    path = signed / "table.csv"
    path.write_bytes(path.read_bytes().replace(b"f", b"m", 1))
    assert "files unchanged" in failing(signed, public)


def test_the_signature_of_another_release_does_not_hold(signed: Path, key: Ed25519PrivateKey, public: Path) -> None:
    table = pa.table({"age": list(range(40)), "sex": ["f", "m"] * 20})
    other = sf.sanitize(table, sf.Condensation(k=4), report=False).save(signed.parent.parent / "other", sign=key)
    shutil.copy(other / "release" / "certificate.sig", signed / "certificate.sig")
    (check,) = [check for check in verify_release(signed, signer=public) if not check.holds]
    assert "one of them was changed" in check.detail


def test_a_signature_over_the_bare_certificate_does_not_hold(
    signed: Path, key: Ed25519PrivateKey, public: Path
) -> None:
    bare = key.sign((signed / "certificate.json").read_bytes())
    (signed / "certificate.sig").write_text(Signature(key.public_key().public_bytes_raw(), bare).to_text())
    assert failing(signed, public) == ["signature"]


def test_a_signature_that_names_the_key_of_another_does_not_hold(
    signed: Path, key: Ed25519PrivateKey, public: Path
) -> None:
    liar = Signer(Ed25519PrivateKey.generate())
    forged = liar.sign((signed / "certificate.json").read_bytes())
    text = Signature(key.public_key().public_bytes_raw(), forged.value).to_text()
    (signed / "certificate.sig").write_text(text)
    assert failing(signed, public) == ["signature"]
    assert failing(signed) == ["signature"]


def test_a_signature_file_that_is_too_large_or_no_file_is_refused(signed: Path, public: Path) -> None:
    path = signed / "certificate.sig"
    path.write_bytes(path.read_bytes() + b" " * (1 << 16))
    assert failing(signed) == ["signature"]
    path.unlink()
    path.mkdir()
    assert failing(signed, public) == ["signature"]


@pytest.mark.parametrize("kept", [True, False], ids=["whole", "dangling"])
def test_a_signature_that_is_a_link_is_refused(signed: Path, public: Path, kept: bool) -> None:
    path = signed / "certificate.sig"
    elsewhere = path.rename(signed.parent / "elsewhere.sig")
    path.symlink_to(elsewhere)
    if not kept:
        elsewhere.unlink()
    assert failing(signed, public) == ["signature"]
    assert failing(signed) == ["signature"]


def test_a_certificate_that_lists_its_signature_does_not_hold(signed: Path, key: Ed25519PrivateKey) -> None:
    path = signed / "certificate.json"
    document = json.loads(path.read_text())
    document["files"]["certificate.sig"] = "0" * 64
    document["files"] = dict(sorted(document["files"].items()))
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    (signed / "certificate.sig").write_text(Signer(key).sign(path.read_bytes()).to_text())
    assert failing(signed) == ["files unchanged"]


def test_a_dry_run_is_not_signed(tmp_path: Path, key: Ed25519PrivateKey) -> None:
    with pytest.raises(PrivacyRefusal, match="dry run"):
        a_release(seed=1).save(tmp_path / "out", sign=key)
    assert list(tmp_path.iterdir()) == []


def private_bytes(kind: str) -> bytes:
    keys: dict[str, Callable[[], Any]] = {
        "rsa": lambda: rsa.generate_private_key(65537, 2048),
        "ec": lambda: ec.generate_private_key(ec.SECP256R1()),
        "x25519": x25519.X25519PrivateKey.generate,
    }
    return bytes(keys[kind]().private_bytes(_PEM, _PKCS8, _PLAIN))


@pytest.mark.parametrize("kind", ["rsa", "ec", "x25519"])
def test_a_private_key_of_another_kind_is_refused_by_name_and_kind(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "key"
    path.write_bytes(private_bytes(kind))
    with pytest.raises(OptionError, match=f"/key' is a key of the kind {kind.upper()}, not an Ed25519 private key"):
        Signer.load(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not a private key"),
        (b"zyxwv98765", "not a private key"),
        (b"-----BEGIN PRIVATE KEY-----\nzyxwv98765\n-----END PRIVATE KEY-----\n", "not a private key"),
        (b"-----BEGIN OPENSSH PRIVATE KEY-----\nzyxwv98765\n-----END OPENSSH PRIVATE KEY-----\n", "not a private key"),
        (b"-----BEGIN OPENSSH PRIVATE KEY-----", "not a private key"),
        (b"ssh-ed25519 zyxwv98765", "public key"),
        (b"ecdsa-sha2-nistp256 zyxwv98765", "public key"),
        (b"sk-ssh-ed25519@openssh.com zyxwv98765", "public key"),
        (b"-----BEGIN PUBLIC KEY-----\nzyxwv98765\n", "public key"),
        (b"zyxwv98765" * 10_000, "64 KiB"),
        (bytes(range(256)), "not a private key"),
    ],
)
def test_a_file_that_is_no_private_key_is_refused_without_quoting_it(
    tmp_path: Path, content: bytes, words: str
) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    with pytest.raises(OptionError, match=words) as caught:
        Signer.load(path)
    assert "zyxwv" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not a public key"),
        (b"zyxwv98765", "not a public key"),
        (b"ssh-ed25519 zyxwv98765", "not a public key"),
        (b"-----BEGIN PUBLIC KEY-----", "not a public key"),
        (b"zyxwv98765" * 10_000, "64 KiB"),
    ],
)
def test_a_file_that_is_no_public_key_is_refused_without_quoting_it(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    with pytest.raises(OptionError, match=words) as caught:
        expected_signer(path)
    assert "zyxwv" not in str(caught.value)


def test_a_key_in_the_wrong_place_is_named(tmp_path: Path, key: Ed25519PrivateKey, public: Path) -> None:
    private = write_private(tmp_path / "key", key)
    with pytest.raises(OptionError, match="is a private key"):
        expected_signer(private)
    with pytest.raises(OptionError, match="is a public key"):
        Signer.load(public)
    with pytest.raises(OptionError, match="there is no key file"):
        Signer.load(tmp_path / "nowhere")
    with pytest.raises(OptionError, match="cannot be read"):
        expected_signer(tmp_path)
    other = rsa.generate_private_key(65537, 2048).public_key()
    public.write_bytes(other.public_bytes(_PEM, serialization.PublicFormat.SubjectPublicKeyInfo))
    with pytest.raises(OptionError, match="is a key of the kind RSA, not an Ed25519 public key"):
        expected_signer(public)


def test_an_encrypted_key_opens_with_its_passphrase_only(
    tmp_path: Path, key: Ed25519PrivateKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "key"
    path.write_bytes(key.private_bytes(_PEM, _PKCS8, serialization.BestAvailableEncryption(b"open sesame")))
    path.chmod(0o600)
    monkeypatch.delenv(PASSPHRASE, raising=False)
    with pytest.raises(OptionError, match=PASSPHRASE):
        Signer.load(path)
    with pytest.raises(OptionError, match="does not open") as caught:
        Signer.load(path, ask=lambda: "open barley")
    assert "barley" not in str(caught.value)
    assert Signer.load(path, ask=lambda: "open sesame").fingerprint == Signer(key).fingerprint
    monkeypatch.setenv(PASSPHRASE, "open sesame")
    assert Signer.load(path).fingerprint == Signer(key).fingerprint
    write_private(path, key)
    assert Signer.load(path).fingerprint == Signer(key).fingerprint, "a passphrase that is not needed is not used"


def test_an_encrypted_key_in_the_older_form_asks_for_its_passphrase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(PASSPHRASE, raising=False)
    older, locked = serialization.PrivateFormat.TraditionalOpenSSL, serialization.BestAvailableEncryption(b"sesame")
    path = tmp_path / "key"
    path.write_bytes(ec.generate_private_key(ec.SECP256R1()).private_bytes(_PEM, older, locked))
    with pytest.raises(OptionError, match=f"/key' is encrypted; give its passphrase in the variable {PASSPHRASE}"):
        Signer.load(path)
    with pytest.raises(OptionError, match="of the kind EC, not an Ed25519 private key"):
        Signer.load(path, ask=lambda: "sesame")


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
def test_an_encrypted_key_of_openssh_asks_for_its_passphrase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PASSPHRASE, raising=False)
    path = tmp_path / "id"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "sesame", "-f", path], check=True)
    with pytest.raises(OptionError, match=f"/id' is encrypted; give its passphrase in the variable {PASSPHRASE}"):
        Signer.load(path)
    if importlib.util.find_spec("bcrypt") is None:
        with pytest.raises(OptionError, match="/id' is encrypted by OpenSSH, which needs bcrypt"):
            Signer.load(path, ask=lambda: "sesame")
    else:
        opened = Signer.load(path, ask=lambda: "sesame").fingerprint
        assert opened == expected_signer(path.with_name("id.pub"))


@pytest.mark.parametrize(("name", "other"), [(b"ssh-ed25519", b"ssh-ed25520"), (b"none", b"nine")])
def test_a_key_of_openssh_of_an_unknown_kind_or_cipher_is_refused_as_such(
    tmp_path: Path, key: Ed25519PrivateKey, name: bytes, other: bytes
) -> None:
    path = write_private(tmp_path / "key", key, _OPENSSH)
    head, *body, tail = path.read_bytes().splitlines()
    changed = base64.b64decode(b"".join(body)).replace(name, other)
    path.write_bytes(b"\n".join([head, base64.b64encode(changed), tail, b""]))
    with pytest.raises(OptionError, match="/key' is a key of a kind that cannot be read"):
        Signer.load(path, ask=lambda: "sesame")


def test_a_key_that_others_can_read_is_warned_of(tmp_path: Path, key: Ed25519PrivateKey) -> None:
    path = write_private(tmp_path / "key", key)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Signer.load(path)
    path.chmod(0o644)
    with pytest.warns(PrivacyLeakWarning, match="mode 644"):
        Signer.load(path)


def test_a_signer_shows_no_key_and_is_not_pickled(key: Ed25519PrivateKey) -> None:
    signer = Signer(key)
    raw = key.private_bytes_raw()
    assert repr(signer) == f"Signer({signer.fingerprint})"
    assert base64.b64encode(raw).decode() not in repr(signer)
    assert raw.hex() not in repr(signer)
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(signer)
    with pytest.raises(OptionError, match="not an Ed25519"):
        Signer(b"bytes")  # type: ignore[arg-type]


def test_the_signature_file_holds_the_public_key_and_not_the_private_one(signed: Path, key: Ed25519PrivateKey) -> None:
    text = (signed / "certificate.sig").read_text()
    assert base64.b64encode(key.private_bytes_raw()).decode() not in text
    assert set(json.loads(text)) == {"format", "algorithm", "public_key", "signature"}
    assert base64.b64decode(json.loads(text)["public_key"]) == key.public_key().public_bytes_raw()


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
def test_the_fingerprint_is_the_one_that_ssh_keygen_shows(tmp_path: Path) -> None:
    path = tmp_path / "id"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    shown = subprocess.run(["ssh-keygen", "-l", "-f", path], check=True, capture_output=True, text=True).stdout
    assert Signer.load(path).fingerprint in shown
    assert expected_signer(path.with_name("id.pub")) in shown


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_openssl_agrees_on_what_is_signed(tmp_path: Path) -> None:
    private, public = tmp_path / "key.pem", tmp_path / "key.pub.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", private], check=True)
    subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True)
    folder = a_release().save(tmp_path / "out", sign=private) / "release"
    assert failing(folder, public) == []
    message = b"sfumato-certificate-v1\0" + (folder / "certificate.json").read_bytes()
    (tmp_path / "message").write_bytes(message)
    document = json.loads((folder / "certificate.sig").read_text())
    (tmp_path / "signature").write_bytes(base64.b64decode(document["signature"]))
    files = ["-inkey", str(public), "-in", str(tmp_path / "message"), "-sigfile", str(tmp_path / "signature")]
    done = subprocess.run(
        ["openssl", "pkeyutl", "-verify", "-pubin", "-rawin", *files], capture_output=True, text=True, check=False
    )
    assert "Verified Successfully" in done.stdout


def test_a_signature_or_key_of_another_length_is_refused() -> None:
    whole = Signature(32 * b"k", 64 * b"s")
    assert Signature.from_bytes(whole.to_text().encode()) == whole
    for other in (Signature(32 * b"k", 63 * b"s"), Signature(33 * b"k", 64 * b"s"), Signature(b"", b"")):
        with pytest.raises(BadInput, match="cannot be read as a signature"):
            Signature.from_bytes(other.to_text().encode())


def test_no_32_bytes_make_the_check_fail_in_another_way() -> None:
    for public_key in (32 * b"\0", 32 * b"\xff", b"\x01" + 31 * b"\0", 31 * b"\xff" + b"\x7f"):
        assert not Signature(public_key, 64 * b"s").holds(b"certificate")
