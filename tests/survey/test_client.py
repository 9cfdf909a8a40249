"""The respondent's client: checks first, keeps what it drew, sends the same again, trusts no wrong certificate."""

from __future__ import annotations

import json
import socket
import ssl
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.core.distributions.domains import Integers, Labels
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.errors import BadInput, OptionError, PrivacyRefusal, SchemaError, SfumatoError
from sfumato.survey import Connection, KeptAnswers, NotSent, Question, Survey, answer_survey, check_survey, client
from sfumato.survey.store import AnswerStore
from tests.survey.process import Running, collector, tokens

AGE = NoiseSpec(Integers(0, 100), {"name": "keep-or-replace", "keep": 0.5})
SURVEY = Survey((Question("answer", AGE),))
TOKEN = "t" * 43


class Server:
    """A server that answers as instructed and keeps what it was sent."""

    def __init__(self) -> None:
        self.survey: Any = SURVEY.to_document()
        self.replies: list[tuple[int, bytes]] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.reply(200, json.dumps(outer.survey).encode())

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.bodies.append(json.loads(body))
                outer.headers.append(dict(self.headers.items()))
                self.reply(*(outer.replies.pop(0) if outer.replies else (200, b'{"accepted": true, "again": false}')))

            def reply(self, status: int, body: bytes) -> None:
                if status == 0:
                    self.close_connection = True
                    return
                self.send_response(status)
                if status in (301, 302, 307):
                    self.send_header("location", "/elsewhere")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    def stop(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    started = Server()
    yield started
    started.stop()


@pytest.fixture
def kept(tmp_path: Path) -> KeptAnswers:
    return KeptAnswers(tmp_path / "kept")


def test_an_answer_reaches_a_real_collector_once(running: Running, unused: Iterator[str], kept: KeptAnswers) -> None:
    token, connection = next(unused), Connection(running.url)
    first = answer_survey(connection, token, {"answer": 40}, kept=kept)
    second = answer_survey(connection, token, {"answer": 70}, kept=kept)
    assert (first.again, second.again) == (False, True)
    assert first.answers == second.answers


def both_at_once(*calls: Callable[[], Any]) -> list[Any]:
    """Results of calls that begin in the same instant."""
    ready = threading.Barrier(len(calls))

    def call(what: Callable[[], Any]) -> Any:
        ready.wait()
        return what()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [each.result() for each in [pool.submit(call, what) for what in calls]]


def test_two_clients_in_the_same_instant_draw_once_for_a_token(
    server: Server, kept: KeptAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    meeting, randomize = threading.Barrier(2), client._randomize

    def drawn_together(*told: Any) -> dict[str, Any]:
        with suppress(threading.BrokenBarrierError):
            meeting.wait(timeout=0.3)  # both would come here if each drew an answer of its own
        return randomize(*told)

    monkeypatch.setattr(client, "_randomize", drawn_together)
    send = partial(answer_survey, Connection(server.url), TOKEN, {"answer": 40}, kept=kept)
    first, second = both_at_once(send, send)
    assert meeting.broken
    assert first.answers == second.answers == server.bodies[0]["answers"] == server.bodies[1]["answers"]


def test_two_persons_in_the_same_instant_are_each_counted_once(
    running: Running, unused: Iterator[str], tmp_path: Path, folder: Path
) -> None:
    store = AnswerStore.open(str(folder / "survey.db"), create=False)
    before = store.counts()[0]
    mine, other = (
        partial(answer_survey, Connection(running.url), next(unused), {"answer": 40}, kept=KeptAnswers(tmp_path / name))
        for name in ("mine", "other")
    )
    found = both_at_once(mine, other, mine, other)
    assert sorted(each.again for each in found) == [False, False, True, True]
    assert store.counts()[0] == before + 2
    store.close()


@pytest.mark.parametrize("broken", [(0, b""), (500, b"oops"), (503, b'{"error": "later"}'), (200, b"{}"), (307, b"{}")])
def test_a_retry_sends_the_same_whatever_happened(broken: tuple[int, bytes], server: Server, kept: KeptAnswers) -> None:
    connection = Connection(server.url)
    server.replies = [broken] * 10
    for age in range(10):
        with pytest.raises((NotSent, BadInput)):
            answer_survey(connection, TOKEN, {"answer": age}, kept=kept)
    answer_survey(connection, TOKEN, {"answer": 99}, kept=kept)
    assert len(server.bodies) == 11
    assert {json.dumps(body) for body in server.bodies} == {json.dumps(server.bodies[0])}


def test_the_answer_is_on_disk_before_it_is_sent_and_the_truth_never(server: Server, tmp_path: Path) -> None:
    kept = KeptAnswers(tmp_path / "kept")
    server.replies = [(500, b"{}")]
    spec = NoiseSpec(Labels(("true-answer", "a", "b", "c")), {"name": "keep-or-replace", "keep": 0.0})
    server.survey = Survey((Question("answer", spec),)).to_document()
    with pytest.raises(NotSent):
        answer_survey(Connection(server.url), TOKEN, {"answer": "true-answer"}, kept=kept)
    (path,) = (tmp_path / "kept").iterdir()
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["answers"] == server.bodies[0]["answers"]
    assert document["accepted"] is False
    assert "true-answer" not in path.read_text(encoding="utf-8")
    assert "true-answer" not in json.dumps([server.bodies, server.headers])
    assert TOKEN not in path.name + path.read_text(encoding="utf-8")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "kept").stat().st_mode) == 0o700


@pytest.mark.slow
def test_what_is_sent_follows_the_law(server: Server, tmp_path: Path) -> None:
    connection, truth, count = Connection(server.url), 17, 100
    for number in range(count):
        answer_survey(
            connection, f"{number:043d}", {"answer": truth}, survey=SURVEY, kept=KeptAnswers(tmp_path / str(number))
        )
    sent = np.array([body["answers"]["answer"] for body in server.bodies])
    kept_true = int((sent == truth).sum())  # binomial(100, 1/2): 7.5 deviations are beyond 10^-12
    assert abs(kept_true - count / 2) < 7.5 * np.sqrt(count / 4)
    assert len(set(sent.tolist())) > 20


def test_a_changed_specification_gets_no_second_draw(server: Server, kept: KeptAnswers) -> None:
    connection = Connection(server.url)
    answer_survey(connection, TOKEN, {"answer": 5}, kept=kept)
    other = NoiseSpec(Integers(0, 100), {"name": "keep-or-replace", "keep": 0.51})
    server.survey = Survey((Question("answer", other),)).to_document()
    with pytest.raises(PrivacyRefusal, match="has changed"):
        answer_survey(connection, TOKEN, {"answer": 5}, kept=kept)
    assert len(server.bodies) == 1


def test_another_token_of_the_same_person_is_refused(server: Server, kept: KeptAnswers) -> None:
    connection = Connection(server.url)
    answer_survey(connection, TOKEN, {"answer": 5}, kept=kept)
    with pytest.raises(PrivacyRefusal, match="another token"):
        answer_survey(connection, "u" * 43, {"answer": 5}, kept=kept)
    answer_survey(connection, "u" * 43, {"answer": 5}, kept=kept, other_person=True)
    assert len(server.bodies) == 2


def test_another_survey_of_the_same_specification_is_another_survey(server: Server, kept: KeptAnswers) -> None:
    other = Server()
    answer_survey(Connection(server.url), TOKEN, {"answer": 5}, kept=kept)
    answer_survey(Connection(other.url), "u" * 43, {"answer": 5}, kept=kept)
    other.stop()
    assert len(server.bodies) == len(other.bodies) == 1


def test_the_answer_of_a_mistyped_token_goes_under_the_right_one(server: Server, kept: KeptAnswers) -> None:
    connection = Connection(server.url)
    server.replies = [(401, b'{"error": "this is not a token"}')]
    with pytest.raises(NotSent, match="not a token"):
        answer_survey(connection, "x" * 43, {"answer": 5}, kept=kept)
    answer_survey(connection, TOKEN, {"answer": 5}, kept=kept)
    first, second = server.bodies
    assert first["answers"] == second["answers"]
    assert kept.of("x" * 43) is None


def test_the_answer_of_a_mistyped_token_is_not_taken_for_another_persons(server: Server, kept: KeptAnswers) -> None:
    connection = Connection(server.url)
    sure = NoiseSpec(Integers(0, 100), {"name": "keep-or-replace", "keep": 1.0})
    server.survey = Survey((Question("answer", sure),)).to_document()
    server.replies = [(401, b"{}")]
    with pytest.raises(NotSent):
        answer_survey(connection, "x" * 43, {"answer": 5}, kept=kept)
    answer_survey(connection, TOKEN, {"answer": 6}, kept=kept, other_person=True)
    assert [body["answers"] for body in server.bodies] == [{"answer": 5}, {"answer": 6}]


def test_a_damaged_kept_answer_gets_no_second_draw(server: Server, tmp_path: Path, kept: KeptAnswers) -> None:
    connection = Connection(server.url)
    answer_survey(connection, TOKEN, {"answer": 5}, kept=kept)
    next((tmp_path / "kept").iterdir()).write_text("{")
    with pytest.raises(BadInput, match="restore the file"):
        answer_survey(connection, TOKEN, {"answer": 5}, kept=kept)


def test_what_cannot_be_kept_is_not_sent(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SfumatoError, match="nothing was sent"):
        answer_survey(Connection(server.url), TOKEN, {"answer": 5}, kept=KeptAnswers(tmp_path / "file" / "kept"))
    assert server.bodies == []


@pytest.mark.parametrize("value", ["abc", "5.5", "101", "-1", "", "nan"])
def test_a_value_outside_the_domain_is_refused_unquoted(value: str, server: Server, kept: KeptAnswers) -> None:
    with pytest.raises(SchemaError) as refusal:
        answer_survey(Connection(server.url), TOKEN, {"answer": value}, kept=kept)
    assert len(value) < 3 or value not in str(refusal.value)
    assert server.bodies == []


def test_checks_refuse_another_digest_and_too_weak_a_bound() -> None:
    check_survey(SURVEY, digest=SURVEY.digest.upper(), rho1=0.1, max_rho2=0.95)
    with pytest.raises(PrivacyRefusal, match="not the expected one"):
        check_survey(SURVEY, digest="0" * 64)
    with pytest.raises(PrivacyRefusal, match=r"91\.7 % likely"):
        check_survey(SURVEY, rho1=0.1, max_rho2=0.5)
    proving = Survey((Question("answer", NoiseSpec(Integers(0, 100), {"name": "uniform", "reach": 50})),))
    with pytest.raises(PrivacyRefusal, match=r"100\.0 % likely"):
        check_survey(proving, max_rho2=0.99)


def test_a_lying_server_is_found_out(server: Server) -> None:
    server.survey = {**SURVEY.to_document(), "digest": "0" * 64}
    with pytest.raises(BadInput, match="do not answer it"):
        Connection(server.url).survey()


@pytest.mark.parametrize(
    "url", ["", "survey.example", "ftp://survey.example/", "http:///x", "https://[", "http://h:x/", "https://h /"]
)
def test_an_address_must_be_one(url: str) -> None:
    with pytest.raises(OptionError, match="not an address"):
        Connection(url)


def test_an_unprotected_address_of_another_machine_is_refused() -> None:
    with pytest.raises(PrivacyRefusal, match="not protected"):
        Connection("http://survey.example/")
    Connection("http://survey.example/", allow_http=True)
    Connection("https://survey.example/")


def test_a_server_that_is_not_there_is_said() -> None:
    with pytest.raises(NotSent, match="cannot be reached"):
        Connection("http://127.0.0.1:9/").survey()


@pytest.mark.parametrize(
    "said", [b"no HTTP\r\n\r\n", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", b""]
)
def test_a_server_that_does_not_speak_http_is_told_in_one_sentence(said: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            connection.recv(65_536)
            connection.sendall(said)
            connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(NotSent, match=r"the connection broke|cannot be reached"):
            Connection(f"http://127.0.0.1:{listening.getsockname()[1]}/").survey()
        thread.join()


def test_tls_is_spoken_and_a_certificate_that_is_not_trusted_stops_the_client(
    certificate: tuple[Path, Path], tmp_path: Path, kept: KeptAnswers
) -> None:
    cert, key = map(str, certificate)
    db = str(tmp_path / "survey.db")
    with collector(db, tmp_path, "--tls-cert", cert, "--tls-key", key) as secure:
        assert secure.url.startswith("https://")
        token = tokens(db, 1)[0]
        with pytest.raises(NotSent, match="certificate does not hold"):
            Connection(secure.url).survey()
        trusting = Connection(secure.url, ca=certificate[0])
        assert answer_survey(trusting, token, {"answer": 3}, kept=kept).again is False
        context = ssl.create_default_context(cafile=cert)
        from http.client import HTTPSConnection

        plain = HTTPSConnection("127.0.0.1", secure.port, context=context, timeout=300)
        plain.request(
            "POST", "/dashboard/login", json.dumps({"password": secure.password}), {"content-type": "application/json"}
        )
        response = plain.getresponse()
        assert "max-age" in (response.getheader("strict-transport-security") or "")
        assert "Secure" in (response.getheader("set-cookie") or "")
        plain.close()
