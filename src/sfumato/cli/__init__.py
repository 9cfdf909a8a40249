"""The command line: one file a verb, no logic."""

from __future__ import annotations

from sfumato.cli.main import main

__all__ = ["main"]
