"""Linkability: two halves of a person's columns that lead to the same released row."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.attacks import linkage
from sfumato.assess.attacks.linkage import LINKABILITY, chance_in_common, pick_near, split_columns
from tests.assess.cases import ROWS, constant_table, draw_table, found_by

NAMES = ("linkability", "linkability-ten-nearest")


found = partial(found_by, LINKABILITY)


def numbers(seed: int, rows: int = 300) -> pa.Table:
    values = np.random.default_rng(seed).normal(size=(rows, 4))
    return pa.table({f"c{place}": values[:, place] for place in range(4)})


@pytest.mark.parametrize("width", [1, 15])
def test_the_rows_that_are_picked_are_as_near_as_those_of_a_loop(width: int) -> None:
    rng = np.random.default_rng(width)
    rows = np.round(rng.normal(size=(80, width)), 0 if width == 1 else 3)
    queries = rng.normal(size=(30, width))
    picks = pick_near(rows, queries, 7, rng)
    for query, picked in zip(queries, picks, strict=True):
        away = np.linalg.norm(rows - query, axis=1)
        assert len(set(picked.tolist())) == 7
        np.testing.assert_allclose(np.sort(away[picked]), np.sort(away)[:7])


def test_of_rows_that_are_alike_each_is_picked_as_often() -> None:
    rng = np.random.default_rng(3)
    rows = np.array([[0.0], [0.0], [0.0], [0.0], [9.0]])
    picks = pick_near(rows, np.full((4000, 1), 0.1), 2, rng)
    counts = np.bincount(picks.ravel(), minlength=5)
    assert counts[4] == 0
    np.testing.assert_allclose(counts[:4] / 8000, 0.25, atol=0.04)


def test_every_row_of_a_spot_is_picked_when_a_nearer_spot_comes_first() -> None:
    """Two rows are nearest, three of one place follow: with four picks each of the three is left out as often."""
    rows = np.array([[0.0], [0.1], [1.0], [1.0], [1.0]])
    picks = pick_near(rows, np.zeros((3000, 1)), 4, np.random.default_rng(6))
    assert {tuple(sorted(row)) for row in picks.tolist()} == {(0, 1, 2, 3), (0, 1, 2, 4), (0, 1, 3, 4)}
    assert picks[:, :2].tolist() == [[0, 1]] * 3000
    np.testing.assert_allclose(np.bincount(picks[:, 2:].ravel(), minlength=5)[2:] / 6000, 1 / 3, atol=0.04)


def test_of_an_odd_number_of_columns_either_half_gets_the_one_more() -> None:
    names = list("abcde")
    firsts = {len(split_columns(names, np.random.default_rng(seed))[0]) for seed in range(40)}
    assert firsts == {2, 3}


def test_halves_join_within_the_ten_nearest_rows_of_each() -> None:
    """Of a person at 0 the row that both halves share is the tenth nearest of each, or the eleventh."""
    for place, joined in ((9, 1.0), (10, 0.0)):
        near = np.concatenate([np.arange(1.0, 1 + place), [100.0]])  # 100 stands for what one half alone has near
        a = np.concatenate([near[:-1], np.full(place, 100.0), [float(place + 1)]])
        b = np.concatenate([np.full(place, 100.0), near[:-1], [float(place + 1)]])
        released = pa.table({"a": a, "b": b})
        original = pa.table({"a": np.append(np.zeros(40), 200.0), "b": np.append(np.zeros(40), 200.0)})
        value = found(original, released, holdout=original)["linkability-ten-nearest"].value
        assert value is not None
        assert value == pytest.approx(joined, abs=0.05)  # one of 41 people is far away


def test_columns_are_halved_in_four_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    halves: list[tuple[list[str], list[str]]] = []

    def split(columns: list[str], rng: np.random.Generator) -> tuple[list[str], list[str]]:
        halves.append(split_columns(columns, rng))
        return halves[-1]

    monkeypatch.setattr(linkage, "split_columns", split)
    found(numbers(1), numbers(2), holdout=numbers(3))
    assert len(halves) == 4
    assert len({tuple(first) for first, _ in halves}) > 1


def test_without_people_held_out_a_control_is_not_made_up() -> None:
    for finding in found(numbers(1), numbers(2)).values():
        assert finding.control is None
        assert finding.outside is None


def test_fewer_rows_than_asked_are_all_picked() -> None:
    picks = pick_near(np.arange(3.0)[:, None], np.zeros((2, 1)), 10, np.random.default_rng(1))
    assert picks.tolist() == [[0, 1, 2]] * 2


@pytest.mark.parametrize("columns", [2, 5])
def test_halves_are_disjoint_and_whole(columns: int) -> None:
    names = [str(place) for place in range(columns)]
    for seed in range(10):
        first, second = split_columns(names, np.random.default_rng(seed))
        assert sorted(first + second) == names
        assert abs(len(first) - len(second)) <= 1
        assert first
        assert second


def test_the_guess_is_what_random_picks_have_in_common() -> None:
    rng = np.random.default_rng(2)
    tries = [bool(set(rng.permutation(60)[:10]) & set(rng.permutation(60)[:10])) for _ in range(4000)]
    assert chance_in_common(60, 10) == pytest.approx(np.mean(tries), abs=0.03)
    assert chance_in_common(60, 1) == pytest.approx(1 / 60)


def test_a_copy_whose_halves_are_unique_is_joined_whole() -> None:
    result = found(numbers(1), numbers(1), holdout=numbers(3))
    for name in NAMES:
        assert result[name].value == 1.0
    control = result["linkability"].control
    assert control is not None
    assert control < 0.2


def test_a_copy_with_categories_is_joined_far_more_often_than_held_out_people() -> None:
    finding = found(draw_table(1), draw_table(1), holdout=draw_table(3))["linkability"]
    assert finding.interval is not None
    assert finding.control_interval is not None
    assert finding.interval[0] > finding.control_interval[1] + 0.3


def test_an_independent_redraw_joins_no_more_than_held_out_people() -> None:
    beaten = dict.fromkeys(NAMES, 0)
    for seed in range(10, 20):
        tables = [draw_table(10 * seed + place, 300) for place in range(3)]
        for name, finding in found(tables[0], tables[1], seed=seed, holdout=tables[2]).items():
            assert finding.interval is not None
            assert finding.control_interval is not None
            beaten[name] += finding.interval[0] > finding.control_interval[1]
    assert max(beaten.values()) <= 1


def test_a_constant_table_joins_as_often_as_guessing() -> None:
    result = found(draw_table(1), constant_table(), holdout=draw_table(3))
    for name in NAMES:
        finding = result[name]
        assert finding.interval is not None
        assert finding.baseline is not None
        assert finding.interval[0] <= finding.baseline <= finding.interval[1] or finding.value == pytest.approx(
            finding.baseline, abs=0.03
        )
    assert result["linkability"].baseline == pytest.approx(1 / ROWS)


def test_a_single_column_has_no_halves() -> None:
    result = found(draw_table(1).select(["x"]), draw_table(2).select(["x"]))
    assert {finding.status for finding in result.values()} == {"not-run"}


def test_few_rows_stop_nothing() -> None:
    one, two = draw_table(1, 1), draw_table(3, 2)
    for original, released in ((one, two), (two, one)):
        for finding in found(original, released, holdout=two).values():
            assert finding.value is not None
            assert 0.0 <= finding.value <= 1.0
