"""Attribute inference on the three fixed cases and against a slow loop."""

from __future__ import annotations

import dataclasses
from functools import cache, partial

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.algebra import run_measure
from sfumato.assess.attacks.inference import (
    ALL_COLUMNS,
    ATTRIBUTE_INFERENCE,
    CLOSE,
    FEW_COLUMNS,
    HALF_COLUMNS,
    PROFILES,
    Reader,
    attack_column,
    outsiders,
    pool,
    profiles_of,
    rank_columns,
    tolerance_of,
)
from sfumato.assess.findings import Finding
from sfumato.assess.study import Column, Sizes, Study
from tests.assess.cases import (
    CASES,
    ROWS,
    assert_no_more_than_control,
    constant_table,
    draw_table,
    ends,
    found_by,
    released_of,
    study,
)
from tests.examples import at_length

NAMES = tuple(f"attribute-inference-{profile.name}" for profile in PROFILES)


findings = partial(found_by, ATTRIBUTE_INFERENCE)


@cache
def case(name: str, seed: int = 5) -> dict[str, Finding]:
    return findings(draw_table(1), released_of(name), seed=seed, holdout=draw_table(3))


def test_an_insider_reads_every_column_off_a_copy() -> None:
    found = case("copy")
    for column in ("x", "y", "count", "colour", "shape", "born"):
        assert found[f"attribute-inference-all-columns/{column}"].value == 1.0
    assert found["attribute-inference-all-columns"].value == 1.0
    assert (found["attribute-inference-all-columns"].control or 1.0) < 0.6


def test_whoever_knows_more_finds_more_in_a_copy() -> None:
    found = case("copy")
    values = [found[name].value or 0.0 for name in NAMES]
    assert values == sorted(values)
    assert values[0] < values[-1]


@pytest.mark.parametrize("seed", [0, 1, *at_length(2, 3)])
def test_of_a_redraw_no_attacker_finds_more_than_of_people_held_out(seed: int) -> None:
    found = findings(draw_table(10 + seed), draw_table(20 + seed), seed=seed, holdout=draw_table(30 + seed))
    for name in NAMES:
        assert_no_more_than_control(found[name])


def test_a_constant_table_tells_no_attacker_more_than_its_one_guess() -> None:
    for name, finding in case("constant").items():
        assert finding.baseline is not None
        low, high = ends(finding.interval)
        assert low - 0.02 <= finding.baseline <= high + 0.02, name


@pytest.mark.parametrize("name", CASES)
def test_every_attack_has_its_guess_its_control_and_its_number_of_attempts(name: str) -> None:
    found = case(name)
    assert set(NAMES) <= set(found)
    for finding in found.values():
        assert finding.meaning.endswith(".")
        assert finding.value is not None
        assert finding.control is not None
        assert finding.baseline is not None
        assert (finding.attempts or 0) > 100
        assert ends(finding.interval)[0] <= finding.value <= ends(finding.interval)[1]


def slow_hits(this: Study, secret: str, known: tuple[str, ...]) -> list[bool]:
    """Attack everybody by comparing with every row; of equally near rows the guess that serves most wins."""
    pair, where = this.pair(secret), this.coordinates(known)
    tolerance, right = tolerance_of(pair), []
    told = [row for row in range(len(this.released)) if not pair.released.absent[row]]
    for person in np.flatnonzero(~pair.original.absent):
        squares = [((this.released[row, where] - this.original[person, where]) ** 2).sum() for row in told]
        near = [pair.released.values[row] for row, square in zip(told, squares, strict=True) if square == min(squares)]
        windows = [[value for value in near if low <= value <= low + 2 * tolerance] for low in sorted(near)]
        best = max(windows, key=len)
        right.append(abs((min(best) + max(best)) / 2 - pair.original.values[person]) <= tolerance * (1 + 1e-9))
    return right


@pytest.mark.parametrize("secret", ["x", "y", "count", "colour", "shape"])
def test_the_search_finds_what_a_slow_loop_finds(secret: str) -> None:
    this = study(draw_table(1, 60), draw_table(2, 80))
    for known in (("colour",), ("count", "colour"), ("born", "x", "shape")):
        rest = tuple(column for column in known if column != secret)
        trial = attack_column(this, Reader(this), secret, rest, 60, np.random.default_rng(1))
        assert trial is not None
        truth = slow_hits(this, secret, rest)
        assert (trial.inside.hits, trial.inside.of) == (sum(truth), len(truth))


def test_guessing_the_commonest_is_the_baseline() -> None:
    ladder = np.arange(100.0) % 50
    original = pa.table({"a": ["u"] * 70 + ["v"] * 30, "b": ladder})
    released = pa.table({"a": ["u"] * 40 + ["v"] * 60, "b": ladder})
    found = findings(original, released, holdout=original)
    assert found["attribute-inference-all-columns/a"].baseline == pytest.approx(0.3)  # the released column misleads
    window = int(2 * CLOSE * ladder.std()) + 1
    assert found["attribute-inference-all-columns/b"].baseline == pytest.approx(2 * window / 100)


def test_twins_that_differ_only_in_the_secret_are_outvoted() -> None:
    original = pa.table({"a": ["u"] * 50 + ["v"] * 50, "b": ["s"] * 40 + ["t"] * 60})
    found = findings(original, original)
    assert found["attribute-inference-all-columns/b"].value == pytest.approx(0.9)


def test_profiles_are_nested_and_never_know_the_secret() -> None:
    this = study(draw_table(1), draw_table(2), target="colour")
    order = rank_columns(this)
    assert order[:2] == ("shape", "count")
    assert order[-1] == "colour"
    for secret in order:
        known = [set(profile.choose(order, secret)) for profile in (FEW_COLUMNS, HALF_COLUMNS, ALL_COLUMNS)]
        assert known[0] <= known[1] <= known[2] == set(order) - {secret}


def test_the_owner_can_name_the_columns_that_an_attacker_knows() -> None:
    this = dataclasses.replace(study(draw_table(1), draw_table(2)), quasi_identifiers=("x", "born", "colour"))
    named, everything = profiles_of(this)
    assert set(named.choose(rank_columns(this), "x")) == {"born", "colour"}
    assert everything is ALL_COLUMNS
    assert outsiders(this) == {"few-columns": named.choose(rank_columns(this), "")}
    found = {finding.name: finding for finding in run_measure(ATTRIBUTE_INFERENCE, this)}
    assert "attribute-inference-half-columns" not in found
    assert "that the owner named" in found["attribute-inference-few-columns"].meaning


def test_the_sentence_names_the_columns_that_are_known() -> None:
    found = findings(draw_table(1), draw_table(2), target="colour")
    for column in FEW_COLUMNS.choose(rank_columns(study(draw_table(1), draw_table(2), target="colour")), ""):
        assert column in found["attribute-inference-few-columns"].meaning
    assert "no records were held out" in found["attribute-inference-few-columns"].meaning


def test_no_cell_stands_in_a_finding() -> None:
    said = str([finding.to_json() for finding in case("copy").values()])
    assert not any(cell in said for cell in ("amber", "crimson", "square", "flat"))


def test_missing_secrets_are_not_attacked_and_rows_that_do_not_tell_are_passed_over() -> None:
    original = pa.table({"a": [1.0, 2.0, 3.0, 4.0], "b": ["s", None, "t", "s"]})
    released = pa.table({"a": [1.0, 1.1, 3.0, 3.1], "b": [None, "s", None, "t"]})
    this = study(original, released)
    trial = attack_column(this, Reader(this), "b", ("a",), 10, np.random.default_rng(1))
    assert trial is not None
    assert (trial.inside.hits, trial.inside.of) == (2, 3)


def test_a_column_that_the_release_never_tells_is_never_found() -> None:
    original = draw_table(1)
    empty = original.set_column(0, "x", pa.nulls(original.num_rows, pa.float64()))
    found = findings(original, empty, holdout=draw_table(3))
    assert found["attribute-inference-all-columns/x"].value == 0.0
    assert found["attribute-inference-all-columns/x"].baseline == 0.0


@pytest.mark.parametrize(
    ("original", "released", "holdout"),
    [
        (constant_table(40), constant_table(40), constant_table(3)),
        (constant_table(1), constant_table(1), None),
        (draw_table(1, 30), draw_table(2, 1), draw_table(3, 2)),
        (draw_table(1, 2), draw_table(2, 90), draw_table(3, 2)),
    ],
)
def test_tables_with_hardly_anything_in_them_are_attacked_without_a_crash(
    original: pa.Table, released: pa.Table, holdout: pa.Table | None
) -> None:
    found = findings(original, released, holdout=holdout)
    assert all(found[name].status == "measured" for name in NAMES)


def test_an_original_without_any_value_is_not_attacked() -> None:
    this = study(draw_table(1), draw_table(2))
    nobody = Column(np.zeros(ROWS), np.ones(ROWS, dtype=np.bool_))
    pairs = tuple(dataclasses.replace(pair, original=nobody) for pair in this.pairs)
    for finding in run_measure(ATTRIBUTE_INFERENCE, dataclasses.replace(this, pairs=pairs)):
        assert finding.status == "not-run"
        assert "no cell of the original" in (finding.reason or "")


def test_a_single_column_is_not_attacked() -> None:
    found = findings(draw_table(1).select(["x"]), draw_table(2).select(["x"]))
    assert {finding.reason for finding in found.values()} == {"the table has a single column"}


def test_pooling_adds_hits_and_weighs_guesses() -> None:
    this = study(draw_table(1), draw_table(1), holdout=draw_table(3))
    rng, reader = np.random.default_rng(1), Reader(this)
    trials = [attack_column(this, reader, name, ("count",), size, rng) for name, size in (("x", 100), ("shape", 300))]
    known = [trial for trial in trials if trial is not None]
    whole = pool(known)
    assert whole.inside.hits == sum(trial.inside.hits for trial in known)
    assert whole.inside.of == 400
    assert whole.guess == pytest.approx((known[0].guess + 3 * known[1].guess) / 4)


def test_a_register_holds_half_of_the_columns_and_three_at_least() -> None:
    order = [f"c{place}" for place in range(10)]
    assert HALF_COLUMNS.choose(order, "c2") == ("c0", "c1", "c3", "c4", "c5")
    assert HALF_COLUMNS.choose(order[:4], "c3") == ("c0", "c1", "c2")
    assert FEW_COLUMNS.choose(order, "c0") == ("c1", "c2", "c3")


def test_columns_that_tell_nothing_are_known_last() -> None:
    rng = np.random.default_rng(1)
    table = pa.table(
        {
            "target": rng.choice(["u", "v"], 90),
            "constant": ["same"] * 90,
            "wide": rng.normal(size=90),
            "few": rng.choice(list("abc"), 90),
            "two": rng.choice(["f", "m"], 90),
        }
    )
    assert rank_columns(study(table, table, target="target")) == ("two", "few", "wide", "constant", "target")


FLAT = np.random.default_rng(1).uniform(0.0, 99.0, 99)


@pytest.mark.parametrize(
    ("values", "by_whole"),
    [
        (FLAT, True),  # the middle half is wider than the deviation
        (np.append(FLAT, 1e6), False),  # an outlier does not make every guess right
        (np.append(np.zeros(90), FLAT[:10]), True),  # the middle half is a single value
    ],
)
def test_a_guess_is_near_within_a_tenth_of_a_deviation(values: np.ndarray, by_whole: bool) -> None:
    both = study(*[pa.table({"a": values, "b": np.resize(["u", "v"], len(values))})] * 2)
    low, high = np.quantile(values, [0.25, 0.75])
    assert tolerance_of(both.pair("a")) == pytest.approx(0.1 * (values.std() if by_whole else (high - low) / 1.349))
    assert tolerance_of(both.pair("b")) == 0.0


@pytest.mark.parametrize("judged", [False, True])
def test_where_a_policy_is_judged_the_insider_attacks_more_people(judged: bool) -> None:
    """Of six columns: twice 50 attempts over all, and 50 for each if a policy limits the insider."""
    of = dataclasses.replace(study(draw_table(1), draw_table(2)), sizes=Sizes(attempts=50, judged=judged))
    found = {finding.name: finding for finding in run_measure(ATTRIBUTE_INFERENCE, of)}
    assert found["attribute-inference-half-columns"].attempts == 6 * 16
    assert found["attribute-inference-all-columns"].attempts == (6 * 50 if judged else 6 * 16)
