"""Association rules that were kept, that are new, and how their confidence moved."""

from __future__ import annotations

from functools import partial
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.study import Column, ColumnPair
from sfumato.assess.utility.rules import CONFIDENCE, RULES, SUPPORT, compare, mine
from tests.assess.cases import ROWS, constant_table, draw_table, found_by, released_of, study
from tests.examples import at_length

Item = tuple[int, int]
Rule = tuple[frozenset[Item], Item]


found = partial(found_by, RULES)


def transactions(pairs: tuple[ColumnPair, ...], *, released: bool) -> list[set[Item]]:
    """Items of each row, one cell after the other."""
    rows: list[set[Item]] = []
    for place, pair in enumerate(pairs):
        cells: Column = pair.released if released else pair.original
        cuts = sorted(set(np.quantile(pair.original.present, [0.25, 0.5, 0.75]).tolist())) if pair.is_number else []
        rows = rows or [set() for _ in cells.values]
        for row, (number, absent) in enumerate(zip(cells.values, cells.absent, strict=True)):
            if not absent:
                rows[row].add((place, sum(number > cut for cut in cuts) if pair.is_number else int(number)))
    return rows


def mine_slowly(rows: list[set[Item]]) -> dict[Rule, float]:
    """Count every set of two or three items in every row."""
    items = sorted(set().union(*rows))
    count = {frozenset(some): 0 for size in (1, 2, 3) for some in combinations(items, size)}
    for row in rows:
        for size in (1, 2, 3):
            for some in combinations(sorted(row), size):
                count[frozenset(some)] += 1
    rules = {}
    for each, number in count.items():
        for right in each if len(each) > 1 and number >= SUPPORT * len(rows) else ():
            confidence = number / count[each - {right}]
            if confidence >= CONFIDENCE:
                rules[each - {right}, right] = confidence
    return rules


def test_rules_are_those_of_a_slow_miner() -> None:
    seen = study(draw_table(1, 150), draw_table(2, 120))
    ours, theirs = (mine_slowly(transactions(seen.pairs, released=side)) for side in (False, True))
    rules, original, released = mine(seen.pairs, np.arange(150), np.arange(120), np.random.default_rng(1))
    before, after = original.total, released.total
    assert rules.hold(before, before[-1]).sum() == len(ours)
    assert rules.hold(after, after[-1]).sum() == len(theirs)
    kept, new, _shift = compare(rules, before, after)
    both = len(ours.keys() & theirs.keys())
    assert kept == pytest.approx(both / len(ours))
    assert new == pytest.approx(1 - both / len(theirs))
    confidence = rules.confidence(before)[rules.hold(before, before[-1])]
    np.testing.assert_allclose(np.sort(confidence), np.sort(list(ours.values())))


def test_a_copy_keeps_every_rule_has_no_new_one_and_moves_no_confidence() -> None:
    findings = found(draw_table(1), draw_table(1))
    assert findings["rules-preserved"].value == 1.0
    assert findings["rules-new"].value == 0.0
    assert findings["rule-confidence-difference"].value == 0.0


def test_other_people_keep_most_rules_and_a_constant_table_few() -> None:
    redraw, constant = (found(draw_table(1), released_of(case)) for case in ("redraw", "constant"))
    for name, least, most in (("rules-preserved", 0.7, 0.3), ("rules-new", 0.3, 0.6)):
        good, bad = redraw[name].value, constant[name].value
        assert good is not None
        assert bad is not None
        assert (good > least and bad < most) if name == "rules-preserved" else (good < least and bad > most)
    assert (
        (redraw["rule-confidence-difference"].value or 1.0)
        < 0.15
        < (constant["rule-confidence-difference"].value or 0.0)
    )


@pytest.mark.parametrize("seeds", [5, *at_length(12)])
def test_rows_drawn_from_the_original_do_as_the_baseline_says(seeds: int) -> None:
    gaps = []
    for seed in range(seeds):
        original = draw_table(seed)
        places = np.random.default_rng(seed).integers(ROWS, size=ROWS)
        findings = found(original, original.take(pa.array(places)), seed=seed)
        gaps.append([(each.value or 0.0) - (each.baseline or 0.0) for each in findings.values()])
    np.testing.assert_allclose(np.mean(gaps, axis=0), 0.0, atol=0.04)


def test_a_column_shuffled_by_itself_loses_rules() -> None:
    original = draw_table(1)
    mixed = original.column("colour").take(pa.array(np.random.default_rng(1).permutation(ROWS)))
    findings = found(original, original.set_column(3, "colour", mixed))
    kept = findings["rules-preserved"]
    assert kept.interval is not None
    assert kept.interval[1] < (kept.baseline or 0.0)


def test_without_a_rule_nothing_is_measured() -> None:
    rng = np.random.default_rng(1)
    table = pa.table({name: rng.choice(list("abcdefgh"), 2000) for name in ("first", "second", "third")})
    for finding in found(table, table).values():
        assert "no rule" in (finding.reason or "")


def test_a_released_table_without_a_rule_has_lost_all_and_no_share_of_new_ones() -> None:
    original = draw_table(1).select(["colour", "shape"])
    empty = pa.table({name: pa.nulls(ROWS, pa.string()) for name in original.column_names})
    findings = found(original, empty)
    assert findings["rules-preserved"].value == 0.0
    assert "no rule" in (findings["rules-new"].reason or "")


def test_small_and_odd_tables_are_measured_or_say_why_not() -> None:
    table = draw_table(1)
    odd = [
        (constant_table(20), constant_table(20)),
        (constant_table(1), constant_table(1)),
        (draw_table(1, 2), draw_table(2, 3)),
        (table, table.set_column(1, "y", pa.nulls(ROWS, pa.float64()))),
        (table, draw_table(2, 5)),
    ]
    for original, released in odd:
        assert all("failed" not in (finding.reason or "") for finding in found(original, released).values())
    lone = found(table.select(["x"]), table.select(["x"]))
    assert lone["rules-preserved"].reason == "the table has a single column"


def test_no_category_stands_in_what_is_said() -> None:
    findings = found(draw_table(1), draw_table(2))
    assert not any(word in str(findings) for word in ("amber", "blue", "crimson", "colour"))


def test_the_same_seed_gives_the_same_findings() -> None:
    assert found(draw_table(1), draw_table(2)) == found(draw_table(1), draw_table(2))
