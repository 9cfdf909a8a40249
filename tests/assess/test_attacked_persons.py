"""Attacks count persons: one row of each is attacked, and rows of a person are never on both sides."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.assess.algebra import Measure, run_measure, split_in_tenths, split_in_two
from sfumato.assess.attacks.labels import LABEL_INFERENCE
from sfumato.assess.attacks.linkage import LINKAGE, LINKED_PERSONS, mutual_links
from sfumato.assess.attacks.rare_combinations import RARE_COMBINATIONS
from sfumato.assess.attacks.singling import AT_LEAST, EQUAL, SINGLING_OUT, Predicates, SortedRows, find_fits
from sfumato.assess.findings import gains
from sfumato.assess.plain import risk_sentence
from sfumato.assess.risk.closest import CLOSEST, NEIGHBOUR_RATIO
from sfumato.assess.risk.uniqueness import RAREST_CATEGORY, UNIQUENESS, class_findings
from sfumato.assess.study import Study, StudyDetails, study_of
from sfumato.core.neighbours import nearest, nearest_persons
from sfumato.tables.codec import Codec
from sfumato.tables.schema import Role, Schema
from tests.examples import examples

PERSONS, VISITS = 60, 4


def visits(seed: int = 1, first: int = 0) -> pa.Table:
    """Four visits a person; what a person has hardly changes from one to the next."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(PERSONS), VISITS)
    own = rng.normal(0, 5, (PERSONS, 3))[who] + rng.normal(0, 0.1, (len(who), 3))
    return pa.table({"who": [f"p{first + each}" for each in who], **dict(zip("abc", own.T.round(3), strict=True))})


def study() -> Study:
    table, outside = visits(), visits(2, 1_000)
    schema = Schema.infer(table).without_rules().with_role(Role.PERSON, "who")
    codec = Codec.fit(table, schema)
    persons = np.repeat(np.arange(PERSONS), VISITS)
    original = table.select(["a", "b", "c"])
    return study_of(
        original, original, codec, holdout=outside, details=StudyDetails(persons=persons), rng=np.random.default_rng(3)
    )


def test_one_row_of_each_person_is_attacked() -> None:
    looked, rng = study(), np.random.default_rng(1)
    assert looked.persons is not None
    assert (looked.people, looked.people_outside) == (PERSONS, PERSONS)
    rows = looked.attacked(1_000, rng)
    assert sorted(looked.persons[rows].tolist()) == list(range(PERSONS))
    assert len(looked.attacked(10, rng)) == 10
    assert set(looked.attacked(10, rng, np.arange(8)).tolist()) <= set(range(8))
    assert len(looked.attacked_outside(1_000, rng)) == PERSONS
    places = np.bincount(np.concatenate([looked.attacked(1_000, rng) for _ in range(200)]), minlength=PERSONS * VISITS)
    assert places.min() > 10  # any of a person's rows may be the one: 50 times of 200 on average


def test_stand_ins_keep_the_rows_of_a_person_together() -> None:
    looked = study()
    assert looked.persons is not None
    (halves,) = split_in_two(looked)
    assert halves.persons is not None
    assert len(halves.original) == VISITS * halves.people
    assert len(halves.original) + len(halves.released) == len(looked.original)
    for part in split_in_tenths(looked):
        assert part.persons is not None
        assert part.held_persons is not None
        assert not set(part.persons.tolist()) & set(part.held_persons.tolist())


def test_a_link_to_another_row_of_the_same_person_is_a_link() -> None:
    population, released = np.array([[0.0], [0.2], [5.0]]), np.array([[0.3], [5.1]])
    assert mutual_links(population, released, np.array([0])).tolist() == [0.0]
    assert mutual_links(population, released, np.array([0]), np.array([7, 7, 8])).tolist() == [1.0]


def test_of_people_equally_near_each_counts_once_however_many_rows_they_have() -> None:
    population, persons = np.array([[1.0], [1.0], [1.0], [1.0], [4.0]]), np.array([7, 7, 7, 8, 9])
    assert mutual_links(population, np.array([[1.1]]), np.arange(5), persons).tolist() == [0.5, 0.5, 0.5, 0.5, 0.0]


@pytest.mark.slow
def test_a_redraw_links_people_with_several_rows_no_more_than_people_held_out() -> None:
    """Who is held out brings all of their rows: with one each they would be linked less than people inside."""
    gained = []
    for seed in range(10, 18):
        table, released, outside = visits(seed), visits(seed + 100).select(["a", "b", "c"]), visits(seed + 200, 1_000)
        codec = Codec.fit(table, Schema.infer(table).without_rules().with_role(Role.PERSON, "who"))
        looked = study_of(
            table.select(["a", "b", "c"]),
            released,
            codec,
            holdout=outside,
            details=StudyDetails(persons=np.repeat(np.arange(PERSONS), VISITS)),
            rng=np.random.default_rng(seed),
        )
        found = {finding.name: finding for finding in run_measure(LINKAGE, looked)}["linkage-euclid"]
        gained.append((found.value or 0.0) - (found.control or 0.0))
    assert abs(np.mean(gained)) < 3 * np.std(gained, ddof=1) / np.sqrt(len(gained))
    assert abs(np.mean(gained)) < 0.05


def test_attempts_of_a_report_are_persons() -> None:
    table = visits()
    made = sf.Condensation(k=5)
    report = sf.sanitize(table, made, person="who", seed=1, holdout=0.4, time_limit=2.0, no_rules=True).report
    assert report is not None
    kept = round(0.6 * PERSONS)
    found = {finding.name: finding for finding in report.findings if finding.value is not None}
    for name in ("linkage-euclid", "linkability", "membership-distance-auc", "attribute-inference"):
        near = [finding for each, finding in found.items() if each.startswith(name) and finding.attempts]
        assert all(int(finding.attempts or 0) <= 4 * kept for finding in near)
    assert found["linkage-euclid"].attempts == kept
    assert "people, one row of each" in found["linkage-euclid"].meaning


@pytest.mark.slow
def test_an_evaluation_takes_the_person_column() -> None:
    table, outside = visits(), visits(2, 1_000)
    released = visits(3).drop_columns(["who"])
    report = sf.evaluate(table, released, person="who", holdout=outside, no_rules=True, seed=1, time_limit=2.0)
    found = {finding.name: finding for finding in report.findings}
    assert found["linkage-euclid"].attempts == PERSONS


def test_linked_rows_link_copied_persons_and_not_those_of_a_redraw() -> None:
    looked = study()
    whose = np.repeat(np.arange(PERSONS), VISITS)
    copied = {each.name: each for each in run_measure(LINKED_PERSONS, dataclasses.replace(looked, linked=whose))}
    found = copied["linkage-persons"]
    assert found.value == 1.0
    assert found.control is not None
    assert found.control < 0.75
    other = Codec.fit(visits(), Schema.infer(visits()).without_rules().with_role(Role.PERSON, "who"))
    redrawn = other.encode(visits(9).select(["a", "b", "c"]), unseen="mean").values
    strange = dataclasses.replace(looked, linked=whose, released=redrawn)
    found = {each.name: each for each in run_measure(LINKED_PERSONS, strange)}["linkage-persons"]
    assert found.value is not None
    assert found.control is not None
    assert abs(found.value - found.control) < 0.3
    alone = dataclasses.replace(strange, holdout=None, held=None, held_persons=None)
    (found,) = run_measure(LINKED_PERSONS, alone)
    assert found.baseline_interval is not None
    assert [gain.certain for gain in gains([found])] == [False]
    assert "on unrelated data" in risk_sentence([found])
    assert {each.name: each for each in run_measure(LINKED_PERSONS, looked)}["linkage-persons"].value is None


def mixed(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    town, job = rng.choice([f"t{each}" for each in range(9)], n), rng.choice([f"j{each}" for each in range(6)], n)
    age = rng.normal(40, 12, n).round()
    sick = np.where(age + rng.normal(0, 9, n) > 45, "yes", "no")
    return pa.table({"town": town, "job": job, "age": age, "pay": rng.normal(30, 8, n).round(1), "sick": sick})


@pytest.mark.parametrize(
    "measure",
    [SINGLING_OUT, RARE_COMBINATIONS, LABEL_INFERENCE, CLOSEST, NEIGHBOUR_RATIO, UNIQUENESS, RAREST_CATEGORY],
    ids=lambda measure: measure.name,
)
def test_people_who_stand_three_times_in_the_table_are_found_as_often_as_once(measure: Measure) -> None:
    """All rows thrice, of the same persons: what is found of people, by how many tries, and by chance, stays."""
    table, released, held = mixed(150, 1), mixed(200, 2), mixed(90, 3)
    released = pa.concat_tables([released, table.slice(0, 30)])
    codec = Codec.fit(table, Schema.infer(table).without_rules().with_role(Role.TARGET, "sick"))

    def found(times: int) -> dict[str, tuple[object, ...]]:
        original, outside = (pa.concat_tables([each] * times) for each in (table, held))
        who, others = (np.tile(np.arange(len(each)), times) for each in (table, held))
        rng = np.random.default_rng(5)
        looked = study_of(
            original, released, codec, holdout=outside, details=StudyDetails(persons=who, held_persons=others), rng=rng
        )
        return {
            each.name: (each.value, each.baseline, each.control, each.attempts) for each in run_measure(measure, looked)
        }

    once, thrice = found(1), found(3)
    assert any(values[0] is not None for values in once.values())
    for name, values in once.items():
        alike = ("closer-to", "closest-record") if measure is CLOSEST else ()  # as many rows as are held out are drawn
        if not name.startswith(alike or ("-",)):
            assert thrice[name] == pytest.approx(values, nan_ok=True), name


def test_a_description_that_fits_several_rows_of_one_person_fits_one_person() -> None:
    cells, whose = np.array([[1.0, 1.0, 4.0, 5.0]]), np.array([3, 3, 5, 6])
    columns = np.zeros((2, 1), dtype=np.int64)
    asked = Predicates(columns, np.array([[EQUAL], [AT_LEAST]]), np.array([[1.0], [4.0]]))
    assert find_fits(asked, SortedRows.of_matrix(cells, whose))[0].tolist() == [1, 2]
    assert find_fits(asked, SortedRows.of_matrix(cells))[0].tolist() == [2, 2]


@examples(40)
@given(st.integers(0, 2**32 - 1), st.integers(1, 2), st.booleans())
def test_nearest_persons_are_those_of_a_slow_search(seed: int, count: int, own: bool) -> None:
    rng = np.random.default_rng(seed)
    people = int(rng.integers(count + 1, 12))
    persons = np.concatenate([np.arange(people), rng.integers(0, people, 30) // int(rng.integers(1, 4))])
    rows = rng.integers(0, 6, (len(persons), 2)).astype(float)
    asked = np.arange(len(rows)) if own else None
    queries = rows if own else rng.normal(3, 2, (20, 2))
    places, distances = nearest_persons(rows, queries, persons, count, own=asked)
    for place, query in enumerate(queries):
        apart = np.sqrt(((rows - query) ** 2).sum(axis=1))
        others = np.unique(persons[persons != persons[place]] if own else persons)
        least = np.sort([apart[persons == other].min() for other in others])[:count]
        np.testing.assert_allclose(distances[place], least, rtol=1e-12)
        assert len(set(persons[places[place]].tolist())) == count
    assert nearest(rows, queries)[0].shape == nearest_persons(rows, queries, None)[0].shape


def test_people_alike_in_known_columns_are_counted_once() -> None:
    table = pa.table({"town": ["a"] * 6 + ["b"] * 3, "pay": np.arange(9.0)})
    codec = Codec.fit(table, Schema.infer(table).without_rules())
    told, rng = StudyDetails(quasi_identifiers=("town",)), np.random.default_rng(1)
    rows = {each.name: each for each in class_findings(study_of(table, table, codec, details=told, rng=rng))}
    whose = np.array([0, 1, 2, 3, 4, 5, 6, 6, 7])
    told = told._replace(persons=whose)
    people = {each.name: each for each in class_findings(study_of(table, table, codec, details=told, rng=rng))}
    assert rows["equivalence-class-smallest"].baseline == 3
    assert people["equivalence-class-smallest"].baseline == 2
