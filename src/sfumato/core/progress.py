"""How far a long step has come, told to whoever listens; silent when nobody does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["Listener", "listening", "tell"]

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


def tell(stage: str, fraction: float) -> None:
    """Say that a stage has come this far, from 0 to 1."""
    listener = _listener.get()
    if listener is not None:
        listener(stage, min(max(fraction, 0.0), 1.0))
