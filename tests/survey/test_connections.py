"""Connections without a complete request header are closed, and keep nobody out."""

from __future__ import annotations

import asyncio
import resource
import selectors
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from sfumato.core.connections import http_protocol
from tests.survey import process
from tests.survey.process import collector, tokens

PAUSE = 0.4


class Jumping(asyncio.SelectorEventLoop):
    """A clock that stands still while there is anything to do, and jumps to the next appointment when there is not."""

    def __init__(self) -> None:
        self._now = 0.0
        selector = selectors.DefaultSelector()
        wait = selector.select

        def select(timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            found = wait(timeout and 0.05)  # bytes on their way between two sockets of this machine
            if not found and timeout:
                self._now += timeout
            return found

        selector.select = select  # type: ignore[method-assign]
        super().__init__(selector)

    def time(self) -> float:
        return self._now


async def app(scope: Any, receive: Any, send: Any) -> None:
    await asyncio.sleep(2 * PAUSE)  # an answer may take longer than a head
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def read(pieces: list[bytes], every: float) -> bytes:
    """Send pieces with pauses between them and give all that comes back until the end."""
    config = uvicorn.Config(app, lifespan="off", log_config=None, timeout_keep_alive=1, server_header=False)
    config.load()
    state, loop = ServerState(), asyncio.get_running_loop()
    make = http_protocol(PAUSE)
    listening = await loop.create_server(lambda: make(config=config, server_state=state, app_state={}), "127.0.0.1", 0)
    async with listening:
        reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        found = asyncio.ensure_future(asyncio.wait_for(reader.read(), 20))
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(every)
            if found.done():
                break
        try:
            return await found
        finally:
            writer.close()


HEAD = [b"GET / HTTP/1.1\r\n", b"host: x\r\n", b"\r\n"]


@pytest.mark.parametrize(
    ("pieces", "every", "answered"),
    [
        ([], 0.0, 0),  # nothing ever comes
        ([b"GET / HT"], 0.0, 0),
        ([b"GET / HTTP/1.1\r\n", *[b"a: b\r\n"] * 12], PAUSE / 4, 0),  # a byte now and then
        (HEAD, PAUSE / 10, 1),
        ([b"".join(HEAD), b"".join(HEAD)], 2.5 * PAUSE, 2),
        ([b"".join(HEAD), b"GET / HTTP/1.1\r\n", *[b"a: b\r\n"] * 12], PAUSE / 4, 1),  # slow the second time
    ],
)
def test_only_a_head_that_comes_in_time_is_answered(pieces: list[bytes], every: float, answered: int) -> None:
    with asyncio.Runner(loop_factory=Jumping) as runner:
        assert runner.run(read(pieces, every)).count(b"200 OK") == answered


def test_a_header_that_grows_too_large_is_not_read_on() -> None:
    with asyncio.Runner(loop_factory=Jumping) as runner:
        with suppress(ConnectionError):
            assert b"200 OK" not in runner.run(read([HEAD[0], b"a: " + b"b" * 70_000], 0.0))
        assert runner.get_loop().time() < PAUSE


@pytest.fixture
def few_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Collectors may open 1,024 files, as is usual, and this process more."""
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = usual[1] if usual[1] >= 0 else 4096
    if most < 2048:
        pytest.skip("this process may not open as many connections")
    monkeypatch.setattr(process, "COMMAND", ["sh", "-c", 'ulimit -n 1024; exec "$@"', "sh", *process.COMMAND])
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4096), usual[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, usual)


@pytest.mark.slow
@pytest.mark.usefixtures("few_files")
def test_eight_hundred_slow_connections_keep_nobody_out(tmp_path: Path) -> None:
    db = str(tmp_path / "survey.db")
    with collector(db, tmp_path, "--rate", "0") as running, ExitStack() as slow:
        for number in range(800):
            begin_slowly(slow, f"127.0.0.{2 + number % 2}", running.port, b"POST /api/ans")
        assert [running.answer(token, answer=3) for token in tokens(db, 20)] == [200] * 20


def begin_slowly(stack: ExitStack, address: str, port: int, data: bytes) -> None:
    connection = socket.create_connection(("127.0.0.1", port), timeout=300, source_address=(address, 0))
    stack.enter_context(connection).sendall(data)
