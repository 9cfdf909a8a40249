"""The nginx configuration of the documentation, in front of a collector."""

from __future__ import annotations

import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPResponse, HTTPSConnection
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.survey.process import Running, bodies_for, collector, tokens

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed on this machine")

DOCS = Path(__file__).parents[2] / "docs" / "survey.md"
PATIENCE = 300.0  # seconds after which a test gives up; nothing is timed
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


@dataclass(frozen=True)
class Proxied:
    """A collector behind nginx."""

    collector: Running
    db: str
    port: int
    trusted: ssl.SSLContext

    def connect(self, source: str = "127.0.0.1") -> HTTPSConnection:
        return HTTPSConnection(
            "127.0.0.1", self.port, timeout=PATIENCE, source_address=(source, 0), context=self.trusted
        )

    def begin_answer(self, source: str) -> HTTPSConnection:
        """Send all of an answer but its end."""
        connection = self.connect(source)
        connection.putrequest("POST", "/api/answer")
        connection.putheader("content-type", "application/json")
        connection.putheader("content-length", "100")
        connection.endheaders(b"{")
        return connection

    def request(self, method: str, path: str, body: bytes | None = None, source: str = "127.0.0.1") -> HTTPResponse:
        with closing(self.connect(source)) as connection:
            connection.request(method, path, body, {"content-type": "application/json"})
            response = connection.getresponse()
            response.read()
        return response

    def health(self, source: str) -> int:
        return self.request("GET", "/health", source=source).status


def configuration() -> str:
    """The configuration that the documentation ships."""
    found = re.search(r"```nginx\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


def replaced(text: str, **values: str) -> str:
    """The configuration with other values of some directives."""
    for directive, value in values.items():
        text, times = re.subn(rf"\b{directive} [^;]*;", f"{directive} {value};", text)
        assert times == 1, directive
    return text


@contextmanager
def nginx(site: str, folder: Path, port: int) -> Iterator[None]:
    """Run nginx with one site until the block ends."""
    folder.mkdir()
    folders = "".join(f"{name}_temp_path {folder / name};" for name in TEMPORARY)
    user = "user root;" if os.geteuid() == 0 else ""
    config = folder / "nginx.conf"
    config.write_text(
        f"{user} daemon off; pid {folder / 'pid'}; error_log {folder / 'error.log'}; events {{}}\n"
        f"http {{ {folders}\n{site} }}\n"
    )
    assert NGINX is not None
    process = subprocess.Popen([NGINX, "-c", str(config), "-p", str(folder), "-e", str(folder / "error.log")])
    try:
        end = time.monotonic() + PATIENCE
        while True:
            assert process.poll() is None, (folder / "error.log").read_text()
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                assert time.monotonic() < end
                time.sleep(0.02)
        yield
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)


@pytest.fixture(scope="module")
def proxied(certificate: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    """A collector behind nginx, with less patience and fewer connections than the documentation has."""
    folder, port = tmp_path_factory.mktemp("proxied"), free_port()
    db = str(folder / "survey.db")
    with collector(db, folder, "--proxy", "127.0.0.1", "--rate", "1") as running:
        site = replaced(
            configuration(),
            listen=f"127.0.0.1:{port} ssl",
            server_name="127.0.0.1",
            ssl_certificate=str(certificate[0]),
            ssl_certificate_key=str(certificate[1]),
            proxy_pass=f"http://127.0.0.1:{running.port}",
            client_header_timeout="1s",
        )
        site = re.sub(r"limit_conn survey \d+;", "limit_conn survey 3;", site)
        with nginx(site, folder / "nginx", port):
            yield Proxied(running, db, port, ssl.create_default_context(cafile=str(certificate[0])))


def test_answers_arrive_and_each_address_has_its_own_rate(proxied: Proxied) -> None:
    bodies = iter(bodies_for(proxied.collector.digest, tokens(proxied.db, 30), [3] * 30))

    def status(source: str) -> int:
        return proxied.request("POST", "/api/answer", next(bodies), source).status

    assert [status("127.0.0.2") for _ in range(10)] == [200] * 10
    assert 429 in [status("127.0.0.2") for _ in range(15)]
    assert status("127.0.0.3") == 200


def test_the_page_has_its_headers_and_a_login_is_for_tls_only(proxied: Proxied) -> None:
    page = proxied.request("GET", "/")
    assert page.status == 200
    assert "default-src 'none'" in str(page.headers["content-security-policy"])
    login = f'{{"password": "{proxied.collector.password}"}}'.encode()
    assert "; Secure" in str(proxied.request("POST", "/dashboard/login", login).headers["set-cookie"])


def test_one_address_has_so_many_requests_at_once_and_does_not_shut_out_another(proxied: Proxied) -> None:
    begun = [proxied.begin_answer("127.0.0.4") for _ in range(3)]
    while proxied.health("127.0.0.4") != 429:  # until nginx has read the three headers
        time.sleep(0.02)
    assert proxied.health("127.0.0.5") == 200
    for connection in begun:
        connection.close()


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01"], ids=["nothing", "part of a handshake"])
def test_three_hundred_half_open_connections_are_closed_and_keep_nobody_out(proxied: Proxied, sent: bytes) -> None:
    with ExitStack() as stack:
        address = ("127.0.0.1", proxied.port)
        opened = [stack.enter_context(socket.create_connection(address, timeout=PATIENCE)) for _ in range(300)]
        for connection in opened:
            connection.sendall(sent)
        assert proxied.health("127.0.0.6") == 200
        assert [connection.recv(1) for connection in opened] == [b""] * 300
