"""A real Redis server on loopback, started for a test and torn down after it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from tests.ports import free_port


class Server:
    """A process that keeps its data in a temporary folder, every command on disk before it is answered."""

    def __init__(self) -> None:
        pytest.importorskip("redis", reason="the Redis client library is not installed here")
        program = shutil.which("redis-server") or shutil.which("valkey-server")
        if program is None:
            pytest.skip("no Redis server is installed here")
        self._program, self._folder = program, Path(tempfile.mkdtemp(prefix="redis"))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def client(self) -> Any:
        import redis

        return redis.Redis(port=self.port)

    def start(self) -> None:
        """Start the server on its folder and wait until it answers."""
        import redis

        self._process = subprocess.Popen(
            [self._program, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._folder), "--save", "",
             "--appendonly", "yes", "--appendfsync", "always", "--logfile", str(self._folder / "log")],
        )  # fmt: skip
        end = time.monotonic() + 300
        while time.monotonic() < end:
            try:
                if self.client().ping():
                    return
            except redis.RedisError:
                time.sleep(0.05)
        pytest.fail("the Redis server did not start")

    def kill(self) -> None:
        """End the process at once, as a crash does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def remove(self) -> None:
        if self._process is not None:
            self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)
