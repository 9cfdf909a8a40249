"""Databases and collectors that several tests share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="sfumato[collect] is not installed: no collector to test")
pytest.importorskip("starlette", reason="sfumato[collect] is not installed: no collector to test")

from sfumato.collect.store import AnswerStore
from sfumato.core.database import connect, locate
from tests.collect.postgres import postgres_cluster, postgres_programs
from tests.collect.process import Running, collector, tokens


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    programs = postgres_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed on this machine: tested on SQLite only")
    pytest.importorskip("psycopg", reason="psycopg is not installed: tested on SQLite only")
    with postgres_cluster(programs) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of either kind."""
    if request.param == "sqlite":
        return str(tmp_path / "survey.db")
    url: str = request.getfixturevalue("postgres")
    with closing(connect(locate(url))) as connection:
        for name in ("survey", "used", "counts"):
            connection.execute(f"drop table if exists sfumato_{name}")
    return url


@pytest.fixture
def store(place: str) -> Iterator[AnswerStore]:
    opened = AnswerStore.open(place)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("collector")


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[Running]:
    """A collector without a rate limit, on SQLite."""
    options = ("--rate", "0", "--title", "Ages", "--question", "How old are you?")
    with collector(str(folder / "survey.db"), folder, *options) as started:
        yield started


@pytest.fixture(scope="module")
def unused(running: Running, folder: Path) -> Iterator[str]:
    """Tokens of that collector, a fresh one at each next()."""
    assert running.url
    return iter(tokens(str(folder / "survey.db"), 400))
