"""Facts that cannot be together bear no certificate; at the edge of what can be they do."""

from __future__ import annotations

import dataclasses

import pytest

from sfumato.core.facts import (
    BoundsKept,
    Celled,
    Chained,
    ClassPure,
    ColumnsDropped,
    ComponentNoise,
    DatesCoarsened,
    DespitePolicy,
    DomainsObserved,
    EpochPublished,
    Fact,
    Grouped,
    Maintained,
    Noised,
    PersonRowsBounded,
    PersonsApart,
    PersonsBounded,
    PersonsLinked,
    Randomized,
    RareValues,
    RowsDrawn,
    RowsKept,
    RulesBlocked,
    RulesHidden,
    Sampled,
    Scored,
    Shuffled,
    ShuffledWithin,
    Stratified,
    Synthesized,
    TargetMoved,
    TransactionPersons,
    TransactionsReleased,
    Transformed,
    Unchanged,
    Unmeasured,
    WeightsScaled,
)
from tests.certificate.test_possible import refusal

GROUPED = Grouped("MDAV", 20, 4, 5, 0, 0, 0, 0)
CHAINED = Chained(("a", "b"), (2, 3), (6, 5), (1, 0), 20, 20, 5, 5, 0, 0, 40)
KEPT = Maintained("dynamic", "strict", 5, 4, 2, 5, 0, 0, 1, 0, 0)
RARE = RareValues("pool", 2, 3)
NOISED = Noised("gaussian", "additive", 0.5, 3, False, 0.001)
PARTS = ComponentNoise("laplace", 0.2, 3, "component", 0.001, 0.001)
MADE = Synthesized("mean and covariance", "uniform along eigenvectors", 20)
HIDDEN = RulesHidden("consequent", 1, 0.5, 0.5, 1, 0)

LINKED = (PersonsApart(10), PersonsLinked("who", 10, 2), GROUPED, MADE)
EPOCH = EpochPublished(1, 0, 0, 20, 5)
TOGETHER: list[tuple[tuple[Fact, ...], str]] = [
    ((GROUPED, MADE, Shuffled(20)), ""),
    ((GROUPED, GROUPED), "occurs twice"),
    ((EPOCH, EPOCH), ""),
    ((GROUPED, MADE, CHAINED), "two methods or two orders"),
    ((Shuffled(20), ShuffledWithin(5)), "two methods or two orders"),
    ((NOISED, PARTS), "two methods or two orders"),
    ((GROUPED, Unchanged(("a",))), "rows are unchanged"),
    ((NOISED, Unchanged(("a",))), "rows are unchanged"),
    ((RARE, Unchanged(("a",))), "rows are unchanged"),
    ((Sampled(20, 10, 20, 10), Unchanged(("a",))), ""),
    ((GROUPED, NOISED), "groups or weights that the method lacks"),
    ((GROUPED, CHAINED), "groups or weights that the method lacks"),
    ((GROUPED, PARTS), ""),
    ((NOISED, WeightsScaled("a", 1.0, 0.1)), "groups or weights that the method lacks"),
    ((PARTS, WeightsScaled("a", 1.0, 0.1)), "groups or weights that the method lacks"),
    ((GROUPED, MADE, WeightsScaled("a", 1.0, 0.1)), ""),
    ((GROUPED, Scored(1, 5)), "scores"),
    ((GROUPED, MADE, Scored(1, 5)), ""),
    ((Unmeasured(), DespitePolicy("ours", "does-not-meet")), "nothing was measured"),
    ((Celled(4, 5), GROUPED), ""),
    ((Celled(1, 20), GROUPED), ""),
    ((Celled(4, 5),), "about cells"),
    ((Celled(5, 4), GROUPED), "about cells"),
    ((Celled(0, 5), GROUPED), "about cells"),
    ((Celled(4, 4), GROUPED), "about cells"),
    ((Celled(3, 7), GROUPED), "about cells"),
    ((Celled(2, 10), CHAINED), ""),
    ((Celled(3, 6), CHAINED), "about cells"),
    ((PersonsApart(20), GROUPED, MADE), ""),
    ((PersonsApart(5), GROUPED, MADE), ""),
    ((PersonsApart(4), GROUPED, MADE), "about persons"),
    ((PersonsApart(21), GROUPED, MADE), "about persons"),
    ((PersonsApart(20), GROUPED), "about persons"),
    ((PersonsApart(20), MADE), "but no groups"),
    ((MADE, Shuffled(20)), "but no groups"),
    ((PersonsBounded(6), CHAINED), ""),
    ((PersonsBounded(20), CHAINED), ""),
    ((PersonsBounded(5), CHAINED), "about persons"),
    ((PersonsBounded(21), CHAINED), "about persons"),
    ((PersonsBounded(6), GROUPED, MADE), "about persons"),
    (LINKED, ""),
    ((PersonsApart(10), PersonsLinked("who", 10, 11), GROUPED, MADE), ""),
    ((PersonsApart(10), PersonsLinked("who", 10, 12), GROUPED, MADE), "about persons"),
    ((PersonsApart(10), PersonsLinked("who", 10, 1), GROUPED, MADE), "about persons"),
    ((PersonsApart(11), PersonsLinked("who", 10, 2), GROUPED, MADE), "about persons"),
    ((PersonsLinked("who", 10, 2), GROUPED, MADE), "about persons"),
    ((*LINKED, RowsDrawn(20, 20)), "about persons"),
    ((*LINKED, ClassPure("a", 2)), "about persons"),
    ((dataclasses.replace(KEPT, k=4), PersonRowsBounded(2)), ""),
    ((KEPT, PersonRowsBounded(2)), "about persons"),
    ((dataclasses.replace(KEPT, k=3), PersonRowsBounded(2)), "about persons"),
    ((dataclasses.replace(KEPT, k=4), PersonRowsBounded(2), RowsKept(1, 0, False)), "about persons"),
    ((PersonRowsBounded(2),), "about persons"),
    ((ColumnsDropped(("a",), (), ()), ClassPure("a", 2)), "about a column"),
    ((ColumnsDropped((), ("a",), ()), Stratified("a", 2, False)), "about a column"),
    ((ColumnsDropped((), (), ("a",)), BoundsKept(("a",))), "about a column"),
    ((ColumnsDropped(("a",), (), ()), DatesCoarsened(("a",))), "about a column"),
    ((ColumnsDropped(("a",), (), ()), WeightsScaled("a", 1.0, 0.1)), "about a column"),
    ((ColumnsDropped(("who",), (), ()), *LINKED), "about a column"),
    ((ColumnsDropped(("a",), (), ()), CHAINED), "about a column"),
    ((ColumnsDropped(("c",), (), ()), CHAINED), ""),
    ((ColumnsDropped(("a",), (), ()), dataclasses.replace(RARE, dropped=("a",))), "about a column"),
    ((dataclasses.replace(RARE, dropped=("a",)), ClassPure("a", 2)), "about a column"),
    ((dataclasses.replace(RARE, dropped=("b",)), ClassPure("a", 2)), ""),
    ((CHAINED, Stratified("c", 2, False)), "about a column"),
    ((CHAINED, Stratified("a", 2, False)), ""),
    ((CHAINED, BoundsKept(("a", "b"))), ""),
    ((Transformed(("add",), ("a",), 1), TargetMoved("a")), ""),
    ((Transformed(("add",), ("a", "b"), 1), TargetMoved("a")), ""),
    ((Transformed(("add",), ("a", "b"), 1), TargetMoved("c")), "about a column"),
    ((Transformed(("add",), ("a", "a"), 1),), "about a column"),
    ((ColumnsDropped(("a",), (), ()), Transformed(("add",), ("a",), 1)), "about a column"),
    ((DomainsObserved(("a",)),), ""),
    ((TransactionsReleased(10, 5, 9), HIDDEN, TransactionPersons(5, 2)), ""),
    ((TransactionsReleased(10, 5, 9), HIDDEN, TransactionPersons(10, 1)), ""),
    ((TransactionsReleased(10, 5, 9), HIDDEN, TransactionPersons(11, 1)), "about transactions"),
    ((TransactionsReleased(10, 5, 9), HIDDEN, TransactionPersons(4, 2)), "about transactions"),
    ((TransactionsReleased(10, 5, 9, 1), HIDDEN), "about transactions"),
    ((TransactionsReleased(10, 5, 9, 1), RulesBlocked(1, 0.5, 0.5, 0.0)), ""),
    ((TransactionsReleased(10, 5, 9), RulesBlocked(1, 0.5, 0.5, 0.0)), "about transactions"),
    ((TransactionsReleased(10, 5, 9),), "about transactions"),
    ((HIDDEN,), "about transactions"),
    ((TransactionPersons(5, 2),), "about transactions"),
    ((GROUPED, Shuffled(21)), "the number of rows"),
    ((GROUPED, MADE, RowsDrawn(20, 30)), "the number of rows"),
    ((GROUPED, dataclasses.replace(MADE, rows=30), Shuffled(30), RowsDrawn(20, 30)), ""),
    ((GROUPED, dataclasses.replace(MADE, rows=30), Shuffled(30), RowsDrawn(21, 30)), "the number of rows"),
    ((GROUPED, dataclasses.replace(MADE, rows=30), Shuffled(30), RowsDrawn(20, 30, "a > 3")), "the number of rows"),
    ((dataclasses.replace(CHAINED, rows=30), Shuffled(30), RowsDrawn(20, 30, "a > 3")), ""),
    ((GROUPED, PARTS, Shuffled(20), RowsDrawn(20, 20)), "the number of rows"),
    ((KEPT, EPOCH, Shuffled(20)), ""),
    ((KEPT, EPOCH, Shuffled(21)), "the number of rows"),
    ((Sampled(20, 10, 20, 10), Shuffled(10)), ""),
    ((Sampled(20, 10, 20, 10), Shuffled(20)), "the number of rows"),
    ((KEPT, EPOCH, dataclasses.replace(EPOCH, epoch=2, rows=25), Shuffled(25)), ""),
    ((KEPT, EPOCH, dataclasses.replace(EPOCH, epoch=2, rows=25), Shuffled(20)), "the number of rows"),
]


@pytest.mark.parametrize(("facts", "words"), TOGETHER)
def test_facts_that_cannot_be_together_are_refused_by_what_they_disagree_on(
    facts: tuple[Fact, ...], words: str
) -> None:
    said = refusal(*facts)
    assert words in said
    assert bool(words) == bool(said), said


def test_a_column_is_randomized_once_and_its_domain_observed_where_it_is() -> None:
    age = Randomized("age", "spec", "0" * 64, 2.0, 0.7)
    assert refusal(age, dataclasses.replace(age, column="pay"), DomainsObserved(("pay",))) == ""
    assert refusal(age, DomainsObserved(("age",))) == ""
    assert "about a column" in refusal(age, age)
    assert "about a column" in refusal(age, DomainsObserved(("pay",)))
    assert "about a column" in refusal(age, ColumnsDropped(("age",), (), ()))
    assert "about a column" in refusal(DomainsObserved(("pay",)), ColumnsDropped(("pay",), (), ()))
