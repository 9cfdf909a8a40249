"""Examples in docstrings and on pages: looked for where there are some, and with short reports. And memory."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from sfumato.assess import measure


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Keep the tests of a file, and its examples only where it has some: a search of all others takes seconds."""
    collectors = yield
    if not collectors or ">>>" in file_path.read_text(encoding="utf-8"):
        return collectors
    return [collector for collector in collectors if type(collector) is pytest.Module]


_CONFIG = tempfile.mkdtemp(prefix="sfumato-tests-")


def pytest_configure() -> None:
    """Look for no garbage while modules load and tests are collected: all of it stays.

    Tests, and the processes that they start, sign with a key of their own: the one of who runs them is never used.
    """
    gc.disable()
    os.environ["XDG_CONFIG_HOME"] = _CONFIG
    from sfumato.certificate.signature import new_signing_key

    new_signing_key()


def pytest_unconfigure() -> None:
    """Leave no key behind."""
    shutil.rmtree(_CONFIG, ignore_errors=True)


def pytest_sessionstart() -> None:
    """Forget what tests have cached: `make mutants` runs changed code in the process that ran the original."""
    for module in [module for name, module in sys.modules.items() if name.startswith("tests.")]:
        for each in vars(module).values():
            if hasattr(each, "cache_clear"):
                each.cache_clear()


def pytest_collection_finish() -> None:
    """Leave what was collected to itself: looking through it again and again for garbage takes a twentieth of a run."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.fixture(autouse=True)
def short_reports_in_examples(request: pytest.FixtureRequest) -> None:
    """Draw nothing and measure little in the reports of examples, which show no more of them."""
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
        monkeypatch.setattr(measure, "draw_figures", lambda *_: ())
        monkeypatch.setattr(measure, "catalogue", lambda: ())
