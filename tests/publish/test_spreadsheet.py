"""A released table with texts that a spreadsheet would run."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import OptionError
from sfumato.publish.verify import verify_release
from sfumato.tables.facts import FormulaTexts
from sfumato.tables.schema import Domain, Field, Kind, Schema

CITIES = ("=HYPERLINK(0)", "-Bonn", "Kyiv")


def table() -> pa.Table:
    return pa.table(
        {"+age": [place % 23 - 5 for place in range(60)], "city": [CITIES[place % 3] for place in range(60)]}
    )


SCHEMA = Schema(
    (
        Field("+age", Kind.INTEGER, domain=Domain(declared=True, low=-5, high=17)),
        Field("city", Kind.NOMINAL, domain=Domain(declared=True, categories=CITIES)),
    )
)


def released(tmp_path: Path, *, safe: bool) -> tuple[sf.Release, Path]:
    made = sf.sanitize(table(), sf.Condensation(k=5), schema=SCHEMA, report=False, spreadsheet_safe=safe)
    return made, made.save(tmp_path / "out", sign=False) / "release"


def test_a_release_says_that_a_spreadsheet_would_run_it(tmp_path: Path) -> None:
    made, folder = released(tmp_path, safe=False)
    assert FormulaTexts(("city",), 40, 1, quoted=False) in made.certificate.facts
    (said,) = [one.reason for one in made.certificate.refused if "spreadsheet" in one.claim]
    assert said.startswith("In the file, 40 cells and 1 column name begin with =")
    checks = {check.name: check for check in verify_release(folder)}
    assert all(check.holds for check in checks.values())
    assert checks["formulas"].detail == "41 texts begin like a spreadsheet formula, as certified"


def test_a_safe_release_has_an_apostrophe_before_them_and_verifies(tmp_path: Path) -> None:
    made, folder = released(tmp_path, safe=True)
    lines = (folder / "table.csv").read_text().splitlines()
    assert lines[0] == "'+age,city"
    assert not any(cell.startswith(("=", "-B")) for line in lines for cell in line.split(","))
    assert sorted(set(made.table.column("city").to_pylist())) == sorted(CITIES)
    (claim,) = [one.claim for one in made.certificate.claims if "spreadsheet" in one.claim]
    assert claim.startswith("In the file, 40 cells and 1 column name that")
    checks = {check.name: check for check in verify_release(folder)}
    assert all(check.holds for check in checks.values())
    assert checks["domains"].detail == "2 declared domains contain all values"


def test_a_certificate_that_is_wrong_about_formulas_fails(tmp_path: Path) -> None:
    _, folder = released(tmp_path, safe=False)
    path = folder / "certificate.json"
    document = json.loads(path.read_text())
    (fact,) = [fact for fact in document["facts"] if fact["fact"] == "formula-texts"]
    fact["cells"] = 39
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    failing = {check.name for check in verify_release(folder) if not check.holds}
    assert "formulas" in failing or "certificate" in failing


def test_apostrophes_are_for_csv(tmp_path: Path) -> None:
    made, _ = released(tmp_path, safe=True)
    with pytest.raises(OptionError, match="are for CSV"):
        made.save(tmp_path / "other", form="parquet")
    assert not (tmp_path / "other").exists()
