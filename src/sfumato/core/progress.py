"""How far a long step has come, told to whoever listens; silent when nobody does."""

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
    """A step was left because its time was up."""


@contextmanager
def stopping_at(moment: Callable[[], float], stage: str) -> Iterator[None]:
    """Leave the block with `OutOfTime` at the first `tell` after a moment of the monotonic clock, which may yet move.

    Of what is told inside, only one stage reaches whoever listened before.
    """
    outer = _listener.get()

    def watch(told: str, fraction: float) -> None:
        if told == stage and outer is not None:
            outer(told, fraction)
        if monotonic() >= moment():
            raise OutOfTime

    with listening(watch):
        yield


def tell(stage: str, fraction: float) -> None:
    """Say that a stage has come this far, from 0 to 1."""
    listener = _listener.get()
    if listener is not None:
        listener(stage, min(max(fraction, 0.0), 1.0))
