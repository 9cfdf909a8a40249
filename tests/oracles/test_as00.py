"""The real tree and naive Bayes against their transcription."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.distributions.domains import Integers
from sfumato.survey.mining import ReconstructedNaiveBayes, ReconstructedTree
from sfumato.survey.mining.tree import grow, in_order, leaf_of, prune
from tests.examples import examples
from tests.oracles import as00


@st.composite
def tables(draw: st.DrawFn) -> tuple[as00.Codes, as00.Codes, tuple[int, ...], int]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, k = draw(st.integers(2, 60)), draw(st.integers(2, 4))
    sizes = tuple(draw(st.lists(st.integers(2, 7), min_size=1, max_size=4)))
    codes = np.stack([rng.integers(0, size, n) for size in sizes], axis=1)
    classes = (codes[:, 0] * k // sizes[0] + rng.integers(0, k, n) * (rng.random(n) < 0.4)) % k
    return codes, classes, sizes, k


@examples(150, few=25)
@given(tables(), st.integers(1, 5), st.sampled_from([None, 1, 3]))
def test_the_tree_does_what_the_paper_says(
    table: tuple[as00.Codes, as00.Codes, tuple[int, ...], int], min_leaf: int, max_depth: int | None
) -> None:
    codes, classes, sizes, k = table
    real = grow(codes, classes, sizes, n_classes=k, max_depth=max_depth, min_leaf=min_leaf)
    literal = as00.partition(codes, classes, sizes, k, min_leaf, max_depth)
    places = np.stack([np.random.default_rng(0).integers(0, size, 200) for size in sizes], axis=1)
    for nodes, tree in ((real, literal), (prune(real, sizes), as00.pruned(literal, sizes)[0])):
        found = nodes.counts[leaf_of(nodes, places)]
        np.testing.assert_array_equal(found, [as00.leaf(tree, row) for row in places])


@examples(50, few=10)
@given(tables(), st.sampled_from(["by-class", "global", "local", "none"]))
def test_without_noise_every_reconstruction_is_the_ordinary_tree_on_intervals(
    table: tuple[as00.Codes, as00.Codes, tuple[int, ...], int], reconstruction: str
) -> None:
    codes, (names, classes) = np.tile(table[0], (30, 1)), np.unique(table[1], return_inverse=True)
    classes, sizes, k = np.tile(classes, 30), table[2], len(names)
    if k < 2:
        return
    specs = {str(at): Integers(0, size - 1) for at, size in enumerate(sizes)}
    tree = ReconstructedTree(specs=specs, reconstruction=reconstruction, min_leaf=3, local_records=10)
    literal = as00.pruned(as00.partition(codes, classes, sizes, k, 3, None), sizes)[0]
    rows = codes[: len(table[0])]
    wanted = np.array([as00.leaf(literal, row) for row in rows], dtype=np.float64)
    found = tree.fit(codes, classes).predict_proba(rows)
    np.testing.assert_allclose(found, wanted / wanted.sum(axis=1, keepdims=True))


@examples(100)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.integers(0, 2**32 - 1))
def test_records_are_held_in_the_order_of_their_values(wanted: list[int], seed: int) -> None:
    n = sum(wanted)
    if not n:
        return
    values = np.random.default_rng(seed).permutation(n)
    found = in_order(values, np.array(wanted) / n)
    assert found.tolist() == as00.associate(values.tolist(), wanted)


@examples(50, few=10)
@given(tables())
def test_without_noise_naive_bayes_counts(table: tuple[as00.Codes, as00.Codes, tuple[int, ...], int]) -> None:
    codes, classes, sizes, _ = table
    codes, classes = np.tile(codes, (30, 1)), np.tile(classes, 30)
    names, classes = np.unique(classes, return_inverse=True)
    if len(names) < 2:
        return
    specs = {str(at): Integers(0, size - 1) for at, size in enumerate(sizes)}
    miner = ReconstructedNaiveBayes(specs=specs).fit(codes, classes)
    rows = codes[:10]
    wanted = [as00.naive_bayes(codes, classes, sizes, len(names), row) for row in rows]
    np.testing.assert_allclose(miner.predict_proba(rows), wanted, rtol=1e-9)
