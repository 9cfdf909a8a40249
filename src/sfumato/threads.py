"""One thread for linear algebra and models: on tables of people threads mostly wait for one another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["one_thread"]


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold BLAS and OpenMP to one thread; around a function as a decorator, or for a while.

    A pool is held only if it was loaded before. Searches that share their queries out themselves still use all cores.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield
