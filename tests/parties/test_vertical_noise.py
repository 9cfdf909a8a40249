"""Statistics, ranges and noise between owners of columns."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from sfumato.core.groups import summarize
from sfumato.core.records import CATEGORY_SCALE, Block, BlockKind
from sfumato.methods.perturb.laplace_pca import LaplacePCA
from sfumato.parties import groupwise, vertical_noise
from sfumato.parties.groupwise import Statistics, component_scales
from sfumato.parties.session import Session
from sfumato.parties.vertical import LEAKS
from sfumato.parties.vertical_noise import add_noise, component_ranges, count_lone_values, group_statistics, grouped
from tests.examples import examples
from tests.parties.conftest import Together
from tests.parties.owners import NAMES, Matrix, joint_run, no_noise, random_numbers, split_numbers

seeds = st.integers(0, 2**32 - 1)
STEP = LaplacePCA.grid
RARE = 1e-9


def statistics_of(together: Together, values: Matrix, labels: NDArray[np.int64], parties: int) -> list[Statistics]:
    columns = np.array_split(np.arange(values.shape[1]), parties)
    spans = tuple(slice(int(part[0]), int(part[-1]) + 1) for part in columns)

    def play(session: Session, rank: int) -> Statistics:
        return group_statistics(session, grouped(session, values[:, columns[rank]], labels), spans)

    return together(play, NAMES[:parties], LEAKS)


@examples(30)
@given(seeds, st.integers(2, 5), st.booleans())
def test_means_and_covariances_are_those_of_the_pooled_table(
    together: Together, seed: int, parties: int, small: bool
) -> None:
    rng = np.random.default_rng(seed)
    n, d, g = int(rng.integers(10, 200)), int(rng.integers(5, 9)), int(rng.integers(1, 5))
    values = random_numbers(rng, n, d)
    labels = rng.permutation(np.r_[np.arange(g), rng.choice(g, n - g, p=rng.dirichlet(np.ones(g)))])
    with pytest.MonkeyPatch.context() as patch:
        if small:  # so that groups of different size and several calls occur
            patch.setattr(groupwise, "MOST_CELLS", 128)
            patch.setattr(groupwise, "_FEW_CELLS", 64)
        found = statistics_of(together, values, labels, parties)
    pooled = summarize(values, labels, np.zeros(n, dtype=np.int64), g)
    for each in found:
        assert each.mean.tobytes() == found[0].mean.tobytes()
        assert each.covariance.tobytes() == found[0].covariance.tobytes()
    assert found[0].sizes.tolist() == pooled.count.tolist()
    np.testing.assert_allclose(found[0].mean, pooled.mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found[0].covariance, pooled.covariance, rtol=0, atol=2.0**-20 * np.sqrt(n))
    assert (found[0].covariance == found[0].covariance.transpose(0, 2, 1)).all()


@pytest.mark.parametrize("parties", [2, 3])
def test_a_record_that_alone_has_a_category_in_its_group_follows_from_what_all_owners_see(
    together: Together, parties: int
) -> None:
    """So the certificate says; else this would be a reason to say less there."""
    rng = np.random.default_rng(parties)
    values = random_numbers(rng, 40, 5)
    values[:, -1] = 0.0
    values[17, -1] = CATEGORY_SCALE  # the last owner alone knows who has this category
    labels = np.arange(40) % 2
    seen = statistics_of(together, values, labels, parties)[0]
    group = labels[17]
    found = seen.mean[group] + seen.sizes[group] * seen.covariance[group, -1] / CATEGORY_SCALE
    np.testing.assert_allclose(found[:-1], values[17, :-1], atol=1e-4)


@examples(30)
@given(seeds)
def test_records_that_alone_have_a_category_or_a_missing_cell_are_counted(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, g = 40, 4
    labels = np.arange(n) % g
    town, gone = rng.choice(3, n, p=[0.1, 0.2, 0.7]), rng.random(n) < rng.choice([0.1, 0.9])
    marks = np.eye(3)[town] * CATEGORY_SCALE
    fill = tuple(marks[~gone].mean(axis=0).tolist()) if not gone.all() else (0.0,) * 3
    marks[gone] = fill
    values = np.column_stack([rng.normal(size=n), marks, gone])
    layout = (
        Block("x", BlockKind.NUMBER, 0, 1, (0.0,)),
        Block("town", BlockKind.CATEGORY, 1, 4, fill),
        Block("town", BlockKind.MISSING, 4, 5),
    )
    pooled = summarize(values, labels, np.zeros(n, dtype=np.int64), g)
    lone = 0
    for group in range(g):
        here = labels == group
        lone += int(gone[here].sum() in (1, here.sum() - 1))
        lone += sum(int(((town == place) & ~gone)[here].sum() == 1) for place in range(3))
    assert count_lone_values(layout, Statistics(pooled.count, pooled.mean, pooled.covariance)) == lone


def test_two_values_of_a_column_are_told_apart_by_one_known_column(together: Together) -> None:
    """Of 14 records the one product with a known column names those that have a category, though 14 are unknown."""
    rng = np.random.default_rng(8)
    known, hidden = random_numbers(rng, 14, 1)[:, 0], rng.permutation([0.0, 1.0] * 7)
    values = np.column_stack([known, hidden * CATEGORY_SCALE])
    seen = statistics_of(together, values, np.zeros(14, dtype=np.int64), 2)[0]
    product = 14 * seen.covariance[0, 0, 1] / CATEGORY_SCALE
    guesses = np.array([guess for guess in itertools.product([0.0, 1.0], repeat=14) if sum(guess) == 7])
    away = np.abs(guesses @ (known - known.mean()) - product)
    assert (guesses[np.argmin(away)] == hidden).all()


def test_the_largest_products_that_can_be_do_not_overflow(together: Together) -> None:
    n = 1000
    spike = np.zeros((n, 2))
    spike[0] = np.sqrt(n)  # all of the sum of squares in one record, in both columns
    (found, _) = statistics_of(together, spike, np.zeros(n, dtype=np.int64), 2)
    np.testing.assert_allclose(found.covariance[0], np.full((2, 2), 1.0 - 1.0 / n), atol=1e-5)


@examples(30)
@given(seeds, st.booleans())
def test_ranges_are_those_of_each_component_of_each_group(together: Together, seed: int, small: bool) -> None:
    rng = np.random.default_rng(seed)
    sizes, m = rng.integers(1, 40, int(rng.integers(1, 6))), int(rng.integers(1, 5))
    places = rng.integers(-(2**40), 2**40, (int(sizes.sum()), m))
    places[:, 0] = rng.integers(0, 4, len(places))  # varies by three steps at most

    def play(session: Session, rank: int) -> NDArray[np.int64]:
        shared = session.share(places if rank == 1 else None, 1, places.shape, "components")
        return component_ranges(session, shared, sizes)

    with pytest.MonkeyPatch.context() as patch:
        if small:
            patch.setattr(groupwise, "MOST_CELLS", 64)
            patch.setattr(groupwise, "_FEW_CELLS", 16)
        found = together(play, NAMES[:3], LEAKS)
    parts = np.split(places, np.cumsum(sizes)[:-1])
    wanted = np.array([np.ptp(part, axis=0) for part in parts])
    wanted[wanted <= 3] = 0  # rounding of three summands alone can be three steps
    assert all(each.tolist() == wanted.tolist() for each in found)


def _laplace_sum(x: Matrix) -> Matrix:
    """Distribution function of the sum of two Laplace draws of scale 1."""
    tail = (2.0 + np.abs(x)) * np.exp(-np.abs(x)) / 4.0
    return np.where(x < 0, tail, 1.0 - tail)


@pytest.mark.parametrize("noise", ["split", "each"])
@pytest.mark.parametrize("parties", [2, 3])
@pytest.mark.parametrize("guarantee", ["component", "record"])
def test_the_noise_of_a_release_has_the_laplace_law_of_its_ranges(
    together: Together, noise: str, parties: int, guarantee: str
) -> None:
    n, d = 4000, 3
    parts = split_numbers(random_numbers(np.random.default_rng(6), n, d), parties)
    mechanism = LaplacePCA(groups=1, b=0.3, guarantee=guarantee)
    run = joint_run(together, parts, mechanism, seed=None, noise=noise)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vertical_noise, "draw_noise", no_noise)
        bare = joint_run(together, parts, mechanism, seed=None)
    ranges = run.opened("ranges")[0]
    assert ranges.tolist() == bare.opened("ranges")[0].tolist()
    drawn = run.opened("noised components")[0] - bare.opened("noised components")[0]
    scaled = drawn / (0.3 * (d if guarantee == "record" else 1) * ranges)
    chance = (stats.laplace.cdf if noise == "split" else _laplace_sum)(scaled)
    for column in chance.T:
        counts = np.bincount((column * 16).astype(np.int64).clip(0, 15), minlength=16)
        assert stats.chisquare(counts).pvalue > RARE
    for first, second in ((0, 1), (0, 2), (1, 2)):
        assert stats.spearmanr(scaled[:, first], scaled[:, second]).pvalue > RARE


@pytest.mark.parametrize("noise", ["split", "each"])
def test_noise_of_a_few_steps_has_the_discrete_laplace_law(together: Together, noise: str) -> None:
    n, scale = 20_000, 2.5
    ranges = np.array([[5]])

    def play(session: Session, rank: int) -> NDArray[np.int64]:
        nothing = session.share(np.zeros((n, 1), dtype=np.int64) if rank == 0 else None, 0, (n, 1), "components")
        return add_noise(session, nothing, ranges, np.array([n]), scale / 5, noise)

    drawn = together(play, NAMES[:2], LEAKS)[0][:, 0]
    k = np.arange(-400, 401)
    pmf = np.exp(-np.abs(k) / scale)
    pmf /= pmf.sum()
    if noise == "each":
        pmf = np.convolve(pmf, pmf, mode="same")
    near = np.abs(k) <= 12
    expected = np.r_[pmf[near], pmf[~near].sum()] * n
    counts = np.array([(drawn == place).sum() for place in k[near]] + [(np.abs(drawn) > 12).sum()])
    assert stats.chisquare(counts, expected / expected.sum() * n).pvalue > RARE


def test_no_noise_is_drawn_and_nothing_opened_for_what_does_not_vary(together: Together) -> None:
    secret = np.arange(10, dtype=np.int64).reshape(5, 2)

    def play(session: Session, rank: int) -> NDArray[np.int64]:
        shared = session.share(secret if rank == 0 else None, 0, secret.shape, "components")
        return add_noise(session, shared, np.array([[0, 8]]), np.array([5]), 0.2, "split")

    for seen in together(play, NAMES[:2], LEAKS):
        assert (seen[:, 0] == 0).all()
    assert component_scales(np.array([[0, 8]]), 0.2).tolist() == [[0.0, 1.6]]
