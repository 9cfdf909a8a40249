"""Categories of columns that have very many, as entries of a stream's state: of each group those that it holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.core.records import Block, BlockKind, Layout
from sfumato.engines.stream.entries import StateEntry, StateError, whole_number
from sfumato.engines.stream.state import State
from sfumato.mechanisms.condense.tally import MISSING, CategoryTally

__all__ = ["TALLY", "empty_tally", "entries_of_tally", "tally_of_bytes", "tally_on_disk"]

TALLY = "tally"
"""Kind of the entry that tells a group's categories; its key is the id of the group."""

_NUMBER = np.dtype("<i4")


def empty_tally(layout: Layout) -> CategoryTally | None:
    """A tally for columns of very many categories; None where there are none, and nothing need be counted."""
    tally = CategoryTally(layout)
    return tally if tally.blocks else None


def entries_of_tally(tally: CategoryTally | None, ids: NDArray[np.int64]) -> list[StateEntry]:
    """Write the categories of these groups: column after column how many different ones, then each and how often."""
    if tally is None:
        return []
    return [StateEntry(TALLY, str(group), _bytes_of(tally.of(group))) for group in ids.tolist()]


def _bytes_of(held: Sequence[NDArray[np.int64]]) -> bytes:
    parts = [np.unique(places, return_counts=True) for places in held]
    numbers = [[len(different), *np.column_stack([different, often]).ravel().tolist()] for different, often in parts]
    return b"".join(np.array(each, dtype=_NUMBER).tobytes() for each in numbers)


def tally_of_bytes(body: bytes, blocks: Sequence[Block], count: int) -> list[NDArray[np.int64]]:
    """Places of the categories that a group of so many records holds in each column.

    Raises
    ------
    StateError
        Where the bytes tell of other categories than the columns have, or of more or fewer records.
    """
    numbers = np.frombuffer(body[: len(body) // 4 * 4], dtype=_NUMBER).astype(np.int64)
    found, start = [], 0
    for block in blocks:
        pairs = int(numbers[start]) if start < len(numbers) else -1
        part = numbers[start + 1 : start + 1 + 2 * max(0, pairs)].reshape(-1, 2) if pairs * 2 < len(numbers) else None
        start += 1 + 2 * max(0, pairs)
        if part is None or len(part) != pairs or not _are_places(part, block, count):
            raise _unreadable()
        found.append(np.repeat(part[:, 0], part[:, 1]))
    if start * 4 != len(body):
        raise _unreadable()
    return found


def _are_places(pairs: NDArray[np.int64], block: Block, count: int) -> bool:
    places, often = pairs[:, 0], pairs[:, 1]
    inside = (places >= MISSING).all() and (places < block.categories).all() and (np.diff(places) > 0).all()
    return bool(inside and (often > 0).all() and often.sum() == count)


def _unreadable() -> StateError:
    return StateError("the categories of a group in the state are not those of its records; bring back a whole copy")


def tally_on_disk(
    state: State, layout: Layout, ids: NDArray[np.int64], count: NDArray[np.int64]
) -> CategoryTally | None:
    """The tally of all groups on disk; None where no column has very many categories."""
    blocks = [block for block in layout if block.kind is BlockKind.CODE]
    if not blocks:
        return None
    sizes = dict(zip(ids.tolist(), count.tolist(), strict=True))
    held = {whole_number(key): body for key, body in state.read_large(TALLY).items()}
    if held.keys() != sizes.keys():
        raise _unreadable()
    return CategoryTally.of_groups(
        layout, ((group, tally_of_bytes(body, blocks, sizes[group])) for group, body in held.items())
    )
