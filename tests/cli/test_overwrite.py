"""--overwrite replaces the files of an earlier output and nothing else, whatever lies in the folder or beside it."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.assess.report import Report
from sfumato.core import replacing
from sfumato.core.errors import OptionError
from sfumato.core.replacing import replacing_file
from sfumato.publish.evaluate import Evaluation
from sfumato.publish.folder import own_files, replacing_folder
from sfumato.publish.sanitize import sanitize
from tests.cli.conftest import Run
from tests.examples import examples

Tree = dict[str, tuple[int, bytes | str]]


def tree(folder: Path) -> Tree:
    """Everything below a folder: its kind and mode, and its bytes or where a link leads to."""
    found: Tree = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        content: bytes | str = os.readlink(path) if path.is_symlink() else b""
        if stat.S_ISREG(mode):
            content = path.read_bytes()
        found[str(path.relative_to(folder))] = (mode, content)
    return found


@cache
def table() -> pa.Table:
    return pa.table({"age": [20, 30, 40, 50] * 10, "pay": [5, 5, 6, 7] * 10, "sex": ["f", "m"] * 20})


@cache
def release() -> sf.Release:
    return sf.sanitize(table(), sf.Condensation(k=5), report=False)


def write_tuning(folder: Path) -> None:
    folder.mkdir()
    (folder / "report.json").write_text('{"format": 1, "kind": "tuning"}')
    (folder / "report.html").write_text("<p>a tuning")


KINDS = {
    "release": lambda folder: release().save(folder),
    "evaluation": lambda folder: Evaluation(Report((), (), 40, 40)).save(folder),
    "tuning": write_tuning,
}
COMMANDS = {
    "sanitize": ("release", ("sanitize", "in.csv", "--k", "5", "--no-report")),
    "chunks": (
        "release",
        (
            "sanitize",
            "in.csv",
            "--method",
            "translate",
            "--engine",
            "partitions",
            "--new-key",
            "new.toml",
            "--public",
            "sex",
        ),
    ),
    "stream": ("release", ("stream", "publish", "--state", "state.db")),
    "transactions": ("release", ("transactions", "randomize", "in.dat", "--no-report")),
    "hide": ("release", ("transactions", "hide", "in.dat", "--rule", "1 -> 2", "--no-report")),
    "demo": ("release", ("demo",)),
    "evaluate": ("evaluation", ("evaluate", "in.csv", "in.csv")),
    "tune": ("tuning", ("tune", "in.csv", "--target", "sex")),
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with what commands read, beside which outputs are made."""
    here = tmp_path / "here"
    here.mkdir()
    pa.csv.write_csv(table(), here / "in.csv")
    (here / "in.dat").write_text("1 2\n2 3\n1 3\n" * 20)
    monkeypatch.chdir(here)
    yield tmp_path
    shutil.rmtree(tmp_path)


NAMES = (".hidden", "notes.txt", "Table.csv", "TABLE.csv", "table.csv~", "schema.toml.bak", "in.csv", "a b", "\u00e9")
foreign = st.lists(
    st.tuples(
        st.sampled_from(["", "release", "owner", "sub", "release/deep"]),
        st.sampled_from(NAMES),
        st.sampled_from(["file", "folder", "link", "dangling", "fifo"]),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda each: each[:2],
)


def add(folder: Path, things: list[tuple[str, str, str]]) -> None:
    for where, name, kind in things:
        path = folder / where / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "file":
            path.write_text("mine")
        elif kind == "folder":
            path.mkdir()
        elif kind == "fifo":
            os.mkfifo(path)
        else:
            path.symlink_to(folder.parent / "here" / ("in.csv" if kind == "link" else "nothing"))


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_foreign_in_an_output_folder_is_never_changed(run: Run, place: Path, command: str) -> None:
    contents, words = COMMANDS[command]

    @settings(
        examples(24, few=6),
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
    )
    @given(things=foreign, earlier=st.sampled_from([contents, contents, "release", "nothing"]))
    def check(things: list[tuple[str, str, str]], earlier: str) -> None:
        with tempfile.TemporaryDirectory(dir=place) as made:
            out = Path(made, "out")
            KINDS.get(earlier, Path.mkdir)(out)
            add(out, things)
            before = tree(place)
            for flag in ((), ("--overwrite",)):
                done = run(*words, "-o", out, *flag)
                assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done.err
                assert tree(place) == before
            assert " other file" in done.err

    check()


@pytest.mark.parametrize("contents", KINDS)
def test_an_earlier_output_with_nothing_else_may_be_replaced_whole(place: Path, contents: str) -> None:
    KINDS[contents](place / "out")
    kept = tree(place / "out")
    with replacing_folder(place / "out", overwrite=True, contents=contents) as work:
        (work / "new").write_text("new")
    assert set(kept) & set(tree(place / "out")) == set()
    assert sorted(path.name for path in place.iterdir()) == ["here", "out"]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 2, "files": {}}', "\u00e9"])
def test_a_certificate_that_cannot_be_read_makes_no_release(run: Run, place: Path, text: str) -> None:
    (place / "out" / "release").mkdir(parents=True)
    (place / "out" / "release" / "certificate.json").write_text(text, encoding="latin-1")
    before = tree(place)
    done = run("sanitize", "in.csv", "-o", place / "out", "--k", "5", "--overwrite")
    assert (done.code, tree(place)) == (2, before)
    assert "holds no earlier release but 1 other file or folder" in done.err


@pytest.mark.parametrize("command", ["evaluate", "tune"])
def test_a_report_that_says_nothing_makes_no_evaluation_and_no_tuning(run: Run, place: Path, command: str) -> None:
    (place / "out").mkdir()
    for name in ("report.html", "report-public.html", "report.json", "summary.html")[:: 1 if command[0] == "e" else 2]:
        (place / "out" / name).write_text("{}")
    before = tree(place)
    assert run(*COMMANDS[command][1], "-o", place / "out", "--overwrite").code == 2
    assert tree(place) == before


@pytest.mark.parametrize("output", [".", "..", "../here", "../here/.", "sub/..", "../other/.."])
@pytest.mark.parametrize("command", COMMANDS)
def test_the_working_directory_is_never_replaced(run: Run, place: Path, command: str, output: str) -> None:
    (place / "here" / "sub").mkdir()
    (place / "other").mkdir()
    (place / "here" / "release").mkdir()
    (place / "here" / "release" / "certificate.json").write_text("{}")
    (place / "here" / "notes.txt").write_text("mine")
    before = tree(place)
    for flag in ((), ("--overwrite",)):
        assert run(*COMMANDS[command][1], "-o", output, *flag).code == 2
        assert tree(place) == before


def test_a_working_directory_that_holds_a_release_alone_is_not_replaced(
    run: Run, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release().save(place / "out")
    monkeypatch.chdir(place / "out" / "release")
    before = tree(place)
    done = run("sanitize", place / "here" / "in.csv", "-o", place / "out", "--k", "5", "--overwrite")
    assert (done.code, tree(place)) == (2, before)
    assert "is the working directory or holds it" in done.err


@pytest.mark.parametrize(
    "words",
    [
        ("sanitize", "{out}/release/table.csv"),
        ("sanitize", "link.csv"),
        ("sanitize", "in.csv", "--schema", "{out}/owner/schema-private.toml"),
        ("sanitize", "in.csv", "--recipe", "{out}/owner/recipe.toml"),
        ("sanitize", "in.csv", "--holdout", "{out}/release/table.csv"),
        ("sanitize", "in.csv", "--key", "{out}/owner/recipe.toml", "--method", "translate"),
        ("sanitize", "in.csv", "--sign", "{out}/owner/recipe.toml"),
        ("sanitize", "in.csv", "--policy", "{out}/owner/recipe.toml"),
        ("sanitize", "in.csv", "--spec", "age={out}/owner/recipe.toml"),
        ("sanitize", "sqlite:///{out}/release/table.csv", "--query", "select 1"),
        ("stream", "publish", "--state", "{out}/release/table.csv"),
        ("stream", "publish", "--state", "state.db", "--measure-key", "{out}/owner/recipe.toml"),
        ("transactions", "randomize", "{out}/release/table.csv", "--lines"),
        ("transactions", "hide", "in.dat", "--rules", "{out}/owner/recipe.toml"),
    ],
    ids=lambda words: " ".join(words),
)
def test_a_folder_that_holds_what_the_run_reads_is_not_replaced(run: Run, place: Path, words: tuple[str, ...]) -> None:
    out = place / "out"
    release().save(out)
    (place / "here" / "link.csv").symlink_to(out / "release" / "table.csv")
    before = tree(place)
    done = run(*(word.format(out=out) for word in words), "-o", place / "here" / ".." / "out", "--overwrite")
    assert (done.code, tree(place)) == (2, before)
    assert "which this run reads" in done.err or "lies in the output folder" in done.err


def test_a_file_that_comes_by_standard_input_is_not_replaced(place: Path) -> None:
    release().save(place / "out")
    before = tree(place)
    words = [sys.executable, "-m", "sfumato.cli", "sanitize", "-", "-o", str(place / "out"), "--k", "5", "--overwrite"]
    with (place / "out" / "release" / "table.csv").open() as file:
        done = subprocess.run(words, stdin=file, capture_output=True, text=True, check=False)
    assert (done.returncode, tree(place)) == (2, before)
    assert "which this run reads" in done.stderr


def test_python_refuses_as_well_to_replace_what_it_reads(place: Path) -> None:
    release().save(place / "out")
    before = tree(place)
    with pytest.raises(OptionError, match="which this run reads"):
        sanitize(
            place / "out" / "release" / "table.csv",
            sf.Condensation(k=5),
            folder=place / "out",
            engine="partitions",
            overwrite=True,
        )
    assert tree(place) == before


def test_a_link_to_a_release_is_not_replaced(run: Run, place: Path) -> None:
    release().save(place / "there")
    (place / "out").symlink_to(place / "there")
    before = tree(place)
    done = run("sanitize", "in.csv", "-o", place / "out", "--k", "5", "--overwrite")
    assert (done.code, tree(place)) == (2, before)
    assert "is a link" in done.err


@pytest.mark.parametrize("name", ["release/table.csv", "release", "owner/recipe.toml", "owner"])
def test_a_release_of_which_a_part_is_a_link_is_not_replaced(run: Run, place: Path, name: str) -> None:
    release().save(place / "out")
    (place / "out" / name).rename(place / "moved")
    (place / "out" / name).symlink_to(place / "moved")
    before = tree(place)
    assert run("sanitize", "in.csv", "-o", place / "out", "--k", "5", "--overwrite").code == 2
    assert tree(place) == before


def test_an_empty_folder_and_a_release_in_part_may_be_replaced(run: Run, place: Path) -> None:
    out = place / "out"
    out.mkdir()
    words = ("sanitize", "in.csv", "-o", out, "--k", "5", "--no-report", "--overwrite", "--quiet")
    assert run(*words[:-2]).code == 2
    assert run(*words).code == 0
    shutil.rmtree(out / "owner")
    (out / "release" / "table.csv").unlink()
    assert run(*words).code == 0
    assert (out / "owner" / "recipe.toml").is_file()
    (out / "release" / "certificate.json").unlink()
    before = tree(place)
    assert run(*words).code == 2
    assert tree(place) == before


@pytest.mark.parametrize("exchange", [True, False])
@pytest.mark.parametrize("over", [True, False])
def test_what_comes_into_the_folder_before_the_swap_is_put_back(
    place: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool, over: bool
) -> None:
    """Another process makes or fills the folder after the last look at its name."""
    swap, out = replacing._rename, place / "out"
    if not exchange:
        monkeypatch.setattr(replacing, "_exchange", lambda *_: False)
    if over:
        release().save(out)

    def filled_first(*told: Any) -> None:
        out.mkdir(exist_ok=True)
        (out / "theirs.txt").write_text("theirs")
        before.update(tree(out))
        swap(*told)

    before: Tree = {}
    monkeypatch.setattr(replacing, "_rename", filled_first)
    with (
        pytest.raises(OptionError, match=r"theirs\.txt" if over else "exists"),
        replacing_folder(out, overwrite=over) as work,
    ):
        (work / "release").mkdir()
    assert tree(out) == before
    assert sorted(path.name for path in place.iterdir()) == ["here", "out"]


@pytest.mark.parametrize("exchange", [True, False])
def test_what_comes_into_the_old_folder_while_it_is_deleted_is_kept(
    place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, exchange: bool
) -> None:
    if not exchange:
        monkeypatch.setattr(replacing, "_exchange", lambda *_: False)
    release().save(place / "out")

    def filled_after(old: Path, *told: Any, **more: Any) -> list[Path]:
        found = own_files(old, *told, **more)
        if old.name != "out" or old.parent != place:
            (old / "release" / "theirs.txt").write_text("theirs")
        return found

    monkeypatch.setattr("sfumato.publish.folder.own_files", filled_after)
    with replacing_folder(place / "out", overwrite=True) as work:
        (work / "release").mkdir()
    [kept] = (path for path in place.iterdir() if path.name.startswith("out.kept-"))
    assert list(tree(kept)) == ["release", "release/theirs.txt"]
    assert "what others wrote" in caplog.text
    assert sorted(path.name for path in place.iterdir()) == ["here", "out", kept.name]


FILES = {
    "inspect": ("inspect", "in.csv"),
    "policy": ("policy", "research"),
    "estimate": ("transactions", "estimate", "in.dat", "--min-support", "0.1"),
}


@pytest.mark.parametrize("command", FILES)
def test_a_file_never_takes_the_place_of_a_folder_or_of_what_is_read(run: Run, place: Path, command: str) -> None:
    (place / "mine").mkdir()
    (place / "mine" / "notes.txt").write_text("mine")
    before = tree(place)
    inputs = [word for word in FILES[command] if word.startswith("in.")]
    for output in (place / "mine", place, *inputs):
        done = run(*FILES[command], "-o", output, "--overwrite")
        assert (done.code, tree(place)) == (2, before), done.err
    with pytest.raises(OSError, match="directory"), replacing_file(place / "mine") as work:
        work.write_text("new")
    assert tree(place) == before


def test_a_policy_is_not_written_over_itself(run: Run, place: Path) -> None:
    assert run("policy", "research", "-o", "mine.toml", "--quiet").code == 0
    before = tree(place)
    assert run("policy", "mine.toml", "-o", "mine.toml", "--overwrite").code == 2
    assert tree(place) == before


@pytest.fixture
def open_umask() -> Iterator[None]:
    umask = os.umask(0)
    yield
    os.umask(umask)


@pytest.mark.usefixtures("open_umask")
@pytest.mark.parametrize("command", ["sanitize", "chunks", "transactions"])
def test_hidden_folders_and_what_stays_are_closed_to_others_from_the_first_moment(
    run: Run, place: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    seen: dict[str, int] = {}
    open_, mkdir = os.open, os.mkdir

    def opened(path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
        handle = open_(path, flags, mode, **more)
        look(path)
        return handle

    def made(path: Any, mode: int = 0o777, **more: Any) -> None:
        mkdir(path, mode, **more)
        look(path)

    def look(path: Any) -> None:
        if str(path).startswith(f"{place}/"):
            seen.setdefault(str(path), stat.S_IMODE(os.lstat(path).st_mode))

    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(os, "mkdir", made)
    done = run(*COMMANDS[command][1], "-o", place / "out", "--quiet")
    assert done.code == 0, done.err
    private = {path: mode for path, mode in seen.items() if "/owner" in path or Path(path).name.startswith(".")}
    assert any(path.endswith("owner/recipe.toml") for path in private)
    assert {mode & 0o077 for mode in private.values()} == {0}
    assert stat.S_IMODE((place / "out").stat().st_mode) == 0o777
    assert stat.S_IMODE((place / "out" / "owner").stat().st_mode) == 0o700
