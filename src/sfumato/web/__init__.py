"""Run the web page: a loopback socket, a temporary folder, and a clean shutdown."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sfumato.core.connections import HEADER_TIMEOUT, listen, run_app
from sfumato.core.errors import OptionError
from sfumato.core.replacing import work_folder

__all__ = ["serve"]

_HOST = "127.0.0.1"
_MOST_CONNECTIONS = 500  # that are open at once


def serve(
    ready: Callable[[str], None],
    *,
    port: int = 0,
    most_bytes: int = 500_000_000,
    save: Path | None = None,
    stream: str | None = None,
    survey: str | None = None,
    header_timeout: float = HEADER_TIMEOUT,
) -> None:
    """Serve the page until Ctrl-C or SIGTERM; then delete the session's folder.

    ``ready`` receives the address, with its token, once connections are accepted. Port 0 is any free one,
    ``most_bytes`` are those of a file that is dropped in, and ``save`` is the folder under which releases are saved
    where that is asked for. ``stream`` and ``survey`` are a state and a database whose status is shown. A connection is
    closed if no request header has arrived after ``header_timeout`` seconds.
    """
    try:
        import uvicorn  # noqa: F401

        from sfumato.web.app import WebPage
        from sfumato.web.visit import WebSession
    except ModuleNotFoundError as error:
        raise OptionError(f"the page needs {error.name}; install sfumato[web]") from None
    if save is not None and not save.is_dir():
        raise OptionError(f"there is no folder {str(save)!r} to save into; make it first")
    listening = listen(_HOST, port, 128, "choose another --port")
    port, token = listening.getsockname()[1], secrets.token_urlsafe(24)
    try:
        with work_folder(Path(tempfile.gettempdir(), f"sfumato-web-{os.geteuid()}")) as folder:
            visit = WebSession(folder, most_bytes, save)
            page = WebPage(visit, token, port, stream=_place(stream), survey=_place(survey))
            with suppress(KeyboardInterrupt):
                ready(f"http://{_HOST}:{port}/?token={token}")
                run_app(
                    page,
                    listening,
                    header_timeout,
                    limit_concurrency=_MOST_CONNECTIONS,
                    proxy_headers=False,
                    timeout_graceful_shutdown=2,
                )
    finally:
        listening.close()


def _place(address: str | None) -> str | None:
    """A database by its URL or its whole path, for the work is done in another folder."""
    return address if address is None or "://" in address else str(Path(address).absolute())
