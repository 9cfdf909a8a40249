"""A stream on a cluster whose driver is killed twice: each record counted once, each batch published once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import sfumato as sf
from sfumato.core.documents import from_json
from sfumato.core.errors import OptionError
from sfumato.publish.verify import verify_release
from sfumato.stream.cellwise import StreamTotals
from sfumato.stream.session import StreamSession
from tests.spark.sessions import session, wait_for
from tests.spark.streaming import stream, take_in_all

pytest.importorskip("pyspark", reason="the extra 'spark' is not installed; make test-spark has it")
pytestmark = pytest.mark.filterwarnings("ignore")  # of pyspark's own

FIRST, ROWS, FILES = 200, 150, 3


def people(rows: int) -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "pay": rng.normal(40, 9, rows).round(2),
            "age": rng.integers(18, 90, rows),
            "sex": rng.choice(["f", "m"], rows),
            "who": [f"p{number}" for number in rng.integers(0, rows // 2, rows)],
        }
    )


def begin(folder: Path, name: str) -> None:
    first = people(FIRST + ROWS * FILES).slice(0, FIRST)
    sf.stream(folder / f"{name}.db", first, person="who", person_rows=2, person_key=folder / "key", k=3, seed=1)


def test_a_driver_that_is_killed_twice_counts_each_record_once_and_publishes_each_batch_once(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(bytes(range(32)))
    (tmp_path / "key").chmod(0o600)
    (tmp_path / "files").mkdir()
    table = people(FIRST + ROWS * FILES)
    for number in range(FILES):
        path = tmp_path / "files" / f"{number}.parquet"
        pa.parquet.write_table(table.slice(FIRST + ROWS * number, ROWS), path)
        os.utime(path, (number, number))  # Spark takes the oldest first; of the same millisecond, in any order
    for name in ("run", "whole"):
        begin(tmp_path, name)
    with session("local[2]") as spark:
        take_in_all(spark, tmp_path, "whole")
        with pytest.raises(OptionError, match="continues this stream in another folder"):
            sf.stream(tmp_path / "whole.db").on_spark(
                stream(spark, tmp_path), tmp_path / "other", checkpoint=tmp_path / "c", person_key=tmp_path / "key"
            )
    for mark in ("after-0", "before-1"):  # a batch that is published and not committed, and one that is neither
        (tmp_path / mark).touch()
    published = [run_until(tmp_path, each) for each in ("after-0", "before-1", None)]
    batches = [f"batch-{number:08d}" for number in range(FILES)]
    assert sorted(each.name for each in (tmp_path / "run").glob("batch-*")) == batches, driver_log(tmp_path)
    tables = sorted((tmp_path / "run").glob("batch-*/release/table.csv"))
    assert published[0] == published[1][:1]
    assert published[1] == published[2][:1]
    assert [each.parent.parent.name for each in tables] == batches, counts_of_batches(tmp_path / "run")
    assert [each.read_bytes() for each in tables] == [
        each.read_bytes() for each in sorted((tmp_path / "whole").glob("batch-*/release/table.csv"))
    ]
    last = [max((tmp_path / name).glob("batch-*/owner/carried/totals.json")) for name in ("run", "whole")]
    one, two = (from_json(StreamTotals, each.read_bytes()) for each in last)
    assert (one.records, one.held, one.ledger) == (two.records, two.held, two.ledger)
    with StreamSession.open(tmp_path / "run.db", write=False) as state:
        first = state.status()
    assert one.rows == first.rows + ROWS * FILES
    assert one.records + one.pending + one.quarantined == one.rows == FIRST + ROWS * FILES
    of_each = np.unique(table.column("who").to_numpy(zero_copy_only=False), return_counts=True)[1]
    assert one.records == np.minimum(of_each, 2).sum()
    for each in tables:
        checks = verify_release(each.parent)
        assert [check.name for check in checks if not check.holds] == ["made for release"]


def driver_log(folder: Path) -> str:
    return (folder / "log").read_text()[-4000:]


def counts_of_batches(folder: Path) -> str:
    return "\n".join(each.read_text() for each in sorted(folder.glob("batch-*/owner/carried/totals.json")))


def run_until(folder: Path, mark: str | None) -> list[tuple[str, int, bytes]]:
    """RowBlock a driver until it waits at a mark and kill it there, with its workers; or to its end."""
    command = [sys.executable, "-m", "tests.spark.streaming", str(folder)]
    with (folder / "log").open("ab") as log:
        driver = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        if mark is None:
            wait_for(lambda: driver.poll() is not None, lambda: False)
            assert driver.returncode == 0, driver_log(folder)
        else:
            wait_for((folder / f"at-{mark}").exists, lambda: driver.poll() is not None)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    if mark is not None:
        (folder / mark).unlink()
    found = sorted((folder / "run").glob("batch-*/release/table.csv"))
    return [(str(each), each.stat().st_mtime_ns, each.read_bytes()) for each in found]
