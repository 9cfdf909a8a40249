"""The local search, round by round: never a higher sum of squares, every level met, and gains that are true."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.methods.condense import compact
from sfumato.methods.condense.compact import (
    EFFORTS,
    CompactSearch,
    Grouping,
    WorkerThreads,
    compact_groups,
    first_grouping,
    improved_grouping,
)
from sfumato.methods.condense.leaves import improve_leaves
from tests.condense.tables import Floats, Whole, draw_levels, draw_values, mixture, ssq, stratum_tables
from tests.examples import examples, sized

ALONE = CompactSearch(threads=1)


class Round(NamedTuple):
    """What a round left: the groups, their centres, and the gain that its leaves reported."""

    labels: Whole
    centres: Floats
    gain: float


def play(values: Floats, levels: Whole, *, rounds: int, passes: int, kicks: int, seed: int) -> list[Round]:
    """Start and search round by round; the first entry is the start."""
    gains: list[float] = []
    arguments = inspect.signature(improve_leaves.py_func)  # type: ignore[attr-defined]

    def listening(*given: Any) -> None:
        improve_leaves(*given)
        named = arguments.bind(*given).arguments
        gains.append(float(named["made"].gains[named["first"] : named["last"]].sum()))

    with pytest.MonkeyPatch.context() as patch, WorkerThreads(1) as team:
        patch.setattr(compact, "improve_leaves", listening)
        grouping = first_grouping(values, levels, team)
        played = [_look(grouping, 0.0)]
        for turn in range(rounds):
            gains.clear()
            grouping = improved_grouping(values, levels, grouping, passes, kicks, 3, np.uint64(seed + 977 * turn), team)
            played.append(_look(grouping, sum(gains)))
    return played


def _look(grouping: Grouping, gain: float) -> Round:
    labels = np.full(len(grouping.order), -1)
    labels[grouping.order] = np.repeat(np.arange(len(grouping.starts) - 1), np.diff(grouping.starts))
    return Round(labels, grouping.centres, gain)


def assert_honest(values: Floats, levels: Whole, played: list[Round]) -> None:
    """No round raises the sum of squares, breaks a level, or reports a gain or a centre that is not so."""
    scale = ssq(values, np.zeros(len(values), dtype=np.int64)) + float((values**2).sum()) * 1e-6
    sums = [ssq(values, done.labels) for done in played]
    for done in played:
        sizes = np.bincount(done.labels)
        assert done.labels.min() == 0
        assert (sizes > 0).all()
        assert (sizes[done.labels] >= levels).all()
        means = np.stack([np.bincount(done.labels, column) for column in values.T], axis=1) / sizes[:, None]
        np.testing.assert_allclose(done.centres, means, rtol=1e-9, atol=1e-9 * (1e-300 + np.abs(values).max()))
    for before, after, done in zip(sums[:-1], sums[1:], played[1:], strict=True):
        assert after <= before + 1e-12 * scale
        np.testing.assert_allclose(done.gain, before - after, rtol=1e-9, atol=1e-12 * scale)


@pytest.mark.parametrize("kicks", [0, 12])
@pytest.mark.parametrize("asked", ["one", "narrow", "mostly low", "one above n/2", "ones"])
@pytest.mark.parametrize("kind", ["mixture", "heavy tails", "duplicates", "grid"])
def test_a_round_never_raises_the_sum_of_squares_and_gains_what_it_says(kind: str, asked: str, kicks: int) -> None:
    rng = np.random.default_rng(3)
    n = sized(200, 500)
    values, levels = draw_values(rng, kind, n, 4), draw_levels(rng, asked, n)
    assert_honest(values, levels, play(values, levels, rounds=5, passes=2, kicks=kicks, seed=11))


@given(stratum_tables(), st.integers(0, 2**40), st.sampled_from([0, 6]), st.integers(1, 3))
def test_no_table_makes_a_round_raise_the_sum_of_squares(
    table: tuple[Floats, Whole], seed: int, kicks: int, passes: int
) -> None:
    values, levels = table
    assert_honest(values, levels, play(values, levels, rounds=3, passes=passes, kicks=kicks, seed=seed))


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_many_moves_far_from_the_origin_do_not_spoil_centres_and_gains(offset: float) -> None:
    rng = np.random.default_rng(5)
    values, levels = offset + mixture(rng, 3_000, 5), rng.integers(3, 12, 3_000)
    played = play(values, levels, rounds=6, passes=8, kicks=1, seed=2)
    sums = [ssq(values, done.labels) for done in played]
    for before, after, done in zip(sums[:-1], sums[1:], played[1:], strict=True):
        assert after <= before * (1 + 1e-9)
        assert done.gain == pytest.approx(before - after, rel=1e-6, abs=1e-9 * before)
    assert sums[-1] < 0.95 * sums[0]


def test_groups_too_large_to_search_stay_as_they_are_while_others_improve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "_FROZEN", 100)
    rng = np.random.default_rng(5)
    values, levels = mixture(rng, 2_000, 3), rng.integers(3, 8, 2_000)
    levels[[4, 700]] = 300
    played = play(values, levels, rounds=3, passes=2, kicks=2, seed=2)
    assert_honest(values, levels, played)
    large = [
        {tuple(np.flatnonzero(done.labels == group)) for group in np.flatnonzero(np.bincount(done.labels) > 100)}
        for done in played
    ]
    assert large[0]
    assert all(now == large[0] for now in large)
    assert ssq(values, played[-1].labels) < ssq(values, played[0].labels)


@examples(10)
@given(stratum_tables(most=sized(80, 120)), st.integers(0, 2**32 - 1))
def test_kicks_never_end_above_what_moves_alone_reach(table: tuple[Floats, Whole], seed: int) -> None:
    assert_kicks_do_no_harm(*table, seed)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
@pytest.mark.parametrize(("d", "k"), [(2, 5), (30, 25), pytest.param(250, 25, marks=pytest.mark.slow)])
def test_kicks_do_no_harm_where_a_dissolved_group_can_hardly_come_back(d: int, k: int, seed: int) -> None:
    values = np.random.default_rng(d).normal(size=(200, d))  # groups of k exactly: none grows to 2k to be split again
    assert_kicks_do_no_harm(values, np.full(200, k), seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mixture", "heavy tails", "grid"])
def test_a_thorough_search_never_ends_above_the_default(kind: str) -> None:
    rng = np.random.default_rng(2)
    values, levels = draw_values(rng, kind, 120, 3), rng.integers(3, 8, 120)
    for seed in range(3):
        sums = {}
        for effort in ("default", "thorough"):
            groups = compact_groups(values, levels, np.random.default_rng(seed), effort=effort, search=ALONE)
            sums[effort] = sum(ssq(values[group], np.zeros(len(group), dtype=np.int64)) for group in groups)
        assert sums["thorough"] <= sums["default"] * (1 + 1e-12)


def assert_kicks_do_no_harm(values: Floats, levels: Whole, seed: int) -> None:
    """From the same seed kicks end at most where moves alone do, and these at most where they began."""
    sums = []
    for kicks in (0, EFFORTS["default"].kicks):
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(EFFORTS, "default", replace(EFFORTS["default"], kicks=kicks))
            groups = compact_groups(values, levels, np.random.default_rng(seed), search=ALONE)
        labels = np.empty(len(values), dtype=np.int64)
        labels[np.concatenate(groups)] = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
        sums.append(ssq(values, labels))
    with WorkerThreads(1) as team:
        start = _look(first_grouping(values, levels, team), 0.0).labels
    rounding = 1e-12 * (ssq(values, np.zeros(len(values), dtype=np.int64)) + float((values**2).sum()) * 1e-6)
    assert sums[1] <= sums[0] + rounding
    assert sums[0] <= ssq(values, start) + rounding


@pytest.mark.parametrize("asked", ["one", "narrow"])
@pytest.mark.parametrize("kind", ["mixture", "heavy tails", "normal"])
def test_after_kicks_no_move_of_a_record_and_no_exchange_of_two_would_help(kind: str, asked: str) -> None:
    """What the search did not look at again because it had not changed would not have helped indeed."""
    rng, n = np.random.default_rng(8), sized(30, 60)
    values, levels = draw_values(rng, kind, n, 3), draw_levels(rng, asked, n) + 2
    done = play(values, levels, rounds=1, passes=0, kicks=40, seed=3)[-1]  # so few records make one leaf
    labels, least = done.labels, ssq(values, done.labels)
    sizes = np.bincount(labels)
    for i in range(n):
        for group in range(len(sizes)):
            assert not _helps(values, levels, labels, least, [i], [group])
        for j in range(i):
            assert not _helps(values, levels, labels, least, [i, j], [int(labels[j]), int(labels[i])])


def _helps(values: Floats, levels: Whole, labels: Whole, least: float, rows: list[int], to: list[int]) -> bool:
    """Tell whether records may go to these groups and the sum of squares then falls."""
    groups = {*labels[rows].tolist(), *to}
    inside = np.isin(labels, list(groups))
    moved = labels.copy()
    moved[rows] = to
    now, then = labels[inside], moved[inside]
    sizes = np.bincount(then)
    if (moved[rows] == labels[rows]).all() or (sizes[then] < levels[inside]).any() or len(set(then)) < len(groups):
        return False
    return ssq(values[inside], then) < ssq(values[inside], now) - 1e-8 * least


def test_kicks_find_what_moves_alone_do_not() -> None:
    sums = {0: 0.0, 20: 0.0}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        values, levels = mixture(rng, 200, 3), np.full(200, 4)
        for kicks in sums:
            last = play(values, levels, rounds=6, passes=4, kicks=kicks, seed=seed)[-1]
            sums[kicks] += ssq(values, last.labels)
    assert sums[20] < sums[0]


def test_groups_that_were_shaken_in_vain_are_left_after_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all groups have k records, as in noise without structure, dissolved ones do not come back."""
    values, left = np.random.default_rng(3).normal(size=(100, 30)), list[tuple[int, float]]()

    def listening(*given: Any) -> Grouping:
        made = improved_grouping(*given)
        if given[4]:
            left.append((len(made.starts) - 1, compact._ssq(values, made)))
        return made

    monkeypatch.setattr(compact, "improved_grouping", listening)
    compact_groups(values, np.full(100, 5), np.random.default_rng(0), search=ALONE)
    least = np.minimum.accumulate([sum_left for _, sum_left in left])
    hopeless = [sum_left > 1.005 * best for (_, sum_left), best in zip(left, least, strict=True)]
    assert min(groups for groups, _ in left) < 20
    assert 0 < sum(hopeless) <= EFFORTS["default"].shakes
