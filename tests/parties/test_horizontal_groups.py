"""Grouping rows of several owners: what the pooled table would give, to the row, whether centres are hidden or not."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.core.errors import BadInput
from sfumato.core.groups.kmeans import fill_clusters
from sfumato.core.records import Block, BlockKind, Layout
from sfumato.methods.perturb.laplace_pca import LaplacePCA
from sfumato.parties import horizontal_groups
from sfumato.parties.channel import PartyError
from sfumato.parties.groupwise import Centres, cluster_rows, fill_groups
from sfumato.parties.horizontal import form_groups, leaks
from sfumato.parties.horizontal_groups import (
    HiddenCentres,
    OpenCentres,
    first_centres,
    scale_rows,
)
from sfumato.parties.plan import JointPlan
from sfumato.parties.session import Session
from tests.examples import examples
from tests.oracles import bcg10_horizontal as oracle
from tests.parties.conftest import Together

Matrix = NDArray[np.float64]
Whole = NDArray[np.int64]

NAMES = ("ann", "bob", "cy", "dee")
SEEDS = st.integers(0, 2**32 - 1)
some_cases = examples(25, few=6)


def numbers(d: int) -> Layout:
    return tuple(Block(f"x{j}", BlockKind.NUMBER, j, j + 1, (0.0,)) for j in range(d))


def plan_of(parties: int, centres: str, rounds: int = 20) -> JointPlan:
    return JointPlan("horizontal", NAMES[:parties], LaplacePCA(k=2), centres=centres, rounds=rounds)


def run_groups(
    together: Together, parts: list[Matrix], g: int, centres: str, rounds: int, seed: int | None = None
) -> list[tuple[Whole, Whole, Whole, Whole, int]]:
    """Each party's rows in steps, first centres, groups, sizes and rounds."""
    layout, n = numbers(parts[0].shape[1]), sum(map(len, parts))
    weights = np.full(len(layout), 1.0 / len(layout))

    def play(session: Session, rank: int) -> tuple[Whole, Whole, Whole, Whole, int]:
        pool = scale_rows(session, parts[rank], layout, weights, n)
        first = first_centres(session, pool, g)
        kept: Centres = (HiddenCentres if centres == "last" else OpenCentres)(session, pool, first)
        labels, sizes, done = cluster_rows(session, kept, rounds)
        labels, sizes = fill_groups(session, kept, labels, sizes)
        return pool.own, first, labels, sizes, done

    return together(play, NAMES[: len(parts)], leaks(centres), seed=seed)


def exact(values: Whole) -> list[list[Fraction]]:
    return [[Fraction(int(value)) for value in row] for row in values]


def split_at_random(values: Matrix, parties: int, rng: np.random.Generator) -> list[Matrix]:
    """Cut rows anywhere: an owner may have one row, or none."""
    return np.split(values, np.sort(rng.integers(0, len(values) + 1, parties - 1)))


@pytest.mark.parametrize("centres", ["each", "last"])
@some_cases
@given(seed=SEEDS, parties=st.integers(2, 4), rounds=st.integers(1, 6))
def test_groups_are_those_of_lines_1_to_11_on_the_pooled_rows(
    together: Together, centres: str, seed: int, parties: int, rounds: int
) -> None:
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, 22)), int(rng.integers(1, 4))
    g = int(rng.integers(2, n // 2 + 1))
    values = rng.integers(-3, 4, (n, d)) / 4.0  # a lattice: many equal rows, many equal distances
    seen = run_groups(together, split_at_random(values, parties, rng), g, centres, rounds)
    rows, first = [exact(own) for own, *_ in seen], exact(seen[0][1])
    wanted, done = oracle.groups(rows, first, rounds, oracle.mean_in_steps)
    labels = np.concatenate([labels for _, _, labels, _, _ in seen])
    assert [frozenset(np.flatnonzero(labels == j).tolist()) for j in range(g)] == wanted
    for _, _, _, sizes, rounds_run in seen:
        assert sizes.tolist() == list(map(len, wanted))
        assert rounds_run == done
    assert min(map(len, wanted)) >= n // g


@some_cases
@given(seed=SEEDS, parties=st.integers(2, 4))
def test_hidden_centres_give_the_groups_of_open_ones(together: Together, seed: int, parties: int) -> None:
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(6, 40)), int(rng.integers(1, 5))
    values = rng.normal(size=(n, d))
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    parts, g = split_at_random(values, parties, rng), int(rng.integers(2, n // 2 + 1))
    each, last = (run_groups(together, parts, g, centres, 10, seed=seed) for centres in ("each", "last"))
    for one, other in zip(each, last, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("centres", ["each", "last"])
def test_groups_of_clear_clusters_are_those_of_exact_k_means_and_filling_by_one_owner(
    together: Together, centres: str
) -> None:
    rng = np.random.default_rng(1)
    where = np.array([[-1.5, 0.0], [1.5, 0.5], [0.0, -1.5]])
    values = np.repeat(where, (17, 9, 22), axis=0) + rng.uniform(-0.1, 0.1, (48, 2))
    parts = [values[:5], values[5:20], values[20:]]
    seen = run_groups(together, parts, 3, centres, 20)
    clusters, exactly, _ = oracle.k_means([exact(own) for own, *_ in seen], exact(seen[0][1]), 20, oracle.exact_mean)
    label = np.array([next(j for j in range(3) if i in clusters[j]) for i in range(48)])
    rows, middle = (np.array(points, dtype=np.float64) for points in (np.concatenate([s[0] for s in seen]), exactly))
    wanted = fill_clusters(rows, label, middle, 16)
    found = np.concatenate([labels for _, _, labels, _, _ in seen])
    assert (found != wanted).sum() <= 2  # a swap where two rows are equally far from a centre but for its rounding


def test_first_centres_are_drawn_anew_and_lie_where_rows_can_lie(together: Together) -> None:
    values = np.array([[1.0, -1.0], [-1.0, 1.0]] * 10)
    firsts = []
    for _ in range(2):
        seen = run_groups(together, [values[:7], values[7:]], 4, "each", 1)
        firsts.append(seen[0][1])
        assert all((first == seen[0][1]).all() for _, first, *_ in seen)
        length = int((seen[0][0][0] ** 2).sum())  # of a row: the squares of its two columns, of weight 1/2, are 1
        assert ((firsts[-1] ** 2).sum(axis=1) <= 1.03 * len(values) * length).all()
    assert (firsts[0] != firsts[1]).any()
    drawn = np.concatenate(firsts)
    assert (np.abs(drawn[:, 0] + drawn[:, 1]) <= 8).all()  # steps; it has the law of the rows, which lie on a line


def test_one_group_needs_no_comparison(together: Together) -> None:
    values = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    parts = [values[:1], values[1:]]

    def play(session: Session, rank: int) -> tuple[list[int], list[int], int]:
        labels, sizes, rounds = form_groups(session, plan_of(2, "last"), parts[rank], numbers(1), 4, 1)
        assert not [entry for entry in session.transcript.entries if entry.action == "engine"]
        return labels.tolist(), sizes.tolist(), rounds

    assert together(play, NAMES[:2], leaks("last")) == [([0], [4], 0), ([0, 0, 0], [4], 0)]


def test_large_tables_go_to_the_engine_in_blocks_of_rows_with_the_same_groups(
    together: Together, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.random.default_rng(2).uniform(-1, 1, (31, 2))
    parts = [values[:4], values[4:9], values[9:]]
    whole = run_groups(together, parts, 5, "last", 8, seed=4)
    monkeypatch.setattr(horizontal_groups, "row_blocks", lambda rows, wide: (-(-rows // 8), 8))
    for one, other in zip(run_groups(together, parts, 5, "last", 8, seed=4), whole, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_rows_are_shared_once_and_no_centre_is_opened_where_centres_are_hidden(together: Together) -> None:
    values = np.random.default_rng(3).uniform(-1, 1, (40, 2))
    parts = [values[:9], values[9:22], values[22:]]

    def play(session: Session, rank: int) -> tuple[list[tuple[str, str, tuple[str, ...]]], int]:
        rounds = form_groups(session, plan_of(3, "last"), parts[rank], numbers(2), 40, 8)[2]
        return [(entry.action, entry.label, entry.to) for entry in session.transcript.entries], rounds

    entries, rounds = together(play, NAMES[:3], leaks("last"))[0]
    assert sum(action == "shared" and label == "rows" for action, label, _ in entries) == 3
    opened = [(label, to) for action, label, to in entries if action == "opened"]
    assert {label for label, _ in opened} <= {"changed", "cluster", "moved"}
    assert all(len(to) == 1 for label, to in opened if label != "changed")
    assert sum(label == "cluster" for label, _ in opened) == 3 * (rounds - 1)  # the first centres are public
    assert {label for action, label, _ in entries if action == "sum"} == {"moments", "sizes"}


def test_rows_that_are_not_standardized_are_refused(together: Together) -> None:
    parts = [np.array([[1.0], [50.0]]), np.array([[1.0], [2.0]])]
    with pytest.raises(BadInput, match="1 rows lie farther out than standardized columns can"):
        run_groups(together, parts, 2, "each", 3)


def test_columns_without_weight_are_bounded_all_the_same(
    together: Together,
) -> None:
    values = np.column_stack([np.tile([1.0, -1.0], 6), np.repeat([-1.2, 0.0, 1.2], 4)])
    plan = JointPlan("horizontal", NAMES[:2], LaplacePCA(k=4, response_weight=1.0), target="x1")

    def play(session: Session, rank: int) -> Whole:
        own = (values * scale)[:5] if rank == 0 else (values * scale)[5:]
        return form_groups(session, plan, own, numbers(2), 12, 3)[0]

    scale = np.array([1.0, 1.0])
    labels = np.concatenate(together(play, NAMES[:2], leaks("last")))
    assert np.bincount(labels).tolist() == [4, 4, 4]
    scale = np.array([100.0, 1.0])
    with pytest.raises(BadInput, match="farther out"):
        together(play, NAMES[:2], leaks("last"))


def test_owners_who_bring_other_numbers_of_rows_than_were_counted_are_found_out(together: Together) -> None:
    def play(session: Session, rank: int) -> None:
        form_groups(session, plan_of(2, "each"), np.zeros((2, 1)), numbers(1), 5, 2)

    with pytest.raises(PartyError, match="4 rows and 5 were counted"):
        together(play, NAMES[:2], leaks("each"))
