"""A released table read as the original's columns, whatever tool made it, and measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sfumato.assess.measure import assess
from sfumato.assess.report import Report
from sfumato.assess.risk.uniqueness import Standing
from sfumato.core.errors import PrivacyLeakWarning, TableError
from sfumato.engines.columns import RELEASED_PERSON, released_persons
from sfumato.engines.measured import measured_note, measured_rows
from sfumato.privacy.certificate import Certificate
from sfumato.tables.align import Aligned, align
from sfumato.tables.coarsened import coarsen, known_columns
from sfumato.tables.codec import Codec
from sfumato.tables.persons import persons_of_table
from sfumato.tables.recoding import like_released, recode
from sfumato.tables.schema import Role, Schema

__all__ = ["measure_released"]

_RELEASED, _HELD_OUT = "the released table", "the held-out table"
_MOST_NAMED = 5


def measure_released(
    original: pa.Table,
    released: pa.Table,
    schema: Schema,
    *,
    holdout: pa.Table | None = None,
    budget: float | None = None,
    certificate: Certificate | None = None,
    judged: bool = False,
    known: Sequence[str] = (),
    rng: np.random.Generator,
) -> tuple[Report, tuple[UserWarning, ...]]:
    """Read a released table as the original's columns, and measure it; also what a reader of the report must know.

    The facts of its certificate choose the attacks; where a policy is judged by it, more people are attacked.
    """
    known = known_columns(known, schema)
    notes = _notes_of_columns(original, released, schema)
    holdout = None if holdout is None else coarsen(holdout, schema)[0]
    original, schema = coarsen(original, schema)
    recodings = like_released(original, released, schema)
    after = {each.before.name: each.after for each in recodings if each.after is not None}
    schema = dataclasses.replace(schema, fields=tuple(after.get(field.name, field) for field in schema))
    original, released = recode(original, recodings), recode(released, recodings)
    holdout = None if holdout is None else recode(holdout, recodings)
    codec = Codec.fit(original, schema)
    aligned = align(released, codec, _RELEASED)
    notes += _notes_of_reading(aligned, _RELEASED)
    held = None if holdout is None else _aligned_holdout(holdout, codec)
    if held is not None:
        notes += _notes_of_reading(held, _HELD_OUT)
    notes += _notes_of_certificate(certificate, original.num_rows)
    linked = released_persons(released, original)
    held_persons = None if holdout is None else persons_of_table(holdout, schema)
    released, holdout = aligned.table, None if held is None else held.table
    del aligned, held  # of large tables only some rows are held from here on
    rows = None if linked is not None else measured_rows(original, released, holdout, codec, None, rng)
    standings: tuple[Standing, ...] = ()
    if rows is not None:
        whose = persons_of_table(original, schema), held_persons
        standings = rows.standings_in(original, released, holdout, codec, whose)
        notes.append(UserWarning(measured_note(len(rows.inside), original.num_rows)))
        original, released = original.take(pa.array(rows.inside)), released.take(pa.array(rows.made))
        holdout = None if holdout is None else holdout.take(pa.array(rows.outside))
        held_persons = None if held_persons is None else held_persons[rows.outside]
    report = assess(
        original.select([column.field.name for column in codec.columns]),
        released,
        codec,
        facts=() if certificate is None else certificate.facts,
        holdout=holdout,
        persons=persons_of_table(original, schema),
        held_persons=held_persons,
        budget=budget,
        judged=judged,
        known=known,
        linked=linked,
        standings=standings,
        rng=rng,
    )
    notes += [UserWarning(note) for note in report.notes]
    return dataclasses.replace(report, notes=tuple(map(str, notes))), tuple(notes)


def _aligned_holdout(table: pa.Table, codec: Codec) -> Aligned:
    lacking = [column.field.name for column in codec.columns if column.field.name not in table.column_names]
    if lacking:
        raise TableError(
            f"{_HELD_OUT} lacks {len(lacking)} columns of the original, the first is {lacking[0]!r}; bring rows like "
            "the original's"
        )
    return align(table, codec, _HELD_OUT)


def _notes_of_columns(original: pa.Table, released: pa.Table, schema: Schema) -> list[UserWarning]:
    """Compare the columns of two tables and say which are not measured.

    Raises
    ------
    TableError
        Where the released table lacks a column that would be measured.
    """
    lacking = [field.name for field in schema.encoded if field.name not in released.column_names]
    if lacking:
        raise TableError(
            f"the released table lacks {len(lacking)} columns of the original, the first is {lacking[0]!r}; if they "
            "were dropped on purpose, name them with --identifier"
        )
    extra = [name for name in released.column_names if name not in (*original.column_names, RELEASED_PERSON)]
    roles = {role: [field.name for field in schema if field.role is role] for role in Role}
    left = [name for name in (*roles[Role.IDENTIFIER], *roles[Role.PERSON]) if name in released.column_names]
    notes: list[UserWarning] = []
    if extra:
        notes.append(
            UserWarning(f"{len(extra)} columns of the released table are not in the original and were left out")
        )
    if left:
        notes.append(
            PrivacyLeakWarning(
                f"{len(left)} columns taken for identifiers stand in the released table ({_listed(left)}); they were "
                "not measured and should not be handed over"
            )
        )
    if roles[Role.PUBLIC]:
        notes.append(
            UserWarning(f"{len(roles[Role.PUBLIC])} public columns were not measured, nor what they give away")
        )
    return notes


def _notes_of_certificate(certificate: Certificate | None, rows: int) -> list[UserWarning]:
    """Say where a certificate speaks of other rows than the original has, or was worded by an older version."""
    notes: list[UserWarning] = []
    if certificate is not None and certificate.rows_in != rows:
        notes.append(
            UserWarning(
                f"the certificate speaks of {certificate.rows_in} records and the original has {rows}; "
                "rows that were held out belong into --holdout, not into the original"
            )
        )
    if certificate is not None and not certificate.derived:
        notes.append(
            UserWarning(
                f"the sentences of the certificate are worded by sfumato {certificate.sfumato} and were not derived "
                "anew from its facts"
            )
        )
    return notes


def _notes_of_reading(aligned: Aligned, name: str) -> list[UserWarning]:
    """Say how many cells of a table were read otherwise than they stand."""
    notes: list[UserWarning] = []
    if aligned.unread:
        notes.append(
            UserWarning(
                f"{sum(aligned.unread.values())} cells of {name} are unknown to the original and were counted as "
                f"missing, in {len(aligned.unread)} columns ({_counted(aligned.unread)})"
            )
        )
    if aligned.respelled:
        notes.append(
            UserWarning(
                f"{sum(aligned.respelled.values())} cells of {name} name a category in another spelling and were "
                f"taken for it, in {len(aligned.respelled)} columns ({_counted(aligned.respelled)})"
            )
        )
    return notes


def _listed(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:_MOST_NAMED]))
    return shown if len(names) <= _MOST_NAMED else f"{shown} and {len(names) - _MOST_NAMED} more"


def _counted(counts: dict[str, int]) -> str:
    most = sorted(counts, key=lambda name: -counts[name])
    shown = ", ".join(f"{name!r} {counts[name]}" for name in most[:_MOST_NAMED])
    return shown if len(most) <= _MOST_NAMED else f"{shown} and {len(most) - _MOST_NAMED} more"
