"""The report of an outcome, whoever made the table: compared with the original, measured and judged by a policy."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from sfumato.assess.findings import Finding, privacy_first
from sfumato.assess.glossary import percent
from sfumato.assess.measure import assess, assess_without_comparison, epoch_findings
from sfumato.assess.report import Report, Verdict
from sfumato.assess.study import MeasureOptions, Study, StudyDetails, study_of
from sfumato.core.errors import OptionError, SfumatoError
from sfumato.core.randomness import Randomness
from sfumato.engines.outcome import Comparison, NoComparison, Outcome
from sfumato.options import PublishOptions
from sfumato.publish.judge import judge_report
from sfumato.publish.policy import BUILT_IN, USUAL, Policy, words_of
from sfumato.publish.shadows import FEWEST_PEOPLE, MOST_ROWS, ShadowAudit, audit, can_be_audited
from sfumato.tables.recoding import known_columns, known_of

__all__ = ["Suggest", "assess_outcome", "check_measuring", "measure_options", "study_outcome", "with_audit"]

_FEWEST_SHADOWS, _MOST_SHADOWS = 2, 10_000
_TRAINED = 0.7
_UNSEEN = (
    f"Nobody was held out, so models were trained on one more release, of a random {percent(_TRAINED)} of the people, "
    f"and tested on the other {percent(1.0 - _TRAINED)}."
)

Suggest: TypeAlias = Callable[[Report, Policy], Verdict]
"""Gives the verdict of a report with what to try next."""


def assess_outcome(outcome: Outcome, options: PublishOptions, *, suggest: Suggest | None = None) -> Report | None:
    """Report of an outcome with the verdict of the policy, or of the usual one; None if nothing is to be measured.

    The policy of the options is loaded already. If it is not met, ``suggest`` finds what to try next.
    """
    policy = options.policy
    report = _measure(outcome, options) if options.report else None
    if not options.report and policy is None:
        return None
    report = judge_report(report, outcome.facts, policy, command=options.command or words_of(outcome.recipe, policy))
    if suggest is not None and report.verdict is not None and report.verdict.to_try:
        report = dataclasses.replace(report, verdict=suggest(report, policy or BUILT_IN[USUAL]))
    return report


def study_outcome(outcome: Outcome, options: PublishOptions, rng: np.random.Generator) -> Study:
    """The study of an outcome that has original rows to compare with."""
    comparison = outcome.comparison
    assert isinstance(comparison, Comparison)
    known = known_columns(options.quasi_identifiers, outcome.recipe.schema)
    return study_of(
        comparison.original,
        comparison.released,
        comparison.codec,
        facts=outcome.facts,
        workings=outcome.compared_workings,
        holdout=comparison.outside,
        details=StudyDetails(
            comparison.records,
            linked=comparison.linked,
            standings=comparison.standings,
            quasi_identifiers=known_of(known, comparison.codec.schema),
            time_limit=options.time_limit,
            judged=options.policy is not None,
            options=measure_options(options),
        ),
        rng=rng,
    )


def measure_options(options: PublishOptions) -> MeasureOptions:
    """The owner's choices of measures."""
    return MeasureOptions(options.accurate_within, options.clusters, options.sampling_fraction)


def _measure(outcome: Outcome, options: PublishOptions) -> Report:
    comparison, randomness = outcome.comparison, Randomness(outcome.recipe.options.seed)
    rng = randomness.generator("assess")
    if isinstance(comparison, NoComparison):
        report = assess_without_comparison(
            outcome.table,
            comparison.reason,
            facts=outcome.facts,
            workings=outcome.workings,
            before=comparison.before,
            codec=comparison.codec,
            rng=rng,
        )
        return dataclasses.replace(report, findings=(*report.findings, *_costs(outcome)))
    if isinstance(comparison, Comparison):
        audited = _audit(outcome, comparison, options, randomness)
        if audited is not None and options.time_limit is not None:
            options = dataclasses.replace(options, time_limit=options.time_limit / 2)
        study = study_outcome(outcome, options, rng)
        study = dataclasses.replace(study, unseen=_unseen_study(outcome, study, options, randomness))
        epochs = epoch_findings(outcome.facts, comparison.before, comparison.released, comparison.codec, rng)
        report = with_audit(assess(study, epochs), audited)
        if study.unseen is not None:
            report = dataclasses.replace(report, notes=(*report.notes, _UNSEEN))
    else:
        report = comparison.assess(outcome.facts, judged=options.policy is not None, rng=rng)
    seconds = report.seconds if outcome.seconds is None else {"sanitizing": outcome.seconds, **report.seconds}
    findings, notes = (*report.findings, *_costs(outcome)), (*comparison.notes, *report.notes)
    return dataclasses.replace(report, findings=findings, seconds=seconds, notes=notes)


def _audit(
    outcome: Outcome, comparison: Comparison, options: PublishOptions, randomness: Randomness
) -> ShadowAudit | None:
    """Shadow releases of a method that can be run again, if a policy is to be judged and nobody was held out."""
    run, number = outcome.resolved, options.shadows
    policy = BUILT_IN[USUAL] if options.policy is None and number else options.policy
    if policy is None or number == 0 or run is None or comparison.outside is not None:
        return None
    if not can_be_audited(run.mechanism) or not policy.limits or run.job.original.num_rows > MOST_ROWS:
        return None
    time_limit = None if options.time_limit is None else options.time_limit / 2
    return audit(
        run,
        policy,
        randomness.generator("shadow releases"),
        time_limit=time_limit,
        number=number,
        declared=options.quasi_identifiers,
    )


def _unseen_study(outcome: Outcome, study: Study, options: PublishOptions, randomness: Randomness) -> Study | None:
    """Study of one more release of the same plan from most of the people, if a target has nobody to be tested on."""
    run = outcome.resolved
    if study.target is None or study.holdout is not None or run is None or not can_be_audited(run.mechanism):
        return None
    original, persons, codec = run.job.original, run.job.records.persons, run.job.codec
    whose = np.arange(original.num_rows) if persons is None else np.unique(persons, return_inverse=True)[1]
    people = int(whose.max()) + 1
    if people < FEWEST_PEOPLE or original.num_rows > MOST_ROWS:
        return None
    rng = randomness.generator("unseen people")
    member = (rng.random(people) < _TRAINED)[whose]
    rows, others = np.flatnonzero(member), np.flatnonzero(~member)
    try:
        released = run.shadow(rows, rng)
    except SfumatoError:  # too few people of some level or class are left
        return None
    return study_of(
        original.take(rows),
        released,
        codec,
        facts=outcome.facts,
        holdout=original.take(others),
        details=StudyDetails(
            run.job.records.take(rows),
            held_persons=whose[others],
            time_limit=options.time_limit,
            options=study.options,
        ),
        rng=rng,
    )


def with_audit(report: Report, audited: ShadowAudit | None) -> Report:
    """Report with what an audit found, before the attacks on the release itself."""
    if audited is None:
        return report
    if audited.reason:
        return dataclasses.replace(report, notes=(*report.notes, f"No shadow releases: {audited.reason}."))
    sizes = {
        **report.sizes,
        "shadow_releases": audited.releases,
        "shadow_releases_needed": audited.needed,
        "people_needed": audited.people_needed,
    }
    findings = privacy_first((*audited.findings, *report.findings))
    return dataclasses.replace(
        report, findings=findings, sizes=sizes, seconds={**report.seconds, "shadow releases": audited.seconds}
    )


def _costs(outcome: Outcome) -> tuple[Finding, ...]:
    from sfumato.assess.utility.distortion import cost_findings

    return cost_findings(outcome.seconds or 0.0, outcome.sent)


def check_measuring(options: PublishOptions) -> None:
    """Refuse a time limit, a sampling fraction or a number of shadow releases that cannot be."""
    time_limit, fraction = options.time_limit, options.sampling_fraction
    if options.shadows is not None and options.shadows not in (0, *range(_FEWEST_SHADOWS, _MOST_SHADOWS + 1)):
        raise OptionError(f"shadows must be 0 for none, or {_FEWEST_SHADOWS} to {_MOST_SHADOWS}; try 20")
    if options.shadows and not options.report:
        raise OptionError("--shadows has no effect with --no-report; drop one")
    if fraction is not None and not 0.0 < fraction <= 1.0:
        raise OptionError("the sampling fraction must lie above 0 and be at most 1; try 0.1")
    if fraction is not None and not options.quasi_identifiers:
        raise OptionError("--sampling-fraction has no effect without --quasi-identifier; name one")
    if time_limit is not None and not (math.isfinite(time_limit) and time_limit > 0):
        raise OptionError("the time limit must be a number of seconds above 0; try 30")
