"""A folder that is written whole or not at all."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sfumato.errors import OptionError

__all__ = ["check_folder", "replacing_folder"]

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_MARK = Path("release", "certificate.json")


def check_folder(folder: str | Path, *, overwrite: bool = False) -> Path:
    """Refuse an output folder that exists, unless it may be replaced and holds an earlier release or nothing."""
    path = Path(folder)
    if not path.exists() and not path.is_symlink():
        return path
    if not path.is_dir() or path.is_symlink():
        raise OptionError(f"the output {str(path)!r} exists and is not a folder; choose another name")
    if not overwrite:
        raise OptionError(f"the output folder {str(path)!r} exists; choose another, or replace it with --overwrite")
    if any(path.iterdir()) and not (path / _MARK).is_file():
        raise OptionError(f"the folder {str(path)!r} holds no earlier release, so it is not replaced; choose another")
    return path


@contextmanager
def replacing_folder(folder: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Give a temporary folder that takes the place of the output once the block has ended well.

    An error or interrupt inside the block removes it and leaves the old output, or nothing.
    """
    target = check_folder(folder, overwrite=overwrite).absolute()
    made = [parent for parent in target.parents if not parent.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        yield work
        umask = os.umask(0o077)
        os.umask(umask)
        work.chmod(0o777 & ~umask)
        check_folder(target, overwrite=overwrite)
        _put_in_place(work, target)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        for parent in made:
            with suppress(OSError):
                parent.rmdir()
        raise


def _put_in_place(work: Path, target: Path) -> None:
    """Rename, in one step where the system can exchange two folders."""
    if not target.exists():
        work.rename(target)
        return
    if _exchange(work, target):
        shutil.rmtree(work)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}.old.", dir=target.parent))
    target.rename(old / target.name)
    try:
        work.rename(target)
    except OSError:
        (old / target.name).rename(target)
        old.rmdir()
        raise
    shutil.rmtree(old)


def _exchange(left: Path, right: Path) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    return bool(
        renameat2(_AT_FDCWD, os.fsencode(left), _AT_FDCWD, os.fsencode(right), ctypes.c_uint(_RENAME_EXCHANGE)) == 0
    )
