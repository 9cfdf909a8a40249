"""How much is tried: the same few examples every time in ``make test``, many more at random in ``make slow``.

And what several rooms share.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from sfumato.assess import measure
from sfumato.assess.attacks import labels
from sfumato.assess.utility import clustering, prediction, propensity
from tests.examples import USUAL, in_full

# A slow or busy machine fails no test: no example has a deadline, and drawing them may take as long as it takes.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fixed", unhurried, max_examples=USUAL // 3, derandomize=True)
settings.register_profile("random", unhurried, max_examples=10 * USUAL, print_blob=True)
settings.load_profile("fixed")

_constants_of_modules = providers._get_local_constants


def _constants() -> Any:
    """Constants to draw beside others: in ``make test`` none of modules, for which are loaded depends on the run."""
    return _constants_of_modules() if in_full() else providers._local_constants


providers._get_local_constants = _constants

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a run in the background ignores interrupts, which tests send
    signal.signal(signal.SIGINT, signal.default_int_handler)

_FEWER = {
    **{(room, "_ROUNDS"): 10 for room in (prediction, labels, propensity)},
    (clustering, "_REDRAWS"): 2,
}
_WHOLE = {(room, name): getattr(room, name) for room, name in _FEWER}
_DRAW = measure.draw_figures


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Call bytes and odd texts by the name of their argument: a tool that names tests on a command line can read it."""
    plain = isinstance(val, str) and len(val) <= 60 and val.isascii() and val.isprintable() and "\\" not in val
    return argname if isinstance(val, str | bytes) and not plain else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """In ``make test`` let models of reports learn in fewer rounds, and draw figures for tests that are marked."""
    whole = in_full() or item.get_closest_marker("slow") is not None
    for (room, name), number in (_WHOLE if whole else _FEWER).items():
        setattr(room, name, number)
    measure.draw_figures = _DRAW if whole or item.get_closest_marker("drawn") else lambda *_: ()


@pytest.fixture(scope="module")
def undrawn() -> Iterator[None]:
    """Leave the figures out of reports that a module shares, in ``make test``."""
    with pytest.MonkeyPatch.context() as patch:
        if not in_full():
            patch.setattr(measure, "draw_figures", lambda *_: ())
        yield


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the figures out of reports: they are most of the work, and have tests of their own."""
    monkeypatch.setattr(measure, "draw_figures", lambda *_: ())


@pytest.fixture
def without_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare columns and look for near rows, and run no other measure and no attack, where they are not asked for."""
    monkeypatch.setattr(measure, "catalogue", lambda: ())


@pytest.fixture
def short_reports(without_figures: None, without_catalogue: None) -> None:
    """Leave both out, where the way of a report counts and not its findings."""


@pytest.fixture
def without_utility(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what a table is good for, do no more than compare columns in ``make test``; run risks and attacks."""
    if not in_full():
        monkeypatch.setattr(measure, "catalogue", lambda: (*measure._risk(), *measure._attacks()))


@pytest.fixture
def columns_only(request: pytest.FixtureRequest) -> None:
    """Compare columns and look for near rows in ``make test``, and run every measure and attack in ``make slow``."""
    if not in_full():
        request.getfixturevalue("without_catalogue")
