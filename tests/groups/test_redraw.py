"""Rows drawn straight from the records of each group, on the smaller side and in bounded memory."""

from __future__ import annotations

import importlib
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from randomgen import ChaCha

from sfumato.core.groups.generate import CHUNK, draw_from_covariance, draw_from_gram, redraw
from sfumato.core.records import CATEGORY_SCALE, Block, BlockKind, Layout
from tests.groups.drawn_groups import mixed_records

seeds = st.integers(0, 2**32 - 1)
sizes = st.lists(st.integers(1, 14), min_size=1, max_size=8)


def numbers(dim: int) -> Layout:
    return tuple(Block(f"column {j}", BlockKind.NUMBER, j, j + 1, (0.0,)) for j in range(dim))


def shuffled_labels(rng: np.random.Generator, sizes: list[int]) -> NDArray[np.int64]:
    return rng.permutation(np.repeat(np.arange(len(sizes)), sizes))


@given(seeds, sizes, st.integers(1, 9), st.floats(1e-6, 1e6))
def test_the_rows_of_a_group_stay_in_its_flat_and_inside_its_ranges(
    seed: int, sizes: list[int], dim: int, scale: float
) -> None:
    rng = np.random.default_rng(seed)
    labels = shuffled_labels(rng, sizes)
    values = scale * (rng.normal(size=(len(labels), dim)) + 3.0)
    rows = redraw(values, labels, numbers(dim), rng)
    assert rows.shape == values.shape
    for group, part in enumerate(np.split(rows, np.cumsum(sizes)[:-1])):
        records = values[labels == group]
        assert part.shape == records.shape
        variances, axes = np.linalg.eigh(np.cov(records.T, bias=True).reshape(dim, dim))
        half = np.sqrt(3.0 * np.maximum(variances, 0.0))  # no axis without variance, so no direction out of the flat
        assert (np.abs((part - records.mean(axis=0)) @ axes) <= half * (1.0 + 1e-6) + 1e-6 * scale).all()


def test_the_gram_side_leaves_the_flat_by_rounding_only() -> None:
    rng = np.random.default_rng(2)
    records = rng.normal(size=(5, 40)) * 10.0 ** rng.integers(-3, 4, 40)
    rows = redraw(np.tile(records, (200, 1)), np.repeat(np.arange(200), 5), numbers(40), rng) - records.mean(axis=0)
    _, _, span = np.linalg.svd(records - records.mean(axis=0))
    outside = rows - rows @ span[:4].T @ span[:4]
    assert np.abs(outside).max() <= 1e-12 * np.abs(rows).max()
    assert np.linalg.matrix_rank(rows) == 4


@pytest.mark.parametrize(("size", "dim"), [(2, 3), (5, 12), (9, 10)])
def test_given_the_same_uniforms_both_sides_draw_the_same_rows_but_for_the_sign_of_an_axis(size: int, dim: int) -> None:
    rng = np.random.default_rng(size)
    records = rng.normal(size=(1, size, dim))
    records -= records.mean(axis=1, keepdims=True)
    covariance = records.transpose(0, 2, 1) @ records / size
    uniform = rng.random((1, 50, dim))
    ours, theirs = draw_from_gram(records, uniform[:, :, dim - size :]), draw_from_covariance(covariance, uniform)
    axes = np.linalg.eigh(covariance[0])[1]
    np.testing.assert_allclose(np.abs(ours @ axes), np.abs(theirs @ axes), atol=1e-12)


@pytest.mark.parametrize("dim", [2, 9])
def test_a_group_without_variance_gives_its_mean_and_a_record_alone_itself(dim: int) -> None:
    values = np.vstack([np.full((5, dim), 0.1), np.arange(1.0, dim + 1.0)[None]])
    rows = redraw(values, np.array([0, 0, 0, 0, 0, 1]), numbers(dim), np.random.default_rng(0))
    np.testing.assert_allclose(rows[:5], 0.1, rtol=1e-14)
    np.testing.assert_array_equal(rows[5], values[5])


@given(
    seeds,
    sizes,
    st.lists(st.tuples(st.sampled_from([0, 1, 3, 6]), st.sampled_from([0.0, 0.3])), min_size=1, max_size=5),
)
def test_every_group_keeps_exactly_its_categories_and_its_missing_cells(
    seed: int, sizes: list[int], columns: list[tuple[int, float]]
) -> None:
    rng = np.random.default_rng(seed)
    mixed = mixed_records(rng, sizes, columns)
    rows = redraw(mixed.values, mixed.labels, mixed.layout, rng)  # group after group, as the records already are
    away = {block.column: rows[:, block.start] == 1.0 for block in mixed.layout if block.kind is BlockKind.MISSING}
    for column, absent in mixed.absent.items():
        np.testing.assert_array_equal(np.bincount(mixed.labels, away[column]), np.bincount(mixed.labels, absent))
    for block in mixed.layout:
        if block.kind is BlockKind.CATEGORY:
            here = ~away.get(block.column, np.zeros(len(rows), dtype=np.bool_))
            for category in range(block.stop - block.start):
                held = here & (rows[:, block.start + category] == CATEGORY_SCALE)
                wanted = np.bincount(mixed.labels, mixed.codes[block.column] == category)
                np.testing.assert_array_equal(np.bincount(mixed.labels, held), wanted)


def generators() -> list[np.random.Generator]:
    return [np.random.default_rng(5), np.random.Generator(ChaCha(key=5, rounds=20))]


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("columns", [[(0, 0.0)] * 6, [(0, 0.2), (4, 0.0), (3, 0.2)]])
def test_the_rows_are_the_same_for_any_number_of_threads(columns: list[tuple[int, float]], place: int) -> None:
    rng = np.random.default_rng(1)
    mixed = mixed_records(rng, [int(size) for size in rng.integers(2, 30, 3000)], columns)
    labels = rng.permutation(mixed.labels)
    one, two, three = (
        redraw(mixed.values, labels, mixed.layout, generators()[place], threads=threads) for threads in (1, 2, 3)
    )
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, three)


@pytest.mark.parametrize("columns", [[(0, 0.0)] * 4, [(0, 0.2), (3, 0.2)]])
def test_the_rows_do_not_depend_on_how_groups_are_cut_into_chunks(
    columns: list[tuple[int, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    mixed = mixed_records(np.random.default_rng(1), [3, 400, 7, 3, 90, 2, 3], columns)
    whole = redraw(mixed.values, mixed.labels, mixed.layout, np.random.default_rng(3))
    monkeypatch.setattr(
        importlib.import_module("sfumato.core.groups.generate"), "CHUNK", 500
    )  # the largest go row by row
    cut = redraw(mixed.values, mixed.labels, mixed.layout, np.random.default_rng(3))
    np.testing.assert_allclose(np.abs(cut), np.abs(whole), atol=1e-9)


def test_an_error_in_a_thread_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr(importlib.import_module("sfumato.core.groups.generate"), "_draw_chunk", fail)
    for threads in (1, 2):
        with pytest.raises(MemoryError):
            redraw(np.zeros((10, 2)), np.arange(10) // 5, numbers(2), np.random.default_rng(0), threads=threads)


# the d x d matrices of all groups would take 160 MB in the first case, 320 MB in the second and 3 GB in the third
@pytest.mark.parametrize(
    ("n", "dim", "size", "threads"),
    [(200_000, 10, 5, 1), (20_000, 100, 5, 2), (2_000, 1_000, 5, 1), (200_000, 10, 200_000, 1), (200_000, 10, 50, 2)],
)
def test_memory_is_the_result_the_declared_chunks_and_a_few_numbers_a_record(
    n: int, dim: int, size: int, threads: int
) -> None:
    values = np.random.default_rng(0).normal(size=(n, dim))
    labels = np.arange(n) // size
    tracemalloc.start()
    rows = redraw(values, labels, numbers(dim), np.random.default_rng(1), threads=threads)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak - rows.nbytes <= (threads + 1) * CHUNK * 8 + 5 * 8 * n + 2**20


def test_memory_with_discrete_columns_is_bounded_too() -> None:
    rng = np.random.default_rng(0)
    mixed = mixed_records(rng, [5] * 4_000, [(0, 0.1), (40, 0.1), (30, 0.0)])  # 4,000 x 74 x 74 would be 175 MB
    redraw(mixed.values[:10], mixed.labels[:10], mixed.layout, rng)  # compiled before it is measured
    tracemalloc.start()
    rows = redraw(mixed.values, mixed.labels, mixed.layout, rng, threads=2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak - rows.nbytes <= 3 * CHUNK * 8 + 5 * 8 * len(rows) + 2**20
