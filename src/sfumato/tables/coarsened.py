"""Columns that are released, or known to an outsider, at a level of their hierarchy: values become wider labels."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.core.errors import OptionError, SchemaError, closest_name, shown
from sfumato.core.facts import Aggregated
from sfumato.tables.cells import absent_cells, gap_of_cells, is_text, numbers_of_cells, plain
from sfumato.tables.dates import microseconds_of_cells, unit_of
from sfumato.tables.field import Domain, Field, Kind
from sfumato.tables.grid import label_of
from sfumato.tables.hierarchies import MOST_LEVELS, Hierarchy, parse_hierarchy, read_hierarchy
from sfumato.tables.schema import Schema

__all__ = [
    "aggregated",
    "coarsen",
    "coarser",
    "column_and_level",
    "hierarchy_of",
    "known_columns",
    "known_of",
    "label_values",
]


def hierarchy_of(field: Field) -> Hierarchy:
    """The hierarchy of a column that has one, its file read."""
    assert field.hierarchy is not None
    found = parse_hierarchy(field.hierarchy, field.kind.value, field.name)
    return read_hierarchy(found) if isinstance(found, Path) else found


def column_and_level(told: str, names: Collection[str]) -> tuple[str, int]:
    """Column that a text names, and the level of its hierarchy after an @; 0 where it stands without.

    Examples
    --------
    >>> column_and_level("postcode@2", ["postcode"]), column_and_level("a@2", ["a@2"])
    (('postcode', 2), ('a@2', 0))
    """
    name, _, level = told.rpartition("@")
    if told in names or name not in names or not re.fullmatch(r"[1-9]\d?", level, re.ASCII):
        return told, 0
    return name, int(level)


def label_values(field: Field, level: int, values: NDArray[np.float64]) -> list[str]:
    """Labels of values of a column at a level of its hierarchy: of numbers, dates as counted, or places of categories.

    Dates without a hierarchy take the calendar. A category that is a label already, or a wider one, stays.

    Raises
    ------
    OptionError
        For a column without a hierarchy, or one that has no such level.
    """
    if field.hierarchy is None and field.kind is Kind.DATE:
        field = dataclasses.replace(field, hierarchy="calendar")
    if field.hierarchy is None:
        raise OptionError(
            f"column {field.name!r} has no hierarchy to know a level of; write one in the schema, or name it without @"
        )
    hierarchy = hierarchy_of(field)
    most = hierarchy.levels or MOST_LEVELS
    if level > most:
        raise OptionError(f"the hierarchy of column {field.name!r} has {most} levels; name one of them")
    if field.kind is Kind.DATE:
        moments = (values.astype(np.int64) * unit_of(field)).view("datetime64[us]")
        return [hierarchy.label(moment, level) for moment in moments.astype(object)]
    if field.kind is not Kind.NOMINAL:
        return [hierarchy.label(value, level) for value in values.tolist()]
    categories = [label_of((field.domain.categories or ())[place]) for place in values.astype(np.int64)]
    return [_at_least(hierarchy, text, level) for text in categories]


def _at_least(hierarchy: Hierarchy, text: str, level: int) -> str:
    """Label of a category at a level; the category itself where it is a label of that level or above already."""
    label = hierarchy.label(text, level)
    highest = hierarchy.levels or level
    wide = label == "*" and any(hierarchy.is_label(text, each) for each in range(level, highest + 1))
    return text if wide else label


def coarser(schema: Schema, told: Iterable[tuple[str, str | None, int]]) -> Schema:
    """Schema in which columns are released at a level of a hierarchy: the one told, or the column's own.

    Dates without a hierarchy take the calendar.

    Raises
    ------
    OptionError
        For a column that is not sanitized, or has no hierarchy.
    """
    fields = {field.name: field for field in schema}
    for name, hierarchy, level in told:
        field = schema[name]
        if field not in schema.encoded:
            raise OptionError(f"column {name!r} is {field.role.value}, so it has no values to widen; leave it out")
        found = hierarchy or field.hierarchy or ("calendar" if field.kind is Kind.DATE else None)
        if found is None:
            raise OptionError(
                f"column {name!r} has no hierarchy to take a level of; write one in the schema, or give a column of "
                "numbers a width (--widths)"
            )
        fields[name] = dataclasses.replace(field, hierarchy=found, coarsened=level)
    return dataclasses.replace(schema, fields=tuple(fields[field.name] for field in schema))


def aggregated(schema: Schema, left: Collection[str]) -> tuple[Aggregated, ...]:
    """State at which level of which hierarchy the columns that are left are released; nothing where none is.

    A file is not named.
    """
    wide = [field for field in schema.encoded if field.coarsened and field.name in left]
    if not wide:
        return ()
    texts = (field.hierarchy or "" for field in wide)
    return (
        Aggregated(
            tuple(field.name for field in wide),
            tuple("file" if text.split()[:1] == ["file"] else " ".join(text.split()) for text in texts),
            tuple(field.coarsened for field in wide),
        ),
    )


def coarsen(table: pa.Table, schema: Schema) -> tuple[pa.Table, Schema]:
    """A table whose columns stand at the level of their hierarchy that the schema says, and its schema.

    Categories stay categories; dates and numbers become places of an order, as many as there are labels. Columns that
    the table lacks are left out.
    """
    fields = []
    for field in schema:
        if not field.coarsened or field not in schema.encoded:
            fields.append(field)
            continue
        labels = _labels(table.column(field.name), field) if field.name in table.column_names else {}
        kind = Kind.NOMINAL if field.kind is Kind.NOMINAL else Kind.ORDINAL
        ordered = tuple(dict.fromkeys(labels.values()))
        domain = Domain(categories=ordered) if kind is Kind.ORDINAL and ordered else Domain()
        fields.append(Field(field.name, kind, field.role, domain, field.missing, reason=field.reason))
        if labels:
            cells = _write(table.column(field.name), field, labels)
            table = table.set_column(table.column_names.index(field.name), field.name, cells)
    return table, dataclasses.replace(schema, fields=tuple(fields))


def _labels(column: pa.ChunkedArray, field: Field) -> dict[Any, str]:
    """Labels of the different values of a column, in the order of the values."""
    hierarchy = hierarchy_of(field)
    if hierarchy.levels is not None and field.coarsened > hierarchy.levels:
        raise SchemaError(
            f"column {field.name!r} is coarsened to level {field.coarsened} and its hierarchy has {hierarchy.levels}; "
            "lower it"
        )
    values = sorted(set(_values(column, field)) - {None})
    return {value: hierarchy.label(label_of(value) if field.kind is Kind.NOMINAL else value, field.coarsened)
            for value in values}  # fmt: skip


def _values(column: pa.ChunkedArray, field: Field) -> list[Any]:
    """Cells of a column as its hierarchy reads them; None where one is missing."""
    array = plain(column)
    absent = absent_cells(array, field.missing)
    if field.kind is Kind.NOMINAL:
        return [None if gone else cell for cell, gone in zip(array.to_pylist(), absent, strict=True)]
    if field.kind is Kind.DATE:
        moments, strange = microseconds_of_cells(array, absent, field)
        if strange.any():
            raise SchemaError(f"column {field.name!r} holds {int(strange.sum())} cells that are not dates; mend them")
        return list(pa.array(moments, mask=absent).view(pa.timestamp("us")).to_pylist())
    numbers, absent = numbers_of_cells(column, field)
    return [None if gone else number for number, gone in zip(numbers.tolist(), absent, strict=True)]


def _write(column: pa.ChunkedArray, field: Field, labels: dict[Any, str]) -> pa.ChunkedArray:
    array = plain(column)
    texts = pa.array([labels.get(value) for value in _values(column, field)], pa.string())
    gap = gap_of_cells(array, np.asarray(texts.is_null())) if texts.null_count else None
    if isinstance(gap, str) and is_text(array.type):
        texts = pc.fill_null(texts, gap)
    return pa.chunked_array([texts])


def known_columns(known: Iterable[str], schema: Schema) -> tuple[str, ...]:
    """Columns that an outsider is taken to know, also where several stand in one text with commas between.

    ``postcode@2`` is a column known by its labels at the second level of its hierarchy.

    Raises
    ------
    OptionError
        Where one of them is no column that is measured, or has no such level, or is named twice.
    """
    measured = [field.name for field in schema.encoded]
    texts = [text for told in known for text in ([told] if told in measured else told.split(","))]
    found = {text: column_and_level(text, measured) for text in texts}
    for text, (name, level) in found.items():
        if name not in measured:
            meant = closest_name(text.partition("@")[0], measured)
            told = "name another" if meant is None else f"did you mean {shown(meant)}?"
            raise OptionError(f"there is no column {shown(text)} that is measured and could be known; {told}")
        if level and schema[name].coarsened:
            raise OptionError(
                f"column {name!r} is compared at level {schema[name].coarsened} of its hierarchy already, so that is "
                "what outsiders know; name it without @"
            )
        if level:
            label_values(schema[name], level, np.empty(0))
    names = [name for name, _ in found.values()]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise OptionError(f"column {twice!r} is named twice as known; name it once")
    return tuple(found)


def known_of(known: Iterable[str], schema: Schema) -> list[str]:
    """What outsiders know of a table as it is compared: no column that is gone, and no level where labels stand."""
    found = [column_and_level(text, schema.names) for text in known]
    left = [(name, level) for name, level in found if name in schema.names]
    wide = [bool(level) and (schema[name].hierarchy or schema[name].kind is Kind.DATE) for name, level in left]
    return [f"{name}@{level}" if wider else name for (name, level), wider in zip(left, wide, strict=True)]
