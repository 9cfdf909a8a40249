from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato.core.errors import LevelError, OptionError, PrivacyRefusal, TableError
from sfumato.methods.condense.partition import can_begin
from sfumato.sklearn import Condenser, DynamicCondenser
from tests.examples import examples

ROWS = 240


@parametrize_with_checks([DynamicCondenser(k=2, init_number=10), DynamicCondenser(k=5, split="strict")])  # type: ignore[untyped-decorator]
def test_the_dynamic_condenser_is_a_scikit_learn_estimator(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def rows(seed: int = 1, n: int = ROWS) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)) + 4.0 * rng.integers(0, 3, (n, 1))


def levels(seed: int = 2, n: int = ROWS, high: int = 12) -> np.ndarray:
    return np.random.default_rng(seed).integers(3, high, n)


def begun(**options: Any) -> DynamicCondenser:
    return DynamicCondenser(**({"k": 3, "init_number": 60, "random_state": 0} | options))


def same(one: DynamicCondenser, other: DynamicCondenser) -> bool:
    """Tell whether both will go on in the same way, to the bit."""
    return one.snapshot() == other.snapshot()


@given(st.lists(st.integers(0, ROWS), max_size=6), st.sampled_from(["paper", "strict"]), st.integers(0, 100))
@examples(25, few=5)
def test_how_rows_are_cut_into_calls_changes_no_bit(cuts: list[int], split: str, seed: int) -> None:
    values, asked = rows(seed), levels(seed)
    whole = begun(split=split).partial_fit(values, privacy_levels=asked)
    parts = begun(split=split)
    ends = [0, *sorted(cuts), ROWS]
    for start, end in itertools.pairwise(ends):
        if end > start:
            parts.partial_fit(values[start:end], privacy_levels=asked[start:end])
    assert same(whole, parts)


def test_one_row_at_a_time_is_all_rows_at_once() -> None:
    values, asked = rows(), levels()
    whole, single, river = begun().partial_fit(values, privacy_levels=asked), begun(), begun()
    for row, level in zip(values, asked, strict=True):
        single.learn_one(row, privacy_level=int(level))
        river.learn_one(dict(zip("abc", row, strict=True)), privacy_level=int(level))
    assert same(whole, single)
    frame = begun()
    frame.learn_many(pd.DataFrame(values, columns=list("abc")), privacy_levels=asked)
    assert same(river, frame)
    np.testing.assert_array_equal(river.groups_.mean, whole.groups_.mean)


@pytest.mark.parametrize("split", ["paper", "strict"])
def test_no_row_is_lost_and_strict_groups_are_as_large_as_every_level_inside(split: str) -> None:
    condenser = begun(split=split).partial_fit(rows(), privacy_levels=levels(high=40))
    assert condenser.n_records_ + condenser.n_pending_ == ROWS
    assert int(condenser.groups_.count.sum()) == condenser.n_records_
    if split == "strict":
        assert (condenser.groups_.count >= condenser.groups_.level_max).all()


def labels(seed: int = 4, n: int = ROWS) -> np.ndarray:
    """Two classes from the first row on, and one that begins later."""
    codes = np.random.default_rng(seed).integers(0, 3, n)
    codes[:100] %= 2
    return np.array(["x", "y", "late"])[codes]


def test_groups_are_those_of_each_class_alone_and_never_mix_classes() -> None:
    values, classes = rows(), labels()
    together = begun().partial_fit(values, classes)
    values[:, 0] += 1000.0 * (classes == "y") + 2000.0 * (classes == "late")  # far from one another
    apart = begun().partial_fit(values, classes)
    for condenser in (together, apart):
        assert condenser.n_pending_ == 0
        assert condenser.classes_ is not None
        of_group = condenser.classes_[condenser._maintainer.rows().stratum]
        for name in ("x", "y", "late"):
            assert condenser.groups_.count[of_group == name].sum() == (classes == name).sum()
    means = apart.groups_.mean[:, 0]
    assert (np.abs(means - 1000.0 * np.rint(means / 1000.0)) < 20.0).all()
    assert (together.groups_.count >= 3).all()
    assert begun().partial_fit(values).classes_ is None


def test_synthetic_rows_come_with_the_class_of_their_group() -> None:
    values, classes = rows(), labels()
    values[:, 0] += 1000.0 * (classes == "y") + 2000.0 * (classes == "late")
    condenser = begun().partial_fit(values, classes)
    drawn, told = condenser.sample()
    assert sorted(told.tolist()) == sorted(classes.tolist())
    assert (np.array(["x", "y", "late"])[np.rint(drawn[:, 0] / 1000.0).astype(int)] == told).all()
    fewer, those = condenser.sample(7)
    assert (fewer.shape, those.shape) == ((7, 3), (7,))
    frame, series = pd.DataFrame(values, columns=list("abc")), pd.Series(classes, name="class", dtype="category")
    made, named = begun().fit_resample(frame, series)
    assert isinstance(made, pd.DataFrame)
    assert (named.name, named.dtype) == ("class", series.dtype)
    assert sorted(named) == sorted(classes)
    with pytest.raises(OptionError, match="no classes"):
        begun().fit_resample(values, values[:, 0])


@given(st.lists(st.integers(0, ROWS), max_size=6), st.integers(0, 100))
@examples(25, few=5)
def test_how_rows_with_classes_are_cut_into_calls_changes_no_bit(cuts: list[int], seed: int) -> None:
    values, asked, classes = rows(seed), levels(seed), labels(seed)
    whole, parts = begun().partial_fit(values, classes, privacy_levels=asked), begun()
    for start, end in itertools.pairwise([0, *sorted(cuts), ROWS]):
        if end > start:
            parts.partial_fit(values[start:end], classes[start:end], privacy_levels=asked[start:end])
            parts = DynamicCondenser.restore(parts.snapshot())
    assert same(whole, parts)
    np.testing.assert_array_equal(whole.sample()[1], parts.sample()[1])


def test_classes_come_in_every_call_or_in_none_and_a_refused_call_adds_none() -> None:
    values, classes = rows(), labels()
    with pytest.raises(OptionError, match="without classes"):
        begun().partial_fit(values, classes).partial_fit(values)
    with pytest.raises(OptionError, match="with classes"):
        begun().partial_fit(values).learn_one(values[0], "x")
    one = begun().partial_fit(values, values[:, 0])  # a response is not used
    assert same(one, begun().partial_fit(values))
    condenser = begun(pending_limit=5).partial_fit(values, classes)
    before = condenser.snapshot()
    with pytest.raises(PrivacyRefusal, match="more than 5"):
        condenser.partial_fit(values[:9], ["new"] * 9, privacy_levels=np.full(9, 50))
    assert condenser.snapshot() == before
    with pytest.raises(LevelError, match="rows of its class"):
        DynamicCondenser(k=5).fit(values[:20], np.arange(20))


@pytest.mark.parametrize("at", [20, 59, 60, 130])
def test_a_restored_condenser_goes_on_bit_for_bit(at: int) -> None:
    values, asked = rows(), levels(high=40)
    whole = begun().partial_fit(values, privacy_levels=asked)
    kept = begun().partial_fit(values[:at], privacy_levels=asked[:at]).snapshot()
    again = DynamicCondenser.restore(kept)
    assert again.snapshot() == kept
    assert again.get_params() == begun().get_params()
    again.partial_fit(values[at:], privacy_levels=asked[at:])
    assert same(whole, again)
    np.testing.assert_array_equal(whole.sample(), again.sample())


def test_a_snapshot_keeps_names_and_refuses_other_columns_after_it() -> None:
    frame = pd.DataFrame(rows(), columns=["age", "pay", "size"])
    again = DynamicCondenser.restore(begun().partial_fit(frame).snapshot())
    again.learn_one({"size": 0.0, "age": 1.0, "pay": 2.0})
    with pytest.raises(ValueError, match="feature names"):
        again.partial_fit(frame.rename(columns={"age": "years"}))
    with pytest.raises(TableError, match="lacks 1 of 3 features"):
        again.learn_one({"size": 0.0, "age": 1.0, "paid": 2.0})


def test_a_damaged_snapshot_is_refused() -> None:
    kept = begun().partial_fit(rows()).snapshot()
    chance = np.random.default_rng(1)
    for _ in range(20):
        place = int(chance.integers(len(kept)))
        with pytest.raises(TableError, match="snapshot"):
            DynamicCondenser.restore(kept[:place] + bytes([kept[place] ^ 1]) + kept[place + 1 :])
        with pytest.raises(TableError, match="snapshot"):
            DynamicCondenser.restore(kept[:place])
    with pytest.raises(OptionError, match="RandomState"):
        begun(random_state=np.random.RandomState(0)).fit(rows()).snapshot()


def test_there_are_no_groups_before_enough_rows_have_come() -> None:
    condenser = begun().partial_fit(rows()[:59])
    assert (condenser.n_records_, condenser.n_pending_) == (0, 59)
    for ask in (lambda: condenser.groups_, condenser.sample):
        with pytest.raises(NotFittedError, match="59 rows have come and the first groups take 60"):
            ask()
    assert condenser.partial_fit(rows()[59:60]).n_records_ == 60


def test_fit_makes_groups_of_few_rows_too_and_forgets_what_was_before() -> None:
    condenser = begun().partial_fit(rows(5)).fit(rows()[:30])
    assert condenser.n_records_ == 30
    assert same(condenser, begun().fit(rows()[:30]))
    assert condenser.sample().shape == (30, 3)


def test_rows_of_too_high_a_level_wait_and_the_others_begin() -> None:
    asked = np.full(ROWS, 4)
    asked[[3, 10]] = 1_000
    condenser = begun().partial_fit(rows(), privacy_levels=asked)
    assert (condenser.n_records_, condenser.n_pending_) == (ROWS - 2, 2)
    assert begun(k=50).partial_fit(rows()[:60]).n_records_ == 60
    late = begun().partial_fit(rows()[:80], privacy_levels=np.full(80, 90))
    assert late.n_records_ == 0
    assert late.partial_fit(rows()[80:100], privacy_levels=np.full(20, 90)).n_records_ == 100


@given(st.lists(st.integers(2, 30), max_size=40))
def test_those_who_may_begin_are_all_that_their_own_number_can_serve(asked: list[int]) -> None:
    able = can_begin(np.array(asked, dtype=np.int64))
    sizes = [m for m in range(1, len(asked) + 1) if sum(level <= m for level in asked) >= m]
    expected = sum(level <= max(sizes) for level in asked) if sizes else 0
    assert able.sum() == expected
    assert all(level <= able.sum() for level, kept in zip(asked, able, strict=True) if kept)


def test_a_call_that_cannot_be_taken_in_changes_nothing() -> None:
    asked = np.full(100, 4)
    asked[50:] = 500
    condenser = begun(pending_limit=10)
    condenser.partial_fit(rows()[:30])
    before = condenser.snapshot()
    with pytest.raises(PrivacyRefusal, match="more than 10 records would wait"):
        condenser.partial_fit(rows()[30:130], privacy_levels=asked)
    assert condenser.snapshot() == before
    with pytest.raises(LevelError, match="more than 70 rows have come"):
        begun(pending_limit=10).partial_fit(rows()[:100], privacy_levels=np.full(100, 500))
    with pytest.raises(LevelError, match="no level is as low as 30"):
        begun().fit(rows()[:30], privacy_levels=np.full(30, 31))


def test_a_state_repeats_and_none_does_not() -> None:
    first, again = (begun().fit(rows()).sample() for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert (begun(random_state=None).fit(rows()).sample() != begun(random_state=None).fit(rows()).sample()).any()


def test_unknown_options_and_bad_rows_are_refused() -> None:
    with pytest.raises(OptionError, match="split"):
        clone(begun(split="magic")).fit(rows())
    with pytest.raises(OptionError, match="grouping"):
        begun(grouping="magic").fit(rows())
    with pytest.raises(LevelError, match="not whole"):
        begun().partial_fit(rows(), privacy_levels=[3.5] * ROWS)
    numbers = begun().partial_fit(rows())
    with pytest.raises(TableError, match="without names"):
        numbers.learn_one({"a": 1.0, "b": 2.0, "c": 3.0})
    with pytest.raises(ValueError, match="features"):
        numbers.partial_fit(rows()[:, :2])
    with pytest.raises(TableError):
        numbers.learn_one([1.0, 2.0])
    with pytest.raises(TableError):
        numbers.learn_one([1.0, 2.0, float("nan")])


@pytest.mark.parametrize("k", [1, 0, -3])
@pytest.mark.parametrize("kind", [Condenser, DynamicCondenser])
def test_a_floor_below_two_is_refused(kind: type[Condenser] | type[DynamicCondenser], k: int) -> None:
    rows = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match="which is no protection"):
        kind(k=k).fit(rows)
