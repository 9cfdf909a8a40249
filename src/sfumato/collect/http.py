"""Requests and responses of the collector: the least of HTTP that it needs, on plain ASGI."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from sfumato import documents
from sfumato.collect.limits import network_of

__all__ = ["Receive", "Refused", "Request", "Response", "Scope", "Send", "as_json", "parse_json", "send_response"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_HOST = re.compile(r"\[[^\]]*\]|[^:]*")
_PATIENCE = 15.0  # seconds in which a body must have come
_LONGEST_LENGTH = 18  # digits that a content-length has at most; Python refuses to read some thousands

# nothing from elsewhere, nothing inline, no frame around it, no form that a browser sends by itself
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"cache-control", b"no-store"),
)
_TYPES = {
    "json": b"application/json",
    "html": b"text/html; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "svg": b"image/svg+xml",
}


class Refused(Exception):
    """A request that is answered with a status and one sentence."""

    def __init__(self, status: int, words: str, **headers: str) -> None:
        super().__init__(words)
        self.status = status
        self.words = words
        self.headers = headers


@dataclass(frozen=True)
class Response:
    """What is sent back."""

    body: bytes
    kind: str = "json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """What came in; headers are in small letters."""

    scope: Scope
    receive: Receive
    headers: Mapping[bytes, bytes]

    @classmethod
    def of(cls, scope: Scope, receive: Receive) -> Request:
        """Take a request apart."""
        return cls(scope, receive, dict(scope["headers"]))

    @property
    def client(self) -> str:
        """Where it came from, as limits count it."""
        client = self.scope.get("client")
        return network_of(str(client[0])) if client else ""

    @property
    def secure(self) -> bool:
        """Whether it came under TLS, as far as this collector or the proxy before it."""
        return bool(self.scope.get("scheme") == "https")

    @property
    def name(self) -> str:
        """Name of the host that was asked for, without its port."""
        found = _HOST.match(self.headers.get(b"host", b"").decode("latin-1").lower())
        return found.group() if found else ""

    async def json(self, most: int) -> dict[str, Any]:
        """Read a JSON object of at most so many bytes.

        Raises
        ------
        Refused
            With 408 for one that does not come, 413 for a longer one, 415 for another type, 400 for anything else.
        """
        if self.headers.get(b"content-type", b"").split(b";")[0].strip().lower() != b"application/json":
            raise Refused(415, "the body must be JSON; send it with the content type application/json")
        length = self.headers.get(b"content-length", b"0")
        if length.isdigit() and (len(length) > _LONGEST_LENGTH or int(length) > most):
            raise _too_long(most)
        try:
            async with asyncio.timeout(_PATIENCE):
                body = await self._body(most)
        except TimeoutError:
            raise Refused(408, "the body did not come in time; send it again", connection="close") from None
        document = parse_json(body)
        if not isinstance(document, dict):
            raise Refused(400, "the body must be one JSON object; see the survey's documentation")
        return document

    async def _body(self, most: int) -> bytes:
        body = bytearray()
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise Refused(400, "the body is not complete; send it again")
            body += message.get("body", b"")
            if len(body) > most:
                raise _too_long(most)
            if not message.get("more_body", False):
                return bytes(body)


def parse_json(body: bytes) -> Any:
    """Read JSON strictly: UTF-8, finite numbers, every key once."""
    try:
        return documents.parse_json(body)
    except documents.Unparsable:
        raise Refused(400, "the body cannot be read as JSON; check it") from None


def as_json(document: Any, status: int = 200, **headers: str) -> Response:
    """Write a JSON response."""
    return Response(documents.write_json(document).encode(), "json", status, headers)


async def send_response(send: Send, response: Response, *, secure: bool, head: bool) -> None:
    """Send a response with the headers that every one has."""
    headers = [*_HEADERS, (b"content-type", _TYPES[response.kind])]
    headers.append((b"content-length", str(len(response.body)).encode()))
    if secure:
        headers.append((b"strict-transport-security", b"max-age=31536000"))
    headers += [(name.replace("_", "-").encode(), value.encode()) for name, value in response.headers.items()]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else response.body})


def _too_long(most: int) -> Refused:
    return Refused(413, f"the body is longer than {most} bytes; send only the answer", connection="close")
