"""Commands and measures by name, each with the module that holds it, which is loaded at its first use.

The verticals (`parties`, `stream`, `survey`, `transactions`) are known here alone: the core loads them by name and
imports none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

__all__ = ["COMMANDS", "load_command", "load_status", "secure_engine", "vertical_checks", "vertical_measures"]

COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "demo": "cli.verbs",
        "inspect": "cli.verbs",
        "tune": "cli.evaluate",
        "sanitize": "cli.sanitize",
        "evaluate": "cli.evaluate",
        "policy": "cli.verbs",
        "verify": "cli.verbs",
        "signing-key": "cli.signing",
        "breach": "survey.estimate_commands",
        "survey": "survey.commands",
        "transactions": "transactions.commands",
        "stream": "stream.commands",
        "reconstruct": "survey.estimate_commands",
        "relate": "survey.estimate_commands",
        "party": "parties.commands",
        "web": "cli.verbs",
        "doctor": "cli.verbs",
    }
)
"""Commands in the order of the help, and the module of each."""

_MEASURES = ("transactions.measures",)  # modules with MEASURES
_CHECKS = ("transactions.table",)  # modules with check_released
_STATUS = {"stream": "stream.verb", "survey": "survey.estimate"}  # modules with status_page


def load_command(name: str) -> Any:
    """Command of this name; raises KeyError if there is none."""
    return getattr(_module(COMMANDS[name]), name.replace("-", "_"))


def load_status(name: str) -> Any:
    """Function that tells the local page how a stream or a survey stands; raises KeyError if there is none."""
    return _module(_STATUS[name]).status_page


def secure_engine() -> Path:
    """Python interpreter with the engine for secure computation; raises OptionError if there is none."""
    found: Path = _module("parties.spu").engine_python()
    return found


def vertical_measures() -> tuple[Any, ...]:
    """Measures that the verticals add."""
    return tuple(measure for name in _MEASURES for measure in _module(name).MEASURES)


def vertical_checks(table: Path, facts: Sequence[Any], most_bytes: int | None) -> list[tuple[str, bool, str]]:
    """What the verticals find in a released table: what was checked, whether it is as certified, and the detail."""
    return [found for name in _CHECKS for found in _module(name).check_released(table, facts, most_bytes)]


def _module(name: str) -> Any:
    return import_module(f"sfumato.{name}")
