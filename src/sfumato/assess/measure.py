"""The whole measurement: original against released, at the owner's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from sfumato.assess.columns import ColumnPair, read_pairs
from sfumato.assess.figures.album import draw_album
from sfumato.assess.figures.association import Links
from sfumato.assess.findings import Direction, Family, Finding, not_run
from sfumato.assess.report import Report
from sfumato.assess.risk.closest import Closest, closest_findings, measure_closest, verbatim_finding
from sfumato.assess.risk.groups import group_findings
from sfumato.assess.utility.association import association, association_alone, association_findings
from sfumato.assess.utility.condensation import condensation_findings
from sfumato.assess.utility.covariance import covariance_findings
from sfumato.assess.utility.marginals import marginal_findings
from sfumato.assess.utility.moments import Plan, gather
from sfumato.facts import Fact
from sfumato.mechanism import Workings
from sfumato.progress import tell
from sfumato.tables.codec import Codec

__all__ = ["Measured", "assess", "measure"]

_STAGE = "measuring"


@dataclass(frozen=True, eq=False, repr=False)
class Measured:
    """Findings, and what the figures are drawn from."""

    findings: tuple[Finding, ...]
    pairs: tuple[ColumnPair, ...]
    links: Links | None
    closest: Closest | None


def assess(
    original: pa.Table,
    released: pa.Table,
    codec: Codec,
    *,
    facts: tuple[Fact, ...] = (),
    workings: Workings | None = None,
    holdout: pa.Table | None = None,
    rng: np.random.Generator,
) -> Report:
    """Measure what the released table still gives and what it gives away.

    Parameters
    ----------
    original : pyarrow.Table
        The rows that were sanitized.
    released : pyarrow.Table
        The released rows, in the same types.
    codec : Codec
        Fitted on the original.
    facts : tuple of Fact
        What the mechanism did.
    workings : Workings, optional
        The groups; findings about them are not run without.
    holdout : pyarrow.Table, optional
        Rows that were kept out of the release.
    rng : numpy.random.Generator
        For redraws and samples.
    """
    measured = measure(original, released, codec, facts=facts, workings=workings, holdout=holdout, rng=rng)
    tell(_STAGE, 0.6)
    pairs = measured.pairs if released.num_rows else ()
    figures = draw_album(pairs, measured.links, measured.closest, workings)
    tell(_STAGE, 1.0)
    return Report(measured.findings, figures, original.num_rows, released.num_rows)


def measure(
    original: pa.Table,
    released: pa.Table,
    codec: Codec,
    *,
    facts: tuple[Fact, ...] = (),
    workings: Workings | None = None,
    holdout: pa.Table | None = None,
    rng: np.random.Generator,
) -> Measured:
    """Measure as `assess` does, and draw nothing."""
    tell(_STAGE, 0.0)
    pairs = read_pairs(original, released, codec)
    values = codec.encode(original, unseen="mean").values
    groups, condensed = group_findings(workings, facts), condensation_findings(values, workings)
    tell(_STAGE, 0.1)
    if released.num_rows == 0:
        return Measured(_privacy_first((*groups, *_nothing_to_compare(), *condensed)), pairs, None, None)
    compared, links = _compare(pairs, rng)
    near, closest = _closeness(pairs, values, released, codec, holdout, rng)
    return Measured(_privacy_first((*groups, *near, *condensed, *compared)), pairs, links, closest)


def _compare(pairs: tuple[ColumnPair, ...], rng: np.random.Generator) -> tuple[tuple[Finding, ...], Links]:
    """Measure what is read off the columns: marginals, links, covariances."""
    marginals = marginal_findings(pairs, rng)
    tell(_STAGE, 0.15)
    plan = Plan.of(pairs)
    with threadpool_limits(limits=1, user_api="blas"):  # tall and narrow products: threads made them 50 times slower
        before = gather(plan, [pair.original for pair in pairs], rng)
        after = gather(plan, [pair.released for pair in pairs], rng)
        tell(_STAGE, 0.25)
        links = association_findings([pair.name for pair in pairs], before, after, rng)
        tell(_STAGE, 0.3)
        covariances = covariance_findings(before, after, rng)
        tell(_STAGE, 0.35)
        matrices = Links(association(before.total, plan), association(after.total, plan), association_alone(pairs))
    return (*marginals[:2], *links, *covariances, *marginals[2:]), matrices


def _closeness(
    pairs: tuple[ColumnPair, ...],
    values: NDArray[np.float64],
    released: pa.Table,
    codec: Codec,
    holdout: pa.Table | None,
    rng: np.random.Generator,
) -> tuple[tuple[Finding, ...], Closest | None]:
    """Measure how near released rows come to original ones."""
    verbatim = verbatim_finding([pair.original for pair in pairs], [pair.released for pair in pairs])
    rows = (len(values), released.num_rows)
    if len(values) < 2:
        return (verbatim, *closest_findings(None, rows, "the original has a single row and so no neighbours")), None
    held_out = None if holdout is None else codec.encode(holdout, unseen="mean").values
    closest = measure_closest(values, codec.encode(released, unseen="mean").values, held_out, rng)
    return (verbatim, *closest_findings(closest, rows)), closest


def _nothing_to_compare() -> tuple[Finding, ...]:
    because = "the released table has no rows"
    missing = (
        ("verbatim-rows", Family.PRIVACY, Direction.LOWER, "The share of released rows that equal an original row."),
        ("marginal-distance", Family.UTILITY, Direction.LOWER, "How much the columns changed on average."),
        ("association-difference", Family.UTILITY, Direction.LOWER, "How much the links between columns changed."),
        ("covariance-compatibility", Family.UTILITY, Direction.HIGHER, "How well variances and covariances agree."),
    )
    unknown = tuple(not_run(name, family, way, meaning, because) for name, family, way, meaning in missing)
    return (*closest_findings(None, (0, 0), because), *unknown)


def _privacy_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    order = list(Family)
    return tuple(sorted(findings, key=lambda finding: order.index(finding.family)))
