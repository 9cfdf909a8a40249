"""The facts of a joint run, stated alike at every party."""

from __future__ import annotations

import numpy as np

from sfumato.engines.agreed import Agreed
from sfumato.errors import PrivacyRefusal
from sfumato.facts import BoundsKept, ColumnsDropped, Drawn, Fact, Joint, Opened
from sfumato.parties.ledger import Ledger
from sfumato.parties.plan import JointPlan, JointResult
from sfumato.perturb.laplace_pca import most_components, state_facts
from sfumato.perturb.noise import number_blocks
from sfumato.randomness import Randomness
from sfumato.records import Layout, Records
from sfumato.tables.grid import has_bounds

__all__ = ["METHOD", "joint_facts", "noised_columns"]

METHOD = "joint-laplace-pca"
"""How a certificate names what was run."""


def joint_facts(
    plan: JointPlan, agreed: Agreed, result: JointResult, ledger: Ledger, *, engine: str, computing: tuple[str, ...]
) -> tuple[Fact, ...]:
    """State what was done, and who saw what.

    Parameters
    ----------
    plan : JointPlan
    agreed : Agreed
    result : JointResult
    ledger : Ledger
    engine : str
        What was computed with: that of the plan, or "plain" where it was in the clear.
    computing : tuple of str
        The parties that held shares.
    """
    randomness = Randomness(plan.seed)
    components = most_components(result.layout)
    if result.noised > components:
        raise PrivacyRefusal(
            f"a group varies in {result.noised} components where {components} are possible; nothing is released. "
            "Please report this as a defect"
        )
    levels = np.full(len(result.labels), result.level, dtype=np.int64)
    nothing = np.zeros(len(result.labels), dtype=np.int64)
    released = Records(result.values, result.layout, nothing, nothing.copy())
    vertical = plan.partition == "vertical"
    joint = Joint(
        partition=plan.partition,
        parties=plan.parties,
        computing=computing,
        engine=engine,
        centres="" if vertical else plan.centres,
        noise=plan.noise if vertical else "",
        rounds=result.rounds,
        bare=result.bare,
    )
    return (
        Drawn(randomness.mode.value, "ChaCha20" if randomness.seed is None else "PCG64"),
        ColumnsDropped(agreed.dropped, ()),
        *state_facts(plan.mechanism, released, levels, result.labels, components),
        *_bounds_kept(agreed, result.layout),
        joint,
        *_openings(ledger),
    )


def noised_columns(layout: Layout) -> frozenset[str]:
    """Columns that get noise, which bounds that were only observed do not cut."""
    return frozenset(block.column for block in number_blocks(layout))


def _bounds_kept(agreed: Agreed, layout: Layout) -> tuple[Fact, ...]:
    """State which columns that got noise were held by declared bounds, or by the ends of an order."""
    noised = noised_columns(layout)
    held = tuple(field.name for field in agreed.public if field.name in noised and has_bounds(field))
    return (BoundsKept(held),) if held else ()


def _openings(ledger: Ledger) -> list[Opened]:
    """Give the lines of the ledger that were seen in the clear, those of several owners as one."""
    lines: dict[tuple[str, tuple[str, ...]], Opened] = {}
    for row in ledger.openings:
        before = lines.get((row.label, row.to))
        numbers, times = (0, 0) if before is None else (before.numbers, before.times)
        lines[row.label, row.to] = Opened(
            row.label, row.what, row.action, row.to, numbers + row.numbers, times + row.times
        )
    return list(lines.values())
