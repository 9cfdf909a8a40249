"""The collector as an application of Starlette: the page, the answers, the dashboard.

Its middleware is left out, for every refusal is one sentence that is made here: an answer takes 83 microseconds of
processor time up to the store so, and took 70 as plain ASGI.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from sfumato.collect.estimate import LiveEstimate
from sfumato.collect.limits import CollectorSettings, RateLimit, network_of
from sfumato.collect.pages import Page, Pages
from sfumato.collect.store import AnswerStore, StoreError, Submission, SubmissionResult
from sfumato.collect.survey import Survey, TokenError, check_token, mark, seal
from sfumato.collect.writer import AnswerWriter, Crowded, Log
from sfumato.core import documents
from sfumato.core.errors import SchemaError

__all__ = ["Collector", "DashboardAccess", "client_of", "host_of", "parse_body"]

_KEYS = {"token", "digest", "answers"}
_OWN_PAGES = ("same-origin", "none")
_HOST = re.compile(r"\[[^\]]*\]|[^:]*")
_PATIENCE = 15.0  # seconds in which a body must have come
_LONGEST_LENGTH = 18  # digits that a content-length has at most; Python refuses to read some thousands
_COOKIE = "sfumato-dashboard"
_BEARER = "Bearer "


def _refusal(status: int, words: str, **headers: str) -> HTTPException:
    return HTTPException(status, words, {name.replace("_", "-"): value for name, value in headers.items()})


def _as_json(document: Any, status: int = 200, headers: Any = None) -> Response:
    return Response(documents.write_json(document), status, headers, "application/json")


_ACCEPTED = {
    SubmissionResult.NEW: _as_json({"accepted": True, "again": False}),
    SubmissionResult.SAME: _as_json({"accepted": True, "again": True}),
}


class Collector:
    """Takes randomized answers of one survey into a store and shows their estimate."""

    def __init__(self, survey: Survey, store: AnswerStore, settings: CollectorSettings, log: Log) -> None:
        self._survey, self._store, self._settings, self._log = survey, store, settings, log
        self._key = store.key
        self._access = DashboardAccess(settings.password)
        self._by_address = RateLimit(settings.rate, burst=max(10.0, 5.0 * settings.rate))
        self._by_token = RateLimit(0.2 if settings.rate > 0 else 0.0, burst=10.0)
        self._passwords = RateLimit(0.2, burst=5.0)
        self._healthy_until = 0.0
        pages = Pages(survey)
        self._dashboard_page, self._login_page = _shown(pages.dashboard), _shown(pages.login)
        routes = [
            Route("/api/answer", self._answer, methods=["POST"]),
            Route("/health", self._health),
            Route("/dashboard", self._dashboard),
            Route("/dashboard/login", self._login, methods=["POST"]),
            Route("/dashboard/logout", self._logout, methods=["POST"]),
            Route("/dashboard/estimate", self._estimate),
            Route("/api/survey", _as_json(survey.to_document()), methods=["GET"]),
            *(Route(path, _shown(page), methods=["GET"]) for path, page in pages.open.items()),
        ]
        self._paths = {route.path for route in routes}
        self._router = Router(routes, redirect_slashes=False, lifespan=self._life)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the life of the process, as ASGI has it."""
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        began, status = time.perf_counter(), 500  # unless it comes to a response
        scope["app"] = self  # so that the router raises what it refuses
        try:
            _check_sender(Request(scope), self._settings.names)
            await self._router(scope, receive, send)
            status = 200
        except HTTPException as refused:
            status = refused.status_code
            await _refused(refused)(scope, receive, send)
        finally:
            if status >= 400:
                milliseconds = round(1000.0 * (time.perf_counter() - began), 1)
                route = scope["path"] if scope["path"] in self._paths else "unknown"  # a path could hold anything
                self._log.write("refused", route=route, status=status, milliseconds=milliseconds)

    @asynccontextmanager
    async def _life(self, _app: object) -> AsyncIterator[None]:
        self._writer = AnswerWriter(self._store, self._log)
        self._writer.start()
        self._estimates = LiveEstimate(self._store, self._survey, at_least=self._settings.at_least)
        yield
        await self._writer.stop()
        await self._estimates.stop()

    async def _answer(self, request: Request) -> Response:
        _limit(self._by_address, client_of(request))
        document = await self._document(request)
        submission = self._submission(document)
        _limit(self._by_token, submission.mark)
        try:
            result = await self._writer.add(submission)
        except (StoreError, Crowded) as error:
            raise _refusal(503, str(error), retry_after="5") from None
        if result is SubmissionResult.OTHER:
            raise _refusal(
                409, "this token was used for another answer; a token counts once, and its first answer stands"
            )
        return _ACCEPTED[result]

    def _submission(self, document: dict[str, Any]) -> Submission:
        token, digest, answers = (document.get(key) for key in ("token", "digest", "answers"))
        if set(document) != _KEYS or not (
            isinstance(token, str) and isinstance(digest, str) and isinstance(answers, dict)
        ):
            raise _refusal(422, "an answer has token, digest and answers and nothing else; see /api/survey")
        try:
            data = check_token(self._key, token)
        except TokenError as error:
            raise _refusal(401, str(error), www_authenticate="token") from None
        if digest != self._survey.digest:
            raise _refusal(422, "the answer was made for another specification; fetch /api/survey again")
        try:
            codes = self._survey.encode(answers)
        except SchemaError as error:
            raise _refusal(422, str(error)) from None
        return Submission(mark(data), seal(data, codes), codes)

    async def _document(self, request: Request) -> dict[str, Any]:
        """Read a JSON object of bounded length that must come in time."""
        most = self._settings.most_bytes
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise _refusal(415, "the body must be JSON; send it with the content type application/json")
        length = request.headers.get("content-length", "0")
        if length.isascii() and length.isdigit() and (len(length) > _LONGEST_LENGTH or int(length) > most):
            raise _too_long(most)
        try:
            async with asyncio.timeout(_PATIENCE):
                return parse_body(await _body(request, most))
        except TimeoutError:
            raise _refusal(408, "the body did not come in time; send it again", connection="close") from None

    async def _health(self, _request: Request) -> Response:
        if time.monotonic() >= self._healthy_until:
            try:
                await asyncio.get_running_loop().run_in_executor(None, self._store.ping)
            except StoreError as error:
                raise _refusal(503, str(error)) from None
            self._healthy_until = time.monotonic() + 1.0
        if not self._writer.alive:
            raise _refusal(503, "answers are not stored any more; start the collector again")
        if self._writer.failing:
            raise _refusal(503, "the last answers could not be stored; check that the disk is not full")
        return _as_json({"status": "ok"})

    async def _dashboard(self, request: Request) -> Response:
        return self._dashboard_page if self._may(request) else self._login_page

    def _may(self, request: Request) -> bool:
        guess = "authorization" in request.headers
        if guess:  # who has guessed too often is not told that this one is right
            _wait(self._passwords.would_wait(client_of(request)))
        allowed = self._access.allows(request)
        if guess and not allowed:
            _limit(self._passwords, client_of(request))
        return allowed

    async def _login(self, request: Request) -> Response:
        _limit(self._passwords, client_of(request))
        password = (await self._document(request)).get("password")
        if not isinstance(password, str) or not self._access.knows(password):
            raise _refusal(401, "this is not the password of the dashboard; it was shown when the collector started")
        return _as_json({"welcome": True}, 200, {"set-cookie": self._access.cookie(secure=_is_secure(request))})

    async def _logout(self, request: Request) -> Response:
        cookie = _cookie("", "Path=/dashboard; Max-Age=0", secure=_is_secure(request))
        return _as_json({"welcome": False}, 200, {"set-cookie": cookie})

    async def _estimate(self, request: Request) -> Response:
        if not self._may(request):
            raise _refusal(401, "the dashboard needs its password; log in at /dashboard", www_authenticate="Bearer")
        return _as_json(await self._estimates.current())


class DashboardAccess:
    """Who may see the dashboard: whoever knows the password, by a header or by a cookie that a login gives.

    The cookie ends with the process.
    """

    def __init__(self, password: str) -> None:
        self._password = password.encode()
        self._session = secrets.token_urlsafe(32)

    def __repr__(self) -> str:
        return "DashboardAccess(password=...)"

    def knows(self, password: str) -> bool:
        """Whether this is the password."""
        return hmac.compare_digest(password.encode(), self._password)

    def allows(self, request: Request) -> bool:
        """Whether a request has the password in its Authorization header or the cookie of a login."""
        header = request.headers.get("authorization", "")
        if header.startswith(_BEARER):
            return hmac.compare_digest(header.removeprefix(_BEARER).encode("latin-1"), self._password)
        cookie = request.cookies.get(_COOKIE, "")
        return hmac.compare_digest(cookie.encode(), self._session.encode())

    def cookie(self, *, secure: bool) -> str:
        """Header that logs in; a secure cookie travels under TLS only."""
        return _cookie(self._session, "Path=/dashboard", secure=secure)


def _cookie(value: str, scope: str, *, secure: bool) -> str:
    return f"{_COOKIE}={value}; {scope}; HttpOnly; SameSite=Strict" + ("; Secure" if secure else "")


def client_of(request: Request) -> str:
    """Where a request came from, as limits count it."""
    return network_of(request.client.host) if request.client else ""


def _is_secure(request: Request) -> bool:
    """Whether a request came under TLS, as far as this collector or the proxy before it."""
    return bool(request.scope.get("scheme") == "https")


def host_of(request: Request) -> str:
    """Name of the host that was asked for, without its port."""
    found = _HOST.match(request.headers.get("host", "").lower())
    return found.group() if found else ""


def parse_body(body: bytes) -> dict[str, Any]:
    """Read a JSON object strictly: UTF-8, finite numbers, every key once."""
    try:
        document = documents.parse_json(body)
    except documents.Unparsable:
        raise _refusal(400, "the body cannot be read as JSON; check it") from None
    if not isinstance(document, dict):
        raise _refusal(400, "the body must be one JSON object; see the survey's documentation")
    return document


async def _body(request: Request, most: int) -> bytes:
    body, more = bytearray(), True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise _refusal(400, "the body is not complete; send it again")
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > most:
            raise _too_long(most)
    return bytes(body)


def _too_long(most: int) -> HTTPException:
    return _refusal(413, f"the body is longer than {most} bytes; send only the answer", connection="close")


def _refused(refused: HTTPException) -> Response:
    words, headers = refused.detail, dict(refused.headers or {})
    if refused.status_code == 404:
        words = "there is nothing here; begin at /"
    elif refused.status_code == 405:
        headers["Allow"] = ", ".join(sorted(set(headers["Allow"].split(", ")) - {"HEAD"}))
        words = f"this address takes {headers['Allow']} only"
    return _as_json({"error": words}, refused.status_code, headers)


def _shown(page: Page) -> Response:
    return Response(page.text, media_type=page.kind)


def _limit(limit: RateLimit, client: object) -> None:
    _wait(limit.wait_for(client))


def _wait(wait: float) -> None:
    if wait:
        raise _refusal(429, "too many requests; wait a little", retry_after=str(int(wait) + 1))


def _check_sender(request: Request, names: frozenset[str]) -> None:
    """Refuse what a browser was made to send by a page of elsewhere."""
    name = host_of(request) if names else ""
    if name and name not in names:
        raise _refusal(421, "this collector serves its own machine only; a proxy before it must be named with --proxy")
    if request.method == "POST" and request.headers.get("sec-fetch-site", "none") not in _OWN_PAGES:
        raise _refusal(403, "this was sent by a page of elsewhere; use the survey's own page")
