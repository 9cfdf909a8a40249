"""Arguments of a call against the types that its signature names, so that a wrong one is told in one sentence."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping, Set
from functools import cache, partial, wraps
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from sfumato.core.errors import OptionError, SfumatoError, closest_name, shown

__all__ = ["check_argument", "checked", "naming_arguments", "types_of"]

_Told = ParamSpec("_Told")
_Given = TypeVar("_Given")

_PLAIN: dict[Any, tuple[Any, str]] = {
    bool: (bool, "True or False"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "a text"),
    Path: (os.PathLike, "a path"),
}


def checked(function: Callable[_Told, _Given]) -> Callable[_Told, _Given]:
    """The function, whose arguments are held against the types that its signature names before it is called.

    Examples
    --------
    >>> def double(number: int) -> int:
    ...     return 2 * number
    >>> checked(double)("3")
    Traceback (most recent call last):
    sfumato.core.errors.OptionError: number is of type str; give a whole number
    """
    signature, named = inspect.signature(function), naming_arguments(function)

    @wraps(function)
    def called(*args: _Told.args, **kwargs: _Told.kwargs) -> _Given:
        hints = types_of(function)
        try:
            told = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise OptionError(_misfit(function, signature, kwargs, error)) from None
        for each, value in told.items():
            if signature.parameters[each].kind is not inspect.Parameter.VAR_KEYWORD:
                check_argument(each, value, hints[each])
        return named(*args, **kwargs)

    return called


def naming_arguments(function: Callable[_Told, _Given]) -> Callable[_Told, _Given]:
    """The function, whose errors name Python arguments where a message names command-line options.

    Examples
    --------
    >>> def release(*, holdout: float | None = None, report: bool = True) -> None:
    ...     raise OptionError("a policy needs a control group; add --holdout 0.3 and drop --no-report")
    >>> naming_arguments(release)()
    Traceback (most recent call last):
    sfumato.core.errors.OptionError: a policy needs a control group; add holdout=0.3 and drop report=False
    """
    signature = inspect.signature(function)

    @wraps(function)
    def called(*args: _Told.args, **kwargs: _Told.kwargs) -> _Given:
        try:
            return function(*args, **kwargs)
        except SfumatoError as error:
            if error.in_python is None:
                flags = {name for name, hint in types_of(function).items() if set(_choices(hint)) <= {bool, NoneType}}
                spell = partial(_spell_argument, set(signature.parameters), flags)
                error.in_python = _TWICE.sub(r"\1", _OPTION.sub(spell, str(error)))
            raise

    return called


_VALUED = "decimal|encoding|engine|method|metric|pending|rare|split|strategy|tails|within"  # take a word
_OPTION = re.compile(
    rf"--(?P<valued>{_VALUED}) (?P<word>(?!(?:and|is|or|says|what)\b)[a-z0-9-]+)\b"
    r"|--(?P<name>[a-z][a-z0-9]*(?:-[a-z0-9]+)*)"
    r"(?: (?P<number>\d+(?:\.\d+)?)|=(?P<text>[^\s,;]+)| (?P<value>[A-Z]{2,}))?"
)
_TWICE = re.compile(r"\b(\w+) \('\1'\)")  # a message that names an argument and its option
_OTHERWISE = {"format": "form", "spec": "specs", "noise": "kind"}  # options that are spelt otherwise than arguments


def _spell_argument(arguments: Set[str], flags: Set[str], option: re.Match[str]) -> str:
    """An option of a message as the argument of a function."""
    if option["valued"] is not None:
        return f"{option['valued']}={option['word']!r}"
    name = option["name"].replace("-", "_")
    name = _OTHERWISE.get(name, name)
    if name.startswith("no_") and name not in arguments and name[3:] in arguments:
        return f"{name[3:]}=False"
    if name not in arguments and f"{name}s" in arguments:
        name = f"{name}s"
    if option["text"] is not None:
        return f"{name}={option['text']!r}"
    plain = option["number"] or option["value"]
    if plain is not None:
        return f"{name}={plain}"
    return f"{name}=True" if name in flags else repr(name)


def _misfit(function: Callable[..., Any], signature: inspect.Signature, told: Iterable[str], error: TypeError) -> str:
    """Say which argument a function does not have, and which was probably meant; otherwise what Python says."""
    name = function.__name__
    unknown = next((each for each in told if each not in signature.parameters), None)
    if unknown is None:
        return f"{name}: {error}; help(sfumato.{name}) says what it takes"
    meant = closest_name(unknown, signature.parameters)
    then = f"help(sfumato.{name}) lists them" if meant is None else f"did you mean {meant!r}?"
    return f"{name} has no argument {shown(unknown)}; {then}"


@cache
def types_of(owner: Callable[..., Any]) -> dict[str, Any]:
    """Types that a function's signature or a class's fields name."""
    return get_type_hints(owner)


def check_argument(name: str, value: Any, hint: Any) -> None:
    """Refuse a value that is not of the type; lists stand for tuples, and what is not known here is let through."""
    if _fits(value, hint):
        return
    words = list(dict.fromkeys(each for each in map(_words, _choices(hint)) if each))
    wanted = " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
    raise OptionError(f"{name} is of type {type(value).__name__}; give {wanted}")


def _choices(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _fits(value: Any, hint: Any) -> bool:
    return any(_is_of(value, each) for each in _choices(hint))


def _is_of(value: Any, hint: Any) -> bool:
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
    return of not in _PLAIN or not isinstance(value, list | tuple | set) or all(_is_of(each, of) for each in value)


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
        return "a mapping" if issubclass(kind, Mapping) else f"a list{_each(hint)}"
    return "a function"


def _each(hint: Any) -> str:
    plurals: dict[Any, str] = {str: " of texts", int: " of whole numbers", float: " of numbers"}
    return plurals.get(next(iter(get_args(hint)), None), "")
