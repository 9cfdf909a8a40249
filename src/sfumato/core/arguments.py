"""How an option is declared, and how the arguments of a call are checked against its signature."""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, wraps
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from sfumato.core.errors import OptionError, closest_name, shown

__all__ = ["Option", "Panel", "check_argument", "checked", "option", "options_of", "spelled_option", "types_of"]

P = ParamSpec("P")
R = TypeVar("R")

_PLAIN: dict[Any, tuple[Any, str]] = {
    bool: (bool, "True or False"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "a text"),
    Path: (os.PathLike, "a path"),
}


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a function so that its arguments are checked against its annotations.

    Examples
    --------
    >>> def double(number: int) -> int:
    ...     return 2 * number
    >>> checked(double)("3")
    Traceback (most recent call last):
    sfumato.core.errors.OptionError: number is of type str; give a whole number
    """
    signature = inspect.signature(function)

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        hints = types_of(function)
        try:
            bound = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise OptionError(_signature_message(function, signature, kwargs, error)) from None
        for each, value in bound.items():
            if signature.parameters[each].kind is not inspect.Parameter.VAR_KEYWORD:
                check_argument(each, value, hints[each])
        return function(*args, **kwargs)

    return called


def _signature_message(
    function: Callable[..., Any], signature: inspect.Signature, names: Iterable[str], error: TypeError
) -> str:
    """Name an unknown argument and suggest the closest one; otherwise give Python's message."""
    name = function.__name__
    unknown = next((each for each in names if each not in signature.parameters), None)
    if unknown is None:
        return f"{name}: {error}; help(sfumato.{name}) says what it takes"
    meant = closest_name(unknown, signature.parameters)
    then = f"help(sfumato.{name}) lists them" if meant is None else f"did you mean {meant!r}?"
    return f"{name} has no argument {shown(unknown)}; {then}"


@cache
def types_of(owner: Callable[..., Any]) -> dict[str, object]:
    """Annotated types of a function's parameters or a class's fields; ``named_types`` of a class are loaded for it."""
    return get_type_hints(owner, localns=getattr(owner, "named_types", dict)())


def check_argument(name: str, value: Any, hint: Any) -> None:
    """Refuse a value of the wrong type; lists count as tuples, and unsupported annotations accept anything."""
    if _matches(value, hint):
        return
    words = list(dict.fromkeys(each for each in map(_words, _choices(hint)) if each))
    wanted = " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
    raise OptionError(f"{name} is of type {type(value).__name__}; give {wanted}")


def _choices(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _matches(value: Any, hint: Any) -> bool:
    return any(_is_instance(value, each) for each in _choices(hint))


def _is_instance(value: Any, hint: Any) -> bool:
    kind = get_origin(hint) or hint
    if kind in _PLAIN:
        return isinstance(value, _PLAIN[kind][0]) and (kind is bool or not isinstance(value, bool))
    if kind is Literal:
        return value in get_args(hint)
    if kind is Any or not isinstance(kind, type):
        return True
    if (
        not issubclass(kind, Iterable)
        or issubclass(kind, Mapping | np.ndarray)
        or kind.__module__.startswith("sfumato")
    ):
        return isinstance(value, kind) and not isinstance(value, type)
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
        return False
    of = next(iter(get_args(hint)), None)
    return (
        of not in _PLAIN or not isinstance(value, list | tuple | set) or all(_is_instance(each, of) for each in value)
    )


def _words(hint: Any) -> str:
    kind = get_origin(hint) or hint
    if kind in _PLAIN:
        return _PLAIN[kind][1]
    if kind is Literal:
        return f"one of {', '.join(map(repr, get_args(hint)))}"
    if kind is NoneType:
        return ""
    if kind.__name__ == "Mechanism":
        return "a mechanism such as Condensation(k=10), or a method's name as method"
    if kind.__module__.startswith("sfumato"):
        return f"a {kind.__name__}"
    if kind is np.ndarray:
        return "an array"
    if issubclass(kind, Iterable):
        return "a mapping" if issubclass(kind, Mapping) else f"a list{_item_type(hint)}"
    return "a function"


def _item_type(hint: Any) -> str:
    plurals: dict[Any, str] = {str: " of texts", int: " of whole numbers", float: " of numbers"}
    return plurals.get(next(iter(get_args(hint)), None), "")


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
    most : float, optional
        Largest number that is allowed.
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
    most: float | None = None
    above: float | None = None
    path: bool = False
    in_recipe: bool = False
    beside_recipe: bool = False
    needs_all_rows: bool = False
    needs_groups_of_rows: bool = False


def option(default: R, words: str, panel: Panel = Panel.METHOD, verbs: tuple[str, ...] = (), **more: Any) -> R:
    """Field of a dataclass that is an option: its default and its help, and how it is offered."""
    return field(default=default, metadata={"option": Option(words, panel, verbs, **more)})


def options_of(owner: type[Any]) -> list[tuple[str, Option]]:
    """Fields of a class that are options, by name and in order, and how they are offered."""
    return [(each.name, each.metadata["option"]) for each in dataclasses.fields(owner) if "option" in each.metadata]


def spelled_option(name: str, option: Option) -> str:
    """An option as it is written on the command line."""
    return f"--{option.spelled or name.replace('_', '-')}"
