"""How people stand in a column of a table: how many share a person's value, and whether the release shows it.

Where only some rows of large tables are measured, this is counted over all rows first: who is alone with a value among
some people need not be alone among all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.assess.study import Column, ColumnPair, Places, Study, holders_of, read_column, value_codes
from sfumato.tables.codec import Codec
from sfumato.tables.schema import Kind

__all__ = ["CATEGORIES", "Standing", "standing_in", "whole_standings"]

CATEGORIES = (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL)
"""Kinds of columns whose values are few and have holders."""


@dataclass(frozen=True, eq=False, repr=False)
class Standing:
    """How rows of the original, and rows held out, stand in one column of the whole tables.

    ``holders`` are the persons of the original who hold a row's value, -1 where its cell is missing; ``shown`` tells
    whether the released table shows it. ``fewest`` are the persons who hold the rarest category that is released, None
    where none is, and the rarest of all; None for numbers.
    """

    holders: Places
    shown: NDArray[np.bool_]
    held_holders: Places
    held_shown: NDArray[np.bool_]
    fewest: tuple[int | None, int] | None

    def take(self, inside: Places, outside: Places) -> Standing:
        """That of some rows."""
        held = (self.held_holders[outside], self.held_shown[outside])
        return Standing(self.holders[inside], self.shown[inside], *held, self.fewest)


def standing_in(study: Study, place: int) -> Standing:
    """How people stand in a column, in the whole tables where these were larger than what is measured."""
    if study.standings:
        return study.standings[place]
    return _standing(study.pairs[place], None if study.held is None else study.held[place], study.persons)


def whole_standings(
    tables: tuple[pa.Table, pa.Table, pa.Table | None],
    codec: Codec,
    persons: Places | None,
    inside: Places,
    outside: Places,
) -> tuple[Standing, ...]:
    """How some rows stand in the original, the released table and the people held out, column after column."""
    found = []
    for field in codec.schema.encoded:
        original, released, *held = (read_column(table, codec, field) for table in tables if table is not None)
        whole = _standing(ColumnPair(field, original, released), held[0] if held else None, persons)
        found.append(whole.take(inside, outside))
    return tuple(found)


def _standing(pair: ColumnPair, held: Column | None, persons: Places | None) -> Standing:
    columns = [pair.original, pair.released, *(() if held is None else (held,))]
    cuts = np.cumsum([len(column.values) for column in columns])[:-1]
    original, released, *others = np.split(value_codes(*columns), cuts)
    slots = int(max(codes.max(initial=0) for codes in (original, released, *others))) + 1
    holders, shown = holders_of(original, persons, slots), np.bincount(released, minlength=slots) > 0
    holders[0] = -1
    outside = others[0] if others else np.empty(0, dtype=np.int64)
    fewest = None
    if pair.field.kind in CATEGORIES:
        many, there = holders[1:], shown[1:]
        rarest = many[(many > 0) & there]
        fewest = (int(rarest.min()) if len(rarest) else None, int(many[many > 0].min(initial=len(original))))
    return Standing(holders[original], shown[original], holders[outside], shown[outside], fewest)
