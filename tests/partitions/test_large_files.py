"""Files in cells from the command line and from Python: whole releases, stopped runs, what is refused."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import sfumato as sf
from sfumato.core.errors import OptionError, SfumatoError
from sfumato.core.groups.facts import Partitioned
from sfumato.engines.partitions import run as engine
from sfumato.engines.partitions.partition import sanitize_partition
from sfumato.publish import engine_choice
from sfumato.publish import sanitize as sanitizing
from sfumato.publish.verify import verify_release
from tests.cli.conftest import Run, run  # noqa: F401 - a fixture
from tests.partitions.test_partitions import people

SMALL: dict[str, Any] = {"k": 4, "effort": "fast", "report": False, "rows_are_people": True}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file of people, and cells of so few rows that it has several."""
    monkeypatch.setattr(sanitizing, "partition_rows", lambda *_: 250)
    pa.parquet.write_table(people().drop_columns(["who"]), tmp_path / "people.parquet")
    return tmp_path


def cells_of(release: sf.Release) -> int:
    (fact,) = (fact for fact in release.certificate.facts if isinstance(fact, Partitioned))
    return fact.cells


def hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_a_file_in_cells_gives_a_whole_release_and_the_rows_of_the_frame(place: Path) -> None:
    release = sf.sanitize(
        place / "people.parquet", folder=place / "out", engine="partitions", level="level", seed=3, **SMALL
    )
    frame = sf.sanitize(people().drop_columns(["who"]), level="level", seed=3, method="condense", memory="1G", **SMALL)
    assert cells_of(release) == cells_of(frame) > 2
    assert pa.parquet.read_table(place / "out" / "release" / "table.parquet").equals(frame.table)
    assert hidden(place) == []
    assert [check.name for check in verify_release(place / "out" / "release") if not check.holds] == [
        "made for release"
    ]


def write_as_in_germany(table: pa.Table, path: Path) -> None:
    """A CSV file with semicolons, decimal commas and a byte order mark."""
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(table.column_names)
        for row in table.to_pylist():
            writer.writerow("" if cell is None else str(cell).replace(".", ",") for cell in row.values())


def test_a_file_with_decimal_commas_goes_through_in_cells_as_in_memory(run: Run, place: Path) -> None:  # noqa: F811
    write_as_in_germany(people().drop_columns(["who"]), place / "people.csv")
    told = ("--seed", 3, "--k", 4, "--rows-are-people", "--no-report", "--method", "chain", "--leaf", 20)
    done = run("sanitize", place / "people.csv", "-o", place / "out", "--engine", "partitions", *told)
    assert done.code == 0, done.err
    assert "Decimal commas in 'pay': read as numbers, released with decimal points." in done.out
    whole = run("sanitize", place / "people.csv", "-o", place / "all", "--engine", "memory", "--memory", "1G", *told)
    assert whole.code == 0, whole.err
    table = (place / "out" / "release" / "table.csv").read_bytes()
    assert table == (place / "all" / "release" / "table.csv").read_bytes()
    assert b";" in table
    text = (place / "people.csv").read_text(encoding="utf-8-sig")
    (place / "bars.csv").write_text(text.replace(";", "!"), encoding="utf-8")
    said = ("--delimiter", "!", "--decimal", ",")
    done = run("sanitize", place / "bars.csv", "-o", place / "bars", "--engine", "partitions", *said, *told)
    assert done.code == 0, done.err
    assert (place / "bars" / "release" / "table.csv").read_bytes() == table.replace(b";", b"!")


def test_a_file_with_decimal_commas_is_moved_in_batches(run: Run, place: Path) -> None:  # noqa: F811
    write_as_in_germany(people().select(["age", "pay"]), place / "numbers.csv")
    told = ("--method", "translate", "--new-key", place / "key.toml", "--rows-are-people", "--no-report")
    done = run("sanitize", place / "numbers.csv", "-o", place / "out", "--engine", "partitions", *told)
    assert done.code == 0, done.err
    assert "Decimal commas in 'pay'" in done.out
    moved = pa.csv.read_csv(place / "out" / "release" / "table.csv", parse_options=pa.csv.ParseOptions(delimiter=";"))
    assert [pa.types.is_floating(moved.schema.field(name).type) for name in ("pay",)] == [True]


def test_marks_of_csv_are_not_for_parquet(run: Run, place: Path) -> None:  # noqa: F811
    done = run("sanitize", place / "people.parquet", "-o", place / "out", "--engine", "partitions", "--decimal", ",")
    assert (done.code, "are for CSV" in done.err) == (2, True)


def test_the_command_line_takes_cells_where_a_file_does_not_fit_and_says_so(
    run: Run,  # noqa: F811
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_choice, "needed_bytes", lambda *_args, **_more: 3 << 30)  # as of a file of many rows
    pa.csv.write_csv(people().drop_columns(["who"]), place / "people.csv")
    told = ("sanitize", place / "people.csv", "-o", place / "out", "--method", "condense", "--k", 4, "--effort", "fast")
    done = run(
        *told, "--memory", "1G", "--rows-are-people", "--holdout", "0.2", "--time-limit", 1, "--format", "parquet"
    )
    assert done.code == 0, done.err
    assert "It is processed in partitions" in done.err
    assert "Measured on all" in done.out
    tried = [line for line in done.out.splitlines() if line.startswith("To try next:")]
    assert all("--memory 1G" in line for line in tried)
    assert all(check.holds for check in verify_release(place / "out" / "release"))
    table = pa.parquet.read_table(place / "out" / "release" / "table.parquet")
    assert pa.types.is_integer(table.schema.field("age").type)
    assert hidden(place) == []


WRONG: dict[str, tuple[str, ...]] = {
    "a size that is none": ("people.parquet", "--memory", "many"),
    "a method for all rows": ("people.parquet", "--engine", "partitions", "--method", "swap", "--target", "town"),
    "a key in the folder": ("people.parquet", "--resume-key", "out/key", "--method", "condense"),
    "an engine and another": ("people.parquet", "--engine", "memory", "--resume-key", "key", "--method", "condense"),
    "standard input": ("-", "--engine", "partitions", "--method", "condense"),
    "rows to choose": ("people.parquet", "--engine", "partitions", "--where", "age > 60"),
    "batches in memory": ("people.parquet", "--batch-rows", "5", "--method", "condense"),
    "a workbook": ("people.parquet", "--engine", "partitions", "--method", "condense", "--format", "xlsx"),
    "marks of decimals": ("people.parquet", "--engine", "partitions", "--method", "condense", "--decimal", ","),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_cannot_be_is_refused_in_a_sentence_and_leaves_nothing(run: Run, place: Path, wrong: str) -> None:  # noqa: F811
    source, *told = WRONG[wrong]
    told = [str(place / word) if word in ("key", "out/key") else word for word in told]
    done = run("sanitize", source if source == "-" else place / source, "-o", place / "out", *told)
    assert done.code == 2, done.err
    assert done.err.count("\n") == 1
    assert sorted(path.name for path in place.iterdir()) == ["people.parquet"]


def test_a_stopped_run_goes_on_without_doing_a_finished_cell_again(
    place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    key, done = place / "key", list[int]()
    usual = sanitize_partition

    def failing(table: pa.Table, task: Any, number: int) -> Any:
        if number == 2 and len(done) == 2:
            raise OSError(28, "no space")
        done.append(number)
        return usual(table, task, number)

    monkeypatch.setattr(engine, "sanitize_partition", failing)
    told = {**SMALL, "resume_key": key}
    with pytest.raises(SfumatoError, match="No space left"):
        sf.sanitize(place / "people.parquet", folder=place / "out", engine="partitions", **told)
    assert key.stat().st_mode & 0o777 == 0o600
    assert hidden(place) == [".out.sfumato-resume"]
    done.append(-1)
    release = sf.sanitize(place / "people.parquet", folder=place / "out", engine="partitions", **told)
    assert done == [0, 1, -1, *range(2, cells_of(release))]
    assert not key.exists()
    assert hidden(place) == []
    assert all(check.holds for check in verify_release(place / "out" / "release"))


def test_what_was_put_aside_for_other_options_or_by_nobody_is_not_used(
    place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    done = list[int]()

    def stopping(_table: pa.Table, _task: Any, number: int) -> Any:
        done.append(number)
        raise KeyboardInterrupt

    told = {**SMALL, "resume_key": place / "key"}
    with monkeypatch.context() as patched:
        patched.setattr(engine, "sanitize_partition", stopping)
        for k in (4, 5):
            with pytest.raises(KeyboardInterrupt):
                sf.sanitize(place / "people.parquet", folder=place / "out", engine="partitions", **{**told, "k": k})
    other = place / "other"
    other.write_text("00" * 32)
    with pytest.raises(OptionError, match="chmod 600"):
        sf.sanitize(
            place / "people.parquet", folder=place / "out", engine="partitions", **{**told, "resume_key": other}
        )
    other.chmod(0o600)
    with pytest.raises(SfumatoError, match="altered on disk"):
        sf.sanitize(
            place / "people.parquet", folder=place / "out", engine="partitions", **{**told, "resume_key": other}
        )
    other.write_text("none")
    with pytest.raises(OptionError, match="is not valid"):
        sf.sanitize(
            place / "people.parquet", folder=place / "out", engine="partitions", **{**told, "resume_key": other}
        )
    sf.sanitize(place / "people.parquet", folder=place / "out", engine="partitions", **SMALL)
    assert "removed what a stopped run had put aside" in caplog.text
    assert hidden(place) == []


def test_a_key_that_no_stopped_run_has_left_is_not_removed(place: Path) -> None:
    key = place / "key"
    key.touch(mode=0o600)
    key.write_text("ab" * 32)
    sf.sanitize(place / "people.parquet", folder=place / "out", engine="partitions", **{**SMALL, "resume_key": key})
    assert key.read_text() == "ab" * 32
    assert hidden(place) == []


@pytest.mark.slow
@pytest.mark.parametrize("resumed", [True, False])
def test_a_killed_run_leaves_no_row_in_the_clear_and_is_resumed_or_cleared_away(place: Path, resumed: bool) -> None:
    program = textwrap.dedent(
        """
        import sys
        from sfumato.engines.partitions import run as engine
        from sfumato.publish import sanitize as sanitizing
        from sfumato.cli import main
        stop = int(sys.argv.pop(1))
        sanitizing.partition_rows = lambda *_: 250
        usual = engine.sanitize_partition
        def watched(table, task, number):
            print("cell", number, file=sys.stderr, flush=True)
            if number == stop:
                sys.stdin.read()
            return usual(table, task, number)
        engine.sanitize_partition = watched
        main()
        """
    )
    told = ["sanitize", "people.parquet", "-o", "out", "--engine", "partitions", "--method", "condense", "--k", "4"]
    told += ["--effort", "fast", "--no-report", "--rows-are-people", *(["--resume-key", "key"] if resumed else [])]
    command = [sys.executable, "-c", program]
    with subprocess.Popen(
        [*command, "2", *told], cwd=place, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    ) as first:
        assert first.stderr is not None
        for line in first.stderr:
            if line == "cell 2\n":
                break
        first.send_signal(signal.SIGKILL)
    for path in place.rglob("*"):
        if path.is_file() and path.name not in ("people.parquet", "key"):
            assert b"Oslo" not in path.read_bytes()
    assert not (place / "out").exists()
    again = subprocess.run([*command, "-1", *told], cwd=place, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert ("cell 0" in again.stderr) is not resumed
    assert ("removed 2 unfinished outputs" in again.stderr) is not resumed
    assert all(check.holds for check in verify_release(place / "out" / "release"))
    assert hidden(place) == []


def test_a_known_column_that_there_is_not_is_refused_before_a_cell_is_cut(
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "tree_of", lambda *_: pytest.fail("the work has begun"))
    told: dict[str, Any] = {"method": "condense", "k": 4, "rows_are_people": True, "quasi_identifiers": ["twon"]}
    table = people().drop_columns(["who"])
    pa.parquet.write_table(table, place / "some.parquet")
    with pytest.raises(OptionError, match=r"no column 'twon' that is measured .*; did you mean 'town'\?"):
        sf.sanitize(place / "some.parquet", folder=place / "out", engine="partitions", **told)
    with pytest.raises(OptionError, match="did you mean 'town'"):
        sf.sanitize(table, memory="1G", **told)
