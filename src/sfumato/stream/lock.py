"""The lock file beside a state: one writer at a time, and the number of the last commit that was acknowledged."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import struct
import time
from contextlib import suppress
from pathlib import Path

from sfumato.errors import SfumatoError
from sfumato.replacing import reason
from sfumato.stream.format import StateError, damaged

__all__ = ["Lock"]

_PATIENCE = 2.0  # seconds to wait for a reader, which is quick
_FORM = struct.Struct("<Q16s")


class Lock:
    """A lock that ends with the process, however it ends.

    ``held`` is False where a reader found a writer at work and reads beside it.
    """

    def __init__(self, path: Path, handle: int | None, *, held: bool) -> None:
        self._path, self._handle, self.held = path, handle, held

    @classmethod
    def take(cls, path: Path, name: str, *, write: bool) -> Lock:
        """Take the lock, alone for writing and shared for reading.

        Raises
        ------
        StateError
            Where another process writes, or the file cannot be made.
        """
        try:
            handle = os.open(path, (os.O_RDWR | os.O_CREAT) if write else os.O_RDONLY, 0o600)
        except FileNotFoundError:
            return cls(path, None, held=True)  # a state that nobody has written to since it came here
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else type(error).__name__
            raise StateError(
                f"the state {name!r} cannot be locked ({reason}); check the rights of its folder"
            ) from None
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(handle, (fcntl.LOCK_EX if write else fcntl.LOCK_SH) | fcntl.LOCK_NB)
                return cls(path, handle, held=True)
            except OSError:
                if not write:
                    return cls(path, handle, held=False)
                if time.monotonic() > end:
                    os.close(handle)
                    raise StateError(
                        f"another process writes to the state {name!r}; wait until it has ended, or stop it"
                    ) from None
                time.sleep(0.02)

    @property
    def acknowledged(self) -> int | None:
        """The number of the last acknowledged commit, None where no commit was made here."""
        if self._handle is None:
            return None
        found = os.pread(self._handle, _FORM.size, 0)
        if not found:
            return None
        number, check = _FORM.unpack(found) if len(found) == _FORM.size else (0, b"")
        if check != _check(number):
            raise damaged(str(self._path), "the number in it was altered")
        return int(number)

    def begin(self) -> None:
        """Leave a mark that a writer is at work, before the seal is taken off."""
        if self.acknowledged is None:
            self.acknowledge(0)

    def acknowledge(self, number: int) -> None:
        """Note that a commit is on disk; outlives the process, though not a power cut, after which it may lag."""
        if self._handle is None:
            return
        before = os.pread(self._handle, _FORM.size, 0)
        try:
            if os.pwrite(self._handle, _FORM.pack(number, _check(number)), 0) < _FORM.size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:  # half a number would be taken for damage
            os.pwrite(self._handle, before, 0)
            os.ftruncate(self._handle, len(before))
            raise SfumatoError(
                f"the lock file {str(self._path)!r} could not be written ({reason(error)}); what was acknowledged "
                "before stays, make room and run it again"
            ) from None

    def release(self) -> None:
        """Let go; the file stays, for its number and because removing it would free two writers at once."""
        if self._handle is not None:
            with suppress(OSError):  # at worst its number lags, as after a power cut
                os.close(self._handle)
            self._handle = None


def _check(number: int) -> bytes:
    return hashlib.sha256(f"sfumato lock {number}".encode()).digest()[:16]
