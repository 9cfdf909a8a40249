"""Linear algebra and models keep to one thread where tables are measured and distributions are reconstructed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from sfumato.assess import measure
from sfumato.assess.algebra import Measure, Stated
from sfumato.assess.findings import Family
from sfumato.assess.study import Study
from sfumato.core.distributions.domains import Labels
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.publish.evaluate import evaluate
from sfumato.survey.reconstruct import estimate, reconstruct


def held_pools(seen: list[int]) -> None:
    import sklearn.ensemble  # noqa: F401

    seen.extend(pool["num_threads"] for pool in threadpool_info())


def test_a_measure_finds_every_pool_held_to_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def look(_study: Study) -> Iterable[Stated]:
        held_pools(seen)
        return ()

    monkeypatch.setattr(measure, "catalogue", lambda: (Measure("look", Family.PRIVACY, "", look),))
    table = pa.table({"age": list(range(20, 60)), "pay": [float(row % 7) for row in range(40)]})
    with threadpool_limits(limits=2):
        evaluate(table, table, seed=1)
    assert seen
    assert set(seen) == {1}


def test_a_reconstruction_holds_every_pool_to_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def look(*_anything: Any) -> None:
        held_pools(seen)

    monkeypatch.setattr(estimate, "refuse_too_few", look)
    spec = NoiseSpec(Labels(("no", "yes")), {"name": "keep-or-replace", "keep": 0.75})
    with threadpool_limits(limits=2):
        held_pools([])
        reconstruct(["no"] * 40 + ["yes"] * 60, spec)
    assert seen
    assert set(seen) == {1}
