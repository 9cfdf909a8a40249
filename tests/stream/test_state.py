"""A state that is damaged, half copied, older, foreign or in use is refused, and never half read."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from sfumato.core.errors import OptionError, SfumatoError
from sfumato.stream import session as session_room
from sfumato.stream.entries import cut_batches
from sfumato.stream.session import StreamSession
from sfumato.stream.settings import StateEntry, StateError
from sfumato.stream.state import State, unseal
from tests.stream.cases import ROWS, begin, groups_of, look, people, take

TABLE = people(400)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    place = tmp_path / "s.db"
    begin(place, TABLE)
    take(place, TABLE)
    return place


def crash(state: Path, table: object = TABLE) -> None:
    """Take in rows in a process that ends without closing anything."""
    code = (
        "import os, sys\n"
        "from sfumato.stream.entries import cut_batches\n"
        "from sfumato.stream.session import StreamSession\n"
        "from tests.stream.cases import *\n"
        f"session = StreamSession.open({str(state)!r}); session.ingest(cut_batches([people(400)], ROWS)); os._exit(9)"
    )
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 9


def test_a_kill_while_the_file_changes_its_journal_leaves_a_state_that_can_be_looked_at(
    state: Path, tmp_path: Path
) -> None:
    before, killed = look(state), tmp_path / "killed.db"
    unseal(state)  # as every writer does first
    with closing(sqlite3.connect(state, isolation_level=None)) as db:
        db.execute("pragma cache_size = 1")  # so that pages are in the file before the commit
        db.execute("begin immediate")
        db.execute("update sfumato_stream set body = zeroblob(length(body))")
        for end in ("", "-journal", ".lock"):  # what a kill at this moment leaves
            shutil.copyfile(f"{state}{end}", f"{killed}{end}")
    assert Path(f"{killed}-journal").stat().st_size > 0
    assert look(killed) == before
    assert take(killed, TABLE).repeated == 400
    assert look(killed) == before


def test_one_byte_changed_anywhere_is_refused(state: Path) -> None:
    whole = bytearray(state.read_bytes())
    chance = random.Random(1)
    for _ in range(60):
        place = chance.randrange(len(whole))
        damaged = bytearray(whole)
        damaged[place] ^= chance.randrange(1, 256)
        state.write_bytes(damaged)
        for write in (False, True):
            with pytest.raises(StateError, match=r"damaged or only half copied|not of format|not the state"):
                StreamSession.open(state, write=write)
        assert state.read_bytes() == bytes(damaged)


def test_a_file_cut_off_anywhere_is_refused(state: Path) -> None:
    whole = state.read_bytes()
    chance = random.Random(1)
    for length in [0, 1, len(whole) - 1, *(chance.randrange(len(whole)) for _ in range(30))]:
        state.write_bytes(whole[:length])
        (state.parent / "s.db.lock").unlink(missing_ok=True)
        with pytest.raises(StateError, match="damaged or only half copied"):
            StreamSession.open(state)


def test_after_a_crash_all_files_together_are_whole_and_any_part_of_them_is_refused(tmp_path: Path) -> None:
    state, parts = tmp_path / "s.db", ("", "-wal", ".lock")
    begin(state, TABLE)
    crash(state)
    assert look(state).rows == 400

    def copied(*chosen: str) -> Path:
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        (tmp_path / "copy").mkdir()
        for part in chosen:
            shutil.copy(f"{state}{part}", tmp_path / "copy" / f"s.db{part}")
        return tmp_path / "copy" / "s.db"

    assert look(copied(*parts)).rows == 400
    for chosen in (("",), ("", "-wal"), ("", ".lock")):
        with pytest.raises(StateError, match="half copied"):
            look(copied(*chosen))
    log = Path(f"{state}-wal").read_bytes()
    for end in (0, len(log) // 3, len(log) - 5_000):  # the log's own checks pass: it just ends earlier
        place = copied(*parts)
        Path(f"{place}-wal").write_bytes(log[:end])
        with pytest.raises(StateError, match=r"half copied|damaged"):
            look(place)
    take(state, TABLE)
    assert look(state).rows == 400


def test_a_page_that_a_kill_cut_short_is_taken_from_the_log(tmp_path: Path) -> None:
    begin(tmp_path / "s.db", TABLE)
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    with StreamSession.open(tmp_path / "s.db") as session:
        session.ingest(cut_batches([TABLE], ROWS))
        expected = session.status().digest
        for path in tmp_path.glob("s.db*"):
            shutil.copy(path, crashed)
    with (crashed / "s.db").open("ab") as file:
        file.write(os.urandom(4096))  # of a new page of 16 KB
    assert look(crashed / "s.db").digest == expected
    with StreamSession.open(crashed / "s.db"):
        pass
    assert look(crashed / "s.db").digest == expected  # sealed again
    assert not (crashed / "s.db-wal").exists()


def test_an_older_copy_is_not_taken_for_the_state(state: Path) -> None:
    older = state.read_bytes()
    take(state, people(500, seed=8))
    state.write_bytes(older)
    with pytest.raises(StateError, match=r"lacks the last 1\d commits that were acknowledged"):
        StreamSession.open(state)


def test_a_sealed_state_travels_alone(state: Path, tmp_path: Path) -> None:
    shutil.copy(state, tmp_path / "elsewhere.db")
    assert groups_of(tmp_path / "elsewhere.db") == groups_of(state)


def test_entries_of_two_moments_are_not_one_state(state: Path) -> None:
    with sqlite3.connect(state) as db:
        (body,) = db.execute("select body from sfumato_stream where kind = 'group' limit 1").fetchone()
        query = "select kind, key from sfumato_stream where kind = 'group' and body <> ? limit 1"
        other = db.execute(query, (body,)).fetchone()
    for change in (("update sfumato_stream set body = ? where kind = ? and key = ?", (body, *other)),
                   ("delete from sfumato_stream where kind = ? and key = ?", other),
                   ("insert into sfumato_stream values ('group', '999999', ?)", (body,))):  # fmt: skip
        copy = state.with_name("changed.db")
        shutil.copy(state, copy)
        shutil.copy(f"{state}.lock", f"{copy}.lock")
        with copy.open("r+b") as file:
            file.truncate(copy.stat().st_size // 16_384 * 16_384)
        db = sqlite3.connect(copy)
        db.execute(*change)
        db.commit()
        db.close()
        with pytest.raises(StateError, match="entries are not those that were written"):
            look(copy)


def test_a_second_writer_is_refused_and_readers_are_not(state: Path) -> None:
    with StreamSession.open(state) as first:
        with pytest.raises(StateError, match="another process writes to the state"):
            StreamSession.open(state)
        assert look(state).batches == first.status().batches
        first.ingest(cut_batches([people(80, seed=9)], ROWS))
        assert look(state).rows == first.status().rows == 480
    assert look(state).rows == 480


def test_a_reader_sees_one_moment_while_another_writes(state: Path) -> None:
    with StreamSession.open(state) as writer:
        reader = State.open(state, write=False)
        writer.ingest(cut_batches([people(200, seed=9)], ROWS))
        before = reader.read_large("group")
        reader.close()
        later = State.open(state, write=False)
        assert len(later.read_large("group")) == len(writer.maintainer.ids) > len(before)
        later.close()


def test_a_step_that_failed_half_way_ends_the_session(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = groups_of(state)
    with StreamSession.open(state) as session:
        with monkeypatch.context() as patched:
            patched.setattr(session_room, "entries_of_rows", lambda rows: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                session.ingest(cut_batches([people(80, seed=9)], ROWS))
        with pytest.raises(StateError, match="opened again"):
            session.ingest(cut_batches([people(80, seed=9)], ROWS))
        with pytest.raises(StateError, match="opened again"):
            session.publish()
    assert groups_of(state) == before


def test_other_files_and_no_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="there is no state"):
        StreamSession.open(tmp_path / "nothing.db")
    (tmp_path / "text.db").write_text("x" * 50_000, encoding="utf-8")
    with pytest.raises(StateError, match="not an SQLite file"):
        StreamSession.open(tmp_path / "text.db")
    db = sqlite3.connect(tmp_path / "other.db")
    db.execute("create table sfumato_stream (kind text, key text, body blob)")
    db.close()
    with pytest.raises(StateError):
        StreamSession.open(tmp_path / "other.db")


def test_a_state_of_another_format_is_refused(state: Path) -> None:
    book = State.open(state, write=True)
    book.commit([StateEntry("settings", "", b'{"newer": 1}')])
    book.close()
    with pytest.raises(StateError, match="another version"):
        StreamSession.open(state)


@pytest.mark.parametrize("kind", ["held", "tail"])
def test_a_state_that_lacks_the_counts_of_a_column_is_refused(state: Path, kind: str) -> None:
    book = State.open(state, write=True)
    book.commit([], [(kind, key) for key in book.keys(kind)])
    book.close()
    with pytest.raises(StateError, match="restore a complete copy"):
        StreamSession.open(state)


@pytest.mark.parametrize("entry", ["rare", "tails", "person", "measure_rows"])
def test_a_state_whose_settings_lack_an_entry_is_refused(state: Path, entry: str) -> None:
    book = State.open(state, write=True)
    settings = json.loads(book.body("settings"))
    del settings[entry]
    book.commit([StateEntry("settings", "", json.dumps(settings).encode())])
    book.close()
    with pytest.raises(StateError, match="another version"):
        StreamSession.open(state)


def test_a_state_is_never_written_over(state: Path) -> None:
    before = state.read_bytes()
    with pytest.raises(OptionError, match="already"):
        begin(state, TABLE)
    assert state.read_bytes() == before


def test_the_files_of_a_state_are_the_owners(state: Path) -> None:
    with StreamSession.open(state) as session:
        session.ingest(cut_batches([people(80, seed=9)], ROWS))
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in state.parent.iterdir()}
    assert {"s.db", "s.db-wal", "s.db.lock"} <= set(modes)
    assert not any(mode & 0o077 for mode in modes.values())


def test_a_full_disk_stops_ingestion_and_loses_nothing(tmp_path: Path) -> None:
    state, whole = tmp_path / "s.db", tmp_path / "whole.db"
    begin(state, TABLE)
    begin(whole, TABLE)
    take(whole, TABLE)
    room = 4 * 16_384
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with StreamSession.open(state) as session:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
        try:
            with pytest.raises(SfumatoError, match="the disk is full or fails"):
                session.ingest(cut_batches([TABLE], ROWS))
            with pytest.raises(StateError, match="opened again"):
                session.ingest(cut_batches([TABLE], ROWS))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert look(state).rows < 400
    take(state, TABLE)
    assert groups_of(state) == groups_of(whole)
