"""Numbers that are read off a rare combination of categories."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.attacks.rare_combinations import RARE_COMBINATIONS
from sfumato.assess.findings import Direction, Finding, difference_interval, gains
from sfumato.assess.plain import risk_sentence
from tests.assess.cases import draw_table, found_by

ROWS = 400


def people(seed: int, rows: int = ROWS, kinds: int = 9) -> pa.Table:
    """Draw people whose categories are often unique and whose numbers are free of them."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, kinds, size=(3, rows))
    x, y = rng.normal(size=(2, rows))
    names = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    return pa.table(
        {
            "p": names[codes[0]].tolist(),
            "q": names[codes[1]].tolist(),
            "r": pa.array(names[codes[2]].tolist(), mask=codes[2] == 0),
            "x": 10.0 * x,
            "y": pa.array(y, mask=rng.random(rows) < 0.1),
        }
    )


def both(original: pa.Table, released: pa.Table, seed: int = 5, **more: Any) -> tuple[Finding, Finding]:
    error, share = found_by(RARE_COMBINATIONS, original, released, seed=seed, **more).values()
    return error, share


def found(original: pa.Table, released: pa.Table, seed: int = 5, **more: Any) -> Finding:
    return both(original, released, seed, **more)[0]


def share_found(original: pa.Table, released: pa.Table, seed: int = 5, **more: Any) -> Finding:
    return both(original, released, seed, **more)[1]


def slow_errors(original: pa.Table, released: pa.Table) -> list[float]:
    rows, others = original.to_pylist(), released.to_pylist()
    scale = {name: np.nanstd(np.array(original.column(name).to_pylist(), dtype=float)) for name in ("x", "y")}
    combinations = [(row["p"], row["q"], row["r"]) for row in rows]
    errors = []
    for row, key in zip(rows, combinations, strict=True):
        same = [other for other in others if (other["p"], other["q"], other["r"]) == key]
        if combinations.count(key) > 1 or not same:
            continue
        cells = []
        for name in ("x", "y"):
            read = [other[name] for other in same if other[name] is not None]
            if read and row[name] is not None:
                cells.append(abs(np.mean(read) - row[name]) / scale[name])
        if cells:
            errors.append(float(np.mean(cells)))
    return errors


def test_the_error_is_that_of_a_loop_over_people() -> None:
    finding = found(people(1), people(2))
    errors = slow_errors(people(1), people(2))
    assert finding.attempts == len(errors) > 30
    assert finding.value == pytest.approx(np.median(errors))
    assert finding.direction is Direction.HIGHER


def test_a_copy_gives_the_numbers_away() -> None:
    finding = found(people(1), people(1), holdout=people(3))
    assert finding.value == 0.0
    assert finding.baseline is not None
    assert finding.baseline > 0.4
    assert finding.control is not None
    assert finding.control > 0.4


def test_rows_that_keep_only_the_rare_people_give_them_away_whatever_else_they_blur() -> None:
    original = people(1)
    keys = list(zip(*(original.column(name).to_pylist() for name in ("p", "q", "r")), strict=True))
    common = np.array([keys.count(key) > 1 for key in keys])
    x = original.column("x").to_numpy() + 50.0 * common
    assert found(original, original.set_column(3, "x", pa.array(x))).value == 0.0


def test_an_independent_redraw_reads_originals_no_better_than_held_out_people() -> None:
    beaten = 0
    for seed in range(20, 32):
        finding = found(people(10 * seed), people(10 * seed + 1), seed, holdout=people(10 * seed + 2))
        assert finding.interval is not None
        assert finding.control_interval is not None
        beaten += finding.interval[1] < finding.control_interval[0]
    assert beaten <= 1


def test_a_constant_table_has_no_rare_combination() -> None:
    original = pa.concat_tables([people(1), people(1).slice(0, 1)])  # the repeated person is not alone
    finding = found(original, people(1).take(pa.array([0] * 50)), holdout=people(3))
    assert finding.value is None
    assert "alone" in (finding.reason or "")


def test_a_table_of_one_kind_is_not_run() -> None:
    assert found(people(1).select(["x", "y"]), people(2).select(["x", "y"])).reason == (
        "the table has no column of categories"
    )
    assert found(people(1).select(["p"]), people(2).select(["p"])).reason == "the table has no ordered column"


def test_held_out_people_without_such_a_combination_give_no_control() -> None:
    finding = found(people(1), people(1), holdout=people(1).slice(0, 1).set_column(0, "p", pa.array(["?"])))
    assert finding.control is None
    assert "no held-out person has such a combination" in finding.meaning


def test_few_rows_stop_nothing() -> None:
    for rows in (1, 2):
        finding = found(draw_table(1, rows), draw_table(1, rows), holdout=draw_table(3, 2))
        assert finding.value == 0.0


# ------------------------------------------------------------------------------------------- how often they are found


def combinations(table: pa.Table) -> list[tuple[Any, ...]]:
    return [(row["p"], row["q"], row["r"]) for row in table.to_pylist()]


def test_a_copy_gives_those_who_are_alone_away_and_nobody_held_out() -> None:
    original = people(1, 900, kinds=14)
    keys = combinations(original)
    alone = sum(keys.count(key) == 1 for key in keys)
    finding = share_found(original, original, holdout=people(3))
    assert (finding.value, finding.attempts) == (1.0, alone)
    assert finding.control == 0.0  # who would be alone has no row in a copy
    assert finding.outside is not None
    assert finding.outside.of == sum(key not in keys for key in combinations(people(3)))


def test_the_share_is_that_of_a_loop_over_people() -> None:
    original, released = people(1, 900, kinds=14), people(2, 900, kinds=14)
    near = sum(error <= 0.1 for error in slow_errors(original, released))
    finding = share_found(original, released)
    assert finding.inside is not None
    assert finding.inside.hits == near > 0
    assert finding.attempts == finding.inside.of > 500


def test_where_few_are_alone_people_who_share_theirs_with_few_are_counted_too() -> None:
    finding = share_found(people(1), people(1), holdout=people(3))
    assert finding.attempts == ROWS  # all: there are fewer than 500
    assert finding.outside is not None
    keys = combinations(people(1))
    assert finding.value is not None
    assert sum(keys.count(key) == 1 for key in keys) / ROWS <= finding.value < 1.0
    most = max(map(keys.count, keys))
    assert finding.outside.of == sum(keys.count(key) < most for key in combinations(people(3)))
    assert f"at most {most} people" in finding.meaning


def test_an_independent_redraw_finds_originals_no_more_often_than_held_out_people() -> None:
    finding = share_found(people(1), people(2), holdout=people(3))
    assert finding.inside is not None
    assert finding.outside is not None
    low, high = difference_interval(finding.inside, finding.outside, 0.999999)
    assert low <= 0 <= high


def test_a_table_of_one_kind_has_nothing_to_attack() -> None:
    for finding in both(people(1).select(["x", "y"]), people(2).select(["x", "y"])):
        assert finding.value is None
        assert not finding.applies


def follow(seed: int, rows: int = 600) -> pa.Table:
    """Draw people whose numbers follow from their categories, up to a little."""
    rng = np.random.default_rng(seed)
    codes = np.minimum(rng.geometric(0.15, size=(2, rows)), 20)
    names = np.array([f"kind {code}" for code in range(21)])
    return pa.table(
        {"p": names[codes[0]], "q": names[codes[1]], "x": 10.0 * codes[0] + rng.random(rows), "y": codes[1] ** 2.0}
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_the_categories_tell_of_anybody_is_no_gain_without_people_held_out(seed: int) -> None:
    """A redraw reads the numbers of many rare people, and so does a table of unrelated people."""
    original, redraw = follow(10 * seed), follow(10 * seed + 1)
    redrawn, copied = (share_found(original, released) for released in (redraw, original))
    assert redrawn.value is not None
    assert redrawn.baseline_interval is not None
    assert redrawn.value > 0.3
    assert [gain.certain for gain in gains([redrawn])] == [False]
    assert [gain.certain for gain in gains([copied])] == [True]
    assert "on unrelated data" in risk_sentence([copied])


def test_the_error_of_rare_people_keeps_guessing_as_its_baseline() -> None:
    """It is no share, and the rows that play the release have no error at all."""
    error = found(people(1), people(2))
    assert error.baseline_interval is None
    assert error.baseline is not None
    assert error.baseline > 0.5


def test_the_control_of_the_error_is_who_would_be_alone() -> None:
    """Of the control group whose combination at most one person of the original has, and which is released."""
    original, released, outside = people(1, kinds=5), people(2, kinds=5), people(3, kinds=5)
    keys, shown = combinations(original), combinations(released)
    would = [key for key in combinations(outside) if keys.count(key) <= 1 and key in shown]
    alone = outside.filter(pa.array([key in would for key in combinations(outside)]))
    assert 10 < alone.num_rows < outside.num_rows / 2
    finding, same = (found(original, released, holdout=held) for held in (outside, alone))
    assert finding.control == same.control
    assert finding.control_interval == same.control_interval


def test_the_room_for_people_held_out_grows_by_a_tenth_where_many_share() -> None:
    original, outside = people(1, kinds=3), people(3, kinds=3)
    keys = combinations(original)
    assert min(map(keys.count, keys)) <= 10
    most = max(map(keys.count, keys))
    assert most >= 20
    finding = share_found(original, people(2, kinds=3), holdout=outside)
    assert finding.outside is not None
    assert finding.outside.of == sum(keys.count(key) <= most - 1 + most // 10 for key in combinations(outside))
    assert finding.outside.of > sum(keys.count(key) <= most - 1 for key in combinations(outside))


def test_guessing_takes_the_median_of_all_released_rows() -> None:
    """Numbers are skewed, so that their mean is far from their median."""
    rng = np.random.default_rng(4)
    skewed = [pa.array(np.exp(2.0 * rng.normal(size=ROWS))) for _ in range(2)]
    original, released = (people(seed).set_column(3, "x", x) for seed, x in zip((1, 2), skewed, strict=True))
    keys, shown = combinations(original), combinations(released)
    scale = {name: np.nanstd(np.array(original.column(name).to_pylist(), dtype=float)) for name in ("x", "y")}
    middle = {name: np.nanmedian(np.array(released.column(name).to_pylist(), dtype=float)) for name in ("x", "y")}
    errors = []
    for row, key in zip(original.to_pylist(), keys, strict=True):
        if keys.count(key) > 1:
            continue
        same = [other for other, its in zip(released.to_pylist(), shown, strict=True) if its == key]
        known = [n for n in ("x", "y") if row[n] is not None and any(other[n] is not None for other in same)]
        if known:
            errors.append(np.mean([abs(row[n] - middle[n]) / scale[n] for n in known]))
    assert found(original, released).baseline == pytest.approx(np.median(errors))


def test_a_person_is_as_rare_as_the_rarest_of_their_rows() -> None:
    """Each of 12 people shares one row with all and is alone with another."""
    first = ["z"] * 12 + [f"p{person % 4}" for person in range(12)]
    second = ["z"] * 12 + [f"q{person // 4}" for person in range(12)]
    table = pa.table({"p": first, "q": second, "x": np.random.default_rng(1).normal(size=24)})
    finding = share_found(table, table, persons=np.tile(np.arange(12), 2))
    assert finding.attempts == 12
    assert "rare is here what at most 1 person of the table have" in finding.meaning
    assert finding.value == 1.0
