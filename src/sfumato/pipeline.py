"""The whole job: a table and a mechanism in, a release out; two tables in, a report out."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato import __version__
from sfumato.assess.measure import assess
from sfumato.assess.report import Report
from sfumato.condense.mechanism import Condensation
from sfumato.errors import LevelError, OptionError, PrivacyRefusal, SchemaError, TableError
from sfumato.facts import ColumnsDropped, Drawn, Fact, HeldOut, Stratified
from sfumato.mechanism import Mechanism
from sfumato.privacy.certificate import certify
from sfumato.randomness import Randomness
from sfumato.recipe import Recipe
from sfumato.records import Records
from sfumato.release.model import Release
from sfumato.tables.cells import absent_cells, plain
from sfumato.tables.codec import Codec, check_columns
from sfumato.tables.frames import restore, to_arrow
from sfumato.tables.levels import levels_of_table
from sfumato.tables.schema import Role, Schema

__all__ = ["evaluate", "sanitize"]


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
    native: bool = False,
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
    native : bool
        Write numbers and dates that came as text in types of their own.

    Returns
    -------
    Release
        Its table is of the frame type that came in.

    Examples
    --------
    >>> table = pa.table({"age": list(range(20, 60)), "sex": ["f", "m"] * 20})
    >>> release = sanitize(table, Condensation(k=5), seed=1, report=False)
    >>> release.table.num_rows, release.certificate.levels["smallest_group"] >= 5
    (40, True)
    """
    mechanism = Condensation() if mechanism is None else mechanism
    arrow, origin = to_arrow(table)
    randomness = Randomness(seed)
    schema = _schema(arrow, schema, target, identifiers, public)
    _refuse_public(schema, mechanism)
    job = _prepare(arrow, mechanism, schema, level, strata, holdout, randomness)
    sanitized = mechanism.sanitize(job.records, rng=randomness.generator("sanitize"))
    released = job.codec.decode(sanitized.records.values, native=native)
    facts = (*job.facts, *sanitized.facts)
    measured = None
    if report:
        measured = assess(
            job.original,
            job.codec.decode(sanitized.records.values) if native else released,
            job.codec,
            facts=facts,
            workings=sanitized.workings,
            holdout=job.outside,
            rng=randomness.generator("assess"),
        )
    parameters = dataclasses.asdict(mechanism)  # type: ignore[call-overload]
    certificate = certify(
        facts,
        version=__version__,
        randomness=randomness.mode.value,
        method=mechanism.method,
        parameters=parameters,
        rows_in=job.original.num_rows,
        rows_out=released.num_rows,
        schema_sha256=job.codec.schema.public_part().digest,
    )
    share = holdout if isinstance(holdout, float) else None
    recipe = Recipe(mechanism.method, parameters, job.codec.schema, level, strata, share, seed, __version__)
    table = released if native else restore(released, origin)
    return Release(table, job.codec.schema, certificate, measured, recipe)


def evaluate(original: Any, released: Any, *, schema: Schema | None = None, holdout: Any | None = None) -> Report:
    """Measure a released table against its original, whatever tool made it. Runs at the owner's.

    Parameters
    ----------
    original, released : pandas, polars or pyarrow tables
    schema : Schema, optional
        By default inferred from the original.
    holdout : table, optional
        Rows like the original's that the release was not made from.
    """
    before, after = to_arrow(original)[0], to_arrow(released)[0]
    schema = _schema(before, schema, None, (), ())
    lacking = [field.name for field in schema.encoded if field.name not in after.column_names]
    if lacking:
        raise TableError(
            f"the released table lacks {len(lacking)} columns, the first is {lacking[0]!r}; make those identifiers"
        )
    names = [field.name for field in schema.encoded]
    codec = Codec.fit(before, schema)
    outside = None if holdout is None else to_arrow(holdout)[0]
    return assess(
        before.select(names), after.select(names), codec, holdout=outside, rng=Randomness().generator("assess")
    )


@dataclass(frozen=True, eq=False, repr=False)
class _Job:
    """What a mechanism and the measuring after it work on."""

    original: pa.Table
    outside: pa.Table | None
    codec: Codec
    records: Records
    facts: tuple[Fact, ...]


def _prepare(
    arrow: pa.Table,
    mechanism: Mechanism,
    schema: Schema,
    level: str | int | None,
    strata: str | None,
    holdout: float | Any | None,
    randomness: Randomness,
) -> _Job:
    """Read levels and strata, hold rows out, and encode the rest."""
    allow_level_1 = bool(getattr(mechanism, "allow_level_1", False))
    asked, schema = levels_of_table(level, arrow, schema, allow_level_1=allow_level_1)
    codes = _strata(arrow, schema, strata)
    kept, outside = _hold_out(arrow, holdout, randomness)
    crowd = max(int(asked[kept].max(initial=0)), int(getattr(mechanism, "k", 2)))
    if len(kept) < crowd:
        raise LevelError(
            f"there are {len(kept)} records and the highest privacy level is {crowd}; lower the level or bring more "
            "records"
        )
    original = arrow.take(pa.array(kept)) if len(kept) < arrow.num_rows else arrow
    codec = Codec.fit(original, schema, crowd=crowd)
    records = codec.encode(original, levels=asked[kept], strata=codes[kept])
    names = [field.name for field in schema.encoded]
    facts = _facts(schema, strata, codes[kept], outside if isinstance(holdout, float) else None, randomness)
    return _Job(original.select(names), outside, codec, records, facts)


def _schema(
    arrow: pa.Table, schema: Schema | None, target: str | None, identifiers: Iterable[str], public: Iterable[str]
) -> Schema:
    """Take the given schema or infer one, then give columns the roles that were told."""
    if arrow.num_rows == 0:
        raise TableError("the table has no rows; bring at least as many as the highest privacy level")
    identifiers, public = tuple(identifiers), tuple(public)
    if schema is None:
        schema = _infer_rest(arrow, [*identifiers, *public])
    check_columns(arrow, schema)
    order = {name: place for place, name in enumerate(arrow.column_names)}
    schema = Schema(tuple(sorted(schema.fields, key=lambda field: order[field.name])))
    schema = schema.with_role(Role.IDENTIFIER, *identifiers).with_role(Role.PUBLIC, *public)
    if target is not None:
        schema = schema.with_role(Role.TARGET, target)
    return schema


def _infer_rest(arrow: pa.Table, told: list[str]) -> Schema:
    """Infer all columns; names that were told are checked first, so that a misspelt one is the error."""
    unknown = [name for name in told if name not in arrow.column_names]
    if unknown:
        names = ", ".join(map(repr, arrow.column_names))
        raise OptionError(f"there is no column {unknown[0]!r}; the columns are {names}")
    return Schema.infer(arrow)


def _refuse_public(schema: Schema, mechanism: Mechanism) -> None:
    passed = [field.name for field in schema if field.role is Role.PUBLIC]
    if passed and mechanism.makes_synthetic_rows:
        raise PrivacyRefusal(
            f"column {passed[0]!r} is public, but {mechanism.method!r} makes synthetic rows that belong to nobody: "
            "beside them it would be wrong or identify people; drop it or sanitize it"
        )


def _strata(arrow: pa.Table, schema: Schema, strata: str | None) -> NDArray[np.int64]:
    if strata is None:
        return np.zeros(arrow.num_rows, dtype=np.int64)
    field = schema[strata]
    if field not in schema.encoded:
        raise OptionError(f"column {strata!r} is {field.role.value}, so it cannot keep groups apart; choose another")
    array = plain(arrow.column(strata))
    absent = int(absent_cells(array, field.missing).sum())
    if absent:
        raise SchemaError(f"column {strata!r} has {absent} missing cells, so it cannot keep groups apart; fill them in")
    return np.asarray(pc.dictionary_encode(array).indices.to_numpy(zero_copy_only=False), dtype=np.int64)


def _hold_out(
    arrow: pa.Table, holdout: float | Any | None, randomness: Randomness
) -> tuple[NDArray[np.int64], pa.Table | None]:
    """Give the rows to sanitize and the table that was kept out."""
    rows = np.arange(arrow.num_rows)
    if holdout is None:
        return rows, None
    if not isinstance(holdout, float):
        return rows, to_arrow(holdout)[0]
    if not 0.0 < holdout < 1.0:
        raise OptionError("the share of rows to hold out must lie between 0 and 1; try 0.2")
    drawn = randomness.generator("holdout").permutation(arrow.num_rows)
    cut = max(1, round(holdout * arrow.num_rows))
    return np.sort(drawn[cut:]), arrow.take(pa.array(np.sort(drawn[:cut])))


def _facts(
    schema: Schema,
    strata: str | None,
    codes: NDArray[np.int64],
    held_out: pa.Table | None,
    randomness: Randomness,
) -> tuple[Fact, ...]:
    """State what was done around the mechanism."""
    facts: list[Fact] = [
        Drawn(randomness.mode.value, "ChaCha20" if randomness.seed is None else "PCG64"),
        ColumnsDropped(
            tuple(field.name for field in schema if field.role is Role.IDENTIFIER),
            tuple(field.name for field in schema if field.role is Role.LEVEL),
        ),
    ]
    if held_out is not None:
        facts.append(HeldOut(held_out.num_rows))
    if strata is not None:
        facts.append(Stratified(strata, len(np.unique(codes)), schema[strata].role is Role.TARGET))
    return tuple(facts)
