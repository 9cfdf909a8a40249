"""The dynamic condensation as a stream of Spark: groups lie in its state store, a cell under each key [AY05, sec. 3].

Workers screen and encode rows, count those of each person, and let records join the groups of their cell; the driver
receives counts and the statistics of groups that leave, once for each batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sfumato.core.documents import from_json, write_json
from sfumato.core.errors import OptionError
from sfumato.engines.columns import empty_columns
from sfumato.engines.spark.parts import Batches
from sfumato.methods.condense import effective_levels
from sfumato.stream.cellwise import CellChange, KeptOut, StreamCells, in_one_order, read_change, take_in
from sfumato.stream.pending import Vault
from sfumato.stream.screen import digests_of, screen
from sfumato.tables.schema import Role

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["PersonsSoFar", "changes_of", "start_stream"]

_NOWHERE = -1  # partition of the report on quarantined rows
_ROWS = pa.schema([("bucket", pa.int64()), ("person", pa.binary()), ("cell", pa.int64()), ("body", pa.binary())])
_TYPES = "bucket long, person binary, cell long, body binary"
_REPORTED = "cell long, body binary"
_STORE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


@dataclass(frozen=True, eq=False, repr=False)
class PersonsSoFar:
    """Who persons are known as, and the rows of each that were taken in before; goes to the workers with the key."""

    column: str
    most: int
    vault: Vault
    rows: Mapping[bytes, int]


@dataclass(frozen=True, eq=False, repr=False)
class _Encode:
    """Rows that are taken in, encoded and given to partitions; with the report on the others."""

    cells: StreamCells
    persons: PersonsSoFar | None

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            if len(batch):
                yield self._encoded(pa.Table.from_batches([batch]))

    def _encoded(self, table: pa.Table) -> pa.RecordBatch:
        codec, settings = self.cells.codec, self.cells.settings
        screened, persons = screen(table, codec, settings.level), [b""] * table.num_rows
        if self.persons is not None:
            column = self.persons.column
            known = digests_of(table.column(column), codec.schema[column].missing, self.persons.vault)
            persons = [b"" if digest is None else bytes.fromhex(digest) for digest in known]
            screened = screened.only(np.array([persons[row] != b"" for row in screened.rows], dtype=np.bool_), column)
        levels = effective_levels(screened.levels * settings.person_rows, settings.k, allow_level_1=False)
        values = self.cells.tails.code(codec.coordinates(screened.cells))
        bodies = np.ascontiguousarray(np.column_stack([levels, values]), dtype="<f8")
        dropped = [field for field in codec.schema if field.role is Role.IDENTIFIER]
        out = table.num_rows - len(levels)
        excluded = KeptOut(table.num_rows, out, screened.counts, empty_columns(table, dropped))
        people = [persons[row] for row in screened.rows.tolist()]
        return pa.RecordBatch.from_arrays(
            [
                pa.array([*(each[0] if each else _NOWHERE for each in people), _NOWHERE], pa.int64()),
                pa.array([*people, b""], pa.binary()),
                pa.array([*self.cells.cell(values).tolist(), _NOWHERE], pa.int64()),
                pa.array([*(row.tobytes() for row in bodies), _report_of(excluded)], pa.binary()),
            ],
            schema=_ROWS,
        )


def _report_of(out: KeptOut) -> bytes:
    return write_json(out, "canonical").encode()


def _frame(cells: list[int], bodies: list[bytes]) -> Any:
    return pa.table({"cell": pa.array(cells, pa.int64()), "body": pa.array(bodies, pa.binary())}).to_pandas()


def _persons_processor(persons: PersonsSoFar, cells: StreamCells) -> Any:
    """Lets a limited number of rows of each person through; a bucket of persons under each key."""
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Persons(StatefulProcessor):  # type: ignore[misc]
        def init(self, handle: Any) -> None:
            self.rows = handle.getMapState("rows", "person binary", "rows long")

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: ARG002, N802, N803
            arrivals = [
                each for frame in rows for each in zip(frame["person"], frame["cell"], frame["body"], strict=True)
            ]
            if key[0] < 0:
                yield _frame([int(cell) for _, cell, _ in arrivals], [bytes(body) for _, _, body in arrivals])
                return
            placed = {bytes(person) + bytes(body): int(cell) for person, cell, body in arrivals}
            taken: dict[bytes, int] = {}
            admitted, out = [], 0
            size = len(bytes(arrivals[0][0]))
            for each in in_one_order([bytes(person) + bytes(body) for person, _, body in arrivals], cells.settings):
                person = each[:size]
                if person not in taken:
                    known = self.rows.getValue((person,)) if self.rows.containsKey((person,)) else None
                    taken[person] = persons.rows.get(person, 0) if known is None else int(known[0])
                if taken[person] < persons.most:
                    taken[person] += 1
                    admitted.append(each)
                else:
                    out += 1
            for person, count in taken.items():
                self.rows.updateValue((person,), (count,))
            more = [_report_of(KeptOut(0, out, {persons.column: out}))] if out else []
            numbers = [placed[each] for each in admitted] + [_NOWHERE] * len(more)
            yield _frame(numbers, [*(each[size:] for each in admitted), *more])

        def close(self) -> None:
            pass

    return Persons()


def _cells_processor(cells: StreamCells, vault: Vault | None) -> Any:
    """Lets records join the groups of their cell, a cell under each key, and tells what changed."""
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class CellProcessor(StatefulProcessor):  # type: ignore[misc]
        def init(self, handle: Any) -> None:
            self.state = handle.getValueState("groups", "body binary")

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: ARG002, N802, N803
            bodies = [bytes(body) for frame in rows for body in frame["body"]]
            cell = int(key[0])
            if cell < 0:
                yield _frame([_NOWHERE] * len(bodies), bodies)
                return
            ordered = b"".join(in_one_order(bodies, cells.settings))
            records = np.frombuffer(ordered, dtype="<f8").reshape(len(bodies), -1)
            known = self.state.get() if self.state.exists() else None
            body = None if known is None else bytes(known[0])
            values, levels = records[:, 1:].astype(np.float64), records[:, 0].astype(np.int64)
            after, change = take_in(body, cells, cell, values, levels, vault)
            self.state.update((after,))
            yield _frame([cell], [change])

        def close(self) -> None:
            pass

    return CellProcessor()


def changes_of(batch: pa.Table, cells: StreamCells) -> tuple[dict[int, CellChange], list[KeptOut]]:
    """What a batch changed in each cell, and the report on quarantined rows."""
    changes: dict[int, CellChange] = {}
    out = []
    for cell, body in zip(batch.column("cell").to_pylist(), batch.column("body").to_pylist(), strict=True):
        if cell == _NOWHERE:
            out.append(from_json(KeptOut, body))
        else:
            assert cell not in changes  # Spark gives a key all its rows of a batch at once
            changes[cell] = read_change(body, cells.codec)
    return changes, out


def start_stream(
    frame: DataFrame,
    cells: StreamCells,
    each: Callable[[pa.Table, int, str], None],
    *,
    checkpoint: str,
    vault: Vault | None = None,
    persons: PersonsSoFar | None = None,
    every: str | None = None,
    once: bool = False,
) -> StreamingQuery:
    """Start the stream; ``each`` is called here with what a batch changed, its number and that of the query.

    A batch that was not committed when the driver died is given again, the same in all.
    """
    spark = frame.sparkSession
    for name, value in _STORE.items():
        spark.conf.set(name, value)
    if not frame.isStreaming:
        raise OptionError("the data frame is no stream; read it with spark.readStream")
    rows = frame.mapInArrow(_Encode(cells, persons), _TYPES)
    if persons is not None:
        counted = rows.groupBy("bucket")
        rows = counted.transformWithStateInPandas(_persons_processor(persons, cells), _REPORTED, "Append", "None")
    by_cell = rows.select("cell", "body").groupBy("cell")
    changes = by_cell.transformWithStateInPandas(_cells_processor(cells, vault), _REPORTED, "Append", "None")

    def call(batch: DataFrame, number: int) -> None:
        query = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId") or ""
        each(batch.toArrow(), number, query)

    writer = changes.writeStream.foreachBatch(call).option("checkpointLocation", checkpoint)
    if once:
        writer = writer.trigger(availableNow=True)
    elif every is not None:
        writer = writer.trigger(processingTime=every)
    return writer.start()
