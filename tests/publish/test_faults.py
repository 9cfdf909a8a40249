"""Outputs on a file system that fails at every point in turn: whole, or as it was before, and one sentence."""

from __future__ import annotations

import dataclasses
import errno
import gc
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import sfumato as sf
from sfumato.assess.report import Report
from sfumato.certificate.signature import Signer
from sfumato.core import replacing
from sfumato.core.errors import SfumatoError
from sfumato.methods.geometry.key import Add, Key
from sfumato.parties.config import PartyTrial, write_trial
from sfumato.parties.folder import written_together
from sfumato.parties.peers import Address
from sfumato.publish.evaluate import Evaluation
from sfumato.publish.sanitize import sanitize
from sfumato.publish.verify import verify_release
from sfumato.stream.settings import StateEntry
from sfumato.stream.state import State
from sfumato.survey.client import KeptAnswer, KeptAnswers
from sfumato.tables.files import FileForm, FileFormat, write_file
from tests.examples import at_length, sized
from tests.faulty_files import FaultyFiles, short_files
from tests.stream import cases

Job = Callable[[Path], Any]
FORMS = tuple(each.value for each in FileFormat)
ERRORS = (errno.ENOSPC, errno.EIO)


@cache
def people() -> pa.Table:
    rng = np.random.default_rng(5)
    return pa.table({"age": rng.integers(20, 80, 60), "income": rng.integers(1, 90, 60), "sex": ["f", "m"] * 30})


@cache
def a_release() -> sf.Release:
    return sf.sanitize(people(), sf.Condensation(k=5), report=False)


@cache
def a_signer() -> Signer:
    return Signer(Ed25519PrivateKey.generate())


def save(folder: Path, form: str = "csv") -> None:
    a_release().save(folder / "out", form=form, sign=a_signer(), overwrite=True)


def owner_alone(folder: Path) -> None:
    release = dataclasses.replace(a_release(), report=Report((), (), 60, 60))
    release.save_owner(folder / "out", overwrite=True)


def evaluate(folder: Path) -> None:
    Evaluation(Report((), (), 60, 60)).save(folder / "out", overwrite=True)


def in_chunks(folder: Path, ending: str = "csv") -> None:
    source = folder.parent / f"source.{ending}"
    sanitize(
        source, sf.Translation(), folder=folder / "out", engine="partitions",
        new_key=folder / "key.toml", identifiers=["sex"], report=False,
        overwrite=True,
    )  # fmt: skip


def check_partitioned(folder: Path, ending: str = "csv") -> None:
    source = folder.parent / f"source.{ending}"
    sanitize(
        source,
        sf.Condensation(k=5, effort="fast"),
        folder=folder / "out",
        engine="partitions",
        report=False,
        rows_are_people=True,
        overwrite=True,
    )


class Alone:
    """A channel without others."""

    rank, parties, names = 0, 1, ("bank",)


def together(folder: Path) -> None:
    release = dataclasses.replace(a_release(), texts={"transcript.jsonl": "{}\n", "ledger.txt": "none\n"})
    written_together(release, Alone(), folder / "out", FileForm(FileFormat.CSV), overwrite=True)  # type: ignore[arg-type]


def trial(folder: Path) -> None:
    if not (folder / "out").exists():
        write_trial(
            folder / "out", PartyTrial({"bank": Address("127.0.0.1", 1), "shop": Address("127.0.0.1", 2)}, "horizontal")
        )


def a_key(folder: Path) -> None:
    if not (folder / "key.toml").exists():
        Key((Add("age", 3.5),)).save(folder / "key.toml")


def keep(folder: Path) -> None:
    KeptAnswers(folder).keep("token", KeptAnswer("https://survey.example", "0" * 64, {"age": 3}))


def begin(folder: Path) -> None:
    if not (folder / "state").exists():
        State.create(folder / "state", [StateEntry("settings", "", b"{}"), StateEntry("group", "1", bytes(40_000))])


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder in memory where there is one: it is synced hundreds of times."""
    made = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    (made / "here").mkdir()
    yield made / "here"
    shutil.rmtree(made)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def hidden(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.startswith(".")]


def put_back(folder: Path, kept: Path | None) -> None:
    shutil.rmtree(folder)
    if kept is None:
        folder.mkdir()
    else:
        shutil.copytree(kept, folder)


def look(folder: Path, job: Job, before: dict[str, bytes], names: set[str]) -> None:
    """Do it once: it is done and whole, or refused in a sentence and nothing has changed."""
    refusal = None
    try:
        job(folder)
    except SfumatoError as error:
        refusal = error
    standing = {name: text for name, text in tree(folder).items() if not name.startswith(".")}
    if refusal is not None:
        assert refusal.exit_code == 1
        assert str(refusal).isprintable()
        assert standing == before
        return
    assert set(standing) == names
    if (folder / "out" / "release").exists():
        assert all(check.holds for check in verify_release(folder / "out" / "release"))


JOBS = (save, owner_alone, evaluate, in_chunks, check_partitioned, together, trial, a_key, keep, begin)
CASES = [
    *((job, False, True) for job in JOBS),
    *((job, True, exchange) for job in (save, owner_alone, evaluate, in_chunks, keep) for exchange in (True, False)),
]


@pytest.mark.parametrize(
    ("job", "over", "exchange"),
    CASES,
    ids=[
        f"{job.__name__}-{'over' if over else 'new'}-{'swap' if exchange else 'move'}" for job, over, exchange in CASES
    ],
)
def test_an_output_stands_whole_or_not_at_all_whichever_operation_fails(
    place: Path, monkeypatch: pytest.MonkeyPatch, job: Job, over: bool, exchange: bool
) -> None:
    if not exchange:
        monkeypatch.setattr(replacing, "_exchange", lambda *_: False)
    pa.csv.write_csv(people(), place.parent / "source.csv")
    kept = None
    if over:
        job(place)
        (place / "key.toml").unlink(missing_ok=True)
        kept = Path(shutil.copytree(place, place.parent / "kept"))
    before = tree(place)
    faulty = FaultyFiles(monkeypatch, place)
    with faulty.failing(None):
        job(place)
    names, operations = set(tree(place)), list(faulty.done)
    for number, operation in list(enumerate(operations))[:: sized(8 if job is check_partitioned else 3, 1)]:
        put_back(place, kept)
        with faulty.failing(number, ERRORS[number % 2]):
            look(place, job, before, names)
        if hidden(place):
            assert operation in ("unlink", "rmdir"), f"{operation}, number {number}, leaves {hidden(place)}"
            for path in set(place.iterdir()) - set(hidden(place)):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            job(place)
            assert not hidden(place)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # XlsxWriter leaves files open that it could not write
@pytest.mark.parametrize(
    ("job", "form"),
    [
        *((save, form) for form in FORMS),
        *((in_chunks, form) for form in ("csv", "parquet", "arrow")),
        (check_partitioned, "parquet"),
        *at_length((check_partitioned, "csv"), (check_partitioned, "arrow")),
    ],
)
def test_an_output_stands_whole_or_not_at_all_wherever_the_disk_is_full(place: Path, form: str, job: Any) -> None:
    write_file(people(), place.parent / f"source.{form}", FileForm(FileFormat(form)))
    job(place, form)
    sizes = {len(text) for text in tree(place).values()}
    names = set(tree(place))
    for most in sorted({limit for size in sizes for limit in (0, size // 2, size - 1, size)}):
        put_back(place, None)
        with short_files(most):
            look(place, lambda folder: job(folder, form), {}, names)
        assert not hidden(place)
    gc.collect()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 200 KiB, where one may be mounted."""
    disk, mount = tmp_path / "disk", shutil.which("mount")
    disk.mkdir()
    words = [str(mount), "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(disk)]
    if mount is None or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("needs a user who may mount a file system")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("form", FORMS)
def test_a_full_disk_is_told_alike_for_all_formats_and_nothing_is_left(
    small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    ignored: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    numbers = np.random.default_rng(3).normal(size=(2, 30_000))
    release = dataclasses.replace(a_release(), table=pa.table({"a": numbers[0], "b": numbers[1]}))
    with pytest.raises(SfumatoError) as refused:
        release.save(small_disk / "out", form=form)
    gc.collect()
    assert str(refused.value) == "the release could not be written (No space left on device); nothing was changed"
    assert refused.value.exit_code == 1
    assert [*small_disk.iterdir(), *(tmp_path / "temporary").iterdir(), *ignored] == []


def test_an_epoch_that_could_not_be_written_is_written_by_the_next_run(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sf.stream(place / "state", people(), identifiers=["sex"], k=5)
    faulty = FaultyFiles(monkeypatch, place / "out")
    with faulty.failing(None):
        sf.stream(place / "state").publish(place / "out", report=False)
    assert faulty.done[-1] == "chmod"  # which opens a folder that stands already, and may fail
    for number in range(0, len(faulty.done) - 1, sized(3, 1)):
        shutil.rmtree(place / "out")
        with faulty.failing(number), pytest.raises(SfumatoError, match="publish again to write it"):
            sf.stream(place / "state").publish(place / "out", report=False)
        assert not (place / "out").exists()
        sf.stream(place / "state").publish(place / "out", report=False)
        assert all(check.holds for check in verify_release(place / "out" / "release"))


def test_a_state_can_be_read_and_gone_on_with_whichever_operation_fails(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, table = place / "state", cases.people(160)
    cases.begin(state, table)
    kept = Path(shutil.copytree(place, place.parent / "kept"))
    faulty = FaultyFiles(monkeypatch, place)
    with faulty.failing(None):
        cases.take(state, table)
    after = cases.look(state).records
    for number in range(0, len(faulty.done), sized(3, 1)):
        put_back(place, kept)
        with faulty.failing(number, ERRORS[number % 2]), suppress(SfumatoError):
            cases.take(state, table)
        assert 100 <= cases.look(state).records <= after
        cases.take(state, table)
        assert cases.look(state).records == after
