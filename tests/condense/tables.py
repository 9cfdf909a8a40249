"""Tables, levels and measures for the tests of grouping."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Table = tuple[Floats, Whole, Whole]
"""Values, levels and strata."""

VALUES = ("normal", "mixture", "heavy tails", "grid", "duplicates", "constant columns", "all equal", "wide")
LEVELS = ("one", "ones", "narrow", "from 1 to n", "mostly low", "one of n", "one of n-1", "one above n/2", "far apart")


def mixture(rng: np.random.Generator, n: int, d: int, components: int = 8) -> Floats:
    """Draw from Gaussians about random centres."""
    return 4.0 * rng.normal(size=(components, d))[rng.integers(0, components, n)] + rng.normal(size=(n, d))


def draw_values(rng: np.random.Generator, kind: str, n: int, d: int) -> Floats:
    """Draw records of a kind."""
    if kind == "mixture":
        return mixture(rng, n, d, components=3)
    if kind == "heavy tails":
        return rng.standard_t(1.5, size=(n, d))
    if kind == "grid":
        return rng.integers(0, 4, (n, d)).astype(np.float64)
    if kind == "duplicates":
        return rng.normal(size=(1 + n // 7, d))[rng.integers(0, 1 + n // 7, n)]
    if kind == "constant columns":
        return np.where(rng.random(d) < 0.6, 1.5, rng.normal(size=(n, d)))
    if kind == "all equal":
        return np.full((n, d), 0.1)  # whose mean is not exactly itself
    if kind == "wide":
        return rng.normal(size=(n, 2 * n + d))
    return rng.normal(size=(n, d))


def draw_levels(rng: np.random.Generator, kind: str, n: int) -> Whole:
    """Draw levels of a kind that n records can meet."""
    low = int(rng.integers(1, min(6, n) + 1))
    levels = np.full(n, low)
    if kind == "ones":
        return np.ones(n, dtype=np.int64)
    if kind == "narrow":
        return rng.integers(low, min(low + 4, n) + 1, n)
    if kind == "from 1 to n":
        return rng.integers(1, n + 1, n)
    if kind == "mostly low":
        return np.minimum(n, low + (rng.pareto(1.0, n) * low).astype(np.int64))
    if kind.startswith(("one of", "one above")):
        levels[rng.integers(n)] = {"one of n": n, "one of n-1": max(1, n - 1)}.get(kind, n // 2 + 1)
    if kind == "far apart":
        levels[rng.integers(0, n, 4)] = rng.integers(n // 2 + 1, n + 1)
    return levels


@st.composite
def stratum_tables(draw: st.DrawFn, most: int = 400) -> tuple[Floats, Whole]:
    """Give values and levels that some partition can meet, with everything that makes grouping hard."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(VALUES))
    n = draw(st.integers(1, 40 if kind == "wide" else most))
    return draw_values(rng, kind, n, draw(st.integers(1, 6))), draw_levels(rng, draw(st.sampled_from(LEVELS)), n)


@st.composite
def stratified_tables(draw: st.DrawFn, most: int = 130) -> Table:
    """Give one to three strata, mixed up."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind, d = draw(st.sampled_from([kind for kind in VALUES if kind != "wide"])), draw(st.integers(1, 50))
    sizes = draw(st.lists(st.integers(1, most), min_size=1, max_size=3))
    values = np.concatenate([draw_values(rng, kind, n, d) for n in sizes])
    levels = np.concatenate([draw_levels(rng, draw(st.sampled_from(LEVELS)), n) for n in sizes])
    strata = np.repeat(7 * np.arange(len(sizes)), sizes)
    shuffled = rng.permutation(len(values))
    return values[shuffled], levels[shuffled], strata[shuffled]


def no_strata(values: Floats) -> Whole:
    """Give the strata of a table that has none."""
    return np.zeros(len(values), dtype=np.int64)


def ssq(values: Floats, labels: Whole) -> float:
    """Sum the squared distances of records to the mean of their group, each group apart."""
    order = np.argsort(labels, kind="stable")
    groups = np.split(values[order], np.flatnonzero(np.diff(labels[order])) + 1)
    return float(sum(((group - group.mean(axis=0)) ** 2).sum() for group in groups))


def assert_meets(labels: Whole, levels: Whole, strata: Whole) -> None:
    """Each record is in one group, as large as the highest level inside, within a stratum; labels run from 0."""
    sizes = np.bincount(labels)
    highest = np.zeros(len(sizes), dtype=np.int64)
    np.maximum.at(highest, labels, levels)
    assert labels.shape == levels.shape
    assert (sizes > 0).all()
    assert (sizes >= highest).all()
    assert len(np.unique(np.column_stack([labels, strata]), axis=0)) == len(sizes)
