"""Randomized answers [JS07]: the client's side and, apart from it, reconstructing the distribution behind them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.randomize.reconstruct import Channel, Reconstruction, reconstruct_counts

__all__ = ["Channel", "Reconstruction", "reconstruct_counts"]

_HOMES = {
    "Channel": "sfumato.randomize.reconstruct",
    "Reconstruction": "sfumato.randomize.reconstruct",
    "reconstruct_counts": "sfumato.randomize.reconstruct",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sfumato.randomize' has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(_HOMES[name]), name)
    return value
