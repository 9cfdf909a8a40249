"""The laws of a stream: nothing is lost, batches do not matter, interruptions do not matter [AY05, sec. 3]."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import LevelError, OptionError, PrivacyRefusal, TableError
from sfumato.methods.condense import centroid_index
from sfumato.methods.condense.maintainer import GroupRows, Maintainer
from tests.condense.streams import Arrivals, assert_same_state, draw_arrivals
from tests.examples import examples, sized

seeds = st.integers(0, 2**32 - 1)
splits = st.sampled_from(["paper", "strict"])


def cut_at(rng: np.random.Generator, n: int) -> list[slice]:
    """Cut n records into batches, some of them empty."""
    ends = np.sort(rng.integers(0, n + 1, int(rng.integers(0, 12))))
    return [slice(low, high) for low, high in pairwise([0, *ends.tolist(), n])]


def with_high_levels(arrivals: Arrivals, seed: int, level: int, share: float) -> Arrivals:
    levels = arrivals.levels.copy()
    levels[np.random.default_rng(seed).random(len(levels)) < share] = level
    return Arrivals(arrivals.first, arrivals.first_levels, arrivals.labels, arrivals.values, levels)


@given(seeds, splits, st.integers(6, 40))
def test_batches_give_the_same_state_bit_for_bit_as_records_one_by_one(seed: int, split: str, level: int) -> None:
    arrivals = with_high_levels(draw_arrivals(seed, sized(150, 300)), seed, level, 0.05)
    one, other = (arrivals.started(k=2, split=split) for _ in range(2))
    where = np.concatenate(
        [one.absorb(arrivals.values[i : i + 1], arrivals.levels[i : i + 1]).where for i in range(len(arrivals.values))]
    )
    parts = cut_at(np.random.default_rng(seed), len(arrivals.values))
    done = [other.absorb(arrivals.values[part], arrivals.levels[part]) for part in parts]
    np.testing.assert_array_equal(np.concatenate([batch.where for batch in done]), where)
    assert_same_state(one.state(), other.state())
    assert sum(batch.splits for batch in done) == other.splits
    assert sum(batch.absorbed + batch.pending for batch in done) == len(arrivals.values)
    assert sum(batch.pending - batch.admitted for batch in done) == other.pending


@given(seeds, splits, st.integers(6, 40))
def test_no_record_is_ever_lost_and_every_id_is_new(seed: int, split: str, level: int) -> None:
    arrivals = with_high_levels(draw_arrivals(seed, sized(150, 300)), seed, level, 0.05)
    maintainer = arrivals.started(k=2, split=split)
    came, seen = len(arrivals.first), set(maintainer.ids.tolist())
    for part in cut_at(np.random.default_rng(seed), len(arrivals.values)):
        maintainer.absorb(arrivals.values[part], arrivals.levels[part])
        came += len(arrivals.values[part])
        assert maintainer.records + maintainer.pending == came
        assert int(maintainer.groups.count.min()) >= 1
        fresh = set(maintainer.ids.tolist()) - seen
        assert not fresh or min(fresh) > max(seen)
        seen |= fresh
        assert len(maintainer.ids) == len(np.unique(arrivals.labels)) + maintainer.splits
    assert maintainer.state().next_id == len(np.unique(arrivals.labels)) + 2 * maintainer.splits


@given(seeds, splits, st.integers(6, 40))
def test_an_interruption_at_any_boundary_changes_no_bit(seed: int, split: str, level: int) -> None:
    arrivals = with_high_levels(draw_arrivals(seed, sized(150, 300)), seed, level, 0.05)
    whole, broken = (arrivals.started(k=2, split=split) for _ in range(2))
    for part in cut_at(np.random.default_rng(seed), len(arrivals.values)):
        whole.absorb(arrivals.values[part], arrivals.levels[part])
        broken.absorb(arrivals.values[part], arrivals.levels[part])
        broken = Maintainer.from_state(broken.state())
        assert [len(ids) for ids in broken.changed()] == [0, 0]
    assert_same_state(whole.state(), broken.state())


@given(seeds, st.integers(2, 25))
def test_strict_groups_are_never_smaller_than_a_level_inside_and_a_level_once_served_is_served_for_ever(
    seed: int, high: int
) -> None:
    arrivals = draw_arrivals(seed, sized(200, 400), high=high)
    maintainer = arrivals.started(k=2, split="strict")
    for part in cut_at(np.random.default_rng(seed), len(arrivals.values)):
        maintainer.absorb(arrivals.values[part], arrivals.levels[part])
        groups = maintainer.groups
        assert (groups.count >= groups.level_max).all()
        assert maintainer.violations == 0
    assert maintainer.absorb(arrivals.values[:1], np.array([groups.level_max.max()])).absorbed == 1


def test_where_nothing_is_said_no_piece_is_smaller_than_a_level_inside() -> None:
    arrivals = with_high_levels(draw_arrivals(5, 600, d=3), 5, 6, 0.1)
    maintainer = arrivals.started(k=2)
    maintainer.absorb(arrivals.values, arrivals.levels)
    assert maintainer.splits > 0
    assert (maintainer.groups.count >= maintainer.groups.level_max).all()


def test_the_paper_may_leave_pieces_smaller_than_a_level_inside_and_they_are_counted() -> None:
    arrivals = with_high_levels(draw_arrivals(5, 600, d=3), 5, 6, 0.1)
    maintainer = arrivals.started(k=2, split="paper")
    maintainer.absorb(arrivals.values, arrivals.levels)
    groups = maintainer.groups
    small = groups.count < groups.level_max
    assert maintainer.violations == small.sum() > 0
    assert maintainer.pseudo[small].all()  # only a split makes them


@given(seeds, splits)
def test_changes_name_all_that_a_copy_needs_to_stay_true(seed: int, split: str) -> None:
    arrivals = draw_arrivals(seed, sized(150, 300))
    maintainer = arrivals.started(k=2, split=split)
    copy: dict[int, GroupRows] = {}
    for part in cut_at(np.random.default_rng(seed), len(arrivals.values)):
        maintainer.absorb(arrivals.values[part], arrivals.levels[part])
        if np.random.default_rng(seed).random() < 0.5:
            maintainer.mark_published(maintainer.publish_marks().family[maintainer.publish_marks().due])
        written, retired = maintainer.changed()
        assert set(retired.tolist()) <= set(copy)
        for name in retired.tolist():
            del copy[name]
        copy |= {name: maintainer.rows(np.array([name])) for name in written.tolist()}
        state = maintainer.state()
        assert sorted(copy) == state.ids.tolist()
        for entry in fields(GroupRows):
            kept = [getattr(copy[name], entry.name) for name in sorted(copy)]
            assert np.concatenate(kept).tobytes() == getattr(state, entry.name).tobytes()
    assert [len(ids) for ids in maintainer.changed()] == [0, 0]


def test_a_record_waits_until_a_group_is_large_enough_and_comes_in_by_itself() -> None:
    rng = np.random.default_rng(1)
    maintainer = Maintainer(2, k=2, split="strict")
    maintainer.start(rng.normal(size=(3, 2)), np.full(3, 3), np.zeros(3, dtype=np.int64))
    late = maintainer.absorb(rng.normal(size=(2, 2)), np.array([6, 5]))  # 3 records: too few for either
    assert (late.absorbed, late.pending, late.admitted, maintainer.pending) == (0, 2, 0, 2)
    done = maintainer.absorb(rng.normal(size=(1, 2)), np.array([3]))  # the 4th lets in level 5, and that level 6
    assert (done.absorbed, done.pending, done.admitted) == (1, 0, 2)
    assert (maintainer.records, maintainer.pending) == (6, 0)
    assert maintainer.groups.level_max.tolist() == [6]


def test_records_that_came_before_the_start_are_taken_in_by_it() -> None:
    rng = np.random.default_rng(2)
    maintainer = Maintainer(2, k=3)
    assert maintainer.absorb(rng.normal(size=(4, 2)), np.full(4, 3)).pending == 4
    maintainer.start(rng.normal(size=(6, 2)), np.full(6, 3), np.arange(6) // 3)
    assert (maintainer.records, maintainer.pending) == (10, 0)


def by_stratum(maintainer: Maintainer) -> dict[int, set[bytes]]:
    """Statistics of the groups of each stratum, whatever their ids."""
    rows = maintainer.rows()
    found: dict[int, set[bytes]] = {}
    for place, stratum in enumerate(rows.stratum.tolist()):
        parts = (rows.count, rows.mean, rows.triangle, rows.level_sum, rows.level_max, rows.fresh)
        found.setdefault(stratum, set()).add(b"".join(np.ascontiguousarray(each[place]).tobytes() for each in parts))
    return found


@given(seeds, splits, st.booleans())
@examples(25, few=8)
def test_groups_of_strata_are_those_of_each_stratum_maintained_by_itself(seed: int, split: Any, cached: bool) -> None:
    arrivals = draw_arrivals(seed, 300)
    rng = np.random.default_rng(seed)
    strata, of_label = rng.integers(0, 3, 300), rng.integers(0, 3, int(arrivals.labels.max()) + 1)
    first = of_label[arrivals.labels]
    together = Maintainer(arrivals.first.shape[1], k=2, split=split, stratified=True)
    with pytest.MonkeyPatch.context() as patch:
        if cached:  # so that the cache is asked and not the index
            patch.setattr(centroid_index, "_FEWEST_CELLS", 1)
            patch.setattr(centroid_index, "_SHARE", -1.0)
            patch.setattr(centroid_index, "_WORTH", 0)
        together.start(arrivals.first, arrivals.first_levels, arrivals.labels, first)
        together.absorb(arrivals.values, arrivals.levels, strata)
    expected: dict[int, set[bytes]] = {}
    waiting = 0
    for stratum in range(3):
        alone, own, later = (
            Maintainer(together.d, k=2, split=split, stratified=True),
            first == stratum,
            strata == stratum,
        )
        if own.any():
            labels = np.unique(arrivals.labels[own], return_inverse=True)[1]
            alone.start(arrivals.first[own], arrivals.first_levels[own], labels, first[own])
        alone.absorb(arrivals.values[later], arrivals.levels[later], strata[later])
        expected |= by_stratum(alone)
        waiting += alone.pending
    assert by_stratum(together) == expected
    assert together.pending == waiting


@given(seeds, st.lists(st.integers(0, 120), max_size=5))
@examples(25, few=8)
def test_how_records_of_strata_are_cut_into_batches_changes_no_bit(seed: int, cuts: list[int]) -> None:
    arrivals, rng = draw_arrivals(seed, 120, high=9), np.random.default_rng(seed)
    strata = rng.integers(0, 5, 120)  # of which the stream begins with one
    whole, parts = (Maintainer(arrivals.first.shape[1], k=2, stratified=True) for _ in range(2))
    for each in (whole, parts):
        each.start(
            arrivals.first, arrivals.first_levels, arrivals.labels, np.zeros(len(arrivals.labels), dtype=np.int64)
        )
    whole.absorb(arrivals.values, arrivals.levels, strata)
    ends = [0, *sorted(cuts), 120]
    for begin, end in pairwise(ends):
        parts = Maintainer.from_state(parts.state())
        parts.absorb(arrivals.values[begin:end], arrivals.levels[begin:end], strata[begin:end])
    assert_same_state(whole.state(), parts.state())


def test_a_stratum_without_groups_gets_its_first_from_the_records_that_wait() -> None:
    rng = np.random.default_rng(2)
    maintainer = Maintainer(2, k=3, split="strict", stratified=True)
    maintainer.start(rng.normal(size=(6, 2)), np.full(6, 3), np.arange(6) // 3, np.zeros(6, dtype=np.int64))
    values, levels = rng.normal(size=(5, 2)), np.array([3, 9, 4, 4, 3])
    assert maintainer.absorb(values[:4], levels[:4], np.ones(4, dtype=np.int64)).pending == 4  # 3 of level 4 or less
    done = maintainer.absorb(values[4:], levels[4:], np.ones(1, dtype=np.int64))
    assert (done.absorbed, done.pending, done.admitted) == (0, 1, 4)
    rows = maintainer.rows()
    assert (rows.stratum.tolist(), rows.count.tolist()) == ([0, 0, 1], [3, 3, 4])
    np.testing.assert_allclose(rows.mean[2], values[[0, 2, 3, 4]].mean(axis=0), atol=1e-12)
    assert (rows.fresh[2], rows.level_max[2], bool(rows.pseudo[2])) == (4, 4, False)
    assert maintainer.state().pending_levels.tolist() == [9]
    assert maintainer.changed()[0].tolist() == [0, 1, 2]


def test_strata_that_are_mixed_lacking_or_not_asked_for_are_refused() -> None:
    values, levels = np.zeros((4, 2)), np.full(4, 2)
    with pytest.raises(TableError, match="two strata"):
        Maintainer(2, k=2, stratified=True).start(values, levels, np.arange(4) // 2, np.array([0, 1, 0, 0]))
    with pytest.raises(TableError, match="4 records; give each one stratum"):
        Maintainer(2, k=2, stratified=True).absorb(values, levels)
    with pytest.raises(OptionError, match="stratified=True"):
        Maintainer(2, k=2).absorb(values, levels, np.zeros(4, dtype=np.int64))


def test_a_pool_without_room_refuses_no_record_that_need_not_wait() -> None:
    rng = np.random.default_rng(3)
    maintainer = Maintainer(2, k=2, pending_limit=0)
    maintainer.start(rng.normal(size=(4, 2)), np.full(4, 2), np.arange(4) // 2)
    maintainer.absorb(rng.normal(size=(3000, 2)), np.full(3000, 2))  # the index is built anew several times
    assert maintainer.records == 3004


@given(seeds, st.integers(0, 9))
def test_a_batch_that_would_overflow_the_pool_is_refused_whole(seed: int, room: int) -> None:
    arrivals = draw_arrivals(seed, 100, low=3, high=3)  # which none waits for
    levels = arrivals.levels.copy()
    levels[-(room + 1) :] = 1000
    maintainer = arrivals.started(k=2, pending_limit=room)
    maintainer.changed()
    maintainer.absorb(arrivals.values[:20], arrivals.levels[:20])
    before, marks = maintainer.state(), maintainer._store.written[maintainer._order].copy()
    with pytest.raises(PrivacyRefusal, match=f"more than {room} records would wait"):
        maintainer.absorb(arrivals.values[20:], levels[20:])
    assert_same_state(maintainer.state(), before)
    np.testing.assert_array_equal(maintainer._store.written[maintainer._order], marks)
    maintainer.absorb(arrivals.values[20:-1], levels[20:-1])  # one less fits
    assert maintainer.pending == room


def test_a_family_is_due_when_as_many_fresh_records_have_come_as_its_highest_level() -> None:
    rng = np.random.default_rng(3)
    maintainer = Maintainer(2, k=4)
    maintainer.start(
        rng.normal(size=(14, 2)) + np.repeat([[0.0], [99.0]], 7, axis=0), np.full(14, 7), np.arange(14) // 7
    )
    marks = maintainer.publish_marks()
    assert (marks.family.tolist(), marks.fresh.tolist(), marks.needed.tolist()) == ([0, 1], [7, 7], [7, 7])
    maintainer.mark_published(marks.family)
    assert maintainer.fresh.tolist() == [0, 0]
    with pytest.raises(PrivacyRefusal, match="1 of 1 families have too few new records"):
        maintainer.mark_published(np.array([1]))
    for needed in range(7):
        assert not maintainer.publish_marks().due[0]
        maintainer.absorb(rng.normal(size=(1, 2)), np.array([5]))
        assert maintainer.publish_marks().fresh[0] == needed + 1
    assert maintainer.splits == 1  # the group of 7 has grown to 14 with pieces of one family
    assert maintainer.publish_marks().due.tolist() == [True, False]
    assert maintainer.family.tolist() == [1, 0, 0]
    maintainer.mark_published(np.array([0]))
    assert maintainer.family.tolist() == [1, *maintainer.ids[1:]]


@given(seeds, splits)
def test_fresh_records_of_all_families_add_up_to_what_came_since_they_left(seed: int, split: str) -> None:
    arrivals = draw_arrivals(seed, sized(150, 300))
    maintainer = arrivals.started(k=2, split=split)
    assert maintainer.fresh.sum() == len(arrivals.first)
    left = 0
    for part in cut_at(np.random.default_rng(seed), len(arrivals.values)):
        maintainer.absorb(arrivals.values[part], arrivals.levels[part])
        marks = maintainer.publish_marks()
        assert marks.fresh.sum() == maintainer.fresh.sum() == maintainer.records - left
        assert (marks.needed >= 2).all()
        maintainer.mark_published(marks.family[marks.due])
        left += int(marks.fresh[marks.due].sum())


def test_equal_records_never_stop_a_stream() -> None:
    maintainer = Maintainer(3, k=2)
    maintainer.start(np.ones((4, 3)), np.full(4, 2), np.arange(4) // 2)
    maintainer.absorb(np.ones((500, 3)), np.full(500, 2))
    groups = maintainer.groups
    assert maintainer.records == 504
    np.testing.assert_array_equal(groups.mean, 1.0)
    np.testing.assert_array_equal(groups.scatter, 0.0)


def test_what_cannot_be_used_is_refused_and_nothing_changes() -> None:
    arrivals = draw_arrivals(1, 20, d=3)
    maintainer = arrivals.started(k=2)
    before = maintainer.state()
    for values, levels, error, words in [
        (np.zeros((2, 4)), np.full(2, 2), TableError, "give records of 3 coordinates"),
        (np.full((2, 3), np.nan), np.full(2, 2), TableError, "2 records hold a number that is not finite"),
        (np.zeros((2, 3)), np.full(3, 2), LevelError, "there are 2 records; give each one privacy level"),
        (np.zeros((2, 3)), np.full(2, 2.5), LevelError, "a whole number"),
        (np.zeros((2, 3)), np.array([1, 2]), LevelError, "1 privacy levels lie below k=2"),
    ]:
        with pytest.raises(error, match=words):
            maintainer.absorb(values, levels)
    with pytest.raises(OptionError, match="groups already"):
        maintainer.start(arrivals.first, arrivals.first_levels, arrivals.labels)
    with pytest.raises(OptionError, match="of no present group"):
        maintainer.rows(np.array([10**6]))
    assert_same_state(maintainer.state(), before)
    with pytest.raises(OptionError, match="no split test 'half'"):
        Maintainer(3, split="half")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="make the Maintainer with track=True"):
        Maintainer(3, track=False).changed()
    with pytest.raises(PrivacyRefusal, match="smaller than their privacy level"):
        Maintainer(3, k=2).start(np.zeros((3, 3)), np.full(3, 3), np.array([0, 0, 1]))


def test_nothing_of_the_data_is_in_any_repr() -> None:
    arrivals = draw_arrivals(2, 50, d=2)
    maintainer = arrivals.started(k=2)
    done = maintainer.absorb(arrivals.values, arrivals.levels)
    state = maintainer.state()
    for shown in (maintainer, done, state, maintainer.rows(), maintainer.publish_marks()):
        assert "array" not in repr(shown)
        assert "." not in repr(shown).replace("sfumato.", "")


def test_a_number_whose_square_overflows_is_refused_and_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    maintainer = Maintainer(2, k=5)
    maintainer.start(rng.normal(size=(20, 2)), np.full(20, 5), np.arange(20) // 5)
    with pytest.raises(TableError, match="1 records hold a number beyond"):
        maintainer.absorb(np.array([[0.0, 1.0], [0.0, -1e160]]), np.full(2, 5))
    assert maintainer.records == 20
    maintainer.absorb(np.full((40, 2), 1e140), np.full(40, 5))
    assert all(np.isfinite(array).all() for array in (maintainer.groups.mean, maintainer.groups.scatter))
