"""A stream's epochs beside each other: what can be measured of them without one raw row."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sfumato.assess.columns import read_pairs
from sfumato.assess.findings import Direction, Family, Finding, not_run
from sfumato.assess.risk.closest import verbatim_finding
from sfumato.assess.utility.association import association_findings
from sfumato.assess.utility.marginals import marginal_findings
from sfumato.assess.utility.moments import Plan, gather
from sfumato.facts import EpochPublished, Fact, Maintained
from sfumato.tables.codec import Codec

__all__ = ["epoch_findings"]

_FEWEST = (
    "The fewest fresh records behind any group whose rows changed from one epoch to the next, over all epochs: whoever "
    "takes one epoch from another learns of so many together, never of one. Beside it the fewest that may ever be "
    "(baseline)."
)
_REPEATED = "The share of rows that the last epoch held too, word for word: they tell nothing new."
_MOVED = (
    "How much the columns changed since the last epoch, on average: 0 means no column, 1 means that none has anything "
    "in common with what it was; beside two draws from the same people (baseline)."
)
_LINKS = "How much the links between columns changed since the last epoch, beside two draws from the same (baseline)."


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
    if before is None or after is None or codec is None or not before.num_rows or not after.num_rows:
        because = "this is the first epoch" if len(ledger) == 1 else "the rows of the last epoch are not at hand"
        return (_fewest(facts, ledger), *_unknown(because))
    pairs = read_pairs(before, after, codec)
    plan = Plan.of(pairs)
    first, second = (gather(plan, [getattr(pair, side) for pair in pairs], rng) for side in ("original", "released"))
    links = association_findings([pair.name for pair in pairs], first, second, rng)
    repeated = verbatim_finding([pair.original for pair in pairs], [pair.released for pair in pairs])
    return (
        _fewest(facts, ledger),
        dataclasses.replace(
            repeated, name="epoch-rows-repeated", direction=Direction.HIGHER, meaning=_REPEATED, baseline=None
        ),
        dataclasses.replace(marginal_findings(pairs, rng)[0], name="epoch-marginal-distance", meaning=_MOVED),
        dataclasses.replace(links[0], name="epoch-association-difference", meaning=_LINKS),
    )


def _fewest(facts: Sequence[Fact], ledger: Sequence[EpochPublished]) -> Finding:
    name, changed = "epoch-change-smallest", [line.fresh for line in ledger if line.renewed]
    if not changed:
        return not_run(name, Family.PRIVACY, Direction.HIGHER, _FEWEST, "nothing has changed in any epoch")
    floor = next((float(fact.k) for fact in facts if isinstance(fact, Maintained)), None)
    most = float(max(line.rows for line in ledger))
    fewest = float(min(changed))
    return Finding(
        name, Family.PRIVACY, fewest, Direction.HIGHER, (0.0, most), _FEWEST, baseline=floor, unit="count", public=True
    )


def _unknown(because: str) -> tuple[Finding, ...]:
    return (
        not_run("epoch-rows-repeated", Family.PRIVACY, Direction.HIGHER, _REPEATED, because),
        not_run("epoch-marginal-distance", Family.UTILITY, Direction.LOWER, _MOVED, because),
        not_run("epoch-association-difference", Family.UTILITY, Direction.LOWER, _LINKS, because),
    )
