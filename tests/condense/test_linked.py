"""Released persons keep several rows: drawn together, from as many persons as the level asks for, and consistent."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import OptionError
from sfumato.core.records import Block, BlockKind, Records
from sfumato.engines.columns import released_persons
from sfumato.methods.condense.classwise import _lengths
from sfumato.methods.condense.facts import PersonRows, PersonsInDistinctGroups, PersonsLinked
from tests.condense.test_persons import visits
from tests.examples import examples

K = 5


def linked(table: pa.Table, **told: Any) -> sf.Release:
    usual: dict[str, Any] = {
        "person": "patient",
        "k": K,
        "method": "condense",
        "seed": 1,
        "keep_persons": True,
        "report": False,
    }
    return sf.sanitize(table, **(usual | told))


def rows_of_persons(table: pa.Table) -> list[int]:
    counts: list[int] = pc.value_counts(table.column("released_person")).field("counts").to_pylist()
    return counts


def test_persons_keep_their_numbers_of_rows_as_far_as_enough_have_as_many() -> None:
    table = visits()
    made = linked(table)
    before = np.unique(table.column("patient").to_numpy(zero_copy_only=False), return_counts=True)[1]
    after = np.array(rows_of_persons(made.table))
    facts = {type(fact): fact for fact in made.certificate.facts}
    told, apart = facts[PersonsLinked], facts[PersonsInDistinctGroups]
    assert isinstance(told, PersonsLinked)
    assert isinstance(apart, PersonsInDistinctGroups)
    assert (told.persons, told.most) == (len(after), after.max())
    assert apart.persons == len(before)
    assert before.sum() - after.sum() > 0  # which the certificate does not count: it may be of one person
    assert np.bincount(after)[np.unique(after)].min() >= K
    assert (after == 1).sum() == (before == 1).sum() >= K


def test_what_never_changes_within_a_person_does_not_within_a_released_one() -> None:
    made = linked(visits()).table
    for name in ("age", "sex"):
        pairs = {*zip(made.column("released_person").to_pylist(), made.column(name).to_pylist(), strict=True)}
        assert len(pairs) == len(set(made.column("released_person").to_pylist()))
    days = {*zip(made.column("released_person").to_pylist(), made.column("days").to_pylist(), strict=True)}
    assert len(days) > len(set(made.column("released_person").to_pylist()))


def test_what_rows_of_a_person_have_in_common_lasts() -> None:
    """Weights that persons keep but for a little: with unlinked draws the spread within a person is that of all."""
    rng = np.random.default_rng(5)
    who = np.repeat(np.arange(200), 3)
    weight = rng.normal(70, 12, 200)[who] + rng.normal(0, 1, 600)
    table = pa.table({"patient": [f"P{each}" for each in who], "weight": weight, "dose": rng.normal(size=600)})
    made = linked(table).table
    order = np.argsort(made.column("released_person").to_numpy(), kind="stable")
    drawn = made.column("weight").to_numpy()[order].reshape(-1, 3)
    assert drawn.std(axis=1).mean() < 3.0 < 9.0 < drawn.std()


@examples(20)
@given(st.integers(0, 2**32 - 1), st.sampled_from(("mdav", "modified", "compact", "paper")), st.integers(1, 2))
def test_every_released_row_comes_from_one_row_of_each_of_enough_persons(seed: int, grouping: str, parts: int) -> None:
    rng = np.random.default_rng(seed)
    people = int(rng.integers(12, 40))
    persons = rng.permutation(np.concatenate([np.arange(people), np.minimum(rng.geometric(0.1, 40) - 1, people - 1)]))
    strata = rng.integers(0, parts, people)[persons]
    levels = rng.integers(2, 5, len(persons))
    values = np.column_stack([rng.normal(size=len(persons)), rng.normal(size=people)[persons]])
    layout = tuple(Block(name, BlockKind.NUMBER, place, place + 1, (0.0,)) for place, name in enumerate("ab"))
    records = Records(values, layout, levels, strata, persons=persons, linked=True)
    made = sf.Condensation(k=2, grouping=grouping, effort="fast").sanitize(records, rng=rng)
    workings, drawn = made.workings, made.records
    assert workings.labels is not None
    assert workings.drawn_from is not None
    assert drawn.persons is not None
    kept = np.arange(len(persons)) if workings.kept is None else workings.kept
    sizes = np.bincount(workings.labels)
    assert len({*zip(workings.labels.tolist(), persons[kept].tolist(), strict=True)}) == len(kept)
    assert len({*zip(workings.labels.tolist(), strata[kept].tolist(), strict=True)}) == len(sizes)
    assert (sizes[workings.labels] >= levels[kept]).all()
    assert (np.bincount(workings.drawn_from) == sizes).all()
    assert len({*zip(drawn.persons.tolist(), drawn.values[:, 1].tolist(), strict=True)}) == drawn.persons.max()
    whole = {person: (sizes[workings.labels][persons[kept] == person]) for person in np.unique(persons[kept])}
    assert all(len(set(each.tolist())) == 1 for each in whole.values())  # one group of persons behind all of theirs


def test_who_is_among_too_few_with_as_many_rows_counts_with_fewer() -> None:
    counts, nothing = np.array([1, 1, 2, 2, 2, 5]), np.zeros(6, dtype=np.int64)
    assert _lengths(counts, np.full(6, 2), nothing).tolist() == [1, 1, 2, 2, 2, 2]
    assert _lengths(counts, np.full(6, 3), nothing).tolist() == [0, 0, 2, 2, 2, 2]
    assert _lengths(counts, np.full(6, 7), nothing).tolist() == [0] * 6


def test_nothing_is_linked_where_it_could_not_be_true() -> None:
    table = visits()
    with pytest.raises(OptionError, match=r"'chain' makes or moves each row by itself"):
        linked(table, method="chain")
    with pytest.raises(OptionError, match=r"'classwise' makes or moves"):
        linked(table, method="classwise", target="sex")
    with pytest.raises(OptionError, match="name that column with person="):
        linked(table, person=None, rows_are_people=True)
    with pytest.raises(OptionError, match="drop rows="):
        linked(table, rows=50)
    parted = table.append_column("part", pa.array(["x", "y"] * (table.num_rows // 2)))
    with pytest.raises(OptionError, match="changes 50 times within a person"):
        linked(parted, strata="part")


def test_persons_are_counted_again_by_a_reviewer() -> None:
    made = linked(visits())
    fact = next(each for each in made.certificate.facts if isinstance(each, PersonsLinked))

    def check(told: PersonsLinked, least: int = K, table: pa.Table = made.table) -> bool:
        rows = PersonRows(told, least)
        for first in range(0, table.num_rows, 50):
            rows.add(table.slice(first, 50))
        return next(rows.checks()).holds

    assert check(fact)
    assert not check(dataclasses.replace(fact, persons=fact.persons - 1))
    assert not check(dataclasses.replace(fact, most=fact.most + 1))
    assert not check(dataclasses.replace(fact, constant=("days",)))
    assert not check(fact, least=made.table.num_rows)
    assert not check(fact, table=made.table.drop_columns(["released_person"]))


def test_released_persons_are_known_by_their_column() -> None:
    table = visits()
    made = linked(table).table
    found = released_persons(made, table)
    assert found is not None
    assert len({*zip(found.tolist(), made.column("released_person").to_pylist(), strict=True)}) == found.max() + 1
    assert released_persons(table, table) is None
    assert released_persons(made, made) is None
