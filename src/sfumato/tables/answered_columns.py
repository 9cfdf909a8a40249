"""Columns that leave as answers of a law: intervals, parents, numbers of sets, and dates in one way of writing."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from sfumato.core.records import Answers, Records
from sfumato.tables.cells import absent_cells, is_text, plain
from sfumato.tables.dates import is_time_of_day, microseconds_of_cells, write_moments
from sfumato.tables.field import DateStep, Domain, Field, Kind
from sfumato.tables.schema import Schema

__all__ = ["answered_fields", "write_answers"]

_DAYS = (DateStep.DAY, DateStep.MONTH)


def write_answers(table: pa.Table, records: Records, schema: Schema) -> pa.Table:
    """Released table with the answers of recoded columns in their places, and moved dates written as ISO dates.

    A recipient reads dates by the certificate alone, which does not say how a table wrote them. Times of day stay as
    they were written.
    """
    for answers in records.answers:
        table = _put(table, answers.column, _cells(answers))
    for field in schema:
        dates = field.name in records.moved and field.kind is Kind.DATE and not is_time_of_day(field)
        if dates and is_text(table.schema.field(field.name).type):
            cells = plain(table.column(field.name))
            absent = absent_cells(cells, field.missing)
            moments, _ = microseconds_of_cells(cells, absent, field)
            table = _put(table, field.name, write_moments(moments, absent, _iso(field), pa.string()))
    return table


def answered_fields(schema: Schema, answers: Iterable[Answers]) -> Schema:
    """Fields of the answers in the places of those of the values; what can be answered is declared by the law.

    Examples
    --------
    >>> schema = Schema((Field("age", Kind.INTEGER),))
    >>> sent = Answers("age", np.array([1, 0]), ("0..17", "18..99"), ordered=True)
    >>> answered_fields(schema, [sent])["age"].kind.value
    'ordinal'
    """
    sent = {each.column: each for each in answers}
    fields = (_field(field, sent[field.name]) if field.name in sent else field for field in schema)
    return dataclasses.replace(schema, fields=tuple(fields))


def _iso(field: Field) -> Field:
    form = "%Y-%m-%d" if field.domain.step in _DAYS else "%Y-%m-%d %H:%M:%S"
    return dataclasses.replace(field, format=form)


def _cells(answers: Answers) -> pa.Array:
    there = answers.codes >= 0
    if not answers.labels:
        return pa.array(answers.codes, mask=~there)
    return pa.array(answers.labels, pa.string()).take(pa.array(np.where(there, answers.codes, 0), mask=~there))


def _put(table: pa.Table, name: str, cells: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, cells)


def _field(field: Field, answers: Answers) -> Field:
    if not answers.labels:
        return Field(field.name, Kind.INTEGER, field.role, Domain(declared=True, low=0, high=answers.most))
    kind = Kind.ORDINAL if answers.ordered else Kind.NOMINAL
    return Field(field.name, kind, field.role, Domain(declared=True, categories=answers.labels))
