"""Pairs that were turned one after the other are found from a few known rows, whatever their order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ortho_group

from sfumato.assess.attacks.known_input import find_turns, turn_back
from sfumato.methods.geometry.key import Key
from sfumato.methods.geometry.transformations import PAIRS, Ranges, hybrid


def turned(seed: int, d: int, pairs: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    names = [f"c{place}" for place in range(d)]
    rows = rng.normal(size=(40, d)) + 3 * rng.random(d)
    return rows, hybrid(rows, Key.generate(names, Ranges(), rng, kind="rotate", pairs=pairs), names)


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), d=st.integers(2, 12), pairs=st.sampled_from(PAIRS), known=st.integers(2, 4))
def test_two_rows_that_are_known_exactly_undo_turns_of_pairs(seed: int, d: int, pairs: str, known: int) -> None:
    before, after = turned(seed, d, pairs)
    found = find_turns(before[:known], after[:known], np.zeros(d))
    assert found is not None
    np.testing.assert_allclose(turn_back(after, found), before, atol=1e-4)


@pytest.mark.parametrize("pairs", PAIRS)
def test_rounded_numbers_are_undone_from_three_rows(pairs: str) -> None:
    for seed in range(5):
        before, after = turned(seed, 9, pairs)
        after = after.round(2)
        found = find_turns(before[:3], after[:3], np.full(9, 0.005))
        assert found is not None
        assert (np.abs(turn_back(after, found) - before) <= 0.1).mean() > 0.99


def test_rows_that_no_turns_of_pairs_explain_are_not_explained() -> None:
    rng = np.random.default_rng(1)
    before = rng.normal(size=(3, 8))
    assert find_turns(before, before @ ortho_group.rvs(8, random_state=rng), np.zeros(8)) is None
    assert find_turns(before, rng.normal(size=(3, 8)), np.full(8, 0.01)) is None
