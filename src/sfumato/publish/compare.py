"""From two tables to a report, whatever tool made the second."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sfumato.assess.report import Report
from sfumato.engines.plan import schema_of
from sfumato.errors import OptionError
from sfumato.privacy.certificate import Certificate
from sfumato.publish.evaluation import Evaluation, dropped_columns, measure_released
from sfumato.publish.judge import asked_policy, judge_report
from sfumato.publish.policy import Policy
from sfumato.publish.publish import check_budget
from sfumato.randomness import Randomness
from sfumato.tables.frames import to_arrow
from sfumato.tables.schema import Schema

__all__ = ["compare_tables", "evaluate"]


def evaluate(
    original: Any,
    released: Any,
    *,
    schema: Schema | str | Path | None = None,
    target: str | None = None,
    identifiers: Iterable[str] = (),
    public: Iterable[str] = (),
    holdout: Any | None = None,
    budget: float | None = None,
    seed: int | None = None,
    policy: Policy | str | Path | None = None,
) -> Report:
    """Measure a released table against its original, whatever tool made it. Runs at the owner's.

    Parameters
    ----------
    original, released : pandas, polars or pyarrow tables
        They need not be of one kind, and types of columns may differ as long as they mean the same.
    schema : Schema or path, optional
        By default inferred from the original.
    target : str, optional
        The class or response that will be mined.
    identifiers, public : iterable of str
        Columns that were dropped, and columns that were passed through: neither is measured.
    holdout : table, optional
        Rows like the original's that the release was not made from.
    budget : float, optional
        Seconds that the measuring may take; chooses how many rows are looked at.
    seed : int, optional
        Makes the samples and redraws of the measuring reproducible.
    policy : Policy, str or path, optional
        What the release is judged by: a policy, the name of one that is built in, or a file. The report holds the
        verdict.

    Warns
    -----
    UserWarning
        Of columns that were left out, and of cells that could not be read as the original's.
    """
    evaluation = compare_tables(
        original,
        released,
        schema=schema,
        target=target,
        identifiers=identifiers,
        public=public,
        holdout=holdout,
        budget=budget,
        seed=seed,
        policy=policy,
    )
    for note in evaluation.notes:
        warnings.warn(note, stacklevel=2)
    return evaluation.report


def compare_tables(
    original: Any,
    released: Any,
    *,
    schema: Schema | str | Path | None = None,
    target: str | None = None,
    identifiers: Iterable[str] = (),
    public: Iterable[str] = (),
    holdout: Any | None = None,
    budget: float | None = None,
    seed: int | None = None,
    certificate: Certificate | None = None,
    policy: Policy | str | Path | None = None,
    command: Sequence[str] = ("sfumato", "evaluate", "ORIGINAL", "RELEASED", "--policy", "POLICY"),
) -> Evaluation:
    """Measure as `evaluate` does, with what the certificate of the released table says; give the notes too."""
    check_budget(budget)
    asked = asked_policy(policy)
    if isinstance(holdout, int | float):
        raise OptionError("the table is released already, so no share can be held out now; give the rows held out")
    (before, origin), after = to_arrow(original), to_arrow(released)[0]
    dropped = dropped_columns(certificate, before.column_names)
    evaluation = measure_released(
        before,
        after,
        schema_of(before, schema, target, [*identifiers, *dropped], public),
        holdout=None if holdout is None else to_arrow(holdout)[0],
        budget=budget,
        certificate=certificate,
        judged=asked is not None,
        rng=Randomness(seed).generator("assess"),
    )
    facts, document = ((), None) if certificate is None else (certificate.facts, certificate.to_document())
    report = dataclasses.replace(evaluation.report, certificate=document, frame=origin.kind)
    if asked is not None:
        report = judge_report(report, facts, asked, command=command)
    return dataclasses.replace(evaluation, report=report)
