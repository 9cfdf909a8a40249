"""Rows drawn from groups, with the categories of columns that have very many: each group keeps its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.core.groups import Groups, generate, redraw
from sfumato.core.groups.codes import as_numbers, coded_blocks, ranked_rows, settle_codes
from sfumato.core.records import Layout
from sfumato.mechanisms.condense.tally import MISSING

__all__ = ["generate_coded", "redraw_coded"]


def redraw_coded(
    values: NDArray[np.float64], labels: NDArray[np.int64], layout: Layout, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Rows drawn as `redraw` does; a category among very many is settled by rank from those that the group has.

    Its coordinate is drawn like a number, so that it goes with the other columns. Then the drawn rows of a group take
    the categories of its records, the lowest the lowest: counts are exactly the group's, whatever many there are.
    """
    drawn = redraw(values, labels, as_numbers(layout), rng)
    groups = np.sort(labels)  # rows were drawn group after group
    for block, mark in coded_blocks(layout):
        ranked = ranked_rows(values, labels, block, mark)
        settle_codes(drawn, groups, block, mark, values[ranked, block.start])
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
    coded, mean = coded_blocks(layout), groups.mean.copy()
    for column, (_, mark) in enumerate(coded):
        if mark is not None:
            absent = [np.count_nonzero(places[column] == MISSING) for places in held]
            mean[:, mark] = np.array(absent) / groups.count
    drawn = generate(dataclasses.replace(groups, mean=mean), as_numbers(layout), rng)
    labels = np.repeat(np.arange(len(groups)), groups.count)
    for column, (block, mark) in enumerate(coded):
        there = [places[column][places[column] != MISSING] for places in held]
        coordinates = block.coordinates(np.concatenate([np.empty(0, dtype=np.int64), *there]))
        settle_codes(drawn, labels, block, mark, coordinates)
    return drawn
