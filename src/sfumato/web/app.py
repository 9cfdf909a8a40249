"""The page as an application of Starlette: who may ask, what is shown at each step, and what is asked for."""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any, Literal

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from sfumato.core import documents
from sfumato.core.errors import SfumatoError, with_options
from sfumato.core.pages import page_template
from sfumato.publish.policy import BUILT_IN, LIMITS, PURPOSES, Policy
from sfumato.tables.field import FATE, Kind, Role
from sfumato.web.visit import (
    ENDINGS_READ,
    LABELS,
    Choices,
    Setting,
    TooLarge,
    WebSession,
    command_line,
    parse_choices,
    python_lines,
)

__all__ = ["WebPage"]

_COOKIE = "sfumato-web"
_OWN_PAGES = ("same-origin", "none")
_MOST_JSON = 8 << 20
_MOST_CHOICES = 16_384  # bytes of choices that come with a file
_PATIENCE = 30.0  # seconds in which choices must have come; a file may take longer
_STEPS = {"start": "File", "columns": "Columns", "policy": "Policy", "search": "Search", "result": "Release"}
_STATIC = ("web.css", "web.js", "frontier.js", "icon.svg")
_TYPES = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'{}; connect-src 'self'; img-src 'self'; frame-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_DRAWN = "; style-src-attr 'unsafe-inline'"  # drawings have their colours in attributes, and no script
_REPORT_POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'; sandbox"
)
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
_CLOSED = (
    "<!DOCTYPE html><html lang='en'><meta charset='utf-8'><title>sfumato: closed</title><h1>Closed</h1>"
    "<p>Open the address that 'sfumato web' printed, with its token.</p></html>"
)

Handler = Callable[[Request], Awaitable[Response]]


class WebPage:
    """Serves one visit to the holder of the token, on this machine."""

    def __init__(
        self, visit: WebSession, token: str, port: int, *, stream: str | None = None, survey: str | None = None
    ):
        self._visit, self._token = visit, token
        self._stream, self._survey = stream, survey
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        self._cookie, self._session = f"{_COOKIE}-{port}", secrets.token_urlsafe(32)
        self._page_token = secrets.token_urlsafe(32)
        posts: dict[str, Handler] = {
            "/api/file": self._file,
            "/api/look": self._look,
            "/api/choices": self._choices,
            "/api/search": self._search,
            "/api/release": self._release,
            "/api/stop": self._stop,
            "/api/save": self._save,
            "/api/forget": self._forget,
        }
        gets: dict[str, Handler] = {
            "/": self._start_page,
            "/columns": self._columns_page,
            "/policy": self._policy_page,
            "/search": self._search_page,
            "/result": self._result_page,
            "/report": self._report,
            "/tuning": self._report,
            "/api/job": self._job,
            "/release.zip": self._zip,
            "/owner.zip": self._zip,
            "/stream": self._status_page,
            "/survey": self._status_page,
        }
        routes = [
            *(Route(path, handler, methods=["POST"]) for path, handler in posts.items()),
            *(Route(path, handler, methods=["GET"]) for path, handler in gets.items()),
            *(Route(f"/static/{name}", _static(name), methods=["GET"]) for name in (*_STATIC, "report.css")),
        ]
        self._router = Router(routes, redirect_slashes=False, lifespan=self._life)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the life of the process, as ASGI has it."""
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        with with_options(LABELS):
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self  # so that the router raises what it refuses
        try:
            entered = self._enter(Request(scope))
            if entered is not None:
                await entered(scope, receive, send)
                return
            await self._router(scope, receive, send)
        except HTTPException as refused:
            await _refused(refused.status_code, refused.detail)(scope, receive, send)
        except TooLarge as error:
            await _refused(413, f"{error}")(scope, receive, send)
        except SfumatoError as error:
            await _refused(400, f"{error}")(scope, receive, send)

    @asynccontextmanager
    async def _life(self, _app: object) -> AsyncIterator[None]:
        await self._visit.worker.start()
        yield
        await self._visit.end()

    def _enter(self, request: Request) -> Response | None:
        """Refuse whoever has no token, or whom a page of elsewhere sent; None for those who may go on."""
        host = request.headers.get("host", "").lower()
        if host not in self._hosts:
            raise HTTPException(
                421, "this page serves its own machine only; use the address that 'sfumato web' printed"
            )
        given = request.query_params.get("token")
        if given is not None and request.method == "GET" and request.url.path == "/":
            if not _same(given, self._token):
                return Response(_CLOSED, 403, _HEADERS, "text/html")
            cookie = f"{self._cookie}={self._session}; Path=/; HttpOnly; SameSite=Strict"
            return RedirectResponse("/", 303, {**_HEADERS, "set-cookie": cookie})
        if not _same(request.cookies.get(self._cookie, ""), self._session):
            if request.method == "GET" and not request.url.path.startswith(("/api/", "/static/")):
                return Response(_CLOSED, 403, _HEADERS, "text/html")
            raise HTTPException(403, "the token is missing; open the address that 'sfumato web' printed")
        if request.method == "POST":
            sent_from = request.headers.get("origin", f"http://{host}").lower()
            elsewhere = request.headers.get("sec-fetch-site", "none") not in _OWN_PAGES
            if elsewhere or sent_from != f"http://{host}":
                raise HTTPException(403, "the request came from another site; use this page")
            if not _same(request.headers.get("x-sfumato-page", ""), self._page_token):
                raise HTTPException(403, "the page is from an earlier start; reload it")
        return None

    def _page(self, name: str, *, drawn: bool = False, **options: Any) -> Response:
        visit = self._visit
        ready = {
            "start": True,
            "columns": visit.look is not None,
            "policy": visit.look is not None,
            "search": visit.tuning is not None or bool(visit.points),
            "result": visit.result is not None,
        }
        steps = [(_STEPS[step], "/" if step == "start" else f"/{step}", ready[step], step == name) for step in _STEPS]
        status = [kind for kind, place in (("stream", self._stream), ("survey", self._survey)) if place is not None]
        text = page_template(f"{name}.html", "sfumato.web", filters=(("sentence", _sentence),)).render(
            steps=steps, status=status, page=name, page_token=self._page_token, visit=visit, **options
        )
        policy = _POLICY.format(_DRAWN if drawn else "")
        return Response(text, 200, {**_HEADERS, "content-security-policy": policy}, "text/html")

    async def _start_page(self, _request: Request) -> Response:
        return self._page("start", endings=ENDINGS_READ, too_large=self._visit.too_large)

    async def _columns_page(self, _request: Request) -> Response:
        if self._visit.look is None:
            return _to("/")
        roles = [(role.value, FATE[role]) for role in Role]
        return self._page("columns", roles=roles, kinds=[kind.value for kind in Kind])

    async def _policy_page(self, _request: Request) -> Response:
        if self._visit.look is None:
            return _to("/")
        policies = [(name, PURPOSES[name], _limits(BUILT_IN[name])) for name in PURPOSES]
        return self._page("policy", policies=policies)

    async def _search_page(self, _request: Request) -> Response:
        if self._visit.look is None or not (self._visit.points or self._visit.tuning or self._visit.worker.busy):
            return _to("/policy")
        return self._page("search", tuning=self._visit.tuning)

    async def _result_page(self, _request: Request) -> Response:
        visit = self._visit
        if visit.result is None or visit.file is None:
            return _to("/policy")
        choices = (visit.file, visit.choices, visit.setting)
        lines = {
            "command": command_line(*choices, recipe="owner/recipe.toml"),
            "python": python_lines(*choices, recipe="owner/recipe.toml"),
        }
        figures = await asyncio.to_thread(visit.compared)
        return self._page("result", drawn=True, result=visit.result, figures=figures, **lines)

    async def _status_page(self, request: Request) -> Response:
        kind: Literal["stream", "survey"] = "stream" if request.url.path == "/stream" else "survey"
        place = self._stream if kind == "stream" else self._survey
        if place is None:
            raise HTTPException(404)
        try:
            job = await self._visit.status(kind, place)
        except SfumatoError as error:
            return self._page("status", kind=kind, found=None, error=f"{error}")
        return self._page("status", kind=kind, found=job.result, error=job.error)

    async def _report(self, request: Request) -> Response:
        path = self._visit.page("report" if request.url.path == "/report" else "tuning")
        if path is None:
            raise HTTPException(404)
        headers = {**_HEADERS, "content-security-policy": _REPORT_POLICY}
        return FileResponse(path, 200, headers, "text/html")

    async def _zip(self, request: Request) -> Response:
        part: Literal["release", "owner"] = "release" if request.url.path == "/release.zip" else "owner"
        path = await asyncio.to_thread(self._visit.packed, part)
        if path is None:
            raise HTTPException(404)
        return FileResponse(path, 200, _HEADERS, "application/zip", filename=f"{part}.zip")

    async def _job(self, _request: Request) -> Response:
        job = self._visit.worker.job
        if job is None:
            return _as_json({"state": "idle"})
        entries = {"tuning": self._visit.tuning} if job.kind == "tune" and job.state == "done" else {}
        return _as_json({**job.to_json(), **entries})

    async def _file(self, request: Request) -> Response:
        visit = self._visit
        length = request.headers.get("content-length", "")
        if length.isascii() and length.isdigit() and (len(length) > 18 or int(length) > visit.most_bytes):
            raise TooLarge(visit.too_large)
        query = request.query_params
        chosen = parse_choices(Choices, query.get("choices", "{}")[:_MOST_CHOICES].encode())
        choices = Choices(reading=chosen.reading, missing=chosen.missing)
        try:
            job = await visit.receive(query.get("name", ""), _in_time(request.stream()), choices)
        except ClientDisconnect:
            raise HTTPException(400, "the upload was incomplete; choose the file again") from None
        return _as_json(job.to_json())

    async def _look(self, request: Request) -> Response:
        """Look at the columns as they were chosen, and wait for it: it is a matter of a second or a few."""
        job = await self._visit.inspect(parse_choices(Choices, await _body(request)))
        await job.ended.wait()
        if job.state != "done":
            return _as_json({"error": job.error or "it was cancelled", "proposed": job.proposed}, 400)
        return _as_json({**(self._visit.look or {}), "notes": job.notes, "schema": None})

    async def _choices(self, request: Request) -> Response:
        self._visit.choose(parse_choices(Choices, await _body(request)))
        return _as_json({"kept": True})

    async def _search(self, request: Request) -> Response:
        await _body(request)
        return _as_json((await self._visit.tune()).to_json())

    async def _release(self, request: Request) -> Response:
        setting = parse_choices(Setting, await _body(request))
        return _as_json((await self._visit.sanitize(setting)).to_json())

    async def _stop(self, _request: Request) -> Response:
        await self._visit.worker.stop()
        return _as_json({"stopped": True})

    async def _save(self, _request: Request) -> Response:
        return _as_json({"saved": str(await asyncio.to_thread(self._visit.save))})

    async def _forget(self, _request: Request) -> Response:
        await self._visit.forget()
        return _as_json({"forgotten": True})


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())


def _to(path: str) -> Response:
    return RedirectResponse(path, 303, _HEADERS)


def _as_json(document: Any, status: int = 200) -> Response:
    return Response(documents.write_json(document), status, _HEADERS, "application/json")


def _refused(status: int, words: str) -> Response:
    entries = {404: "there is no such page; start at /", 405: "this method is not allowed here"}
    return _as_json({"error": entries.get(status, words)}, status)


async def _in_time(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Parts of a file, each of which must come in time; the whole of it may take longer."""
    while True:
        try:
            async with asyncio.timeout(_PATIENCE):
                chunk = await anext(chunks, None)
        except TimeoutError:
            raise HTTPException(408, "the upload stopped; choose the file again") from None
        if chunk is None:
            return
        yield chunk


async def _body(request: Request) -> bytes:
    """A small body, which must come in time."""
    body = bytearray()
    try:
        async with asyncio.timeout(_PATIENCE):
            async for chunk in request.stream():
                body += chunk
                if len(body) > _MOST_JSON:
                    raise HTTPException(413, "more was chosen than is taken")
    except (TimeoutError, ClientDisconnect):
        raise HTTPException(408, "the choices arrived incomplete; try again") from None
    return bytes(body)


def _limits(policy: Policy) -> list[str]:
    """What a policy asks, a line each."""
    lines = [f"{LIMITS[name].rstrip('.')}: at most {value:g}." for name, value in policy.limits.items()]
    asked = policy.require.get("min_group_size")
    return lines if asked is None else [*lines, f"At least {asked} people behind every value."]


def _static(name: str) -> Response:
    place = files("sfumato.assess" if name == "report.css" else "sfumato.web")
    folder = "templates" if name == "report.css" else "static"
    text = place.joinpath(folder, name).read_text(encoding="utf-8")
    return Response(text, 200, _HEADERS, _TYPES[name.rpartition(".")[2]])


def _sentence(text: str) -> str:
    """A clause as a sentence: a capital letter first and a full stop."""
    words = text[:1].upper() + text[1:]
    return words if re.search(r"[.!?]$", words) else f"{words}."
