"""Released tables whose columns are of types that no release has: `verify` finds that they do not hold."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import hashlib
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from sfumato.certificate import Certificate
from sfumato.publish.verify import verify_release
from sfumato.tables.files import read_file
from tests.examples import in_full
from tests.fuzz.fuzzing import GOLDENS, bounded_time, golden_bytes

_EPOCH = datetime.datetime(2020, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)


def _strange(rows: int) -> Iterator[pa.Array]:
    """Columns of every type that Arrow has a file for, and cells that numbers and texts seldom hold."""
    yield pa.nulls(rows)
    for cell, kind in (
        ([1], pa.list_(pa.int64())),
        ({"a": 1}, pa.struct([("a", pa.int64())])),
        ([("a", 1)], pa.map_(pa.string(), pa.int64())),
        (b"\xff\x00", pa.binary()),
        (b"abcd", pa.binary(4)),
        (decimal.Decimal("1.25"), pa.decimal128(20, 2)),
        (decimal.Decimal(10**60), pa.decimal256(70, 2)),
        (2**64 - 1, pa.uint64()),
        (-(2**63), pa.int64()),
        (float("inf"), pa.float64()),
        (float("-inf"), pa.float32()),
        (float("nan"), pa.float64()),
        (np.float16(1.5), pa.float16()),
        (_EPOCH, pa.timestamp("ns", "UTC")),
        (_EPOCH, pa.timestamp("s", "Pacific/Apia")),
        (_EPOCH.date(), pa.date64()),
        (_EPOCH.time(), pa.time64("ns")),
        (_EPOCH.time().replace(microsecond=0), pa.time32("s")),
        (datetime.timedelta(days=-4), pa.duration("us")),
        (True, pa.bool_()),
        ("x" * 70_000, pa.large_string()),
        ("\u0000", pa.string()),
        ("=1+1", pa.string()),
        ("0000-00-00", pa.string()),
        ("9" * 400, pa.string()),
        ("1e999", pa.string()),
        ("25:61", pa.string()),
    ):
        yield pa.array([cell] * rows, kind)
        yield pa.array([None, *[cell] * (rows - 1)], kind)
    yield pa.array(["a", "b"] * rows)[:rows].dictionary_encode()
    yield pa.array([None] * rows, pa.string()).dictionary_encode()
    yield pa.array([2**70 + row for row in range(rows)], pa.decimal128(30, 0))


def _forged(table: pa.Table) -> Iterator[pa.Table]:
    """Tables with a strange column in place of one, beside it, twice, or without it."""
    kinds = list(_strange(len(table)))
    for place, name in enumerate(table.column_names):
        some = kinds if in_full() else random.Random(f"{name} {table.num_columns}").sample(kinds, 3)
        yield from (table.set_column(place, name, column) for column in some)
        yield table.remove_column(place)
        yield table.append_column(name, table.column(place))
        yield table.append_column("", table.column(place))
    yield table.slice(0, 0)
    yield table.select([])
    yield pa.concat_tables([table, table])


@pytest.mark.parametrize("name", sorted(path.name for path in GOLDENS.iterdir()))
def test_no_type_of_a_column_ends_a_review(name: str, tmp_path: Path) -> None:
    golden = GOLDENS / name
    (tmp_path / "golden.csv").write_bytes(golden_bytes(golden / "release-table.csv"))
    table, _ = read_file(tmp_path / "golden.csv")
    told = Certificate.from_json(golden_bytes(golden / "release-certificate.json").decode())
    for number, forged in enumerate(_forged(table)):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "schema.toml").write_bytes(golden_bytes(golden / "release-schema.toml"))
        file = folder / ("table.arrow" if number % 2 else "table.parquet")
        write = pa.feather.write_feather if number % 2 else pa.parquet.write_table
        try:
            write(forged, str(file))
        except pa.ArrowException:  # the format has no such type
            continue
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        files = {"schema.toml": told.files["schema.toml"], file.name: digest}
        certificate = dataclasses.replace(told, files=files, table_sha256=digest)
        (folder / "certificate.json").write_text(certificate.to_json(), encoding="utf-8")
        with bounded_time():
            found = verify_release(folder)
        assert all(check.detail.isprintable() for check in found)
