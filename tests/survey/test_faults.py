"""Load and faults: nothing that was acknowledged is lost, and nothing is counted twice."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.survey.questions import check_token, mark, seal
from sfumato.survey.store import AnswerStore
from tests.examples import at_length, sized
from tests.survey.process import AGE, COMMAND, Load, bodies_for, collector, send_all, started, tokens


def load(port: int, bodies: list[bytes], clients: int, at: tuple[int, Callable[[], None]] | None = None) -> Load:
    return asyncio.run(send_all(port, bodies, clients, at))


on_sqlite = pytest.mark.parametrize("place", ["sqlite", *at_length("postgresql")], indirect=True)


@pytest.mark.slow
@on_sqlite
def test_two_hundred_clients_at_once_are_all_stored(place: str, tmp_path: Path) -> None:
    count = sized(400, 1_000)
    given = tokens(place, count)
    codes = [number % 101 for number in range(count)]
    with collector(place, tmp_path, "--rate", "0") as running:
        found = load(running.port, bodies_for(running.digest, given, codes), 200)
        assert len(found.acknowledged) == count
    store = AnswerStore.open(place)
    stored, tallies = store.counts()
    store.close()
    assert stored == count
    assert tallies[0] == {code: codes.count(code) for code in set(codes)}


@on_sqlite
def test_a_kill_in_mid_load_loses_no_acknowledged_answer(place: str, tmp_path: Path) -> None:
    sent, killed = sized((600, 200), (2_000, 700))
    given = tokens(place, sent)
    codes = [number % 101 for number in range(sent)]
    with collector(place, tmp_path, "--rate", "0") as running:
        bodies = bodies_for(running.digest, given, codes)
        found = load(running.port, bodies, 50, (killed, running.process.kill))
        assert running.process.wait(timeout=300) == -signal.SIGKILL
    assert killed <= len(found.acknowledged) < sent
    store = AnswerStore.open(place)
    key = store.key
    with store._reading() as connection:
        there = {row.mark: row.seal for row in connection.exec_driver_sql("select mark, seal from sfumato_used")}
    count, tallies = store.counts()
    data = [check_token(key, token) for token in given]
    lost = [each for each in found.acknowledged if there.get(mark(data[each])) != seal(data[each], (codes[each],))]
    assert lost == []
    assert count == sum(tallies[0].values()) >= len(found.acknowledged)
    with collector(place, tmp_path, "--rate", "0") as running:  # everybody tries again with the same answer
        assert len(load(running.port, bodies, 50).acknowledged) == sent
    assert store.counts() == (sent, {0: {code: codes.count(code) for code in set(codes)}})
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGTERM, *at_length(signal.SIGINT)])
def test_an_end_in_mid_load_is_orderly(stop: signal.Signals, tmp_path: Path) -> None:
    db = str(tmp_path / "survey.db")
    given, first = tokens(db, 3000), sized(100, 500)
    with collector(db, tmp_path, "--rate", "0") as running:
        bodies = bodies_for(running.digest, given, [0] * 3000)
        found = load(running.port, bodies, 50, (first, lambda: running.process.send_signal(stop)))
        assert running.process.wait(timeout=300) == 0
    assert first <= len(found.acknowledged) < 3000
    store = AnswerStore.open(db)
    count, _ = store.counts()
    store.close()
    assert count == len(found.acknowledged)
    assert '"stopped"' in running.log.read_text(encoding="utf-8")


@pytest.mark.slow  # test_store lets two processes write to either database
def test_two_collectors_on_one_database_count_a_token_once(place: str, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    given = tokens(place, 300)
    with (
        collector(place, tmp_path / "one", "--rate", "0") as one,
        collector(place, tmp_path / "two", "--rate", "0") as two,
    ):
        bodies = bodies_for(one.digest, given, [7] * 300)

        async def both() -> tuple[Load, Load]:
            return await asyncio.gather(send_all(one.port, bodies, 20), send_all(two.port, bodies, 20))

        assert [len(each.acknowledged) for each in asyncio.run(both())] == [300, 300]
    store = AnswerStore.open(place)
    assert store.counts() == (300, {0: {7: 300}})
    store.close()


def test_answers_to_a_file_that_was_deleted_are_not_acknowledged(tmp_path: Path) -> None:
    db = str(tmp_path / "survey.db")
    with collector(db, tmp_path, "--rate", "0") as running:
        one, two = tokens(db, 2)
        assert running.answer(one, answer=3) == 200
        for path in tmp_path.glob("survey.db*"):
            path.unlink()
        assert running.answer(two, answer=3) == 503
        assert running.call("GET", "/health")[0] == 503
        assert list(tmp_path.glob("survey.db*")) == []


@pytest.mark.slow
def test_a_log_that_nobody_reads_any_more_stops_nothing(tmp_path: Path) -> None:
    db, spec = str(tmp_path / "survey.db"), tmp_path / "spec.toml"
    spec.write_text(AGE, encoding="utf-8")
    command = [*COMMAND, "serve", "--spec", str(spec), "--db", db, "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    running = started(process, tmp_path / "none")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stderr.close()
    assert running.call("GET", "/nothing")[0] == 404
    given = tokens(db, 3)
    assert [running.answer(token, answer=3) for token in given] == [200] * 3
    process.terminate()
    assert process.wait(timeout=300) == 0
    process.stdout.close()
