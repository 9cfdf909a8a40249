"""Facts that cannot be together bear no certificate; at the edge of what can be they do."""

from __future__ import annotations

import dataclasses

import pytest

from sfumato.core.facts import (
    BoundsKept,
    ColumnsDropped,
    DespitePolicy,
    Fact,
    NoMeasurement,
    Shuffled,
    ShuffledWithin,
    Stratified,
)
from sfumato.core.groups.facts import Grouped, Partitioned
from sfumato.methods.chain.facts import ChainSynthesis, PersonsBounded
from sfumato.methods.condense.facts import (
    ClassPure,
    GroupSynthesis,
    NormalScoreColumns,
    PersonsInDistinctGroups,
    PersonsLinked,
)
from sfumato.methods.geometry.facts import TargetMoved, Transformed
from sfumato.methods.modify.facts import Sampled, Unchanged
from sfumato.methods.perturb.facts import ComponentNoise, Noised
from sfumato.methods.randomize.facts import DomainsObserved, Randomized
from sfumato.stream.facts import EpochPublished, Maintained, PersonRowsBounded, RowsKept
from sfumato.tables.facts import DatesCoarsened, RareValues, RowsDrawn, WeightsScaled
from sfumato.transactions.facts import RulesBlocked, RulesHidden, TransactionPersons, TransactionsReleased
from tests.certificate.test_possible import refusal

GROUPED = Grouped("MDAV", 20, 4, 5, 0, 0, 0, 0)
CHAINED = ChainSynthesis(("a", "b"), (2, 3), (6, 5), (1, 0), 20, 20, 5, 5, 0, 0, 40)
KEPT = Maintained("dynamic", "strict", 5, 4, 2, 5, 0, 0, 1, 0, 0)
RARE = RareValues("pool", 2, 3)
NOISED = Noised("gaussian", "additive", 0.5, 3, False, 0.001)
PARTS = ComponentNoise("laplace", 0.2, 3, "component", 0.001, 0.001)
MADE = GroupSynthesis("mean and covariance", "uniform along eigenvectors", 20)
HIDDEN = RulesHidden("consequent", 1, 0.5, 0.5, 1, 0)

LINKED = (PersonsInDistinctGroups(10), PersonsLinked("who", 10, 2), GROUPED, MADE)
EPOCH = EpochPublished(1, 0, 0, 20, 5)
TOGETHER: list[tuple[tuple[Fact, ...], str]] = [
    ((GROUPED, MADE, Shuffled(20)), ""),
    ((GROUPED, GROUPED), "occurs twice"),
    ((EPOCH, EPOCH), ""),
    ((GROUPED, MADE, CHAINED), "two methods"),
    ((Shuffled(20), ShuffledWithin(5)), "contradicts other"),
    ((NOISED, PARTS), "two methods"),
    ((GROUPED, Unchanged(("a",))), "contradicts other"),
    ((NOISED, Unchanged(("a",))), "two methods"),
    ((RARE, Unchanged(("a",))), "contradicts other"),
    ((Sampled(20, 10, 20, 10), Unchanged(("a",))), ""),
    ((GROUPED, NOISED), "contradicts other"),
    ((GROUPED, CHAINED), "contradicts other"),
    ((GROUPED, PARTS), ""),
    ((NOISED, WeightsScaled("a", 1.0, 0.1)), "contradicts other"),
    ((PARTS, WeightsScaled("a", 1.0, 0.1)), "contradicts other"),
    ((GROUPED, MADE, WeightsScaled("a", 1.0, 0.1)), ""),
    ((GROUPED, NormalScoreColumns(1, 5)), "contradicts other"),
    ((GROUPED, MADE, NormalScoreColumns(1, 5)), ""),
    ((NoMeasurement(), DespitePolicy("ours", "does-not-meet")), "contradicts other"),
    ((Partitioned(4, 5), GROUPED), ""),
    ((Partitioned(1, 20), GROUPED), ""),
    ((Partitioned(4, 5),), "contradicts other"),
    ((Partitioned(5, 4), GROUPED), "contradicts other"),
    ((Partitioned(0, 5), GROUPED), "contradicts other"),
    ((Partitioned(4, 4), GROUPED), "contradicts other"),
    ((Partitioned(3, 7), GROUPED), "contradicts other"),
    ((Partitioned(2, 10), CHAINED), ""),
    ((Partitioned(3, 6), CHAINED), "contradicts other"),
    ((PersonsInDistinctGroups(20), GROUPED, MADE), ""),
    ((PersonsInDistinctGroups(5), GROUPED, MADE), ""),
    ((PersonsInDistinctGroups(4), GROUPED, MADE), "contradicts other"),
    ((PersonsInDistinctGroups(21), GROUPED, MADE), "contradicts other"),
    ((PersonsInDistinctGroups(20), GROUPED), "contradicts other"),
    ((PersonsInDistinctGroups(20), MADE), "contradicts other"),
    ((MADE, Shuffled(20)), "contradicts other"),
    ((PersonsBounded(6), CHAINED), ""),
    ((PersonsBounded(20), CHAINED), ""),
    ((PersonsBounded(5), CHAINED), "contradicts other"),
    ((PersonsBounded(21), CHAINED), "contradicts other"),
    ((PersonsBounded(6), GROUPED, MADE), "two methods"),
    (LINKED, ""),
    ((PersonsInDistinctGroups(10), PersonsLinked("who", 10, 11), GROUPED, MADE), ""),
    ((PersonsInDistinctGroups(10), PersonsLinked("who", 10, 12), GROUPED, MADE), "contradicts other"),
    ((PersonsInDistinctGroups(10), PersonsLinked("who", 10, 1), GROUPED, MADE), "contradicts other"),
    ((PersonsInDistinctGroups(11), PersonsLinked("who", 10, 2), GROUPED, MADE), "contradicts other"),
    ((PersonsLinked("who", 10, 2), GROUPED, MADE), "contradicts other"),
    ((*LINKED, RowsDrawn(20, 20)), "contradicts other"),
    ((*LINKED, ClassPure("a", 2)), "two methods"),
    ((dataclasses.replace(KEPT, k=4), PersonRowsBounded(2)), ""),
    ((KEPT, PersonRowsBounded(2)), "contradicts other"),
    ((dataclasses.replace(KEPT, k=3), PersonRowsBounded(2)), "contradicts other"),
    ((dataclasses.replace(KEPT, k=4), PersonRowsBounded(2), RowsKept(1, 0, False)), "contradicts other"),
    ((PersonRowsBounded(2),), "contradicts other"),
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
    ((CHAINED, Stratified("c", 2, False)), "contradicts other"),
    ((CHAINED, Stratified("a", 2, False)), ""),
    ((CHAINED, BoundsKept(("a", "b"))), ""),
    ((Transformed(("add",), ("a",), 1), TargetMoved("a")), ""),
    ((Transformed(("add",), ("a", "b"), 1), TargetMoved("a")), ""),
    ((Transformed(("add",), ("a", "b"), 1), TargetMoved("c")), "contradicts other"),
    ((Transformed(("add",), ("a", "a"), 1),), "contradicts itself"),
    ((ColumnsDropped(("a",), (), ()), Transformed(("add",), ("a",), 1)), "about a column"),
    ((DomainsObserved(("a",)),), ""),
    ((TransactionsReleased(10, 5, 9), HIDDEN, TransactionPersons(5, 2)), ""),
    ((TransactionsReleased(10, 5, 9), HIDDEN, TransactionPersons(10, 1)), ""),
    ((TransactionsReleased(10, 5, 9), HIDDEN, TransactionPersons(11, 1)), "contradicts other"),
    ((TransactionsReleased(10, 5, 9), HIDDEN, TransactionPersons(4, 2)), "contradicts other"),
    ((TransactionsReleased(10, 5, 9, 1), HIDDEN), "contradicts other"),
    ((TransactionsReleased(10, 5, 9, 1), RulesBlocked(1, 0.5, 0.5, 0.0)), ""),
    ((TransactionsReleased(10, 5, 9), RulesBlocked(1, 0.5, 0.5, 0.0)), "contradicts other"),
    ((TransactionsReleased(10, 5, 9),), "contradicts other"),
    ((HIDDEN,), "contradicts other"),
    ((TransactionPersons(5, 2),), "contradicts other"),
    ((GROUPED, Shuffled(21)), "the number of rows"),
    ((GROUPED, MADE, RowsDrawn(20, 30)), "the number of rows"),
    ((GROUPED, dataclasses.replace(MADE, rows=30), Shuffled(30), RowsDrawn(20, 30)), ""),
    ((GROUPED, dataclasses.replace(MADE, rows=30), Shuffled(30), RowsDrawn(21, 30)), "the number of rows"),
    (
        (GROUPED, dataclasses.replace(MADE, rows=30), Shuffled(30), RowsDrawn(20, 30, "a > 3")),
        "contradicts other",
    ),
    ((dataclasses.replace(CHAINED, rows=30), Shuffled(30), RowsDrawn(20, 30, "a > 3")), ""),
    ((GROUPED, PARTS, Shuffled(20), RowsDrawn(20, 20)), "contradicts other"),
    ((KEPT, EPOCH, Shuffled(20)), ""),
    ((KEPT, EPOCH, Shuffled(21)), "contradicts other"),
    ((Sampled(20, 10, 20, 10), Shuffled(10)), ""),
    ((Sampled(20, 10, 20, 10), Shuffled(20)), "the number of rows"),
    ((KEPT, EPOCH, dataclasses.replace(EPOCH, epoch=2, rows=25), Shuffled(25)), ""),
    ((KEPT, EPOCH, dataclasses.replace(EPOCH, epoch=2, rows=25), Shuffled(20)), "contradicts other"),
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
    assert "contradicts other" in refusal(age, age)
    assert "contradicts other" in refusal(age, DomainsObserved(("pay",)))
    assert "about a column" in refusal(age, ColumnsDropped(("age",), (), ()))
    assert "about a column" in refusal(DomainsObserved(("pay",)), ColumnsDropped(("pay",), (), ()))
