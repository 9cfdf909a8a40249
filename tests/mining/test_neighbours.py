"""Classification on groups: laws, three cases, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from sfumato.core.errors import BadInput, OptionError, SchemaError
from sfumato.core.groups import Groups, concat, split_groups, summarize
from sfumato.core.records import CATEGORY_SCALE, Block, BlockKind, Layout
from sfumato.mining import CentroidNeighbours, GroupNeighbours
from sfumato.mining.neighbours import (
    GroupClassParts,
    class_counts,
    group_covariances,
    parts_of_labels,
    parts_of_target,
)
from tests.examples import examples
from tests.groups.drawn_groups import from_moments

Miner = type[GroupNeighbours] | type[CentroidNeighbours]
BOTH = pytest.mark.parametrize("miner", [GroupNeighbours, CentroidNeighbours])


def two_classes(seed: int, *, gap: float, n: int = 120, d: int = 3) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    code = np.repeat([0, 1], n // 2)
    values = rng.normal(size=(n, d))
    values[:, 0] += gap * code
    return values, code


def grouped(values: NDArray[np.float64], code: NDArray[np.int64], size: int) -> tuple[Groups, NDArray[np.int64]]:
    """Cut each class along its last coordinate; no group crosses a class."""
    order = np.lexsort((values[:, -1], code))
    labels = np.empty(len(values), dtype=np.int64)
    labels[order] = np.arange(len(values)) // size
    of_group = np.empty(labels.max() + 1, dtype=np.int64)
    of_group[labels] = code
    return summarize(values, labels, np.full(len(values), size)), of_group


def mixed(seed: int, size: int, missing: float = 0.0) -> tuple[NDArray[np.float64], NDArray[np.int64], Groups, Layout]:
    """Groups that cross three classes, with the class as a block between two numbers; -1 is a missing class."""
    rng = np.random.default_rng(seed)
    n, categories = 12 * size, 3
    code = rng.integers(0, categories, n)
    x = rng.normal(size=(n, 2)) + code[:, None]
    away = rng.random(n) < missing
    onehot = np.eye(categories)[code] * CATEGORY_SCALE
    fill = onehot[~away].mean(axis=0)
    onehot[away] = fill
    parts = [x[:, :1], onehot, x[:, 1:]]
    blocks = [
        Block("first", BlockKind.NUMBER, 0, 1, (0.0,)),
        Block("class", BlockKind.CATEGORY, 1, 4, tuple(fill.tolist())),
        Block("last", BlockKind.NUMBER, 4, 5, (0.0,)),
    ]
    if missing:
        parts.append(away[:, None].astype(np.float64))
        blocks.append(Block("class", BlockKind.MISSING, 5, 6))
    labels = np.argsort(np.argsort(x[:, 0])) // size
    groups = summarize(np.hstack(parts), labels, np.full(n, size))
    return x, np.where(away, -1, code), groups, tuple(blocks)


@BOTH
@given(seed=st.integers(0, 10_000), d=st.integers(1, 5))
@examples(30)
def test_groups_of_one_record_answer_as_the_nearest_record(miner: Miner, seed: int, d: int) -> None:
    values, code = two_classes(seed, gap=1.0, n=40, d=d)
    groups = summarize(values, np.arange(40), np.ones(40, dtype=np.int64))
    rows = np.random.default_rng(seed + 1).normal(size=(30, d)) * 2.0
    far = cdist(rows, values)
    two = np.sort(far, axis=1)
    clear = two[:, 1] ** 2 - two[:, 0] ** 2 > 1e-3  # kernels of a millionth of the variance still add up at a tie
    answers = miner().fit(groups, code).predict(rows)
    np.testing.assert_array_equal(answers[clear], code[far.argmin(axis=1)][clear])


@BOTH
def test_classes_far_apart_are_told_apart_and_equal_ones_are_not(miner: Miner) -> None:
    values, code = two_classes(3, gap=12.0)
    fresh, wanted = two_classes(4, gap=12.0)
    assert (miner().fit(*grouped(values, code, 10)).predict(fresh) == wanted).all()
    values, code = two_classes(5, gap=0.0, n=800)
    fresh, wanted = two_classes(6, gap=0.0, n=800)
    right = (miner().fit(*grouped(values, code, 10)).predict(fresh) == wanted).mean()
    assert abs(right - 0.5) < 5.0 * 0.5 / np.sqrt(800)  # five standard errors of a coin


@BOTH
def test_a_constant_table_answers_with_finite_shares(miner: Miner) -> None:
    groups, labels = grouped(np.ones((40, 3)), np.repeat([0, 1], 20), 5)
    shares = miner().fit(groups, labels).predict_proba(np.ones((2, 3)))
    assert np.isfinite(shares).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


def test_larger_groups_weigh_by_their_records() -> None:
    moments = np.zeros((2, 1)), np.ones((2, 1, 1))
    groups = from_moments(np.array([30, 10]), *moments)
    shares = GroupNeighbours().fit(groups, ["many", "few"]).predict_proba([[0.0]])
    np.testing.assert_allclose(
        shares, [[0.25, 0.75]], atol=0.05
    )  # few, many: sorted classes; shrinkage moves it little


def test_the_spread_of_a_group_decides_where_centroids_cannot() -> None:
    covariance = np.array([np.diag([9.0, 0.01]), np.diag([0.01, 9.0])])
    groups = from_moments(np.array([500, 500]), np.array([[-0.1, 0.0], [0.1, 0.0]]), covariance)
    rows = [[4.0, 0.0], [-0.1, 4.0]]  # along the first group's long axis, along the second's
    assert GroupNeighbours(shrinkage=0.0).fit(groups, ["flat", "tall"]).predict(rows).tolist() == ["flat", "tall"]
    assert CentroidNeighbours().fit(groups, ["flat", "tall"]).predict(rows).tolist() == ["tall", "flat"]


def test_covariances_run_from_the_groups_own_to_the_shared_variances() -> None:
    values, code = two_classes(7, gap=1.0)
    groups, labels = grouped(values, code, 20)
    pieces = parts_of_labels(groups, labels)
    np.testing.assert_allclose(group_covariances(pieces, 0.0), groups.covariance, atol=1e-5)
    shared = np.diag(np.diagonal(groups.scatter.sum(axis=0)) / groups.count.sum())
    drawn = group_covariances(pieces, 1e9)
    np.testing.assert_allclose(drawn, np.broadcast_to(shared, drawn.shape), atol=1e-5)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_moments_hold_the_count_and_the_mean_of_every_class_of_a_group(missing: float) -> None:
    x, code, groups, layout = mixed(11, 10, missing)
    pieces = parts_of_target(groups, layout, "class")
    group = np.argsort(np.argsort(x[:, 0])) // 10
    for piece in range(len(pieces.code)):
        inside = (group == pieces.group[piece]) & (code == pieces.code[piece])
        assert pieces.weight[piece] == inside.sum()
        centre = x[group == pieces.group[piece]].mean(axis=0)
        share = inside.sum() / (inside.sum() + 1.0)
        np.testing.assert_allclose(pieces.mean[piece], centre + share * (x[inside].mean(axis=0) - centre), atol=1e-9)


def test_the_scatter_of_the_classes_is_that_of_the_records_about_the_pieces() -> None:
    x, code, groups, layout = mixed(12, 15)
    pieces = parts_of_target(groups, layout, "class")
    group = np.argsort(np.argsort(x[:, 0])) // 15
    where = {(int(g), int(c)): p for p, (g, c) in enumerate(zip(pieces.group, pieces.code, strict=True))}
    apart = x - pieces.mean[[where[int(g), int(c)] for g, c in zip(group, code, strict=True)]]
    for g in range(len(groups)):
        np.testing.assert_allclose(pieces.scatter[g], apart[group == g].T @ apart[group == g], atol=1e-9)


def test_class_counts_of_groups_add_up_to_those_of_the_table() -> None:
    _, code, groups, layout = mixed(13, 10)
    np.testing.assert_array_equal(class_counts(groups, layout, "class").sum(axis=0), np.bincount(code))


@BOTH
def test_groups_that_mix_classes_still_tell_them_apart(miner: Miner) -> None:
    _, _, groups, layout = mixed(14, 10, 0.1)
    miner_ = miner().fit_target(groups, layout, "class")
    assert miner_.n_features_in_ == 2
    rows = np.array([[-1.0, -1.0], [3.0, 3.0]])
    assert miner_.predict(rows).tolist() == [0, 2]


def test_groups_cut_from_statistics_are_mined_too() -> None:
    _, _, groups, layout = mixed(15, 11)
    halves = concat(*split_groups(groups))
    miner = GroupNeighbours().fit_target(halves, layout, "class")
    assert miner.predict([[-1.0, -1.0], [3.0, 3.0]]).tolist() == [0, 2]


def test_answers_do_not_depend_on_the_block_size(monkeypatch: pytest.MonkeyPatch) -> None:
    values, code = two_classes(8, gap=1.0)
    miner = GroupNeighbours().fit(*grouped(values, code, 10))
    whole = miner.predict_proba(values)
    monkeypatch.setattr("sfumato.mining.clusters._NUMBERS", 50)
    np.testing.assert_allclose(miner.predict_proba(values), whole, rtol=1e-9, atol=1e-12)


@BOTH
def test_bad_input_is_refused_with_counts(miner: Miner) -> None:
    values, code = two_classes(9, gap=1.0)
    groups, labels = grouped(values, code, 10)
    with pytest.raises(BadInput, match=r"shape \(3,\) for 12 groups"):
        miner().fit(groups, labels[:3])
    with pytest.raises(BadInput, match="12 groups have one class"):
        miner().fit(groups, np.zeros(12))
    with pytest.raises(BadInput, match="0 groups"):
        miner().fit(groups.take(slice(0, 0)), [])
    with pytest.raises(BadInput, match="2 coordinates and the groups 3"):
        miner().fit(groups, labels).predict(values[:, :2])
    with pytest.raises(BadInput, match="1 dimensions"):
        miner().fit(groups, labels).predict(values[0])
    with pytest.raises(BadInput, match="1 of 120 rows have missing"):
        miner().fit(groups, labels).predict(np.where(np.arange(120)[:, None] == 3, np.nan, values))
    with pytest.raises(BadInput, match="learned nothing yet"):
        miner().predict(values)


@BOTH
def test_a_target_that_is_not_there_is_refused(miner: Miner) -> None:
    _, _, groups, layout = mixed(16, 10)
    with pytest.raises(SchemaError, match="'first' is not a block of categories"):
        miner().fit_target(groups, layout, "first")
    with pytest.raises(SchemaError, match="'nothing' is not a block"):
        miner().fit_target(groups, layout, "nothing")
    with pytest.raises(BadInput, match="layout has 4 coordinates and the groups 5"):
        miner().fit_target(groups, layout[:2], "class")


def test_a_negative_shrinkage_is_refused() -> None:
    values, code = two_classes(10, gap=1.0)
    with pytest.raises(OptionError, match="shrinkage"):
        GroupNeighbours(shrinkage=-1.0).fit(*grouped(values, code, 10))


def test_no_repr_holds_a_cell() -> None:
    values, code = two_classes(10, gap=1.0)
    groups, labels = grouped(values, code, 10)
    assert repr(GroupNeighbours().fit(groups, labels)) == "GroupNeighbours(shrinkage=4.0)"
    assert "array" not in repr(parts_of_labels(groups, labels))
    assert GroupClassParts.__repr__ is object.__repr__
