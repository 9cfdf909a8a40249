"""The sentences of each method, word for word, with the kind of each: a change of words is a change of promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.core.facts import (
    BoundsKept,
    Chained,
    ClassPure,
    ColumnsDropped,
    ComponentNoise,
    CountsKept,
    DespitePolicy,
    DomainsObserved,
    Drawn,
    Enhanced,
    EpochPublished,
    Fact,
    Grouped,
    HeldOut,
    Joint,
    Maintained,
    Noised,
    Opened,
    PersonsBounded,
    RareValues,
    RowsDrawn,
    RowsKept,
    Shuffled,
    ShuffledWithin,
    Stratified,
    Synthesized,
    TargetMoved,
    Transformed,
    Untouched,
)
from sfumato.privacy.claims import draw_claims
from tests.privacy.drawn_facts import SPECS, randomized_column

GOLDEN = Path(__file__).parent / "golden"
AROUND: tuple[Fact, ...] = (Drawn("release", "ChaCha20"), ColumnsDropped(("name", "id"), ("lvl",)))
DRAWN = Synthesized("mean and covariance", "uniform along eigenvectors", 100)
GROUPED = Grouped("MDAV", 100, 9, 10, 10, 12, 0, 0, 0, 0)
FILLED = Grouped("K-means with small clusters filled from larger ones", 100, 4, 25, 25, 25, 0, 0, 0, 5)
BLUR = ComponentNoise("laplace", 0.2, 3, "component", 0.001, 2.0**-20)
LEDGER = Opened("group sums", "the sum of the rows of each group", "sum", ("bank", "clinic", "shop"), 54, 1)
METHODS: dict[str, tuple[Fact, ...]] = {
    "condense": (*AROUND, HeldOut(7), GROUPED, DRAWN, CountsKept(2, 1), Shuffled(100)),
    "condense-rare-pooled": (
        *AROUND,
        RareValues("pool", 12, 3, 40, 71, 2, 0, ("smoker",), True),
        GROUPED,
        DRAWN,
        CountsKept(2, 1),
        Shuffled(100),
    ),
    "condense-rare-kept": (
        *AROUND,
        RareValues("keep", 12, 3, shown=40),
        GROUPED,
        DRAWN,
        CountsKept(2, 1),
        Shuffled(100),
    ),
    "condense-equal-rows": (
        *AROUND,
        Stratified("town", 3, False),
        Grouped("MDAV", 100, 20, 2, 2, 5, 0, 4, 0, 12),
        DRAWN,
        Shuffled(100),
    ),
    "condense-level-1": (
        Drawn("rehearsal", "PCG64"),
        ColumnsDropped((), ()),
        Grouped("principal-axis tree and local search", 100, 30, 1, 1, 5, 0, 10, 8, 8),
        DRAWN,
        Shuffled(100),
    ),
    "condense-not-looked": (*AROUND, Grouped("MDAV", 100, 9, 10, 10, 12, 0, 0, 0, None), DRAWN, Shuffled(100)),
    "condense-despite-policy": (
        *AROUND,
        HeldOut(7),
        GROUPED,
        DRAWN,
        Shuffled(100),
        DespitePolicy("research", "cannot-tell"),
    ),
    "classwise": (*AROUND, ClassPure("outcome", 3), GROUPED, DRAWN, Shuffled(100)),
    "chain": (
        *AROUND,
        HeldOut(7),
        Chained(
            ("outcome", "age", "town"),
            (1, 3, 2),
            (100, 25, 30),
            (0, 1, 0),
            100,
            100,
            5,
            20,
            5,
            12,
            0,
            71,
            29,
            ("age",),
        ),
        Shuffled(100),
    ),
    "chain-persons": (
        *AROUND,
        Chained(("outcome", "age"), (1, 3), (60, 20), (0, 1), 100, 100, 5, 20, 5, 12, 0, 71, 29),
        Shuffled(100),
        PersonsBounded(60, 7),
    ),
    "chain-where": (
        *AROUND,
        Chained(("age", "outcome"), (1, 3), (100, 20), (0, 1), 100, 250, 5, 20, 5, 12, 0, 71, 29),
        Shuffled(250),
        RowsDrawn(100, 250, "age > 60"),
    ),
    "condense-rows": (
        *AROUND,
        GROUPED,
        Synthesized("mean and covariance", "uniform along eigenvectors", 30),
        CountsKept(1, 0),
        Shuffled(30),
        RowsDrawn(100, 30),
    ),
    "laplace-pca": (*AROUND, FILLED, BLUR, CountsKept(1, 0), Shuffled(100)),
    "noise": (
        *AROUND,
        Noised("uniform", "additive", 0.5, 3, False, 2.0**-17),
        Enhanced(0.05, 5),
        Untouched(1, 2),
        BoundsKept(("age", "mark")),
        Shuffled(100),
    ),
    "noise-multiplicative": (*AROUND, Noised("gaussian", "multiplicative", 0.2, 1, False, 2.0**-18), Shuffled(100)),
    "rotate": (
        *AROUND,
        Transformed(("rotate",), ("age", "pay"), 3),
        TargetMoved("pay"),
        Untouched(1, 0),
        Shuffled(100),
    ),
    "hybrid-in-runs": (*AROUND, Transformed(("add", "rotate"), ("age", "pay"), 4), ShuffledWithin(50)),
    "randomize": (
        *AROUND,
        randomized_column("age", SPECS[0]),
        randomized_column("town", SPECS[1]),
        DomainsObserved(("town",)),
        Shuffled(100),
    ),
    "randomize-declared": (*AROUND, randomized_column("age", SPECS[0]), Untouched(0, 1), Shuffled(100)),
    "randomize-unbounded": (*AROUND, randomized_column("age", SPECS[2]), Untouched(0, 1), Shuffled(100)),
    "stream": (
        *AROUND,
        Maintained("AY05 dynamic maintenance, started by MDAV", "paper", 5, 12, 9, 3, 3, 2, 1, 1, 1, 6),
        EpochPublished(1, 9, 0, 90, 5),
        EpochPublished(2, 1, 8, 100, 7),
        Shuffled(100),
    ),
    "stream-measured": (
        *AROUND,
        Maintained("AY05 dynamic maintenance, started by MDAV", "strict", 5, 12, 9, 0, 12, 0, 0, 2, 0, 0),
        EpochPublished(1, 9, 0, 120, 12),
        RareValues("pool", 5, 2, 3, 7),
        RowsKept(50, 1, False),
        Shuffled(120),
    ),
    "stream-forgotten": (
        *AROUND,
        Maintained("AY05 dynamic maintenance, started by MDAV", "strict", 5, 12, 9, 0, 12, 0, 0, 2, 0, 0),
        EpochPublished(1, 9, 0, 120, 12),
        RareValues("keep", 5, 2, shown=4),
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
}


def shown(facts: tuple[Fact, ...]) -> str:
    claims, refused = draw_claims(facts)
    lines = [f"{claim.kind}: {claim.claim}\n  basis: {claim.basis}\n  assumes: {claim.assumes}" for claim in claims]
    lines += [f"refused: {each.claim}\n  because: {each.because}" for each in refused]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("method", METHODS)
def test_the_sentences_of_a_method_are_these_and_no_others(method: str) -> None:
    assert shown(METHODS[method]) == (GOLDEN / f"{method}.txt").read_text(encoding="utf-8")


def test_every_golden_file_is_looked_at() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(METHODS)
