"""A collector as a process of its own, and clients that load it. Used by tests and by the load benchmark."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sfumato.survey.questions import mint
from sfumato.survey.store import AnswerStore

COMMAND = [sys.executable, "-m", "sfumato.cli", "survey"]
AGE = (
    'format = 1\ndomain = { kind = "integers", low = 0, high = 100 }\nlaw = { name = "keep-or-replace", keep = 0.5 }\n'
)


@dataclass(frozen=True)
class Running:
    """A collector that listens."""

    process: subprocess.Popen[str]
    url: str
    password: str
    digest: str
    log: Path

    @property
    def port(self) -> int:
        port = urlsplit(self.url).port
        assert port is not None
        return port

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Send one request; a body that is not bytes is sent as JSON."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=300)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if data is not None:
            named.setdefault("content-type", "application/json")
        connection.request(method, path, body=data, headers=named)
        response = connection.getresponse()
        found = response.status, {key.lower(): value for key, value in response.getheaders()}, response.read()
        connection.close()
        return found

    def answer(self, token: str, **answers: Any) -> int:
        """Send an answer and give the status."""
        body = {"token": token, "digest": self.digest, "answers": answers}
        return self.call("POST", "/api/answer", body)[0]


def tokens(db: str, number: int) -> list[str]:
    """Make tokens, as the command does."""
    store = AnswerStore.open(db)
    try:
        return list(mint(store.key, number))
    finally:
        store.close()


@contextmanager
def collector(db: str, folder: Path, *options: str, spec: str = AGE) -> Iterator[Running]:
    """Run ``survey serve`` until the block ends; one that was killed before is left alone."""
    path = folder / "spec.toml"
    path.write_text(spec, encoding="utf-8")
    log = folder / "log.jsonl"
    named = () if "--spec" in options else ("--spec", str(path))
    with log.open("a", encoding="utf-8") as errors:
        command = [*COMMAND, "serve", *named, "--db", db, "--port", "0", "--json", *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        yield started(process, log)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(timeout=300)
        if process.stdout is not None:
            process.stdout.close()


def started(process: subprocess.Popen[str], log: Path) -> Running:
    """Wait until it listens."""
    assert process.stdout is not None
    text = ""
    for line in process.stdout:
        text += line
        if line.rstrip() == "}":
            document = json.loads(text)
            return Running(process, document["url"], document.get("password", ""), document["digest"], log)
    raise AssertionError(f"the collector did not start: {log.read_text(encoding='utf-8')}")


@dataclass
class Load:
    """What became of requests: status and seconds by their number; a broken connection leaves none."""

    status: dict[int, int] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=dict)
    wall: float = 0.0

    @property
    def acknowledged(self) -> list[int]:
        return [number for number, status in self.status.items() if status == 200]


async def send_all(
    port: int,
    bodies: Sequence[bytes],
    clients: int,
    at: tuple[int, Callable[[], None]] | None = None,
    clock: Callable[[], float] = lambda: 0.0,
) -> Load:
    """Send every body once, over as many connections as there are clients, each with one request at a time.

    ``at`` names a number of replies and what is done when they have come. Tests look at no clock: who measures brings
    one.
    """
    load = Load()
    numbers = iter(range(len(bodies)))
    began = clock()

    async def client() -> None:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return
        try:
            for number in numbers:
                sent = clock()
                writer.write(_request(bodies[number]))
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
                await reader.readexactly(length)
                load.status[number] = int(head[9:12])
                load.seconds[number] = clock() - sent
                if at is not None and len(load.status) == at[0]:
                    at[1]()
        except (OSError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    load.wall = clock() - began
    return load


def _request(body: bytes) -> bytes:
    head = (
        f"POST /api/answer HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    )
    return head.encode() + b"\r\n\r\n" + body


def bodies_for(running_digest: str, given: Sequence[str], codes: Sequence[int]) -> list[bytes]:
    """Write an answer for each token."""
    return [
        json.dumps({"token": token, "digest": running_digest, "answers": {"answer": int(code)}}).encode()
        for token, code in zip(given, codes, strict=True)
    ]
