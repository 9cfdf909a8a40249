"""Connections of the local page on which no request comes, or not all of it: they are closed, and others are served."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

import pytest
from starlette.exceptions import HTTPException as Refusal

from sfumato.web import app

PATIENCE = 0.5
LONG = 300.0  # seconds after which a test gives up; nothing is timed
SERVE = "from sfumato.web import serve; serve(lambda url: print(url, flush=True), header_timeout={})"


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    """Address of a page with little patience."""
    with served(PATIENCE) as address:
        yield address


@contextmanager
def served(patience: float) -> Iterator[tuple[str, int]]:
    """Address of a page that runs until the block ends."""
    process = subprocess.Popen([sys.executable, "-c", SERVE.format(patience)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    url = urlsplit(process.stdout.readline().strip())
    assert url.hostname is not None
    assert url.port is not None
    yield url.hostname, url.port
    process.terminate()
    process.wait(timeout=LONG)
    process.stdout.close()


def status_of(address: tuple[str, int]) -> int:
    while True:
        connection = HTTPConnection(*address, timeout=LONG)
        try:
            connection.request("GET", "/")
            return connection.getresponse().status
        except (ConnectionError, HTTPException):
            continue  # this process was so slow that the server gave up
        finally:
            connection.close()


@pytest.mark.parametrize(
    "sent",
    [b"", b"G", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: a"],
    ids=["nothing", "a letter", "a line", "half a header"],
)
def test_three_hundred_half_open_connections_are_closed_and_keep_nobody_out(
    sent: bytes, address: tuple[str, int]
) -> None:
    with ExitStack() as stack:
        opened = [stack.enter_context(socket.create_connection(address, timeout=LONG)) for _ in range(300)]
        for connection in opened:
            connection.sendall(sent)
        assert status_of(address) == 403  # the page has a token, and is answered
        assert [connection.recv(1) for connection in opened] == [b""] * 300


def test_a_connection_that_is_idle_after_an_answer_is_closed(address: tuple[str, int]) -> None:
    received = b""
    while not received:
        with socket.create_connection(address, timeout=LONG) as connection:
            connection.sendall(f"GET / HTTP/1.1\r\nhost: {address[0]}:{address[1]}\r\n\r\n".encode())
            while part := connection.recv(1 << 16):  # until the server ends it
                received += part
    assert received.startswith(b"HTTP/1.1 403")


def test_connections_beyond_the_most_are_told_so() -> None:
    with served(LONG) as address, ExitStack() as stack:
        opened = [stack.enter_context(socket.create_connection(address, timeout=LONG)) for _ in range(500)]
        assert status_of(address) == 503
        for connection in opened:
            connection.close()
        while status_of(address) == 503:  # until the ends of the others were seen
            pass


def test_a_file_that_stops_coming_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "_PATIENCE", 0.05)

    async def begun() -> AsyncIterator[bytes]:
        yield b"age,sex\n"
        await asyncio.Event().wait()

    async def take() -> list[bytes]:
        return [chunk async for chunk in app._in_time(begun())]

    with pytest.raises(Refusal, match="upload stopped") as refused:
        asyncio.run(take())
    assert refused.value.status_code == 408
