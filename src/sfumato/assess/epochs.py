"""A stream's epochs beside each other: what can be measured of them without one raw row."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from sfumato.assess.columns import read_pairs
from sfumato.assess.findings import Family, Finding
from sfumato.assess.frame import Measure, NotRun, Number, Stated, Values
from sfumato.assess.risk.closest import verbatim_rows
from sfumato.assess.utility.association import Coordinates, association_difference, gather
from sfumato.assess.utility.comparison import marginal_distances
from sfumato.facts import EpochPublished, Fact, Maintained
from sfumato.tables.codec import Codec

__all__ = ["EPOCHS", "epoch_findings"]

EPOCHS = Measure(
    "epochs",
    Family.PRIVACY,
    "Aggarwal & Yu 2005 published by epochs",
    (
        Number(
            "epoch-change-smallest",
            "The fewest fresh records behind any group whose rows changed from one epoch to the next, over all epochs: "
            "whoever takes one epoch from another learns of so many together, never of one. Beside it the fewest that "
            "may ever be (baseline)",
            "Fewest records behind a change between epochs",
            (0.0, None),
            "count",
            higher=True,
        ),
        Number(
            "epoch-rows-repeated",
            "The share of rows that the last epoch held too, word for word: they tell nothing new",
            "Rows that the last epoch held too",
            unit="share",
            higher=True,
        ),
        Number(
            "epoch-marginal-distance",
            "How much the columns changed since the last epoch, on average: 0 means no column, 1 means that none has "
            "anything in common with what it was; beside two draws from the same people (baseline)",
            "Change of columns since the last epoch",
            family=Family.UTILITY,
        ),
        Number(
            "epoch-association-difference",
            "How much the links between columns changed since the last epoch, beside two draws from the same "
            "(baseline)",
            "Change of links since the last epoch",
            (0.0, 2.0),
            family=Family.UTILITY,
        ),
    ),
    lambda _: (),  # epochs are compared without a study, by `epoch_findings`
)


def epoch_findings(
    facts: Sequence[Fact],
    before: pa.Table | None,
    after: pa.Table | None,
    codec: Codec | None,
    rng: np.random.Generator,
) -> tuple[Finding, ...]:
    """What an epoch shows beside the one before, and how few records are behind any change.

    Parameters
    ----------
    facts : sequence of Fact
        With the ledger of the epochs; without one there are no findings.
    before, after : pyarrow.Table or None
        Rows of the last epoch and of this one.
    codec : Codec or None
    rng : numpy.random.Generator
    """
    ledger = [fact for fact in facts if isinstance(fact, EpochPublished)]
    if not ledger:
        return ()
    return EPOCHS.findings(
        (("epoch-change-smallest", _fewest(facts, ledger)), *_compared(len(ledger), before, after, codec, rng))
    )


def _fewest(facts: Sequence[Fact], ledger: Sequence[EpochPublished]) -> Values | NotRun:
    changed = [line.fresh for line in ledger if line.renewed]
    if not changed:
        return NotRun("nothing has changed in any epoch")
    floor = next((float(fact.k) for fact in facts if isinstance(fact, Maintained)), None)
    bounds = (0.0, float(max(line.rows for line in ledger)))
    return Values(float(min(changed)), baseline=floor, range=bounds)


def _compared(
    epochs: int, before: pa.Table | None, after: pa.Table | None, codec: Codec | None, rng: np.random.Generator
) -> Iterator[Stated]:
    if before is None or after is None or codec is None or not before.num_rows or not after.num_rows:
        lacking = NotRun("this is the first epoch" if epochs == 1 else "the rows of the last epoch are not at hand")
        yield from ((name, lacking) for name in EPOCHS.names[1:])
        return
    pairs = read_pairs(before, after, codec)
    coordinates = Coordinates.of(pairs)
    sides = [[pair.original for pair in pairs], [pair.released for pair in pairs]]
    first, second = (gather(coordinates, side, rng) for side in sides)
    links = association_difference([pair.name for pair in pairs], first, second, rng)[0]
    yield "epoch-rows-repeated", dataclasses.replace(verbatim_rows(*sides), baseline=None)
    yield "epoch-marginal-distance", marginal_distances(pairs, rng)[0][1]
    yield "epoch-association-difference", links
