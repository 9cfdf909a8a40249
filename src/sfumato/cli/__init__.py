"""The command line: verbs that parse, call a function and print; no logic."""

from __future__ import annotations

from sfumato.cli.main import main

__all__ = ["main"]
