"""One thread for linear algebra and models: on tables of people threads mostly wait for one another."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

__all__ = ["one_blas_thread", "one_thread"]


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold BLAS and OpenMP to one thread; around a function as a decorator, or for a while.

    A pool is held only if it was loaded before. Searches that share their queries out themselves still use all cores.
    """
    with _pools(len(sys.modules)).limit(limits=1):
        yield


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS alone to one thread, as for many small matrices; see `one_thread`."""
    with _pools(len(sys.modules)).limit(limits=1, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def _pools(modules: int) -> Any:  # noqa: ARG001
    """The pools that are loaded, looked for anew where a module was imported since: a look takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
