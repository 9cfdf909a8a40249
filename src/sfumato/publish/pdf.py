"""The one page of a release as PDF, printed by a browser that is there."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from sfumato.core.errors import OptionError, SfumatoError

__all__ = ["find_browser", "print_summary"]

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
_SECONDS = 60


def find_browser() -> str:
    """Path of a browser that prints: the one that SFUMATO_CHROMIUM names, or one that is installed.

    Raises
    ------
    OptionError
        Where there is none.
    """
    found = os.environ.get("SFUMATO_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        raise OptionError("no Chromium or Chrome was found to make a PDF; print summary.html from any browser instead")
    return found


def print_summary(folder: str | Path) -> Path:
    """Print ``owner/summary.html`` of a release into ``owner/summary.pdf``, for its owner's eyes alone.

    Raises
    ------
    OptionError
        Where there is no browser, or no such page.
    SfumatoError
        Where the browser did not print.
    """
    page, target = Path(folder, "owner", "summary.html").absolute(), Path(folder, "owner", "summary.pdf").absolute()
    browser = find_browser()
    if not page.is_file():
        raise OptionError(f"there is no {page.name} in {str(page.parent)!r}; make the release with a report")
    with tempfile.TemporaryDirectory(prefix="sfumato-") as profile:
        made = Path(profile, "summary.pdf")
        command = [browser, "--headless", "--disable-gpu", "--no-pdf-header-footer", "--no-first-run"]
        command += [f"--user-data-dir={profile}", f"--print-to-pdf={made}", page.as_uri()]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # it refuses to start for root otherwise; the page runs no script
        try:
            subprocess.run(command, check=True, timeout=_SECONDS, stdin=subprocess.DEVNULL, capture_output=True)
            paper = made.read_bytes()
        except (OSError, subprocess.SubprocessError):
            raise SfumatoError("the browser did not print summary.html; print it from any browser instead") from None
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(paper)
    return target
