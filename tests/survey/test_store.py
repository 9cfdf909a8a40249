"""The store, on SQLite and on PostgreSQL: a token counts once, and nothing says who answered what."""

from __future__ import annotations

import secrets
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from sfumato.core.database import engine, locate, transaction
from sfumato.core.errors import BadInput, OptionError
from sfumato.survey.store import AnswerStore, StoreError, Submission, SubmissionResult

NEW, SAME, OTHER = SubmissionResult.NEW, SubmissionResult.SAME, SubmissionResult.OTHER


def submission(*codes: int, mark: bytes | None = None) -> Submission:
    mark = secrets.token_bytes(32) if mark is None else mark
    return Submission(mark, repr(codes).encode().ljust(16)[:16], codes)


def test_counts_are_those_of_what_was_added(store: AnswerStore) -> None:
    assert store.add([submission(3, -7), submission(3, 2**40), submission(4, -7)]) == [NEW] * 3
    assert store.add([submission(3, 0)]) == [NEW]
    assert store.counts() == (4, {0: {3: 3, 4: 1}, 1: {-7: 2, 2**40: 1, 0: 1}})


def test_a_token_counts_once_within_and_across_transactions(store: AnswerStore) -> None:
    first, mark = submission(1), secrets.token_bytes(32)
    one, two = submission(5, mark=mark), submission(6, mark=mark)
    assert store.add([first, first, one, two, one]) == [NEW, SAME, NEW, OTHER, SAME]
    assert store.add([two, one, first, submission(9)]) == [OTHER, SAME, SAME, NEW]
    assert store.counts() == (3, {0: {1: 1, 5: 1, 9: 1}})


def test_an_empty_batch_is_nothing(store: AnswerStore) -> None:
    assert store.add([]) == []
    assert store.counts() == (0, {})


def test_key_and_survey_outlive_the_process(place: str) -> None:
    first = AnswerStore.open(place)
    key = first.key
    assert first.survey_document() is None
    first.set_survey({"title": "a"})
    first.set_survey({"title": "\u00e4"})
    first.close()
    second = AnswerStore.open(place, create=False)
    assert second.key == key
    assert len(key) == 32
    assert second.survey_document() == {"title": "\u00e4"}
    second.close()


def test_two_processes_with_the_same_tokens_count_each_once(place: str) -> None:
    batches = [[submission(each % 7) for each in range(40)] for _ in range(10)]
    verdicts: dict[int, list[SubmissionResult]] = {0: [], 1: []}
    stores = [AnswerStore.open(place), AnswerStore.open(place)]

    def work(which: int) -> None:
        for batch in batches:
            mixed = batch if which else batch[::-1]
            verdicts[which] += stores[which].add(mixed)

    threads = [threading.Thread(target=work, args=(which,)) for which in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    both = verdicts[0] + verdicts[1]
    assert (both.count(NEW), both.count(SAME)) == (400, 400)
    count, tallies = stores[0].counts()
    assert (count, sum(tallies[0].values())) == (400, 400)
    for each in stores:
        each.close()


def test_a_failed_transaction_leaves_nothing(store: AnswerStore) -> None:
    with pytest.raises(StoreError, match="could not be written"):
        store.add([submission(1), submission(2**80)])  # the second does not fit into the database
    assert store.counts() == (0, {})


def test_the_order_of_arrival_is_not_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "survey.db"
    store = AnswerStore.open(str(path))
    sent = [submission(each) for each in range(50)]
    for each in sent:
        store.add([each])
    store.close()
    with sqlite3.connect(path) as connection:
        marks = [row[0] for row in connection.execute("SELECT mark FROM sfumato_used")]
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            connection.execute("SELECT rowid FROM sfumato_used")
    connection.close()
    assert marks == sorted(each.mark for each in sent)


def test_a_new_file_is_for_its_owner_only(tmp_path: Path) -> None:
    store = AnswerStore.open(f"sqlite:///{tmp_path / 'survey.db'}")
    store.add([submission(1)])
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    store.close()


def test_commits_are_written_through_to_the_disk(tmp_path: Path) -> None:
    store = AnswerStore.open(str(tmp_path / "survey.db"))
    with store._writing() as connection:
        found = [connection.exec_driver_sql(f"pragma {name}").scalar() for name in ("journal_mode", "synchronous")]
    assert found == ["wal", 2]
    store.close()


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("mysql://localhost/x", "not kept in"),
        ("sqlite://", "in memory"),
        (":memory:", "in memory"),
        ("postgresql://host:port/x", "not a database URL"),
        ("sqlite://survey.db", "not a database URL"),
        ("no/such/folder/survey.db", "cannot be made"),
    ],
)
def test_a_place_that_cannot_be_is_refused(place: str, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        AnswerStore.open(place)


def test_reading_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="there is no database"):
        AnswerStore.open(str(tmp_path / "survey.db"), create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "survey.db").write_bytes(b"age,name\n" * 1000)
    with pytest.raises(BadInput, match="could not be opened"):
        AnswerStore.open(str(tmp_path / "survey.db"))


def test_neither_name_nor_error_holds_the_password(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(BadInput) as refusal:
        AnswerStore.open("postgresql://survey:geheim@127.0.0.1:1/none")
    assert "geheim" not in str(refusal.value)
    assert refusal.value.__cause__ is None


def test_two_surveys_do_not_begin_in_one_database(store: AnswerStore) -> None:
    assert store.set_survey({"digest": "a", "title": "x"}) == {"digest": "a", "title": "x"}
    assert store.set_survey({"digest": "b", "title": "y"}) == {"digest": "a", "title": "x"}
    assert store.survey_document() == {"digest": "a", "title": "x"}
    store.set_survey({"digest": "a", "title": "z"})
    assert store.survey_document() == {"digest": "a", "title": "z"}


def test_a_full_disk_refuses_and_keeps_what_was_stored(tmp_path: Path) -> None:
    store = AnswerStore.open(str(tmp_path / "survey.db"))
    with store._reading() as connection:  # the pool gives the same connection again
        connection.exec_driver_sql("pragma max_page_count = 12")
    store.add([submission(1)])
    with pytest.raises(StoreError, match="not full"):
        store.add([submission(each) for each in range(2000)])
    assert store.counts() == (1, {0: {1: 1}})
    with store._reading() as connection:
        connection.exec_driver_sql("pragma max_page_count = 1000")
    assert store.add([submission(1)]) == [NEW]
    store.close()


def test_a_file_that_took_the_name_of_the_database_is_not_it(tmp_path: Path) -> None:
    path = tmp_path / "survey.db"
    store = AnswerStore.open(str(path))
    store.add([submission(1)])
    path.rename(tmp_path / "moved.db")
    path.touch()
    for act in (store.ping, store.counts, lambda: store.add([submission(2)])):
        with pytest.raises(StoreError, match="deleted or replaced"):
            act()
    store.close()


def test_looking_into_another_database_changes_nothing_of_it(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE people (name)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(OptionError, match="holds no survey"):
        AnswerStore.open(str(path), create=False)
    assert path.read_bytes() == before


def test_connections_that_the_server_has_ended_are_made_anew(postgres: str) -> None:
    store = AnswerStore.open(postgres)
    before = store.counts()[0]
    ended = "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and usename = %s"
    with transaction(engine(locate(postgres)), write=True) as other:
        other.exec_driver_sql(ended, ("survey",))
    assert store.add([submission(1)]) == [NEW]
    assert store.counts()[0] == before + 1
    store.close()
