"""Columns that an outsider knows by labels of a hierarchy: a postcode by its first places, a date by its month."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa

from sfumato.assess.study import Column, ColumnPair, Matrix, Study, once
from sfumato.tables.codec import Codec
from sfumato.tables.recoding import column_and_level, label_values
from sfumato.tables.schema import Domain, Field, Kind, Schema

__all__ = ["column_known", "known_as", "with_known_labels"]


def with_known_labels(study: Study) -> Study:
    """The study with a further column for each that an outsider knows by its labels; itself where there is none.

    Both tables and the rows held out have the labels of their own cells.
    """
    return _widened(study) if any(_level(study, told) for told in study.known) else study


def column_known(study: Study, told: str) -> str:
    """The column of the tables that an outsider knows, be it by its labels."""
    return column_and_level(told, [pair.name for pair in study.pairs])[0]


def known_as(study: Study, told: str) -> str:
    """How an outsider knows a column, in words."""
    level = _level(study, told)
    return f"{column_known(study, told)} at level {level} of its hierarchy" if level else told


def _level(study: Study, told: str) -> int:
    return column_and_level(told, [pair.name for pair in study.pairs])[1]


@once
def _widened(study: Study) -> Study:
    pairs, held = list(study.pairs), None if study.held is None else list(study.held)
    layout, sides = list(study.layout), [[study.original], [study.released]]
    if study.holdout is not None:
        sides.append([study.holdout])
    for told in (told for told in study.known if _level(study, told)):
        place = next(place for place, pair in enumerate(study.pairs) if pair.name == column_known(study, told))
        pair = study.pairs[place]
        outside = None if study.held is None else study.held[place]
        columns, field = _labelled(told, _level(study, told), pair, outside)
        pairs.append(ColumnPair(field, columns[0], columns[1]))
        if held is not None:
            held.append(columns[2])
        tables = [_texts(column, field) for column in columns]
        codec = Codec.fit(tables[0], Schema((field,)), codes=True)
        start = layout[-1].stop
        layout += [dataclasses.replace(each, start=start + each.start, stop=start + each.stop) for each in codec.layout]
        for side, table in zip(sides, tables, strict=True):
            side.append(codec.encode(table, unseen="mean").values)
    original, released, *holdout = (np.hstack(side) for side in sides)
    return dataclasses.replace(
        study,
        pairs=tuple(pairs),
        held=None if held is None else tuple(held),
        layout=tuple(layout),
        original=original,
        released=released,
        holdout=holdout[0] if holdout else None,
    )


def _labelled(told: str, level: int, pair: ColumnPair, outside: Column | None) -> tuple[list[Column], Field]:
    """A column's labels in the original, the released table and the rows held out, and the field that they share."""
    columns = [pair.original, pair.released, *(() if outside is None else (outside,))]
    values = np.unique(np.concatenate([column.present for column in columns]))
    labels = label_values(pair.field, level, values)
    names = dict.fromkeys(labels if pair.is_number else sorted(labels))
    code = {name: place for place, name in enumerate(names)}
    places: Matrix = np.array([code[label] for label in labels], dtype=np.float64)
    kind = Kind.ORDINAL if pair.is_number else Kind.NOMINAL
    field = Field(told, kind, domain=Domain(categories=tuple(names) or ("*",)))
    return [_placed(column, values, places) for column in columns], field


def _placed(column: Column, values: Matrix, places: Matrix) -> Column:
    found = np.zeros(len(column.values))
    found[~column.absent] = places[np.searchsorted(values, column.present)]
    return Column(found, column.absent)


def _texts(column: Column, field: Field) -> pa.Table:
    """The labels as a table of one column."""
    names = pa.array(field.domain.categories, pa.string())
    return pa.table({field.name: names.take(pa.array(column.values.astype(np.int64), mask=column.absent))})
