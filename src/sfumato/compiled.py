"""The one way a hot loop is compiled: Numba, cached on disk, so that only the first run waits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

__all__ = ["compiled", "is_cached"]

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile a kernel when it is first called and keep the result on disk.

    The kernels release the GIL and never reassociate sums, so that a rehearsal gives the same bits everywhere.
    Where the package folder is read-only Numba keeps its cache in the user's cache folder.
    """
    return cast(F, numba.njit(cache=True, nogil=True)(function))


def is_cached(kernel: Callable[..., Any]) -> bool:
    """Tell whether an earlier run has left a compiled version of this kernel."""
    stats = cast(Any, kernel).stats
    name = f"{cast(Any, kernel).py_func.__name__}-*.nbi"
    module = cast(Any, kernel).py_func.__module__.rsplit(".", 1)[-1]
    return any(Path(stats.cache_path).glob(f"{module}.{name}"))
