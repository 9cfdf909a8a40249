"""Rare values of a table: what fewer than k persons hold is counted to something that more of them hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.core.facts import RareValues
from sfumato.tables.cells import absent_cells, plain
from sfumato.tables.codec import MOST_CATEGORIES
from sfumato.tables.field import Field, Kind, Role
from sfumato.tables.infer import complete_field
from sfumato.tables.recoding import Codes, Mask, Recoding, Way, count_holders, recode, recode_column
from sfumato.tables.rules import rules_within
from sfumato.tables.schema import Schema

__all__ = ["WAYS", "SharedCategories", "check_way", "share_values"]

WAYS: tuple[Way, ...] = ("pool", "lift", "keep")
"""What becomes of categories that too few hold: one named other, a wider one of their hierarchy, or nothing."""

_LISTED = (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL)


def check_way(way: str | None) -> Way | None:
    """The way that was told.

    Raises
    ------
    OptionError
        For a word that is none.
    """
    known: Way | None = next((each for each in WAYS if each == way), None)
    if known is None and way is not None:
        raise OptionError(f"there is no way {way!r} to take rare values; choose one of {', '.join(WAYS)}")
    return known


@dataclass(frozen=True, eq=False, repr=False)
class SharedCategories:
    """A table whose categories are each held by enough persons, its schema, and how it came about.

    ``told`` is the schema before, with the categories filled in that it left open; ``filled`` counts the missing cells
    of columns that took another record's, and ``changed`` are the columns that are not as they were, or are gone.
    """

    table: pa.Table
    schema: Schema
    told: Schema
    fact: RareValues | None = None
    recodings: tuple[Recoding, ...] = ()
    filled: Mapping[str, int] = dataclasses.field(default_factory=dict)
    changed: frozenset[str] = frozenset()

    def words(self, name: str) -> str:
        """What becomes of the rare values of a column, for its owner; nothing where it has none."""
        if self.fact is None:
            return ""
        few = f"fewer than {self.fact.k} persons"
        if name in self.fact.dropped:
            return f"less than two values that {self.fact.k} persons hold: will be dropped"
        told = [
            f"{each.joined} that {few} hold become {each.words()}"
            for each in self.recodings
            if each.before.name == name and each.joined
        ]
        if name in self.filled:
            told.append(f"{self.filled[name]} missing cells of {few} take another record's value")
        return "; ".join(told)

    def like(self, other: pa.Table) -> pa.Table:
        """Another table, such as that of people held out, with its categories counted in the same way."""
        return recode(other, self.recodings)

    def part(self, rows: pa.Table, chance: NDArray[np.uint64]) -> tuple[pa.Table, int, int]:
        """Further rows of the same table with their values shared alike, and how many cells became others or filled.

        A cell that too few lack takes that of a row of this table, which a number of each row chooses.
        """
        recoded = sum(each.count(rows.column(each.before.name)) for each in self.recodings)
        rows, filled = recode(rows, self.recodings), 0
        for names in _tied(self.told, list(self.filled)):
            lacking = {
                name: absent_cells(plain(rows.column(name)), self.told[name].missing)
                for name in names & self.filled.keys()
            }
            lost = np.logical_or.reduce(list(lacking.values()))
            filled += sum(int(each.sum()) for each in lacking.values())
            if not lost.any():
                continue
            places = np.where(lost, (chance % np.uint64(self.table.num_rows)).astype(np.int64), -1)
            for name in names:
                own, theirs = rows.column(name), self.table.column(name).cast(rows.column(name).type)
                pool = pa.chunked_array([*theirs.chunks, *own.chunks])
                where = np.where(lost, places, self.table.num_rows + np.arange(len(lost)))
                rows = rows.set_column(rows.column_names.index(name), name, pool.take(pa.array(where)))
        return rows, recoded, filled


def share_values(
    table: pa.Table,
    schema: Schema,
    *,
    k: int,
    way: Way | None,
    persons: Codes | None,
    rng: np.random.Generator,
    most: int | None = MOST_CATEGORIES,
) -> SharedCategories:
    """A table in which at least ``k`` persons hold each category, and as many lack a cell where any does.

    A category that fewer hold joins others under a name of its own; where these are still too few, the next smallest
    joins. A place of an order becomes the nearest that enough hold. A column that would be left with one category, or
    in which fewer than ``k`` persons have a value, is dropped. Where fewer lack a cell it is filled from another
    record, together with the cells that rules tie to it.

    Parameters
    ----------
    table : pyarrow.Table
    schema : Schema
    k : int
    way : {"pool", "lift", "keep"}, optional
        By default as "lift", but a rare class of the target stops the run. Columns without a hierarchy are pooled.
    persons : ndarray of shape (n,), optional
        Whom each row is about; by default each about a person of its own.
    rng : numpy.random.Generator
        Draws the records that missing cells are filled from.
    most : int, optional
        Categories that a column may keep; of more the smallest join others. None where there is no end.

    Raises
    ------
    PrivacyRefusal
        Where a class of the target is rare and nobody said what to do, or one class would be left.
    """
    fields = {each.name: complete_field(each, table.column(each.name)) for each in schema.encoded}
    told = dataclasses.replace(schema, fields=tuple(fields.get(each.name, each) for each in schema))
    if k < 2:
        return SharedCategories(table, schema, told)
    passed = [each for each in schema if each.role is Role.PUBLIC and each.kind in _LISTED]
    listed = [each for each in fields.values() if each.kind in _LISTED]
    fact = RareValues(way or "lift", k, len(listed) + len(passed), by_person=persons is not None)
    if way == "keep":
        shown = sum(_count_rare(table, each, k, persons) for each in (*listed, *passed))
        return SharedCategories(table, schema, told, dataclasses.replace(fact, shown=shown) if fact.columns else None)
    absent = {name: absent_cells(plain(table.column(name)), each.missing) for name, each in fields.items()}
    found = {each.name: recode_column(table.column(each.name), each, k, way, persons, most) for each in listed}
    dropped = {name for name, gone in absent.items() if count_holders(np.where(gone, -1, 0), 1, persons)[0] < k}
    dropped |= {name for name, recoding in found.items() if recoding is not None and recoding.after is None}
    _check_target(schema.target, found, dropped, k, told=way is not None)
    recodings = [each for name, each in found.items() if each is not None and name not in dropped]
    few = {
        name: gone
        for name, gone in absent.items()
        if name not in dropped and 0 < count_holders(np.where(gone, 0, -1), 1, persons)[0] < k
    }
    whole, touched = _fill(recode(table, recodings), told, few, rng)
    dropped |= few.keys() - touched
    recodings = [each for each in recodings if each.before.name not in dropped]
    filled = {name: int(gone.sum()) for name, gone in few.items() if name not in dropped}
    fact = dataclasses.replace(
        fact,
        way="lift" if any(each.lifted for each in recodings) else "pool",
        categories=sum(each.joined for each in recodings),
        cells=sum(each.cells for each in recodings),
        filled=sum(filled.values()),
        shown=sum(_count_rare(table, each, k, persons) for each in passed),
        dropped=tuple(each.name for each in schema if each.name in dropped),
    )
    after = {each.before.name: each.after for each in recodings if each.after is not None}
    gone_to = {name: Field(name, fields[name].kind, Role.IDENTIFIER, missing=fields[name].missing) for name in dropped}
    left = tuple((after | gone_to).get(each.name, each) for each in schema)
    return SharedCategories(
        whole,
        dataclasses.replace(schema, fields=left),
        told,
        fact if fact.columns or fact.filled or dropped else None,
        tuple(recodings),
        filled,
        frozenset({*after, *touched, *dropped}),
    )


def _count_rare(table: pa.Table, each: Field, k: int, persons: Codes | None) -> int:
    """Categories of a column that fewer than ``k`` persons hold."""
    array = plain(table.column(each.name))
    absent = absent_cells(array, each.missing)
    encoded = pc.dictionary_encode(array)
    codes = pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    holders = count_holders(np.where(absent, -1, codes), max(1, len(encoded.dictionary)), persons)
    return int(((holders > 0) & (holders < k)).sum())


def _check_target(
    target: Field | None, found: Mapping[str, Recoding | None], dropped: Collection[str], k: int, *, told: bool
) -> None:
    """Refuse to hide a class of the target that nobody said to hide, and to leave it with one class."""
    if target is None:
        return
    recoding = found.get(target.name)
    rare = target.name in dropped or (recoding is not None and recoding.joined)
    if rare and not told:
        raise PrivacyRefusal(
            f"a class of the target {target.name!r} is held by fewer than {k} persons; add --rare pool to count it to "
            "others, --rare keep to release it as it is, or lower the level"
        )
    if target.name in dropped:
        raise PrivacyRefusal(
            f"fewer than {k} persons hold all classes of the target {target.name!r} but one, so that one would be "
            "left; lower the level, choose another target, or add --rare keep"
        )


def _fill(
    table: pa.Table, schema: Schema, few: Mapping[str, Mask], rng: np.random.Generator
) -> tuple[pa.Table, set[str]]:
    """Fill cells that few lack from records that have them, and tell in which columns; not where none has.

    Columns that a rule ties together are filled from the same record, so that the rule goes on to hold.
    """
    touched: set[str] = set()
    for names in _tied(schema, list(few)):
        lost = np.logical_or.reduce([few[name] for name in names if name in few])
        donors = np.flatnonzero(~lost)
        if not len(donors):
            continue
        origin = np.arange(len(lost))
        origin[lost] = rng.choice(donors, int(lost.sum()))
        for name in names:
            cells = table.column(name).take(pa.array(origin))
            table = table.set_column(table.column_names.index(name), name, cells)
        touched |= names
    return table, touched


def _tied(schema: Schema, names: list[str]) -> list[set[str]]:
    """Columns in sets that rules tie together, of those sets that hold one of the names."""
    sets: list[set[str]] = [{name} for name in names]
    for rule in rules_within(schema):
        joined = set(rule.columns).union(*(some for some in sets if some & set(rule.columns)))
        sets = [*(some for some in sets if not some & joined), joined]
    return [some for some in sets if some & set(names)]
