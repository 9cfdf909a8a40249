"""Nearest rows and equal rows: the quick ways find what the plain ones find."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.assess.risk import closest
from sfumato.assess.risk.closest import CLOSEST, closeness, measure_closest, verbatim_rows
from sfumato.assess.study import Column
from tests.examples import examples


def nearest_by_hand(
    rows: NDArray[np.float64], queries: NDArray[np.float64], own: NDArray[np.int64] | None
) -> NDArray[np.float64]:
    distances = np.sqrt(((queries[:, None, :] - rows[None, :, :]) ** 2).sum(axis=2))
    if own is not None:
        distances[np.arange(len(queries)), own] = np.inf
    return np.asarray(distances.min(axis=1))


@pytest.mark.parametrize("dim", [1, 3, 12, 13, 30])
@pytest.mark.parametrize("decimals", [0, 8])  # with none there are many equal rows
def test_the_nearest_row_is_found_with_a_tree_and_without(dim: int, decimals: int) -> None:
    rng = np.random.default_rng(dim)
    original, released = (np.round(rng.normal(size=(300, dim)), decimals) for _ in range(2))
    found = measure_closest(original, released, None, rng)
    np.testing.assert_allclose(found.released, nearest_by_hand(original, released, None), atol=1e-12)
    np.testing.assert_allclose(found.original, nearest_by_hand(original, original, np.arange(300)), atol=1e-12)


def test_without_a_tree_fewer_rows_of_a_large_table_are_looked_up_and_the_finding_says_how_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(closest, "_PAIRS", 30_000)
    monkeypatch.setattr(closest, "_FEWEST", 10)
    rng = np.random.default_rng(0)
    wide, narrow = rng.normal(size=(300, 20)), rng.normal(size=(300, 4))
    few, all_ = measure_closest(wide, wide + 1.0, None, rng), measure_closest(narrow, narrow + 1.0, None, rng)
    assert (len(few.released), len(few.original)) == (100, 100)
    assert "counted on 100 rows drawn at random" in CLOSEST.findings(closeness(few, (300, 300)))[0].meaning
    assert len(all_.released) == 300
    assert "drawn at random" not in CLOSEST.findings(closeness(all_, (300, 300)))[0].meaning


@examples(80)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 30), st.integers(1, 4), st.integers(1, 4))
def test_equal_rows_are_counted_as_a_loop_counts_them(seed: int, n: int, m: int, columns: int, values: int) -> None:
    rng = np.random.default_rng(seed)

    def draw(rows: int) -> list[Column]:
        drawn = []
        for _ in range(columns):
            absent = rng.random(rows) < 0.2
            cells = rng.integers(0, values, rows) * rng.choice([-1.0, 1.0], rows)  # both zeros are one value
            drawn.append(Column(np.where(absent, 0.0, cells), absent))
        return drawn

    def rows_of(table: list[Column]) -> list[tuple[float | None, ...]]:
        cells = [[None if gone else value for value, gone in zip(c.values, c.absent, strict=True)] for c in table]
        return list(zip(*cells, strict=True))

    original, released = draw(n), draw(m)
    ours, theirs = rows_of(original), rows_of(released)
    finding = verbatim_rows(original, released)
    assert finding.value == pytest.approx(sum(row in ours for row in theirs) / m)
    assert finding.baseline == pytest.approx(sum(ours.count(row) > 1 for row in ours) / n)


def test_rows_that_share_a_hash_and_are_not_equal_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closest, "_hash_rows", lambda cells: np.zeros(len(cells[0].values), dtype=np.uint64))
    here = [Column(np.array([1.0, 2.0, 2.0]), np.zeros(3, dtype=np.bool_))]
    there = [Column(np.array([2.0, 3.0]), np.zeros(2, dtype=np.bool_))]
    finding = verbatim_rows(here, there)
    assert finding.value == 0.5
    assert finding.baseline == pytest.approx(2 / 3)


@pytest.mark.parametrize("spread", [0.0, 1e-6], ids=["equal", "nearly equal"])
def test_rows_that_hang_on_the_same_person_count_once(spread: float) -> None:
    """1,300 rows at one spot say no more than one row does: the interval holds one half."""
    rng = np.random.default_rng(4)
    original, held_out = rng.normal(size=(300, 3)), rng.normal(size=(300, 3))
    released = original[:1] + spread * rng.normal(size=(1300, 3))
    seen = closeness(measure_closest(original, released, held_out, rng), (300, 1300))
    found = {f.name: f for f in CLOSEST.findings(seen)}
    for name in ("closer-to-original-than-control", "closer-than-original-neighbours"):
        assert found[name].value == 1.0
        low, high = found[name].interval or (0.0, 0.0)
        assert low == pytest.approx(0.2065, abs=1e-4)
        assert high == 1.0


@pytest.mark.parametrize("copied", [False, True], ids=["redraw", "copy"])
def test_a_copy_is_nearer_to_the_originals_and_a_redraw_is_not(copied: bool) -> None:
    rng = np.random.default_rng(5)
    original, held_out, other = rng.normal(size=(3, 400, 4))
    released = original if copied else other
    found = CLOSEST.findings(closeness(measure_closest(original, released, held_out, rng), (400, 400)))[2]
    assert found.interval is not None
    assert (found.interval[0] > 0.98) if copied else (found.interval[0] < 0.5 < found.interval[1])
