"""The engine's ways: what goes in at one end comes out at the other, and only computing parties have them."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from sfumato.parties.network import NetworkChannel
from sfumato.parties.peers import NetworkSettings
from sfumato.parties.relay import EngineRelay
from tests.parties.meetings import make_places

Pair = list[tuple[NetworkChannel, EngineRelay | None]]


def at(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


@contextmanager
def tunnels(places: list[NetworkSettings], computing: tuple[int, ...]) -> Iterator[Pair]:
    """Connect all parties and open the ways of those who compute."""
    channels: dict[int, NetworkChannel] = {}
    threads = [
        threading.Thread(target=lambda place=place: channels.update({place.rank: NetworkChannel.connect(place)}))
        for place in places
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    try:
        yield [
            (channels[place.rank], channels[place.rank].open_relay(computing) if place.rank in computing else None)
            for place in places
        ]
    finally:
        for channel in channels.values():
            channel.close()


def read_all(end: socket.socket) -> bytes:
    parts = []
    while part := end.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


@contextmanager
def listening(address: str) -> Iterator[socket.socket]:
    with socket.create_server(at(address)) as server:
        server.settimeout(300)
        yield server


def test_bytes_pass_both_ways_and_each_end_may_stop_first(tmp_path: Path) -> None:
    there, back = os.urandom(3_000_000), os.urandom(700_000)
    with tunnels(make_places(tmp_path, ("ann", "ben")), (0, 1)) as [(_, first), (_, second)]:
        assert first is not None
        assert second is not None
        with listening(second.addresses[1]) as engine, socket.create_connection(at(first.addresses[1])) as caller:
            caller.settimeout(300)
            answered, _ = engine.accept()
            got: dict[str, bytes] = {}
            thread = threading.Thread(target=lambda: got.update(there=read_all(answered)))
            thread.start()
            caller.sendall(there)
            caller.shutdown(socket.SHUT_WR)  # no more this way, the other stays open
            thread.join(300)
            assert got["there"] == there
            answered.sendall(back)
            answered.close()
            assert read_all(caller) == back
        assert first.sent == len(there)
        assert second.sent == len(back)
        assert all(address.startswith("127.0.0.1:") for address in first.addresses + second.addresses)


def test_many_connections_at_once_stay_apart(tmp_path: Path) -> None:
    with tunnels(make_places(tmp_path, ("ann", "ben")), (0, 1)) as [(_, first), (_, second)]:
        assert first is not None
        assert second is not None
        with listening(first.addresses[0]) as engine:

            def echo(end: socket.socket) -> None:
                with end:
                    end.sendall(hashlib.sha256(read_all(end)).digest())

            def serve() -> None:
                for _ in range(12):
                    threading.Thread(target=echo, args=(engine.accept()[0],)).start()

            threading.Thread(target=serve).start()
            texts = [os.urandom(50_000) for _ in range(12)]
            callers = [socket.create_connection(at(second.addresses[0])) for _ in texts]
            for caller, text in zip(callers, texts, strict=True):
                caller.settimeout(300)
                caller.sendall(text)
                caller.shutdown(socket.SHUT_WR)
            for caller, text in zip(callers, texts, strict=True):
                assert read_all(caller) == hashlib.sha256(text).digest()
                caller.close()


def test_an_engine_may_start_later_than_its_caller(tmp_path: Path) -> None:
    with tunnels(make_places(tmp_path, ("ann", "ben")), (0, 1)) as [(_, first), (_, second)]:
        assert first is not None
        assert second is not None
        with socket.create_connection(at(first.addresses[1])) as caller:
            caller.sendall(b"early")
            time.sleep(0.5)
            with listening(second.addresses[1]) as engine:
                answered, _ = engine.accept()
                with answered:
                    assert answered.recv(5) == b"early"


def test_a_slow_reader_slows_the_sender_down(tmp_path: Path) -> None:
    with tunnels(make_places(tmp_path, ("ann", "ben")), (0, 1)) as [(_, first), (_, second)]:
        assert first is not None
        assert second is not None
        with listening(second.addresses[1]) as engine, socket.create_connection(at(first.addresses[1])) as caller:
            answered, _ = engine.accept()
            caller.settimeout(1.0)
            taken = 0
            with suppress(TimeoutError):
                while taken < 256 << 20:
                    taken += caller.send(bytes(1 << 20))
            assert taken < 64 << 20  # nobody reads: what is on its way is bounded
            answered.close()


def test_the_end_of_one_engine_ends_the_connection_of_the_other(tmp_path: Path) -> None:
    with tunnels(make_places(tmp_path, ("ann", "ben")), (0, 1)) as [(_, first), (_, second)]:
        assert first is not None
        assert second is not None
        with listening(second.addresses[1]) as engine, socket.create_connection(at(first.addresses[1])) as caller:
            caller.settimeout(300)
            caller.sendall(b"x")
            answered, _ = engine.accept()
            answered.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            answered.close()  # a reset, as when a process is killed
            try:
                ended = read_all(caller) == b""
            except ConnectionResetError:
                ended = True
            assert ended


def test_one_that_does_not_compute_gets_no_way(tmp_path: Path) -> None:
    places = make_places(tmp_path)
    with tunnels(places, (0, 2)) as [(_, first), (helper, none), (_, last)]:
        assert none is None
        assert first is not None
        assert last is not None
        with pytest.raises(ValueError, match="computes"):
            helper.open_relay((0, 2))
        assert len(first.addresses) == 2
        pushy = helper.open_relay((0, 1, 2))  # it says that it computes; the others know better
        with listening(first.addresses[0]) as engine:
            engine.settimeout(1.0)
            with socket.create_connection(at(pushy.addresses[0])) as caller:
                caller.settimeout(300)
                caller.sendall(b"let me in")
                with suppress(ConnectionResetError):
                    assert caller.recv(1) == b""
                with pytest.raises(TimeoutError):
                    engine.accept()


def test_closing_the_channel_closes_the_ways(tmp_path: Path) -> None:
    with tunnels(make_places(tmp_path, ("ann", "ben")), (0, 1)) as [(channel, first), _]:
        assert first is not None
        near = at(first.addresses[1])
        channel.close()
        with pytest.raises(OSError):  # noqa: PT011 (refused or reset, as the system likes)
            socket.create_connection(near, timeout=2).sendall(b"x" * 100_000)
