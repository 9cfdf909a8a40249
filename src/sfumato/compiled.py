"""The one way a hot loop is compiled: Numba, cached on disk, so that only the first run waits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

__all__ = ["compiled", "is_cached", "will_compile"]

F = TypeVar("F", bound=Callable[..., Any])

_KERNELS: list[Callable[..., Any]] = []


def compiled(function: F) -> F:
    """Compile a kernel when it is first called and keep the result on disk.

    The kernels release the GIL and never reassociate sums, so that a rehearsal gives the same bits everywhere.
    Where the package folder is read-only Numba keeps its cache in the user's cache folder.
    """
    import numba

    kernel = numba.njit(cache=True, nogil=True)(function)
    _KERNELS.append(kernel)
    return cast(F, kernel)


def is_cached(kernel: Callable[..., Any]) -> bool:
    """Tell whether an earlier run has left a compiled version of this kernel."""
    function = cast(Any, kernel).py_func
    module = function.__module__.rsplit(".", 1)[-1]
    folder = Path(cast(Any, kernel).stats.cache_path)
    return any(folder.glob(f"{module}.{function.__qualname__}-*.nbi"))


def will_compile() -> bool:
    """Tell whether the kernels that were loaded so far still have to be compiled."""
    return any(not is_cached(kernel) for kernel in _KERNELS)
