"""Rows of all cells that are measured, side by side with what they became; they stay with the owner."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.assess.risk.uniqueness import Standing
from sfumato.core.facts import Chained, ColumnRulesKept, Fact
from sfumato.engines.cells.cell import LEVEL
from sfumato.engines.cells.learn import Learned
from sfumato.engines.cells.spill import Spill, table_of
from sfumato.engines.cells.standing import Tally
from sfumato.engines.measured import measured_note
from sfumato.engines.outcome import Apart, Comparison
from sfumato.mechanisms.protocol import Workings
from sfumato.tables.persons import persons_of_table
from sfumato.tables.schema import Role

__all__ = ["DRAWN", "LABEL", "MET", "ORIGIN", "comparison_of"]

LABEL, MET, DRAWN, ORIGIN = "\x1flabel", "\x1fmet", "\x1fdrawn", "\x1forigin"
"""Columns of measured rows: group and level met of an original one; group and original that a released one is of."""


def comparison_of(
    learned: Learned, spill: Spill, cells: int, bits: int, facts: Sequence[Fact], *, measured: bool
) -> tuple[Comparison | Apart, Workings | None]:
    """Rows of all cells that are measured, side by side with what they became."""
    if not measured:
        return Apart("no report was asked for", codec=learned.job.codec), None
    originals, releases, outsides, tally = [], [], [], None
    groups = rows = 0
    for number in range(cells):
        original, released, outside, held = (
            table_of(spill.frame(f"cell-{number}", 1 + (1 << bits) + each)) for each in range(4)
        )
        if held.num_columns:
            tally = Tally(learned) if tally is None else tally
            tally.add(held)
        labels, drawn = (table.column(name).to_numpy() for table, name in ((original, LABEL), (released, DRAWN)))
        origin = released.column(ORIGIN).to_numpy()
        originals.append(_set(original, LABEL, np.where(labels < 0, -1, labels + groups)))
        releases.append(
            _set(
                _set(released, DRAWN, np.where(drawn < 0, -1, drawn + groups)),
                ORIGIN,
                np.where(origin < 0, -1, origin + rows),
            )
        )
        outsides.append(outside)
        groups += int(labels.max(initial=-1)) + 1
        rows += original.num_rows
    whole = (pa.concat_tables(each).combine_chunks() for each in (originals, releases, outsides))
    return _compared(learned, facts, () if tally is None else tally.standings(), *whole)


def _grown_again(learned: Learned, released: pa.Table, facts: Sequence[Fact]) -> Workings | None:
    """How somebody scores people who grows the trees of a chain anew, on the rows that are measured.

    None where there is no chain, or where rules are kept: people are then compared in other coordinates.
    """
    from sfumato.mechanisms.chain.rows import Regrown

    chained = next((fact for fact in facts if isinstance(fact, Chained)), None)
    if chained is None or any(isinstance(fact, ColumnRulesKept) for fact in facts):
        return None
    order = learned.plan.randomness.generator("regrown").permutation(released.num_rows)
    records = learned.job.codec.encode(released.take(pa.array(order)), unseen="mean")
    return Workings(regrown=Regrown.on(records, chained.columns, chained.leaf, twice=bool(chained.twice)))


def _set(table: pa.Table, name: str, values: NDArray[np.int64]) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, pa.array(values))


def _compared(
    learned: Learned,
    facts: Sequence[Fact],
    standings: tuple[Standing, ...],
    original: pa.Table,
    released: pa.Table,
    outside: pa.Table,
) -> tuple[Comparison, Workings | None]:
    plan, codec = learned.plan, learned.job.codec
    names = [column.field.name for column in codec.columns]
    levels = original.column(LEVEL).to_numpy().astype(np.int64)
    records = codec.encode(original.select(names), levels=levels)
    records = dataclasses.replace(records, persons=persons_of_table(original, plan.schema))
    labels, drawn = original.column(LABEL).to_numpy(), released.column(DRAWN).to_numpy()
    origin = released.column(ORIGIN).to_numpy()
    found, labels = np.unique(labels, return_inverse=True)
    workings: Workings | None = None
    if len(found) and found[0] >= 0:
        workings = Workings(labels, original.column(MET).to_numpy(), np.searchsorted(found, drawn))
    elif (origin >= 0).any():
        workings = Workings(origin=origin)
    else:
        workings = _grown_again(learned, released.select(names), facts)
    whole, measured = learned.look.rows, original.num_rows
    note = f"Measured on all {whole} rows." if measured == whole else measured_note(measured, whole)
    if standings:
        people = len(standings[0].holders)
        note += f" Who is alone with a value was counted over all rows, for {people} of them, and categories for all."
    beside = [field.name for field in plan.schema if field.role is Role.PERSON]
    held = None
    if outside.num_rows:
        held = outside.select([name for name in (*names, *beside) if name in outside.column_names])
    return (
        Comparison(original.select(names), released.select(names), codec, records, held, (note,), standings=standings),
        workings,
    )
