"""Where a state lies: entries that are changed together or not at all, by one writer at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from sfumato.errors import OptionError
from sfumato.stream.format import Entry

__all__ = ["Store", "create_store", "open_store"]


class Store(Protocol):
    """A place that holds entries.

    Several may read; one writes. What `commit` was given is on disk when it returns, whole, and survives the end of the
    process at any moment.
    """

    @property
    def name(self) -> str:
        """What errors call the place; never a password."""
        ...

    @property
    def acknowledged(self) -> int | None:
        """The number of the last commit that is known to have been made, where the place can tell."""
        ...

    def read(self, kind: str | None = None) -> Iterator[Entry]:
        """Give the entries of one moment, of one kind or all."""
        ...

    def commit(self, put: Iterable[Entry], drop: Iterable[tuple[str, str]], number: int) -> None:
        """Write and remove entries in one step, which is commit number so many."""
        ...

    def close(self) -> None:
        """Let go of the place."""
        ...


def open_store(place: str | Path, *, write: bool) -> Store:
    """Open the state at a path, or in PostgreSQL by its URL.

    Raises
    ------
    StateError
        Where there is none, it is damaged, or another process writes to it.
    """
    if "://" in str(place):
        from sfumato.stream.postgres import PostgresStore

        return PostgresStore.open(_checked_url(str(place)), write=write)
    from sfumato.stream.sqlite import SqliteStore

    return SqliteStore.open(Path(place), write=write)


def create_store(place: str | Path, entries: Iterable[Entry]) -> None:
    """Write a new state, whole or not at all.

    Raises
    ------
    OptionError
        Where there is one already.
    """
    if "://" in str(place):
        from sfumato.stream.postgres import PostgresStore

        PostgresStore.create(_checked_url(str(place)), entries)
        return
    from sfumato.stream.sqlite import SqliteStore

    SqliteStore.create(Path(place), entries)


def _checked_url(url: str) -> str:
    if url.partition("://")[0] not in ("postgresql", "postgres"):
        raise OptionError("the state is a file or a PostgreSQL URL; write a path, or postgresql://USER@HOST/NAME")
    return url
