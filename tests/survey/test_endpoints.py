"""The collector as a process: what it takes, what it refuses, what it says and what it does not."""

from __future__ import annotations

import json
import re
import socket
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sfumato.survey.store import AnswerStore
from tests.survey.process import Running, collector, tokens


def stored(folder: Path) -> int:
    store = AnswerStore.open(str(folder / "survey.db"), create=False)
    count, _ = store.counts()
    store.close()
    return count


def test_a_token_counts_once(running: Running, unused: Iterator[str], folder: Path) -> None:
    token, before = next(unused), stored(folder)
    assert running.answer(token, answer=17) == 200
    assert running.answer(token, answer=17) == 200
    assert running.answer(token, answer=18) == 409
    assert stored(folder) == before + 1


def test_a_retry_is_told_that_it_is_one(running: Running, unused: Iterator[str]) -> None:
    body = {"token": next(unused), "digest": running.digest, "answers": {"answer": 3}}
    replies = [json.loads(running.call("POST", "/api/answer", body)[2]) for _ in range(2)]
    assert replies == [{"accepted": True, "again": False}, {"accepted": True, "again": True}]


def bodies(token: str, digest: str) -> dict[str, tuple[int, Any]]:
    good = {"token": token, "digest": digest, "answers": {"answer": 3}}
    return {
        "not JSON": (400, b"answer=3"),
        "no end of brackets": (400, b"[" * 10_000),
        "no UTF-8": (400, b'{"token": "\xff"}'),
        "a number that is none": (400, b'{"token": "x", "digest": "y", "answers": {"answer": NaN}}'),
        "an endless number": (400, b'{"token": "x", "digest": "y", "answers": {"answer": ' + b"9" * 6000 + b"}}"),
        "a key twice": (400, b'{"token": "x", "token": "y"}'),
        "a list": (400, [good]),
        "nothing": (400, b""),
        "no digest": (422, {"token": token, "answers": {"answer": 3}}),
        "one key more": (422, {**good, "name": "Anna"}),
        "answers in a list": (422, {**good, "answers": [3]}),
        "another specification": (422, {**good, "digest": "0" * 64}),
        "an impossible value": (422, {**good, "answers": {"answer": 101}}),
        "a text for a number": (422, {**good, "answers": {"answer": "3"}}),
        "true for a number": (422, {**good, "answers": {"answer": True}}),
        "a huge number": (422, {**good, "answers": {"answer": 10**300}}),
        "an unknown question": (422, {**good, "answers": {"answer": 3, "name": 4}}),
        "no token of ours": (401, {**good, "token": "A" * 43}),
        "a token that is no text": (422, {**good, "token": 7}),
        "too long": (413, {**good, "answers": {"answer": "x" * 20_000}}),
    }


@pytest.mark.parametrize("case", list(bodies("", "")))
def test_a_bad_body_is_refused_with_one_sentence(
    case: str, running: Running, unused: Iterator[str], folder: Path
) -> None:
    status, body = bodies(next(unused), running.digest)[case]
    before = stored(folder)
    found, headers, text = running.call("POST", "/api/answer", body)
    assert found == status
    words = json.loads(text)["error"]
    assert re.fullmatch(r"[^\n]{10,200}", words)
    assert "Anna" not in words
    assert headers["content-type"] == "application/json"
    assert stored(folder) == before


def test_a_body_without_a_length_is_cut_off_at_the_limit(running: Running) -> None:
    with socket.create_connection(("127.0.0.1", running.port), timeout=300) as connection:
        connection.sendall(
            b"POST /api/answer HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"transfer-encoding: chunked\r\n\r\n"
        )
        chunk = b"1000\r\n" + b" " * 4096 + b"\r\n"
        try:
            for _ in range(200):
                connection.sendall(chunk)
        except OSError:
            pass  # it was cut off while we were sending
        assert b" 413 " in connection.recv(200)


def test_a_length_of_thousands_of_digits_is_refused(running: Running) -> None:
    with socket.create_connection(("127.0.0.1", running.port), timeout=300) as connection:
        head = b"POST /api/answer HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: "
        connection.sendall(head + b"9" * 5000 + b"\r\n\r\n")
        assert b" 400 " in connection.recv(200)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/static/../app.py", 404),
        ("GET", "/static/", 404),
        ("POST", "/", 405),
        ("GET", "/api/answer", 405),
        ("DELETE", "/api/answer", 405),
        ("GET", "/dashboard", 200),
        ("GET", "/dashboard/estimate", 401),
        ("HEAD", "/", 200),
        ("GET", "/health", 200),
        ("GET", "/api/survey", 200),
    ],
)
def test_addresses_and_methods(method: str, path: str, status: int, running: Running) -> None:
    assert running.call(method, path)[0] == status


def test_headers_without_end_are_cut_off(running: Running) -> None:
    with socket.create_connection(("127.0.0.1", running.port), timeout=300) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n")
        header = b"x: " + b"y" * 10_000 + b"\r\n"
        with pytest.raises(OSError, match=r"(?i)broken|reset"):
            deque(map(connection.sendall, [header] * 2000), 0)


def test_a_form_of_another_page_is_not_taken(running: Running, unused: Iterator[str]) -> None:
    body = json.dumps({"token": next(unused), "digest": running.digest, "answers": {"answer": 3}}).encode()
    assert running.call("POST", "/api/answer", body, content_type="text/plain")[0] == 415
    for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200)):
        assert running.call("POST", "/api/answer", body, sec_fetch_site=site)[0] == status


@pytest.mark.parametrize("path", ["/", "/api/survey", "/dashboard", "/health"])
def test_on_its_own_machine_it_answers_to_its_own_names_only(path: str, running: Running) -> None:
    names = {"evil.example": 421, "localhost.evil.example:80": 421, "LOCALHOST:1": 200, "[::1]:1": 200}
    for name, status in names.items():
        assert running.call("GET", path, host=name)[0] == status


@pytest.mark.parametrize("path", ["/", "/api/survey", "/nothing", "/static/law.js", "/dashboard"])
def test_every_response_forbids_what_is_not_needed(path: str, running: Running) -> None:
    headers = running.call("GET", path)[1]
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers


def test_the_dashboard_opens_with_the_password_only(running: Running) -> None:
    status, headers, _ = running.call("POST", "/dashboard/login", {"password": running.password})
    cookie = headers["set-cookie"]
    assert status == 200
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert running.password not in cookie
    session = cookie.partition(";")[0]
    assert b'id="count"' in running.call("GET", "/dashboard", cookie=session)[2]
    assert b'id="password"' in running.call("GET", "/dashboard")[2]
    found, _, text = running.call("GET", "/dashboard/estimate", cookie=session)
    assert found == 200
    assert json.loads(text)["at_least"] == 50
    assert running.call("GET", "/dashboard/estimate", cookie="sfumato-dashboard=x")[0] == 401
    assert running.call("GET", "/dashboard/estimate", authorization=f"Bearer {running.password}")[0] == 200
    assert running.call("GET", "/dashboard/estimate", authorization="Bearer x")[0] == 401
    assert running.call("POST", "/dashboard/login", {"password": "\ud800"})[0] == 400


def test_the_log_is_json_without_answers_tokens_and_addresses(running: Running, unused: Iterator[str]) -> None:
    token = next(unused)
    assert running.answer(token, answer=71) == 200
    assert running.answer(token, answer=72) == 409
    assert running.call("GET", f"/secret-{token}")[0] == 404
    while '"status": 404' not in (text := running.log.read_text(encoding="utf-8")):  # it is written beside the answer
        time.sleep(0.02)
    lines = [json.loads(line) for line in text.splitlines()]
    assert {"started", "refused"} <= {line["event"] for line in lines}
    known = {"time", "event", "port", "questions", "tls", "route", "status", "milliseconds", "answers", "commits"}
    assert set().union(*lines) <= known | {"slowest_milliseconds"}
    assert {line["route"] for line in lines if "route" in line} <= {
        "/",
        "/api/answer",
        "/api/survey",
        "/dashboard",
        "/dashboard/estimate",
        "/dashboard/login",
        "/health",
        "unknown",
    }
    assert token not in text
    assert running.password not in text
    assert "127.0.0.1" not in text


def test_the_database_does_not_hold_the_token(running: Running, unused: Iterator[str], folder: Path) -> None:
    import base64

    token = next(unused)
    assert running.answer(token, answer=5) == 200
    data = b"".join(path.read_bytes() for path in folder.glob("survey.db*"))
    assert token.encode() not in data
    assert base64.urlsafe_b64decode(token + "=")[:16] not in data


def test_limits_of_rate_are_kept_by_address_and_by_token(tmp_path: Path) -> None:
    db = str(tmp_path / "survey.db")
    with collector(db, tmp_path, "--rate", "0.01") as limited:
        given = tokens(db, 30)
        assert "; Secure" not in cookie_behind_tls(limited)  # no proxy is named: nobody's word is taken
        found = [limited.answer(token, answer=1) for token in given]
        assert found[:10] == [200] * 10  # the burst
        assert 429 in found
        assert set(statuses_of_forwarded(limited)) == {429}
        status, headers, text = limited.call("POST", "/api/answer", {})
        assert status == 429
        assert int(headers["retry-after"]) >= 1
        assert "too many" in json.loads(text)["error"]
        guesses = [limited.call("POST", "/dashboard/login", {"password": "x" * 12})[0] for _ in range(12)]
        assert guesses[:4] == [401] * 4  # the fifth was the right one
        assert 429 in guesses
        right = f"Bearer {limited.password}"  # nor does it show among many guesses
        assert limited.call("GET", "/dashboard/estimate", authorization=right)[0] == 429


def statuses_of_forwarded(limited: Running) -> list[int]:
    return [limited.call("POST", "/api/answer", {}, x_forwarded_for=f"10.0.0.{each}")[0] for each in range(20)]


def cookie_behind_tls(limited: Running) -> str:
    body, forwarded = {"password": limited.password}, {"x_forwarded_proto": "https"}
    return limited.call("POST", "/dashboard/login", body, **forwarded)[1]["set-cookie"]


def test_forwarded_addresses_are_believed_of_the_named_proxy(tmp_path: Path) -> None:
    with collector(str(tmp_path / "survey.db"), tmp_path, "--rate", "0.01", "--proxy", "127.0.0.1") as limited:
        assert set(statuses_of_forwarded(limited)) == {422}
        assert "; Secure" in cookie_behind_tls(limited)


@pytest.mark.slow
def test_several_questions_are_answered_under_one_token_that_cannot_be_hammered(tmp_path: Path) -> None:
    (tmp_path / "age.toml").write_text(
        'format = 1\ndomain = { kind = "integers", low = 0, high = 9 }\nlaw = { name = "laplace", scale = 3 }\n'
    )
    (tmp_path / "smokes.toml").write_text(
        'format = 1\ndomain = { kind = "labels", values = ["no", "yes"] }\nlaw = { name = "response", epsilon = 1 }\n'
    )
    db = str(tmp_path / "survey.db")
    options = ("--spec", f"age={tmp_path / 'age.toml'}", "--spec", f"smokes={tmp_path / 'smokes.toml'}")
    with collector(db, tmp_path, "--rate", "1000", *options) as running:
        one, two, three = tokens(db, 3)
        assert running.answer(one, age=-4, smokes="yes") == 200
        assert running.answer(one, age=-4, smokes="no") == 409
        assert running.answer(two, age=3) == 422
        assert running.answer(two, age=3, smokes="yes") == 200
        found = [running.answer(three, age=5, smokes="no") for _ in range(15)]
        assert found[:10] == [200] * 10
        assert 429 in found
    store = AnswerStore.open(db)
    assert store.counts() == (3, {0: {-4: 1, 3: 1, 5: 1}, 1: {0: 1, 1: 2}})
    store.close()


@pytest.mark.slow
def test_the_same_database_is_not_served_with_another_specification(running: Running, folder: Path) -> None:
    other = 'format = 1\ndomain = { kind = "integers", low = 0, high = 9 }\nlaw = { name = "laplace", scale = 3 }\n'
    elsewhere = folder / "other"
    elsewhere.mkdir()
    with (
        pytest.raises(AssertionError, match="another specification"),
        collector(str(folder / "survey.db"), elsewhere, spec=other),
    ):
        pass
