"""Limit linear algebra and models to one thread, which is fastest on tables of people."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

__all__ = ["one_blas_thread", "one_thread"]


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS and OpenMP to one thread; a decorator or a context manager.

    A pool is held only if it was loaded before. Searches that share their queries out themselves still use all cores.
    """
    with _pools(len(sys.modules)).limit(limits=1):
        yield


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS alone to one thread, as for many small matrices; see `one_thread`."""
    with _pools(len(sys.modules)).limit(limits=1, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def _pools(modules: int) -> Any:  # noqa: ARG001
    """Loaded thread pools, searched again only after new imports, because a search takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
