"""A cluster gives the rows that memory gives, bit by bit, also where a worker is killed in the middle of a cell."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import sfumato as sf
from sfumato.core.errors import SfumatoError
from sfumato.publish import sanitize as sanitizing
from sfumato.publish.verify import verify_release
from tests.partitions.test_large_files import write_as_in_germany
from tests.partitions.test_partitions import people
from tests.private.test_release import SCHEMA, frame, release
from tests.spark.holding import HoldingCondensation
from tests.spark.sessions import LIMIT, session, wait_for

pyspark = pytest.importorskip("pyspark", reason="the extra 'spark' is not installed; make test-spark has it")
pytestmark = pytest.mark.filterwarnings("ignore")  # of pyspark's own

TOLD: dict[str, Any] = {"person": "who", "level": "level", "holdout": 0.1, "seed": 5, "report": False}


@pytest.fixture(autouse=True)
def small_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sanitizing, "partition_rows", lambda *_: 250)


@pytest.mark.parametrize("levels", [False, True])
def test_a_cluster_counts_what_memory_counts_and_noise_is_drawn_once(levels: bool, tmp_path: Path) -> None:
    """The same seed gives the same model of a private release, and rows that are drawn from it."""
    whole = frame(3000).assign(id=[each // 3 for each in range(3000)])
    options: dict[str, Any] = {"epsilon": 3.0, "seed": 8, "report": not levels}
    if levels:
        text = SCHEMA.replace("identifier", "person")
        options |= {"epsilon_of": "age < 40: 0.5, else: 3", "schema": sf.Schema.from_toml(text)}
    expected = release(pa.Table.from_pandas(whole), **options).public_texts["model.json"]
    with session("local[2]") as spark:
        given = spark.createDataFrame(pa.Table.from_pandas(whole, preserve_index=False)).repartition(3)
        made = release(given, **options)
        assert made.public_texts["model.json"] == expected
        drawn = made.table.toArrow()
    assert drawn.num_rows == made.certificate.rows_out
    assert set(drawn["town"].unique().to_pylist()) <= {"a", "b", "c", "never seen", None}


def in_memory(table: pa.Table) -> sf.Release:
    return sf.sanitize(table, sf.Condensation(k=4, effort="fast"), memory="2G", **TOLD)


def test_a_data_frame_of_spark_and_its_file_give_the_rows_of_memory(tmp_path: Path) -> None:
    table = people()
    expected = in_memory(table)
    with session("local[2]") as spark:
        release = sf.sanitize(spark.createDataFrame(table), sf.Condensation(k=4, effort="fast"), memory="2G", **TOLD)
        assert release.table.toArrow().cast(expected.table.schema).equals(expected.table)
        assert release.certificate.facts == expected.certificate.facts
        pa.parquet.write_table(table, tmp_path / "people.parquet")
        sf.sanitize(
            tmp_path / "people.parquet", sf.Condensation(k=4, effort="fast"), folder=tmp_path / "out",
            engine="spark", master="local[2]", **TOLD,
        )  # fmt: skip
    written = pa.parquet.read_table(tmp_path / "out" / "release" / "table.parquet")
    assert written.cast(expected.table.schema).equals(expected.table)
    assert [check.name for check in verify_release(tmp_path / "out" / "release") if not check.holds] == [
        "made for release"
    ]


def test_with_no_method_named_a_cluster_draws_the_chains_of_memory(tmp_path: Path) -> None:
    table, told = people(), {**TOLD, "target": "ill", "k": 4, "leaf": 20}
    expected = sf.sanitize(table, memory="2G", **told)
    assert expected.certificate.method == "chain"
    with session("local[2]") as spark:
        release = sf.sanitize(spark.createDataFrame(table), memory="2G", **told)
        assert release.table.toArrow().cast(expected.table.schema).equals(expected.table)
        assert release.certificate.facts == expected.certificate.facts
        pa.parquet.write_table(table, tmp_path / "people.parquet")
        sf.sanitize(tmp_path / "people.parquet", folder=tmp_path / "out", engine="spark", master="local[2]", **told)
        numbers = table.select(["age", "since", "pay"])
        few: dict[str, Any] = {"seed": 5, "rows_are_people": True, "report": False}
        noised = sf.sanitize(spark.createDataFrame(numbers).repartition(3), sf.AdditiveNoise(), memory="2G", **few)
        same = pa.table(noised.table.toArrow())
        read = spark.createDataFrame(numbers).repartition(3).toArrow()  # rows in the order that the cluster has them
        expected_noise = sf.sanitize(read, sf.AdditiveNoise(), memory="2G", **few)
        assert same.cast(expected_noise.table.schema).equals(expected_noise.table)
        odd = people().append_column("street", pa.array([['a "b"', "c;d", "e"][row % 3] for row in range(len(table))]))
        write_as_in_germany(odd, tmp_path / "people.csv")
        for engine in ("partitions", "spark"):
            master = "local[2]" if engine == "spark" else None
            sf.sanitize(tmp_path / "people.csv", folder=tmp_path / engine, engine=engine, master=master, **told)
        (tmp_path / "ragged.csv").write_text("a;b\n1;2\n3\n")
        with pytest.raises(SfumatoError, match="do not have the 2 cells of the header"):
            sf.sanitize(tmp_path / "ragged.csv", folder=tmp_path / "none", engine="spark", master="local[2]", seed=1)
        assert not (tmp_path / "none").exists()
    same = [(tmp_path / engine / "release" / "table.csv").read_bytes() for engine in ("partitions", "spark")]
    assert same[0] == same[1]
    written = pa.parquet.read_table(tmp_path / "out" / "release" / "table.parquet")
    assert written.cast(expected.table.schema).equals(expected.table)
    assert [check.name for check in verify_release(tmp_path / "out" / "release") if not check.holds] == [
        "made for release"
    ]


def test_a_worker_that_is_killed_in_the_middle_of_a_cell_changes_no_row(tmp_path: Path) -> None:
    table = people()
    expected = in_memory(table)
    (tmp_path / "hold").touch()
    with cluster(tmp_path) as (master, workers), ThreadPoolExecutor(1) as driver:
        settings = {
            "spark.cores.max": "2",
            "spark.executor.cores": "1",
            "spark.executor.memory": "512m",
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.executorEnv.HOLD": str(tmp_path),
            "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        }
        with session(master, **settings) as spark:
            frame = spark.createDataFrame(table)

            def job() -> tuple[sf.Release, pa.Table]:
                release = sf.sanitize(frame, HoldingCondensation(k=4, effort="fast"), memory="2G", **TOLD)
                return release, release.table.toArrow()

            running = driver.submit(job)
            begun = wait_for(lambda: sorted(tmp_path.glob("begun-*")), running.done)
            killed = worker_of(int(begun[0].name.partition("-")[2]), workers)
            os.killpg(killed, signal.SIGKILL)
            (tmp_path / "hold").unlink()
            release, rows = running.result(timeout=LIMIT)
    assert rows.cast(expected.table.schema).equals(expected.table)
    assert release.certificate.facts == expected.certificate.facts


def worker_of(process: int, workers: list[int]) -> int:
    """The worker that a process descends from."""
    while process not in workers:
        assert process > 1, "no worker began it"
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return process


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[int]]]:
    """A standalone master and two workers of one core, each a process of its own."""
    program = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    common = ["--host", "127.0.0.1", "--webui-port", "0"]
    begun: list[subprocess.Popen[bytes]] = []

    def begin(kind: str, *told: str) -> int:
        with (folder / f"log-{len(begun)}").open("wb") as log:
            command = [program, f"org.apache.spark.deploy.{kind}", *common, *told]
            begun.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True))
        return begun[-1].pid

    try:
        begin("master.Master", "--port", str(port))
        wait_for(lambda: b"I have been elected leader" in (folder / "log-0").read_bytes(), lambda: False)
        workers = [
            begin("worker.Worker", "--cores", "1", "--memory", "1g", "--work-dir", str(folder / name), master)
            for name in ("one", "two")
        ]
        for place in (1, 2):
            log = folder / f"log-{place}"
            wait_for(lambda log=log: b"Successfully registered" in log.read_bytes(), lambda: False)  # type: ignore[misc]
        yield master, workers
    finally:
        for process in begun:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
