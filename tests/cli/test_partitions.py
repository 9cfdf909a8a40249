"""A file larger than memory on the command line: --engine partitions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from scipy.optimize import linear_sum_assignment

from sfumato.engines.partitions import first_pass
from sfumato.engines.partitions.run import FileRows
from sfumato.methods.geometry.key import Key
from sfumato.methods.geometry.transformations import invert
from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("short_reports")

PARTS = ("--engine", "partitions")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    values = np.random.default_rng(8).normal(size=(170, 3)).round(4)
    path = tmp_path / "in.csv"
    np.savetxt(path, values, delimiter=",", header="a,b,c", comments="", fmt="%.4f")
    return path


def rows(path: Path) -> np.ndarray:
    return np.loadtxt(path, delimiter=",", skiprows=1)


def farthest(some: np.ndarray, others: np.ndarray) -> float:
    """Largest difference of a cell between rows that are matched to be nearest."""
    apart = np.abs(some[:, None, :] - others[None, :, :]).max(axis=2)
    place, match = linear_sum_assignment(apart)
    return float(apart[place, match].max())


@pytest.mark.parametrize("method", ["translate", "scale", "rotate", "hybrid"])
def test_a_partitioned_release_verifies_and_its_key_gives_the_table_back(run: Run, table: Path, method: str) -> None:
    out, place = table.parent / "out", table.parent / "key.toml"
    told = ("sanitize", table, "-o", out, "--method", method, "--new-key", place, *PARTS, "--batch-rows", 50)
    done = run(*told, "--no-report", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["rows_out"] == 170
    assert json.loads(done.out)["table"] == str(out / "release" / "table.csv")
    assert run("verify", out / "release").code == 0
    back = invert(rows(out / "release" / "table.csv"), Key.load(place), ("a", "b", "c"))
    assert farthest(back, rows(table)) <= 2e-4  # cells have steps of 0.0001
    again = ("sanitize", table, "-o", out, "--method", method, "--key", place, *PARTS, "--overwrite")
    assert run(*again, "--no-report").code == 0


def test_a_file_larger_than_the_sample_is_said_to_be_measured_on_a_sample(
    run: Run, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_pass, "SAMPLE_ROWS", 90)
    told = ("sanitize", table, "-o", table.parent / "out", "--method", "scale", "--new-key", table.parent / "key.toml")
    done = run(*told, *PARTS, "--batch-rows", 50, "--time-limit", 1)
    assert done.code == 0, done.err
    assert "sample of 90 of the 170 rows of the file" in done.out
    assert "170 records in, 170 rows out" in done.out


def test_a_partitioned_run_says_on_how_many_rows_it_measured_and_replays_its_recipe(run: Run, table: Path) -> None:
    out, place = table.parent / "out", table.parent / "key.toml"
    told = ("sanitize", table, "-o", out, "--method", "rotate", "--new-key", place, *PARTS, "--batch-rows", 50)
    done = run(*told, "--time-limit", 1, "--format", "csv")
    assert done.code == 0, done.err
    assert "Measured on all 170 rows of the file." in done.out
    assert "can reverse it" in done.out
    recipe = out / "owner" / "recipe.toml"
    replayed = ("sanitize", table, "-o", table.parent / "two", "--recipe", recipe, "--key", place, *PARTS)
    assert run(*replayed, "--no-report").code == 0
    two = rows(table.parent / "two" / "release" / "table.csv")
    assert farthest(two, rows(out / "release" / "table.csv")) <= 1e-9


def test_a_partitioned_release_can_be_signed(run: Run, table: Path) -> None:
    out, private = table.parent / "out", Ed25519PrivateKey.generate()
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (table.parent / "sign.pem").write_bytes(pem)
    (table.parent / "sign.pem").chmod(0o600)
    public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (table.parent / "sign.pub").write_bytes(public)
    told = ("sanitize", table, "-o", out, "--method", "rotate", "--new-key", table.parent / "key.toml", *PARTS)
    assert run(*told, "--no-report", "--sign", table.parent / "sign.pem").code == 0
    assert run("verify", out / "release", "--signer", table.parent / "sign.pub").code == 0


REFUSED = {
    "another method": ("in.csv", "--method", "swap", *PARTS),
    "noise by principal components": ("in.csv", "--method", "laplace-pca", *PARTS),
    "standard input": ("-", "--method", "rotate", "--new-key", "key.toml", *PARTS),
    "a database": ("sqlite:///x.db", "--query", "select 1", "--method", "rotate", "--new-key", "key.toml", *PARTS),
    "rows held out": ("in.csv", "--method", "rotate", "--new-key", "key.toml", *PARTS, "--holdout", "0.2"),
    "levels": ("in.csv", "--method", "rotate", "--new-key", "key.toml", *PARTS, "--level", "5"),
    "strata": ("in.csv", "--method", "rotate", "--new-key", "key.toml", *PARTS, "--strata", "a"),
    "another format": ("in.csv", "--method", "rotate", "--new-key", "key.toml", *PARTS, "--format", "parquet"),
    "no key": ("in.csv", "--method", "rotate", *PARTS),
    "an unknown kind of file": ("in.txt", "--method", "rotate", "--new-key", "key.toml", *PARTS),
    "batches without partitions": ("in.csv", "--method", "rotate", "--new-key", "key.toml", "--batch-rows", "50"),
    "an unknown column": ("in.csv", "--method", "rotate", "--new-key", "key.toml", *PARTS, "--identifier", "z"),
}


@pytest.mark.parametrize("told", REFUSED.values(), ids=REFUSED)
def test_what_cannot_go_through_in_partitions_is_refused_in_one_sentence(
    run: Run, table: Path, monkeypatch: pytest.MonkeyPatch, told: tuple[str, ...]
) -> None:
    monkeypatch.chdir(table.parent)
    done = run("sanitize", told[0], "-o", "out", *told[1:])
    assert done.code == 2, done.err
    assert done.err.startswith("sfumato: ")
    assert done.err.count("\n") == 1
    assert [path.name for path in table.parent.iterdir()] == ["in.csv"]


def test_an_interrupt_leaves_neither_folder_nor_key(run: Run, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_rest: object, **_more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(FileRows, "transform", stop)
    told = ("sanitize", table, "-o", table.parent / "out", "--method", "rotate", "--new-key", table.parent / "key.toml")
    done = run(*told, *PARTS)
    assert done.code == 130
    assert "interrupted; nothing was written" in done.err
    assert [path.name for path in table.parent.iterdir()] == ["in.csv"]
