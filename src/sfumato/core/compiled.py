"""Compile hot loops with Numba, cached on disk, so that only the first run waits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["compiled", "fixed", "inner", "is_cached", "share_cached", "whole"]

F = TypeVar("F", bound=Callable[..., Any])

_kernels: list[Callable[..., Any]] = []  # of modules that were imported

whole = cast("Callable[[Any], int]", numba.int64)
"""A whole number to count with inside a kernel: counting from a plain 0 would compile what it is passed to twice."""


def compiled(function: F) -> F:
    """Compile a kernel when it is first called and keep the result on disk.

    The kernels release the GIL and never reassociate sums, so that a dry run gives the same bits everywhere.
    Where the package folder is read-only Numba keeps its cache in the user's cache folder; where there is none either,
    each process compiles for itself.
    """
    try:
        kernel = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # no folder to keep it in
        return cast(F, numba.njit(nogil=True, error_model="numpy")(function))
    _delete_stale(kernel)
    _kernels.append(kernel)
    return cast(F, kernel)


def inner(function: F) -> F:
    """Compile a kernel that only other kernels call; it is inlined there and has no cache file of its own.

    Nothing takes its address, so the wrapper for C, which costs time to compile, is left out.
    """
    njit: Any = numba.njit  # whose annotations lack an option
    return cast(F, njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True)(function))


def fixed(array: NDArray[Any], kind: DTypeLike) -> NDArray[Any]:
    """An array in the one form that kernels are compiled for: contiguous, read-only, of one type."""
    view = np.ascontiguousarray(array, dtype=kind).view()
    view.setflags(write=False)
    return view


def is_cached(kernel: Callable[..., Any]) -> bool:
    """Whether an earlier run has cached a compiled version of this kernel."""
    return bool(_cache_files(kernel))


def share_cached(*modules: str) -> float:
    """Share of imported kernels that are cached; 1 if caching is impossible."""
    some = [kernel for kernel in _kernels if cast(Any, kernel).py_func.__module__ in modules]
    return sum(map(is_cached, some)) / len(some) if some else 1.0


def _cache_files(kernel: Callable[..., Any]) -> list[Path]:
    function = cast(Any, kernel).py_func
    module = function.__module__.rsplit(".", 1)[-1]
    return list(Path(cast(Any, kernel).stats.cache_path).glob(f"{module}.{function.__qualname__}-*.nbi"))


def _delete_stale(kernel: Callable[..., Any]) -> None:
    """Delete caches compiled from other sources, because Numba checks only the kernel's own file."""
    function = cast(Any, kernel).py_func
    folder = Path(cast(Any, kernel).stats.cache_path)
    stamp = folder / f"{function.__module__}.{function.__qualname__}.sources"
    try:
        sources = _source_digest(Path(function.__code__.co_filename).parent)
        if stamp.is_file() and stamp.read_text() == sources:
            return
        for index in _cache_files(kernel):
            index.unlink(missing_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        stamp.write_text(sources)
    except OSError:  # a cache that cannot be tidied is Numba's own affair
        return


@lru_cache
def _source_digest(room: Path) -> str:
    """Digest of the source files of a kernel's folder; kernels call only others of their own folder."""
    digest = hashlib.sha256()
    for path in sorted(room.glob("*.py")):
        text = path.read_bytes()
        if b"core.compiled" in text:
            digest.update(text)
    return digest.hexdigest()
