"""The owner's signing key: made at its first use in the user's configuration folder, closed to others, never lost."""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from sfumato.certificate.signature import Signer
from sfumato.core.errors import BadInput, OptionError
from sfumato.core.replacing import reason, replacing_file, sync

__all__ = ["SigningKey", "new_signing_key", "own_signer", "signing_key", "signing_key_path"]

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
    told = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    if told.is_absolute():  # others are to be passed over, says the standard
        return told / "sfumato" / _NAME
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
