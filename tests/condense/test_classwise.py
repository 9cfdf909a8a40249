"""Class-wise condensation: no group mixes classes, ever; sizes, levels, strata and what is refused [KCG12, fig. 5]."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import sfumato
from sfumato.core.errors import LevelError, OptionError, PrivacyLeakWarning, PrivacyRefusal, SchemaError
from sfumato.core.facts import UnlabelledRows
from sfumato.core.groups.facts import Grouped
from sfumato.core.records import Block, BlockKind, Records
from sfumato.methods.condense import ALGORITHMS
from sfumato.methods.condense.classwise import (
    MOST_CLASSES,
    ClasswiseCondensation,
    approximate_gcd,
    check_pure,
    choose_size,
    classes_of,
)
from sfumato.methods.condense.facts import ClassPure
from sfumato.methods.protocol import Mechanism, MethodResult
from tests.condense.tables import VALUES, assert_meets, draw_values
from tests.examples import examples, sized
from tests.groups.drawn_groups import one_hot

Whole = NDArray[np.int64]


def labelled(
    features: NDArray[np.float64], classes: Whole, levels: Whole | None = None, strata: Whole | None = None
) -> Records:
    """Give records whose last block is a nominal class."""
    n, d = features.shape
    part, fill = one_hot(classes, int(classes.max()) + 1)
    layout = tuple(Block(f"x{j}", BlockKind.NUMBER, j, j + 1, (0.0,)) for j in range(d))
    layout += (Block("class", BlockKind.CATEGORY, d, d + part.shape[1], fill),)
    nothing = np.zeros(n, dtype=np.int64)
    return Records(
        np.hstack([features, part]),
        layout,
        nothing if levels is None else levels,
        nothing.copy() if strata is None else strata,
        "class",
    )


def class_of(records: Records) -> Whole:
    block = next(block for block in records.layout if block.column == "class")
    return np.asarray(np.argmax(records.values[:, block.where], axis=1), dtype=np.int64)


def groups_of(sanitized: MethodResult) -> tuple[Whole, Whole, Whole]:
    """Give the group of each record, its level, and the group of each released row."""
    workings = sanitized.workings
    assert workings.labels is not None
    assert workings.levels is not None
    assert workings.drawn_from is not None
    return workings.labels, workings.levels, workings.drawn_from


def assert_pure(records: Records, sanitized: MethodResult) -> None:
    """Each group has one class, and each released row the class of its group."""
    labels, levels, drawn_from = groups_of(sanitized)
    cells = np.unique(np.column_stack([class_of(records), records.strata]), axis=0, return_inverse=True)[1].ravel()
    assert_meets(labels, levels, cells)
    of_group = np.zeros(labels.max() + 1, dtype=np.int64)
    of_group[labels] = class_of(records)
    np.testing.assert_array_equal(class_of(sanitized.records), of_group[drawn_from])


@st.composite
def classed_tables(draw: st.DrawFn) -> tuple[Records, int]:
    """Give one to four classes, at times crossed with strata and with levels, and a k that all of them can meet."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    k = draw(st.integers(2, 9))
    sizes = draw(st.lists(st.integers(k, 60), min_size=1, max_size=4))
    kind = draw(st.sampled_from([kind for kind in VALUES if kind != "wide"]))
    classes = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    features = draw_values(rng, kind, len(classes), draw(st.integers(1, 5)))
    levels = rng.integers(0, k, len(classes)) if draw(st.booleans()) else np.zeros(len(classes), dtype=np.int64)
    levels[levels == 1] = 0
    strata = np.zeros(len(classes), dtype=np.int64)
    if draw(st.booleans()) and min(sizes) >= 2 * k:
        for each in range(len(sizes)):
            strata[np.flatnonzero(classes == each)[:k]] = 5
    return labelled(features, classes, levels, strata), k


@pytest.mark.parametrize("grouping", ALGORITHMS)
@examples(25, few=7)
@given(classed_tables(), st.integers(0, 2**32 - 1))
def test_no_group_mixes_classes_or_strata_and_every_row_has_the_class_of_its_group(
    grouping: str, table: tuple[Records, int], seed: int
) -> None:
    records, k = table
    sanitized = ClasswiseCondensation(k=k, grouping=grouping, effort=sized("fast", "default")).sanitize(
        records, rng=np.random.default_rng(seed)
    )
    assert_pure(records, sanitized)
    assert np.bincount(class_of(sanitized.records)).tolist() == np.bincount(class_of(records)).tolist()


@examples(30, few=7)
@given(classed_tables(), st.sampled_from([None, 0.05, 0.1, 0.2, 1.0]), st.integers(0, 2**32 - 1))
def test_without_k_the_size_is_at_least_5_and_the_tolerance_and_fits_every_class(
    table: tuple[Records, int], tolerance: float | None, seed: int
) -> None:
    records, _ = table
    _, cells, sizes = np.unique(
        np.column_stack([class_of(records), records.strata]), axis=0, return_inverse=True, return_counts=True
    )
    highest = np.full(len(sizes), 5)
    np.maximum.at(highest, cells.ravel(), records.levels)
    if (sizes < highest).any():
        with pytest.raises(LevelError, match=r"the smallest has \d+ and level .*recode them into one class"):
            ClasswiseCondensation(tolerance=tolerance).sanitize(records, rng=np.random.default_rng(seed))
        return
    sanitized = ClasswiseCondensation(tolerance=tolerance, effort="fast").sanitize(
        records, rng=np.random.default_rng(seed)
    )
    assert_pure(records, sanitized)
    pure, grouped = sanitized.facts[:2]
    assert isinstance(pure, ClassPure)
    assert isinstance(grouped, Grouped)
    _, levels, _ = groups_of(sanitized)
    assert levels.tolist() == np.maximum(5, records.levels).tolist()
    assert max(5, round((tolerance or 0.05) * sizes.min())) <= pure.unit <= pure.size <= sizes.min()
    assert grouped.smallest >= pure.size


def test_a_class_of_ten_among_hundreds_gives_groups_of_5_and_not_of_2() -> None:
    """The classes of a wine table: a tenth of ten records is one, and 6 classes have no common divisor."""
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(6), [10, 53, 681, 638, 199, 18])
    sanitized = ClasswiseCondensation(grouping="mdav").sanitize(
        labelled(rng.normal(size=(len(classes), 2)), classes), rng=rng
    )
    labels, _, _ = groups_of(sanitized)
    assert np.bincount(labels).min() == 5


@pytest.mark.parametrize(
    ("counts", "floor", "tolerance", "size"),
    [
        ([15, 10], 2, 0.5, 5),  # figure 1: t = 5
        ([1001, 501], 2, 0.04, 500),  # t = 20
        ([1001, 501], 2, 0.1, 500),  # t = 50: 20 and 10 units
        ([49, 50, 51], 5, 0.1, 5),
        ([49, 50, 51], 5, None, 49),  # t = 7: 7 units each
        ([1001, 501], 2, None, 500),
        ([20, 7], 6, None, 6),  # a floor above a fifth of the smallest class
        ([20, 7], 6, 0.1, 6),  # a floor above a tenth of the smallest class
        ([9, 9], 2, 0.1, 8),  # a tenth is less than 2
    ],
)
def test_the_chosen_size_is_the_approximate_gcd(
    counts: list[int], floor: int, tolerance: float | None, size: int
) -> None:
    assert choose_size(np.array(counts), floor, tolerance).size == size


@given(st.lists(st.integers(5, 3000), min_size=1, max_size=6), st.integers(2, 5))
def test_no_unit_of_5_to_20_percent_of_the_smallest_class_gives_a_larger_size_than_the_chosen_one(
    counts: list[int], floor: int
) -> None:
    units = [t for t in range(floor, min(counts) + 1) if min(counts) <= 20 * t and 5 * t <= min(counts)] or [floor]
    chosen = choose_size(np.array(counts), floor)
    assert chosen.unit in units
    assert chosen.size == approximate_gcd(counts, chosen.unit) == max(approximate_gcd(counts, t) for t in units)


def test_the_median_size_of_random_classes_grows_from_a_tenth_to_two_fifths_of_the_smallest() -> None:
    rng = np.random.default_rng(0)
    cases = [rng.integers(50, 1000, rng.integers(2, 5)) for _ in range(2000)]
    shares = {
        tolerance: np.median([choose_size(case, 5, tolerance).size / case.min() for case in cases])
        for tolerance in (0.1, None)
    }
    assert shares[0.1] == pytest.approx(0.10, abs=0.01)
    assert shares[None] == pytest.approx(0.43, abs=0.03)


@pytest.mark.parametrize("grouping", ALGORITHMS)
def test_without_k_a_high_level_raises_its_own_group_and_no_other_class(grouping: str) -> None:
    rng = np.random.default_rng(0)
    classes, levels = np.repeat([0, 1], [200, 130]), np.zeros(330, dtype=np.int64)
    levels[0] = 150  # more than the other class has
    made = ClasswiseCondensation(tolerance=0.05, grouping=grouping, effort="fast").sanitize(
        labelled(rng.normal(size=(330, 2)), classes, levels), rng=rng
    )
    labels, met, _ = groups_of(made)
    sizes = np.bincount(labels)[labels]
    assert sizes[0] >= 150
    assert sizes[classes == 1].max() < 60
    assert (met[0], met[1:].max()) == (150, 5)
    if grouping in ("compact", "paper"):
        assert sizes.min() < 30


def test_the_paper_s_figure_4_has_three_groups_of_one_class_and_two_of_the_other() -> None:
    rng = np.random.default_rng(0)
    records = labelled(rng.normal(size=(25, 2)), np.repeat([0, 1], [15, 10]))
    sanitized = ClasswiseCondensation(tolerance=0.5, grouping="modified").sanitize(records, rng=rng)
    labels, _, _ = groups_of(sanitized)
    assert sorted(np.bincount(labels).tolist()) == [5] * 5
    assert_pure(records, sanitized)


@pytest.mark.parametrize("grouping", ALGORITHMS)
@pytest.mark.parametrize(
    "classes",
    [[0] * 12, [0] * 300 + [1] * 4, [0, 1] * 4, [0] * 4 + [1] * 4 + [2] * 4],
    ids=["one class", "huge and tiny", "as many as k", "three"],
)
def test_it_holds_at_the_edges(grouping: str, classes: list[int]) -> None:
    rng = np.random.default_rng(0)
    for features in (rng.normal(size=(len(classes), 1)), np.full((len(classes), 3), 0.1)):
        records = labelled(features, np.array(classes))
        made = ClasswiseCondensation(k=4, grouping=grouping, effort=sized("fast", "default")).sanitize(records, rng=rng)
        assert_pure(records, made)


def numeric_class(distinct: int, n: int = 100) -> Records:
    rng = np.random.default_rng(0)
    values = np.column_stack([rng.normal(size=n), 0.1 * (np.arange(n) % distinct) / 3.0])
    layout = tuple(Block(name, BlockKind.NUMBER, j, j + 1, (0.0,)) for j, name in enumerate(["x", "class"]))
    nothing = np.zeros(n, dtype=np.int64)
    return Records(values, layout, nothing, nothing.copy(), "class")


def test_a_number_with_few_values_is_a_class_and_comes_out_to_the_bit() -> None:
    records = numeric_class(3)
    released = ClasswiseCondensation(k=7).sanitize(records, rng=np.random.default_rng(0)).records
    assert sorted(released.values[:, 1].tolist()) == sorted(records.values[:, 1].tolist())


def test_a_number_with_many_values_is_a_response_and_refused() -> None:
    assert classes_of(numeric_class(MOST_CLASSES))[1].max() == MOST_CLASSES - 1
    with pytest.raises(
        OptionError, match=r"column 'class' is numeric with 21 distinct values.*use the method condense"
    ):
        ClasswiseCondensation(k=2).sanitize(numeric_class(MOST_CLASSES + 1), rng=np.random.default_rng(0))


def test_records_without_a_target_are_refused() -> None:
    records = dataclasses.replace(numeric_class(2), target=None)
    with pytest.raises(OptionError, match="needs a class; name the target column"):
        ClasswiseCondensation(k=2).sanitize(records, rng=np.random.default_rng(0))


def test_missing_classes_are_refused_with_column_and_count() -> None:
    part, fill = one_hot(np.array([0, 1] * 5), 2, np.arange(10) < 3)
    layout = (Block("class", BlockKind.CATEGORY, 0, 2, fill), Block("class", BlockKind.MISSING, 2, 3))
    absent = (np.arange(10) < 3).astype(np.float64)
    nothing = np.zeros(10, dtype=np.int64)
    records = Records(np.column_stack([part, absent]), layout, nothing, nothing.copy(), "class")
    with pytest.raises(SchemaError, match="column 'class' has 3 missing cells"):
        ClasswiseCondensation(k=2).sanitize(records, rng=np.random.default_rng(0))


def test_a_class_smaller_than_k_or_a_level_is_refused_with_both_numbers() -> None:
    features, classes = np.zeros((24, 1)), np.array([0] * 20 + [1] * 4)
    words = r"1 of 2 classes of column 'class'.*4 records in all; the smallest has 4 and level 5.*condense"
    with pytest.raises(LevelError, match=words):
        ClasswiseCondensation(k=5).sanitize(labelled(features, classes), rng=np.random.default_rng(0))
    records = labelled(features, classes, np.array([0] * 23 + [9]))
    with pytest.raises(LevelError, match=r"1 of 2 classes of column 'class'.*the smallest has 4 and level 9"):
        ClasswiseCondensation().sanitize(records, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"k": 1}, LevelError, "k is 1, which is no protection"),
        ({"k": 2.5}, OptionError, "whole number"),
        ({"tolerance": 0.0}, OptionError, "share of the smallest class"),
        ({"tolerance": 1.5}, OptionError, "share of the smallest class"),
        ({"tolerance": True}, OptionError, "give a number"),
        ({"grouping": "best"}, OptionError, "there is no grouping 'best'"),
        ({"effort": "much"}, OptionError, "there is no effort 'much'"),
    ],
)
def test_wrong_parameters_are_refused(wrong: dict[str, object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        ClasswiseCondensation(**wrong)  # type: ignore[arg-type]


def test_level_1_needs_permission_and_then_stands_alone_only_where_k_is_1() -> None:
    features, classes = np.arange(16.0)[:, None], np.repeat([0, 1], 8)
    records = labelled(features, classes, np.ones(16, dtype=np.int64))
    with pytest.raises(LevelError, match="16 records have privacy level 1"):
        ClasswiseCondensation().sanitize(records, rng=np.random.default_rng(0))
    _, levels, _ = groups_of(ClasswiseCondensation(allow_level_1=True).sanitize(records, rng=np.random.default_rng(0)))
    assert levels.min() >= 5
    with pytest.warns(PrivacyLeakWarning, match="16 of 16 groups"):
        ClasswiseCondensation(k=1, allow_level_1=True).sanitize(records, rng=np.random.default_rng(0))


def test_a_partition_that_mixes_classes_is_refused() -> None:
    check_pure(np.array([0, 0, 1, 1]), np.array([3, 3, 3, 3]))
    with pytest.raises(PrivacyRefusal, match="1 groups mix classes; nothing is released"):
        check_pure(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1]))


def test_a_mixing_grouping_is_never_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sfumato.methods.condense.classwise.partition",
        lambda values, *_, **__: np.zeros(len(values), dtype=np.int64),
    )
    records = labelled(np.zeros((10, 1)), np.array([0, 1] * 5))
    with pytest.raises(PrivacyRefusal, match="1 groups mix classes"):
        ClasswiseCondensation(k=2).sanitize(records, rng=np.random.default_rng(0))


def test_the_facts_say_that_classes_are_pure_and_how_groups_were_made() -> None:
    records = labelled(np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 3)
    facts = ClasswiseCondensation(k=5, grouping="modified").sanitize(records, rng=np.random.default_rng(0)).facts
    assert facts[0] == ClassPure("class", 3)
    assert isinstance(facts[1], Grouped)
    assert facts[1].algorithm == "class-wise: KCG12 modified condensation"
    assert facts[1].smallest >= 5


def test_the_whole_job_gives_the_classes_back_and_certifies_l_1() -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.normal(size=90).round(3), "class": ["a", "b", "b"] * 30})
    release = sfumato.sanitize(table, ClasswiseCondensation(k=5), target="class", seed=1, report=False)
    assert sorted(release.table.column("class").to_pylist()) == sorted(table.column("class").to_pylist())
    assert any("l = 1" in refused.reason for refused in release.certificate.refused)


@pytest.mark.parametrize(
    ("method", "missing", "rows", "stated"),
    [
        (ClasswiseCondensation(k=10), 8, 292, 0),
        (ClasswiseCondensation(k=10), 30, 270, 30),
        (sfumato.Chain(k=10), 8, 292, 0),
        (sfumato.Condensation(k=10), 8, 292, 0),
    ],
)
def test_rows_without_a_class_are_left_out_and_counted_if_of_k_persons(
    method: Mechanism, missing: int, rows: int, stated: int
) -> None:
    rng = np.random.default_rng(0)
    classes = np.array(["a", "b", "c"] * 100, dtype=object)
    classes[rng.choice(300, missing, replace=False)] = None
    table = pa.table({"x": rng.normal(size=300).round(2), "class": pa.array(classes, pa.string())})
    with pytest.warns(UserWarning, match=rf"{missing} of 300 rows have no class in column 'class' and were left out"):
        release = sfumato.sanitize(table, method, target="class", seed=1, report=False, holdout=None)
    assert release.table.num_rows == release.certificate.rows_in == rows
    assert UnlabelledRows("class", stated, 10) in release.certificate.facts
    if isinstance(method, sfumato.ClasswiseCondensation | sfumato.Condensation):
        known = Counter(each for each in classes if each is not None)
        assert Counter(release.table.column("class").to_pylist()) == known


@pytest.mark.parametrize("rare", [None, "keep"])
def test_missing_classes_of_k_persons_or_kept_by_choice_stay_missing_in_a_chain(rare: str | None) -> None:
    rng = np.random.default_rng(0)
    classes = np.array(["a", "b", "c"] * 100, dtype=object)
    classes[rng.choice(300, 8 if rare else 60, replace=False)] = None
    table = pa.table({"x": rng.normal(size=300).round(2), "class": pa.array(classes, pa.string())})
    release = sfumato.sanitize(table, sfumato.Chain(k=10), target="class", rare=rare, seed=1, report=False)
    assert release.table.num_rows == 300
    assert not any(isinstance(fact, UnlabelledRows) for fact in release.certificate.facts)


def test_no_message_holds_a_value_of_the_class() -> None:
    table = pa.table({"x": np.arange(60.0), "class": ["secret"] * 57 + ["rare"] * 3})
    with pytest.raises(LevelError) as caught:
        sfumato.sanitize(table, ClasswiseCondensation(k=5), target="class", rare="keep", seed=1, report=False)
    assert not re.search("secret|rare", str(caught.value))
