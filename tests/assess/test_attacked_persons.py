"""Attacks count persons: one row of each is attacked, and rows of a person are never on both sides."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.assess.algebra import run_measure
from sfumato.assess.attacks.linkage import LINKAGE, mutual_links
from sfumato.assess.attacks.linked_persons import LINKED_PERSONS
from sfumato.assess.stand_ins import split_in_tenths, split_in_two
from sfumato.assess.study import Study, study_of
from sfumato.tables.codec import Codec
from sfumato.tables.schema import Role, Schema

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
    return study_of(original, original, codec, holdout=outside, persons=persons, rng=np.random.default_rng(3))


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
            persons=np.repeat(np.arange(PERSONS), VISITS),
            rng=np.random.default_rng(seed),
        )
        found = {finding.name: finding for finding in run_measure(LINKAGE, looked)}["linkage-euclid"]
        gained.append((found.value or 0.0) - (found.control or 0.0))
    assert abs(np.mean(gained)) < 3 * np.std(gained, ddof=1) / np.sqrt(len(gained))
    assert abs(np.mean(gained)) < 0.05


def test_attempts_of_a_report_are_persons() -> None:
    table = visits()
    made = sf.Condensation(k=5)
    report = sf.sanitize(table, made, person="who", seed=1, holdout=0.4, budget=2.0, no_rules=True).report
    assert report is not None
    kept = round(0.6 * PERSONS)
    found = {finding.name: finding for finding in report.findings if finding.value is not None}
    for name in ("linkage-euclid", "linkability", "membership-distance-auc", "attribute-inference"):
        near = [finding for each, finding in found.items() if each.startswith(name) and finding.attempts]
        assert all(int(finding.attempts or 0) <= 4 * kept for finding in near)
    assert found["linkage-euclid"].attempts == kept
    assert "people, one row of each" in found["linkage-euclid"].meaning


def test_an_evaluation_takes_the_person_column() -> None:
    table, outside = visits(), visits(2, 1_000)
    released = visits(3).drop_columns(["who"])
    report = sf.evaluate(table, released, person="who", holdout=outside, no_rules=True, seed=1, budget=2.0)
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
    assert {each.name: each for each in run_measure(LINKED_PERSONS, looked)}["linkage-persons"].value is None
