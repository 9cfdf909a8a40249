"""Swapping: columns keep their cells, partners are near and of different persons, everything else stays as it was."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import LevelError, OptionError, PrivacyRefusal
from sfumato.methods.modify import columns_of_layout
from sfumato.methods.modify.facts import Swapped, Unchanged
from sfumato.methods.modify.rules import grow_on
from sfumato.methods.modify.swap import swap_in_leaves, swap_ranks
from tests.examples import examples
from tests.modify.tables import mixed, origin_of, records_of, rows_of


@given(
    st.lists(st.integers(0, 9), min_size=4, max_size=40),
    st.sampled_from([3.0, 20.0, 50.0, 100.0]),
    st.integers(1, 4),
    st.integers(0, 99),
)
@examples(60)
def test_partners_are_near_in_rank_of_different_persons_and_each_cell_is_taken_once(
    numbers: list[int], window: float, rows_each: int, seed: int
) -> None:
    values = [None, *map(float, numbers)]
    table = pa.table({"x": pa.array(values), "y": pa.array(range(len(values)))})
    records = records_of(table)
    column, persons = columns_of_layout(records.layout)["x"], np.arange(len(values)) // rows_each
    reach = math.floor(len(numbers) * window / 100)
    if not reach:
        with pytest.raises(OptionError, match="cells of column 'x' holds no second one; widen it"):
            swap_ranks(column, records.values, persons, window, np.random.default_rng(seed))
        return
    source = swap_ranks(column, records.values, persons, window, np.random.default_rng(seed))
    assert source[0] == 0  # a missing cell stays
    assert (source[source] == np.arange(len(values))).all()  # in pairs
    moved = np.flatnonzero(source != np.arange(len(values)))
    assert (persons[moved] != persons[source[moved]]).all()
    ordered = np.sort(numbers)
    for row in moved:  # ranks of equal cells may be any of theirs
        one, other = sorted((values[row] or 0.0, values[source[row]] or 0.0))
        assert np.searchsorted(ordered, other, "left") - (np.searchsorted(ordered, one, "right") - 1) <= reach


def test_with_a_whole_window_nearly_every_cell_finds_a_partner() -> None:
    records = records_of(
        pa.table({"x": [float(each) + 0.5 for each in range(101)], "y": [each % 7 for each in range(101)]})
    )
    column = columns_of_layout(records.layout)["x"]
    source = swap_ranks(column, records.values, np.arange(101), 100.0, np.random.default_rng(1))
    assert (source == np.arange(101)).sum() == 1  # of an odd number one is left


@pytest.mark.parametrize("within", ["window", "leaves"])
def test_a_release_keeps_each_columns_cells_and_the_other_columns_rows(within: str) -> None:
    table = mixed()
    release = sf.sanitize(
        table, method="swap", within=within, leaf=15, pass_categories=True, target="ill", seed=4, report=False
    )
    (fact,) = (fact for fact in release.certificate.facts if isinstance(fact, Swapped))
    (same,) = (fact for fact in release.certificate.facts if isinstance(fact, Unchanged))
    assert set(fact.columns) == ({"age", "pay", "seen"} if within == "window" else {"ill"})
    assert {*fact.columns, *same.columns} == set(table.column_names)
    for name in table.column_names:
        assert sorted(map(repr, release.table[name].to_pylist())) == sorted(map(repr, table[name].to_pylist()))
    left = list(same.columns)
    assert sorted(map(repr, rows_of(release.table.select(left)))) == sorted(map(repr, rows_of(table.select(left))))
    origin = origin_of(release)
    changed = [
        sum(a != b for a, b in zip(release.table[name].to_pylist(), table[name].take(origin).to_pylist(), strict=True))
        for name in fact.columns
    ]
    assert tuple(changed) == fact.changed


@given(st.integers(0, 999))
@examples(10)
def test_within_leaves_every_leaf_keeps_its_own_labels(seed: int) -> None:
    records = records_of(mixed(), target="ill")
    grown, column = grow_on(records, "ill", 15), columns_of_layout(records.layout)["ill"]
    source = swap_in_leaves(column, records.values, grown.labels, np.random.default_rng(seed))
    assert sorted(source) == list(range(len(records)))
    np.testing.assert_array_equal(grown.labels[source], grown.labels)
    assert len(np.unique(grown.labels)) > 1  # an uninformative tree would make this empty


def test_leaves_are_counted_in_persons() -> None:
    table, persons = mixed(200), np.arange(200) // 4
    grown = grow_on(records_of(table, target="ill", persons=persons), "ill", 10)
    sizes = [len(set(persons[grown.labels == leaf])) for leaf in np.unique(grown.labels)]
    assert min(sizes) == grown.smallest(persons) >= 10


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({}, PrivacyRefusal, "3 columns are categories, the first is 'smokes'"),
        ({"columns": ("town",)}, OptionError, "'town' holds categories, which have no ranks"),
        ({"columns": ("agee",)}, OptionError, "did you mean 'age'"),
        ({"within": "leaves", "target": None}, OptionError, "a tree that predicts the target needs one"),
        ({"within": "leaves", "leaf": 500}, LevelError, "there are 120 persons and a leaf needs 500"),
        ({"pass_categories": True, "level": 5}, LevelError, "120 records have a privacy level"),
        ({"pass_categories": True, "strata": "ill"}, OptionError, "swapping makes no groups"),
        ({"window": 0}, OptionError, "the window is a percentage above 0"),
        ({"leaf": 1}, OptionError, "a leaf of fewer than 2 persons"),
        ({"columns": 5}, OptionError, "names of columns, each once"),
        ({"columns": ("age", "age")}, OptionError, "names of columns, each once"),
    ],
)
def test_what_cannot_be_swapped_is_refused_in_a_sentence(options: dict[str, Any], kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        sf.sanitize(mixed(), method="swap", report=False, **{"target": "ill", **options})
