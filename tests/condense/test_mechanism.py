"""Condensation as a mechanism: what it releases, says, refuses and warns about."""

from __future__ import annotations

import dataclasses
import importlib
import re
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.core.errors import LevelError, OptionError, PrivacyLeakWarning, PrivacyRefusal
from sfumato.core.facts import Shuffled
from sfumato.core.groups.facts import CountsKept, Grouped
from sfumato.core.records import Block, BlockKind, Records
from sfumato.methods.condense import Condensation
from sfumato.methods.condense.classwise import ClasswiseCondensation
from sfumato.methods.condense.facts import GroupSynthesis
from sfumato.methods.protocol import Mechanism
from tests.groups.drawn_groups import mixed_records


@pytest.mark.parametrize("choice", [1, 0, "yes", None, np.True_])
@pytest.mark.parametrize("kind", [Condensation, ClasswiseCondensation])
def test_leave_for_level_1_is_yes_or_no(kind: type[Any], choice: object) -> None:
    with pytest.raises(OptionError, match=r"allow_level_1 is of type .*; give True or False"):
        kind(allow_level_1=choice)


def numeric_records(values: NDArray[np.float64], levels: NDArray[np.int64] | None = None) -> Records:
    layout = tuple(Block(f"column {j}", BlockKind.NUMBER, j, j + 1, (0.0,)) for j in range(values.shape[1]))
    nothing = np.zeros(len(values), dtype=np.int64)
    return Records(values.copy(), layout, nothing if levels is None else levels, nothing.copy())


def separated(clusters: int, size: int) -> Records:
    """Give clusters so far apart that each is a group; the first coordinate names the cluster."""
    rng = np.random.default_rng(0)
    centres = np.repeat(1000.0 * np.arange(clusters), size)
    return numeric_records(np.column_stack([centres + rng.normal(size=len(centres)), rng.normal(size=len(centres))]))


def cluster_of(records: Records) -> NDArray[np.int64]:
    return np.rint(records.values[:, 0] / 1000.0).astype(np.int64)


def test_it_is_a_mechanism_that_can_be_hashed_and_varied_but_not_changed() -> None:
    mechanism = Condensation(k=7)
    assert isinstance(mechanism, Mechanism)
    assert hash(mechanism) == hash(Condensation(k=7))
    assert dataclasses.replace(mechanism, k=9) == Condensation(k=9)
    with pytest.raises(dataclasses.FrozenInstanceError):
        mechanism.k = 2  # type: ignore[misc]
    with pytest.raises(LevelError, match="whole number"):
        dataclasses.replace(mechanism, k=0)


@pytest.mark.parametrize("k", [0, -3, True, 2.5, "10", None])
def test_k_is_a_whole_number(k: object) -> None:
    with pytest.raises((LevelError, OptionError), match=r"k (must be|is of type .*; give) a whole number"):
        Condensation(k=k)  # type: ignore[arg-type]


def test_k_of_1_needs_permission_and_an_unknown_grouping_or_effort_is_refused() -> None:
    with pytest.raises(LevelError, match="k is 1, which is no protection"):
        Condensation(k=1)
    assert Condensation(k=1, allow_level_1=True).k == 1
    with pytest.raises(OptionError, match="there is no grouping 'best'; choose one of compact, mdav, paper"):
        Condensation(grouping="best")
    with pytest.raises(OptionError, match="there is no effort 'much'; choose one of fast, default, thorough"):
        Condensation(effort="much")


def test_neither_group_order_nor_input_order_survives() -> None:
    original = separated(clusters=80, size=5)
    released = [
        cluster_of(Condensation(k=5).sanitize(original, rng=np.random.default_rng(seed)).records) for seed in (1, 2)
    ]
    for clusters in released:
        assert sorted(clusters.tolist()) == cluster_of(original).tolist()
        neighbours = int((clusters[1:] == clusters[:-1]).sum())
        assert neighbours < 40  # 320 in group order; 4 expected in random order
        rank = np.corrcoef(clusters, np.arange(400))[0, 1]
        assert abs(rank) < 0.4  # standard error 0.05
    assert (released[0] != released[1]).any()


def test_the_same_seed_gives_the_same_release_to_the_bit() -> None:
    mixed = mixed_records(np.random.default_rng(3), [40], [(0, 0.1), (3, 0.2), (0, 0.0)])
    nothing = np.zeros(40, dtype=np.int64)
    records = Records(mixed.values, mixed.layout, nothing, nothing.copy())
    first, again = (Condensation(k=6).sanitize(records, rng=np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first.records.values, again.records.values)


@pytest.mark.parametrize(
    ("grouping", "algorithm"),
    [
        ("compact", "principal-axis tree and local search"),
        ("mdav", "MDAV"),
        ("paper", "AY05 ConstructGroups"),
        ("modified", "KCG12 modified condensation"),
        ("holistic", "K-means with small clusters dissolved"),
    ],
)
def test_the_facts_say_what_was_done(grouping: str, algorithm: str) -> None:
    levels = np.array([0] * 20 + [6] * 10)
    mixed = mixed_records(np.random.default_rng(3), [30], [(0, 0.2), (3, 0.0), (0, 0.0)])
    records = Records(mixed.values, mixed.layout, levels, np.zeros(30, dtype=np.int64))
    sanitized = Condensation(k=4, grouping=grouping).sanitize(records, rng=np.random.default_rng(5))
    grouped, drawn, kept, shuffled = sanitized.facts
    workings = sanitized.workings
    assert workings.labels is not None
    assert workings.levels is not None
    sizes = np.bincount(workings.labels)
    assert grouped == Grouped(
        algorithm=algorithm,
        records=30,
        groups=len(sizes),
        smallest=int(sizes.min()),
        violations=0,
        tiny=0,
        alone=0,
        alike=0,
    )
    assert isinstance(drawn, GroupSynthesis)
    assert drawn.rows == 30
    assert kept == CountsKept(category_columns=1, missing_columns=1)
    assert shuffled == Shuffled(rows=30)
    assert workings.levels.tolist() == [4] * 20 + [6] * 10
    assert (sizes[workings.labels] >= workings.levels).all()
    assert workings.drawn_from is not None
    assert np.bincount(workings.drawn_from).tolist() == sizes.tolist()


def test_the_workings_tell_the_group_of_each_released_row_after_shuffling() -> None:
    rng = np.random.default_rng(3)
    far = np.repeat([[0.0, 0.0], [100.0, 100.0]], 20, axis=0) + rng.normal(size=(40, 2))
    nothing = np.zeros(40, dtype=np.int64)
    layout = tuple(Block(name, BlockKind.NUMBER, place, place + 1, (0.0,)) for place, name in enumerate("ab"))
    sanitized = Condensation(k=10).sanitize(Records(far, layout, nothing, nothing), rng=rng)
    workings = sanitized.workings
    assert workings.labels is not None
    assert workings.drawn_from is not None
    right = {int(label) for label in workings.labels[20:]}
    np.testing.assert_array_equal(
        sanitized.records.values[:, 0] > 50, [int(label) in right for label in workings.drawn_from]
    )


def test_numbers_alone_keep_no_counts() -> None:
    facts = Condensation(k=4).sanitize(separated(4, 5), rng=np.random.default_rng(0)).facts
    assert not any(isinstance(fact, CountsKept) for fact in facts)


@pytest.mark.parametrize(("size", "warned"), [(2, True), (3, True), (4, False)])
def test_groups_of_three_or_fewer_are_warned_about(size: int, warned: bool) -> None:
    records = separated(clusters=5, size=size)
    if warned:
        with pytest.warns(PrivacyLeakWarning, match=r"5 of 5 groups have 3 records or fewer.*use a higher k"):
            facts = Condensation(k=size).sanitize(records, rng=np.random.default_rng(0)).facts
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            facts = Condensation(k=size).sanitize(records, rng=np.random.default_rng(0)).facts
    assert isinstance(facts[0], Grouped)
    assert facts[0].tiny == (5 if warned else 0)


@pytest.mark.parametrize("grouping", ["compact", "paper"])
def test_a_record_of_level_1_stands_alone_is_counted_and_leaves_as_it_is(grouping: str) -> None:
    values = np.array([[0.0], [0.1], [0.2], [0.3], [50.0]])
    records = numeric_records(values, np.array([4, 4, 4, 4, 1]))
    with pytest.warns(PrivacyLeakWarning, match="1 of 2 groups"):
        sanitized = Condensation(k=1, grouping=grouping, allow_level_1=True).sanitize(
            records, rng=np.random.default_rng(0)
        )
    assert isinstance(sanitized.facts[0], Grouped)
    assert sanitized.facts[0].alone == 1
    assert 50.0 in sanitized.records.values


def test_what_is_released_holds_no_levels_and_cannot_be_written() -> None:
    records = numeric_records(np.random.default_rng(0).normal(size=(12, 2)), np.full(12, 5))
    released = Condensation(k=4).sanitize(records, rng=np.random.default_rng(0)).records
    assert released.values.shape == (12, 2)
    assert not released.levels.any()
    assert not released.strata.any()
    with pytest.raises(ValueError, match="read-only"):
        released.values[0, 0] = 1.0


def test_no_repr_holds_a_number_of_the_data() -> None:
    values = np.random.default_rng(0).normal(size=(40, 2)) * 1e6 + 777_000.0
    records = numeric_records(values, np.full(40, 33))
    sanitized = Condensation(k=4).sanitize(records, rng=np.random.default_rng(0))
    assert re.findall(r"\d+", repr(sanitized)) == ["40", "2", "2", "3"]  # n, d, blocks, facts
    assert repr(sanitized.workings) == "OwnerDetails(owner only)"
    assert re.findall(r"\d+", repr(sanitized.records)) == ["40", "2", "2"]


@pytest.mark.parametrize(
    ("grouping", "function"),
    [
        ("compact", "compact_groups"),
        ("mdav", "mdav_groups"),
        ("paper", "construct_groups"),
        ("modified", "modified_groups"),
        ("holistic", "holistic_groups"),
    ],
)
def test_a_violating_partition_is_never_released(monkeypatch: pytest.MonkeyPatch, grouping: str, function: str) -> None:
    def alone(values: NDArray[np.float64], *_: object, **__: object) -> list[NDArray[np.int64]]:
        return [np.array([row]) for row in range(len(values))]

    monkeypatch.setattr(f"sfumato.methods.condense.partition.{function}", alone)
    with pytest.raises(PrivacyRefusal, match="20 records came out in a group smaller than their privacy level"):
        Condensation(k=5, grouping=grouping).sanitize(separated(4, 5), rng=np.random.default_rng(0))


def test_levels_that_cannot_be_met_are_refused() -> None:
    with pytest.raises(LevelError, match="there are 9 records and the highest privacy level is 10"):
        Condensation(k=10).sanitize(numeric_records(np.zeros((9, 1))), rng=np.random.default_rng(0))
    with pytest.raises(LevelError, match="3 records have privacy level 1"):
        Condensation(k=2).sanitize(
            numeric_records(np.zeros((9, 1)), np.array([1] * 3 + [2] * 6)), rng=np.random.default_rng(0)
        )
    with pytest.raises(LevelError, match="9 privacy levels are negative"):
        Condensation(k=2).sanitize(numeric_records(np.zeros((9, 1)), np.full(9, -1)), rng=np.random.default_rng(0))


@given(
    st.integers(0, 2**32 - 1),
    st.integers(4, 40),
    st.lists(st.tuples(st.sampled_from([0, 2, 5]), st.sampled_from([0.0, 0.3])), min_size=1, max_size=4),
)
def test_category_counts_and_missing_cells_of_the_table_survive(
    seed: int, n: int, columns: list[tuple[int, float]]
) -> None:
    rng = np.random.default_rng(seed)
    mixed = mixed_records(rng, [n], columns)
    nothing = np.zeros(n, dtype=np.int64)
    records = Records(mixed.values, mixed.layout, nothing, nothing.copy())
    released = Condensation(k=4).sanitize(records, rng=rng).records
    for block in mixed.layout:
        if block.kind is not BlockKind.NUMBER:
            before, after = records.values[:, block.where], released.values[:, block.where]
            np.testing.assert_allclose(after.sum(axis=0), before.sum(axis=0), atol=1e-9)


def test_chunks_of_groups_make_no_difference_to_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("sfumato.core.groups.generate"), "CHUNK", 1)  # one group at a time
    original = separated(clusters=30, size=5)
    released = Condensation(k=5).sanitize(original, rng=np.random.default_rng(1)).records
    assert sorted(cluster_of(released).tolist()) == cluster_of(original).tolist()
