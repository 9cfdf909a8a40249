"""Categories and missing cells: exactly the group's counts, out of moments alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.core.groups import Groups, split_groups
from sfumato.core.groups.discrete import category_counts, missing_counts
from sfumato.core.groups.generate import generate
from sfumato.core.records import CATEGORY_SCALE, Block, BlockKind
from tests.examples import examples
from tests.groups.drawn_groups import Mixed, mixed_records

columns = st.lists(
    st.tuples(st.sampled_from([0, 1, 2, 3, 6]), st.sampled_from([0.0, 0.2, 0.9])), min_size=1, max_size=5
)
sizes = st.lists(st.integers(1, 12), min_size=1, max_size=5)
seeds = st.integers(0, 2**32 - 1)
layouts = examples(80, few=20)


def indicator_of(mixed: Mixed, column: str) -> Block | None:
    found = [block for block in mixed.layout if block.kind is BlockKind.MISSING and block.column == column]
    return found[0] if found else None


def absent_rows(rows: NDArray[np.float64], mixed: Mixed, column: str) -> NDArray[np.bool_]:
    indicator = indicator_of(mixed, column)
    return np.zeros(len(rows), dtype=np.bool_) if indicator is None else rows[:, indicator.start] == 1.0


@layouts
@given(seeds, sizes, columns, st.booleans())
def test_every_group_has_exactly_its_categories_and_its_missing_cells(
    seed: int, sizes: list[int], columns: list[tuple[int, float]], constant: bool
) -> None:
    rng = np.random.default_rng(seed)
    mixed = mixed_records(rng, sizes, columns, constant)
    rows = generate(mixed.groups, mixed.layout, rng)
    for column, away in mixed.absent.items():
        released = absent_rows(rows, mixed, column)
        np.testing.assert_array_equal(np.bincount(mixed.labels, released), np.bincount(mixed.labels, away))
    for block in mixed.layout:
        if block.kind is BlockKind.CATEGORY:
            here = ~absent_rows(rows, mixed, block.column)
            codes = mixed.codes[block.column]
            for category in range(block.stop - block.start):
                released = here & (rows[:, block.start + category] == CATEGORY_SCALE)
                wanted = np.bincount(mixed.labels, codes == category)
                np.testing.assert_array_equal(np.bincount(mixed.labels, released), wanted)


@layouts
@given(seeds, sizes, columns)
def test_a_settled_row_is_one_category_or_the_fill(
    seed: int, sizes: list[int], columns: list[tuple[int, float]]
) -> None:
    rng = np.random.default_rng(seed)
    mixed = mixed_records(rng, sizes, columns)
    rows = generate(mixed.groups, mixed.layout, rng)
    for block in mixed.layout:
        cells, away = rows[:, block.where], absent_rows(rows, mixed, block.column)
        if block.kind is BlockKind.MISSING:
            assert np.isin(cells, [0.0, 1.0]).all()
            continue
        np.testing.assert_array_equal(cells[away], np.tile(block.fill, (int(away.sum()), 1)))
        if block.kind is BlockKind.CATEGORY:
            assert (np.count_nonzero(cells[~away], axis=1) == 1).all()
            assert (cells[~away].max(axis=1) == CATEGORY_SCALE).all()


@layouts
@given(seeds, st.lists(st.integers(2, 13), min_size=1, max_size=5), columns)
def test_after_a_split_counts_are_whole_and_add_up(
    seed: int, sizes: list[int], columns: list[tuple[int, float]]
) -> None:
    rng = np.random.default_rng(seed)
    mixed = mixed_records(rng, sizes, columns)
    for half in split_groups(mixed.groups):
        rows = generate(half, mixed.layout, rng)
        assert len(rows) == half.count.sum()
        for block in mixed.layout:
            if block.kind is BlockKind.CATEGORY:
                indicator = indicator_of(mixed, block.column)
                gone = np.zeros(len(half), dtype=np.int64) if indicator is None else missing_counts(half, indicator)
                counts = category_counts(half, block, gone)
                assert (counts >= 0).all()
                np.testing.assert_array_equal(counts.sum(axis=1) + gone, half.count)
                here = ~absent_rows(rows, mixed, block.column)
                np.testing.assert_array_equal((rows[here][:, block.where] == CATEGORY_SCALE).sum(axis=1), 1)


def test_a_split_gives_a_count_to_the_largest_remainder() -> None:
    rng = np.random.default_rng(1)
    mixed = mixed_records(rng, [21], [(4, 0.0)])
    left, right = split_groups(mixed.groups)
    for half in (left, right):
        exact = half.mean * half.count[:, None] / CATEGORY_SCALE
        counts = category_counts(half, mixed.layout[0], np.zeros(1, dtype=np.int64))
        if (exact >= 0.0).all():
            assert (np.abs(counts - exact) < 1.0).all()


@pytest.mark.parametrize(
    ("parts", "counts"),
    [
        ([1.7, 2.2, 1.1], [2, 2, 1]),  # one count is left, and 0.7 is the largest remainder
        ([0.4, 3.8, 0.8], [0, 4, 1]),  # two are left
        ([2.5, 1.5, 1.0], [3, 1, 1]),  # of equal remainders the first
    ],
)
def test_counts_that_are_left_go_to_the_largest_remainders(parts: list[float], counts: list[int]) -> None:
    block = Block("c", BlockKind.CATEGORY, 0, 3, (0.0, 0.0, 0.0))
    mean = np.array([parts]) / 5.0 * CATEGORY_SCALE
    five = Groups(np.array([5]), mean, np.zeros((1, 3, 3)), np.zeros(1), np.zeros(1, dtype=np.int64))
    assert category_counts(five, block, np.zeros(1, dtype=np.int64)).tolist() == [counts]


def test_the_counts_of_a_group_come_out_of_its_moments_alone() -> None:
    mixed = mixed_records(np.random.default_rng(2), [40, 3], [(5, 0.3)])
    block, indicator = mixed.layout
    gone = missing_counts(mixed.groups, indicator)
    np.testing.assert_array_equal(gone, np.bincount(mixed.labels, mixed.absent["column 0"]))
    counts = category_counts(mixed.groups, block, gone)
    for category in range(5):
        held = mixed.codes["column 0"] == category
        np.testing.assert_array_equal(counts[:, category], np.bincount(mixed.labels, held))
