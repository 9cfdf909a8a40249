"""Rows sampled and held out in one pass by a keyed hash: fair, and the same however the table is read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core.randomness import Randomness
from sfumato.engines.partitions.first_pass import RowBlock, RowHash, RowSampler


def block(rows: int, first: int = 0) -> RowBlock:
    numbers = np.arange(first, first + rows)
    return RowBlock(pa.table({"x": numbers, "y": -numbers, "who": [f"p{number // 4}" for number in numbers]}), numbers)


def sample(row_hash: RowHash, rows: int, most: int, *, cut: int | None = None) -> np.ndarray:
    sampler = RowSampler(row_hash, "sample", most)
    for first in range(0, rows, cut or rows):
        sampler.add(block(min(cut or rows, rows - first), first))
    found = sampler.done()
    assert (found.table.column("y").to_numpy() == -found.rows).all()
    return found.rows


def chance(seed: int, share: float | None = None, person: str | None = None) -> RowHash:
    return RowHash.of(Randomness(seed), person, share)


def test_a_sample_holds_different_rows_in_the_order_of_the_table() -> None:
    drawn = sample(chance(1), 200_000, 500)
    assert len(drawn) == 500
    assert (np.diff(drawn) > 0).all()


def test_a_table_with_no_more_rows_comes_whole() -> None:
    assert sample(chance(1), 30, 30).tolist() == list(range(30))
    assert sample(chance(1), 30, 99).tolist() == list(range(30))
    assert len(RowSampler(chance(1), "sample", 5).done()) == 0


@pytest.mark.parametrize("cut", [1, 7, 64, 1000])
def test_the_sample_does_not_depend_on_the_blocks_that_rows_come_in(cut: int) -> None:
    assert sample(chance(4), 1000, 60, cut=cut).tolist() == sample(chance(4), 1000, 60).tolist()


def test_the_samples_of_parts_hold_the_sample_of_the_table() -> None:
    whole, merged = sample(chance(4), 1000, 60), RowSampler(chance(4), "sample", 60)
    for first in (0, 300, 650):
        part = RowSampler(chance(4), "sample", 60)
        part.add(block({0: 300, 300: 350, 650: 350}[first], first))
        merged.add(part.done())
    assert merged.done().rows.tolist() == whole.tolist()


def test_every_row_is_drawn_equally_often_and_every_pair() -> None:
    times, pairs, runs = np.zeros(40), np.zeros((40, 40)), 2_000
    for seed in range(runs):
        drawn = sample(chance(seed), 40, 10)
        times[drawn] += 1
        pairs[np.ix_(drawn, drawn)] += 1
    # chance 1/4: deviation sqrt(2000 * 3/16) = 19.4; of a pair 10/40 * 9/39 = 0.0577: 10.4; six deviations
    assert np.abs(times - runs / 4).max() < 6 * 19.4
    assert np.abs(pairs[~np.eye(40, dtype=bool)] - runs * 0.25 * 9 / 39).max() < 6 * 10.4


def test_every_row_and_every_person_is_held_out_with_the_share_that_was_named() -> None:
    rows, people, runs = np.zeros(40), np.zeros(10), 2_000
    for seed in range(runs):
        rows += chance(seed, 0.3).held_out(block(40))
        out = chance(seed, 0.3, "who").held_out(block(40)).reshape(10, 4)
        assert (out.all(axis=1) == out.any(axis=1)).all()  # all rows of a person are on one side
        people += out[:, 0]
    # chance 0.3: deviation sqrt(2000 * 0.21) = 20.5; six deviations
    assert np.abs(rows - 0.3 * runs).max() < 6 * 20.5
    assert np.abs(people - 0.3 * runs).max() < 6 * 20.5


def test_who_is_held_out_does_not_tell_who_is_sampled() -> None:
    out = chance(9, 0.5).held_out(block(100_000))
    drawn = np.isin(np.arange(100_000), sample(chance(9), 100_000, 50_000))
    # independent halves: 25,000 in both, deviation about 79 (hypergeometric); six deviations
    assert abs(int((out & drawn).sum()) - 25_000) < 6 * 112
