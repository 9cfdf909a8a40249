"""The real MDAV against its transcription."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.methods.condense.partition import mdav_groups
from tests.examples import examples
from tests.oracles import mdav


@examples(100, few=20)
@given(st.integers(1, 120), st.integers(1, 8), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_mdav_does_what_its_definition_says(n: int, d: int, k: int, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(n, d))  # without ties
    real = [frozenset(group.tolist()) for group in mdav_groups(values, k)]
    assert set(real) == set(mdav.mdav(values, k))
    assert sum(len(group) for group in real) == n


@pytest.mark.parametrize("k", [2, 5, 9])
def test_it_agrees_at_every_number_of_records_where_a_case_begins_or_ends(k: int) -> None:
    for n in (1, k - 1, k, k + 1, 2 * k - 1, 2 * k, 2 * k + 1, 3 * k - 1, 3 * k, 3 * k + 1, 4 * k, 5 * k - 1):
        values = np.random.default_rng(n).normal(size=(n, 3))
        assert {frozenset(group.tolist()) for group in mdav_groups(values, k)} == set(mdav.mdav(values, k))


def test_small_batches_between_two_looks_at_ctrl_c_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).normal(size=(400, 3))
    monkeypatch.setattr("sfumato.methods.condense.partition._PAIRS_A_CALL", 1)
    real = {frozenset(group.tolist()) for group in mdav_groups(values, 4)}
    assert real == set(mdav.mdav(values, 4))
