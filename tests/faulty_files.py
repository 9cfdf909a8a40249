"""A file system that fails: the n-th operation that changes it, or whose success is relied on, ends in an error.

Python's own ways to the disk are replaced by ways that count: opening for writing, writing, syncing, closing, renaming,
making, changing modes and removing. What other libraries write by themselves meets a limit on the length of files.
"""

from __future__ import annotations

import errno
import io
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

__all__ = ["FaultyFiles", "short_files"]

_REMOVING = ("unlink", "remove", "rmdir")
_CALLS = ("open", "fsync", "close", "rename", "replace", "mkdir", "chmod", "pwrite", "ftruncate", *_REMOVING)


class FaultyFiles:
    """Counts operations below a folder, and lets one of them fail.

    Parameters
    ----------
    monkeypatch : pytest.MonkeyPatch
    folder : path
        Nothing outside of it is touched.

    Attributes
    ----------
    done : list of str
        What was asked for, in order.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.done: list[str] = []
        self._folder = str(folder)
        self._fails: int | None = None
        self._error = errno.ENOSPC
        self._handles: dict[int, bool] = {}  # whether each was opened for writing
        for name in _CALLS:
            monkeypatch.setattr(os, name, self._counted(name, getattr(os, name)))
        monkeypatch.setattr(io, "open", self._open)
        monkeypatch.setattr("builtins.open", self._open)

    @contextmanager
    def failing(self, number: int | None, error: int = errno.ENOSPC) -> Iterator[None]:
        """Let the operation of this number fail, counted from 0; none for None."""
        self.done, self._fails, self._error = [], number, error
        try:
            yield
        finally:
            self._fails = None

    def count(self, name: str) -> None:
        """Note an operation, or fail it."""
        self.done.append(name)
        if self._fails == len(self.done) - 1:
            raise OSError(self._error, os.strerror(self._error))

    def _counted(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def through(target: Any, *rest: Any, **more: Any) -> Any:
            if isinstance(target, int):
                return self._by_handle(name, call, target, *rest)
            if not self._is_ours(target):
                return call(target, *rest, **more)
            writes = name != "open" or bool(rest[0] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
            if writes:
                self.count(name)
            found = call(target, *rest, **more)
            if name == "open":
                self._handles[found] = writes
            return found

        return through

    def _by_handle(self, name: str, call: Callable[..., Any], handle: int, *rest: Any) -> Any:
        if handle not in self._handles:
            return call(handle, *rest)
        if name == "close":  # one that fails has closed all the same
            call(handle)
            return self.count(name) if self._handles.pop(handle) else None
        if name == "pwrite":
            return self._short(call, handle, *rest)
        self.count(name)
        return call(handle, *rest)

    def _short(self, call: Callable[..., Any], handle: int, data: bytes, place: int) -> Any:
        """Write half of it and give that back, as a full disk does."""
        try:
            self.count("pwrite")
        except OSError:
            return call(handle, data[: len(data) // 2], place)
        return call(handle, data, place)

    def _is_ours(self, target: Any) -> bool:
        return isinstance(target, str | os.PathLike) and os.path.abspath(target).startswith(self._folder)

    def _open(self, file: Any, mode: str = "r", buffering: int = -1, *rest: Any, **more: Any) -> Any:
        ours = file in self._handles if isinstance(file, int) else self._is_ours(file)
        if not ours or not any(sign in mode for sign in "wax+"):
            return _OPEN(file, mode, buffering, *rest, **more)
        self.count("open for writing")
        raw = _Counting(file, mode.replace("t", "").replace("b", ""), self)
        if isinstance(file, int):
            self._handles.pop(file)
        buffered: Any = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, *rest, **more)


class _Counting(io.FileIO):
    """A file whose writes and closing count; a write that fails has written half."""

    def __init__(self, file: Any, mode: str, faulty: FaultyFiles) -> None:
        super().__init__(file, mode)
        self._faulty = faulty

    def write(self, data: Any) -> int:
        try:
            self._faulty.count("write")
        except OSError:
            super().write(bytes(data)[: len(data) // 2])
            raise
        return int(super().write(data) or 0)

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        self._faulty.count("close")


_OPEN = io.open


@contextmanager
def short_files(most: int) -> Iterator[None]:
    """Let no file grow beyond a number of bytes, whoever writes it: the last write is short, the next fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
