"""Rows drawn from groups, with the categories of columns that have very many: each group keeps its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.core.groups import Groups, generate, redraw
from sfumato.core.records import Block, BlockKind, Layout
from sfumato.mechanisms.condense.tally import MISSING

__all__ = ["generate_coded", "redraw_coded"]


def redraw_coded(
    values: NDArray[np.float64], labels: NDArray[np.int64], layout: Layout, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Rows drawn as `redraw` does; a category among very many is settled by rank from those that the group has.

    Its coordinate is drawn like a number, so that it goes with the other columns. Then the drawn rows of a group take
    the categories of its records, the lowest the lowest: counts are exactly the group's, whatever many there are.
    """
    drawn = redraw(values, labels, _as_numbers(layout), rng)
    groups, marks = np.sort(labels), _marks(layout)  # rows were drawn group after group
    for block in _coded(layout):
        mark = marks.get(block.column)
        ranked = _ranked(values, labels, block, mark)
        _settle(drawn, groups, block, mark, values[ranked, block.start])
    return drawn


def generate_coded(
    groups: Groups, held: Sequence[Sequence[NDArray[np.int64]]], layout: Layout, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Rows drawn as `generate` does, where each group holds these places of categories in columns of very many.

    Parameters
    ----------
    held : sequence of sequence of ndarray
        Of each group, and in it of each such column, as `CategoryTally.of` tells.
    """
    coded, marks, mean = _coded(layout), _marks(layout), groups.mean.copy()
    for column, block in enumerate(coded):
        if block.column in marks:
            absent = [np.count_nonzero(places[column] == MISSING) for places in held]
            mean[:, marks[block.column]] = np.array(absent) / groups.count
    drawn = generate(dataclasses.replace(groups, mean=mean), _as_numbers(layout), rng)
    labels = np.repeat(np.arange(len(groups)), groups.count)
    for column, block in enumerate(coded):
        there = [places[column][places[column] != MISSING] for places in held]
        coordinates = block.coordinates(np.concatenate([np.empty(0, dtype=np.int64), *there]))
        _settle(drawn, labels, block, marks.get(block.column), coordinates)
    return drawn


def _coded(layout: Layout) -> list[Block]:
    return [block for block in layout if block.kind is BlockKind.CODE]


def _as_numbers(layout: Layout) -> Layout:
    return tuple(
        dataclasses.replace(block, kind=BlockKind.NUMBER) if block.kind is BlockKind.CODE else block for block in layout
    )


def _marks(layout: Layout) -> dict[str, int]:
    return {block.column: block.start for block in layout if block.kind is BlockKind.MISSING}


def _ranked(rows: NDArray[np.float64], groups: NDArray[np.int64], block: Block, mark: int | None) -> NDArray[np.int64]:
    """Rows whose cell is there, group after group, the lowest coordinate first."""
    there = np.arange(len(rows)) if mark is None else np.flatnonzero(rows[:, mark] < 0.5)
    return there[np.lexsort((rows[there, block.start], groups[there]))]


def _settle(
    drawn: NDArray[np.float64],
    groups: NDArray[np.int64],
    block: Block,
    mark: int | None,
    coordinates: NDArray[np.float64],
) -> None:
    """Give drawn rows these coordinates, which stand group after group and ascend; works in place."""
    drawn[_ranked(drawn, groups, block, mark), block.start] = coordinates
    if mark is not None:
        drawn[drawn[:, mark] > 0.5, block.start] = block.fill[0]
