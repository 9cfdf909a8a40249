"""Persons of a stream: so many rows of each are taken in, known by keyed digests alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import OptionError
from sfumato.engines.stream.entries import StateEntry, whole_number
from sfumato.engines.stream.pending import Purpose, Vault, from_hex
from sfumato.engines.stream.settings import StreamSettings
from sfumato.engines.stream.state import State
from sfumato.tables.cells import absent_cells, plain

__all__ = ["CountedPersons", "digests_of", "first_of_each", "open_persons"]

_PERSON = "person"


class CountedPersons:
    """How many rows of each person were taken in; who they are cannot be told without the key."""

    def __init__(self, state: State, settings: StreamSettings, vault: Vault | None) -> None:
        self.column, self.most = settings.person, settings.person_rows
        self.vault = vault
        self._rows = Counter({key: whole_number(state.body(_PERSON, key)) for key in state.keys(_PERSON)})
        self._new: Counter[str] = Counter()

    @property
    def active(self) -> bool:
        """Whether rows are counted by person."""
        return self.column is not None

    @property
    def rows(self) -> Mapping[str, int]:
        """Rows of each person that were taken in, by digest."""
        return self._rows

    @property
    def is_open(self) -> bool:
        """Whether there is the key."""
        return self.vault is not None

    def admit(self, table: pa.Table, missing: tuple[str, ...]) -> NDArray[np.bool_]:
        """Which rows are taken in, from the first on: those of persons of whom fewer were; until `committed` is told.

        Rows that do not say whom they are about are not.
        """
        self._new = Counter()
        if self.column is None or self.vault is None:
            return np.ones(table.num_rows, dtype=np.bool_)
        names = digests_of(table.column(self.column), missing, self.vault)
        taken = np.zeros(table.num_rows, dtype=np.bool_)
        for place, name in enumerate(names):
            if name is not None and self._rows[name] + self._new[name] < self.most:
                self._new[name] += 1
                taken[place] = True
        return taken

    def entries(self) -> list[StateEntry]:
        """What is to be written of the rows that were admitted last."""
        return [StateEntry(_PERSON, name, str(self._rows[name] + count).encode()) for name, count in self._new.items()]

    def committed(self) -> None:
        """Count the rows that were admitted last."""
        self._rows.update(self._new)
        self._new = Counter()


def digests_of(column: pa.ChunkedArray, missing: tuple[str, ...], vault: Vault) -> list[str | None]:
    """Keyed digest of each cell, as text; None where it is missing."""
    array = plain(column)
    absent = absent_cells(array, missing)
    cells = array.to_pylist()
    known = {cell: vault.digest(f"person {cell}").hex()[:32] for cell in set(cells) if cell is not None}
    return [None if gone else known[cell] for cell, gone in zip(cells, absent.tolist(), strict=True)]


def first_of_each(
    column: pa.ChunkedArray, missing: tuple[str, ...], most: int, vault: Vault
) -> tuple[NDArray[np.bool_], list[StateEntry]]:
    """Which of the first rows are taken in, so many of each person, and what is to be written of them."""
    rows: Counter[str] = Counter()
    taken = np.zeros(len(column), dtype=np.bool_)
    for place, name in enumerate(digests_of(column, missing, vault)):
        if name is not None and rows[name] < most:
            rows[name] += 1
            taken[place] = True
    return taken, [StateEntry(_PERSON, name, str(count).encode()) for name, count in rows.items()]


def open_persons(settings: StreamSettings, person_key: str | Path | None) -> Vault | None:
    """Read the key of persons, if one is given; refuse one that is of no use or not the one."""
    if person_key is None:
        return None
    if settings.person_key is None:
        raise OptionError("this state takes each row for a person; leave out --person-key")
    vault = Vault.from_file(person_key, settings.state_id, Purpose.PERSONS)
    vault.unlock("", from_hex(settings.person_key))
    return vault
