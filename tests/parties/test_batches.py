"""Pieces for the engine: every row in one of them, few shapes, little padding."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.parties.groupwise import MOST_CELLS, batches, padded, row_blocks

sizes_of_groups = st.lists(st.integers(1, 5000), min_size=1, max_size=60)


@given(st.integers(1, 10**9))
def test_a_padded_size_is_at_most_a_quarter_more_and_one_of_four_in_each_doubling(count: int) -> None:
    size = padded(count)
    assert count <= size <= 1.25 * count
    assert padded(size) == size
    assert size >> max(0, size.bit_length() - 3) << max(0, size.bit_length() - 3) == size


@given(st.integers(1, 10**7), st.integers(1, 5000))
def test_blocks_of_rows_hold_all_rows_and_no_more_numbers_than_one_call_may(rows: int, wide: int) -> None:
    blocks, size = row_blocks(rows, wide)
    assert (blocks - 1) * size < rows <= blocks * size
    assert size * wide <= MOST_CELLS + wide


@given(sizes_of_groups, st.integers(1, 40))
def test_batches_hold_every_row_once_and_padding_repeats_rows_of_the_group(sizes: list[int], wide: int) -> None:
    counts = np.array(sizes)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    seen, shapes, cells = [], set(), 0
    for batch in batches(counts, wide):
        assert batch.rows.shape == batch.real.shape
        assert (batch.real.sum(axis=1) == counts[batch.groups]).all()
        assert (batch.rows >= starts[batch.groups, None]).all()
        assert (batch.rows < (starts + counts)[batch.groups, None]).all()
        assert batch.rows.size * wide <= MOST_CELLS + batch.rows.shape[1] * wide
        seen.append(batch.rows[batch.real])
        shapes.add(batch.rows.shape[1])
        cells += batch.rows.size
    assert sorted(np.concatenate(seen).tolist()) == list(range(int(counts.sum())))
    assert cells * wide <= max(2**17, 1.25 * counts.sum() * wide)
    assert len(shapes) <= 4 * 13
