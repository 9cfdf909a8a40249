"""What a respondent sends to a collector, what a collector sends, and what a browser sends to the local page."""

from __future__ import annotations

import asyncio
import hashlib
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from starlette.exceptions import HTTPException
from starlette.requests import Request

from sfumato.core.distributions.domains import Integers, Labels
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.documents import plain
from sfumato.survey import client
from sfumato.survey.app import Collector, DashboardAccess, client_of, host_of, parse_body
from sfumato.survey.client import KeptAnswers
from sfumato.survey.options import CollectorSettings
from sfumato.survey.questions import Question, Survey, check_token
from sfumato.survey.store import SubmissionResult, read_survey_document
from sfumato.web.visit import Choices, parse_choices, safe_name
from tests.fuzz.fuzzing import Parser
from tests.fuzz.inputs import as_file, as_json, as_text

__all__ = ["COLLECTORS"]

_TOKEN_KEY = bytes(32)


@cache
def _survey() -> Survey:
    keep = {"name": "keep-or-replace", "keep": 0.75}
    return Survey(
        (
            Question("smokes", NoiseSpec(Labels(("no", "yes")), keep)),
            Question("age", NoiseSpec(Integers(0, 99), {"name": "laplace", "scale": 2.5})),
        )
    )


def _fetched(data: bytes) -> Survey:
    return Survey.from_document(client._document(data))


def _answer(data: bytes) -> Any:
    """Take an answer as the collector does, up to where it is stored."""
    collector = Collector.__new__(Collector)
    collector._key, collector._survey = _TOKEN_KEY, _survey()
    return collector._submission(parse_body(data))


def _request(data: bytes) -> Any:
    """Take headers as the collector does, one a line, the address of the client first."""
    first, *lines = data.split(b"\n")
    headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
    request = Request({"type": "http", "headers": headers, "client": (first.decode("latin-1"), 1), "scheme": "http"})
    return client_of(request), host_of(request), DashboardAccess("secret").allows(request)


def _kept(path: Path) -> Any:
    return KeptAnswers(path.parent).of("token")


class _Stored:
    """A store that takes every answer."""

    key = _TOKEN_KEY

    async def add(self, _submission: Any) -> SubmissionResult:
        return SubmissionResult.NEW


@cache
def _collector() -> tuple[Collector, asyncio.AbstractEventLoop]:
    log = mock.Mock()
    collector = Collector(_survey(), _Stored(), CollectorSettings(password="secret", rate=0.0), log)  # type: ignore[arg-type]
    collector._writer = _Stored()  # type: ignore[assignment]
    return collector, asyncio.new_event_loop()


def _http(data: bytes) -> Any:
    """Answer a request: method and path, headers, an empty line, and the body."""
    head, _, body = data.partition(b"\n\n")
    first, *lines = head.split(b"\n")
    method, _, path = first.decode("latin-1").partition(" ")
    headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
    scope = {"type": "http", "method": method, "path": path, "headers": headers, "client": ("x", 1), "scheme": "http"}
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        sent.append(message)

    collector, loop = _collector()
    loop.run_until_complete(collector(scope, receive, send))
    assert sent[0]["status"] < 500, sent
    return None


def _address(url: str) -> Any:
    with mock.patch.object(client, "_opener"):
        return client.Connection(url, allow_http=True).url


def _in_the_folder(name: str) -> str:
    safe = safe_name(name)
    assert Path("visit", safe).parent == Path("visit")
    assert safe_name(safe) == safe
    assert safe.isprintable()
    assert not safe.startswith(("-", "."))
    return safe


COLLECTORS: tuple[Parser, ...] = (
    Parser("token", as_text(lambda text: check_token(_TOKEN_KEY, text))),
    Parser(
        "survey",
        lambda data: Survey.from_document(client._document(data)),
        lambda survey: as_json(survey.to_document()),
    ),
    Parser("survey-in-store", read_survey_document, as_json),
    Parser("survey-address", as_text(_address)),
    Parser("http", _http),
    Parser("answer", _answer, refuses=(HTTPException,)),
    Parser("request", _request),
    Parser("kept-answer", as_file(f"{hashlib.sha256(b'token').hexdigest()[:32]}.json", _kept)),
    Parser("web-choices", lambda data: parse_choices(Choices, data), lambda choices: as_json(plain(choices))),
    Parser("web-file-name", as_text(_in_the_folder)),
)
