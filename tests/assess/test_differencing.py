"""The difference of two publications is the arrival where epochs are switched off, and a guess where they are on."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.assess.algebra import run_measure
from sfumato.assess.attacks.differencing import (
    DIFFERENCING,
    PublicationSummary,
    StreamPublications,
    changed_units,
    difference,
    difference_findings,
)
from sfumato.core.records import CATEGORY_SCALE, Block, BlockKind
from sfumato.stream.facts import EpochPublished
from sfumato.tables.codec import Codec
from tests.assess.privacy_studies import case, check_sound, found, value
from tests.assess.watched import EPOCHS, FIRST, LEVEL, SCHEMA, Stream, fixed_case, people, study_with
from tests.examples import at_length, examples, sized

BOTH = ("differencing-recovery", "differencing-recovery-statistics")


@given(st.integers(0, 2**32), st.sampled_from(["paper", "strict"]))
@examples(8, few=2)
def test_without_epochs_statistics_give_every_arrival_to_the_last_digits(seed: int, split: str) -> None:
    stream = Stream(FIRST + 25, np.random.default_rng(seed), gated=False, split=split)
    for _ in range(25):
        stream.arrive(1)
    for (_, before), (_, after), (person,) in zip(stream.shown[:-1], stream.shown[1:], stream.arrived, strict=True):
        (claim,) = difference(before, after, apart=False)
        np.testing.assert_allclose(claim, person, rtol=0, atol=1e-9)
    assert value(DIFFERENCING, study_with(stream.watched()), "differencing-recovery-statistics") == 1.0


def test_without_epochs_a_split_does_not_hide_the_arrival() -> None:
    stream = Stream(FIRST + 60, np.random.default_rng(3), gated=False)
    for _ in range(60):
        stream.arrive(1)
    assert sum(stream.splits) > 2
    for number in np.flatnonzero(stream.splits):
        (claim,) = difference(stream.shown[number][1], stream.shown[number + 1][1], apart=False)
        np.testing.assert_allclose(claim, stream.arrived[number][0], rtol=0, atol=1e-9)


@given(st.integers(0, 2**32))
@examples(8, few=2)
def test_without_epochs_published_rows_give_every_category_and_gap_until_a_group_splits(seed: int) -> None:
    stream = Stream(FIRST + 20, np.random.default_rng(seed), gated=False, split="strict")
    for _ in range(20):
        stream.arrive(1)
        if stream.maintainer.splits:
            break
    whole = len(stream.arrived) - bool(stream.maintainer.splits)
    if not whole:
        return
    watched = stream.watched()
    assert watched.rows is not None
    before = dataclasses.replace(
        watched, rows=watched.rows[: whole + 1], arrived=watched.arrived[:whole], statistics=None
    )
    findings = found(DIFFERENCING, study_with(before))
    assert findings["differencing-recovery/sex"].value == 1.0
    assert findings["differencing-recovery/town"].value == 1.0
    assert value(DIFFERENCING, study_with(before), "differencing-recovery/pay") < 0.5
    assert findings["differencing-recovery-statistics"].reason == "nothing of that kind was published"


@pytest.mark.parametrize("number", [1, LEVEL, *at_length(3, 3 * LEVEL)])
@given(seed=st.integers(0, 2**32))
@examples(3, few=1)
def test_with_epochs_nothing_is_told_above_guessing(number: int, seed: int) -> None:
    stream = Stream(FIRST + 144, np.random.default_rng(seed), gated=True)
    for _ in range(144 // number):
        stream.arrive(number)
    study = study_with(stream.watched())
    check_sound(DIFFERENCING, study)
    findings = found(DIFFERENCING, study)
    for name in BOTH:
        baseline = findings[name].baseline
        assert findings[name].value == 0.0
        assert baseline is not None
        assert baseline <= 5 / 144  # a guess may hit a person by chance
    for name in ("pay", "size", "sex", "town"):  # five standard deviations of the difference of two shares
        finding = findings[f"differencing-recovery/{name}"]
        assert finding.value is not None
        assert finding.baseline is not None
        assert finding.value <= finding.baseline + 5 * np.sqrt(0.5 / 144)


def test_with_epochs_one_arrival_changes_no_publication() -> None:
    stream = Stream(FIRST + 1, np.random.default_rng(1), gated=True)
    stream.arrive(1)
    for before, after in zip(*stream.shown, strict=True):
        assert not len(difference(before, after, apart=True))


def test_an_accomplice_of_all_but_one_fresh_record_isolates_the_last_even_with_epochs() -> None:
    """What no rule of publication stops, and the certificate refuses to claim."""
    stream = Stream(FIRST, np.random.default_rng(5), gated=True)
    person = stream.values[0] + 0.01
    stream.values = np.concatenate([stream.values, np.tile(stream.values[:1], (LEVEL - 1, 1)), person[None]])
    stream.arrive(LEVEL)
    before, after = (shown[1] for shown in stream.shown)
    changed = difference(before, after, apart=False)
    assert len(changed) == LEVEL  # one family took all of them
    np.testing.assert_allclose(LEVEL * changed[0] - (LEVEL - 1) * stream.values[0], person, atol=1e-9)


def fixed(name: str, seed: int = 1) -> StreamPublications:
    rng = np.random.default_rng(seed)
    (rows, steps), begun = sized((200, 40), (400, 60)), sized(150, 300)
    table = people(rows, rng)
    codec = Codec.fit(table, SCHEMA)
    ends = range(begun, begun + 1 + steps)
    tables = {
        "copy": [table.slice(0, end) for end in ends],
        "redraw": [people(end, rng) for end in ends],
        "constant": [table.take(pa.array(np.zeros(end, dtype=np.int64))) for end in ends],
    }[name]
    return fixed_case(name, codec, tables, table.slice(begun, steps))


def test_a_copy_gives_every_arrival() -> None:
    study = study_with(fixed("copy"))
    check_sound(DIFFERENCING, study)
    assert all(finding.value == 1.0 for finding in found(DIFFERENCING, study).values())


@pytest.mark.parametrize("seed", [1, *at_length(2, 3)])
def test_an_independent_redraw_gives_no_more_than_guessing(seed: int) -> None:
    study = study_with(fixed("redraw", seed))
    check_sound(DIFFERENCING, study)
    for name in BOTH:
        finding = found(DIFFERENCING, study)[name]
        assert finding.value == finding.baseline == 0.0


def test_a_constant_table_gives_nobody_away() -> None:
    study = study_with(fixed("constant"))
    check_sound(DIFFERENCING, study)
    for finding in found(DIFFERENCING, study).values():
        assert finding.value == finding.baseline


def test_a_table_that_is_no_publication_of_a_stream_is_not_attacked() -> None:
    for study in (case("copy"), dataclasses.replace(study_with(fixed("copy")), facts=EPOCHS[:1])):
        for finding in run_measure(DIFFERENCING, study):
            assert finding.value is None
            assert "not one of several publications" in str(finding.reason)
    study = dataclasses.replace(case("copy"), facts=(EpochPublished(1, 1, 0, 9, 9), EpochPublished(2, 1, 0, 9, 9)))
    for finding in run_measure(DIFFERENCING, study):
        assert "not available" in str(finding.reason)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.lists(st.integers(0, 3), max_size=8))
def test_equal_units_cancel_as_often_as_they_stand_in_both(before: list[int], more: list[int]) -> None:
    one, other = (np.array(rows, dtype=np.float64)[:, None] for rows in (before, before[::-1] + more))
    claims = difference(PublicationSummary.of_rows(one), PublicationSummary.of_rows(other), apart=False)
    assert len(claims) == len(more)
    if more:
        np.testing.assert_allclose(claims.sum(), sum(more))


def test_arrivals_in_groups_far_apart_are_told_one_by_one() -> None:
    centres = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 100.0]])
    came = centres + np.random.default_rng(1).normal(size=centres.shape)
    before = PublicationSummary.of_groups(np.full(3, 9), centres)
    after = PublicationSummary.of_groups(np.full(3, 10), (9 * centres + came) / 10)
    np.testing.assert_allclose(difference(before, after, apart=True), came, atol=1e-9)
    np.testing.assert_allclose(difference(before, after, apart=False), np.tile(came.mean(axis=0), (3, 1)), atol=1e-9)


NUMBER = Block("pay", BlockKind.NUMBER, 0, 1)
TOWN = Block("town", BlockKind.CATEGORY, 0, 2)
GAP = Block("pay", BlockKind.MISSING, 1, 2)


def recovered(
    layout: tuple[Block, ...], before: list[list[float]], came: list[list[float]], person: list[float]
) -> tuple[float | None, float | None]:
    """Share of one person's cells that the difference of two tables tells, and that a guess tells."""
    first, second = (PublicationSummary.of_rows(np.array(rows)) for rows in (before, [*before, *came]))
    watched = StreamPublications(layout=layout, rows=(first, second), arrived=(np.array([person]),))
    (finding, *_) = difference_findings(watched, np.random.default_rng(1))
    return finding.value, finding.baseline


def test_of_several_arrivals_in_groups_each_group_is_matched_with_the_one_of_closest_mean() -> None:
    """Totals alone would match the large group with whichever is large."""
    before = PublicationSummary.of_groups(np.array([10, 1]), np.array([[1.0], [8.0]]))
    after = PublicationSummary.of_groups(np.array([11, 2]), np.array([[12.0 / 11], [9.0]]))
    assert changed_units(after, before).mean[:, 0] == pytest.approx([12 / 11, 9.0])
    np.testing.assert_allclose(difference(before, after, apart=True), [[2.0], [10.0]], atol=1e-9)


def test_a_guess_at_a_group_is_its_mean_and_not_its_sum() -> None:
    group = PublicationSummary.of_groups(np.array([4]), np.array([[0.25]]))
    watched = StreamPublications(layout=(NUMBER,), statistics=(group, group), arrived=(np.array([[0.25]]),))
    (finding,) = (each for each in difference_findings(watched, np.random.default_rng(1)) if each.baseline is not None)
    assert finding.baseline == 1.0


def test_what_the_difference_does_not_tell_for_certain_is_guessed() -> None:
    share, whole = CATEGORY_SCALE / 2, CATEGORY_SCALE
    town = [[whole, 0.0]]
    assert recovered((TOWN,), town, [[share - 0.1, share + 0.1]], town[0]) == (1.0, 1.0)  # the guess is right
    assert recovered((TOWN,), town, [[share - 0.1, share + 0.1]], [0.0, whole]) == (0.0, 0.0)  # the claim would be
    assert recovered((TOWN,), town, [[0.0, whole]], [0.0, whole]) == (1.0, 0.0)
    assert recovered((TOWN,), town, [[0.0, whole]], town[0]) == (0.0, 1.0)  # a certain claim is believed
    assert recovered((TOWN,), town, [], town[0]) == (1.0, 1.0)  # nothing is claimed


@pytest.mark.parametrize(
    ("claim", "person", "right"),
    [
        ([2.0, 0.0], [2.0, 0.0], True),
        ([2.0, 0.0], [3.0, 0.0], False),
        ([2.0, 0.0], [2.0, 1.0], False),  # there is a gap that the claim does not have
        ([2.0, 1.0], [2.0, 0.0], False),
        ([2.0, 1.0], [3.0, 1.0], True),  # a gap has no number
        ([2.0, 0.6], [2.0, 1.0], False),  # a share of a gap is not certain, and the guess has none
    ],
)
def test_a_gap_is_told_by_its_own_coordinate_and_its_number_then_does_not_count(
    claim: list[float], person: list[float], right: bool
) -> None:
    assert recovered((NUMBER, GAP), [[9.0, 0.0]], [claim], person) == (float(right), 0.0)


def test_a_category_that_is_missing_is_told_by_its_gap_though_the_claim_has_shares_of_categories() -> None:
    layout, share = (TOWN, Block("town", BlockKind.MISSING, 2, 3)), CATEGORY_SCALE / 2
    before = [[CATEGORY_SCALE, 0.0, 0.0]]
    gone = [share - 0.1, share + 0.1, 1.0]
    assert recovered(layout, before, [gone], gone) == (1.0, 0.0)
    assert recovered(layout, before, [[*gone[:2], 0.0]], [0.0, CATEGORY_SCALE, 0.0]) == (0.0, 0.0)
    assert recovered(layout, before, [[*gone[:2], -1.0]], [0.0, CATEGORY_SCALE, 1.0]) == (0.0, 0.0)
