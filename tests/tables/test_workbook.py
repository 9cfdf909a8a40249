"""Sheets of workbooks, and those that mean harm."""

from __future__ import annotations

import datetime
import io
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

from examples.messy_patients import COLUMNS, VISITS, WORKBOOK_PARTS, as_xlsx
from sfumato.core.errors import BadInput, OptionError, TableError
from sfumato.tables.files import read_file, read_numerals
from sfumato.tables.workbook import Sheet
from tests.messy import messy_rows

SPACE = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
STYLES = f'<styleSheet xmlns="{SPACE}"><numFmts/><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>'
SEEDS = Path(__file__).parents[1] / "fuzz" / "seeds"


def cell(value: object) -> str:
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
    return "<c/>" if value is None else f"<c><v>{value}</v></c>"


def xlsx(path: Path, rows: list[list[object]] | str, **more: str) -> Path:
    lines = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows) if isinstance(rows, list) else rows
    sheet = f'<worksheet xmlns="{SPACE}"><sheetData>{lines}</sheetData></worksheet>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (WORKBOOK_PARTS | {"xl/worksheets/sheet1.xml": sheet} | more).items():
            archive.writestr(name, text)
    return path


def ods(path: Path, rows: str) -> Path:
    text = (SEEDS / "ods-content" / "one.xml").read_text()
    begin, end = text.index("<table:table-row"), text.index("</table:table>")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
        archive.writestr("content.xml", text[:begin] + rows + text[end:])
    return path


@pytest.mark.slow
def test_the_messy_workbook_reads_as_its_rows(tmp_path: Path) -> None:
    rows = messy_rows()
    (tmp_path / "p.xlsx").write_bytes(as_xlsx(rows))
    table, form = read_file(tmp_path / "p.xlsx")
    assert (table.column_names, table.num_rows) == (list(COLUMNS), VISITS)
    assert table.column("postcode").to_pylist() == [row[COLUMNS.index("postcode")] for row in rows]
    assert form.sheet == Sheet("visits", ("remarks",))
    table, form = read_numerals(table, form)
    assert set(form.numerals.commas) == {"weight_kg", "crp", "cost_eur", "survey_weight"}
    remarks, _ = read_file(tmp_path / "p.xlsx", sheet="remarks")
    assert remarks.column_names == ["remark"]
    with pytest.raises(OptionError, match="'visits', 'remarks'"):
        read_file(tmp_path / "p.xlsx", sheet="visit")


def test_columns_of_one_type_keep_it_and_others_are_texts(tmp_path: Path) -> None:
    rows: list[list[object]] = [["n", "x", "mixed", "empty"], [1, 1.5, "NA", None], [None] * 4, [2, None, 3, None]]
    table, _ = read_file(xlsx(tmp_path / "t.xlsx", rows))
    assert table.to_pydict() == {"n": [1, 2], "x": [1.5, None], "mixed": ["NA", "3"], "empty": ["", ""]}
    assert table.schema.field("n").type == pa.int64()


def test_an_ods_sheet_is_read_with_its_repeats(tmp_path: Path) -> None:
    cells = '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'
    row = f"<table:table-row{{}}>{cells}</table:table-row>"
    repeats = ' table:number-rows-repeated="3"'
    table, form = read_file(ods(tmp_path / "t.ods", row.format("", "town") + row.format(repeats, "Ulm")))
    assert form.sheet == Sheet("one")
    assert table.to_pydict() == {"town": ["Ulm"] * 3}


def test_a_cell_far_out_is_refused_before_space_is_made_for_it(tmp_path: Path) -> None:
    far = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    with pytest.raises(TableError, match="stray cells"):
        read_file(xlsx(tmp_path / "t.xlsx", far))
    full = '<table:table-cell office:value-type="float" office:value="1" table:number-columns-repeated="16000"/>'
    many = f'<table:table-row table:number-rows-repeated="1000000">{full}</table:table-row>'
    with pytest.raises(TableError, match="stray cells"):
        read_file(ods(tmp_path / "t.ods", many))


def test_a_workbook_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    path = xlsx(tmp_path / "t.xlsx", [["a"], [1]], **{"xl/media/image.png": "0" * (1 << 22)})
    assert path.stat().st_size < 1 << 14
    assert read_file(path)[0].num_rows == 1
    with pytest.raises(TableError, match="unpacks to more than 1 MiB"):
        read_file(path, most_bytes=1 << 20)


@pytest.mark.parametrize(
    "data",
    [b"", b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512), b"a;b\n1;2\n"],
)
def test_what_is_no_workbook_is_refused_in_words(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "t.xlsx").write_bytes(data)
    with pytest.raises(TableError, match="damaged or protected"):
        read_file(tmp_path / "t.xlsx")


def test_a_document_type_a_part_twice_and_an_empty_sheet_are_refused(tmp_path: Path) -> None:
    declared = {"xl/styles.xml": '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>'}
    with pytest.raises(TableError, match="damaged"):
        read_file(xlsx(tmp_path / "t.xlsx", [["a"], [1]], **declared))
    with pytest.raises(TableError, match="empty"):
        read_file(xlsx(tmp_path / "t.xlsx", []))
    with pytest.raises(BadInput, match="without a name"):
        read_file(xlsx(tmp_path / "t.xlsx", [["a", None], [1, 2]]))
    twice = io.BytesIO((tmp_path / "t.xlsx").read_bytes())
    with zipfile.ZipFile(twice, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("xl/workbook.xml", "<x/>")
    (tmp_path / "t.xlsx").write_bytes(twice.getvalue())
    with pytest.raises(TableError, match="damaged"):
        read_file(tmp_path / "t.xlsx")


def test_a_sheet_is_told_of_workbooks_alone(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    with pytest.raises(OptionError, match="sheet="):
        read_file(tmp_path / "t.csv", sheet="one")


def test_dates_in_a_sheet_are_dates(tmp_path: Path) -> None:
    parts = dict(WORKBOOK_PARTS)
    kinds = parts["[Content_Types].xml"].replace(
        "</Types>",
        '<Override PartName="/xl/styles.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.styles+xml"/></Types>',
    )
    links = parts["xl/_rels/workbook.xml.rels"].replace(
        "</Relationships>",
        '<Relationship Id="r9" Target="styles.xml" '
        'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/styles"/></Relationships>',
    )
    rows = f'<row>{cell("day")}</row><row><c s="1"><v>43861</v></c></row>'
    more = {"xl/styles.xml": STYLES, "[Content_Types].xml": kinds, "xl/_rels/workbook.xml.rels": links}
    assert read_file(xlsx(tmp_path / "t.xlsx", rows, **more))[0].to_pydict() == {"day": [datetime.date(2020, 1, 31)]}


def test_row_names_of_a_sheet_are_called_row_and_a_title_is_told(tmp_path: Path) -> None:
    table, form = read_file(xlsx(tmp_path / "t.xlsx", [[None, "a"], [1, 2], [2, 5]]))
    assert table.column_names == ["row", "a"]
    assert form.notes == ("The first column has no name: it is called 'row'.",)
    with pytest.raises(BadInput, match=r"row 1 of the sheet 'visits' of .* looks like a title .*; give header_row=2"):
        read_file(xlsx(tmp_path / "t.xlsx", [["Report", None, None], ["a", "b", "c"], [1, 2, 3]]))
