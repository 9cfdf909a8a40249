"""From a table and a mechanism to a release."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from time import perf_counter
from typing import Any

import pyarrow as pa

from sfumato import __version__
from sfumato.assess.measure import assess
from sfumato.condense.mechanism import Condensation
from sfumato.errors import PrivacyRefusal
from sfumato.facts import BoundsKept, Fact
from sfumato.mechanism import Mechanism, Workings
from sfumato.pipeline.prepare import Job, check_budget, prepare, schema_of
from sfumato.privacy.certificate import certify
from sfumato.publish.release import Release
from sfumato.randomness import Randomness
from sfumato.recipe import Recipe
from sfumato.tables.frames import restore, to_arrow
from sfumato.tables.grid import has_bounds
from sfumato.tables.moved import free_fields
from sfumato.tables.schema import Role, Schema
from sfumato.tables.spreadsheet import FormulaCount

__all__ = ["sanitize"]


def sanitize(
    table: Any,
    mechanism: Mechanism | None = None,
    *,
    schema: Schema | None = None,
    target: str | None = None,
    level: str | int | None = None,
    strata: str | None = None,
    identifiers: Iterable[str] = (),
    public: Iterable[str] = (),
    holdout: float | Any | None = None,
    seed: int | None = None,
    report: bool = True,
    budget: float | None = None,
    native: bool = False,
    spreadsheet_safe: bool = False,
) -> Release:
    """Sanitize a table: give back one that can be mined in its place, certified and measured.

    Parameters
    ----------
    table : pandas, polars or pyarrow table
    mechanism : Mechanism, optional
        By default ``Condensation()``.
    schema : Schema, optional
        By default inferred; print ``Schema.infer(table)`` to see every decision.
    target : str, optional
        The class or response that will be mined.
    level : str or int, optional
        Privacy levels: a column, a number for all, or rules such as ``"income > 100000: 12, else: 5"``.
    strata : str, optional
        Groups never cross the values of this column. Makes its value certain for each group.
    identifiers : iterable of str
        Columns to drop, besides those that the schema drops.
    public : iterable of str
        Columns to pass through; refused by mechanisms that make synthetic rows.
    holdout : float or table, optional
        Share of rows to keep out of the release, or rows that were kept out, for measuring.
    seed : int, optional
        Makes a rehearsal: reproducible and marked as not for release.
    report : bool
        Whether to measure.
    budget : float, optional
        Seconds that the measuring may take; chooses how many rows are looked at.
    native : bool
        Write numbers and dates that came as text in types of their own.
    spreadsheet_safe : bool
        Write CSV with an apostrophe before what a spreadsheet would take for a formula.

    Returns
    -------
    Release
        Its table is of the frame type that came in.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"age": list(range(20, 60)), "sex": ["f", "m"] * 20})
    >>> release = sanitize(table, Condensation(k=5), seed=1, report=False)
    >>> release.table.num_rows, release.certificate.levels["smallest_group"] >= 5
    (40, True)
    """
    check_budget(budget)
    mechanism = Condensation() if mechanism is None else mechanism
    arrow, origin = to_arrow(table)
    randomness = Randomness(seed)
    schema = schema_of(arrow, schema, target, identifiers, public)
    _refuse_public(schema, mechanism)
    job = prepare(arrow, mechanism, schema, level, strata, holdout, randomness)
    begin = perf_counter()
    sanitized = mechanism.sanitize(job.records, rng=randomness.generator("sanitize"))
    taken = perf_counter() - begin
    moved, grids, unbounded = (getattr(sanitized.records, name) for name in ("moved", "grids", "unbounded"))
    written = {"moved": moved, "grids": grids, "unbounded": unbounded}
    released = job.codec.decode(sanitized.records.values, native=native, **written)
    facts = (*job.facts, *sanitized.facts, *_bounds_kept(job.codec.schema, unbounded))
    measured = None
    if report:
        measured = assess(
            job.original,
            job.codec.decode(sanitized.records.values, **written) if native else released,
            job.codec,
            facts=facts,
            workings=sanitized.workings,
            holdout=job.outside,
            budget=budget,
            rng=randomness.generator("assess"),
        )
        measured = dataclasses.replace(measured, seconds={"sanitizing": taken, **measured.seconds})
    parameters = dataclasses.asdict(mechanism)  # type: ignore[call-overload]
    free = job.codec.retyped(released)
    released = _beside(released, job, sanitized.workings)
    formulas = FormulaCount(released.column_names)
    formulas.add(released)
    certificate = certify(
        (*facts, *formulas.facts(quoted=spreadsheet_safe)),
        version=__version__,
        randomness=randomness.mode.value,
        method=mechanism.method,
        parameters=parameters,
        rows_in=job.original.num_rows,
        rows_out=released.num_rows,
        schema_sha256=free_fields(job.codec.schema, moved, grids).public_part().digest,
    )
    share = holdout if isinstance(holdout, float) else None
    recipe = Recipe(mechanism.method, parameters, job.codec.schema, level, strata, share, seed, __version__)
    table = released if native else restore(released, origin, free)
    key = getattr(sanitized.workings, "key", None)
    return Release(table, job.codec.schema, certificate, measured, recipe, moved, key, grids)


def _bounds_kept(schema: Schema, noised: frozenset[str]) -> tuple[Fact, ...]:
    """State which columns that got noise were held by declared bounds, or by the ends of an order."""
    held = tuple(field.name for field in schema if field.name in noised and has_bounds(field))
    return (BoundsKept(held),) if held else ()


def _beside(released: pa.Table, job: Job, workings: Workings | None) -> pa.Table:
    """Put the public columns of each row's original beside it, in the order of the schema."""
    if job.public is None:
        return released
    if workings is None or workings.origin is None:
        raise PrivacyRefusal("public columns have no rows to stand beside; drop or sanitize them")
    passed = job.public.take(pa.array(workings.origin))
    for name in passed.column_names:
        released = released.append_column(name, passed.column(name))
    return released.select([field.name for field in job.codec.schema.released])


def _refuse_public(schema: Schema, mechanism: Mechanism) -> None:
    passed = [field.name for field in schema if field.role is Role.PUBLIC]
    if passed and mechanism.makes_synthetic_rows:
        raise PrivacyRefusal(
            f"column {passed[0]!r} is public, but {mechanism.method!r} makes synthetic rows that belong to nobody: "
            "beside them it would be wrong or identify people; drop it or sanitize it"
        )
