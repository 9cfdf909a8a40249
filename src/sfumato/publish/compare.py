"""From two tables to a report, whatever tool made the second."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from sfumato.assess.report import Report
from sfumato.engines.plan import schema_of
from sfumato.errors import OptionError
from sfumato.privacy.certificate import Certificate
from sfumato.publish.evaluation import Evaluation, dropped_columns, measure_released
from sfumato.publish.publish import check_budget
from sfumato.randomness import Randomness
from sfumato.tables.frames import to_arrow
from sfumato.tables.schema import Schema

__all__ = ["compare_tables", "evaluate"]


def evaluate(
    original: Any,
    released: Any,
    *,
    schema: Schema | None = None,
    target: str | None = None,
    identifiers: Iterable[str] = (),
    public: Iterable[str] = (),
    holdout: Any | None = None,
    budget: float | None = None,
    seed: int | None = None,
) -> Report:
    """Measure a released table against its original, whatever tool made it. Runs at the owner's.

    Parameters
    ----------
    original, released : pandas, polars or pyarrow tables
        They need not be of one kind, and types of columns may differ as long as they mean the same.
    schema : Schema, optional
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
    )
    for note in evaluation.notes:
        warnings.warn(note, stacklevel=2)
    return evaluation.report


def compare_tables(
    original: Any,
    released: Any,
    *,
    schema: Schema | None = None,
    target: str | None = None,
    identifiers: Iterable[str] = (),
    public: Iterable[str] = (),
    holdout: Any | None = None,
    budget: float | None = None,
    seed: int | None = None,
    certificate: Certificate | None = None,
) -> Evaluation:
    """Measure as `evaluate` does, with what the certificate of the released table says; give the notes too."""
    check_budget(budget)
    if isinstance(holdout, int | float):
        raise OptionError("the table is released already, so no share can be held out now; give the rows held out")
    before, after = to_arrow(original)[0], to_arrow(released)[0]
    dropped = dropped_columns(certificate, before.column_names)
    return measure_released(
        before,
        after,
        schema_of(before, schema, target, [*identifiers, *dropped], public),
        holdout=None if holdout is None else to_arrow(holdout)[0],
        budget=budget,
        certificate=certificate,
        rng=Randomness(seed).generator("assess"),
    )
