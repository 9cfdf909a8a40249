"""Dataclasses as the shapes of documents: plain values become them and come of them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from sfumato.core.documents.parsing import Unparsable, parse_json

__all__ = ["UNLESS_DEFAULT", "Misfit", "fits", "from_json", "plain", "typed"]

T = TypeVar("T")
Path = tuple[str | int, ...]

UNLESS_DEFAULT: Mapping[str, bool] = {"unless default": True}
"""Metadata of a dataclass field that is written only where it is not its default."""


class Misfit(Unparsable):
    """Which entry of a document is not of its shape; its words quote nothing of the document.

    ``problem`` is "unknown", "missing" or "wrong". ``path`` has the names of entries, and places in lists counted from
    0, down to the table or value; ``entry`` is what is unknown or missing there, or the last name of the path; ``hint``
    is the type that was wanted.
    """

    def __init__(self, problem: str, path: Path, entry: str | None = None, hint: Any = None) -> None:
        names = [name for name in path if isinstance(name, str)]
        self.problem, self.path, self.hint = problem, path, hint
        self.entry = entry if entry is not None else names[-1] if names else ""
        where = ".".join(names)
        told = f"an entry {where!r} that is not of type {_named(hint)}" if where else f"no {_named(hint)}"
        inside = f" in {where!r}" if where else ""
        words = {"unknown": "other entries than it should", "missing": "fewer entries than it should"}
        super().__init__(words[problem] + inside if problem in words else told)


def from_json(shape: type[T], text: str | bytes, *, most: int | None = None) -> T:
    """Value of a shape that a JSON document holds; as `parse_json`, then `typed`."""
    return typed(shape, parse_json(text, most=most))


def typed(shape: type[T], document: object) -> T:
    """Value of a shape from the plain values of a document: every entry of its type, none unknown, none lacking.

    A field that has a default may be left out, as it is in files of a version that did not know it.

    Parameters
    ----------
    shape : type
        A dataclass, or a tuple, list or mapping; inside it dataclasses, texts, numbers, yes or no, None, dates,
        enumerations, literals, choices between these, tuples, lists and mappings of them.
    document : object
        Of `parse_json` or `parse_toml`.

    Raises
    ------
    Misfit
        Which says what is wrong, and never a value.

    Examples
    --------
    >>> @dataclasses.dataclass
    ... class Point:
    ...     x: float
    ...     names: tuple[str, ...] = ()
    >>> typed(Point, {"x": 1, "names": ["a"]})
    Point(x=1, names=('a',))
    """
    return cast(T, _value(shape, document, ()))


def fits(shape: Any, document: object) -> bool:
    """Whether plain values are those of a shape; of a dataclass, each is asked by itself and may be left out."""
    if dataclasses.is_dataclass(shape):
        hints = _hints(cast(type, shape))
        return isinstance(document, Mapping) and all(
            name in hints and fits(hints[name], value) for name, value in document.items()
        )
    try:
        _value(shape, document, ())
    except Misfit:
        return False
    return True


def plain(value: Any) -> Any:
    """Plain values of a document: dataclasses as tables, tuples and arrays as lists, enumerations by their values.

    Examples
    --------
    >>> @dataclasses.dataclass
    ... class Point:
    ...     x: float
    ...     names: tuple[str, ...] = dataclasses.field(default=(), metadata=UNLESS_DEFAULT)
    >>> plain([Point(1.0), Point(2.0, ("a",))])
    [{'x': 1.0}, {'x': 2.0, 'names': ['a']}]
    """
    if dataclasses.is_dataclass(value):
        return {
            field.name: plain(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if not field.metadata.get("unless default") or getattr(value, field.name) != _default(field)
        }
    if isinstance(value, Mapping):
        return {key: plain(inside) for key, inside in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inside) for inside in value]
    if isinstance(value, Enum):
        return value.value
    return value.tolist() if hasattr(value, "tolist") else value


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


@cache
def _entries(shape: type) -> dict[str, tuple[Any, bool]]:
    """Type of every entry of a dataclass, and whether it must be there."""
    hints, fields = _hints(shape), (field for field in dataclasses.fields(shape) if field.init)
    return {field.name: (hints[field.name], _default(field) is dataclasses.MISSING) for field in fields}


@cache
def _hints(shape: type) -> dict[str, Any]:
    hints = get_type_hints(shape)
    return {field.name: hints[field.name] for field in dataclasses.fields(shape)}


def _value(hint: Any, value: object, path: Path) -> Any:
    if hint is Any or hint is object:
        return value
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _shape(hint, value, path)
    kind, inside = get_origin(hint), get_args(hint)
    if kind in (Union, UnionType):
        return _choice(hint, [each for each in inside if each is not NoneType or value is None], value, path)
    if kind in (tuple, list, Sequence) and isinstance(value, list | tuple):
        alike = len(inside) == 1 or inside[1:] == (...,)
        if alike or len(inside) == len(value):
            hints = [inside[0]] * len(value) if alike else inside
            pairs = enumerate(zip(hints, value, strict=True))
            try:
                read = [_value(each, item, (*path, place)) for place, (each, item) in pairs]
            except Misfit as wrong:
                if len(wrong.path) > len(path) + 1 or wrong.problem != "wrong":
                    raise
                raise Misfit("wrong", path, hint=hint) from None
            return read if kind is list else tuple(read)
    elif kind in (dict, Mapping) and isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: _value(inside[1], item, path) for key, item in value.items()}
    elif kind is Literal:
        if any(value == each and type(value) is type(each) for each in inside):
            return value
    elif hint in (int, float):
        whole = isinstance(value, int) and not isinstance(value, bool)
        if whole or (hint is float and isinstance(value, float) and math.isfinite(value)):
            return value
    elif isinstance(hint, type) and issubclass(hint, Enum):
        if isinstance(value, str) and any(value == each.value for each in hint):
            return hint(value)
    elif isinstance(hint, type) and kind is None and isinstance(value, hint):
        return value
    raise Misfit("wrong", path, hint=hint)


def _choice(hint: Any, kinds: list[Any], value: object, path: Path) -> Any:
    if len(kinds) == 1:  # or None, which it is not: what is wrong inside is told
        return _value(kinds[0], value, path)
    for kind in kinds:
        try:
            return _value(kind, value, path)
        except Misfit:
            continue
    raise Misfit("wrong", path, hint=hint)


def _shape(shape: type, document: object, path: Path) -> Any:
    if not isinstance(document, Mapping):
        raise Misfit("wrong", path, hint=shape)
    entries = _entries(shape)
    unknown = next((name for name in document if name not in entries), None)
    if unknown is not None:
        raise Misfit("unknown", path, str(unknown), shape)
    given = {}
    for name, (hint, needed) in entries.items():
        if name in document:
            given[name] = _value(hint, document[name], (*path, name))
        elif needed:
            raise Misfit("missing", path, name, shape)
    return shape(**given)


def _named(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint).replace("typing.", "")
