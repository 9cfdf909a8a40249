"""Who made a release: an Ed25519 signature over the exact bytes of its certificate, and the key of the owner.

The certificate holds the hashes of all files, so one signature stands for the whole release. It lies beside the
certificate as ``certificate.sig``, with the public key that it is checked by; whose key that is, only its fingerprint
tells to a recipient who has it from the owner by another channel.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import logging
import os
import re
import secrets
import stat
import struct
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.documents import from_json, read_bytes, write_json
from sfumato.core.errors import BadInput, OptionError, PrivacyLeakWarning
from sfumato.core.replacing import reason, replacing_file, sync

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = [
    "PASSPHRASE",
    "SIGNATURE_FILE",
    "Signature",
    "Signer",
    "SigningKey",
    "expected_signer",
    "new_signing_key",
    "own_signer",
    "read_signature",
    "signing_key",
    "signing_key_path",
]

SIGNATURE_FILE = "certificate.sig"
PASSPHRASE = "SFUMATO_KEY_PASSPHRASE"  # noqa: S105 (the name of a variable, not what it holds)
"""The environment variable that holds the passphrase of an encrypted key."""

_DOMAIN = b"sfumato-certificate-v1\0"  # what is signed here can be taken for nothing else that the key signs
_ALGORITHM = "Ed25519"
_FORMAT = 2
_PUBLIC_BYTES, _SIGNATURE_BYTES = 32, 64
_MOST_BYTES = 1 << 16
_SHA256 = "SHA256:"
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
_MAKE_ONE = "make one with 'openssl genpkey -algorithm ed25519'"


@dataclass(frozen=True)
class Signature:
    """A signature as it lies beside a certificate, with the public key that it is checked by: 64 and 32 bytes."""

    public_key: bytes
    value: bytes

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the public key, as ``ssh-keygen -l`` shows it."""
        return _fingerprint(self.public_key)

    def to_text(self) -> str:
        """Write the signature file."""
        public_key, value = (base64.b64encode(part).decode("ascii") for part in (self.public_key, self.value))
        document = {"format": _FORMAT, "algorithm": _ALGORITHM, "public_key": public_key, "signature": value}
        return write_json(document, "pretty")

    @classmethod
    def from_bytes(cls, data: bytes) -> Signature:
        """Read a signature file; every byte counts, so that nothing else can travel in it."""
        try:
            document = from_json(dict[str, int | str], data, most=_MOST_BYTES)
            parts = (base64.b64decode(str(document[name]), validate=True) for name in ("public_key", "signature"))
            signature = cls(*parts)
            known = (len(signature.public_key), len(signature.value)) == (_PUBLIC_BYTES, _SIGNATURE_BYTES)
            if known and signature.to_text().encode() == data:
                return signature
        except (KeyError, ValueError):
            pass
        raise BadInput(f"{SIGNATURE_FILE} cannot be read as a signature; it is damaged or was altered")

    def holds(self, certificate: bytes) -> bool:
        """Tell whether the key signed exactly these bytes."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.public_key).verify(self.value, _DOMAIN + certificate)
        except (InvalidSignature, ValueError):
            return False
        return True


def read_signature(folder: Path, name: str = SIGNATURE_FILE) -> Signature | None:
    """Read a signature of a release; None if there is none.

    Raises
    ------
    BadInput
        For a file of that name that is no signature.
    """
    path = folder / name
    if path.name != name:
        raise BadInput("the certificate names an owner that no file can be named after; it was altered")
    if not path.exists() and not path.is_symlink():
        return None
    return Signature.from_bytes(
        read_bytes(path, "signature", "ask for the release again", most=_MOST_BYTES, linked=False)
    )


class Signer:
    """Signs certificates. Holds a private key and never shows it.

    Parameters
    ----------
    key : cryptography's Ed25519PrivateKey
    """

    __slots__ = ("_key", "fingerprint")

    def __init__(self, key: Ed25519PrivateKey) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        if not isinstance(key, Ed25519PrivateKey):
            raise OptionError(f"a {type(key).__name__} is not an Ed25519 private key; {_MAKE_ONE}")
        self._key = key
        self.fingerprint = _fingerprint(key.public_key().public_bytes_raw())

    def __repr__(self) -> str:
        return f"Signer({self.fingerprint})"

    @property
    def public_key(self) -> str:
        """The public key as a line ``ssh-ed25519 AAAA...``."""
        return "ssh-ed25519 " + base64.b64encode(_wire(self._key.public_key().public_bytes_raw())).decode("ascii")

    def __reduce__(self) -> Any:
        raise TypeError("a signer holds a private key and is not pickled")

    @classmethod
    def load(cls, path: str | Path, *, ask: Callable[[], str] | None = None) -> Signer:
        """Read a private key: PEM (PKCS8) or OpenSSH's own form, encrypted or not.

        Parameters
        ----------
        path : path
        ask : callable, optional
            Asks a person for the passphrase of an encrypted key, where the environment variable
            ``SFUMATO_KEY_PASSPHRASE`` does not hold it.
        """
        path = Path(path)
        data = read_bytes(path, "key file", "check its name", most=_MOST_BYTES)
        if b"PUBLIC KEY" in data or data.startswith((b"ssh-", b"ecdsa-", b"sk-")):
            raise OptionError(f"{str(path)!r} is a public key; --sign takes the private one, which only you have")
        key = _private_key(data, str(path), ask)
        _warn_readable(path)
        return cls(key)

    def sign(self, certificate: bytes) -> Signature:
        """Sign the bytes of a certificate."""
        return Signature(self._key.public_key().public_bytes_raw(), self._key.sign(_DOMAIN + certificate))


def expected_signer(signer: str | Path) -> str:
    """Fingerprint of who must have signed: written out as ``SHA256:...``, or of the public key in a file.

    The file is PEM, or a line such as ``ssh-ed25519 AAAA...``.

    Raises
    ------
    OptionError
        For a text that is no fingerprint, or a file that is no such key.
    """
    if isinstance(signer, str) and signer.strip().startswith(_SHA256):
        return _written_fingerprint(signer.strip())
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    path = Path(signer)
    data = read_bytes(path, "key file", "check its name, or give a fingerprint SHA256:...", most=_MOST_BYTES).strip()
    if b"PRIVATE KEY" in data:
        raise OptionError(f"{str(path)!r} is a private key; --signer takes the public one of who signed")
    read = serialization.load_pem_public_key if data.startswith(b"-----") else serialization.load_ssh_public_key
    try:
        key = read(data)
    except (ValueError, TypeError, UnsupportedAlgorithm):  # their own words may quote the file
        raise OptionError(
            f"{str(path)!r} is not a public key that can be read; pass a PEM file or a line 'ssh-ed25519 ...'"
        ) from None
    if not isinstance(key, Ed25519PublicKey):
        raise OptionError(f"{str(path)!r} is {_kind(key)}, not an Ed25519 public key; pass that of who signed")
    return _fingerprint(key.public_bytes_raw())


def _written_fingerprint(text: str) -> str:
    """Check that a text is a whole fingerprint: a part of one would be met by keys of others."""
    if _FINGERPRINT.fullmatch(text):
        digest = base64.b64decode(text.removeprefix(_SHA256) + "=")
        if _shown(digest) == text:
            return text
    raise OptionError("--signer is not a whole fingerprint; write SHA256: and the 43 characters that stand behind it")


def _private_key(data: bytes, name: str, ask: Callable[[], str] | None) -> Any:
    """Read a private key, and ask for a passphrase only if it needs one."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    passphrase = None
    if _is_encrypted(data):
        passphrase = os.environ.get(PASSPHRASE) or (ask() if ask is not None else "")
        if not passphrase:
            raise OptionError(f"the key {name!r} is encrypted; give its passphrase in the variable {PASSPHRASE}")
    key = _decoded(data, name, None if passphrase is None else passphrase.encode())
    if not isinstance(key, Ed25519PrivateKey):
        raise OptionError(f"{name!r} is {_kind(key)}, not an Ed25519 private key; {_MAKE_ONE}")
    return key


def _is_encrypted(data: bytes) -> bool:
    if b"BEGIN OPENSSH PRIVATE KEY" not in data:
        return b"BEGIN ENCRYPTED PRIVATE KEY" in data or b"Proc-Type: 4,ENCRYPTED" in data
    try:
        body = base64.b64decode(data.split(b"-----")[2])
        size = struct.unpack(">I", body[15:19])[0]  # after the magic "openssh-key-v1\0" comes the cipher's name
        return body[19 : 19 + size] != b"none"
    except (IndexError, ValueError, struct.error):
        return False


def _decoded(data: bytes, name: str, passphrase: bytes | None) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    ours = b"BEGIN OPENSSH PRIVATE KEY" in data
    read = serialization.load_ssh_private_key if ours else serialization.load_pem_private_key
    try:
        return read(data, password=passphrase)
    except UnsupportedAlgorithm as error:
        if "bcrypt" in str(error):
            raise OptionError(f"the key {name!r} is encrypted by OpenSSH, which needs bcrypt; install it") from None
        raise OptionError(f"{name!r} is a key of a kind that cannot be read; {_MAKE_ONE}") from None
    except (ValueError, TypeError):  # their own words may quote the file
        if passphrase is not None:
            raise OptionError(f"the key {name!r} does not open with that passphrase; try again") from None
        raise OptionError(f"{name!r} is not a private key that can be read; {_MAKE_ONE}") from None


def _kind(key: Any) -> str:
    word = type(key).__name__.removesuffix("Key").removesuffix("Private").removesuffix("Public")
    return f"a key of the kind {word}"


def _warn_readable(path: Path) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    if os.name == "posix" and mode & 0o077:
        warnings.warn(
            PrivacyLeakWarning(
                f"the key file {str(path)!r} is open to others (mode {mode:o}); close it with chmod 600"
            ),
            stacklevel=3,
        )


def _fingerprint(public_key: bytes) -> str:
    """Fingerprint that ``ssh-keygen -l`` shows for the same key."""
    return _shown(hashlib.sha256(_wire(public_key)).digest())


def _shown(digest: bytes) -> str:
    return _SHA256 + base64.b64encode(digest).decode("ascii").rstrip("=")


def _wire(public_key: bytes) -> bytes:
    """A public key as SSH writes it."""
    return b"".join(struct.pack(">I", len(part)) + part for part in (b"ssh-ed25519", public_key))


_NAME = "signing-key.pem"
_INSTEAD = (
    "set XDG_CONFIG_HOME to a folder that can be written, give another key with --sign FILE, or leave the release "
    "unsigned with --no-sign"
)


@dataclass(frozen=True)
class SigningKey:
    """The key that an owner's releases are signed with.

    Parameters
    ----------
    path : Path
        File of the private key.
    fingerprint : str
        What recipients receive by another channel than the release, as ``ssh-keygen -l`` shows it.
    public_key : str
        The public key as a line ``ssh-ed25519 AAAA...``.
    kept : Path or None
        File of the key that this one has replaced.
    """

    path: Path
    fingerprint: str
    public_key: str = field(repr=False)
    kept: Path | None = None

    def export(self, file: str | Path, *, overwrite: bool = False) -> Path:
        """Write the public key to a file, which anybody may have."""
        path = Path(file)
        if (path.exists() or path.is_symlink()) and not overwrite:
            raise OptionError(f"the file {str(path)!r} exists; choose another, or replace it with --overwrite")
        if path.absolute() == self.path or (path.exists() and path.samefile(self.path)):
            raise OptionError(f"{str(path)!r} is the private key, which is never replaced; choose another name")
        try:
            with replacing_file(path) as work:
                work.write_text(f"{self.public_key}\n", encoding="utf-8")
        except OSError as error:
            raise OptionError(
                f"the public key could not be written to {str(path)!r} ({reason(error)}); choose another place"
            ) from None
        return path


def signing_key_path() -> Path:
    """Where the private key of this user lies, or will: in ``$XDG_CONFIG_HOME/sfumato``, or ``~/.config/sfumato``.

    Raises
    ------
    OptionError
        If the user has no home folder.
    """
    config_home = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    if config_home.is_absolute():  # others are to be passed over, says the standard
        return config_home / "sfumato" / _NAME
    try:
        return Path.home().absolute() / ".config" / "sfumato" / _NAME
    except RuntimeError:
        raise OptionError(f"there is no home folder for a signing key; {_INSTEAD}") from None


def signing_key(*, ask: Callable[[], str] | None = None) -> SigningKey:
    """The signing key that there is; none is made.

    Parameters
    ----------
    ask : callable, optional
        Asks a person for the passphrase, where the owner has encrypted the key.

    Raises
    ------
    BadInput
        If there is none, or it cannot be read.
    """
    path = signing_key_path()
    if not os.path.lexists(path):
        raise OptionError(
            f"there is no signing key in {str(path.parent)!r} yet; make one with 'sfumato signing-key new', or "
            "sanitize a table"
        )
    return _described(path, _read(path, ask))


def own_signer(*, ask: Callable[[], str] | None = None) -> Signer:
    """Who signs where no key is named: this user, by a key that is made at its first use.

    Raises
    ------
    BadInput
        If there is none and none can be made, or it cannot be read.
    """
    path = signing_key_path()
    try:
        missing = not os.path.lexists(path)
        if missing:
            with _locked_folder(path.parent):
                missing = _put(path)
    except OSError as error:
        raise _unwritable(path.parent, error) from None
    signer = _read(path, ask)
    if missing:
        logging.getLogger("sfumato").warning(
            "made a signing key, which signs your releases from now on: keep a copy of %s", path
        )
    return signer


def new_signing_key(*, replace: bool = False) -> SigningKey:
    """A new signing key; one that there is stays beside it under a name with the time.

    Parameters
    ----------
    replace : bool
        Sign with the new key from now on although there is one.

    Raises
    ------
    OptionError
        If there is one that is not to be replaced, or the folder cannot be written.
    """
    path = signing_key_path()
    kept = None
    try:
        with _locked_folder(path.parent):
            if os.path.lexists(path):
                if not replace:
                    raise OptionError(
                        f"there is a signing key in {str(path.parent)!r}, by which recipients know you; keep it, or "
                        "add --replace to sign with another one from now on"
                    )
                kept = _kept_aside(path)
            try:
                _put(path)
            except OSError:
                if kept is not None:
                    kept.rename(path)
                raise
    except OSError as error:
        raise _unwritable(path.parent, error) from None
    signer = _read(path, None)
    return _described(path, signer, kept)


def _described(path: Path, signer: Signer, kept: Path | None = None) -> SigningKey:
    return SigningKey(path, signer.fingerprint, signer.public_key, kept)


def _read(path: Path, ask: Callable[[], str] | None) -> Signer:
    try:
        return Signer.load(path, ask=ask)
    except BadInput as error:
        raise OptionError(
            f"your signing key cannot be used: {str(error).partition(';')[0]}; {_otherwise(path)}"
        ) from None


def _otherwise(path: Path) -> str:
    return (
        f"put your copy of it back into {str(path.parent)!r}, make another with 'sfumato signing-key new --replace', "
        "or leave the release unsigned with --no-sign"
    )


def _unwritable(folder: Path, error: OSError) -> OptionError:
    return OptionError(f"no signing key can be kept in {str(folder)!r} ({reason(error)}); {_INSTEAD}")


@contextmanager
def _locked_folder(folder: Path) -> Iterator[None]:
    """The folder of the key, made if it is lacking, closed to others, and for one process at a time."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks: the name is taken in one step all the same
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _put(path: Path) -> bool:
    """Draw a key and put it under a name that is free, whole or not at all; False where another process was first."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    pem = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    work = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = os.open(work, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(pem)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(work, path)
        except FileExistsError:
            return False
        except OSError:  # a file system without links
            if os.path.lexists(path):
                return False
            work.rename(path)
    finally:
        work.unlink(missing_ok=True)
    sync(path.parent)
    return True


def _kept_aside(path: Path) -> Path:
    """Move a key to a name that is free and tells until when it was the one that signs."""
    until = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
    number = 0
    while True:
        number += 1
        aside = path.with_name(f"signing-key.until-{until}{f'-{number}' if number > 1 else ''}.pem")
        if not os.path.lexists(aside):
            path.rename(aside)
            return aside
