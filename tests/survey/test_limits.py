"""Rate limits."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from pathlib import Path

import pytest

from sfumato.core.connections import network_of
from sfumato.survey import server
from sfumato.survey.server import RateLimit
from tests.survey.process import collector


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_is_let_through_and_then_the_rate() -> None:
    clock = Clock()
    limit = RateLimit(2.0, 5, clock=clock)
    assert [limit.wait_for("a") for _ in range(5)] == [0.0] * 5
    assert limit.wait_for("a") == pytest.approx(0.5)
    clock.now = 0.5
    assert limit.wait_for("a") == 0.0
    assert limit.wait_for("a") > 0.0


def test_waiting_clients_are_let_through_at_the_rate_for_ever() -> None:
    clock = Clock()
    limit = RateLimit(10.0, 20, clock=clock)
    let = 0
    for step in range(100_000):
        clock.now = step / 1000.0
        let += limit.wait_for("a") == 0.0
    assert 1000 <= let <= 1021


def test_clients_do_not_share_and_a_rate_of_zero_is_no_limit() -> None:
    limit = RateLimit(1.0, 1, clock=Clock())
    assert [limit.wait_for(each) for each in "abc"] == [0.0] * 3
    free = RateLimit(0.0, 1, clock=Clock())
    assert {free.wait_for("a") for _ in range(100)} == {0.0}


def test_the_memory_for_clients_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_MOST", 10)
    limit = RateLimit(1.0, 1, clock=Clock())
    for each in range(100):
        limit.wait_for(each)
    assert len(limit._full_at) == 10


def test_looking_does_not_count() -> None:
    limit = RateLimit(1.0, 1, clock=Clock())
    assert [limit.would_wait("a") for _ in range(5)] == [0.0] * 5
    assert limit.wait_for("a") == 0.0
    assert limit.would_wait("a") == limit.would_wait("a") > 0.0
    assert RateLimit(0.0, 1).would_wait("a") == 0.0


def test_the_addresses_of_one_network_are_one_client_and_those_of_two_are_two() -> None:
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:1:2:3%eth0")
    assert network_of("2001:db8::1") != network_of("2001:db8:0:1::1")
    assert network_of("::ffff:192.0.2.1") == network_of("192.0.2.1") != network_of("::ffff:192.0.2.2")
    assert network_of("") == ""


@pytest.mark.parametrize("size", [20_000, 5_000_000, 20_000_000])
def test_a_client_that_sends_too_much_can_read_why(size: int, tmp_path: Path) -> None:
    with collector(str(tmp_path / "survey.db"), tmp_path, "--rate", "0") as running:
        status, headers, body = running.call("POST", "/api/answer", b"{" + b" " * size)
        assert (status, headers["content-type"]) == (413, "application/json")
        assert json.loads(body) == {"error": "the body is longer than 16384 bytes; send only the answer"}
        connection = HTTPConnection("127.0.0.1", running.port, timeout=300)
        pieces = iter([b" " * 65_536] * (size // 65_536 + 1))  # no length is announced
        connection.request("POST", "/api/answer", pieces, {"content-type": "application/json"}, encode_chunked=True)
        assert connection.getresponse().status == 413
        connection.close()
