"""The one way to databases: whole transactions, one moment for a reader, one writer, and faults without data."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from sfumato.core.database import DatabaseFault, FileLock, Location, Reason, engine, file_identity, transaction

PEOPLE = sa.Table("people", sa.MetaData(), sa.Column("name", sa.Text, primary_key=True))
ADD = PEOPLE.insert()
COUNT = sa.select(sa.func.count()).select_from(PEOPLE)


@pytest.fixture
def location(tmp_path: Path) -> Location:
    place = Location(tmp_path / "x.db")
    (tmp_path / "x.db").touch()
    with transaction(engine(place, pragmas=["journal_mode = wal"]), write=True) as connection:
        PEOPLE.create(connection)
        connection.execute(ADD, [{"name": "ann"}, {"name": "ben"}])
    return place


def test_a_transaction_that_fails_leaves_nothing_and_its_connection_serves_on(location: Location) -> None:
    with engine(location).connect() as connection:
        with pytest.raises(DatabaseFault, match="CONSTRAINT") as fault, transaction(connection, write=True):
            connection.execute(ADD, [{"name": "cat"}, {"name": "ann"}])
        assert "ann" not in str(fault.value)
        with transaction(connection, write=False):
            assert connection.scalar(COUNT) == 2


def test_a_reader_sees_one_moment_whoever_writes_meanwhile(location: Location) -> None:
    with engine(location, write=False).connect() as reader:
        with transaction(reader, write=False):
            assert reader.scalar(COUNT) == 2
            with transaction(engine(location), write=True) as writer:
                writer.execute(ADD, {"name": "cat"})
            assert reader.scalar(COUNT) == 2
        with transaction(reader, write=False):
            assert reader.scalar(COUNT) == 3


def test_faults_tell_what_happened_and_nothing_is_made_by_looking(location: Location, tmp_path: Path) -> None:
    with pytest.raises(DatabaseFault) as gone, transaction(engine(Location(tmp_path / "none.db")), write=False):
        pass
    one, two = transaction(engine(location), write=True), transaction(engine(location, busy=0.0), write=True)
    with one, pytest.raises(DatabaseFault) as busy, two:
        pass
    reading = engine(location, write=False)
    with pytest.raises(DatabaseFault) as rights, transaction(reading, write=False) as reader:
        reader.execute(PEOPLE.delete())
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
