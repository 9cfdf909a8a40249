"""What a run takes at least is known before it starts: less is refused, and as much is kept to."""

from __future__ import annotations

import atexit
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import sfumato as sf
from sfumato.assess import warm
from sfumato.core.errors import OptionError
from sfumato.engines.partitions.memory_limit import Spill, check_memory, least_bytes, needed_bytes
from sfumato.tables.files import FileForm, FileFormat
from sfumato.tables.source import TableSource
from tests.cli.conftest import Run, run  # noqa: F401

MB = 1 << 20


def source(rows: int, columns: int, form: FileFormat = FileFormat.PARQUET) -> TableSource:
    kinds = pa.schema([(f"x{place}", pa.float64()) for place in range(columns)])
    return TableSource(Path("table"), FileForm(form), kinds, rows)


def write_numbers(path: Path, rows: int, columns: int) -> Path:
    rng = np.random.default_rng(3)
    pa.parquet.write_table(pa.table({f"x{place}": rng.normal(size=rows).round(2) for place in range(columns)}), path)
    return path


def test_the_least_grows_with_columns_and_the_report_and_not_with_rows() -> None:
    assert least_bytes(source(10**6, 10), report=True) == least_bytes(source(10**9, 10), report=True)
    assert least_bytes(source(10**6, 20), report=True) > least_bytes(source(10**6, 10), report=True)
    assert least_bytes(source(10**6, 10), report=True) > least_bytes(source(10**6, 10), report=False)
    csv = least_bytes(source(10**6, 10, FileFormat.CSV), report=False)
    assert csv > least_bytes(source(10**6, 10), report=False)
    assert least_bytes(source(100, 10), report=True) < least_bytes(source(10**6, 10), report=True)


def test_a_report_counts_among_what_a_run_in_memory_needs() -> None:
    assert needed_bytes(source(200_000, 10), None, report=True) > needed_bytes(source(200_000, 10), None)
    more, most = (needed_bytes(source(rows, 10), None, report=True) for rows in (200_000, 250_000))
    assert needed_bytes(source(260_000, 10), None, report=True) < more < most  # of a larger table a part is measured


def test_too_little_is_refused_with_what_is_enough() -> None:
    with pytest.raises(OptionError) as refused:
        check_memory(400 * MB, 991 * MB, 612 * MB)
    assert str(refused.value) == (
        "400 MB of memory are too little for this run: the programs take about 470 MB and the least work on this "
        "table 521 MB; grant at least memory='1000M', or 620M with report=False"
    )
    check_memory(991 * MB, 991 * MB, 612 * MB)
    with pytest.raises(OptionError, match=r"grant at least memory='620M'$"):
        check_memory(400 * MB, 612 * MB, 612 * MB)


@pytest.mark.parametrize("engine", [(), ("--engine", "partitions")])
def test_the_command_refuses_too_little_before_it_reads_a_row(
    engine: tuple[str, ...],
    run: Run,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = write_numbers(tmp_path / "numbers.parquet", 1_000, 4)

    def never(*_args: object, **_more: object) -> None:
        raise AssertionError("a row was read")

    monkeypatch.setattr(TableSource, "batches", never)
    monkeypatch.setattr("sfumato.cli.sanitize.read_people", never)
    done = run("sanitize", path, "-o", tmp_path / "out", "--memory", "400M", *engine)
    assert (done.code, done.out) == (2, "")
    assert re.search(r"grant at least --memory 6\d0M, or 4\d0M with --no-report$", done.err.strip())
    assert [each.name for each in tmp_path.iterdir()] == ["numbers.parquet"]


def test_python_refuses_too_little_too(tmp_path: Path) -> None:
    path = write_numbers(tmp_path / "numbers.parquet", 1_000, 4)
    with pytest.raises(OptionError, match=r"grant at least memory='6\d0M', or 4\d0M with report=False"):
        sf.sanitize(path, folder=tmp_path / "out", engine="partitions", memory="400M")
    with pytest.raises(OptionError, match="too little"):
        sf.sanitize(
            path,
            folder=tmp_path / "out",
            engine="partitions",
            method="translate",
            new_key=tmp_path / "key",
            memory="400M",
        )
    with pytest.raises(OptionError, match=r"too little for this run.*, or 4\d0M with report=False"):
        sf.sanitize(pa.table({"x": np.arange(400.0) ** 1.5, "y": np.arange(400) % 7}), memory="400M")
    assert not (tmp_path / "out").exists()


def test_kernels_compile_in_another_process_where_memory_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    class Process:
        def __init__(self, *_args: object, **_more: object) -> None:
            done.append("begun")

        def wait(self) -> None:
            done.append("waited for")

        def poll(self) -> int:
            return 0

    monkeypatch.setattr(warm, "_running", [])
    monkeypatch.setattr(warm, "share_compiled", lambda: 0.0)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setattr(subprocess, "Popen", Process)
    monkeypatch.setattr(warm, "_watch", lambda _: None)
    monkeypatch.setattr(atexit, "register", lambda *_: None)
    warm.compile_ahead()
    assert done == []
    warm.compile_apart()
    assert done == ["begun", "waited for"]


def test_rows_that_wait_are_put_away_before_they_are_many() -> None:
    class Counting(Spill):
        most = 0

        def flush(self) -> None:
            self.most = max(self.most, self._bytes)
            super().flush()

    spill, rows = Counting(), pa.table({"x": np.zeros(1 << 17)})  # a megabyte
    for _ in range(80):
        spill.add(0, rows)
    assert 0 < spill.most <= 34 * MB


@pytest.mark.slow
@pytest.mark.parametrize("report", [False, True])
def test_a_run_keeps_to_the_least_that_it_asks_for(report: bool, tmp_path: Path) -> None:
    sf_path = write_numbers(tmp_path / "numbers.parquet", 300_000, 6)
    least = least_bytes(source(300_000, 6), report=report)
    code = (
        "import resource, sfumato as sf\n"
        f"sf.sanitize({str(sf_path)!r}, folder={str(tmp_path / 'out')!r}, engine='partitions', memory={least},"
        f" report={report}, sign=False, rows_are_people=True)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) <= least
