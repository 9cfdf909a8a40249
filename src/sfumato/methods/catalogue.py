"""Methods and their parameters by name, as Python, commands and recipes use them."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from numbers import Integral, Real
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from sfumato.core.arguments import Option, options_of
from sfumato.core.errors import OptionError, closest_name, shown
from sfumato.methods.chain import LEAF, Chain
from sfumato.methods.protocol import Mechanism
from sfumato.registry import load_method, method_names

__all__ = [
    "MIN_ROWS_FOR_CHAIN",
    "Parameter",
    "all_parameters",
    "default_k",
    "default_method",
    "is_keyed",
    "make_mechanism",
    "parameters_of_method",
]

MIN_ROWS_FOR_CHAIN = 200
"""Rows from which the chain is the method where none is named, four leaves of the usual size: fewer than 250 people
inside were never measured (``benchmarks/results/frontier.md``)."""

_FEW = 2_000
"""People below whom a chain has more than ten behind a value: what few of so few have tells who is in the table. Chosen
on 500, 1,000, 2,000 and 4,000 people of Adult, Magic, waveform and a made-up table (benchmarks/results/frontier.md)."""

_KINDS: dict[type, tuple[type, str]] = {
    bool: (bool, "true or false"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "a text"),
}


@dataclass(frozen=True)
class Parameter:
    """A parameter of some methods.

    Parameters
    ----------
    name : str
        As the field of the mechanism is called.
    kind : type
        Of its value, bool, int, float or str; of each value where there are several.
    values : int
        How many values it takes; 2 for a range.
    by_column : bool
        Whether every column may have its own.
    several : bool
        Whether it is a list of values of any length.
    option : Option, optional
        How it is offered; None where another method offers it for all.
    """

    name: str
    kind: type
    values: int = 1
    by_column: bool = False
    several: bool = False
    option: Option | None = dataclasses.field(default=None, repr=False)

    @property
    def width(self) -> int:
        """Number of words of one value on the command line."""
        return 1 if self.by_column else self.values


def make_mechanism(method: str, parameters: Mapping[str, Any]) -> Mechanism:
    """Build a mechanism from its name and parameters.

    Examples
    --------
    >>> make_mechanism("condense-paper", {"k": 5}).k
    5
    """
    known = parameters_of_method(method)
    unknown = sorted(set(parameters) - set(known) - ({"key"} if is_keyed(method) else set()))
    if unknown:
        meant = closest_name(unknown[0], known)
        then = f"its parameters are {', '.join(known)}" if meant is None else f"did you mean {meant!r}?"
        raise OptionError(f"the method {method!r} has no parameter {shown(unknown[0])}; {then}")
    for name, parameter in known.items():
        value, single = parameters.get(name), parameter.values == 1 and not (parameter.by_column or parameter.several)
        if value is not None and single and not _has_type(value, _KINDS[parameter.kind][0]):
            words = _KINDS[parameter.kind][1]
            raise OptionError(f"the parameter {name!r} of the method {method!r} is not {words}; fix it")
    made: Mechanism = load_method(method)(**parameters)
    return made


def default_method(parameters: Iterable[str], rows: int) -> str:
    """Default method: the chain; condensation for very few rows or if its parameters are given.

    Examples
    --------
    >>> default_method(["k"], 5_000), default_method(["k", "grouping"], 5_000), default_method([], 60)
    ('chain', 'condense', 'condense')
    """
    fits = rows >= MIN_ROWS_FOR_CHAIN and set(parameters) <= set(parameters_of_method("chain"))
    return "chain" if fits else "condense"


def default_k(people: int) -> int:
    """Default minimum number of persons behind a value of a chain: ten, for small tables a tenth of the persons.

    Examples
    --------
    >>> default_k(50_000), default_k(1_000), default_k(300)
    (10, 50, 30)
    """
    return max(Chain.k, min(LEAF, people // 10)) if people < _FEW else Chain.k


@cache
def parameters_of_method(method: str) -> dict[str, Parameter]:
    """Parameters of a method by name, from the fields of its mechanism; secret keys are not parameters.

    Examples
    --------
    >>> parameters_of_method("rotate")["degrees"]
    Parameter(name='degrees', kind=<class 'float'>, values=2, by_column=False, several=False)
    """
    constructor = _constructor(method)
    if constructor is None:
        meant = closest_name(method, method_names())
        hint = f"choose one of {', '.join(method_names())}" if meant is None else f"did you mean {meant!r}?"
        raise OptionError(f"there is no method {shown(method)}; {hint}")
    made = get_type_hints(constructor).get("return", constructor)
    found: dict[str, Parameter] = {}
    for owner in get_args(made) or (made,):
        hints, offers = get_type_hints(owner), dict(options_of(owner))
        for each in dataclasses.fields(owner):
            option = offers.get(each.name)
            found.setdefault(each.name, dataclasses.replace(_parameter(each.name, hints[each.name]), option=option))
    return found


@cache
def all_parameters() -> dict[str, Parameter]:
    """Parameters of all methods by name; a name means the same in every method.

    Raises
    ------
    OptionError
        If a method of an extension has a parameter of another type than other methods, or one that is not declared.
    """
    found: dict[str, Parameter] = {}
    for method in method_names():
        for name, each in parameters_of_method(method).items():
            before = found.setdefault(name, each)
            if dataclasses.replace(before, option=each.option) != each:
                raise OptionError(f"the parameter {name!r} of the method {method!r} has another type than elsewhere")
            if before.option is None:
                found[name] = each
    lacking = next((name for name, each in found.items() if each.option is None), None)
    if lacking is not None:
        raise OptionError(f"the parameter {lacking!r} of a method is not declared; declare it with option()")
    return found


def is_keyed(method: str) -> bool:
    """Whether a method transforms rows by a secret key.

    Examples
    --------
    >>> is_keyed("rotate"), is_keyed("condense")
    (True, False)
    """
    constructor = _constructor(method)
    return constructor is not None and "key" in inspect.signature(constructor).parameters


def _constructor(method: str) -> Callable[..., Mechanism] | None:
    """Class or function whose signature lists the parameters of a method; None if there is no such method."""
    try:
        made = load_method(method)
    except KeyError:
        return None
    return made.func if isinstance(made, partial) else made


def _parameter(name: str, hint: Any) -> Parameter:
    """Parameter by the type of its field: ``int | None``, a pair of numbers, or rows that begin with a column."""
    if get_origin(hint) is UnionType:  # None is the default of some, a mapping another way to write rows
        hint = next(each for each in get_args(hint) if each is not type(None))
    if get_origin(hint) is not tuple:
        return Parameter(name, hint)
    first, last = get_args(hint)
    if last is not Ellipsis:
        return Parameter(name, first, 2)
    if get_origin(first) is not tuple:
        return Parameter(name, first, several=True)
    _column, kind, *more = get_args(first)
    return Parameter(name, kind, 1 + len(more), by_column=True)


def _has_type(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
