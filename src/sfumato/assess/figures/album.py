"""All figures of a report, in the order of its pages."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.assess.figures.association import Links, association_figures
from sfumato.assess.figures.components import component_figures
from sfumato.assess.figures.distances import distance_figures
from sfumato.assess.figures.groups import group_figures
from sfumato.assess.figures.marginals import marginal_figures
from sfumato.assess.figures.models import model_figures
from sfumato.assess.figures.risk import risk_figures
from sfumato.assess.figures.svg import Figure
from sfumato.assess.findings import Finding
from sfumato.assess.risk.closest import Closest
from sfumato.assess.study import Study
from sfumato.progress import tell

__all__ = ["draw_album"]


def draw_album(
    study: Study,
    findings: Sequence[Finding],
    links: Links | None,
    closest: Closest | None,
) -> tuple[Figure, ...]:
    """Draw whatever there is to draw."""
    pairs = study.pairs if len(study.released) else ()
    marginals = marginal_figures(pairs)
    tell("measuring", 0.9)
    points = component_figures(study) if len(study.released) else ()
    heat = () if links is None else association_figures([pair.name for pair in pairs], links)
    told = (*risk_figures(findings), *model_figures(findings))
    return (*told, *distance_figures(closest), *group_figures(study.workings), *points, *heat, *marginals)
