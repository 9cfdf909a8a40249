"""Redis streams from a real server: acknowledged after the commit, and every entry counted once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from sfumato.cli import app
from sfumato.core.errors import OptionError, TableError
from sfumato.engines.stream import StateError, StreamSession
from sfumato.engines.stream.connectors import ReadOptions, RedisPlace, read_batches
from tests.stream.cases import ROWS, begin, groups_of, look, people
from tests.stream.redis_server import Server
from tests.stream.standing import standing, take_from

ROOT = Path(__file__).parents[2]
TABLE = people(400)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server()
    try:
        made.start()
        yield made
    finally:
        made.remove()


@pytest.fixture
def stream(server: Server) -> str:
    """A stream of its own, which holds all rows but those that a state begins with."""
    name = f"people {os.urandom(4).hex()}"
    add(server, name, TABLE.slice(100))
    return name


def add(server: Server, name: str, table: pa.Table) -> list[bytes]:
    pipe = server.client().pipeline(transaction=False)
    for row in table.to_pylist():
        pipe.xadd(name, {field: str(cell) for field, cell in row.items()})
    added: list[bytes] = pipe.execute()
    return added


def place(server: Server, name: str) -> str:
    return f"{server.url}/{name.replace(' ', '%20')}"


def acknowledged(server: Server, name: str, group: str = "sfumato") -> bytes | None:
    found = {entry["name"].decode(): entry["last-delivered-id"] for entry in server.client().xinfo_groups(name)}
    return found.get(group)


def uninterrupted(state: Path, url: str) -> Path:
    begin(state, TABLE)
    take_from(state, url, group="other")
    return state


def test_all_entries_count_once_and_the_group_stands_at_the_last(server: Server, stream: str, tmp_path: Path) -> None:
    state, url = tmp_path / "s.db", place(server, stream)
    begin(state, TABLE)
    done = take_from(state, url)
    assert (done.rows, done.batches, done.quarantined) == (300, 8, 0)
    last = server.client().xinfo_stream(stream)["last-generated-id"]
    assert acknowledged(server, stream) == last
    assert take_from(state, url).rows == 0
    more = add(server, stream, TABLE.slice(0, 7))
    assert take_from(state, url).rows == 7
    assert acknowledged(server, stream) == more[-1]
    assert look(state).rows == 407


def test_the_batch_is_on_disk_before_the_server_hears_of_it(server: Server, stream: str, tmp_path: Path) -> None:
    state, url = tmp_path / "s.db", place(server, stream)
    begin(state, TABLE)
    seen: list[tuple[int, bytes | None]] = []
    with StreamSession.open(state) as session:
        session.ingest(
            read_batches(url, standing(session)),
            tell=lambda _: seen.append((look(state).rows, acknowledged(server, stream))),
        )
    ids = [entry.decode() for entry, _ in server.client().xrange(stream)]
    assert [rows for rows, _ in seen] == [140, 180, 220, 260, 300, 340, 380, 400]
    assert [told and told.decode() for _, told in seen] == ["0-0", *(ids[end - 1] for end in range(ROWS, 300, ROWS))]


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["after the commit", pytest.param("before the commit", marks=pytest.mark.slow)])
def test_a_kill_between_commit_and_acknowledgement_counts_nothing_twice(
    server: Server, stream: str, tmp_path: Path, moment: str
) -> None:
    state, url = tmp_path / "s.db", place(server, stream)
    begin(state, TABLE)
    code = (
        "import os, signal, sys; from pathlib import Path; from sfumato.engines.stream import StreamSession\n"
        "from sfumato.engines.stream.connectors import read_batches\n"
        "from tests.stream.standing import standing, take_from\n"
        f"state, url, moment = Path({str(state)!r}), {url!r}, {moment!r}\n"
        "def die(): os.kill(os.getpid(), signal.SIGKILL)\n"
        "def batches():\n"
        "    for number, batch in enumerate(read_batches(url, standing(session))):\n"
        "        if number == 2 and moment == 'before the commit': die()\n"
        "        yield batch\n"
        "count = 0\n"
        "def tell(done):\n"
        "    global count; count += 1\n"
        "    if count == 3: die()\n"
        "session = StreamSession.open(state)\n"
        "session.ingest(batches(), tell=tell)"
    )
    killed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    counted = 3 if moment == "after the commit" else 2
    ids = [entry for entry, _ in server.client().xrange(stream)]
    assert look(state).rows == 100 + counted * ROWS
    assert acknowledged(server, stream) == ids[2 * ROWS - 1]  # the third was never acknowledged
    done = take_from(state, url)
    assert done.rows == 300 - counted * ROWS
    assert acknowledged(server, stream) == ids[-1]
    assert look(state).rows == 400
    whole = uninterrupted(tmp_path / "whole.db", url)
    assert groups_of(state) == groups_of(whole)
    assert look(state).pending == look(whole).pending > 0


def test_a_server_that_crashes_loses_nothing_and_is_told_without_the_password(tmp_path: Path) -> None:
    own, state = Server(), tmp_path / "s.db"
    try:
        own.start()
        add(own, "people", TABLE.slice(100))
        url = f"{own.url}/people"
        begin(state, TABLE)
        with StreamSession.open(state) as session:
            batches = read_batches(url, standing(session))
            session.ingest([next(batches)])
            own.kill()
            with pytest.raises(TableError, match="does not answer; what was acknowledged stays"):
                session.ingest(batches)
        with pytest.raises(TableError, match="does not answer") as caught:
            take_from(state, url.replace("redis://", "redis://me:hunter2@"))
        assert "hunter2" not in str(caught.value)
        own.start()
        assert take_from(state, url).rows == 300 - ROWS
        assert look(state).rows == 400
        own.client().config_set("requirepass", "hunter2")
        with pytest.raises(TableError, match=r"(does not let you in|did not do what it was asked)"):
            take_from(state, url)
        assert take_from(state, url.replace("redis://", "redis://default:hunter2@")).rows == 0
    finally:
        own.remove()


def test_waiting_records_in_memory_come_back_from_the_stream(server: Server, stream: str, tmp_path: Path) -> None:
    state, url = tmp_path / "s.db", place(server, stream)
    begin(state, TABLE)
    take_from(state, url)
    status = look(state)
    assert status.awaiting_replay == status.pending > 0
    with StreamSession.open(state) as session:
        session.ingest(read_batches(url, standing(session)))
        assert session.status().awaiting_replay == 0
        assert session.maintainer.pending == status.pending


def test_entries_that_were_trimmed_are_missed_loudly_and_what_is_left_is_read(
    server: Server, stream: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state, url = tmp_path / "s.db", place(server, stream)
    begin(state, TABLE)
    ids = [entry for entry, _ in server.client().xrange(stream)]
    take_from(state, url)
    server.client().xtrim(stream, minid=ids[250], approximate=False)
    take_from(state, url)
    assert "batches whose records wait; they go on waiting" in caplog.text
    late = tmp_path / "late.db"
    begin(late, TABLE)
    assert "has lost" not in caplog.text
    assert take_from(late, url, group="late").rows == 50
    assert "has lost entries that this state never read" in caplog.text
    caplog.clear()
    server.client().xdel(stream, add(server, stream, TABLE.slice(0, 2))[0])
    assert take_from(late, url, group="late").rows == 1
    assert "has lost entries that this state never read" in caplog.text


def test_a_stream_that_was_begun_anew_is_refused(server: Server, stream: str, tmp_path: Path) -> None:
    state, url = tmp_path / "s.db", place(server, stream)
    begin(state, TABLE)
    take_from(state, url)
    server.client().delete(stream)
    with pytest.raises(TableError, match="there is no stream"):
        take_from(state, url)
    server.client().xadd(stream, {"pay": "1"}, id="1-1")
    with pytest.raises(StateError, match="was emptied and begun anew"):
        take_from(state, url)
    assert take_from(state, url, source="second").rows == 1


def test_fields_that_lack_or_are_no_text_or_unknown_keep_single_rows_out(server: Server, tmp_path: Path) -> None:
    name, state = f"odd {os.urandom(4).hex()}", tmp_path / "s.db"
    begin(state, TABLE)
    whole = {field: str(cell) for field, cell in TABLE.to_pylist()[0].items()} | {"level": "3"}
    for entry in (whole, whole | {"more": "x"}, whole | {"sex": b"\xff"}, {"pay": "1"}, whole | {"age": "many"}):
        server.client().xadd(name, entry)
    done = take_from(state, place(server, name))
    assert (done.rows, done.quarantined) == (5, 3)


def test_a_followed_stream_gives_entries_as_they_come(server: Server, stream: str, tmp_path: Path) -> None:
    state, url = tmp_path / "s.db", place(server, stream)
    begin(state, TABLE)
    with StreamSession.open(state) as session:
        batches = read_batches(url, standing(session, follow=True, columns=None))
    assert sum(next(batches)[1].num_rows for _ in range(8)) == 300

    def come() -> None:
        time.sleep(0.3)
        add(server, stream, TABLE.slice(0, 1))

    late = threading.Thread(target=come)
    late.start()
    identity, table = next(batches)
    late.join()
    batches.close()  # type: ignore[attr-defined]
    assert (identity.count(stream), table.num_rows, table.column_names) == (1, 1, TABLE.column_names)


def test_what_is_no_stream_is_refused(server: Server) -> None:
    server.client().set("text", "31337")
    with pytest.raises(TableError, match="did not do what it was asked") as caught:
        list(read_batches(f"{server.url}/text", ReadOptions(rows=ROWS)))
    assert "31337" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["kafka://host/topic", "redis://host", "redis:///people", "redis://host/1/2/people", "redis://host:x/people",
            "redis://host/people?group=a"],
)  # fmt: skip
def test_urls_that_are_not_understood_are_refused(url: str) -> None:
    with pytest.raises(OptionError, match="an input by URL is redis"):
        list(read_batches(url, ReadOptions(rows=ROWS)))


def test_urls_may_name_a_database_a_user_and_odd_streams() -> None:
    made = RedisPlace.of_url("rediss://me:p%40ss@[::1]:7000/3/a%2Fb%20c")
    assert (made.host, made.port, made.db, made.stream, made.user, made.password, made.tls) == (
        "::1", 7000, 3, "a/b c", "me", "p@ss", True,
    )  # fmt: skip
    assert "p@ss" not in repr(made)
    assert RedisPlace.of_url("redis://host/7").stream == "7"


@pytest.mark.slow
def test_the_command_reads_a_stream_and_goes_on_after_a_kill(
    server: Server, stream: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state, url = tmp_path / "s.db", place(server, stream)
    begin(state, TABLE)
    words = ["stream", "ingest", "--state", str(state), url]
    process = subprocess.Popen(
        [sys.executable, "-m", "sfumato.cli", *words, "--acknowledge", "--follow"],
        cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    told = [process.stderr.readline() for _ in range(3)]
    process.kill()
    process.wait()
    process.stderr.close()
    assert all(line.startswith("acknowledged redis people") for line in told)
    app.main([*words, "--json"], standalone_mode=False)
    assert json.loads(capsys.readouterr().out)["rows"] == 400
    assert groups_of(state) == groups_of(uninterrupted(tmp_path / "whole.db", url))


def test_without_the_client_library_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(OptionError, match=r"pip install 'sfumato\[stream\]'"):
        list(read_batches("redis://host/people", ReadOptions(rows=ROWS)))
