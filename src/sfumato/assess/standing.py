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
from sfumato.tables.dates import is_monthly
from sfumato.tables.schema import Kind

__all__ = ["CATEGORIES", "Standing", "standing_in", "whole_standings"]

CATEGORIES = (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL)
"""Kinds of columns whose values are few and have holders."""

_NEAR = 8  # numbers to either side of a unique one that chance would show as often


@dataclass(frozen=True, eq=False, repr=False)
class Standing:
    """How rows of the original, and rows held out, stand in one column of the whole tables.

    ``holders`` are the persons of the original who hold a row's value, -1 where its cell is missing; ``shown`` tells
    whether the released table shows it, ``chance`` how often it would show a number that one alone holds if it knew
    nobody. ``fewest`` are the persons who hold the rarest category that is released, None
    where none is, and the rarest of all; None for numbers.
    """

    holders: Places
    shown: NDArray[np.bool_]
    chance: NDArray[np.float64]
    held_holders: Places
    held_shown: NDArray[np.bool_]
    fewest: tuple[int | None, int] | None

    def take(self, inside: Places, outside: Places) -> Standing:
        """That of some rows."""
        held = (self.held_holders[outside], self.held_shown[outside])
        return Standing(self.holders[inside], self.shown[inside], self.chance[inside], *held, self.fewest)


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
    chance = _chance(pair, holders[original] == 1)
    return Standing(holders[original], shown[original], chance, holders[outside], shown[outside], fewest)


def _chance(pair: ColumnPair, unique: NDArray[np.bool_]) -> NDArray[np.float64]:
    """How often the release shows numbers next to each unique one that nobody of the original holds; 0 for others.

    A release that knows nobody shows those as often as the unique one itself. Numbers are counted in steps of the
    smallest gap between two of the original, and dates by the month in months; where all neighbours are held, all of
    them count.
    """
    if not pair.is_number or not unique.any():
        return np.zeros(len(unique))
    monthly = is_monthly(pair.field)
    present, released, alone = (
        _months(values) if monthly else values
        for values in (pair.original.present, pair.released.present, pair.original.values[unique])
    )
    held = np.unique(present)
    step = float(np.diff(held).min()) if len(held) > 1 and not monthly else 1.0
    steps = (released - held[0]) / step
    on_grid = np.abs(steps - np.rint(steps)) <= 1e-6 * np.maximum(1.0, np.abs(steps)) ** 0.5
    shown, taken = np.unique(np.rint(steps[on_grid])), np.unique(np.rint((held - held[0]) / step))
    own = np.rint((alone - held[0]) / step)
    free, seen, every = (np.zeros(len(own)) for _ in range(3))
    for near in (*range(-_NEAR, 0), *range(1, _NEAR + 1)):
        stands, nobodys = np.isin(own + near, shown), ~np.isin(own + near, taken)
        free += nobodys
        seen += nobodys & stands
        every += stands
    chance = np.zeros(len(unique))
    chance[unique] = np.where(free > 0, seen / np.maximum(free, 1.0), every / (2 * _NEAR))
    return chance


def _months(days: NDArray[np.float64]) -> NDArray[np.float64]:
    """Months since 1970 of days since then."""
    return np.asarray(days.astype(np.int64).view("datetime64[D]").astype("datetime64[M]").view(np.int64), np.float64)
