"""Connections on which no request comes: they are closed, and others are not."""

from __future__ import annotations

import asyncio
import selectors
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from sfumato.collect import wire

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
    server = await loop.create_server(lambda: wire.PatientProtocol(config, state, {}), "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
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
        ([b"".join(HEAD), b"".join(HEAD)], 3 * PAUSE, 2),
        ([b"".join(HEAD), b"GET / HTTP/1.1\r\n", *[b"a: b\r\n"] * 12], PAUSE / 4, 1),  # slow the second time
    ],
)
def test_only_a_head_that_comes_in_time_is_answered(
    pieces: list[bytes], every: float, answered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "_PATIENCE", PAUSE)
    with asyncio.Runner(loop_factory=Jumping) as runner:
        assert runner.run(read(pieces, every)).count(b"200 OK") == answered
