"""Tails of the columns of owners of rows: cut-offs that at least k persons of all owners reach.

A cut-off is searched by halving the declared range from a random start. Owners add up, as shares, how many of their
values lie beyond a threshold. Only whether these are too few, enough or too many is opened.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.parties.arithmetic import check_range
from sfumato.parties.codecs import JointCounts
from sfumato.parties.groupwise import shared_sum
from sfumato.parties.ledger import Leak
from sfumato.parties.session import Session
from sfumato.tables.cells import numbers_of_cells
from sfumato.tables.field import Field
from sfumato.tables.grid import Grid, fit_grid
from sfumato.tables.schema import Schema
from sfumato.tables.tails import NUMERIC, Tail, Tails

__all__ = ["LEAKS", "joint_tails"]

LEAKS = {
    leak.label: leak
    for leak in (
        Leak.opened(
            "values beyond thresholds",
            "in each step of the search for cut-offs, whether at least k and whether at least 2k values of a column "
            "lie beyond a threshold, over all owners; the last thresholds are the cut-offs of its tails",
        ),
    )
}
"""What `joint_tails` shows, by label."""


@dataclass(frozen=True, eq=False, repr=False)
class _TailSearch:
    """Upper ends of columns, and lower ones with the sign turned, in places of their grids.

    ``values`` holds this owner's cells in order, ``least`` and ``most`` how many values may lie beyond a cut-off.
    """

    values: list[Floats]
    low: Floats
    high: Floats
    stepped: Bools
    least: Ints
    most: Ints


def joint_tails(session: Session, table: pa.Table, schema: Schema, counts: JointCounts, k: int) -> Tails:
    """Find the cut-offs of all columns of numbers and dates, the same at every owner.

    At least ``k`` and fewer than 2 ``k`` values lie beyond a cut-off, or at least ``k`` lie on and beyond a value that
    many share. Both cut-offs are one number between middle values where too few persons fill a column.

    Parameters
    ----------
    table : pyarrow.Table
        The rows of this owner.
    schema : Schema
        The same at every owner, with declared bounds.
    counts : JointCounts
    k : int
        Persons that a cut-off is computed from.
    """
    present = {field.name: there for field, there in zip(schema.encoded, counts.present, strict=True)}
    fields = [field for field in schema.encoded if field.kind in NUMERIC]
    if not fields:
        return Tails()
    session.phase("tails of the columns")
    grids, values = [], []
    for field in fields:
        numbers, absent = numbers_of_cells(table.column(field.name), field)
        grids.append(fit_grid(numbers[~absent], field, table.column(field.name).type, k))
        values.append(np.sort(grids[-1].to_places(numbers[~absent])))
    cells = np.array([present[field.name] for field in fields])
    found = _cut_offs(session, _both_ends(values, grids, cells, k))
    high, low = found[: len(fields)], -found[len(fields) :]
    crossed = low > high
    low, high = np.where(crossed, (low + high) / 2.0, low), np.where(crossed, (low + high) / 2.0, high)
    return Tails(
        {
            field.name: _tail(field, grid, float(first), float(last), table.column(field.name).type)
            for field, grid, first, last in zip(fields, grids, low, high, strict=True)
        }
    )


def _both_ends(values: list[Floats], grids: list[Grid], cells: Ints, k: int) -> _TailSearch:
    low, high = np.array([grid.to_places(np.array([grid.low, grid.high])) for grid in grids]).T
    least = np.minimum(k, np.maximum(1, cells // 2))
    most = np.maximum(least + 1, np.minimum(2 * k, cells))
    return _TailSearch(
        [*values, *(-each[::-1] for each in values)],
        np.concatenate([low, -high]),
        np.concatenate([high, -low]),
        np.tile([grid.step is not None for grid in grids], 2),
        np.tile(least, 2),
        np.tile(most, 2),
    )


def _cut_offs(session: Session, ends: _TailSearch) -> Floats:
    """Thresholds that enough and not too many values of all owners lie beyond.

    The search starts at random up to a range away from the declared bounds, so that a cut-off is drawn from all numbers
    that would do.
    """
    rng, reach = session.public_rng("start of the cut-offs"), ends.high - ends.low
    inner, outer = ends.low - rng.random(len(reach)) * reach - 1.0, ends.high + rng.random(len(reach)) * reach
    inner, outer = np.where(ends.stepped, np.floor(inner), inner), np.where(ends.stepped, np.ceil(outer), outer)
    while True:
        threshold = inner + (outer - inner) / 2.0
        threshold = np.where(ends.stepped, np.floor(threshold), threshold)
        if not ((threshold > inner) & (threshold < outer)).any():
            return outer
        few, fitting = _compare(session, ends, threshold)
        inner = np.where(few, inner, threshold)
        outer = np.where(few | fitting, threshold, outer)


def _compare(session: Session, ends: _TailSearch, thresholds: Floats) -> tuple[Bools, Bools]:
    """Whether fewer values than the least lie beyond each threshold, and whether neither too few nor too many do."""
    beyond = [
        len(each) - np.searchsorted(each, limit, side="right")
        for each, limit in zip(ends.values, thresholds.tolist(), strict=True)
    ]
    own = np.tile(np.array(beyond, dtype=np.int64), 2)
    if session.rank == 0:
        own -= np.concatenate([ends.least, ends.most])
    total = shared_sum(session, own, "values beyond thresholds")
    bits = session.open_to_all(session.less_than(total, session.scale(total, 0)), "values beyond thresholds")
    few, not_many = check_range(bits, 0, 1, "values beyond thresholds").reshape(2, -1) == 1
    return few, not_many & ~few


def _tail(field: Field, grid: Grid, low: float, high: float, kind: pa.DataType) -> Tail:
    first, last = grid.to_numbers(np.array([low, high])).tolist()
    return Tail(field, grid, first, last, kind=kind)
