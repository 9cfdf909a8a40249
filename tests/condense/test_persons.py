"""A level counts people: no group holds two records of one person, whatever the grouping."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import LevelError, OptionError, PrivacyRefusal, SchemaError
from sfumato.core.facts import ColumnsDropped
from sfumato.core.groups.facts import Grouped
from sfumato.methods.condense import classwise
from sfumato.methods.condense.classwise import check_persons, first_of_person, layers_of, partition_layers
from sfumato.methods.condense.facts import PersonsInDistinctGroups
from tests.condense.tables import draw_values
from tests.examples import examples


def visits(persons: int = 120, rows: int = 300, seed: int = 3) -> pa.Table:
    """Patients with several visits each, some with many."""
    rng = np.random.default_rng(seed)
    who = np.concatenate([np.arange(persons), np.minimum(rng.geometric(0.03, rows - persons), persons) - 1])
    age, sex = rng.integers(20, 90, persons), rng.integers(0, 2, persons)
    return pa.table(
        {
            "patient": [f"P{number:04d}" for number in who],
            "age": age[who],
            "sex": np.where(sex[who] == 0, "f", "m"),
            "days": rng.integers(1, 20, rows),
        }
    )


@examples(60)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(("mdav", "modified", "holistic", "compact", "paper")),
    st.integers(1, 3),
    st.sampled_from(("normal", "grid", "all equal", "heavy tails")),
)
def test_no_group_holds_two_records_of_one_person(seed: int, grouping: str, parts: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    people, n = int(rng.integers(8, 40)), int(rng.integers(40, 120))
    strata = np.concatenate([np.tile(np.arange(parts), people), rng.integers(0, parts, n)])
    persons = np.concatenate([np.repeat(np.arange(people), parts), np.minimum(rng.geometric(0.1, n) - 1, people - 1)])
    levels = rng.integers(1, people + 1 if rng.random() < 0.3 else 6, len(persons))
    values = draw_values(rng, kind, len(persons), 3)
    labels, kept = partition_layers(values, levels, strata, persons, rng, grouping=grouping, effort="fast")
    rows = np.arange(len(persons)) if kept is None else kept
    assert len({*zip(labels.tolist(), persons[rows].tolist(), strict=True)}) == len(rows)
    assert len({*zip(labels.tolist(), strata[rows].tolist(), strict=True)}) == labels.max() + 1
    assert (np.bincount(labels)[labels] >= levels[rows]).all()
    assert {*zip(persons.tolist(), strata.tolist(), strict=True)} == {
        *zip(persons[rows].tolist(), strata[rows].tolist(), strict=True)
    }  # nobody is left out as a whole


def test_the_first_record_of_a_person_is_that_in_each_stratum() -> None:
    strata, persons = np.array([0, 0, 1, 0, 0, 1]), np.array([5, 5, 5, 6, 5, 5])
    assert first_of_person(strata, persons).tolist() == [0, 2, 3]
    assert first_of_person(strata, None).tolist() == [0, 1, 2, 3, 4, 5]


def test_persons_of_one_row_each_are_grouped_as_rows_are() -> None:
    values, levels, strata = np.random.default_rng(1).normal(size=(60, 2)), np.full(60, 4), np.repeat([0, 1], 30)
    grouped = [
        partition_layers(values, levels, strata, persons, np.random.default_rng(5), grouping="mdav")[0]
        for persons in (None, np.random.default_rng(2).permutation(60))
    ]
    np.testing.assert_array_equal(grouped[0], grouped[1])


def test_a_record_for_which_every_group_has_its_person_is_left_out() -> None:
    values, persons = np.arange(8.0)[:, None], np.array([0, 1, 2, 3, 0, 0, 0, 0])
    labels, kept = partition_layers(
        values, np.full(8, 2), np.zeros(8, dtype=np.int64), persons, np.random.default_rng(1), grouping="mdav"
    )
    assert kept is not None
    assert len(kept) == 5  # two groups of two; one of them takes the second record of person 0
    assert sorted(np.bincount(labels).tolist()) == [2, 3]


@examples(60)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_a_record_is_left_out_only_where_every_group_has_its_person_or_is_too_small(seed: int, in_blocks: bool) -> None:
    rng = np.random.default_rng(seed)
    people, n = int(rng.integers(8, 20)), int(rng.integers(20, 60))
    strata = np.concatenate([np.tile([0, 1], people), rng.integers(0, 2, n)])
    persons = np.concatenate([np.repeat(np.arange(people), 2), np.minimum(rng.geometric(0.2, n) - 1, people - 1)])
    levels = np.where(rng.random(len(persons)) < 0.2, people, rng.integers(2, 5, len(persons)))
    begins = layers_of(strata, persons, levels).begins
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classwise, "_CELLS", 5 if in_blocks else 1 << 22)
        values = rng.normal(size=(len(persons), 2))
        found, kept = partition_layers(values, levels, strata, persons, rng, grouping="mdav")
    labels = np.full(len(persons), -1)
    labels[slice(None) if kept is None else kept] = found
    for row in np.flatnonzero(labels < 0):
        open_to = set(labels[strata == strata[row]].tolist()) - set(labels[persons == persons[row]].tolist()) - {-1}
        assert all((labels[begins] == group).sum() + 1 < levels[row] for group in open_to)


def test_a_group_with_two_records_of_one_person_is_refused() -> None:
    with pytest.raises(PrivacyRefusal, match="1 records came out in a group that holds their person already"):
        check_persons(np.array([0, 0, 1]), np.array([4, 4, 4]))


@pytest.mark.parametrize("method", ["condense", "condense-paper", "classwise"])
def test_a_release_of_visits_speaks_of_persons(method: str) -> None:
    table = visits()
    release = sf.sanitize(table, method=method, k=5, person="patient", target="sex", seed=1, report=False)
    facts = {type(fact): fact for fact in release.certificate.facts}
    apart, grouped = facts[PersonsInDistinctGroups], facts[Grouped]
    assert isinstance(apart, PersonsInDistinctGroups)
    assert isinstance(grouped, Grouped)
    assert apart.persons == 120
    assert grouped.records == release.table.num_rows <= table.num_rows
    assert release.table.column_names == ["age", "sex", "days"]
    assert facts[ColumnsDropped] == ColumnsDropped(("patient",), ())
    assert release.table.num_rows == release.certificate.rows_in == grouped.records
    (claim,) = [each for each in release.certificate.claims if "different persons" in each.claim]
    assert claim.kind == "proved"
    assert not any(each.assumes == "one row is one person" for each in release.certificate.claims)


@pytest.mark.usefixtures("columns_only")
def test_a_release_of_visits_holds_as_it_was_written(tmp_path: Path) -> None:
    release = sf.sanitize(visits(), k=5, person="patient", seed=1, holdout=0.2)
    release.save(tmp_path / "out")
    checked = sf.verify(tmp_path / "out" / "release")
    assert [check.name for check in checked.checks if not check.holds and check.name != "made for release"] == []
    again = sf.sanitize(visits(), recipe=tmp_path / "out" / "owner" / "recipe.toml", report=False)
    assert again.table.equals(release.table)


def test_rows_are_held_out_by_person() -> None:
    table = visits()
    release = sf.sanitize(table, sf.Condensation(k=5), person="patient", seed=1, holdout=0.25, report=False)
    apart = next(fact for fact in release.certificate.facts if isinstance(fact, PersonsInDistinctGroups))
    assert apart.persons == 90


def test_levels_above_the_number_of_persons_are_refused() -> None:
    with pytest.raises(LevelError, match="there are 12 persons and the highest privacy level is 20"):
        sf.sanitize(visits(12, 60), k=20, person="patient", report=False)


def test_strata_with_too_few_persons_are_refused() -> None:
    table = visits(12, 60)
    several = table.append_column("ward", pa.array([f"w{place % 20}" for place in range(60)]))
    with pytest.raises(LevelError, match="no stratum of column 'ward' has as many persons"):
        sf.sanitize(several, k=5, person="patient", strata="ward", report=False)
    table = table.set_column(2, "sex", pa.array(["m"] * 3 + ["f"] * 57))
    release = sf.sanitize(table, k=5, person="patient", strata="sex", report=False)
    assert set(release.table.column("sex").to_pylist()) == {"f"}


def test_what_promises_for_rows_refuses_persons_of_several_rows() -> None:
    for mechanism in (sf.LaplacePCA(k=20), sf.Randomization(epsilon=1.0, allow_observed=True)):
        with pytest.raises(PrivacyRefusal, match="300 rows are about 120 persons"):
            sf.sanitize(visits(), mechanism, person="patient", report=False)
    noised = sf.sanitize(visits().drop_columns(["sex"]), method="noise", person="patient", report=False)
    assert noised.table.column_names == ["age", "days"]


def test_rows_without_a_person_and_columns_that_are_two_things_are_refused() -> None:
    table = visits()
    lost = table.set_column(0, "patient", pa.array([None, *table.column("patient").to_pylist()[1:]]))
    with pytest.raises(SchemaError, match="'patient' identifies persons, and 1 of its cells are missing"):
        sf.sanitize(lost, k=5, person="patient", report=False)
    with pytest.raises(OptionError, match="cannot be released"):
        sf.sanitize(table, k=5, person="sex", target="sex", report=False)
    with pytest.raises(OptionError, match="one column is both person identifier and level"):
        sf.sanitize(table, k=5, person="age", level="age", report=False)


@pytest.mark.slow
def test_group_sizes_are_tuned_in_persons() -> None:
    told: dict[str, Any] = {"methods": "condense", "metric": "covariance", "holdout": 0.3}
    tuning = sf.tune(visits(), person="patient", policy="trusted", seed=1, **told)
    assert max(reading.candidate.size for reading in tuning.bench.readings) <= 60
    assert {each.reading.people for each in tuning.confirmed} == {84}
