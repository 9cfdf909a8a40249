from __future__ import annotations

import csv
import json
import re
import stat
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from examples.messy_patients import as_xlsx
from sfumato.assess.algebra import run_measure
from sfumato.assess.utility.prediction import PREDICTION
from sfumato.cli.verbs import population
from tests.assess.cases import study
from tests.cli.conftest import Run
from tests.messy import messy_rows

whole_report, short_report = (pytest.mark.usefixtures(name) for name in ("without_figures", "short_reports"))
either_report = pytest.mark.parametrize(
    "report", ["short_reports", pytest.param("without_figures", marks=pytest.mark.slow)]
)


@whole_report
def test_sanitize_writes_what_leaves_and_what_stays(run: Run, people: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run("sanitize", people, "-o", out, "--k", 5, "--target", "smoker")
    assert done.code == 0, done.err
    assert {file.name for file in (out / "release").iterdir()} == {
        "table.csv",
        "certificate.json",
        "certificate.sig",
        "report-public.html",
        "schema.toml",
    }
    assert {file.name for file in (out / "owner").iterdir()} == {
        "report.html",
        "summary.html",
        "report.json",
        "schema-private.toml",
        "recipe.toml",
    }
    assert stat.S_IMODE((out / "owner").stat().st_mode) == 0o700
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in (out / "owner").iterdir())
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_the_released_table_looks_like_the_original(run: Run, people: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("sanitize", people, "-o", out, "--k", 5, "--no-report").code == 0
    before = list(csv.DictReader(people.read_text().splitlines()))
    after = list(csv.DictReader((out / "release" / "table.csv").read_text().splitlines()))
    assert len(after) == len(before)
    assert list(after[0]) == ["age", "income", "sex", "joined", "smoker", "level"]
    assert sum(row["income"] == "?" for row in after) == sum(row["income"] == "?" for row in before)
    for column in ("sex", "smoker"):
        assert sorted(row[column] for row in after) == sorted(row[column] for row in before)
    assert all(20 <= int(row["age"]) < 80 for row in after)
    assert all(len(row["joined"]) == 10 and row["joined"] >= "2010-01-01" for row in after)


def test_the_certificate_holds_the_keys_that_others_read(run: Run, people: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("sanitize", people, "-o", out, "--level", "level", "--no-report").code == 0
    certificate = json.loads((out / "release" / "certificate.json").read_text())
    assert certificate["format"] == 2
    assert certificate["randomness"] == "release"
    assert certificate["rows_in"] == certificate["rows_out"] == 120
    assert certificate["levels"] | {"groups": 0} == {
        "smallest_group": certificate["levels"]["smallest_group"],
        "groups": 0,
        "violations": 0,
    }
    assert certificate["levels"]["smallest_group"] >= 3
    assert {claim["kind"] for claim in certificate["claims"]} <= {"proved", "assumed"}
    assert any("anonymous" in refused["claim"] for refused in certificate["refused"])
    assert not any("anonymous" in claim["claim"] for claim in certificate["claims"])
    assert {"method", "parameters", "created", "table_sha256", "schema_sha256", "facts", "refused"} <= set(certificate)
    assert "level" not in (out / "release" / "table.csv").read_text().splitlines()[0].split(",")


@either_report
def test_a_recipe_replays_to_the_same_bytes_under_a_seed(
    run: Run, people: Path, tmp_path: Path, report: str, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(report)
    first, again, fresh = tmp_path / "first", tmp_path / "again", tmp_path / "fresh"
    options = ["--level", "age > 60: 12, sex == f: 6, else: 4", "--strata", "smoker", "--holdout", "0.1", "--seed", 7]
    assert run("sanitize", people, "-o", first, *options).code == 0
    assert run("sanitize", people, "-o", again, "--recipe", first / "owner" / "recipe.toml").code == 0
    for name in ("release/table.csv", "release/schema.toml", "owner/recipe.toml"):
        assert (first / name).read_bytes() == (again / name).read_bytes(), name
    reports = [json.loads((folder / "owner" / "report.json").read_text()) for folder in (first, again)]
    assert [each["verdict"]["tried"] for each in reports] == [0, 0]
    for each in reports:  # how long it took is the clock's
        each["findings"] = [finding for finding in each["findings"] if finding["name"] != "seconds-taken"]
    assert reports[0] == reports[1]
    recipe = (first / "owner" / "recipe.toml").read_text().replace("seed = 7\n", "")
    (tmp_path / "recipe.toml").write_text(recipe)
    assert run("sanitize", people, "-o", fresh, "--recipe", tmp_path / "recipe.toml", "--no-report").code == 0
    assert (first / "release/table.csv").read_bytes() != (fresh / "release/table.csv").read_bytes()
    assert json.loads((fresh / "release/certificate.json").read_text())["randomness"] == "release"


def test_two_releases_without_a_seed_differ(run: Run, people: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert run("sanitize", people, "-o", tmp_path / name, "--k", 5, "--no-report").code == 0
    assert (tmp_path / "a/release/table.csv").read_bytes() != (tmp_path / "b/release/table.csv").read_bytes()


@short_report
def test_verify_holds_for_a_release_and_not_for_a_dry_run(run: Run, people: Path, tmp_path: Path) -> None:
    assert run("sanitize", people, "-o", tmp_path / "real", "--k", 5, "--no-report").code == 0
    assert run("sanitize", people, "-o", tmp_path / "dry-run", "--k", 5, "--seed", 1).code == 0
    assert run("verify", tmp_path / "real" / "release").code == 0
    refused = run("verify", tmp_path / "dry-run" / "release")
    assert refused.code == 3
    assert "dry run" in refused.out
    for page in ("release/report-public.html", "owner/report.html"):
        assert "ry run" in (tmp_path / "dry-run" / page).read_text()


def test_verify_refuses_a_table_with_one_changed_cell(run: Run, people: Path, tmp_path: Path) -> None:
    assert run("sanitize", people, "-o", tmp_path / "out", "--k", 5, "--no-report").code == 0
    table = tmp_path / "out" / "release" / "table.csv"
    table.write_text(table.read_text().replace("yes", "no", 1))
    done = run("verify", tmp_path / "out" / "release", "--json")
    assert done.code == 3
    assert json.loads(done.out)["holds"] is False


def test_verify_refuses_a_claim_that_does_not_follow(run: Run, people: Path, tmp_path: Path) -> None:
    assert run("sanitize", people, "-o", tmp_path / "out", "--k", 5, "--no-report").code == 0
    path = tmp_path / "out" / "release" / "certificate.json"
    certificate = json.loads(path.read_text())
    certificate["claims"].append({"claim": "The table is safe.", "kind": "proved", "basis": "x", "assumes": "y"})
    path.write_text(json.dumps(certificate, indent=2, ensure_ascii=False) + "\n")
    refused = run("verify", path.parent)
    assert refused.code == 3
    assert "claims follow from facts" in refused.err


def test_verify_refuses_a_certificate_with_an_entry_that_does_not_belong_there(
    run: Run, people: Path, tmp_path: Path
) -> None:
    assert run("sanitize", people, "-o", tmp_path / "out", "--k", 5, "--no-report").code == 0
    path = tmp_path / "out" / "release" / "certificate.json"
    certificate = json.loads(path.read_text()) | {"note": "The table is anonymous"}
    path.write_text(json.dumps(certificate, indent=2, ensure_ascii=False) + "\n")
    refused = run("verify", path.parent, "--json")
    assert refused.code == 3
    assert json.loads(refused.out)["holds"] is False
    assert "1 unknown entry" in refused.out


def test_verify_of_a_folder_without_certificate_is_bad_input(run: Run, tmp_path: Path) -> None:
    assert run("verify", tmp_path).code == 2
    (tmp_path / "certificate.json").write_text("{}")
    assert run("verify", tmp_path).code == 2


@short_report
def test_json_is_one_document_and_nothing_else(run: Run, people: Path, tmp_path: Path) -> None:
    done = run("sanitize", people, "-o", tmp_path / "out", "--k", 5, "--json")
    assert json.loads(done.out)["rows_out"] == 120
    assert json.loads(run("inspect", people, "--json").out)["rows"] == 120
    assert json.loads(run("verify", tmp_path / "out" / "release", "--json").out)["holds"] is True


@short_report
def test_quiet_says_nothing(run: Run, people: Path, tmp_path: Path) -> None:
    done = run("sanitize", people, "-o", tmp_path / "out", "--k", 5, "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")


@pytest.mark.usefixtures("short_reports")
def test_decimal_commas_are_found_told_and_released_with_points(run: Run, tmp_path: Path) -> None:
    rows = [f"{row % 7},{row % 4}5;{1 + row % 3}.{100 + row},50;{'Ff'[row % 2]}" for row in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["dose;cost;sex", *rows]) + "\n")
    done = run("inspect", tmp_path / "t.csv")
    assert "CSV with semicolons as delimiter." in done.out
    assert "Decimal commas in 'dose', 'cost'" in done.out
    assert "Thousands separators in 'cost'" in done.out
    assert "1 of them differ from another only in case" in done.out
    read = json.loads(run("inspect", tmp_path / "t.csv", "--json").out)["read"]
    assert read == {
        "format": "csv",
        "delimiter": ";",
        "sheet": None,
        "commas": ["dose", "cost"],
        "thousands": ["cost"],
        "doubtful": [],
        "encoding": "utf-8",
        "header_row": 1,
        "detected": [],
    }
    assert "Decimal" not in run("inspect", tmp_path / "t.csv", "--decimal", ".").out
    done = run("sanitize", tmp_path / "t.csv", "-o", tmp_path / "out", "--k", 5, "--holdout", "0.1")
    assert done.code == 0, done.err
    head, *released = (tmp_path / "out" / "release" / "table.csv").read_text().splitlines()
    assert head == "dose;cost;sex"
    assert all(1000 < float(line.split(";")[1]) < 4000 for line in released)
    assert run("verify", tmp_path / "out" / "release").code == 0
    assert run("evaluate", tmp_path / "t.csv", tmp_path / "out" / "release" / "table.csv").code == 0
    again = run(
        "sanitize",
        tmp_path / "t.csv",
        "-o",
        tmp_path / "cells",
        "--engine",
        "partitions",
        "--decimal",
        ",",
        "--no-report",
    )
    assert (again.code, "Decimal commas in 'dose', 'cost'" in again.out) == (0, True)


def test_inspect_says_which_sheet_of_a_workbook_was_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "p.xlsx").write_bytes(as_xlsx(messy_rows()[:30]))
    done = run("inspect", tmp_path / "p.xlsx")
    assert done.code == 0, done.err
    assert "Sheet 'visits'. The file also has 'remarks': --sheet reads another." in done.out
    assert "Decimal commas in 'weight_kg'" in done.out
    assert "remark " in run("inspect", tmp_path / "p.xlsx", "--sheet", "remarks").out
    refused = run("inspect", tmp_path / "p.xlsx", "--sheet", "none")
    assert (refused.code, "there is no sheet 'none'" in refused.err) == (2, True)


def test_inspect_gives_every_column_a_fate_and_a_reason(run: Run, people: Path, tmp_path: Path) -> None:
    done = run("inspect", people, "-o", tmp_path / "schema.toml")
    assert done.code == 0
    lines = done.out.splitlines()
    assert any(line.startswith("id ") and "identifier" in line and "dropped" in line for line in lines)
    assert any(line.startswith("joined ") and "date" in line for line in lines)
    assert any(line.startswith("smoker ") and "boolean" in line for line in lines)
    assert any(line.startswith("income ") and "missing" in line for line in lines)
    assert stat.S_IMODE((tmp_path / "schema.toml").stat().st_mode) == 0o600
    assert run("inspect", people, "-o", tmp_path / "schema.toml").code == 2
    edited = (tmp_path / "schema.toml").read_text().replace('role = "identifier"', 'role = "identifier" # yes')
    (tmp_path / "edited.toml").write_text(edited)
    again = run("inspect", people, "--schema", tmp_path / "edited.toml", "--target", "smoker")
    assert again.code == 0, again.err
    assert any(line.startswith("smoker ") and "the column to predict" in line for line in again.out.splitlines())
    done = run(
        "sanitize", people, "-o", tmp_path / "out", "--k", 5, "--schema", tmp_path / "edited.toml", "--no-report"
    )
    assert done.code == 0, done.err


def test_declared_bounds_leave_with_the_release_and_observed_ones_do_not(
    run: Run, people: Path, tmp_path: Path
) -> None:
    assert run("inspect", people, "-o", tmp_path / "schema.toml").code == 0
    text = (tmp_path / "schema.toml").read_text()
    assert 'source = "observed", low = 20, high = 79' in text
    declared = text.replace('source = "observed", low = 20, high = 79', 'source = "declared", low = 0, high = 130')
    (tmp_path / "schema.toml").write_text(declared)
    out = tmp_path / "out"
    assert run("sanitize", people, "-o", out, "--k", 5, "--schema", tmp_path / "schema.toml", "--no-report").code == 0
    public = (out / "release" / "schema.toml").read_text()
    assert "high = 130" in public
    assert public.count("low =") == 1
    assert "categories =" not in public
    assert run("verify", out / "release").code == 0


def test_csv_becomes_parquet_with_real_types(run: Run, people: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("sanitize", people, "-o", out, "--k", 5, "--format", "parquet", "--no-report").code == 0
    table = pq.read_table(out / "release" / "table.parquet")
    kinds = {name: str(table.schema.field(name).type) for name in table.column_names}
    assert kinds["age"] == kinds["income"] == "int64"
    assert kinds["joined"] == "date32[day]"
    assert table["income"].null_count == 8
    assert (
        run("sanitize", out / "release" / "table.parquet", "-o", tmp_path / "twice", "--k", 5, "--no-report").code == 0
    )
    assert (tmp_path / "twice" / "release" / "table.parquet").exists()


def test_strata_make_the_label_certain_and_the_certificate_says_so(run: Run, people: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run("sanitize", people, "-o", out, "--k", 5, "--target", "smoker", "--strata", "smoker", "--no-report")
    assert done.code == 0, done.err
    certificate = json.loads((out / "release" / "certificate.json").read_text())
    assert any("class label" in refused["claim"] for refused in certificate["refused"])


def test_a_public_column_is_refused_beside_synthetic_rows(run: Run, people: Path, tmp_path: Path) -> None:
    done = run("sanitize", people, "-o", tmp_path / "out", "--public", "sex")
    assert done.code == 3
    assert "'sex'" in done.err
    assert not (tmp_path / "out").exists()


def test_level_1_is_possible_where_it_is_asked_for(run: Run, people: Path, tmp_path: Path) -> None:
    done = run("sanitize", people, "-o", tmp_path / "out", "--level", 1, "--allow-level-1", "--no-report")
    assert done.code == 0, done.err
    certificate = json.loads((tmp_path / "out" / "release" / "certificate.json").read_text())
    assert any("published unchanged" in refused["reason"] for refused in certificate["refused"])


def test_overwrite_replaces_an_earlier_release_and_nothing_else(run: Run, people: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("sanitize", people, "-o", out, "--k", 5, "--no-report").code == 0
    before = (out / "release" / "table.csv").read_bytes()
    assert run("sanitize", people, "-o", out, "--k", 5, "--no-report", "--overwrite").code == 0
    assert (out / "release" / "table.csv").read_bytes() != before
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("years of work")
    done = run("sanitize", people, "-o", precious, "--k", 5, "--overwrite")
    assert done.code == 2
    assert (precious / "thesis.txt").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "people.csv", "precious"]


@either_report
def test_the_demo_says_where_to_look(run: Run, tmp_path: Path, report: str, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue(report)
    done = run("demo", "-o", tmp_path / "demo")
    assert done.code == 0, done.err
    assert "Check by sfumato verify: Intact and signed by SHA256:" in done.out
    told = re.search(
        r'Predicting "back_within_90_days": AUC (0\.\d+) \(original (0\.\d+), majority class 0\.5\)', done.out
    )
    if report == "without_figures":
        assert told is not None
        assert 0.7 < float(told[1]) <= float(told[2]) + 0.02
    assert run("signing-key", "show").out.splitlines()[0] not in done.out, "a demo is signed with a key of its own"
    assert (tmp_path / "demo" / "owner" / "report.html").exists()
    assert str(tmp_path / "demo" / "owner" / "report.html") in done.out
    assert run("verify", tmp_path / "demo" / "release").code == 0


def test_the_target_of_the_demo_can_be_predicted() -> None:
    table = population(6_000)
    halves = table.slice(0, 3_000), table.slice(3_000)
    both = study(halves[0].drop_columns(["patient"]), halves[0], target="back_within_90_days", holdout=halves[1])
    area = next(finding for finding in run_measure(PREDICTION, both) if finding.name == "auc-logistic")
    assert area.baseline is not None
    assert area.baseline > 0.7
    assert area.interval is not None
    assert area.interval[0] > 0.65


def test_help_and_version_name_the_verbs(run: Run) -> None:
    done = run("--help")
    assert done.code == 0
    assert all(verb in done.out for verb in ("demo", "inspect", "sanitize", "verify"))
    assert run("--version").code == 0
