"""All that a joint run declares to show, by its plan: nothing else can be opened or stand in a ledger."""

from __future__ import annotations

from sfumato.parties.plan import JointPlan
from sfumato.parties.transcript import Leak

__all__ = ["AGREEMENT", "RELEASED_CELLS", "leaks_of"]

AGREEMENT = Leak(
    "agreement", "told", "all", "names, kinds and declared domains of an owner's columns, and names of those it drops"
)
"""What owners tell each other before they start."""

RELEASED_CELLS = Leak(
    "released cells", "told", "all", "the cells of an owner's columns as they are released", implied=True
)
"""What owners of columns tell each other in the end."""

_ABOUT = {
    leak.label: leak
    for leak in (
        AGREEMENT,
        Leak("time", "told", "all", "the time that stands on the certificate"),
        Leak("traffic", "told", "all", "how many bytes and messages a party sent", implied=True),
    )
}


def leaks_of(plan: JointPlan) -> dict[str, Leak]:
    """All that a run of this plan declares to show, by label."""
    if plan.partition == "vertical":
        from sfumato.parties import vertical

        return {**_ABOUT, **vertical.LEAKS, RELEASED_CELLS.label: RELEASED_CELLS}
    from sfumato.parties import horizontal

    return {**_ABOUT, **horizontal.leaks(plan.centres)}
