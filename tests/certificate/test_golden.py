"""The sentences of each method, word for word, with the kind of each: a change of words is a change of promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.core.facts import (
    BoundsKept,
    ColumnsDropped,
    DespitePolicy,
    Enhanced,
    Fact,
    HeldOut,
    NoMeasurement,
    PassedThrough,
    RandomnessSource,
    Shuffled,
    ShuffledWithin,
    Stratified,
    draw_claims,
)
from sfumato.core.groups.facts import CountsKept, Grouped, Partitioned
from sfumato.methods.chain.facts import ChainSynthesis, PersonsBounded
from sfumato.methods.condense.facts import (
    ClassPure,
    GroupSynthesis,
    NormalScoreColumns,
    PersonsInDistinctGroups,
    PersonsLinked,
)
from sfumato.methods.geometry.facts import TargetMoved, Transformed
from sfumato.methods.modify.facts import Blocked, Downgraded, IdenticalRows, Sampled, Swapped, Unchanged
from sfumato.methods.perturb.facts import ComponentNoise, Noised
from sfumato.methods.randomize.facts import DomainsObserved
from sfumato.parties.facts import Joint, Opened
from sfumato.stream.facts import EpochPublished, Maintained, PersonRowsBounded, RowsKept
from sfumato.tables.facts import (
    Aggregated,
    ColumnRulesKept,
    DatesCoarsened,
    FormulaTexts,
    RareValues,
    RowsDrawn,
    TailsCoded,
    WeightsScaled,
)
from sfumato.transactions.facts import RulesBlocked, RulesHidden, TransactionPersons, TransactionsReleased
from tests.certificate.drawn_facts import OPERATORS, SPECS, randomized_column, randomized_transactions

GOLDEN = Path(__file__).parent / "golden"
AROUND: tuple[Fact, ...] = (RandomnessSource("release", "ChaCha20"), ColumnsDropped(("name", "id"), ("lvl",)))
DRAWN = GroupSynthesis("mean and covariance", "uniform along eigenvectors", 100)
GROUPED = Grouped("MDAV", 100, 9, 10, 0, 0, 0, 0)
FILLED = Grouped("K-means with small clusters filled from larger ones", 100, 4, 25, 0, 0, 0, 5)
BLUR = ComponentNoise("laplace", 0.2, 3, "component", 0.001, 2.0**-20)
LEDGER = Opened("group sums", "the sum of the rows of each group", "sum", ("bank", "clinic", "shop"), 54, 1)


def shuffled(*facts: Fact) -> tuple[Fact, ...]:
    """Facts of a release of a hundred rows in random order."""
    return (*AROUND, *facts, Shuffled(100))


METHODS: dict[str, tuple[Fact, ...]] = {
    "condense": shuffled(HeldOut(7), GROUPED, DRAWN, CountsKept(2, 1)),
    "condense-rare-pooled": shuffled(
        RareValues("pool", 12, 3, 0, ("smoker",), True),
        TailsCoded("smooth", 12, 2, True),
        GROUPED,
        DRAWN,
        CountsKept(2, 1),
    ),
    "condense-rare-kept": shuffled(
        RareValues("keep", 12, 3), TailsCoded("keep", 12, 2), GROUPED, DRAWN, CountsKept(2, 1)
    ),
    "condense-equal-rows": shuffled(Stratified("town", 3, False), Grouped("MDAV", 100, 20, 2, 0, 4, 0, 12), DRAWN),
    "condense-level-1": (
        RandomnessSource("dry-run", "PCG64"),
        ColumnsDropped((), ()),
        Grouped("principal-axis tree and local search", 100, 30, 1, 0, 10, 8, 8),
        DRAWN,
        Shuffled(100),
    ),
    "condense-despite-policy": (
        *AROUND,
        HeldOut(7),
        GROUPED,
        DRAWN,
        Shuffled(100),
        DespitePolicy("research", "inconclusive"),
    ),
    "classwise": shuffled(RareValues("pool", 10, 2, 1), ClassPure("outcome", 3), GROUPED, DRAWN),
    "chain": shuffled(
        RareValues("lift", 5, 1),
        TailsCoded("code", 5, 2),
        HeldOut(7),
        ChainSynthesis(
            ("outcome", "age", "town"),
            (1, 3, 2),
            (100, 25, 30),
            (0, 1, 0),
            100,
            100,
            5,
            20,
            0,
            71,
            29,
            ("age",),
        ),
    ),
    "chain-persons": (
        *AROUND,
        ChainSynthesis(("outcome", "age"), (1, 3), (60, 20), (0, 1), 100, 100, 5, 20, 0, 71, 29),
        Shuffled(100),
        PersonsBounded(60),
    ),
    "chain-parts": (
        *AROUND,
        ChainSynthesis(
            ("age", "town", "outcome"),
            (4, 9, 8),
            (40, 20, 20),
            (0, 1, 0),
            250,
            250,
            12,
            20,
            0,
            71,
            129,
            ("town", "outcome"),
            ("outcome",),
        ),
        Shuffled(250),
        PersonsBounded(160),
        Partitioned(4, 51),
    ),
    "chain-where": (
        *AROUND,
        ChainSynthesis(("age", "outcome"), (1, 3), (100, 20), (0, 1), 100, 250, 5, 20, 0, 71, 29),
        Shuffled(250),
        RowsDrawn(100, 250, "age > 60"),
    ),
    "condense-scores": shuffled(GROUPED, DRAWN, NormalScoreColumns(2, 12)),
    "condense-rows": (
        *AROUND,
        GROUPED,
        GroupSynthesis("mean and covariance", "uniform along eigenvectors", 30),
        CountsKept(1, 0),
        Shuffled(30),
        RowsDrawn(100, 30),
    ),
    "laplace-pca": shuffled(FILLED, BLUR, CountsKept(1, 0)),
    "noise": shuffled(
        Noised("uniform", "additive", 0.5, 3, False, 2.0**-17),
        Enhanced(0.05, 5),
        PassedThrough(1, 2),
        BoundsKept(("age", "mark")),
    ),
    "noise-multiplicative": shuffled(Noised("gaussian", "multiplicative", 0.2, 1, False, 2.0**-18)),
    "rotate": shuffled(Transformed(("rotate",), ("age", "pay"), 3), TargetMoved("pay"), PassedThrough(1, 0)),
    "scale-exact": (*AROUND, Transformed(("mult",), ("age",), 1, exact_digits=True), Shuffled(200)),
    "hybrid-in-runs": (*AROUND, Transformed(("add", "rotate"), ("age", "pay"), 4), ShuffledWithin(50)),
    "randomize": shuffled(
        randomized_column("age", SPECS[0]), randomized_column("town", SPECS[1]), DomainsObserved(("town",))
    ),
    "randomize-declared": shuffled(randomized_column("age", SPECS[0]), PassedThrough(0, 1)),
    "randomize-unbounded": shuffled(randomized_column("age", SPECS[2]), PassedThrough(0, 1)),
    "stream": shuffled(
        Maintained("AY05 dynamic maintenance, started by MDAV", "paper", 5, 9, 3, 3, 2, 1, 1, 1, 6),
        EpochPublished(1, 9, 0, 90, 5),
        EpochPublished(2, 1, 8, 100, 7),
        RareValues("lift", 5, 1),
        TailsCoded("code", 5, 2),
    ),
    "stream-measured": (
        *AROUND,
        Maintained("AY05 dynamic maintenance, started by MDAV", "strict", 5, 9, 0, 12, 0, 0, 2, 0, 0),
        EpochPublished(1, 9, 0, 120, 12),
        RareValues("pool", 5, 2),
        RowsKept(50, 1, False),
        Shuffled(120),
    ),
    "stream-forgotten": (
        *AROUND,
        Maintained("AY05 dynamic maintenance, started by MDAV", "strict", 5, 9, 0, 12, 0, 0, 2, 0, 0),
        EpochPublished(1, 9, 0, 120, 12),
        RareValues("keep", 5, 2),
        RowsKept(0, 8, True),
        Shuffled(120),
    ),
    "joint-columns": (
        *AROUND,
        FILLED,
        BLUR,
        CountsKept(1, 0),
        Shuffled(100),
        Joint("vertical", ("bank", "clinic", "shop"), ("bank", "shop"), "cheetah", "", "each", 3, 2),
        LEDGER,
    ),
    "joint-rows": (
        *AROUND,
        FILLED,
        BLUR,
        Shuffled(100),
        Joint("horizontal", ("bank", "clinic", "shop"), ("bank", "shop"), "plain", "each", "", 3),
        LEDGER,
    ),
    "condense-persons": (
        *AROUND,
        PersonsInDistinctGroups(60),
        Stratified("town", 3, True),
        Grouped("MDAV", 100, 9, 1, 0, 3, 3, 3),
        DRAWN,
        Shuffled(100),
        NoMeasurement(),
    ),
    "condense-linked": shuffled(
        PersonsInDistinctGroups(60), PersonsLinked("released_person", 60, 2, ("sex", "town")), GROUPED, DRAWN
    ),
    "condense-real-table": (
        RandomnessSource("release", "ChaCha20"),
        ColumnsDropped(("name",), (), ("note",)),
        DatesCoarsened(("born",)),
        RareValues("lift", 12, 3, 0, (), False),
        GROUPED,
        DRAWN,
        Shuffled(100),
        ColumnRulesKept(("admission <= discharge", "postcode -> city"), True),
        WeightsScaled("weight", 1234.5, 0.5),
        FormulaTexts(("city",), 4, 1, False),
    ),
    "condense-quoted": (*AROUND, GROUPED, DRAWN, Shuffled(100), FormulaTexts(("note",), 4, 0, True)),
    "chain-strata": (
        *AROUND,
        Stratified("town", 2, False),
        ChainSynthesis(("town", "age"), (2, 3), (40, 20), (0, 0), 100, 100, 5, 20, 0, 100, 0),
        Shuffled(100),
        PersonsBounded(100),
    ),
    "swap": shuffled(Swapped("window", ("age", "pay"), (80, 40), 100, 5.0, missing=1)),
    "swap-leaves": shuffled(
        Swapped("leaves", ("age",), (80,), 100, None, "class", 4, 20, 0), Unchanged(("class", "town"), 1)
    ),
    "subsample": shuffled(Sampled(500, 100, 300, 60, True), Unchanged(("age", "town"), 2)),
    "sample-rows": shuffled(Sampled(500, 100, 500, 100), Unchanged(("age", "town"), 0)),
    "aggregate": shuffled(
        Aggregated(("died", "born"), ("calendar", "file"), (2, 1)),
        Unchanged(("age",), 1),
        IdenticalRows(("age", "died"), 100, 1, 7),
    ),
    "block": shuffled(
        Blocked(("age", "pay"), (12, 0), 100, 6, True),
        IdenticalRows(("age", "pay"), 100, 6, 0),
        Unchanged(("age", "pay"), 1),
    ),
    "block-rows": shuffled(
        Blocked(("age",), (12,), 100, 5, False), IdenticalRows(("age",), 100, 5, 0), Unchanged(("age",), 1)
    ),
    "downgrade": shuffled(
        Downgraded("class", 100, 40, 0.1, 0.05, 3, 9, ("age", "pay"), (11, 3)), Unchanged(("age", "pay", "town"), 1)
    ),
    "downgrade-nothing": shuffled(Downgraded("class", 100, 40, 1.0, 0.9, 3, 9, (), ())),
    **{
        f"transactions-{law.name}-{place}": shuffled(
            randomized_transactions(law, 6, declared=place == 0), TransactionsReleased(100, law.width, 400, 0)
        )
        for place, law in enumerate(OPERATORS)
    },
    "transactions-hide": shuffled(
        TransactionPersons(50, 4), RulesHidden("consequent", 2, 0.01, 0.5, 9, 0), TransactionsReleased(100, 30, 400, 0)
    ),
    "transactions-hide-antecedent": shuffled(
        RulesHidden("antecedent", 1, 0.3, 0.5, 0, 9), TransactionsReleased(100, 30, 400, 0)
    ),
    "transactions-block": shuffled(RulesBlocked(2, 0.01, 0.5, 0.1), TransactionsReleased(100, 30, 400, 5)),
    "stream-persons": (
        *AROUND,
        Maintained("AY05 dynamic maintenance, started by MDAV", "strict", 6, 9, 0, 12, 0, 0, 0, 1, 0),
        EpochPublished(1, 9, 0, 120, 12),
        PersonRowsBounded(3),
        Shuffled(120),
    ),
    "stream-rows-leave": (
        *AROUND,
        Maintained("AY05 dynamic maintenance, started by MDAV", "strict", 5, 9, 0, 5, 0, 0, 0, 0, 0),
        EpochPublished(1, 9, 0, 120, 12),
        RowsKept(0, 0, False),
        Shuffled(120),
    ),
    "joint-columns-split": (
        *AROUND,
        FILLED,
        BLUR,
        Shuffled(100),
        Joint("vertical", ("bank", "clinic"), ("bank", "clinic"), "cheetah", "", "split", 1, 0),
        Opened("group sums", "the sum of the rows of each group", "opened", ("bank", "clinic"), 54, 1),
    ),
    "joint-columns-three": (
        *AROUND,
        FILLED,
        ComponentNoise("laplace", 0.2, 1, "record", 0.001, 2.0**-20),
        Shuffled(100),
        Joint("vertical", ("bank", "clinic", "shop"), ("bank", "clinic", "shop"), "aby3", "", "each", 3, 0),
        LEDGER,
        Opened("others", "this", "opened", ("bank",), 3, 1),
    ),
    "joint-rows-two": (
        *AROUND,
        FILLED,
        BLUR,
        CountsKept(1, 0),
        Shuffled(100),
        Joint("horizontal", ("bank", "clinic"), ("bank", "clinic"), "cheetah", "last", "", 3, 2),
        Opened("group sums", "the sum of the rows of each group", "sum", ("bank", "clinic"), 54, 1),
    ),
}


def shown(facts: tuple[Fact, ...]) -> str:
    claims, refused = draw_claims(facts)
    lines = [f"{claim.kind}: {claim.claim}\n  basis: {claim.basis}\n  assumes: {claim.assumes}" for claim in claims]
    lines += [f"refused: {each.claim}\n  because: {each.reason}" for each in refused]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("method", METHODS)
def test_the_sentences_of_a_method_are_these_and_no_others(method: str) -> None:
    assert shown(METHODS[method]) == (GOLDEN / f"{method}.txt").read_text(encoding="utf-8")


def test_every_golden_file_is_looked_at() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(METHODS)
