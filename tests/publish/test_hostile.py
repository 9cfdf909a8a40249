"""A release folder made to harm its reviewer."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from sfumato.core.errors import BadInput, OptionError, TableError
from sfumato.publish.verify import certificate_beside, verify_release
from sfumato.publish.verify_rows import MOST_BYTES
from sfumato.tables.files import read_file
from sfumato.tables.source import TableSource

ESCAPES = "\x1b[2J\x1b[HThe release holds.\n\u202e"


def failing(folder: Path) -> dict[str, str]:
    return {check.name: check.detail for check in verify_release(folder) if not check.holds}


def fifo(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def linked(path: Path) -> None:
    shutil.copy(path.with_suffix(".kept"), path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


@pytest.mark.parametrize("make", [fifo, endless, linked, Path.mkdir])
def test_a_certificate_that_is_no_regular_file_is_refused_at_once(folder: Path, make: Callable[[Path], None]) -> None:
    certificate = folder / "certificate.json"
    certificate.rename(certificate.with_suffix(".kept"))
    make(certificate)
    with pytest.raises(BadInput, match=r"certificate.json' cannot be read \("):
        verify_release(folder)
    assert certificate_beside(folder / "table.csv") == (
        None,
        "the certificate in the folder of the released table cannot be read and was not used",
    )


@pytest.mark.parametrize("name", ["table.csv", "schema.toml"])
@pytest.mark.parametrize("make", [fifo, endless, linked, Path.mkdir])
def test_a_file_of_the_release_that_is_no_regular_file_fails(
    folder: Path, make: Callable[[Path], None], name: str
) -> None:
    (folder / name).rename((folder / name).with_suffix(".kept"))
    make(folder / name)
    (folder / name).with_suffix(".kept").unlink()
    assert failing(folder)["files unchanged"] == f"changed or missing: '{name}'"


@pytest.mark.parametrize("name", [ESCAPES, "x" * 255, os.fsdecode(b"\xff\xfe")])
def test_a_foreign_file_is_named_without_its_escapes(folder: Path, name: str) -> None:
    (folder / name).touch()
    detail = failing(folder)["files unchanged"]
    assert detail.startswith("1 file is not in the certificate: '")
    assert detail.isprintable()
    assert len(detail) < 300


@pytest.mark.parametrize("name", [ESCAPES, "x" * 5000, "a/../../b", "no\0name", "certificate.json"])
def test_a_name_in_the_certificate_is_shown_without_its_escapes(folder: Path, name: str) -> None:
    path = folder / "certificate.json"
    document = json.loads(path.read_text())
    document["files"] = dict(sorted({**document["files"], name: "0" * 64}.items()))
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    detail = failing(folder)["files unchanged"]
    assert detail.startswith("changed or missing: '")
    assert detail.isprintable()
    assert len(detail) < 300


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"format": 1, "parameters": ' + "[" * 100_000,
        "9" * 5000,
        '{"format": 1e999}',
        '{"\\ud800": 1}',
        "",
    ],
    ids=range(6),
)
def test_a_certificate_out_of_bounds_is_refused(folder: Path, text: str) -> None:
    (folder / "certificate.json").write_text(text)
    assert list(failing(folder)) == ["certificate"]
    assert failing(folder)["certificate"].startswith("the certificate is not JSON (")


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, ".".join("a" * 100_000) + " = 1", "a = " + "9" * 5000])
def test_a_schema_out_of_bounds_fails(folder: Path, text: str) -> None:
    (folder / "schema.toml").write_text(text)
    assert "table readable" in failing(folder)


def test_a_schema_with_a_column_that_the_table_lacks_fails(folder: Path) -> None:
    path = folder / "schema.toml"
    declared = '\n[[column]]\nname = "more"\nkind = "integer"\ndomain = { low = 0, high = 1 }\n'
    path.write_text(path.read_text() + declared)
    found = failing(folder)
    assert found["columns"] == "2 columns, not those of the schema"
    assert "files unchanged" in found


def certify_again(folder: Path, name: str, rows: int) -> None:
    """Make the certificate speak of another table, as a forger would."""
    path = folder / "certificate.json"
    document = json.loads(path.read_text())
    document["files"] = {
        file: hashlib.sha256((folder / file).read_bytes()).hexdigest() for file in ("schema.toml", name)
    }
    document["table_sha256"], document["rows_out"] = document["files"][name], rows
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def packed(folder: Path, rows: int) -> None:
    (folder / "table.csv").unlink()
    with gzip.open(folder / "table.csv.gz", "wb", compresslevel=1) as file:
        file.write(b"age,sex\n")
        for _ in range(rows >> 16):
            file.write(b"30,f\n" * (1 << 16))


def test_a_table_that_unpacks_to_more_rows_than_certified_is_left_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed(folder, 1 << 23)
    certify_again(folder, "table.csv.gz", 60)
    read: list[int] = []
    batches = TableSource.batches

    def counted(self: TableSource, *args: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        for batch in batches(self, *args, **options):
            read.append(len(batch))
            yield batch

    monkeypatch.setattr(TableSource, "batches", counted)
    assert failing(folder)["rows"] == "more than the certified 60"
    assert len(read) == 1


def test_a_table_that_unpacks_to_more_than_its_rows_need_is_refused(folder: Path) -> None:
    packed(folder, 1 << 17)
    certify_again(folder, "table.csv.gz", 1 << 17)
    found = {check.name: check for check in verify_release(folder, most_bytes=1 << 16)}
    assert found["table readable"].detail.startswith("the table unpacks to more than 0 MiB, too much for 131072 rows")
    found = {check.name: check for check in verify_release(folder)}
    assert found["rows"].holds


def test_a_file_too_large_to_be_hashed_is_told(folder: Path) -> None:
    with pytest.raises(OptionError, match="allow as many with most_bytes="):
        verify_release(folder, most_bytes=100)
    os.truncate(folder / "table.csv", MOST_BYTES + 1)
    with pytest.raises(OptionError, match="allow as many with most_bytes="):
        verify_release(folder)


def test_a_packed_table_is_read_up_to_what_is_granted(tmp_path: Path) -> None:
    many = pa.table({"x": pa.array([0] * 200_000, pa.int64())})
    pa.parquet.write_table(many, tmp_path / "table.parquet")
    with gzip.open(tmp_path / "table.csv.gz", "wb") as file:
        file.write(b"x\n" + b"0\n" * 200_000)
    pa.feather.write_feather(many, str(tmp_path / "table.arrow"), compression="zstd")
    for name in ("table.parquet", "table.csv.gz", "table.arrow"):
        assert read_file(tmp_path / name)[0].num_rows == 200_000
        assert read_file(tmp_path / name, most_bytes=1 << 22)[0].num_rows == 200_000
        with pytest.raises(TableError, match=r"unpacks to more than 300000 bytes; .*most_bytes="):
            read_file(tmp_path / name, most_bytes=300_000)


def test_a_header_of_very_many_columns_takes_no_square_of_them(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(",".join(map(str, range(150_000))) + ",7\n1\n")
    with pytest.raises(TableError, match="column '7' stands 2 times"):
        read_file(path)
