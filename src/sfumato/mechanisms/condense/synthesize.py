"""From a finished partition to what is released: rows drawn from the groups' statistics, shuffled, with the facts.

Rows drawn from groups, with the categories of columns that have very many: each group keeps its own.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import PrivacyLeakWarning
from sfumato.core.facts import CountsKept, Fact, Grouped, PersonsApart, Shuffled, Synthesized
from sfumato.core.groups import Groups, columns_of_blocks, count_alike, generate, redraw
from sfumato.core.groups.discrete import as_numbers, coded_blocks, ranked_rows, settle_codes
from sfumato.core.records import BlockKind, Layout, Records
from sfumato.mechanisms.condense.tally import MISSING
from sfumato.mechanisms.protocol import Sanitized, Workings, rows_drawn

__all__ = ["generate_coded", "group_facts", "redraw_coded", "synthesize"]

_TINY = 3  # mean and covariance of two records give both away, and three are not far from it


def synthesize(
    records: Records,
    labels: NDArray[np.int64],
    levels: NDArray[np.int64],
    algorithm: str,
    rng: np.random.Generator,
    *,
    shared: slice | None = None,
    kept: NDArray[np.int64] | None = None,
) -> Sanitized:
    """Draw as many rows as each group has records, or as are wanted, in random order, and state what was done.

    More rows are drawn by going through the groups again; of the last time those that leave are chosen by chance.

    Parameters
    ----------
    records : Records
    labels : ndarray of shape (n,)
        Group of each record, or of those that are kept, a partition that was checked.
    levels : ndarray of shape (n,)
        Level that was met for each record.
    algorithm : str
        What made the groups, for the certificate.
    rng : numpy.random.Generator
    shared : slice, optional
        Coordinates that are equal in all records of a group: they are copied, so that rounding cannot touch them.
    kept : ndarray, optional
        Places of the records that are in groups, where some were left out.
    """
    whole = len(records)
    if kept is not None:
        records, levels = records.take(kept), levels[kept]
    sizes = np.bincount(labels)
    rows = len(records) if records.wanted is None else records.wanted.rows
    times = -(-rows // len(records))
    drawn = [redraw_coded(records.values, labels, records.layout, rng) for _ in range(times)]
    values = drawn[0] if times == 1 else np.concatenate(drawn)
    drawn_from = np.tile(np.repeat(np.arange(len(sizes)), sizes), times)
    if shared is not None:
        anyone = np.unique(labels, return_index=True)[1]
        values[:, shared] = records.values[anyone, shared][drawn_from]
    order = np.arange(rows)
    if rows < len(values):
        before = len(values) - len(records)
        order[before:] = before + rng.permutation(len(records))[: rows - before]
    order = order[rng.permutation(rows)]
    values, drawn_from = _in_order(values, order), drawn_from[order]
    nothing = np.zeros(len(values), dtype=np.int64)
    released = Records(values, records.layout, nothing, nothing.copy(), records.target)
    facts = (*group_facts(algorithm, records, sizes, levels, labels, rows), *rows_drawn(records))
    if records.persons is not None:
        facts = (*facts, PersonsApart(len(np.unique(records.persons)), whole - len(records)))
    return Sanitized(released, facts, Workings(labels, levels, drawn_from, kept=kept))


def _in_order(values: NDArray[np.float64], order: NDArray[np.int64]) -> NDArray[np.float64]:
    """Rows in an order, column by column, so that a large table is not held twice; takes the rows that it is given."""
    if len(order) < len(values):
        return values[order]
    for place in range(values.shape[1]):
        values[:, place] = values[order, place]
    return values


def group_facts(
    algorithm: str,
    records: Records,
    sizes: NDArray[np.int64],
    levels: NDArray[np.int64],
    labels: NDArray[np.int64],
    rows: int,
) -> tuple[Fact, ...]:
    """State what was done; warn where groups are so small that their statistics are their members."""
    tiny = int((sizes <= _TINY).sum())
    if tiny:
        warnings.warn(
            f"{tiny} of {len(sizes)} groups have {_TINY} records or fewer: their mean and covariance nearly or "
            "exactly give the members away; take a higher k",
            PrivacyLeakWarning,
            stacklevel=4,  # whoever called the mechanism
        )
    categories = sum(block.kind in (BlockKind.CATEGORY, BlockKind.CODE) for block in records.layout)
    missing = sum(block.kind is BlockKind.MISSING for block in records.layout)
    grouped = Grouped(
        algorithm=algorithm,
        records=len(labels),
        groups=len(sizes),
        smallest=int(sizes.min()),
        asked_min=int(levels.min()),
        asked_max=int(levels.max()),
        violations=int((sizes[labels] < levels).sum()),
        tiny=tiny,
        alone=int((sizes == 1).sum()),
        alike=count_alike(columns_of_blocks(records.values, records.layout), labels),
    )
    drawn = Synthesized(statistics="mean and covariance", law="uniform along eigenvectors", rows=rows)
    kept = (CountsKept(categories, missing),) if categories or missing else ()
    return (grouped, drawn, *kept, Shuffled(rows=rows))


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
