"""All figures of a report, in the order of its pages."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.assess.columns import ColumnPair
from sfumato.assess.figures.association import Links, association_figures
from sfumato.assess.figures.distances import distance_figures
from sfumato.assess.figures.groups import group_figures
from sfumato.assess.figures.marginals import marginal_figures
from sfumato.assess.figures.svg import Figure
from sfumato.assess.risk.closest import Closest
from sfumato.mechanism import Workings
from sfumato.progress import tell

__all__ = ["draw_album"]


def draw_album(
    pairs: Sequence[ColumnPair],
    links: Links | None,
    closest: Closest | None,
    workings: Workings | None,
) -> tuple[Figure, ...]:
    """Draw whatever there is to draw."""
    marginals = marginal_figures(pairs)
    tell("measuring", 0.9)
    heat = () if links is None else association_figures([pair.name for pair in pairs], links)
    return (*distance_figures(closest), *group_figures(workings), *heat, *marginals)
