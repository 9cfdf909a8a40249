"""The whole measurement: original against released, at the owner's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pyarrow as pa

from sfumato.assess.catalogue import catalogue
from sfumato.assess.columns import ColumnPair
from sfumato.assess.epochs import epoch_findings
from sfumato.assess.figures.album import draw_album
from sfumato.assess.figures.association import Links
from sfumato.assess.findings import Direction, Family, Finding, not_run
from sfumato.assess.frame import run_measure
from sfumato.assess.report import Report
from sfumato.assess.risk.closest import Closest, closest_findings, measure_closest, verbatim_finding
from sfumato.assess.risk.groups import group_findings
from sfumato.assess.study import Study, study_of
from sfumato.assess.twins import held_out_notes
from sfumato.assess.utility.association import association, association_alone, association_findings
from sfumato.assess.utility.condensation import condensation_findings
from sfumato.assess.utility.covariance import covariance_findings
from sfumato.assess.utility.marginals import marginal_findings
from sfumato.assess.utility.moments import Plan, gather
from sfumato.documents import plain
from sfumato.facts import Fact
from sfumato.mechanism import Workings
from sfumato.progress import tell
from sfumato.records import Records
from sfumato.tables.codec import Codec
from sfumato.threads import one_thread

__all__ = ["Measured", "assess", "assess_apart", "measure", "measure_study"]

_STAGE = "measuring"
_COMPARED, _DRAWN = 0.2, 0.8  # how far the work is when columns are compared, and when figures are begun


@dataclass(frozen=True, eq=False, repr=False)
class Measured:
    """Findings, and what the figures are drawn from."""

    study: Study
    findings: tuple[Finding, ...]
    links: Links | None
    closest: Closest | None
    seconds: dict[str, float]


def assess(
    original: pa.Table,
    released: pa.Table,
    codec: Codec,
    *,
    facts: tuple[Fact, ...] = (),
    workings: Workings | None = None,
    records: Records | None = None,
    holdout: pa.Table | None = None,
    before: pa.Table | None = None,
    budget: float | None = None,
    judged: bool = False,
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
    records : Records, optional
        The original by this codec, where it was encoded before.
    holdout : pyarrow.Table, optional
        Rows that were kept out of the release.
    before : pyarrow.Table, optional
        What left in the epoch before, of a stream.
    budget : float, optional
        Seconds that the measuring may take; chooses how many rows are looked at.
    judged : bool
        Whether a policy is judged by the findings, which takes more people to be attacked.
    rng : numpy.random.Generator
        For redraws and samples.
    """
    begin = perf_counter()
    measured = measure(
        original,
        released,
        codec,
        facts=facts,
        workings=workings,
        records=records,
        holdout=holdout,
        budget=budget,
        judged=judged,
        rng=rng,
    )
    tell(_STAGE, _DRAWN)
    findings = _privacy_first((*measured.findings, *epoch_findings(facts, before, released, codec, rng)))
    figures = draw_album(measured.study, findings, measured.links, measured.closest)
    tell(_STAGE, 1.0)
    seconds = {**measured.seconds, "all": perf_counter() - begin}
    return Report(
        findings,
        figures,
        original.num_rows,
        released.num_rows,
        plain(measured.study.sizes),
        seconds,
        held_out_notes(measured.study),
        0 if holdout is None else holdout.num_rows,
    )


def assess_apart(
    released: pa.Table,
    because: str,
    *,
    facts: tuple[Fact, ...] = (),
    workings: Workings | None = None,
    before: pa.Table | None = None,
    codec: Codec | None = None,
    rng: np.random.Generator,
) -> Report:
    """Measure what can be measured without a raw row, and say of everything else why it was not.

    Parameters
    ----------
    released : pyarrow.Table
    because : str
        Why there are no rows to compare with.
    facts : tuple of Fact
    workings : Workings, optional
        With the sizes of groups.
    before : pyarrow.Table, optional
        What left in the epoch before.
    codec : Codec, optional
        Of both.
    rng : numpy.random.Generator
    """
    begin = perf_counter()
    unfit = [(each, each.applies(facts)) for each in catalogue()]
    lacking = [each.not_run(reason or because, applies=reason is None) for each, reason in unfit]
    findings = (
        *group_findings(workings, facts),
        *epoch_findings(facts, before, released, codec, rng),
        *_nothing_to_compare(because),
        *(finding for each in lacking for finding in each),
    )
    note = f"There were no original rows to compare with ({because}); what needs them was not run."
    seconds = {"all": perf_counter() - begin}
    rows = released.num_rows
    return Report(_privacy_first(findings), (), rows, rows, seconds=seconds, notes=(note,))


def measure(
    original: pa.Table,
    released: pa.Table,
    codec: Codec,
    *,
    facts: tuple[Fact, ...] = (),
    workings: Workings | None = None,
    records: Records | None = None,
    holdout: pa.Table | None = None,
    budget: float | None = None,
    judged: bool = False,
    rng: np.random.Generator,
) -> Measured:
    """Measure as `assess` does, and draw nothing."""
    tell(_STAGE, 0.0)
    study = study_of(
        original,
        released,
        codec,
        facts=facts,
        workings=workings,
        records=records,
        holdout=holdout,
        budget=budget,
        judged=judged,
        rng=rng,
    )
    return measure_study(study)


def measure_study(study: Study) -> Measured:
    """Run every measure and every attack on a study."""
    import sklearn.ensemble  # noqa: F401 - a pool of threads can be held once it is loaded

    with one_thread():
        return _measure_all(study)


def _measure_all(study: Study) -> Measured:
    begin = perf_counter()
    groups = group_findings(study.workings, study.facts)
    condensed = condensation_findings(study.original, study.workings)
    compared, links, closest = _nothing_to_compare("the released table has no rows"), None, None
    if len(study.released):
        columns, links = _compare(study.pairs, study.generator("columns"))
        near, closest = _closeness(study)
        compared = (*near, *columns)
    seconds = {"columns": perf_counter() - begin}
    tell(_STAGE, _COMPARED)
    more: list[Finding] = []
    measures = catalogue()
    for place, each in enumerate(measures, start=1):
        begin = perf_counter()
        more.extend(run_measure(each, study))
        seconds[each.name] = perf_counter() - begin
        tell(_STAGE, _COMPARED + (_DRAWN - _COMPARED) * place / len(measures))
    findings = _privacy_first((*groups, *condensed, *compared, *more))
    return Measured(study, findings, links, closest, seconds)


def _compare(pairs: tuple[ColumnPair, ...], rng: np.random.Generator) -> tuple[tuple[Finding, ...], Links]:
    """Measure what is read off the columns: marginals, links, covariances."""
    marginals = marginal_findings(pairs, rng)
    plan = Plan.of(pairs)
    before = gather(plan, [pair.original for pair in pairs], rng)
    after = gather(plan, [pair.released for pair in pairs], rng)
    tell(_STAGE, _COMPARED / 2)
    links = association_findings([pair.name for pair in pairs], before, after, rng)
    covariances = covariance_findings(before, after, rng)
    matrices = Links(association(before.total, plan), association(after.total, plan), association_alone(pairs))
    return (*marginals[:2], *links, *covariances, *marginals[2:]), matrices


def _closeness(study: Study) -> tuple[tuple[Finding, ...], Closest | None]:
    """Measure how near released rows come to original ones."""
    verbatim = verbatim_finding([pair.original for pair in study.pairs], [pair.released for pair in study.pairs])
    rows = (len(study.original), len(study.released))
    if len(study.original) < 2:
        return (verbatim, *closest_findings(None, rows, "the original has a single row and so no neighbours")), None
    closest = measure_closest(study.original, study.released, study.holdout, study.generator("closest"))
    return (verbatim, *closest_findings(closest, rows)), closest


def _nothing_to_compare(because: str) -> tuple[Finding, ...]:
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
