"""The state in PostgreSQL: the same laws, on a real server that is started for the test."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.core.errors import OptionError
from sfumato.publish.verify import verify_release
from sfumato.stream.entries import cut_batches
from sfumato.stream.session import StreamSession
from sfumato.stream.settings import StateEntry, StateError
from tests.stream.cases import ROWS, begin, groups_of, look, people, take

TABLE = people(400)
ROOT = Path(__file__).parents[2]


def _programs() -> Path | None:
    """Find the server: where Debian puts it, or on the path."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    found = shutil.which("initdb")
    return debian[-1] if debian else None if found is None else Path(found).resolve().parent


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    pytest.importorskip("psycopg")
    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL server is installed here")
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    own: dict[str, object] = {}
    if os.geteuid() == 0:  # the server does not run as root
        try:
            user = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("there is no user to run a PostgreSQL server as")
        own = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        os.chown(folder, user.pw_uid, user.pw_gid)

    def call(*words: str) -> None:
        subprocess.run([str(programs / words[0]), *words[1:]], check=True, capture_output=True, cwd=folder, **own)  # type: ignore[call-overload]

    try:
        call("initdb", "-D", str(folder / "data"), "-U", "owner", "-A", "trust", "--no-sync")
        options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c max_connections=10"
        call("pg_ctl", "-D", str(folder / "data"), "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield f"postgresql://owner@/postgres?host={folder}"
        finally:
            call("pg_ctl", "-D", str(folder / "data"), "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def url(server: str) -> str:
    """A database of its own."""
    import psycopg

    name = f"s{os.urandom(4).hex()}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"create database {name}")
    return server.replace("/postgres?", f"/{name}?")


@pytest.mark.slow
def test_a_stream_in_postgresql_is_the_one_in_a_file_bit_for_bit(url: str, tmp_path: Path) -> None:
    begin(url, TABLE)
    take(url, TABLE.slice(0, 250))
    take(url, TABLE)
    begin(tmp_path / "s.db", TABLE)
    take(tmp_path / "s.db", TABLE.slice(0, 250))
    take(tmp_path / "s.db", TABLE)
    assert groups_of(url) == groups_of(tmp_path / "s.db")
    assert look(url) == look(tmp_path / "s.db")
    sf.stream(url).publish(tmp_path / "out", report=False)
    wrong = [check.name for check in verify_release(tmp_path / "out" / "release") if not check.holds]
    assert wrong == ["made for release"]


@pytest.mark.slow
def test_a_kill_in_postgresql_loses_nothing_and_counts_nothing_twice(url: str) -> None:
    begin(url, TABLE)
    code = (
        "import os, signal\n"
        "from sfumato.stream.entries import cut_batches\n"
        "from sfumato.stream.session import StreamSession\n"
        "from tests.stream.cases import *\n"
        "count = 0\n"
        "def tell(done):\n"
        "    global count; count += 1\n"
        "    if count == 6: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"StreamSession.open({url!r}).ingest(cut_batches([people(400)], ROWS), tell=tell)"
    )
    killed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert 100 < look(url).rows < 400
    take(url, TABLE)
    assert look(url).rows == 400


def test_a_second_writer_and_a_second_state_are_refused(url: str) -> None:
    with pytest.raises(StateError, match="there is no state in"):
        look(url)
    begin(url, TABLE)
    with pytest.raises(OptionError, match="already"):
        begin(url, TABLE)
    with StreamSession.open(url) as first:
        with pytest.raises(StateError, match="another process writes"):
            StreamSession.open(url)
        assert look(url).rows == 100
        first.ingest(cut_batches([TABLE], ROWS))
    assert look(url).rows == 400


def test_a_writer_whose_connection_was_ended_does_not_go_on_without_its_lock(url: str) -> None:
    import psycopg

    begin(url, TABLE)
    with StreamSession.open(url) as first:
        with psycopg.connect(url, autocommit=True) as other:
            other.execute("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()")
        take(url, TABLE)
        for _ in range(2):
            with pytest.raises(StateError, match=r"did not do what it was asked|opened again"):
                first.ingest(cut_batches([people(80, seed=9)], ROWS))
        with pytest.raises(StateError, match="did not do what it was asked"):
            first._state.read_large("group")
        with pytest.raises(StateError, match="did not do what it was asked"):
            first._state.commit([StateEntry("x", "", b"")])
    assert look(url).rows == 400


def test_an_entry_that_was_changed_is_refused(url: str) -> None:
    import psycopg

    begin(url, TABLE)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("update sfumato_stream set body = body || 'x'::bytea where kind = 'group' and key = '0'")
    with pytest.raises(StateError, match="damaged"):
        look(url)


def test_a_server_that_is_not_there_is_one_sentence_without_the_password() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(StateError, match="did not do what it was asked") as caught:
        look("postgresql://owner:hunter2@localhost:1/none")
    assert "hunter2" not in str(caught.value)
    with pytest.raises(OptionError, match="a file or a PostgreSQL URL"):
        look("mysql://owner@localhost/none")
