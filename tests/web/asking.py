"""The page asked without a socket, and as a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from sfumato.web.app import WebPage
from sfumato.web.visit import WebSession
from sfumato.web.worker import Job

TOKEN = "the token of a test"
PORT = 4321
HOST = f"127.0.0.1:{PORT}"


class Idle:
    """Stands for the process that works: takes orders, and ends each as instructed."""

    def __init__(self, result: dict[str, Any] | None = None) -> None:
        self.job: Job | None = None
        self.busy = False
        self.orders: list[dict[str, Any]] = []
        self.result = result

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        self.busy = False

    kill = start

    async def begin(self, kind: str, keep: Any = None, **told: Any) -> Job:
        self.orders.append({"step": kind, **told})
        self.job = Job(len(self.orders), kind, keep=keep, result=self.result)
        if self.result is not None and keep is not None:
            keep(self.result)
        self.job.end("done")
        return self.job


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self) -> str:
        return str(json.loads(self.body)["error"])


class Asking:
    """A page of a folder, and a browser that has entered it."""

    def __init__(self, folder: Path, **told: Any) -> None:
        self.visit = WebSession(folder, told.pop("most_bytes", 1_000), told.pop("save_to", None))
        self.worker = Idle(told.pop("result", None))
        self.visit.worker = self.worker  # type: ignore[assignment]
        self.app = WebPage(self.visit, TOKEN, PORT, **told)
        self.cookie = ""
        self.page = self.app._page_token

    def enter(self) -> Asking:
        self.cookie = self.ask("GET", f"/?token={quote(TOKEN)}").headers["set-cookie"].partition(";")[0]
        return self

    def ask(self, method: str, path: str, body: bytes | list[bytes] = b"", **headers: str) -> Answer:
        split = urlsplit(path)
        named = {"host": HOST, "cookie": self.cookie}
        named |= {"x-sfumato-page": self.page} if method == "POST" else {}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        scope = {
            "type": "http",
            "method": method,
            "path": split.path,
            "raw_path": split.path.encode(),
            "query_string": split.query.encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in named.items() if value],
            "scheme": "http",
            "server": ("127.0.0.1", PORT),
            "client": ("127.0.0.1", 5),
            "root_path": "",
        }
        parts = body if isinstance(body, list) else [body]
        coming = iter([{"type": "http.request", "body": each, "more_body": True} for each in [*parts, b""]])
        last = iter([{"type": "http.request", "body": b"", "more_body": False}])
        sent: list[Any] = []

        async def receive() -> Any:
            message = next(coming, None) or next(last, None)
            return message or await asyncio.Event().wait()  # a browser that stays

        async def send(message: Any) -> None:
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        found = {key.decode(): value.decode() for key, value in sent[0]["headers"]}
        return Answer(sent[0]["status"], found, b"".join(each.get("body", b"") for each in sent[1:]))

    def post(self, path: str, document: Any) -> Answer:
        return self.ask("POST", path, json.dumps(document).encode())


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command as a process, whose folder of the visit lies in this one, and its address."""
    command = [sys.executable, "-m", "sfumato.cli", "web", "--no-browser", "--json", *options]
    environment = {**os.environ, "TMPDIR": str(folder)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        text = ""
        for line in process.stdout:
            text += line
            if line.rstrip() == "}":
                break
        url = str(json.loads(text)["url"])
        assert parse_qs(urlsplit(url).query)["token"]
        yield process, url
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(timeout=300)
        process.stdout.close()
