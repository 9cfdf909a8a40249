from __future__ import annotations

import io
import zipfile
from collections import Counter

import pytest

from examples import messy_patients
from examples.messy_patients import COLUMNS, PATIENTS, VISITS, as_csv, as_xlsx
from tests.messy import messy_rows


@pytest.mark.slow
def test_the_messy_file_has_its_patients_and_visits_and_is_the_same_each_time() -> None:
    rows = messy_rows()
    visits = Counter(row[0] for row in rows)
    assert (len(visits), len(rows)) == (PATIENTS, VISITS)
    assert max(visits.values()) > 5
    assert rows == messy_patients.messy_rows()
    assert as_csv(rows).startswith(b"\xef\xbb\xbfpatient_id;name;")


def test_the_messy_file_is_as_messy_as_it_says() -> None:
    columns = dict(zip(COLUMNS, zip(*messy_rows(), strict=True), strict=True))
    assert {"F", "f", "M", "m"} == set(columns["sex"])
    assert {"", "NA", "-", "n/a", "?"} <= set(columns["crp"])
    assert any("." in cell and "," in cell for cell in columns["cost_eur"])
    assert 250 < len(set(columns["diagnosis"])) <= 300
    assert any("+49" in note for note in columns["note"])
    for iban in columns["iban"]:
        assert int(iban[4:] + "1314" + iban[2:4]) % 97 == 1


def test_the_workbook_holds_a_sheet_of_visits_and_one_of_remarks() -> None:
    with zipfile.ZipFile(io.BytesIO(as_xlsx(messy_rows()))) as archive:
        assert b'name="visits"' in archive.read("xl/workbook.xml")
        assert archive.read("xl/worksheets/sheet1.xml").count(b"<row ") == VISITS + 1
