"""What both protocols share: axes, the order of filling, numbers that are sent, and pieces for the engine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.core.groups.kmeans import fill_clusters
from sfumato.core.records import BlockKind, width
from sfumato.parties.channel import PartyError
from sfumato.parties.groupwise import (
    MOST_CELLS,
    Statistics,
    batches,
    broadcast_axes,
    broadcast_numbers,
    draw_noise,
    next_to_fill,
    padded,
    row_blocks,
)
from sfumato.parties.session import Session
from sfumato.parties.vertical import LEAKS
from tests.examples import examples
from tests.parties.conftest import Together
from tests.parties.owners import NAMES, Matrix, mixed_columns

seeds = st.integers(0, 2**32 - 1)
some_cases = examples(25)


@some_cases
@given(seeds, st.integers(2, 40))
def test_axes_leave_out_the_directions_in_which_categories_cannot_vary(together: Together, seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    values, layout = mixed_columns(rng, n)
    centred = values - values.mean(axis=0)
    blur = rng.normal(scale=1e-7, size=(width(layout), width(layout)))  # as fixed point leaves it
    covariance = centred.T @ centred / n + blur + blur.T

    def play(session: Session, rank: int) -> Matrix:
        own = covariance + rank * 1e-13  # another machine rounds otherwise
        return broadcast_axes(session, Statistics(np.array([n]), values.mean(axis=0)[None], own[None]), layout, "axes")

    seen = together(play, NAMES[:3], LEAKS)
    assert len({axes.tobytes() for axes in seen}) == 1
    axes = seen[0][0]
    assert axes.shape == (8, 6)
    np.testing.assert_allclose(axes.T @ axes, np.eye(6), atol=1e-12)
    for block in layout:
        if block.kind is BlockKind.CATEGORY:
            assert (np.abs(axes[block.where].sum(axis=0)) < 1e-12).all()
    np.testing.assert_allclose(centred @ axes @ axes.T, centred, atol=1e-9)  # nothing of the records is lost


@some_cases
@given(seeds)
def test_clusters_are_filled_in_the_order_of_one_owner(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    g = int(rng.integers(1, n + 1))
    values, centres = rng.normal(size=(n, 2)), rng.normal(size=(g, 2))
    labels = rng.choice(g, n, p=rng.dirichlet(np.full(g, 0.5)))
    now, final = labels.copy(), np.zeros(g, dtype=np.bool_)
    while (cluster := next_to_fill(np.bincount(now, minlength=g), final, n // g)) is not None:
        left = np.flatnonzero(~final[now] & (now != cluster))
        apart = np.square(values[left] - centres[cluster]).sum(axis=1)
        now[left[np.argsort(apart, kind="stable")[: n // g - (now == cluster).sum()]]] = cluster
        final[cluster] = True
    assert now.tolist() == fill_clusters(values, labels, centres, n // g).tolist()


def test_noise_stands_group_after_group_and_where_the_scale_is_0_there_is_none() -> None:
    scales = np.array([[0.0, 1e6], [1e9, 0.0]])
    for law in ("geometric", "laplace"):
        noise = draw_noise(law, scales, np.array([500, 3]), np.random.default_rng(1))
        assert (noise[:500, 0] == 0).all()
        assert (noise[500:, 1] == 0).all()
        assert len(np.unique(noise[:500, 1])) > 400
        assert (np.abs(noise[500:, 0]) > 1000).all()  # less comes once in some 10^6 draws
        assert (noise >= 0).all() == (law == "geometric")


def test_a_message_of_the_wrong_length_names_who_sent_it(together: Together) -> None:
    def play(session: Session, rank: int) -> NDArray[np.float64]:
        shape = (3,) if rank else (2,)
        return broadcast_numbers(session, np.zeros(shape) if rank == 0 else None, 0, "axes", shape, "<f8", within=1)

    with pytest.raises(PartyError, match="'ann' sent 16 bytes instead of 24"):
        together(play, NAMES[:2], LEAKS)


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
