"""Categories of columns that have very many, in rows that stand group after group: settled by rank inside a group."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from sfumato.core.records import Block, BlockKind, Layout

__all__ = ["as_numbers", "coded_blocks", "ranked_rows", "settle_codes"]


def coded_blocks(layout: Layout) -> list[tuple[Block, int | None]]:
    """Blocks of columns that have very many categories, each with the coordinate of its missing cells, if any."""
    marks = {block.column: block.start for block in layout if block.kind is BlockKind.MISSING}
    return [(block, marks.get(block.column)) for block in layout if block.kind is BlockKind.CODE]


def as_numbers(layout: Layout) -> Layout:
    """The layout with one coordinate among very many categories taken for a number."""
    return tuple(
        dataclasses.replace(block, kind=BlockKind.NUMBER, fill=block.fill or (0.0,))
        if block.kind is BlockKind.CODE
        else block
        for block in layout
    )


def ranked_rows(
    rows: NDArray[np.float64], groups: NDArray[np.int64], block: Block, mark: int | None
) -> NDArray[np.int64]:
    """Rows whose cell is there, group after group, the lowest coordinate first."""
    there = np.arange(len(rows)) if mark is None else np.flatnonzero(rows[:, mark] < 0.5)
    return there[np.lexsort((rows[there, block.start], groups[there]))]


def settle_codes(
    drawn: NDArray[np.float64],
    groups: NDArray[np.int64],
    block: Block,
    mark: int | None,
    coordinates: NDArray[np.float64],
) -> None:
    """Rows with these coordinates of categories, which stand group after group and ascend; works in place.

    The lowest drawn coordinate of a group takes its lowest, so that a category goes on with the other columns.
    """
    drawn[ranked_rows(drawn, groups, block, mark), block.start] = coordinates
    if mark is not None:
        drawn[drawn[:, mark] > 0.5, block.start] = block.fill[0] if block.fill else 0.0
