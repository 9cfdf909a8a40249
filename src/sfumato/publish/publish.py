"""From an outcome to a release: certified and measured here, for every engine, and nowhere else."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import pyarrow as pa

from sfumato.assess.measure import assess, assess_apart
from sfumato.assess.report import Report
from sfumato.engines.outcome import Apart, Outcome
from sfumato.errors import OptionError
from sfumato.facts import Fact, Unmeasured
from sfumato.privacy.certificate import certify
from sfumato.publish.advice import words_of
from sfumato.publish.judge import despite_facts, judge_report, refuse_unmet
from sfumato.publish.policy import Policy
from sfumato.publish.release import Release
from sfumato.randomness import Randomness
from sfumato.tables.spreadsheet import FormulaCount

__all__ = ["check_budget", "publish"]


def publish(
    outcome: Outcome,
    *,
    report: bool = True,
    budget: float | None = None,
    spreadsheet_safe: bool = False,
    policy: Policy | None = None,
    despite_policy: bool = False,
    command: Sequence[str] = (),
) -> Release:
    """Certify, measure and judge what an engine made; runs at the owner's, and writes nothing.

    Parameters
    ----------
    outcome : Outcome
    report : bool
        Whether to measure.
    budget : float, optional
        Seconds that the measuring may take; chooses how many rows are looked at.
    spreadsheet_safe : bool
        Write CSV with an apostrophe before what a spreadsheet would take for a formula.
    policy : Policy, optional
        What the release must meet.
    despite_policy : bool
        Release it all the same where it does not; the certificate says so.
    command : sequence of str
        Words of the command line that asked for it, for what to try next.

    Raises
    ------
    PolicyNotMet
        Where the policy is not met, or it cannot be told; it holds the report.
    """
    recipe, randomness = outcome.recipe, Randomness(outcome.recipe.seed)
    measured = _measure(outcome, budget, randomness, judged=policy is not None) if report else None
    if policy is not None:
        measured = judge_report(measured, outcome.facts, policy, command=command or words_of(recipe, policy))
        recipe = dataclasses.replace(recipe, policy=policy.title)
    unmeasured = () if report else (Unmeasured(),)
    despite = despite_facts(measured, despite=despite_policy)
    certificate = certify(
        (*outcome.facts, *_formulas(outcome, quoted=spreadsheet_safe), *unmeasured, *despite),
        version=recipe.sfumato,
        created=outcome.created,
        randomness=randomness.mode.value,
        method=recipe.method,
        parameters=recipe.parameters,
        rows_in=outcome.rows_in,
        rows_out=outcome.rows_out,
        schema_sha256=outcome.schema.public_part().digest,
    )
    if measured is not None:
        measured = dataclasses.replace(measured, certificate=certificate.to_document())
    release = Release(
        outcome.table,
        recipe.schema,
        certificate,
        measured,
        recipe,
        outcome.schema,
        outcome.workings,
        outcome.texts,
        outcome.together,
    )
    return refuse_unmet(release, despite=despite_policy)


def _measure(outcome: Outcome, budget: float | None, randomness: Randomness, *, judged: bool) -> Report:
    comparison, rng = outcome.comparison, randomness.generator("assess")
    if isinstance(comparison, Apart):
        return assess_apart(
            outcome.table,
            comparison.because,
            facts=outcome.facts,
            workings=outcome.workings,
            before=comparison.before,
            codec=comparison.codec,
            rng=rng,
        )
    report = assess(
        comparison.original,
        comparison.released,
        comparison.codec,
        facts=outcome.facts,
        workings=outcome.workings,
        records=comparison.records,
        holdout=comparison.outside,
        before=comparison.before,
        budget=budget,
        judged=judged,
        rng=rng,
    )
    seconds = {"sanitizing": outcome.seconds, **report.seconds}
    return dataclasses.replace(report, seconds=seconds, notes=(*comparison.notes, *report.notes))


def _formulas(outcome: Outcome, *, quoted: bool) -> tuple[Fact, ...]:
    """What a spreadsheet would run; who wrote a file has counted it there."""
    if not isinstance(outcome.table, pa.Table):
        return ()
    formulas = FormulaCount(outcome.table.column_names)
    formulas.add(outcome.table)
    return formulas.facts(quoted=quoted)


def check_budget(budget: float | None) -> None:
    """Refuse a number of seconds that is none."""
    if budget is not None and not (math.isfinite(budget) and budget > 0):
        raise OptionError("the budget must be a number of seconds above 0; try 30")
