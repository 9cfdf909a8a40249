from __future__ import annotations

import gzip
import io
import json
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.assess import study
from sfumato.certificate.signature import Signer
from sfumato.tables.files import FileForm, FileFormat, write_file
from tests.cli.conftest import Run
from tests.examples import at_length

whole_report, short_report = (pytest.mark.usefixtures(name) for name in ("without_figures", "short_reports"))

FILES = {"report.html", "report-public.html", "report.json", "summary.html"}


@pytest.fixture
def noisy(people: Path) -> Path:
    """The table as another tool would give it back: noise on numbers, other types, another file format."""
    frame = pd.read_csv(people, na_values="?").drop(columns=["id", "level"])
    rng = np.random.default_rng(7)
    frame["age"] = frame["age"] + rng.normal(scale=4.0, size=len(frame))
    frame["income"] = frame["income"] + rng.normal(scale=9_000.0, size=len(frame))
    frame["joined"] = pd.to_datetime(frame["joined"])
    frame["smoker"] = frame["smoker"] == "yes"
    path = people.with_name("noisy.parquet")
    frame.to_parquet(path)
    return path


DROPPED = ("--identifier", "level")


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


@whole_report
def test_evaluate_writes_the_report_in_two_editions(run: Run, people: Path, noisy: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run("evaluate", people, noisy, "-o", out, "--target", "smoker", *DROPPED)
    assert done.code == 0, done.err
    assert names(out) == FILES
    for name, mode in (("report.html", 0o600), ("report.json", 0o600)):
        assert stat.S_IMODE((out / name).stat().st_mode) == mode
    document = json.loads((out / "report.json").read_text())
    assert document["rows_original"] == document["rows_released"] == 120
    assert {finding["status"] for finding in document["findings"]} >= {"measured"}
    assert "This table has no certificate" in (out / "report.html").read_text()
    assert "has no certificate" in done.out
    assert "report.html" in done.out
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@short_report
def test_without_a_folder_only_the_summary_is_printed(run: Run, people: Path, noisy: Path) -> None:
    before = names(people.parent)
    done = run("evaluate", people, noisy, *DROPPED)
    assert done.code == 0, done.err
    assert done.out.startswith('Inconclusive for policy "research" (no policy was named). ')
    assert "\nRisk: " in done.out
    assert "\nUtility: " in done.out
    assert len(done.out.splitlines()) <= 10
    assert names(people.parent) == before


@short_report
def test_json_is_one_document_and_nothing_else(run: Run, people: Path, noisy: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run("evaluate", people, noisy, "-o", out, "--json", *DROPPED)
    document = json.loads(done.out)
    assert document["folder"] == str(out)
    assert document["certified"] is False
    written = json.loads((out / "report.json").read_text())
    assert {key: document[key] for key in written} == written
    assert run("evaluate", people, noisy, "--quiet", *DROPPED).out == ""


@short_report
def test_a_copy_shows_the_worst_values(run: Run, people: Path) -> None:
    findings = json.loads(run("evaluate", people, people, "--json").out)["findings"]
    assert next(finding["value"] for finding in findings if finding["name"] == "verbatim-rows") == 1.0


@short_report
def test_an_earlier_evaluation_is_replaced_and_nothing_else_is(
    run: Run, people: Path, noisy: Path, tmp_path: Path
) -> None:
    out, mine = tmp_path / "out", tmp_path / "mine"
    arguments = ("evaluate", people, noisy, "--quiet", *DROPPED)
    assert run(*arguments, "-o", out).code == 0
    old = (out / "report.json").stat().st_ino
    assert "--overwrite" in run(*arguments, "-o", out).err
    assert (out / "report.json").stat().st_ino == old
    assert run(*arguments, "-o", out, "--overwrite").code == 0
    assert (out / "report.json").stat().st_ino != old
    mine.mkdir()
    for name in FILES:
        (mine / name).write_text("mine")
    (mine / "thesis.txt").write_text("mine")
    done = run(*arguments, "-o", mine, "--overwrite")
    assert (done.code, names(mine)) == (2, FILES | {"thesis.txt"})
    assert "holds no earlier evaluation" in done.err
    release = tmp_path / "release"
    assert run("sanitize", people, "-o", release, "--k", 5, "--no-report", "--quiet").code == 0
    assert run(*arguments, "-o", release, "--overwrite").code == 2
    assert run("sanitize", people, "-o", out, "--k", 5, "--no-report", "--overwrite").code == 2
    assert names(out) == FILES


def test_the_owners_report_does_not_go_into_what_leaves(run: Run, people: Path, noisy: Path, tmp_path: Path) -> None:
    assert run("sanitize", people, "-o", tmp_path / "r", "--k", 5, "--no-report", "--quiet").code == 0
    done = run("evaluate", people, noisy, "-o", tmp_path / "r" / "release" / "report", *DROPPED)
    assert done.code == 2
    assert "must not contain" in done.err


@short_report
def test_the_certificate_of_a_release_is_used(run: Run, people: Path, tmp_path: Path) -> None:
    release, out = tmp_path / "r", tmp_path / "out"
    assert run("sanitize", people, "-o", release, "--level", "level", "--no-report", "--quiet").code == 0
    for released in (release / "release" / "table.csv", release / "release", release):
        done = run("evaluate", people, released, "-o", out, "--overwrite", "--json")
        assert done.code == 0, done.err
        document = json.loads(done.out)
        assert document["certified"] is True
        assert document["notes"] == []
        page = (out / "report.html").read_text()
        assert "has no certificate" not in page
        assert "Smallest group" in page
        assert "Lowest level asked" not in page


@short_report
def test_a_certificate_that_does_not_hold_is_not_used(run: Run, people: Path, tmp_path: Path) -> None:
    release = tmp_path / "r"
    assert run("sanitize", people, "-o", release, "--k", 5, "--no-report", "--quiet").code == 0
    path = release / "release" / "certificate.json"
    table = path.with_name("table.csv")
    document = json.loads(path.read_text())
    document["claims"] = [{**claim, "claim": "The table is flawless."} for claim in document["claims"]]
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    done = run("evaluate", people, table, "-o", tmp_path / "out")
    assert (done.code, "contradicts itself" in done.err) == (0, True)
    assert "flawless" not in (tmp_path / "out" / "report.html").read_text()
    table.write_text(table.read_text().replace("f", "m", 1))
    assert "for another table" in run("evaluate", people, table).err
    path.write_text("{}")
    assert "cannot be read" in run("evaluate", people, table).err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], ["lacks 1 columns", "'level'", "--identifier"]),
        ([*DROPPED, "--holdout", "0.2"], ["exists already"]),
        ([*DROPPED, "--holdout", "nowhere.csv"], ["nowhere.csv"]),
        ([*DROPPED, "--level", "5"], ["--level", "exists already"]),
        ([*DROPPED, "--strata", "sex"], ["--strata", "exists already"]),
        ([*DROPPED, "--allow-level-1"], ["--allow-level-1"]),
        ([*DROPPED, "--recipe", "recipe.toml"], ["--recipe"]),
        ([*DROPPED, "--method", "condense"], ["--method"]),
        ([*DROPPED, "--time-limit", "0"], ["'--time-limit'", "x>0"]),
        ([*DROPPED, "--time-limit", "-1"], ["'--time-limit'", "x>0"]),
        ([*DROPPED, "--time-limit", "nan"], ["above 0"]),
        ([*DROPPED, "--time-limit", "soon"], ["--time-limit"]),
        ([*DROPPED, "--target", "height"], ["'height'"]),
        ([*DROPPED, "--public", "height"], ["'height'"]),
        ([*DROPPED, "--schema", "nowhere.toml"], ["nowhere.toml"]),
        ([*DROPPED, "--query", "select 1"], ["--query"]),
        ([*DROPPED, "--colour", "red"], ["--colour"]),
    ],
)
def test_a_bad_option_is_one_sentence_and_writes_nothing(
    run: Run, people: Path, noisy: Path, tmp_path: Path, options: list[str], words: list[str]
) -> None:
    done = run("evaluate", people, noisy, "-o", tmp_path / "out", *options)
    assert (done.code, done.out) == (2, ""), done.err
    assert done.err.count("\n") == 1
    assert all(word in done.err for word in words), done.err
    assert names(tmp_path) == {"people.csv", "noisy.parquet"}


@pytest.mark.parametrize("released", ["nowhere.csv", "-", "sqlite:///people.db", "."])
def test_a_released_table_that_cannot_be_read_is_one_sentence(run: Run, people: Path, released: str) -> None:
    done = run("evaluate", "-" if released == "-" else people, released)
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1


@short_report
def test_a_time_limit_is_told(
    run: Run, people: Path, noisy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "_slowness", lambda: 1.0)  # a machine that is always as fast
    done = run("evaluate", people, noisy, "--time-limit", "40", *DROPPED)
    assert "Measured on up to 120 people per attack and 120 training rows (estimated time " in done.out
    assert "; limit 40 s)" in done.out
    done = run("evaluate", people, noisy, "--time-limit", "1e-9", *DROPPED)
    assert "the fewest possible" in done.out
    done = run("sanitize", people, "-o", tmp_path / "out", "--k", 5, "--time-limit", "40")
    assert "; limit 40 s)" in done.out
    report = json.loads((tmp_path / "out" / "owner" / "report.json").read_text())
    assert report["sizes"]["time_limit"] == 40
    done = run("sanitize", people, "-o", tmp_path / "no", "--time-limit", "40", "--no-report")
    assert (done.code, "--no-report" in done.err) == (2, True)
    done = run("sanitize", people, "-o", tmp_path / "no", "--time-limit", "-4")
    assert (done.code, (tmp_path / "no").exists()) == (2, False)


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGTERM, *at_length(signal.SIGINT)])
def test_an_interrupt_in_mid_run_leaves_nothing(tmp_path: Path, stop: signal.Signals) -> None:
    rng = np.random.default_rng(5)
    header = ",".join(f"x{column}" for column in range(12))
    for name in ("original.csv", "released.csv"):
        values = rng.normal(size=(4_000, 12))  # four times what a pipe holds
        np.savetxt(tmp_path / name, values, delimiter=",", header=header, comments="", fmt="%.4f")
    command = [sys.executable, "-m", "sfumato.cli", "evaluate", "-", "released.csv", "-o", "out"]
    process = subprocess.Popen(command, stdin=-1, stderr=-1, stdout=-1, cwd=tmp_path)
    assert process.stdin is not None
    process.stdin.write((tmp_path / "original.csv").read_bytes())  # when it has been taken, the run is under way
    process.stdin.flush()
    process.send_signal(stop)
    _, err = process.communicate()
    assert process.returncode == 130
    assert b"interrupted; nothing was written" in err
    assert b"Traceback" not in err
    assert names(tmp_path) == {"original.csv", "released.csv"}


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    """A private and a public key."""
    key = Ed25519PrivateKey.generate()
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    private, public = tmp_path / "key.pem", tmp_path / "pub.pem"
    private.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    private.chmod(0o600)
    public.write_bytes(key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    return private, public


def test_a_release_is_signed_and_its_signer_verified(
    run: Run, people: Path, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    private, public = keys
    out = tmp_path / "out"
    done = run("sanitize", people, "-o", out, "--k", 5, "--no-report", "--sign", private)
    assert done.code == 0, done.err
    fingerprint = Signer.load(private).fingerprint
    told = f"Signed by {fingerprint}.\nSend the recipient this fingerprint by a different channel.\n"
    assert done.out.endswith(told)
    done = run("verify", out / "release", "--signer", public)
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1] == f"Intact and signed by {fingerprint}."
    assert run("verify", out, "--signer", fingerprint).out == done.out
    done = run("verify", out)
    assert done.code == 0
    assert done.out.splitlines()[-1] == f"Intact. Signed by {fingerprint}, which you have not confirmed."
    found = json.loads(run("verify", out / "release", "--json").out)
    assert [check["name"] for check in found["checks"] if not check["checked"]] == ["signer"]
    assert [found[name] for name in ("holds", "intact", "signed_by", "confirmed")] == [True, True, fingerprint, False]
    own = run("signing-key", "show").out.splitlines()[0]
    done = run("verify", out, "--signer", own)
    assert (done.code, done.out.splitlines()[-1]) == (3, "The release failed verification.")
    assert f"FAILED signer: it is {fingerprint}, not {own}" in done.out
    (out / "release" / "certificate.sig").unlink()
    done = run("verify", out / "release", "--signer", public)
    assert done.code == 3
    assert "there is no signature" in done.out
    assert "do not use it" in done.err


def test_a_key_that_cannot_sign_is_one_sentence_and_writes_nothing(
    run: Run, people: Path, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    private, public = keys
    out = tmp_path / "out"
    for key, words in (
        (public, "is a public key"),
        (people, "not a private key"),
        (tmp_path / "no", "there is no key file"),
    ):
        done = run("sanitize", people, "-o", out, "--k", 5, "--sign", key)
        assert (done.code, done.out) == (2, "")
        assert words in done.err
        assert done.err.count("\n") == 1
    done = run("sanitize", people, "-o", out, "--k", 5, "--sign", private, "--seed", 1)
    assert (done.code, "dry run" in done.err) == (3, True)
    assert not out.exists()
    assert run("sanitize", people, "-o", out, "--k", 5, "--no-report", "--quiet").code == 0
    inside = private.rename(out / "key.pem")
    done = run("sanitize", people, "-o", out, "--k", 5, "--overwrite", "--sign", inside)
    assert (done.code, inside.exists()) == (2, True)
    for key in (inside, people):
        assert run("verify", out / "release", "--signer", key).code == 2


def test_a_weight_that_is_text_is_refused_and_named(run: Run, people: Path, noisy: Path) -> None:
    done = run("evaluate", people, noisy, "--weight", "sex", "--identifier", "id", "--public", "joined")
    assert (done.code, done.out) == (2, "")
    assert "the weight 'sex' is nominal; a weight is a column of numbers, so name another, or none" in done.err


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "arrow", "xlsx", "ods", "sqlite", "-"])
def test_no_more_bytes_are_read_of_a_released_table_than_are_granted(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    table = pa.table({"age": [20, 30, 40, 50] * 2_000, "sex": ["f", "m"] * 4_000})
    pa.csv.write_csv(table, tmp_path / "table.csv")
    path = tmp_path / f"table.{ending}"
    if ending == "csv.gz":
        path.write_bytes(gzip.compress((tmp_path / "table.csv").read_bytes()))
    elif ending == "-":
        path = Path("-")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "table.csv").read_bytes())))
    else:
        write_file(table, path, FileForm(FileFormat(ending)))
    done = run("evaluate", tmp_path / "table.csv", path, "--most-bytes", 5_000)
    assert (done.code, done.out) == (2, "")
    assert "more than" in done.err


def test_the_rows_held_out_are_bounded_too(run: Run, people: Path, noisy: Path) -> None:
    done = run("evaluate", people, noisy, "--holdout", people, "--most-bytes", 2_000)
    assert (done.code, "has more than 2000 bytes" in done.err) == (2, True)
