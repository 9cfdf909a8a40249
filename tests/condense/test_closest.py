"""How the closest centroid is found: only speed may depend on it."""

from __future__ import annotations

from unittest.mock import Mock

import numpy as np
import pytest

from sfumato.methods.condense import centroid_index
from sfumato.methods.condense.centroid_index import fill_cache
from sfumato.methods.condense.maintainer import Maintainer


def unstructured(groups: int) -> Maintainer:
    """Groups of ten records each that overlap everywhere, so that an index leaves out little."""
    records = 10 * groups
    made = Maintainer(10, k=10)
    values = np.random.default_rng(1).normal(size=(records, 10))
    made.start(values, np.full(records, 10), np.arange(records) // 10)
    return made


def test_arrivals_one_by_one_write_no_cache_for_each_and_join_the_same_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    values, levels = np.random.default_rng(2).normal(size=(300, 10)), np.full(300, 10)
    together, apart = unstructured(600), unstructured(600)
    together.absorb(values, levels)
    written = Mock(side_effect=fill_cache)
    monkeypatch.setattr(centroid_index, "fill_cache", written)
    for row in range(300):
        apart.absorb(values[row : row + 1], levels[row : row + 1])
    assert not written.called
    np.testing.assert_array_equal(apart.rows().ids, together.rows().ids)
    np.testing.assert_array_equal(apart.rows().mean, together.rows().mean)


def test_many_arrivals_are_written_cached_where_the_index_leaves_out_little(monkeypatch: pytest.MonkeyPatch) -> None:
    made, written = unstructured(600), Mock(side_effect=fill_cache)
    monkeypatch.setattr(centroid_index, "fill_cache", written)
    made.absorb(np.random.default_rng(2).normal(size=(3000, 10)), np.full(3000, 10))
    assert written.called
