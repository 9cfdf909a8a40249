"""signing-key, and what a command line says where there is no key or none can be kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config"


def test_a_key_is_made_shown_exported_and_replaced(run: Run, home: Path, tmp_path: Path) -> None:
    assert run("signing-key", "path").out == f"{home}/sfumato/signing-key.pem\n"
    for words in (("show",), ("export", tmp_path / "me.pub")):
        done = run("signing-key", *words)
        assert (done.code, "there is no signing key" in done.err) == (2, True)
    assert not home.exists()
    assert run("signing-key", "new").code == 0
    first = json.loads(run("signing-key", "show", "--json").out)
    fingerprint, line = run("signing-key", "show").out.splitlines()
    assert (first["fingerprint"], first["public_key"]) == (fingerprint, line)
    assert run("signing-key", "export", tmp_path / "me.pub").code == 0
    assert (tmp_path / "me.pub").read_text() == f"{line}\n"
    assert run("signing-key", "export", tmp_path / "me.pub").code == 2
    done = run("signing-key", "new")
    assert (done.code, "--replace" in done.err) == (2, True)
    done = run("signing-key", "new", "--replace")
    assert done.code == 0
    assert f"The earlier key is kept as {home}/sfumato/signing-key.until-" in done.out
    assert run("signing-key", "show").out.splitlines()[0] != fingerprint


def test_the_first_release_says_that_a_key_was_made_and_who_signed(
    run: Run, people: Path, home: Path, tmp_path: Path
) -> None:
    done = run("sanitize", people, "-o", tmp_path / "out", "--k", 5, "--no-report")
    assert done.code == 0
    assert f"made a signing key, which signs your releases from now on: keep a copy of {home}" in done.err
    fingerprint = run("signing-key", "show").out.splitlines()[0]
    assert f"Signed by {fingerprint}.\n" in done.out
    done = run("sanitize", people, "-o", tmp_path / "more", "--k", 5, "--no-report", "--json")
    assert (json.loads(done.out)["signed_by"], done.err) == (fingerprint, "")
    assert run("verify", tmp_path / "out", "--signer", fingerprint).out.endswith(f"signed by {fingerprint}.\n")


def test_an_unsigned_release_is_said_to_be_one(run: Run, people: Path, home: Path, tmp_path: Path) -> None:
    done = run("sanitize", people, "-o", tmp_path / "out", "--k", 5, "--no-report", "--no-sign")
    assert done.out.endswith("Not signed: the recipient cannot check who made this release.\n")
    assert not home.exists()
    done = run("verify", tmp_path / "out")
    assert (done.code, done.out.splitlines()[-1]) == (
        0,
        "Intact, but not signed: this proves integrity, not authorship. Anyone could have written it.",
    )
    assert run("verify", tmp_path / "out", "--require-signature").code == 3
    done = run("sanitize", people, "-o", tmp_path / "two", "--no-sign", "--sign", tmp_path / "key.pem")
    assert (done.code, "--no-sign" in done.err) == (2, True)


def test_where_no_key_can_be_kept_it_is_said_before_the_work_begins(
    run: Run, people: Path, home: Path, tmp_path: Path
) -> None:
    home.touch()  # a file where the folder should be: not even root can write there
    done = run("sanitize", tmp_path / "nowhere.csv", "-o", tmp_path / "out")
    assert done.code == 2
    assert f"no signing key can be kept in '{home}/sfumato'" in done.err
    assert "--sign FILE" in done.err
    assert "--no-sign" in done.err
    assert not (tmp_path / "out").exists()
    assert run("sanitize", people, "-o", tmp_path / "out", "--k", 5, "--no-report", "--seed", 1).code == 0
    assert run("sanitize", people, "-o", tmp_path / "two", "--k", 5, "--no-report", "--no-sign").code == 0
