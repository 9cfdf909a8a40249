"""Rows drawn from groups, with the categories of columns that have very many: each group keeps its own."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from sfumato.core.groups import redraw
from sfumato.core.records import BlockKind, Layout

__all__ = ["redraw_coded"]


def redraw_coded(
    values: NDArray[np.float64], labels: NDArray[np.int64], layout: Layout, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Rows drawn as `redraw` does; a category among very many is settled by rank from those that the group has.

    Its coordinate is drawn like a number, so that it goes with the other columns. Then the drawn rows of a group take
    the categories of its records, the lowest the lowest: counts are exactly the group's, whatever many there are.
    """
    coded = [block for block in layout if block.kind is BlockKind.CODE]
    numbers = tuple(
        dataclasses.replace(block, kind=BlockKind.NUMBER) if block.kind is BlockKind.CODE else block for block in layout
    )
    drawn = redraw(values, labels, numbers, rng)
    if not coded:
        return drawn
    indicators = {block.column: block.start for block in layout if block.kind is BlockKind.MISSING}
    groups = np.sort(labels)  # rows were drawn group after group
    for block in coded:
        mark = indicators.get(block.column)
        sides = []
        for rows, where in ((values, labels), (drawn, groups)):
            there = np.arange(len(rows)) if mark is None else np.flatnonzero(rows[:, mark] < 0.5)
            sides.append(there[np.lexsort((rows[there, block.start], where[there]))])
        drawn[sides[1], block.start] = values[sides[0], block.start]
        if mark is not None:
            drawn[drawn[:, mark] > 0.5, block.start] = block.fill[0]
    return drawn
