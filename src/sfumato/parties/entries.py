"""Reading a settings file entry by entry, so that what is missing, wrong or unknown is named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.errors import OptionError

__all__ = ["Entries"]

_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "text": ((str,), "a text in quotes"),
    "number": ((int, float), "a number"),
    "whole": ((int,), "a whole number"),
    "texts": ((list,), "a list of texts"),
}


class Entries:
    """The entries of one table of the file, each taken once; what is left over is unknown."""

    def __init__(self, table: Mapping[str, Any], where: str) -> None:
        self._table, self._left, self._where = table, set(table), where

    def take(self, key: str, kind: str = "text", default: Any = None) -> Any:
        """Give an entry of a kind; the default where it is not there."""
        self._left.discard(key)
        value = self._table.get(key, default)
        if value is default:
            return default
        types, words = _KINDS[kind]
        inside = value if isinstance(value, list) else []
        if not isinstance(value, types) or isinstance(value, bool) or not all(isinstance(one, str) for one in inside):
            raise OptionError(f"{self._named(key)} is not {words}; mend it")
        return value

    def need(self, key: str, kind: str = "text") -> Any:
        """Give an entry that must be there."""
        value = self.take(key, kind)
        if value is None or value == "":
            raise OptionError(f"{self._named(key)} is missing; add it")
        return value

    def table(self, key: str) -> Entries:
        """Give a table inside, empty where it is not there."""
        self._left.discard(key)
        inside = self._table.get(key, {})
        if not isinstance(inside, dict):
            raise OptionError(f"{key!r} is not a table; write it as [{key}]")
        return Entries(inside, f" in [{key}]")

    def tables(self, key: str) -> list[Entries]:
        """Give a list of tables."""
        self._left.discard(key)
        inside = self._table.get(key, [])
        if not isinstance(inside, list) or not all(isinstance(each, dict) for each in inside):
            raise OptionError(f"{key!r} is not a list of tables; write each as [[{key}]]")
        return [Entries(each, f" in [[{key}]] number {place}") for place, each in enumerate(inside, 1)]

    def done(self, known: str) -> None:
        """Refuse what nobody took."""
        if self._left:
            raise OptionError(f"{self._named(min(self._left))} is unknown; known are {known}")

    def _named(self, key: str) -> str:
        return f"the entry {key!r}{self._where} of the party's settings"
