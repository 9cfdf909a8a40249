"""Atomic output: files and folders are made under a hidden name, synced, and renamed.

The hidden name ``.NAME.sfumato-...`` is locked by the process that makes it. A lock ends with its process, however that
ends, so what a killed run has left is known by having none, and the next run to the same name removes it.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import logging
import os
import re
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sfumato.core.errors import OptionError, SfumatoError

__all__ = [
    "check_target",
    "discard_kept",
    "kept_folder",
    "kept_path",
    "put_in_place",
    "reason",
    "rename_synced",
    "replacing_file",
    "replacing_target",
    "sync",
    "work_folder",
]

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_WORK, _OLD, _KEPT = "sfumato-", "sfumato-old-", "sfumato-resume"

Check = Callable[[Path], Sequence[Path]]
"""Is given what stood at a target, once it is out of the way; says which of its files may be deleted, or raises."""


def reason(error: OSError) -> str:
    """Why the system refused an operation, without a file name."""
    return os.strerror(error.errno) if error.errno else type(error).__name__


@contextmanager
def work_folder(target: Path) -> Iterator[Path]:
    """Hidden folder beside the target, removed at the end unless it was renamed."""
    with _locked_work(target, _WORK, folder=True) as work:
        yield work


@contextmanager
def _work_file(target: Path) -> Iterator[Path]:
    """Hidden file beside the target, of mode 600, removed at the end unless it was renamed."""
    with _locked_work(target, _WORK, folder=False) as work:
        yield work


def kept_path(target: Path) -> Path:
    """Hidden folder beside the target that a stopped, resumable run has left."""
    return target.absolute().with_name(f".{target.name}.{_KEPT}")


@contextmanager
def kept_folder(target: Path) -> Iterator[Path]:
    """Hidden folder beside the target that survives a failure, so that another run can resume.

    Raises
    ------
    SfumatoError
        If another run works in it.
    """
    folder = kept_path(target)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        if _lock(handle) is False:
            raise SfumatoError(f"another run is making {target.name!r}; wait for it, or choose another name")
        yield folder
        _remove(folder)
    finally:
        os.close(handle)


@contextmanager
def replacing_file(target: Path, *, private: bool = False) -> Iterator[Path]:
    """Hidden file that replaces the target if the block succeeds.

    An error or an interrupt inside the block removes it and leaves the old target, or nothing.

    Parameters
    ----------
    target : path
    private : bool
        Leave it closed to others.
    """
    with _work_file(target) as work:
        yield work
        if not private:
            work.chmod(0o666 & ~_umask())
        sync(work)
        _rename(work, target, _is_single_file)


def _is_single_file(old: Path) -> list[Path]:
    if old.is_dir() and not old.is_symlink():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return []


def check_target(target: str | Path, source: Path, *, overwrite: bool) -> Path:
    """Refuse a target that must not be overwritten."""
    path = Path(target)
    if path.exists() and source.exists() and path.samefile(source):
        raise OptionError(f"the output {str(path)!r} is the input; choose another name")
    if (path.exists() and not path.is_file()) or not path.parent.is_dir():
        raise OptionError(f"the output {str(path)!r} is no file in a folder that exists; choose another name")
    if path.exists() and not overwrite:
        raise OptionError(f"the output {str(path)!r} exists; choose another name, or allow it to be replaced")
    return path


@contextmanager
def replacing_target(target: Path) -> Iterator[Path]:
    """Hidden file that replaces the target if the block succeeds; see `replacing_file`."""
    try:
        with replacing_file(target) as work:
            yield work
    except OSError as error:  # those of reading have become errors of ours
        raise SfumatoError(
            f"the output {str(target)!r} could not be written ({reason(error)}); make room or choose another place"
        ) from None


def put_in_place(work: Path, target: Path, *, check: Check | None = None) -> None:
    """Rename a folder to its final name; an existing folder is exchanged atomically if the system can.

    What stood there is deleted file by file, as far as ``check`` lists its files; all of it is back in its place where
    ``check`` raises. Without ``check`` nothing is replaced. All of it is on disk before and after.
    """
    for path in (*work.rglob("*"), work):
        sync(path)
    _rename(work, target, _nothing_there if check is None else check)
    with suppress(OSError):  # closed to others until it stands, and at worst afterwards too
        target.chmod(0o777 & ~_umask())


def _nothing_there(_old: Path) -> list[Path]:
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


def _rename(work: Path, target: Path, check: Check) -> None:
    if not target.exists() and not target.is_symlink():
        rename_synced(work, target)
    elif _exchange(work, target):
        try:
            own = check(work)
            sync(target.absolute().parent)
        except BaseException:
            if not _exchange(work, target):
                _set_aside(work, target)
            raise
        _discard(work, own, target)
    elif work.is_dir():
        _swap_by_two_renames(work, target, check)
    else:
        check(target)
        work.replace(target)
        sync(target.absolute().parent)


def _discard(old: Path, own: Sequence[Path], target: Path) -> None:
    """Delete the known files of a replaced folder, and keep any others."""
    if not old.is_dir():
        return
    for path in own:
        with suppress(OSError):  # a leftover, which is removed later
            (old / path).unlink()
    folders = {Path(), *(parent for path in own for parent in path.parents)}
    for folder in sorted(folders, reverse=True):
        with suppress(OSError):
            (old / folder).rmdir()
    if any(path.relative_to(old) not in folders.union(own) for path in old.rglob("*")):
        _set_aside(old, target)


def _set_aside(old: Path, target: Path) -> None:
    """Give files that would be removed with the work folder a permanent name."""
    kept = target.with_name(f"{target.name}.kept-{secrets.token_hex(4)}")
    old.rename(kept)
    logging.getLogger("sfumato").warning("kept in %r what others wrote into %r meanwhile", kept.name, target.name)


def rename_synced(work: Path, target: Path) -> None:
    """Rename to a free name; undo it if the new name cannot be synced to disk."""
    work.rename(target)
    try:
        sync(target.absolute().parent)
    except OSError:
        target.rename(work)
        raise


def _swap_by_two_renames(work: Path, target: Path, check: Check) -> None:
    """Move the old target aside first; after a kill in between, the next run restores it."""
    with _locked_work(target, _OLD, folder=True) as aside:
        old = aside / target.name
        target.rename(old)
        try:
            own = check(old)
            rename_synced(work, target)
        except BaseException:
            try:
                old.rename(target)
            except OSError:  # another process has put something there
                _set_aside(old, target)
            raise
        _discard(old, own, target)


def _exchange(left: Path, right: Path) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    return bool(
        renameat2(_AT_FDCWD, os.fsencode(left), _AT_FDCWD, os.fsencode(right), ctypes.c_uint(_RENAME_EXCHANGE)) == 0
    )


@contextmanager
def _locked_work(target: Path, mark: str, *, folder: bool) -> Iterator[Path]:
    """Create a hidden folder or file and lock it; remove it at the end if it still exists."""
    target = target.absolute()
    _remove_leftovers(target)
    work, handle = _create_locked(target, mark, folder=folder)
    try:
        yield work
    finally:
        _remove(work)
        with suppress(OSError):  # nothing was written through it
            os.close(handle)


def _create_locked(target: Path, mark: str, *, folder: bool) -> tuple[Path, int]:
    """Create and lock it; retry if another process removed it in between."""
    while True:
        work = target.with_name(f".{target.name}.{mark}{secrets.token_hex(4)}")
        if folder:
            work.mkdir(mode=0o700)
        try:
            handle = os.open(work, os.O_RDONLY if folder else os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except FileNotFoundError:
            continue
        except OSError:
            _remove(work)
            raise
        if _lock(handle) is not False and _is_at(work, handle):
            return work, handle
        os.close(handle)


def discard_kept(target: Path) -> None:
    """Remove the remains of a resumable run that nobody will resume, with a notice."""
    folder = kept_path(target)
    with suppress(OSError):
        if folder.exists() and _remove_leftover(folder, target):
            logging.getLogger("sfumato").warning("removed what a stopped run had put aside to make %r", target.name)


def _remove_leftovers(target: Path) -> None:
    """Remove what killed runs left beside the target, with a notice."""
    ours = re.compile(rf"\.{re.escape(target.name)}\.(?:{_WORK}|{_OLD})[0-9a-f]{{8}}")
    removed, found = 0, []
    with suppress(PermissionError):  # a folder that may be written and not read
        found = [path for path in target.parent.iterdir() if ours.fullmatch(path.name)]
    for path in sorted(found):
        with suppress(OSError):
            removed += _remove_leftover(path, target)
    if removed:
        logging.getLogger("sfumato").warning(
            "removed %d unfinished %s that stopped runs had left beside %r",
            removed,
            "output" if removed == 1 else "outputs",
            target.name,
        )


def _remove_leftover(path: Path, target: Path) -> bool:
    """Remove an unlocked leftover of this user; restore an old output that was moved aside."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if os.fstat(handle).st_uid != os.geteuid() or _lock(handle) is not True or not _is_at(path, handle):
            return False
        old = path / target.name
        if path.name.startswith(f".{target.name}.{_OLD}") and old.exists() and not target.exists():
            old.rename(target)
            logging.getLogger("sfumato").warning("put back %r, which a stopped run was about to replace", target.name)
        return _remove(path)
    finally:
        os.close(handle)


def _remove(path: Path) -> bool:
    """Remove a file or folder; if that fails, the next run retries."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)
    return not path.exists()


def _lock(handle: int) -> bool | None:
    """Whether the lock was taken; None if the file system has no locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(follow_symlinks=False), os.fstat(handle))
    except FileNotFoundError:
        return False


def sync(path: Path) -> None:
    """Sync a file, or the entries of a folder, to disk as far as the file system can."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except PermissionError:  # a folder that may be written and not read
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def _umask() -> int:
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
