"""Statistical queries: counts on the released table beside counts on the original."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.study import Study
from sfumato.assess.utility import comparison as module
from sfumato.assess.utility.comparison import QUERIES, Query, count_rows, draw_queries, relative_errors
from tests.assess.cases import ROWS, constant_table, draw_table, found_by, released_of, study
from tests.examples import at_length

found = partial(found_by, QUERIES)


def count_slowly(query: Query, seen: Study) -> int:
    """Look at one cell after the other."""
    matched = 0
    for row in range(len(seen.original)):
        passed = True
        for column, test in zip(query.columns, query.tests, strict=True):
            cells = seen.pairs[column].original
            if cells.absent[row]:
                passed = False
            elif seen.pairs[column].is_number:
                passed &= bool(test[0] <= cells.values[row] <= test[1])
            else:
                passed &= bool(test[int(cells.values[row])])
        matched += passed
    return matched


def test_counts_are_those_of_a_slow_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 77)
    seen = study(draw_table(1, 200), draw_table(2, 150))
    drawn = draw_queries(seen.pairs, 60, np.random.default_rng(1))
    counts = count_rows(drawn, seen.pairs, released=False)
    assert counts.tolist() == [count_slowly(query, seen) for query in drawn]


@pytest.mark.parametrize("seed", range(3))
def test_queries_ask_about_one_to_three_columns_and_match_a_hundredth_of_the_rows(seed: int) -> None:
    seen = study(draw_table(seed), draw_table(9))
    drawn = draw_queries(seen.pairs, 300, np.random.default_rng(seed))
    counts = count_rows(drawn, seen.pairs, released=False)
    assert len(drawn) == 300
    assert {len(query.columns) for query in drawn} == {1, 2, 3}
    assert counts.min() >= 0.01 * ROWS
    assert counts.max() < ROWS


def test_a_copy_answers_every_query_right() -> None:
    for finding in found(draw_table(1), draw_table(1)).values():
        assert finding.value == 0.0
        assert finding.attempts == 1000
        assert finding.baseline is not None
        assert finding.baseline > 0.0


def test_a_table_written_twice_answers_every_query_right() -> None:
    table = draw_table(1)
    for finding in found(table, pa.concat_tables([table, table])).values():
        assert finding.value == pytest.approx(0.0, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [4, *at_length(12)])
def test_rows_drawn_from_the_original_err_as_the_baseline_says(seeds: int) -> None:
    ratios = []
    for seed in range(seeds):
        original = draw_table(seed)
        places = np.random.default_rng(seed).integers(ROWS, size=300)
        findings = found(original, original.take(pa.array(places)), seed=seed)
        ratios.append([(each.value or 0.0) / (each.baseline or 1.0) for each in findings.values()])
    np.testing.assert_allclose(np.mean(ratios, axis=0), 1.0, atol=0.25)


def test_other_people_err_little_and_a_constant_table_errs_wholly() -> None:
    redraw, constant = (found(draw_table(1), released_of(case)) for case in ("redraw", "constant"))
    for name in redraw:
        number, baseline, worst = redraw[name].value, redraw[name].baseline, constant[name].value
        assert number is not None
        assert baseline is not None
        assert worst is not None
        assert 0.0 < number < 4 * baseline
        assert worst >= 1.0 > number


def test_no_small_count_makes_an_error_endless() -> None:
    errors = relative_errors(np.array([0, 1, 1000]), np.array([5, 1, 500]), 10_000, 10_000)
    np.testing.assert_allclose(errors, [0.5, 0.0, 0.5])


def test_missing_cells_are_in_no_range() -> None:
    original = draw_table(1)
    gone = original.set_column(1, "y", pa.nulls(ROWS, pa.float64()))
    seen = study(original, gone)
    drawn = [each for each in draw_queries(seen.pairs, 200, np.random.default_rng(1)) if 1 in each.columns]
    assert drawn
    assert not count_rows(drawn, seen.pairs, released=True).any()


def test_small_and_odd_tables_are_measured_or_say_why_not() -> None:
    table = draw_table(1)
    lone = found(table.select(["colour"]), draw_table(2).select(["colour"]))
    assert lone["query-error"].value is not None
    same = found(constant_table(20), constant_table(20))
    assert "no column of the original varies" in (same["query-error"].reason or "")
    few = found(draw_table(1, 3), draw_table(2, 2))
    assert all("failed" not in (finding.reason or "") for finding in few.values())
    empty = table.set_column(1, "y", pa.nulls(ROWS, pa.float64()))
    assert found(table, empty)["query-error"].value is not None


def test_no_cell_stands_in_what_is_said() -> None:
    findings = found(draw_table(1), draw_table(2))
    assert not any(word in str(findings) for word in ("amber", "blue", "crimson", "colour"))


def test_the_same_seed_gives_the_same_findings() -> None:
    assert found(draw_table(1), draw_table(2)) == found(draw_table(1), draw_table(2))
