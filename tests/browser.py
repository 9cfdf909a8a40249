"""The browser that tests look at pages with: the Chromium of this machine (SFUMATO_CHROMIUM names another one)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

__all__ = ["chromium", "started"]

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def chromium() -> str | None:
    """Where it is, None where there is none."""
    return os.environ.get("SFUMATO_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)


@contextmanager
def started() -> Iterator[Any]:
    """A running browser; the test is skipped, saying so, without one or without Playwright."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pages not looked at")
    path = chromium()
    if path is None:
        pytest.skip("no Chromium on this machine: pages not looked at")
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()
