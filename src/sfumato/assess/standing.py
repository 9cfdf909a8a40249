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
from sfumato.tables.field import Field
from sfumato.tables.schema import Kind

__all__ = ["CATEGORIES", "NEAR", "Standing", "Steps", "chance_of", "standing_in", "whole_standings"]

CATEGORIES = (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL)
"""Kinds of columns whose values are few and have holders."""

NEAR = 8
"""Numbers to either side of a unique one that chance would show as often."""


@dataclass(frozen=True, eq=False, repr=False)
class Standing:
    """How some rows of the original, and rows held out, stand in one column of the whole tables.

    They are those that are measured, or others drawn from all; ``persons`` and ``held_persons`` tell whose they are.
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
    persons: Places | None = None
    held_persons: Places | None = None

    def take(self, inside: Places, outside: Places) -> Standing:
        """That of some rows."""
        held = (self.held_holders[outside], self.held_shown[outside])
        persons = None if self.persons is None else self.persons[inside]
        whose = persons, None if self.held_persons is None else self.held_persons[outside]
        return Standing(self.holders[inside], self.shown[inside], self.chance[inside], *held, self.fewest, *whose)


def standing_in(study: Study, place: int) -> Standing:
    """How people stand in a column, in the whole tables where these were larger than what is measured."""
    if study.standings:
        return study.standings[place]
    whose = (study.persons, study.held_persons)
    return _standing(study.pairs[place], None if study.held is None else study.held[place], *whose)


def whole_standings(
    tables: tuple[pa.Table, pa.Table, pa.Table | None],
    codec: Codec,
    whose: tuple[Places | None, Places | None],
    inside: Places,
    outside: Places,
) -> tuple[Standing, ...]:
    """How some rows stand in the original, the released table and the people held out, column after column.

    ``whose`` are the persons of the original and of those held out.
    """
    found = []
    for field in codec.schema.encoded:
        original, released, *held = (read_column(table, codec, field) for table in tables if table is not None)
        whole = _standing(ColumnPair(field, original, released), held[0] if held else None, *whose)
        found.append(whole.take(inside, outside))
    return tuple(found)


def _standing(pair: ColumnPair, held: Column | None, persons: Places | None, held_persons: Places | None) -> Standing:
    columns = [pair.original, pair.released, *(() if held is None else (held,))]
    cuts = np.cumsum([len(column.values) for column in columns])[:-1]
    original, released, *others = np.split(value_codes(*columns), cuts)
    slots = int(max(codes.max(initial=0) for codes in (original, released, *others))) + 1
    holders, shown = holders_of(original, persons, slots), np.bincount(released, minlength=slots) > 0
    holders[0], shown[0] = -1, False
    outside = others[0] if others else np.empty(0, dtype=np.int64)
    fewest = None
    if pair.field.kind in CATEGORIES:
        many, there = holders[1:], shown[1:]
        rarest = many[(many > 0) & there]
        fewest = (int(rarest.min()) if len(rarest) else None, int(many[many > 0].min(initial=len(original))))
    unique, chance = holders[original] == 1, np.zeros(len(original))
    if pair.is_number and unique.any():
        steps = Steps.of(pair.field, pair.original.present)
        taken, stands = steps.places(pair.original.present), steps.places(pair.released.present, exact=True)
        own = steps.places(pair.original.values[unique])
        chance[unique] = chance_of(own, np.unique(taken), np.unique(stands))
    whose = (persons, held_persons)
    return Standing(holders[original], shown[original], chance, holders[outside], shown[outside], fewest, *whose)


@dataclass(frozen=True)
class Steps:
    """Numbers counted in steps of the smallest gap between two that are held, and dates by the month in months."""

    first: float
    step: float
    monthly: bool

    @classmethod
    def of(cls, field: Field, held: NDArray[np.float64]) -> Steps:
        """Steps of a column in which these numbers are held."""
        if is_monthly(field):
            return cls(0.0, 1.0, monthly=True)
        found = np.unique(held)
        gap = float(np.diff(found).min()) if len(found) > 1 else 1.0
        return cls(float(found[0]) if len(found) else 0.0, gap, monthly=False)

    def places(self, values: NDArray[np.float64], *, exact: bool = False) -> NDArray[np.float64]:
        """Number of steps to each value, or only to those that lie on a step."""
        places = ((_months(values) if self.monthly else values) - self.first) / self.step
        near = np.rint(places)
        on_step = np.abs(places - near) <= 1e-6 * np.maximum(1.0, np.abs(places)) ** 0.5
        return np.asarray(near[on_step] if exact else near)


def chance_of(own: NDArray[np.float64], held: NDArray[np.float64], shown: NDArray[np.float64]) -> NDArray[np.float64]:
    """How often the release shows numbers next to each unique one that nobody of the original holds.

    Numbers are told by their places on the steps of a column: unique ones, those that are held, and those that are
    shown. A release that knows nobody shows the neighbours as often as the unique one itself. Where all of them are
    held, all count.
    """
    free, seen, every = (np.zeros(len(own)) for _ in range(3))
    for near in (*range(-NEAR, 0), *range(1, NEAR + 1)):
        stands, nobodys = np.isin(own + near, shown), ~np.isin(own + near, held)
        free += nobodys
        seen += nobodys & stands
        every += stands
    return np.asarray(np.where(free > 0, seen / np.maximum(free, 1.0), every / (2 * NEAR)))


def _months(days: NDArray[np.float64]) -> NDArray[np.float64]:
    """Months since 1970 of days since then."""
    return np.asarray(days.astype(np.int64).view("datetime64[D]").astype("datetime64[M]").view(np.int64), np.float64)
