"""The collector as an application of Starlette: the page, the answers, the dashboard.

Its middleware is left out, for every refusal is one sentence that is made here: an answer takes 83 microseconds of
processor time up to the store so, and took 70 as plain ASGI.

The browser gets the law as whole numbers, so that it draws as Python does. The page's JavaScript has no fractions and
no decimals; it gets both worked out here, large numbers as texts.
"""

from __future__ import annotations

import asyncio
import hmac
import math
import re
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import files
from itertools import pairwise
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from sfumato.core import documents
from sfumato.core.connections import network_of
from sfumato.core.distributions.domains import Integers, Labels, Universe, domain_to_document
from sfumato.core.distributions.finite import FiniteOperator, KeepOrReplace, Mixture, ShiftModulo
from sfumato.core.distributions.finite import Response as RandomizedResponse
from sfumato.core.distributions.noise import FINEST, DiscreteGaussian, DiscreteLaplace, decimals, rational, share
from sfumato.core.distributions.operators import Additive, Membership, Operator
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.documents import write_json
from sfumato.core.errors import OptionError, SchemaError
from sfumato.core.pages import page_template
from sfumato.survey.estimate import LiveEstimate
from sfumato.survey.options import CollectorSettings
from sfumato.survey.questions import Question, Survey, TokenError, check_token, mark, seal
from sfumato.survey.server import RateLimit
from sfumato.survey.store import AnswerStore, AnswerWriter, Log, QueueFull, StoreError, Submission, SubmissionResult

__all__ = [
    "Collector",
    "DashboardAccess",
    "Page",
    "Pages",
    "client_of",
    "host_of",
    "law_plan",
    "parse_body",
    "percent",
    "plan_of",
    "question_plan",
]

_PRIORS = (0.01, 0.1, 0.5)
"""How sure someone may be before, in the page's table of how sure they can be after."""

_MOST_CHANCES = 250_000  # of a response matrix: more would be megabytes of page
_SAFE = 2**53
_STATIC = ("chance.js", "law.js", "survey.js", "login.js", "dashboard.js", "survey.css", "icon.svg")
_TYPES = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}


@dataclass(frozen=True)
class Page:
    """A text and its media type."""

    text: str
    kind: str


class Pages:
    """All pages of a survey, rendered once: ``open`` by path for anybody, ``dashboard`` and ``login``."""

    def __init__(self, survey: Survey) -> None:
        plan = plan_of(survey)
        self.open = {
            "/": _page("survey.html", survey.title, plan),
            "/api/plan": Page(write_json(plan), "application/json"),
            **{f"/static/{name}": _static(name) for name in _STATIC},
        }
        self.dashboard = _page("dashboard.html", f"Dashboard: {survey.title}", plan)
        self.login = _page("login.html", "Dashboard", plan)


def _page(template: str, title: str, plan: Mapping[str, object]) -> Page:
    page = page_template(template, "sfumato.survey", filters=(("percent", percent),))
    return Page(page.render(title=title, plan=plan), "text/html")


def percent(share: float) -> str:
    """Write a bound in percent, never as less than it is.

    Examples
    --------
    >>> percent(0.71633), percent(0.99996), percent(0.0298)
    ('71.7 %', '99.996 %', '3.0 %')
    """
    for digits in (1, 3, 5, 8):
        up = math.ceil(share * 100.0 * 10**digits * (1.0 - 1e-12)) / 10**digits  # less the last bits of a double
        if up < 100.0 or share >= 1.0:
            return f"{up:.{digits}f} %"
    return "100 %"


def _static(name: str) -> Page:
    text = files("sfumato.survey").joinpath("static", name).read_text(encoding="utf-8")
    return Page(text, _TYPES[name.rpartition(".")[2]])


def plan_of(survey: Survey) -> Mapping[str, Any]:
    """Plan of a whole survey, with what it promises."""
    return {
        "digest": survey.digest,
        "title": survey.title,
        "priors": list(_PRIORS),
        "together": _bounds(survey) if len(survey.questions) > 1 else None,
        "questions": [question_plan(question) for question in survey.questions],
    }


def question_plan(question: Question) -> Mapping[str, Any]:
    """Plan of one question: domain, law, released values, and what it promises in words.

    Examples
    --------
    >>> from sfumato.core.distributions.spec import NoiseSpec
    >>> question = Question("age", NoiseSpec(Integers(0, 100), {"name": "laplace", "scale": 2.5}))
    >>> question_plan(question)["law"]
    {'kind': 'laplace', 'numerator': '5', 'denominator': '2', 'size': 101}
    """
    spec, words, domain = question.spec, question.spec.describe().split("\n"), question.spec.domain.describe()
    why = words[1].removeprefix("There is no guarantee: ")
    return {
        "name": question.name,
        "text": question.text or f"Your answer ({question.name})",
        "domain": _domain(spec.domain),
        "law": law_plan(spec.operator),
        "released": {**_domain(spec.released), "whole": isinstance(spec.domain, Integers)},
        "words": words,
        "proof": _proof(spec),
        "bounds": _bounds(spec),
        "range": domain,
        "why": why[:1].upper() + why[1:],
        "hint": "" if isinstance(spec.domain, Labels) else domain.removeprefix("a ").capitalize(),
    }


def law_plan(operator: Operator | FiniteOperator) -> Mapping[str, Any]:
    """A law as whole numbers."""
    size = operator.size
    if isinstance(operator, KeepOrReplace):
        return {"kind": "keep-or-replace", "size": size, **_fraction(share("keep", operator.keep))}
    if isinstance(operator, ShiftModulo):
        return {"kind": "shift-modulo", "size": size, "reach": operator.reach}
    if isinstance(operator, Mixture):
        of = law_plan(operator.of)
        return {"kind": "mixture", "size": size, **_fraction(share("weight", operator.weight)), "of": of}
    if isinstance(operator, RandomizedResponse):
        return _response(operator)
    if isinstance(operator, Membership):
        return _membership(operator)
    if not isinstance(operator, Additive):
        raise OptionError(f"no page can draw the law {type(operator).__name__}; choose another law")
    return {**_noise(operator), "size": size}


def _noise(operator: Additive) -> Mapping[str, Any]:
    law = operator.law
    if isinstance(law, DiscreteLaplace):
        return {"kind": "laplace", **_fraction(rational(law.scale))}
    if isinstance(law, DiscreteGaussian):
        return {"kind": "gaussian", **_fraction(Fraction(law.sd) ** 2), "above": str(int(law.sd) + 1)}
    return {"kind": "uniform", "reach": law.steps}


def _response(operator: RandomizedResponse) -> Mapping[str, Any]:
    weights = operator.weights
    others = {int(chance) for row, chances in enumerate(weights) for x, chance in enumerate(chances) if x != row}
    truths = {int(weights[row, row]) for row in range(min(weights.shape))}
    if weights.shape[0] == weights.shape[1] and len(others) == len(truths) == 1:  # all answers alike: keep or replace
        return {"kind": "keep-or-replace", "size": operator.size, **_fraction(Fraction(truths.pop(), FINEST))}
    if weights.size > _MOST_CHANCES:
        raise OptionError(f"the response matrix is too large for a page ({_MOST_CHANCES:,} chances); join some labels")
    rows = [[str(chance) for chance in row] for row in weights.tolist()]
    return {"kind": "response", "size": operator.size, "total": str(FINEST), "rows": rows}


def _membership(operator: Membership) -> Mapping[str, Any]:
    cells = operator.cells
    if any(a > b for a, b in pairwise(cells)):
        return {"kind": "classes", "size": operator.size, "cells": list(cells)}
    starts = [place for place, cell in enumerate(cells) if place == 0 or cells[place - 1] < cell]
    return {"kind": "intervals", "size": operator.size, "starts": starts}


def _domain(domain: Universe) -> Mapping[str, Any]:
    document = domain_to_document(domain)
    if isinstance(domain, Labels):
        return document
    if max(abs(domain.low), abs(domain.high)) >= _SAFE:
        raise OptionError("numbers above 2^53 cannot be answered on a page; choose another origin or unit")
    return {**document, "size": domain.size, "digits": decimals(domain.low, domain.step)}


def _bounds(one: NoiseSpec | Survey) -> list[float] | None:
    """How sure someone can be after, for each prior; None if there is no bound."""
    bounds = [one.bound(prior) for prior in _PRIORS]
    return None if min(bounds) >= 1.0 else bounds


def _proof(spec: NoiseSpec) -> str | None:
    """Say what an extreme answer proves, for noise that is bounded [errata JS07.4]."""
    operator = spec.operator
    if not isinstance(operator, Additive) or operator.outputs is None or isinstance(spec.domain, Labels):
        return None
    first, last = (spec.decode_output([end])[0] for end in (operator.outputs.start, operator.outputs.stop - 1))
    low, high = spec.domain.low, spec.domain.high
    return (
        f"The noise has an end, so an extreme number is a proof: if {last:g} is sent, your true answer can only be "
        f"{high:g}; if {first:g} is sent, it can only be {low:g}."
    )


def _fraction(number: Fraction) -> dict[str, str]:
    return {"numerator": str(number.numerator), "denominator": str(number.denominator)}


_KEYS = {"token", "digest", "answers"}
_OWN_PAGES = ("same-origin", "none")
_HOST = re.compile(r"\[[^\]]*\]|[^:]*")
_PATIENCE = 15.0  # seconds in which a body must have come
_PAUSE = 1.0  # seconds after which a client that sends nothing is taken to wait for the answer
_MOST_DISCARDED = 1 << 26  # bytes of a body that is refused, read so that the client can read the answer
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
        except (StoreError, QueueFull) as error:
            raise _refusal(503, str(error), retry_after="5") from None
        if result is SubmissionResult.OTHER:
            raise _refusal(
                409, "this token was used for another answer; a token counts once, and its first answer stands"
            )
        return _ACCEPTED[result]

    def _submission(self, document: Mapping[str, object]) -> Submission:
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

    async def _document(self, request: Request) -> Mapping[str, object]:
        """Read a JSON object of bounded length that must come in time."""
        most = self._settings.most_bytes
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise _refusal(415, "the body must be JSON; send it with the content type application/json")
        length = request.headers.get("content-length", "0")
        if length.isascii() and length.isdigit() and (len(length) > _LONGEST_LENGTH or int(length) > most):
            if len(length) <= _LONGEST_LENGTH and int(length) <= _MOST_DISCARDED:
                await _discard(request)
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


def parse_body(body: bytes) -> Mapping[str, object]:
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
            if more:
                await _discard(request)
            raise _too_long(most)
    return bytes(body)


async def _discard(request: Request) -> None:
    """Read what comes of a body that is refused: a client that is still sending would lose the answer with a reset."""
    size, more = 0, True
    with suppress(TimeoutError):
        while more and size < _MOST_DISCARDED:
            async with asyncio.timeout(_PAUSE):
                message = await request.receive()
            size += len(message.get("body", b""))
            more = message.get("more_body", False)


def _too_long(most: int) -> HTTPException:
    return _refusal(413, f"the body is longer than {most} bytes; send only the answer", connection="close")


def _refused(refused: HTTPException) -> Response:
    words, headers = refused.detail, dict(refused.headers or {})
    if refused.status_code == 404:
        words = "there is no such page; start at /"
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
