"""How an option is declared: in the metadata of the field that holds it, once for all who offer it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

__all__ = ["Option", "Panel", "offered", "options_of", "spelled_option"]


class Panel(StrEnum):
    """What an option is about: the panels of the help, in their order."""

    FIRST = "Most used"
    INPUT = "Input"
    COLUMNS = "Columns"
    METHOD = "Method"
    PRIVACY = "Privacy"
    MEASURING = "Measuring"
    OUTPUT = "Output"
    ENGINE = "Engine"
    SERVER = "Server"


@dataclass(frozen=True)
class Option:
    """How an option is offered.

    Parameters
    ----------
    help : str
        One sentence; the default in brackets if it needs words.
    panel : Panel
    verbs : tuple of str
        The verbs that accept it.
    first : tuple of str
        Those of them whose help lists it among the most used options.
    helps : mapping of str to str
        Help for verbs where it means something narrower.
    spelled : str
        Its name on the command line, if it is another than that of the field.
    metavar : str, optional
    choices : tuple of str
        Allowed values.
    least : int or float, optional
        Smallest number that is allowed; a whole number allows whole numbers only.
    above : float, optional
        Numbers must be larger.
    path : bool
        The command line reads it as a path.
    in_recipe : bool
        A recipe repeats it.
    beside_recipe : bool
        It may be given beside a recipe; else it is refused there.
    needs_all_rows : bool
        Only a run in memory honours it.
    needs_groups_of_rows : bool
        A run that transforms a file batch by batch cannot honour it.
    """

    help: str
    panel: Panel = Panel.METHOD
    verbs: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    helps: Mapping[str, str] = field(default_factory=dict)
    spelled: str = ""
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    least: float | None = None
    above: float | None = None
    path: bool = False
    in_recipe: bool = False
    beside_recipe: bool = False
    needs_all_rows: bool = False
    needs_groups_of_rows: bool = False


def offered(words: str, panel: Panel = Panel.METHOD, verbs: tuple[str, ...] = (), **more: Any) -> Mapping[str, Option]:
    """Metadata of a field that is an option: its help, and how it is offered."""
    return {"option": Option(words, panel, verbs, **more)}


def options_of(owner: type[Any]) -> list[tuple[str, Option]]:
    """Fields of a class that are options, by name and in order, and how they are offered."""
    return [(each.name, each.metadata["option"]) for each in dataclasses.fields(owner) if "option" in each.metadata]


def spelled_option(name: str, option: Option) -> str:
    """An option as it is written on the command line."""
    return f"--{option.spelled or name.replace('_', '-')}"
