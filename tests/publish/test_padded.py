"""A workbook that is padded far beyond its certified rows is refused before it fills memory."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import TableError
from sfumato.publish.verify_rows import read_released
from sfumato.tables.files import FileForm, FileFormat, write_file

ROWS = 60
TABLE = pa.table({"age": list(range(ROWS)), "pay": [1.5 * row for row in range(ROWS)]})
SCHEMA = sf.Schema((sf.Field("age", sf.Kind.INTEGER), sf.Field("pay", sf.Kind.CONTINUOUS)))
PARTS = {"xlsx": "xl/worksheets/sheet1.xml", "ods": "content.xml"}
BEFORE = {"xlsx": b"</sheetData>", "ods": b"</table:table>"}
PADDING = {
    "empty-rows.xlsx": b"".join(b'<row r="%d"><c r="A%d"/></row>' % (row, row) for row in range(100, 300_000)),
    "empty-texts.xlsx": b'<row r="300000"><c r="J300000" t="str"><v></v></c></row>',
    "far-cell.xlsx": b'<row r="1000000"><c r="S1000000"><v>1</v></c></row>',
    "rows.ods": b"<table:table-row><table:table-cell/><table:table-cell/></table:table-row>" * 1_000_000,
    "repeated.ods": b'<table:table-row table:number-rows-repeated="900000"><table:table-cell/></table:table-row>'
    b'<table:table-row><table:table-cell office:value-type="float" office:value="1"/></table:table-row>',
}


def padded(path: Path, padding: bytes) -> Path:
    """A workbook of the table with more before the end of its sheet."""
    form = path.suffix[1:]
    plain = path.with_name(f"plain.{form}")
    write_file(TABLE, plain, FileForm(FileFormat(form)))
    with zipfile.ZipFile(plain) as book, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as more:
        for part in book.namelist():
            text = book.read(part)
            if part == PARTS[form]:
                text = text.replace(BEFORE[form], padding + BEFORE[form])
            more.writestr(part, text)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(PADDING))
@pytest.mark.parametrize("rows", [ROWS, 10**15], ids=["certified", "lied-about"])
def test_a_padded_workbook_is_refused_or_read_in_little_memory(tmp_path: Path, name: str, rows: int) -> None:
    path = padded(tmp_path / name, PADDING[name])
    assert path.stat().st_size < 3_000_000
    code = (
        "import resource, sys; from pathlib import Path; import sfumato as sf\n"
        "from sfumato.core.errors import TableError\n"
        "from sfumato.publish.verify_rows import read_released\n"
        "import python_calamine, pyarrow.compute\n"
        "schema = sf.Schema((sf.Field('age', sf.Kind.INTEGER), sf.Field('pay', sf.Kind.CONTINUOUS)))\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10\n"
        "before = peak()\n"
        "try: read_released(Path(sys.argv[1]), schema, int(sys.argv[2]))\n"
        "except TableError: pass\n"
        "print(peak() - before)"
    )
    done = subprocess.run([sys.executable, "-c", code, path, str(rows)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 300, "MiB"


@pytest.mark.parametrize("name", ["far-cell.xlsx", "repeated.ods"])
def test_cells_far_from_the_certified_rows_are_refused_in_one_sentence(tmp_path: Path, name: str) -> None:
    path = padded(tmp_path / name, PADDING[name])
    with pytest.raises(TableError, match="spans more than 65780 cells"):
        read_released(path, SCHEMA, ROWS)


@pytest.mark.parametrize("form", ["xlsx", "ods"])
def test_a_workbook_with_few_empty_rows_more_is_read(tmp_path: Path, form: str) -> None:
    some = {"xlsx": b'<row r="70"><c r="A70"/></row>', "ods": b"<table:table-row><table:table-cell/></table:table-row>"}
    path = padded(tmp_path / f"table.{form}", some[form])
    assert read_released(path, SCHEMA, ROWS).rows == ROWS
