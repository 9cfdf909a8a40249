"""The frame of measures and attacks: what lacks is said, what fails is unknown, chance is each measure's own."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.algebra import SHARE, Measure, Need, NotRun, Number, Stated, Values, run_measure, success
from sfumato.assess.findings import Direction, Family, Tries
from sfumato.assess.measure import EPOCHS, basic, catalogue
from sfumato.assess.study import Study, sample, study_of
from sfumato.core.facts import Fact
from sfumato.core.groups.facts import Grouped
from sfumato.core.neighbours import nearest
from sfumato.methods.protocol import OwnerDetails
from tests.assess.cases import draw_table, fit, released_of, workings

HALF = Number("a").means("Half")


def study(**more: object) -> Study:
    original = draw_table(1)
    made = study_of(original, released_of("redraw"), fit(original), rng=np.random.default_rng(1))
    return dataclasses.replace(made, **more)  # type: ignore[arg-type]


def measure(**more: object) -> Measure:
    def run(_: Study) -> Iterator[Stated]:
        yield "a", Values(0.5)

    return dataclasses.replace(Measure("m", Family.ATTACK, "Someone 2001", run).finds(HALF), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("need", [need for need in Need if need is not Need.COLUMNS])
def test_what_a_measure_lacks_is_the_reason_why_it_was_not_run(need: Need) -> None:
    (finding,) = run_measure(measure(needs=(need,)), study())
    assert finding.status == "not-run"
    assert finding.reason == need.value


def test_a_measure_runs_where_nothing_lacks() -> None:
    groups = dataclasses.replace(workings(), drawn_from=np.zeros(600, dtype=np.int64))
    (finding,) = run_measure(measure(needs=(Need.GROUPS, Need.COLUMNS)), study(workings=groups))
    assert finding.value == 0.5


@pytest.mark.parametrize(
    ("made", "lacking"),
    [
        ({"workings": workings()}, {Need.ROW_GROUPS}),
        ({"workings": OwnerDetails(sizes=np.array([300, 300]))}, {Need.GROUPS, Need.ROW_GROUPS}),
        ({"facts": (Grouped("MDAV", 600, 60, 10, 0, 0, 0, 0),)}, {Need.GROUPS, Need.ROW_GROUPS}),
    ],
)
def test_groups_may_be_known_by_their_sizes_alone_or_without_whose_rows_are_whose(
    made: dict[str, object], lacking: set[Need]
) -> None:
    needs = (Need.GROUP_SIZES, Need.GROUPS, Need.ROW_GROUPS)
    found = {need: run_measure(measure(needs=(need,)), study(**made))[0].reason for need in needs}
    assert {need for need, because in found.items() if because is not None} == lacking


def test_the_facts_choose_which_attack_applies() -> None:
    def grouped(facts: Sequence[Fact]) -> str | None:
        return None if any(isinstance(fact, Grouped) for fact in facts) else "the rows were not grouped"

    (finding,) = run_measure(measure(applies=grouped), study())
    assert finding.reason == "the rows were not grouped"
    fact = Grouped("MDAV", 600, 60, 10, 0, 0, 0, 0)
    (finding,) = run_measure(measure(applies=grouped), study(facts=(fact,)))
    assert finding.value == 0.5


@pytest.mark.parametrize("error", [ValueError, ZeroDivisionError, np.linalg.LinAlgError, MemoryError])
def test_an_attack_that_fails_is_unknown_and_never_safe(error: type[Exception]) -> None:
    def fail(_: Study) -> tuple[Stated, ...]:
        raise error("4711")

    (finding,) = run_measure(measure(run=fail), study())
    assert finding.value is None
    assert finding.reason is not None
    assert "failed" in finding.reason
    assert "4711" not in finding.reason


def test_an_empty_release_runs_no_measure() -> None:
    (finding,) = run_measure(measure(), study(released=np.empty((0, 3))))
    assert finding.reason == "the released table has no rows"


def test_chance_is_each_measures_own() -> None:
    one = study()
    first, again, other = (one.generator(name).random() for name in ("a", "a", "b"))
    assert first == again != other


def test_coordinates_of_columns_are_those_of_their_blocks() -> None:
    one = study()
    every = np.concatenate([one.coordinates([pair.name]) for pair in one.pairs])
    assert sorted(every) == list(range(one.original.shape[1]))
    assert len(one.coordinates(["colour"])) == 3


def test_a_sample_is_all_or_distinct_rows_in_rising_order() -> None:
    rng = np.random.default_rng(2)
    assert sample(5, 9, rng).tolist() == [0, 1, 2, 3, 4]
    drawn = sample(1000, 50, rng)
    assert len(drawn) == 50
    assert (np.diff(drawn) > 0).all()


def test_success_has_three_arms_with_intervals_and_the_number_of_attempts() -> None:
    number = Number("linkage").means("How often")
    finding = number.finding(Family.ATTACK, success(Tries(5, 50), guess=0.02, control=Tries(0, 20)))
    assert (finding.value, finding.baseline, finding.control, finding.attempts) == (0.1, 0.02, 0.0, 50)
    assert finding.interval is not None
    assert finding.interval[0] < 0.1 < finding.interval[1]
    assert finding.control_interval is not None
    assert finding.control_interval[1] == pytest.approx(0.161, abs=0.001)
    alone = number.finding(Family.ATTACK, success(Tries(5, 50), guess=0.02, control=None))
    assert alone.meaning == "How often. No control: no records were held out."


def test_every_measure_names_its_source_and_what_its_findings_mean() -> None:
    names: list[str] = []
    for each in (*basic(), *catalogue(), EPOCHS):
        assert each.source
        assert each.names
        assert not any(number.meaning.endswith(".") for number in each.numbers)
        assert all(("{column}" in number.meaning) == number.of_columns for number in each.numbers)
        names.extend(number.name for number in each.numbers)
    assert len(names) == len(set(names))


def test_what_a_run_yields_is_told_as_declared() -> None:
    def run(_: Study) -> Iterator[Stated]:
        yield "a", Values(0.5, note="; counted on 3 rows", aside=" So far.", range=(0.0, 0.7))
        yield "b/age", Values(1.0)

    numbers = (HALF, Number("b/", scale=SHARE.more.owners).means("How near {column} is"))
    first, second = run_measure(measure(run=run, numbers=numbers), study())
    assert (first.meaning, first.range) == ("Half; counted on 3 rows. So far.", (0.0, 0.7))
    assert (second.name, second.meaning, second.unit) == ("b/age", "How near age is.", "share")
    assert (second.direction, second.public, first.public) == (Direction.HIGHER, False, True)


def test_a_reason_speaks_for_all_numbers_that_were_not_found_before_it() -> None:
    def run(_: Study) -> Iterator[Stated]:
        yield "a", Values(0.5)
        raise NotRun("the table is too small", applies=False)

    numbers = (HALF, Number("b").means("More"), Number("b/").means("Of {column}"))
    first, second = run_measure(measure(run=run, numbers=numbers), study())
    assert (first.value, second.value, second.reason, second.applies) == (0.5, None, "the table is too small", False)
    assert second.range == (None, None)


def test_sources_and_needs_do_not_repeat_names() -> None:
    assert len({each.name for each in catalogue()}) == len(catalogue())


def test_cells_that_lie_absurdly_far_out_leave_distances_finite() -> None:
    original = draw_table(1)
    released = original.set_column(0, "x", pa.array(np.full(600, 1e300)))
    made = study_of(original, released, fit(original), rng=np.random.default_rng(1))
    assert np.isfinite(nearest(made.released, made.original)[1]).all()
