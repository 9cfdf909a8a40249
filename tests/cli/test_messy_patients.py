"""From the messy file of patients to a release that holds, on the command line."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pyarrow.csv
import pytest

from examples.messy_patients import COLUMNS, as_csv
from tests.cli.conftest import Run
from tests.messy import messy_rows


@pytest.mark.filterwarnings("ignore:columns without a value")
def test_four_commands_lead_from_the_messy_file_to_a_verified_release(run: Run, tmp_path: Path) -> None:
    source, out, k = tmp_path / "patients.csv", tmp_path / "out", 10
    source.write_bytes(as_csv(messy_rows()))
    shown = run("inspect", source)
    assert "postcodes; " in shown.out
    assert "held by fewer than 10 persons become wider ones" in shown.out
    made = run("sanitize", source, "-o", out, "--person", "patient_id", "--effort", "fast", "--no-report")
    assert (made.code, run("verify", out / "release").code) == (0, 0)
    table = pyarrow.csv.read_csv(
        out / "release" / "table.csv",
        parse_options=pyarrow.csv.ParseOptions(delimiter=";"),
        convert_options=pyarrow.csv.ConvertOptions(column_types={"postcode": "string"}),
    )
    assert {"postcode", "diagnosis", "diagnosis_text", "ward", "sex", "city"} <= set(table.column_names)
    assert not {"patient_id", "name", "email", "phone", "iban", "note", "device_serial"} & set(table.column_names)
    who = COLUMNS.index("patient_id")
    for name in ("postcode", "diagnosis", "diagnosis_text", "ward", "sex", "city", "smoker"):
        persons_of: dict[str, set[str]] = defaultdict(set)
        for row in messy_rows():
            persons_of[row[COLUMNS.index(name)]].add(row[who])
        left = {str(cell) for cell in table.column(name).to_pylist()}
        assert not {cell for cell, persons in persons_of.items() if len(persons) < k} & left
    texts = defaultdict(set)
    for code, text in zip(table["diagnosis"].to_pylist(), table["diagnosis_text"].to_pylist(), strict=True):
        texts[code].add(text)
    assert all(len(found) == 1 for found in texts.values())
