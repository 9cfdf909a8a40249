"""Check the arguments of a call against the annotations of its signature, and report a wrong one in one sentence."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from functools import cache, wraps
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from sfumato.core.errors import OptionError, closest_name, shown

__all__ = ["check_argument", "checked", "types_of"]

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
    def called(*args: _Told.args, **kwargs: _Told.kwargs) -> _Given:
        hints = types_of(function)
        try:
            told = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise OptionError(_signature_message(function, signature, kwargs, error)) from None
        for each, value in told.items():
            if signature.parameters[each].kind is not inspect.Parameter.VAR_KEYWORD:
                check_argument(each, value, hints[each])
        return function(*args, **kwargs)

    return called


def _signature_message(
    function: Callable[..., Any], signature: inspect.Signature, told: Iterable[str], error: TypeError
) -> str:
    """Name an unknown argument and suggest the closest one; otherwise give Python's message."""
    name = function.__name__
    unknown = next((each for each in told if each not in signature.parameters), None)
    if unknown is None:
        return f"{name}: {error}; help(sfumato.{name}) says what it takes"
    meant = closest_name(unknown, signature.parameters)
    then = f"help(sfumato.{name}) lists them" if meant is None else f"did you mean {meant!r}?"
    return f"{name} has no argument {shown(unknown)}; {then}"


@cache
def types_of(owner: Callable[..., Any]) -> dict[str, Any]:
    """Annotated types of a function's parameters or a class's fields."""
    return get_type_hints(owner)


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
