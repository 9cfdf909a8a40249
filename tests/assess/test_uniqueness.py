"""People who are alone with their values, and matches that an intruder believes in."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.findings import risk_by_column
from sfumato.assess.risk.uniqueness import UNIQUENESS, matched
from sfumato.assess.study import row_keys
from tests.assess.cases import study
from tests.assess.made_up import attack
from tests.assess.privacy_studies import AWKWARD, awkward, case, found, overlap, redraw, value
from tests.examples import at_length


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
    assert findings["sample-uniques"].value == pytest.approx(4 / 6)
    assert findings["sample-uniques"].baseline == 1.0
    assert findings["unique-matches"].value == 1.0
    assert findings["unique-matches"].attempts == 4


def test_where_nobody_is_alone_matches_are_not_run() -> None:
    table = pa.table({"colour": ["r", "r", "g", "g"], "size": ["s", "s", "m", "m"]})
    assert "nobody" in (found(UNIQUENESS, study(table, table))["unique-matches"].reason or "")


def test_numbers_are_known_only_to_the_tenth() -> None:
    rng = np.random.default_rng(1)
    table = pa.table({"a": rng.normal(size=5000)})
    moved = pa.table({"a": rng.normal(size=5000)})
    assert value(UNIQUENESS, study(table, moved), "sample-uniques") == 0.0


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


@pytest.mark.parametrize("name", AWKWARD)
def test_the_risk_by_column_is_told_of_any_table(name: str) -> None:
    tables = awkward(name)
    risks = risk_by_column(tables, ())
    assert {risk.column for risk in risks} == ({pair.name for pair in tables.pairs} if len(tables.released) else set())
    assert all(0.0 <= risk.alone <= 1.0 and risk.rare >= 0 and risk.gain is None for risk in risks)


def test_the_column_that_makes_people_one_of_a_kind_is_named_first() -> None:
    """Two people a town, distinguished by their eyes; one of the 40 is old, and the two of that town differ in age."""
    towns = [f"town {place // 2}" for place in range(40)]
    original = pa.table({"eye": ["blue", "brown"] * 20, "town": towns, "age": [30] * 39 + [97]})
    released = pa.table({"eye": ["blue"] * 40, "town": ["town 3", "town 7"] * 20, "age": [30] * 39 + [97]})
    risks = risk_by_column(study(original, released), ())
    assert [(risk.column, round(40 * risk.alone), risk.rare) for risk in risks] == [
        ("town", 39, 4),  # the four of the two towns that are released
        ("eye", 38, 0),
        ("age", 0, 1),
    ]


def test_the_risk_of_a_column_whose_cells_are_read_is_its_gain() -> None:
    table, insider = pa.table({"a": ["x", "y"] * 20, "b": ["u", "v"] * 20}), "attribute-inference-all-columns"
    read = [attack(f"{insider}/b", 900, 300, 0.1), attack(f"{insider}/a", 300, 300, 0.1)]
    first, second = risk_by_column(study(table, table), read)
    assert (first.column, first.certain) == ("b", True)
    assert first.gain == pytest.approx(0.3)
    assert (second.column, second.gain, second.certain) == ("a", 0.0, False)
