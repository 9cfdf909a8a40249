"""The one way to databases: whole transactions, one moment for a reader, one writer, and faults without data."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from sfumato.core.database import ConnectionPool, DatabaseFault, FileLock, Location, Reason, connect, file_identity


@pytest.fixture
def location(tmp_path: Path) -> Location:
    place = Location(tmp_path / "x.db")
    (tmp_path / "x.db").touch()
    with closing(connect(place)) as connection:
        connection.execute("pragma journal_mode = wal")
        connection.execute("create table people (name text primary key)")
        connection.execute_many("insert into people values (%s)", [("ann",), ("ben",)])
    return place


def test_a_transaction_that_fails_leaves_nothing_and_its_connection_serves_on(location: Location) -> None:
    pool = ConnectionPool(lambda: connect(location))
    with pytest.raises(DatabaseFault, match="CONSTRAINT") as fault, pool.transaction(write=True) as connection:
        connection.execute_many("insert into people values (%s)", [("cat",), ("ann",)])
    assert "ann" not in str(fault.value)
    with pool.transaction(write=False) as again:
        assert again is connection
        assert again.execute("select count(*) from people") == [(2,)]
    pool.close()


def test_a_reader_sees_one_moment_whoever_writes_meanwhile(location: Location) -> None:
    with closing(connect(location, write=False)) as reader, closing(connect(location)) as writer:
        reader.begin(write=False)
        assert len(list(reader.scan("select name from people"))) == 2
        with writer.transaction(write=True):
            writer.execute("insert into people values (%s)", ("cat",))
        assert len(list(reader.scan("select name from people"))) == 2
        reader.roll_back()
        assert len(list(reader.scan("select name from people"))) == 3


def test_faults_tell_what_happened_and_nothing_is_made_by_looking(location: Location, tmp_path: Path) -> None:
    with pytest.raises(DatabaseFault) as gone:
        connect(Location(tmp_path / "none.db")).execute("select 1")
    with closing(connect(location)) as one, closing(connect(location, busy=0.0)) as two:
        one.begin(write=True)
        with pytest.raises(DatabaseFault) as busy:
            two.begin(write=True)
    with closing(connect(location, write=False)) as reader, pytest.raises(DatabaseFault) as rights:
        reader.execute("delete from people")
    assert [each.value.why for each in (gone, busy, rights)] == [Reason.RIGHTS, Reason.BUSY, Reason.RIGHTS]
    assert file_identity(tmp_path / "none.db") is None


def test_the_number_of_a_lock_outlives_it_and_an_altered_one_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    first = FileLock(path, write=True)
    assert first.acknowledged is None
    first.begin()
    first.acknowledge(7)
    assert not FileLock(path, write=False).held  # a reader beside the writer
    first.release()
    assert FileLock(path, write=False).acknowledged == 7
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(DatabaseFault) as fault:
        _ = FileLock(path, write=False).acknowledged
    assert fault.value.why is Reason.DAMAGED
