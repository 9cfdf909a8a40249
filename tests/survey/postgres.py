"""A fresh PostgreSQL in a folder, where its programs are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.ports import free_port


def postgres_programs() -> Path | None:
    """Folder of initdb and pg_ctl, as on the path or as Debian's package puts them."""
    folders = [*Path("/usr/lib/postgresql").glob("*/bin"), *map(Path, os.environ.get("PATH", "").split(os.pathsep))]
    return next((each for each in folders if (each / "initdb").exists() and (each / "pg_ctl").exists()), None)


@contextmanager
def postgres_cluster(programs: Path, _folder: Path | None = None) -> Iterator[str]:
    """Start a cluster on a free port of the loopback and give its URL; it is removed at the end.

    PostgreSQL does not run as root: a root user starts it as nobody.
    """
    home = Path(tempfile.mkdtemp(prefix="sfumato-pg-"))
    user: dict[str, Any] = {}
    if os.geteuid() == 0:
        user = {"user": 65534, "group": 65534, "extra_groups": []}
        os.chown(home, 65534, 65534)
    port = free_port()
    settings: dict[str, Any] = {"check": True, "capture_output": True, "cwd": home, **user}
    data, log = home / "data", home / "log"
    try:
        subprocess.run([programs / "initdb", "-D", data, "-U", "survey", "-A", "trust", "-E", "UTF8"], **settings)
        options = f"-k {home} -p {port} -c listen_addresses=127.0.0.1"
        subprocess.run([programs / "pg_ctl", "-D", data, "-l", log, "-w", "-o", options, "start"], **settings)
        try:
            yield f"postgresql://survey@127.0.0.1:{port}/postgres"
        finally:
            subprocess.run([programs / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"], **settings)
    finally:
        shutil.rmtree(home, ignore_errors=True)
