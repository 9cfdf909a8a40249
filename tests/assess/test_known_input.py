"""Known rows undo what was done to all; two public figures undo a shift or a change of scale."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ortho_group

from sfumato.assess.algebra import Measure, run_measure
from sfumato.assess.attacks.known_input import (
    KNOWN_INPUT,
    PUBLIC_MOMENTS,
    mean_as_tries,
    moved_columns,
    undo,
    undo_lines,
    undo_turn,
)
from sfumato.assess.findings import wilson
from sfumato.assess.glossary import show
from sfumato.assess.plain import risk_sentence
from sfumato.assess.report import Report, Ruling
from sfumato.assess.utility.clustering import OWN_CLUSTERS
from sfumato.assess.utility.distortion import SECURITY
from sfumato.core.facts import draw_claims
from sfumato.methods.geometry import Hybrid, Rotation, Scaling, Translation
from sfumato.methods.geometry.facts import Transformed
from sfumato.methods.geometry.key import Key
from sfumato.methods.geometry.transformations import KINDS, PAIRS, Ranges, hybrid
from sfumato.methods.protocol import OwnerDetails
from sfumato.publish.judge import judge_report
from sfumato.publish.policy import Policy
from tests.assess.made_up import attack
from tests.assess.moved import claimed, clustered, draw, moved, wine
from tests.assess.privacy_studies import case, check_sound, found, value
from tests.examples import at_length

BOTH = [KNOWN_INPUT, PUBLIC_MOMENTS]
SEEDS = [1, *at_length(2, 3)]
KEYED_METHODS = ["translate", "scale", "rotate", "hybrid"]
OPERATIONS = [("add",), ("mult",), ("rotate",), ("add", "mult", "rotate")]


def test_two_known_values_undo_a_shift_and_a_change_of_scale_of_a_whole_column_to_the_last_digits() -> None:
    rng = np.random.default_rng(3)
    ages = rng.normal(40, 12, size=(1000, 1))
    for after in (ages + 77.7, 0.93 * ages, -2.5 * ages + 8):
        np.testing.assert_allclose(undo_lines(ages[:2], after[:2], after), ages, rtol=0, atol=1e-10)


@pytest.mark.parametrize("d", [2, 3, 6])
@pytest.mark.parametrize("seed", SEEDS)
def test_one_known_row_fewer_than_columns_fixes_a_rotation(d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    turn = ortho_group.rvs(d, random_state=rng)
    turn[0] *= np.sign(np.linalg.det(turn))
    rows = rng.normal(size=(50, d))
    np.testing.assert_allclose(undo_turn(rows[: d - 1], (rows @ turn.T)[: d - 1], rows @ turn.T), rows, atol=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_with_few_known_rows_the_known_ones_are_still_met(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, turn = rng.normal(size=(3, 8)), ortho_group.rvs(8, random_state=rng)
    for operations in (("rotate",), ("add", "rotate")):
        np.testing.assert_allclose(undo(rows, rows @ turn, rows @ turn, operations), rows, atol=1e-8)


@given(seed=st.integers(0, 10**6), d=st.integers(2, 7), kind=st.sampled_from(KINDS), pairs=st.sampled_from(PAIRS))
def test_as_many_known_rows_as_a_key_names_undo_it(seed: int, d: int, kind: str, pairs: str) -> None:
    rng = np.random.default_rng(seed)
    names = tuple("abcdefg"[:d])
    ranges = Ranges(dict.fromkeys(names, (-3.0, 3.0)), dict.fromkeys(names, (0.5, 2.0)))
    key = Key.generate(names, ranges, rng, kind=kind, pairs=pairs)
    rows = rng.normal(size=(30, d))
    after, known = hybrid(rows, key, names), key.known_rows
    np.testing.assert_allclose(undo(rows[:known], after[:known], after, key.operations), rows, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_wine_turned_in_a_chain_of_13_columns_is_recovered_whole_with_two_known_rows(seed: int) -> None:
    """One row gives about 7 %, as guessing the mean does (6 %); a turn that is no chain of pairs would take 12."""
    findings = found(KNOWN_INPUT, moved(wine(), Rotation(), seed))
    shares = {number: findings[f"known-input-recovery/{number} rows"].value for number in (1, 2, 3, 4, 5, 12, 13, 14)}
    assert all(share == 1.0 for number, share in shares.items() if number > 1)
    assert shares[1] == pytest.approx(0.07, abs=0.02)
    assert findings["known-input-rows"].value == 3
    assert findings["known-input-recovery"].value == 1.0
    assert findings["known-input-recovery"].baseline == pytest.approx(0.06, abs=0.01)


@pytest.mark.parametrize(
    ("mechanism", "known"),
    [(Translation(), 1), (Scaling(), 1), (Rotation(), 3), (Rotation(pairs="disjoint"), 3), (Hybrid(), None)],
    ids=["translate", "scale", "chain", "disjoint", "hybrid"],
)
@pytest.mark.parametrize("seed", SEEDS)
def test_certificate_and_report_name_one_number_of_known_rows_and_it_opens_everything(
    mechanism: Any, known: int | None, seed: int
) -> None:
    study = moved(draw(seed), mechanism, seed)
    fact = study.fact(Transformed)
    assert fact is not None
    findings = found(KNOWN_INPUT, study)
    assert findings["known-input-recovery"].value == 1.0
    assert findings["known-input-rows"].value == fact.known_rows
    assert known is None or fact.known_rows == known
    refused = " ".join(each.reason for each in draw_claims(study.facts)[1])
    assert f"by anyone who knows {fact.known_rows} independent row{'s' if fact.known_rows > 1 else ''} and" in refused
    if known is not None and known > 1:
        assert (findings["known-input-recovery/1 rows"].value or 1.0) < 0.95


@pytest.mark.parametrize(
    "mechanism",
    [Translation(), Scaling(), Rotation(), Rotation(pairs="disjoint"), Hybrid()],
    ids=["translate", "scale", "chain", "disjoint", "hybrid"],
)
@pytest.mark.parametrize("seed", SEEDS)
def test_rounding_whole_numbers_hardly_hinders_who_knows_as_many_rows_as_the_certificate_says(
    mechanism: Any, seed: int
) -> None:
    table = draw(seed)
    whole = {name: np.rint(20 * np.asarray(table[name]) / np.std(np.asarray(table[name]))) for name in "abcd"}
    study = moved(
        pa.table({name: cells.astype(np.int64) for name, cells in whole.items()}), mechanism, seed, rounded=True
    )
    assert all(pair.released.values.tolist() == np.rint(pair.released.values).tolist() for pair in study.pairs)
    assert value(KNOWN_INPUT, study, "known-input-recovery") > 0.85


@pytest.mark.parametrize(
    "mechanism", [Translation(), Scaling(), Scaling(factor=(-2, -1))], ids=["add", "mult", "minus"]
)
def test_public_mean_and_deviation_undo_a_shift_and_a_change_of_scale(mechanism: Any) -> None:
    assert value(PUBLIC_MOMENTS, moved(draw(2), mechanism, 7), "public-moments-recovery") == 1.0


@pytest.mark.parametrize("measure", BOTH, ids=lambda measure: measure.name)
@pytest.mark.parametrize("operations", OPERATIONS, ids=lambda operations: "-".join(operations))
def test_a_copy_is_recovered_whole(measure: Measure, operations: tuple[str, ...]) -> None:
    study = claimed(draw(1), draw(1), operations)
    check_sound(measure, study)
    assert value(measure, study, measure.names[0]) == 1.0
    if measure is KNOWN_INPUT:
        assert value(measure, study, "known-input-rows") == 0


@pytest.mark.parametrize("measure", BOTH, ids=lambda measure: measure.name)
@pytest.mark.parametrize("operations", OPERATIONS, ids=lambda operations: "-".join(operations))
@pytest.mark.parametrize("seed", SEEDS)
def test_an_independent_redraw_gives_no_more_than_guessing(
    measure: Measure, operations: tuple[str, ...], seed: int
) -> None:
    study = claimed(draw(10 * seed), draw(10 * seed + 1), operations, seed)
    check_sound(measure, study)
    finding = found(measure, study)[measure.names[0]]
    assert finding.value is not None
    assert finding.baseline is not None
    assert finding.value < finding.baseline + 0.05


@pytest.mark.parametrize("measure", BOTH, ids=lambda measure: measure.name)
@pytest.mark.parametrize("operations", OPERATIONS, ids=lambda operations: "-".join(operations))
@pytest.mark.parametrize(
    "name", ["constant release", "constant original", "one row", "two rows", "missing", "one column"]
)
def test_awkward_tables_are_got_through(measure: Measure, operations: tuple[str, ...], name: str) -> None:
    table = draw(1, 40)
    same = table.take(pa.array(np.zeros(40, dtype=np.int64)))
    gone = table.set_column(1, "b", pa.nulls(40, pa.float64()))
    before, after = {
        "constant release": (table, same),
        "constant original": (table.set_column(2, "c", same.column("c")), table),
        "one row": (table.slice(0, 1), table.slice(0, 1)),
        "two rows": (table.slice(0, 2), table.slice(1, 2)),
        "missing": (table, gone),
        "one column": (table.select(["a"]), table.select(["b"]).rename_columns(["a"])),
    }[name]
    check_sound(measure, claimed(before, after, operations))


def test_a_column_that_is_constant_is_turned_with_the_others_and_does_not_hinder() -> None:
    table = draw(3).append_column("e", pa.array(np.full(400, 17.0)))
    assert value(KNOWN_INPUT, moved(table, Rotation(), 3), "known-input-recovery") == 1.0


@pytest.mark.parametrize("mechanism", [Rotation(), Hybrid()], ids=["rotate", "hybrid"])
@pytest.mark.parametrize("seed", SEEDS)
def test_columns_that_are_nearly_always_0_are_not_taken_for_explained(mechanism: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rare = pa.array(np.where(rng.random(400) < 0.05, rng.exponential(1000, 400), 0.0))
    table = draw(seed).append_column("e", rare).append_column("f", rare.take(pa.array(rng.permutation(400))))
    assert value(KNOWN_INPUT, moved(table, mechanism, seed), "known-input-recovery/5 rows") > 0.85


KEYED = pytest.mark.parametrize("mechanism", [Translation(), Scaling(), Rotation(), Hybrid()], ids=KEYED_METHODS)


@KEYED
def test_the_headline_of_a_keyed_method_is_what_few_known_rows_recover(mechanism: Any) -> None:
    """It leads on the terminal, on the first page and in the verdict, whatever the other attacks get."""
    study = moved(draw(4), mechanism, 4)
    findings = (*found(KNOWN_INPUT, study).values(), attack("linkage-rank", 100, 100, 0.001))
    headline = findings[0]
    assert headline.name == "known-input-recovery"
    assert headline.value == findings[[each.name for each in findings].index("known-input-recovery/5 rows")].value
    assert headline.value is not None
    assert headline.value > 0.9
    said = f"An attacker who knows 5 rows recovers {show(headline.value, 'share')} of the cells (95\u00a0% CI "
    assert risk_sentence(findings).startswith(said)
    assert f"; baseline {show(headline.baseline, 'share')}." in risk_sentence(findings)
    assert "significantly" not in risk_sentence(findings)
    report = judge_report(Report(findings, (), 400, 400), study.facts, Policy("ours", {"attribute-excess": 0.05}))
    assert f"Risk: {said}" in report.summary()
    assert said in re.sub("<[^>]*>", "", report.to_html(edition="owner", certificate={}))
    assert report.verdict is not None
    assert report.verdict.outcome is Ruling.DOES_NOT_MEET
    assert report.verdict.reasons[0].startswith("Excess recovery of cells by a known-input attack 9")


def test_known_rows_that_recover_nothing_do_not_hide_another_attack() -> None:
    study = claimed(draw(10), draw(11), ("rotate",))
    findings = tuple(found(KNOWN_INPUT, study).values())
    for hits, words in ((1000, "50\u00a0% on members, 5\u00a0% on the control"), (100, "No attack (of ")):
        said = risk_sentence((*findings, attack("linkage-rank", hits, 100, 0.001)))
        assert said.startswith("An attacker who knows 5 rows recovers ")
        assert words in said


def test_the_interval_over_sets_of_known_rows_is_no_narrower_than_sets_that_recover_all_or_nothing() -> None:
    """Ten sets of ten tell no more than ten tosses of a coin; sets that agree tell as much as the cells, at most."""
    whole = mean_as_tries(np.ones(10), 2000)
    assert whole.interval == pytest.approx(wilson(10, 10))
    assert mean_as_tries(np.array([0.0, 1.0] * 5), 2000).interval == pytest.approx(wilson(5, 10))
    assert mean_as_tries(np.full(10, 0.5) + 1e-9 * np.arange(10), 2000).of == 2000


def test_tables_that_were_not_moved_are_not_attacked() -> None:
    for measure in BOTH:
        for finding in run_measure(measure, case("copy")):
            assert finding.value is None
            assert "by a key" in str(finding.reason)


def test_rows_whose_origin_is_not_known_are_not_attacked() -> None:
    study = dataclasses.replace(moved(draw(1), Rotation(), 1), workings=OwnerDetails())
    assert all("descends" in str(finding.reason) for finding in run_measure(KNOWN_INPUT, study))


def test_sec_and_misclassification_are_measured_on_a_table_that_was_turned() -> None:
    study = moved(clustered(4), Rotation(), 4)
    assert value(SECURITY, study, "security") > 0
    assert value(OWN_CLUSTERS, study, "misclassification-error") < 0.2


def test_sec_of_a_shift_is_0_while_one_known_row_undoes_it() -> None:
    study = moved(draw(4), Translation(), 4)
    assert value(SECURITY, study, "security") == pytest.approx(0, abs=1e-20)
    assert value(KNOWN_INPUT, study, "known-input-rows") == 1


def test_one_known_row_gives_the_factor_of_each_column_in_which_it_is_not_0() -> None:
    before, after = np.array([[2.0, 0.0, 3.0]]), np.array([[1.0, 0.0, 6.0]])
    released = np.array([[5.0, 7.0, 8.0], [1.0, 1.0, 1.0]])
    np.testing.assert_array_equal(undo(before, after, released, ("mult",)), [[10.0, 7.0, 4.0], [2.0, 1.0, 0.5]])


@pytest.mark.parametrize("mechanism", [Rotation(units={"a": 0.01, "c": 3000.0}), Hybrid(units={"b": 700.0})])
def test_units_in_which_columns_were_turned_are_known_like_the_method(mechanism: Any) -> None:
    study = moved(draw(5), mechanism, 5)
    assert value(KNOWN_INPUT, study, "known-input-recovery") == 1.0


def test_rows_in_which_either_side_lacks_a_cell_are_neither_known_nor_undone() -> None:
    study = moved(draw(6, 60), Translation(), 6)
    pair = study.pairs[1]
    gone = np.arange(60) < 5
    original = dataclasses.replace(pair.original, absent=gone, values=np.where(gone, 1e6, pair.original.values))
    released = dataclasses.replace(
        pair.released, absent=gone[::-1], values=np.where(gone[::-1], -1e6, pair.released.values)
    )
    pairs = (study.pairs[0], dataclasses.replace(pair, original=original, released=released), *study.pairs[2:])
    whole = moved_columns(dataclasses.replace(study, pairs=pairs), 1000, np.random.default_rng(1))
    assert len(whole.before) == 50
    assert np.abs(whole.before).max() < 1e3
    assert value(KNOWN_INPUT, dataclasses.replace(study, pairs=pairs), "known-input-recovery") == 1.0


def test_only_columns_that_were_moved_are_undone() -> None:
    study = moved(draw(7), Translation(), 7)
    facts = tuple(
        dataclasses.replace(fact, columns=("a", "c")) if isinstance(fact, Transformed) else fact for fact in study.facts
    )
    assert moved_columns(dataclasses.replace(study, facts=facts), 100, np.random.default_rng(1)).names == ("a", "c")


def test_numbers_may_have_been_rounded_by_half_of_their_step() -> None:
    table = pa.table({"a": np.arange(50) / 4, "b": np.arange(50) * 3.0, "c": np.random.default_rng(1).random(50)})
    found = moved_columns(claimed(table, table, ("add",)), 50, np.random.default_rng(1))
    spread = [float(np.std(np.asarray(table[name]))) for name in "abc"]
    assert found.rounding[:2] == pytest.approx([0.125 / spread[0], 1.5 / spread[1]])
    assert found.rounding[2] < 1e-9


def test_three_rows_are_enough_and_rows_that_are_all_alike_are_not() -> None:
    three = claimed(draw(1, 3), draw(1, 3), ("add",))
    assert value(KNOWN_INPUT, three, "known-input-recovery") == 1.0
    assert [each.name.split("/")[-1] for each in found(KNOWN_INPUT, three).values()][2:] == ["1 rows", "2 rows"]
    table = draw(1, 40)
    same = pa.table({name: np.full(40, 0.1 + place) for place, name in enumerate("abcd")})  # 0.1 differs from its mean
    for measure in BOTH:
        for finding in found(measure, claimed(same, table, ("add",))).values():
            assert "nothing differs" in str(finding.reason)


def test_a_column_that_is_constant_does_not_count_though_its_mean_is_rounded() -> None:
    table = draw(3, 100)
    study = claimed(
        table.append_column("e", pa.array(np.full(100, 0.1))),
        table.append_column("e", pa.array(np.full(100, 0.3))),
        ("add",),
    )
    assert moved_columns(study, 100, np.random.default_rng(1)).recovered(np.zeros((100, 5)), np.arange(100)) < 0.1
    assert value(PUBLIC_MOMENTS, study, "public-moments-recovery") == 1.0
    assert value(KNOWN_INPUT, study, "known-input-recovery") == 1.0


def test_the_curve_covers_as_many_rows_as_few_columns_and_the_certificate_take() -> None:
    rng = np.random.default_rng(2)
    table = pa.table({f"c{place}": rng.normal(5.0 * place, 1.0, 300) for place in range(9)})
    findings = found(KNOWN_INPUT, moved(table, Rotation(), 2))
    numbers = [int(name.split("/")[1].split()[0]) for name in findings if "/" in name]
    assert numbers == [1, 2, 3, 4, 5, 8, 9, 10]
    first = findings["known-input-recovery"]
    assert first.attempts == 300
    assert "who knows 5 original rows and the released rows made from them" in first.meaning
    assert "who knows 9 original rows" in findings["known-input-recovery/9 rows"].meaning
    assert first.baseline == pytest.approx(0.08, abs=0.02)  # within a tenth of a deviation of each column's own mean
    assert findings["known-input-rows"].baseline == 0.0
    assert findings["known-input-rows"].attempts == 300


def test_numbers_of_known_rows_are_doubled_up_to_half_of_all_or_64_a_column_while_they_recover_little() -> None:
    for columns, last in (("abcd", [10, 20, 40, 80, 160]), ("a", [10, 20, 40])):
        original, released = (draw(seed, 320).select(list(columns)) for seed in (10, 11))
        findings = found(KNOWN_INPUT, claimed(original, released, ("rotate",)))
        numbers = [int(name.split("/")[1].split()[0]) for name in findings if "/" in name]
        assert numbers == [1, 2, 3, 4, 5, *last]


def test_how_many_rows_were_attacked_is_said_where_not_all_were() -> None:
    study = moved(draw(8), Translation(), 8)
    study = dataclasses.replace(study, sizes=dataclasses.replace(study.sizes, attempts=100, training=150))
    for name in ("known-input-recovery", "known-input-rows"):
        assert found(KNOWN_INPUT, study)[name].attempts == 100
        assert "counted on 100 rows drawn at random" in found(KNOWN_INPUT, study)[name].meaning
    finding = found(PUBLIC_MOMENTS, study)["public-moments-recovery"]
    assert finding.attempts == 150
    assert finding.interval == pytest.approx(wilson(150, 150))
    assert "counted on 150 rows drawn at random" in finding.meaning


def test_columns_that_lean_either_way_are_turned_over_each_by_its_own_skewness() -> None:
    """Whether their means are above or below 0."""
    rng = np.random.default_rng(9)
    right, left = rng.exponential(5.0, 400), -rng.exponential(1.0, 400)
    table = pa.table({"a": right - 100, "b": left + 50, "c": right[::-1] + 100, "d": left[::-1] - 50})
    factors = {"a": -2.0, "b": -0.5, "c": 3.0, "d": 0.7}
    after = pa.table({name: factor * np.asarray(table[name]) for name, factor in factors.items()})
    assert value(PUBLIC_MOMENTS, claimed(table, after, ("mult",)), "public-moments-recovery") == 1.0
