"""Progress of long steps, reported to a listener if there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic

__all__ = ["Listener", "OutOfTime", "listening", "stopping_at", "tell"]

Listener = Callable[[str, float], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Send every `tell` inside the block to a listener."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


class OutOfTime(Exception):
    """A step was stopped because its time was up."""


@contextmanager
def stopping_at(moment: Callable[[], float], stage: str) -> Iterator[None]:
    """Stop the block with `OutOfTime` at the first `tell` after a monotonic time, which may still move.

    Of the stages inside, only one reaches the earlier listener.
    """
    outer = _listener.get()

    def watch(name: str, fraction: float) -> None:
        if name == stage and outer is not None:
            outer(name, fraction)
        if monotonic() >= moment():
            raise OutOfTime

    with listening(watch):
        yield


def tell(stage: str, fraction: float) -> None:
    """Report the progress of a stage, from 0 to 1."""
    listener = _listener.get()
    if listener is not None:
        listener(stage, min(max(fraction, 0.0), 1.0))
