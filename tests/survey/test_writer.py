"""The task that stores answers: it tells everybody what became of theirs, whatever happens."""

from __future__ import annotations

import asyncio
import io
import json
import secrets
from pathlib import Path

import pytest

from sfumato.survey import store as module
from sfumato.survey.store import AnswerStore, AnswerWriter, Log, StoreError, Submission, SubmissionResult


def submission() -> Submission:
    return Submission(secrets.token_bytes(32), secrets.token_bytes(16), (1,))


def test_no_line_of_the_log_is_about_one_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SECONDS_A_LINE", 0.0)
    text, store = io.StringIO(), AnswerStore.open(str(tmp_path / "survey.db"))

    async def work() -> None:
        writer = AnswerWriter(store, Log(text))
        writer.start()
        for _ in range(25):
            await writer.add(submission())
        await writer.stop()

    asyncio.run(work())
    store.close()
    lines = [json.loads(line) for line in text.getvalue().splitlines()]
    assert [line["answers"] for line in lines] == [10, 10, 5]  # the last at the end


def test_a_failed_commit_is_told_and_held_against_the_database_until_one_succeeds(tmp_path: Path) -> None:
    store = AnswerStore.open(str(tmp_path / "survey.db"))
    path, seen = tmp_path / "survey.db", []

    async def work() -> None:
        writer = AnswerWriter(store, Log(quiet=True))
        writer.start()
        assert await writer.add(submission()) is SubmissionResult.NEW
        path.rename(tmp_path / "away.db")
        seen.append(writer.failing)
        for _ in range(2):
            with pytest.raises(StoreError, match="deleted or replaced"):
                await writer.add(submission())
        seen.append(writer.failing)
        (tmp_path / "away.db").rename(path)
        assert await writer.add(submission()) is SubmissionResult.NEW
        seen.append(writer.failing)
        await writer.stop()
        with pytest.raises(StoreError, match="has stopped"):
            await writer.add(submission())

    asyncio.run(work())
    assert seen == [False, True, False]
    assert store.counts()[0] == 2
    store.close()


def test_nobody_is_left_waiting_when_the_task_ends_by_an_unforeseen_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = AnswerStore.open(str(tmp_path / "survey.db"))
    monkeypatch.setattr(store, "add", lambda _batch: (_ for _ in ()).throw(MemoryError))

    async def work() -> None:
        writer = AnswerWriter(store, Log(quiet=True))
        writer.start()
        with pytest.raises(StoreError, match="has stopped"):
            await asyncio.wait_for(writer.add(submission()), 20)
        assert not writer.alive
        with pytest.raises(MemoryError):
            await writer.stop()

    asyncio.run(work())
    store.close()
