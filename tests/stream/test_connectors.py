"""Files, folders and standard input: the same rows have the same ids, however and however often they are given."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.cli import app
from sfumato.core.errors import OptionError, TableError
from sfumato.stream.connectors import ReadOptions, read_batches, read_lines
from sfumato.stream.entries import cut_batches
from sfumato.stream.session import StreamSession
from tests.examples import sized
from tests.stream.cases import ROWS, begin, groups_of, look, people
from tests.stream.standing import take_from

TABLE = people(300)


def texts(table: pa.Table) -> pa.Table:
    """Write every cell as CSV does."""
    return pa.table({name: table.column(name).cast(pa.string()) for name in table.column_names})


def lines_of(table: pa.Table) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode()


def csv_of(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pa.csv.write_csv(table, sink)
    return bytes(sink.getvalue().to_pybytes())


def ids(batches: Any) -> list[str]:
    return [identity for identity, _ in batches]


def read(data: bytes, **told: Any) -> list[tuple[str, pa.Table]]:
    return list(read_lines(io.BytesIO(data), ReadOptions(rows=ROWS, **told)))


def test_files_of_all_kinds_are_cut_alike(tmp_path: Path) -> None:
    csv, parquet, arrow = (tmp_path / f"people.{ending}" for ending in ("csv", "parquet", "arrow"))
    pa.csv.write_csv(TABLE, csv)
    pa.parquet.write_table(texts(TABLE), parquet, row_group_size=17)
    with pa.OSFile(str(arrow), "wb") as sink, pa.ipc.new_file(sink, texts(TABLE).schema) as writer:
        writer.write_table(texts(TABLE), max_chunksize=23)
    found = [ids(read_batches(path, ReadOptions(rows=ROWS))) for path in (csv, parquet, arrow)]
    assert found[0] == found[1] == found[2] == ids(cut_batches([texts(TABLE)], ROWS))
    assert found[0] == ids(read(csv.read_bytes()))


def test_a_folder_gives_its_files_by_name_and_new_ones_the_next_time(tmp_path: Path) -> None:
    folder, state = tmp_path / "days", tmp_path / "s.db"
    folder.mkdir()
    for name, first in (("2.parquet", 150), ("1.csv", 100)):
        write = pa.csv.write_csv if name.endswith("csv") else pa.parquet.write_table
        write(TABLE.slice(first, 50), folder / name)
    (folder / "notes.txt").write_text("not a table")
    (folder / ".3.csv.part").write_text("half")
    begin(state, TABLE)
    assert take_from(state, folder).rows == 100
    assert take_from(state, folder).rows == 0
    pa.csv.write_csv(TABLE.slice(200), folder / "3.csv")
    done = take_from(state, folder)
    assert (done.rows, done.repeated) == (100, 100)
    assert look(state).rows == 300
    whole = tmp_path / "whole.db"
    begin(whole, TABLE)
    with StreamSession.open(whole) as session:
        for first in (100, 150, 200):
            session.ingest(cut_batches([TABLE.slice(first, 100 if first == 200 else 50)], ROWS, source=str(first)))
    assert groups_of(state) == groups_of(whole)


def test_two_files_with_the_same_rows_both_count_and_the_file_that_a_state_was_begun_with_does_not(
    tmp_path: Path,
) -> None:
    folder, state = tmp_path / "days", tmp_path / "s.db"
    folder.mkdir()
    for name in ("b.csv", "c.csv"):
        pa.csv.write_csv(TABLE.slice(200, 30), folder / name)
    pa.csv.write_csv(TABLE.slice(0, 130), folder / "a.csv")
    begin(state, texts(TABLE), first=90)  # of a.csv, ending in the middle of a batch
    done = take_from(state, folder)
    assert (done.rows, done.repeated) == (40 + 30 + 30, 90)
    assert take_from(state, folder).rows == 0


def test_a_folder_without_tables_and_a_file_that_is_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="no table in the folder"):
        list(read_batches(tmp_path, ReadOptions(rows=ROWS)))
    with pytest.raises(TableError, match="there is no file"):
        list(read_batches(tmp_path / "a.csv", ReadOptions(rows=ROWS)))


@given(st.integers(1, sized(20, 60)), st.integers(0, sized(45, 300)))
def test_json_lines_and_csv_on_standard_input_hold_the_same_rows(rows: int, end: int) -> None:
    table = texts(TABLE.slice(0, end).drop_columns(["pay"]))
    if not end:
        with pytest.raises(TableError, match="is empty"):
            read(lines_of(table))
        return
    expected = list(cut_batches([table], rows))
    for data in (lines_of(table), csv_of(table)):
        found = list(read_lines(io.BytesIO(data), ReadOptions(rows=rows)))
        assert ids(found) == ids(expected)
        assert all(one.equals(other) for (_, one), (_, other) in zip(found, expected, strict=True))


def test_json_cells_keep_their_text_and_fields_may_lack_or_be_unknown() -> None:
    data = b'{"n": 1.50, "yes": true, "word": "\\ud800x"}\n\n{"more": 1, "n": 12345678901234567890, "yes": null}\n'
    ((_, table),) = read(data, columns=("n", "yes", "word"))
    assert table.to_pylist() == [
        {"n": "1.50", "yes": "true", "word": "?x"},
        {"n": "12345678901234567890", "yes": None, "word": None},
    ]
    ((_, table),) = read(data)
    assert table.column_names == ["n", "yes", "word"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b'{"a": 1}\n{"a": [31337]}\n', "line 2 of standard input is not a JSON object"),
        (b'{"a": 1}\n{"a": 31337\n', "line 2 of standard input is not a JSON object"),
        (b'{"a": 1}\n31337\n', "line 2 of standard input is not a JSON object"),
        (b"a,b\n1,2\n31337\n", "1 rows before line 4 of standard input do not have the 2 cells"),
        (b"a,a\n1,2\n", "the same name twice"),
        (b"a,\n1,2\n", "1 empty names"),
        (b"a,b\n1,\xff\xff31337\n", "is not utf-8"),
    ],
)
def test_lines_that_cannot_be_read_are_told_by_number_and_not_quoted(data: bytes, words: str) -> None:
    with pytest.raises(TableError, match=words) as caught:
        read(data)
    assert "31337" not in str(caught.value)


def test_a_full_batch_leaves_before_the_next_line_is_there() -> None:
    class Endless(io.RawIOBase):
        def __init__(self) -> None:
            self.given = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            if self.given > 400:
                pytest.fail("more was read than a batch takes")
            self.given += 1
            line = b'{"a": 1}\n'
            buffer[: len(line)] = line
            return len(line)

    batches = read_lines(io.BufferedReader(Endless(), 9), ReadOptions(rows=20))
    assert next(batches)[1].num_rows == 20


def test_standard_input_is_read_as_it_is_told_and_other_forms_are_refused() -> None:
    ((_, table),) = read(b"{x\n1\n", form="csv")
    assert table.to_pylist() == [{"{x": "1"}]
    with pytest.raises(OptionError, match="choose csv or jsonl"):
        ReadOptions(rows=1, form="xml")
    with pytest.raises(OptionError, match="no encoding"):
        read(b"a\n1\n", encoding="nothing")
    assert read("å;b\n1;ü\n".encode("latin-1"), encoding="latin-1")[0][1].to_pylist() == [{"å": "1", "b": "ü"}]
    assert read("\ufeffa,b\n1,2\n".encode())[0][1].column_names == ["a", "b"]


def test_lines_taken_in_by_a_stream_are_the_file_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(tmp_path / "file.db", texts(TABLE))
    begin(tmp_path / "lines.db", texts(TABLE))
    pa.csv.write_csv(TABLE, tmp_path / "people.csv")
    take_from(tmp_path / "file.db", tmp_path / "people.csv")
    data = io.TextIOWrapper(io.BytesIO(lines_of(texts(TABLE))))
    monkeypatch.setattr("sys.stdin", data)
    done = take_from(tmp_path / "lines.db", "-")
    assert (done.rows, done.repeated) == (200, 100)
    assert groups_of(tmp_path / "file.db") == groups_of(tmp_path / "lines.db")


def test_the_command_takes_in_folders_and_json_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state, folder = tmp_path / "s.db", tmp_path / "days"
    folder.mkdir()
    begin(state, texts(TABLE))
    pa.csv.write_csv(TABLE.slice(0, 200), folder / "1.csv")  # the state was begun with its first rows
    for place, data, rows in ((str(folder), b"", 200), ("-", lines_of(TABLE.slice(200)), 300)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        app.main(["stream", "ingest", "--state", str(state), "--json", place], standalone_mode=False)
        assert json.loads(capsys.readouterr().out)["rows"] == rows
