"""People who are alone with their values, and matches that an intruder believes in."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.risk.uniqueness import UNIQUENESS, matched
from sfumato.assess.study import row_keys
from tests.assess.privacy_studies import AWKWARD, awkward, case, check_sound, found, overlap, redraw, study, value
from tests.examples import at_length


@pytest.mark.parametrize("name", ["copy", "redraw", "constant"])
def test_every_finding_of_a_fixed_case_is_complete(name: str) -> None:
    check_sound(UNIQUENESS, case(name))


@pytest.mark.parametrize("name", AWKWARD)
def test_no_awkward_table_stops_it(name: str) -> None:
    check_sound(UNIQUENESS, awkward(name))


def test_everybody_alone_in_a_copy_is_matched_and_nobody_in_a_constant_release() -> None:
    assert value(UNIQUENESS, case("copy"), "unique-matches") == 1.0
    assert value(UNIQUENESS, case("constant"), "unique-matches") == 0.0


@pytest.mark.parametrize("seed", [0, 1, *at_length(2, 3)])
def test_a_redraw_matches_those_inside_no_more_than_those_held_out(seed: int) -> None:
    assert overlap(found(UNIQUENESS, redraw(seed))["unique-matches"])


def test_who_is_alone_is_counted_right() -> None:
    colours, sizes = ["r", "r", "r", "g", "g", "b"], [None, None, "s", "s", "m", "m"]
    table = pa.table({"colour": colours, "size": sizes})
    findings = found(UNIQUENESS, study(table, table.slice(1)))
    assert findings["unique-rows"].value == pytest.approx(4 / 6)
    assert findings["unique-rows"].baseline == 1.0
    assert findings["unique-matches"].value == 1.0
    assert findings["unique-matches"].attempts == 4


def test_where_nobody_is_alone_matches_are_not_run() -> None:
    table = pa.table({"colour": ["r", "r", "g", "g"], "size": ["s", "s", "m", "m"]})
    assert "nobody" in (found(UNIQUENESS, study(table, table))["unique-matches"].because or "")


def test_numbers_are_known_only_to_the_tenth() -> None:
    rng = np.random.default_rng(1)
    table = pa.table({"a": rng.normal(size=5000)})
    moved = pa.table({"a": rng.normal(size=5000)})
    assert value(UNIQUENESS, study(table, moved), "unique-rows") == 0.0


def test_keys_agree_with_a_slow_count() -> None:
    rng = np.random.default_rng(2)
    here, there = rng.integers(0, 4, size=(2, 3, 150))
    keys, others = (
        row_keys(codes.astype(np.uint64) for codes in here),
        row_keys(codes.astype(np.uint64) for codes in there),
    )
    rows, released = [tuple(row) for row in here.T], [tuple(row) for row in there.T]
    alone = [row for row in rows if rows.count(row) == 1]
    assert matched(keys, keys, others, inside=True) == (len(alone), sum(released.count(row) == 1 for row in alone))
    outside = [row for row in released if rows.count(row) == 0]
    slow = sum(released.count(row) == 1 for row in outside)
    assert matched(others, keys, others, inside=False) == (len(outside), slow)
