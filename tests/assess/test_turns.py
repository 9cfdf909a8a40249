"""Pairs that were turned one after the other are found from a few known rows, whatever their order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ortho_group

from sfumato.assess.attacks.known_input import Turn, find_turns, turn_back, undo, undo_turn
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


@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_the_size_of_numbers_does_not_matter(size: float) -> None:
    before, after = turned(2, 7, "chain")
    found = find_turns(size * before[:3], size * after[:3], np.zeros(7))
    assert found is not None
    np.testing.assert_allclose(turn_back(after, found), before, atol=1e-6)


@pytest.mark.parametrize("pairs", PAIRS)
@pytest.mark.parametrize("known", range(2, 8))
def test_any_number_of_known_rows_from_two_on_undoes_turns_of_pairs(pairs: str, known: int) -> None:
    before, after = turned(3, 6, pairs)
    np.testing.assert_allclose(undo(before[:known], after[:known], after, ("rotate",)), before, atol=1e-6)


def test_fewer_rows_than_a_turn_needs_say_nothing_about_what_they_do_not_span() -> None:
    rng = np.random.default_rng(4)
    before, turn = rng.normal(size=(3, 5)), ortho_group.rvs(5, random_state=rng)
    after = before @ turn
    _, _, directions = np.linalg.svd(after)
    np.testing.assert_allclose(undo_turn(before, after, directions[3:]), 0.0, atol=1e-12)
    np.testing.assert_allclose(undo_turn(before, after, after), before, atol=1e-12)


def pair_and_three(seed: int, rows: int = 30) -> tuple[np.ndarray, np.ndarray]:
    """Turn two columns together and three others in a way that is none of pairs."""
    rng = np.random.default_rng(seed)
    before = rng.normal(size=(rows, 5)) + 2.0
    three = ortho_group.rvs(3, random_state=rng)
    three[0] *= np.sign(np.linalg.det(three))
    after = before.copy()
    after[:, 2:] = before[:, 2:] @ three
    return before, turn_back(after, (Turn(0, 1, 0.9),))


def test_a_pair_that_was_turned_alone_is_undone_whatever_was_done_to_the_others() -> None:
    """Then three rows are enough for the other three columns, which they are not for all five."""
    before, after = pair_and_three(5)
    np.testing.assert_allclose(undo(before[:3], after[:3], after, ("rotate",)), before, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_a_pair_of_rounded_numbers_that_was_turned_alone_is_undone_too(seed: int) -> None:
    before, after = pair_and_three(seed)
    rounded = np.rint(after / 0.02) * 0.02
    guess = undo(before[:4], rounded[:4], rounded, ("rotate",), np.full(5, 0.01))
    assert np.abs(guess - before)[:, :2].max() < 0.15
    assert (np.abs(guess - before) <= 0.15).mean() > 0.9


def test_two_columns_that_known_rows_do_not_tell_apart_from_nothing_are_no_pair() -> None:
    """Who knows only zeros of two columns has not seen how they were turned; the others are undone all the same."""
    before, after = pair_and_three(6)
    before = np.column_stack([before, np.where(np.arange(30) < 4, 0.0, 1.0), np.where(np.arange(30) < 4, 0.0, 3.0)])
    after = np.column_stack([after, before[:, 6], -before[:, 5]])
    guess = undo(before[:4], after[:4], after, ("rotate",))
    np.testing.assert_allclose(guess[:, :5], before[:, :5], atol=1e-9)


def shifted_and_turned() -> tuple[np.ndarray, np.ndarray]:
    """Shift a column that is far from 0 and one that is constant among the first rows; turn three others.

    Of the turned ones one is constant among the first rows, too.
    """
    rng = np.random.default_rng(7)
    before = rng.normal(size=(30, 5))
    before[:, 0] += 1e7
    before[:3, 1], before[:3, 2] = 4.0, 0.5
    after = turn_back(before, (Turn(2, 3, 0.7), Turn(3, 4, -1.1)))
    return before, after + np.array([55.0, -3.0, 0.0, 0.0, 0.0])


def test_columns_that_known_rows_show_constant_are_told_to_be_shifted_or_turned_by_what_became_of_them() -> None:
    before, after = shifted_and_turned()
    guess = undo(before[:3], after[:3], after, ("add", "rotate"))
    np.testing.assert_allclose(guess, before, rtol=1e-12, atol=1e-6)


@pytest.mark.parametrize(
    ("d", "pairs", "steps"), [(6, "chain", (3.0,)), (9, "chain", (1 / 30, 1.0)), (9, "disjoint", (1 / 3, 10.0))]
)
def test_numbers_that_were_rounded_differently_are_undone_by_what_each_may_be_off(
    d: int, pairs: str, steps: tuple[float, ...]
) -> None:
    """It takes the cost of all turns together, each misfit in parts of its rounding, and all angles fitted at once."""
    rounding = 0.005 * np.resize(steps, d)
    for seed in range(6):
        before, after = turned(seed, d, pairs)
        after = np.rint(after / (2 * rounding)) * 2 * rounding
        found = find_turns(before[:3], after[:3], rounding)
        assert found is not None
        assert (np.abs(turn_back(after, found) - before) <= 0.1).mean() > 0.95
