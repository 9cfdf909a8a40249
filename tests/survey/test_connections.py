"""Connections on which no request comes, and too many from one address: they are closed, and others are not."""

from __future__ import annotations

import asyncio
import resource
import selectors
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from sfumato.core.connections import OpenConnections, guarded_protocol, watched
from sfumato.survey import server
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


async def read(pieces: list[bytes], every: float, tls: ssl.SSLContext | None = None) -> bytes:
    """Send pieces with pauses between them and give all that comes back until the end."""
    config = uvicorn.Config(watched(app), lifespan="off", log_config=None, timeout_keep_alive=1, server_header=False)
    config.load()
    state, loop = ServerState(), asyncio.get_running_loop()
    make = guarded_protocol(OpenConnections(10), tls, PAUSE)
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
        ([b"".join(HEAD), b"".join(HEAD)], 3 * PAUSE, 2),
        ([b"".join(HEAD), b"GET / HTTP/1.1\r\n", *[b"a: b\r\n"] * 12], PAUSE / 4, 1),  # slow the second time
    ],
)
def test_only_a_head_that_comes_in_time_is_answered(pieces: list[bytes], every: float, answered: int) -> None:
    with asyncio.Runner(loop_factory=Jumping) as runner:
        assert runner.run(read(pieces, every)).count(b"200 OK") == answered


def test_hands_that_are_not_shaken_in_time_are_let_go(certificate: tuple[Path, Path]) -> None:
    context = server.ListenAddress(certificate=certificate[0], key=certificate[1]).tls_context()
    with asyncio.Runner(loop_factory=Jumping) as runner:
        for pieces in ([], [b"\x16\x03\x01"], [b"GET / HTTP/1.1\r\n\r\n"]):  # nothing, a beginning, no TLS at all
            began = runner.get_loop().time()
            assert b"200 OK" not in runner.run(read(pieces, 0.0, context))
            assert runner.get_loop().time() - began < 10 * PAUSE


def test_over_tls_silent_connections_of_one_address_do_not_shut_out_another(
    certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    cert, key = map(str, certificate)
    options = ("--rate", "0", "--connections", "5", "--tls-cert", cert, "--tls-key", key)
    trusting = ssl.create_default_context(cafile=cert)
    with collector(str(tmp_path / "survey.db"), tmp_path, *options) as running, ExitStack() as idle:
        for _ in range(40):
            idle.enter_context(socket.create_connection(("127.0.0.1", running.port), timeout=300))
        assert running_from("127.0.0.2", running.port, trusting) == 200
        with pytest.raises(OSError, match=r"(?i)reset|EOF|broken pipe"):  # closed before hands are shaken
            running_from("127.0.0.1", running.port, trusting)


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


@pytest.mark.slow
@pytest.mark.usefixtures("few_files")
def test_over_tls_more_silent_connections_than_open_files_keep_nobody_out(
    certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    cert, key = map(str, certificate)
    trusting = ssl.create_default_context(cafile=cert)
    options = ("--rate", "0", "--tls-cert", cert, "--tls-key", key)
    with collector(str(tmp_path / "survey.db"), tmp_path, *options) as running, ExitStack() as slow:
        for _ in range(1_100):
            begin_slowly(slow, "127.0.0.2", running.port, b"")
        assert [running_from("127.0.0.1", running.port, trusting) for _ in range(20)] == [200] * 20


def begin_slowly(stack: ExitStack, address: str, port: int, data: bytes) -> None:
    connection = socket.create_connection(("127.0.0.1", port), timeout=300, source_address=(address, 0))
    stack.enter_context(connection).sendall(data)


def test_one_address_does_not_shut_out_another(tmp_path: Path) -> None:
    idle = []
    try:
        with collector(str(tmp_path / "survey.db"), tmp_path, "--rate", "0", "--connections", "5") as running:
            for _ in range(5):
                idle.append(socket.create_connection(("127.0.0.1", running.port), timeout=300))
                assert running_from("127.0.0.2", running.port) == 200
            assert running_from("127.0.0.1", running.port) == 429
            idle.pop().close()
            while running_from("127.0.0.1", running.port) == 429:  # until the end of the other was seen
                time.sleep(0.02)
            assert running_from("127.0.0.1", running.port) == 200
    finally:
        for each in idle:
            each.close()


@pytest.mark.parametrize(("files", "each"), [(1024, 462), (20_000, 1_000), (-1, 1_000), (150, 50)])
def test_one_address_has_at_most_half_of_what_open_files_allow(
    files: int, each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    assert server.connections_of_one(1_000) == each
    assert server.connections_of_one(5) == 5


def running_from(address: str, port: int, tls: ssl.SSLContext | None = None) -> int:
    kind = HTTPConnection if tls is None else partial(HTTPSConnection, context=tls)
    connection = kind("127.0.0.1", port, timeout=300, source_address=(address, 0))
    connection.request("GET", "/health")
    status = connection.getresponse().status
    connection.close()
    return status


def test_connections_are_counted_by_address_or_network_and_those_of_a_proxy_are_not() -> None:
    connections = OpenConnections(2, "10.0.0.0/8")
    assert [connections.enter("192.0.2.1") for _ in range(3)] == [True, True, False]
    connections.leave("192.0.2.1")
    connections.leave("192.0.2.1")
    assert connections.enter("192.0.2.1")
    assert [connections.enter(f"2001:db8::{each}") for each in range(3)] == [True, True, False]
    assert all(connections.enter("10.1.2.3") for _ in range(10))
    for _ in range(10):
        connections.leave("10.1.2.3")
    assert "10.1.2.3" not in connections._open


def test_connections_of_all_addresses_together_are_limited() -> None:
    connections = OpenConnections(2, "10.0.0.0/8", in_all=3)
    assert [connections.enter(f"10.0.0.{each}") for each in range(4)] == [True, True, True, False]
    connections.leave("10.0.0.3")
    assert not connections.enter("192.0.2.1")
    connections.leave("10.0.0.2")
    connections.leave("192.0.2.1")
    assert connections.enter("192.0.2.1")
