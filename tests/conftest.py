"""How property tests draw: the same examples every time in ``make test``, many more at random in ``make slow``.

And what several rooms share.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from sfumato.assess import catalogue, measure
from tests.examples import USUAL

# A slow or busy machine fails no test: no example has a deadline, and drawing them may take as long as it takes.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fixed", unhurried, max_examples=USUAL // 2, derandomize=True)
settings.register_profile("random", unhurried, max_examples=10 * USUAL, print_blob=True)
settings.load_profile("fixed")


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the figures out of reports: they are most of the work, and have tests of their own."""
    monkeypatch.setattr(measure, "draw_album", lambda *_: ())


@pytest.fixture
def without_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare columns and look for near rows, and run no other measure and no attack, where they are not asked for."""
    monkeypatch.setattr(measure, "catalogue", lambda: ())


@pytest.fixture
def short_reports(without_figures: None, without_catalogue: None) -> None:
    """Leave both out, where the way of a report counts and not its findings."""


@pytest.fixture
def without_utility(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run risks and attacks, and no measure of what a table is good for but the comparison of columns."""
    monkeypatch.setattr(measure, "catalogue", lambda: (*catalogue._risk(), *catalogue._attacks()))
