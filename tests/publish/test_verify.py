"""What a reviewer's check looks at, entry by entry: the certificate beside a table, and the table itself."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import sfumato as sf
from sfumato.certificate.signature import Signer
from sfumato.core.errors import OptionError, TableError
from sfumato.publish import verify_rows
from sfumato.publish.verify import _digest, certificate_beside, verify_release
from sfumato.publish.verify_rows import read_released
from sfumato.tables.field import Domain, Field, Kind
from sfumato.tables.schema import Schema
from sfumato.tables.source import open_source

AGE = Field("age", Kind.INTEGER, domain=Domain(declared=True, low=0, high=10))
SEX = Field("sex", Kind.NOMINAL, domain=Domain(declared=True, categories=("f", "m")))


def change(folder: Path, make: Callable[[dict[str, Any]], object]) -> None:
    """Write the certificate again as sfumato writes it, with something else in it."""
    path = folder / "certificate.json"
    document = json.loads(path.read_text())
    make(document)
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def failing(folder: Path) -> dict[str, str]:
    return {check.name: check.detail for check in verify_release(folder) if not check.holds}


def test_the_certificate_that_speaks_of_a_table_is_found_beside_it(folder: Path) -> None:
    certificate, why = certificate_beside(folder / "table.csv")
    assert why is None
    assert certificate is not None
    assert certificate.rows_out == 60


def test_a_table_that_no_certificate_names_has_none(folder: Path) -> None:
    shutil.copy(folder / "table.csv", folder / "other.csv")
    assert certificate_beside(folder / "other.csv") == (None, None)
    (folder / "certificate.json").unlink()
    assert certificate_beside(folder / "table.csv") == (None, None)


def test_a_table_that_was_changed_is_not_the_one_that_the_certificate_speaks_of(folder: Path) -> None:
    path = folder / "table.csv"
    path.write_bytes(path.read_bytes().replace(b"f", b"m", 1))
    certificate, why = certificate_beside(path)
    assert certificate is None
    assert why is not None
    assert "is for another table" in why


def test_a_file_of_the_release_that_is_not_its_table_has_no_certificate(folder: Path) -> None:
    certificate, why = certificate_beside(folder / "schema.toml")
    assert certificate is None
    assert why is not None
    assert "is for another table" in why


def test_a_certificate_that_contradicts_itself_is_not_used(folder: Path) -> None:
    change(folder, lambda document: document["claims"].clear())
    certificate, why = certificate_beside(folder / "table.csv")
    assert certificate is None
    assert why is not None
    assert "contradicts itself" in why


def test_a_dry_run_is_not_made_for_release(folder: Path, tmp_path: Path) -> None:
    table = pa.table({"age": list(range(40)), "sex": ["f", "m"] * 20})
    dry = sf.sanitize(table, sf.Condensation(k=5), seed=1, report=False).save(tmp_path / "dry") / "release"
    assert failing(folder) == {}
    assert list(failing(dry)) == ["made for release"]


@pytest.mark.parametrize("entry", ["table_sha256", "schema_sha256"])
def test_the_hash_of_table_and_schema_is_that_of_their_file(folder: Path, entry: str) -> None:
    change(folder, lambda document: document.update({entry: "0" * 64}))
    assert failing(folder)["files unchanged"] == f"changed or missing: '{entry.partition('_')[0]}" + (
        "'" if entry.startswith("table") else ".toml'"
    )


def test_a_certificate_names_one_table(folder: Path) -> None:
    shutil.copy(folder / "table.csv", folder / "table.txt")

    def twice(document: dict[str, Any]) -> None:
        document["files"] = dict(sorted({**document["files"], "table.txt": document["table_sha256"]}.items()))

    change(folder, twice)
    assert failing(folder)["files unchanged"] == "changed or missing: 'table'"


def test_a_file_in_another_folder_is_none_of_the_release(folder: Path) -> None:
    shutil.copy(folder / "schema.toml", folder.parent / "elsewhere")
    digest = json.loads((folder / "certificate.json").read_text())["schema_sha256"]

    def elsewhere(document: dict[str, Any]) -> None:
        document["files"] = dict(sorted({**document["files"], "../elsewhere": digest}.items()))

    change(folder, elsewhere)
    assert failing(folder)["files unchanged"] == "changed or missing: '../elsewhere'"


def test_a_certificate_that_names_a_signature_among_its_files_does_not_hold(folder: Path) -> None:
    signer = Signer(Ed25519PrivateKey.generate())

    def among(document: dict[str, Any]) -> None:
        document["files"] = dict(sorted({**document["files"], "certificate.sig": "0" * 64}.items()))

    change(folder, among)
    text = signer.sign((folder / "certificate.json").read_bytes()).to_text()
    (folder / "certificate.sig").write_text(text)
    assert failing(folder) == {"files unchanged": "changed or missing: 'certificate.sig'"}


def test_a_table_outside_the_folder_is_not_read(folder: Path) -> None:
    (folder / "table.").mkdir()
    outside = "table./../../elsewhere.csv"
    (folder.parent / "elsewhere.csv").write_bytes((folder / "table.csv").read_bytes())

    def elsewhere(document: dict[str, Any]) -> None:
        files = {**document["files"], outside: document["files"].pop("table.csv")}
        document["files"] = dict(sorted(files.items()))
        document["files"].pop("table.csv", None)

    change(folder, elsewhere)
    (folder / "table.csv").unlink()
    assert set(failing(folder)) == {"files unchanged", "table readable"}


def test_a_folder_that_cannot_be_listed_does_not_hold(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(_: Path) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", closed)
    assert failing(folder) == {"files unchanged": "the files of the folder cannot be listed (Permission denied)"}


@pytest.mark.parametrize(("count", "more"), [(5, ""), (6, " and 1 more")])
def test_of_many_foreign_files_five_are_named(folder: Path, count: int, more: str) -> None:
    for place in range(count):
        (folder / f"x{place}").touch()
    named = "'x0', 'x1', 'x2', 'x3', 'x4'"
    assert failing(folder) == {
        "files unchanged": f"{count} {'file is' if count == 1 else 'files are'} not in the certificate: {named}{more}"
    }


def test_a_file_may_have_exactly_as_many_bytes_as_are_granted(folder: Path) -> None:
    size = (folder / "schema.toml").stat().st_size
    assert (
        _digest(folder / "schema.toml", size) == json.loads((folder / "certificate.json").read_text())["schema_sha256"]
    )
    with pytest.raises(OptionError, match=f"has {size} bytes; allow as many"):
        _digest(folder / "schema.toml", size - 1)


@pytest.mark.parametrize("rows", [59, 61])
def test_one_row_too_many_or_too_few_is_seen(folder: Path, rows: int) -> None:
    change(folder, lambda document: document.update(rows_out=rows))
    told = "60 rows, certified are 61" if rows == 61 else "more than the certified 59"
    assert failing(folder)["rows"] == told


@pytest.mark.parametrize(
    ("cells", "outside"),
    [
        ("0,f\n10,m\n", ()),
        ("-1,f\n", ("age",)),
        ("11,m\n", ("age",)),
        ("x,m\n", ("age",)),
        ("5,x\n", ("sex",)),
        (",f\n5,\n", ()),
        ("11,x\n-1,y\n", ("age", "sex")),
    ],
)
def test_a_cell_outside_a_declared_domain_is_seen_and_an_empty_one_is_missing(
    tmp_path: Path, cells: str, outside: tuple[str, ...]
) -> None:
    path = tmp_path / "table.csv"
    path.write_text("age,sex\n" + cells)
    found = read_released(path, Schema((AGE, SEX)), 5)
    assert (found.declared, found.outside, found.rows) == (2, outside, cells.count("\n"))


def test_an_open_end_of_a_domain_bounds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("age\n-5\n99\n")
    for low, high, outside in ((None, 10, True), (0, None, True), (None, 99, False), (-5, None, False)):
        field = Field("age", Kind.INTEGER, domain=Domain(declared=True, low=low, high=high))
        assert read_released(path, Schema((field,)), 5).outside == (("age",) if outside else ())


def test_columns_without_a_declared_domain_are_not_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("age,pay\n99,5\n")
    observed = Field("pay", Kind.INTEGER, domain=Domain(low=0, high=1))
    found = read_released(path, Schema((AGE, observed)), 5)
    assert (found.declared, found.outside) == (1, ("age",))


def test_a_table_may_unpack_to_exactly_what_is_granted(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    pa.parquet.write_table(pa.table({"age": pa.array([1] * 1000, pa.int64())}), path)
    size = sum(part.nbytes for part in open_source(path).batches(["age"], 10_000))
    assert read_released(path, Schema((AGE,)), 1000, most_bytes=size).rows == 1000
    with pytest.raises(TableError, match="unpacks to more than 0 MiB, too much for 1000 rows of 1 columns"):
        read_released(path, Schema((AGE,)), 1000, most_bytes=size - 1)


def test_what_a_table_may_unpack_to_grows_with_its_certified_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify_rows, "_FREE", 0)
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(b"age,sex\n" + b"5,f\n" + b"5," + b"m" * 5000 + b"\n"))
    assert read_released(path, Schema((AGE,)), 3).rows == 2
    with pytest.raises(TableError, match="too much for 2 rows of 2 columns"):
        read_released(path, Schema((AGE,)), 2)


def test_reading_stops_behind_the_certified_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_rows, "_FEWEST_ROWS", 10)
    monkeypatch.setattr(verify_rows, "_BATCH_CELLS", 20)
    path = tmp_path / "table.parquet"
    pa.parquet.write_table(pa.table({"age": list(range(5)) * 6 + [99] * 30}), path)
    assert read_released(path, Schema((AGE,)), 60).outside == ("age",)
    assert read_released(path, Schema((AGE,)), 20).rows == 40
    assert read_released(path, Schema((AGE,)), 20).outside == ()
