"""Rare values of a table: replace categories held by fewer than k persons."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.core.persons import count_persons
from sfumato.tables.cells import absent_cells, plain, read_codes
from sfumato.tables.codec import MOST_CATEGORIES
from sfumato.tables.evidence import Evidence
from sfumato.tables.facts import RareValues
from sfumato.tables.field import NO_COMMON_VALUE, Field, Kind, Role
from sfumato.tables.infer import complete_field
from sfumato.tables.recoding import Codes, Mask, MinimumFrequencies, RareTreatment, Recoding, recode, recode_column
from sfumato.tables.rules import Rule, broken_rows, cells_of_column, rules_within, tied_columns
from sfumato.tables.schema import Schema

__all__ = ["RARE_TREATMENTS", "PooledCategories", "check_rare_treatment", "lost_cells", "pool_rare_values"]

RARE_TREATMENTS: tuple[RareTreatment, ...] = ("pool", "lift", "keep")
"""What becomes of categories that too few hold: one named other, a wider one of their hierarchy, or nothing."""

_LISTED = (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL)
_DONORS = 16  # records that are compared with one whose cell is filled
_MOST_MATCHED = 10_000  # cells of a column that are filled from similar records


def check_rare_treatment(way: str | None) -> RareTreatment | None:
    """The treatment of rare values, checked.

    Raises
    ------
    OptionError
        For a word that is none.
    """
    known: RareTreatment | None = next((each for each in RARE_TREATMENTS if each == way), None)
    if known is None and way is not None:
        raise OptionError(f"there is no way {way!r} to take rare values; choose one of {', '.join(RARE_TREATMENTS)}")
    return known


@dataclass(frozen=True, eq=False, repr=False)
class PooledCategories:
    """A table in which enough persons have each category, its schema, and what was changed.

    ``told`` is the schema before, with the categories filled in that it left open. Missing cells of the columns
    ``filled`` took another record's, and ``changed`` are the columns that are not as they were, or are gone. ``copied``
    marks the cells that took another record's value, by column.
    """

    table: pa.Table
    schema: Schema
    told: Schema
    fact: RareValues | None = None
    recodings: tuple[Recoding, ...] = ()
    filled: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    copied: Mapping[str, Mask] = dataclasses.field(default_factory=dict)

    def words(self, name: str) -> str:
        """What happened to the rare values of a column, for the owner; an empty text if it has none."""
        if self.fact is None:
            return ""
        few = f"fewer than {self.fact.k} persons"
        if name in self.fact.dropped:
            return NO_COMMON_VALUE.format(self.fact.k)
        told = [
            f"categories held by {few} become {each.words()}"
            for each in self.recodings
            if each.before.name == name and each.hides
        ]
        if name in self.filled:
            told.append(f"missing cells of {few} take another record's value")
        return "; ".join(told)

    def like(self, other: pa.Table) -> pa.Table:
        """Another table, such as a hold-out set, recoded in the same way."""
        return recode(other, self.recodings)

    def part(self, rows: pa.Table, chance: NDArray[np.uint64]) -> pa.Table:
        """Further rows of the same table, recoded in the same way.

        A cell that too few lack, or whose category too few hold, takes that of a row of this table, which a number of
        each row chooses.
        """
        lost = lost_cells(rows, {name: self.told[name] for name in self.filled}, self.recodings)
        rows = recode(rows, self.recodings)
        for names in tied_columns(rules_within(self.told), lost):
            gone = np.logical_or.reduce([lost[name] for name in names if name in lost])
            if not gone.any():
                continue
            places = np.where(gone, (chance % np.uint64(self.table.num_rows)).astype(np.int64), -1)
            for name in names:
                own, theirs = rows.column(name), self.table.column(name).cast(rows.column(name).type)
                pool = pa.chunked_array([*theirs.chunks, *own.chunks])
                where = np.where(gone, places, self.table.num_rows + np.arange(len(gone)))
                rows = rows.set_column(rows.column_names.index(name), name, pool.take(pa.array(where)))
        return rows


def pool_rare_values(
    table: pa.Table,
    schema: Schema,
    *,
    k: int,
    way: RareTreatment | None,
    persons: Codes | None,
    rng: np.random.Generator,
    most: int | None = MOST_CATEGORIES,
    stated: int = 0,
    decisions: Callable[[], Iterable[Rule]] | None = None,
) -> PooledCategories:
    """A table in which at least ``k`` persons have each category, and each missing indicator.

    Rare categories become a wider one of their hierarchy, or one named other, if more than ``k`` persons have any of
    them, by a random margin. Otherwise each of their cells takes the value of a similar record with a common category,
    together with the cells that rules tie to it. A place of an order becomes the nearest that enough hold. Missing
    cells that fewer than ``k`` persons have are filled likewise. A column in which fewer than ``k`` persons have a
    value, or no category is common, is dropped.

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
        Draws the margin and the records that cells are filled from.
    most : int, optional
        Categories that a column may keep; of more the smallest join others. None if there is no end.
    stated : int
        Number of persons that the fact states, at most k; by default k.
    decisions : callable, optional
        Gives rules ``a -> b`` that are to hold afterwards, besides those of the schema: a new label of ``a`` that
        several values of ``b`` go with takes the value of a similar record.

    Raises
    ------
    PrivacyRefusal
        If a class of the target is rare and its treatment is not given, or no class is common.
    """
    fields = {each.name: complete_field(each, table.column(each.name)) for each in schema.encoded}
    told = dataclasses.replace(schema, fields=tuple(fields.get(each.name, each) for each in schema))
    if k < 2:
        return PooledCategories(table, schema, told)
    passed = sum(each.role is Role.PUBLIC and each.kind in _LISTED for each in schema)
    listed = [each for each in fields.values() if each.kind in _LISTED]
    fact = RareValues(way or "lift", stated or k, len(listed), passed, by_person=persons is not None)
    if way == "keep":
        return PooledCategories(table, schema, told, fact if fact.columns + fact.passed else None)
    floors = MinimumFrequencies.drawn(k, rng)
    absent = {name: absent_cells(plain(table.column(name)), each.missing) for name, each in fields.items()}
    found = {each.name: recode_column(table.column(each.name), each, floors, way, persons, most) for each in listed}
    dropped = {name for name, gone in absent.items() if count_persons(np.where(gone, -1, 0), persons, 1)[0] < k}
    dropped |= {name for name, recoding in found.items() if recoding is not None and recoding.after is None}
    _check_target(schema.target, found, dropped, k, told=way is not None)
    recodings = tuple(each for name, each in found.items() if each is not None and name not in dropped)
    rules = tuple(rules_within(told))
    if decisions is not None and any(each.hides for each in recodings):
        rules = tuple(dict.fromkeys((*rules, *(each for each in decisions() if not dropped & {*each.columns}))))
        told = dataclasses.replace(told, rules=tuple(map(str, rules)))
    evidence = Evidence(1) if decisions is None else Evidence.of(table.num_rows, persons)
    recodings = _keeping_dependencies(table, told, recodings, rules, evidence)
    filled = frozenset(
        name
        for name, gone in absent.items()
        if name not in dropped and 0 < count_persons(np.where(gone, 0, -1), persons, 1)[0] < k
    )
    few = {name: each for name, each in fields.items() if name in filled}
    lost = {name: each for name, each in lost_cells(table, few, recodings).items() if each.any()}
    whole, copied = _impute_cells(recode(table, recodings), told, lost, rng)
    dropped |= lost.keys() - copied.keys()
    recodings = tuple(each for each in recodings if each.before.name not in dropped)
    fact = dataclasses.replace(
        fact,
        way="lift" if any(each.lifted for each in recodings) else "pool",
        dropped=tuple(each.name for each in schema if each.name in dropped),
    )
    after = {each.before.name: each.after for each in recodings if each.after is not None}
    gone_to = {name: Field(name, fields[name].kind, Role.IDENTIFIER, missing=fields[name].missing) for name in dropped}
    left = tuple((after | gone_to).get(each.name, each) for each in schema)
    left = tuple(dataclasses.replace(each, missing=()) if each.name in filled else each for each in left)
    return PooledCategories(
        whole,
        dataclasses.replace(schema, fields=left),
        told,
        fact if fact.columns or fact.passed or dropped else None,
        recodings,
        filled - dropped,
        frozenset({*after, *copied, *dropped}),
        copied,
    )


def _keeping_dependencies(
    table: pa.Table, schema: Schema, recodings: Sequence[Recoding], rules: Iterable[Rule], evidence: Evidence
) -> tuple[Recoding, ...]:
    """Recodings without the new labels that break a dependency between columns."""
    left = {each.before.name: each for each in recodings}
    recoded, fields = (
        recode(table, recodings),
        {each.name: left[each.name].after if each.name in left else each for each in schema},
    )
    for rule in rules:
        recoding = left.get(rule.columns[0])
        if rule.form != "->" or recoding is None or recoding.after is None or not recoding.new_labels.any():
            continue
        cells = {name: cells_of_column(recoded.column(name), field) for name in rule.columns if (field := fields[name])}
        codes, _ = read_codes(recoded.column(recoding.before.name), recoding.after)
        broken = broken_rows(rule, cells) & np.isin(codes, np.flatnonzero(recoding.new_labels))
        if evidence.few(broken):
            continue
        mixed = np.unique(codes[broken])
        several = [place for place in mixed if not evidence.few(broken & (codes == place))]
        rest = broken & ~np.isin(codes, several)
        left[recoding.before.name] = recoding.without(several if evidence.few(rest) else mixed.tolist())
    return tuple(left.values())


def lost_cells(table: pa.Table, filled: Mapping[str, Field], recodings: Iterable[Recoding]) -> dict[str, Mask]:
    """Cells that take another record's value: those of rare categories, and missing cells of columns ``filled``."""
    lost = {each.before.name: each.moved(table.column(each.before.name)) for each in recodings}
    for name, field in filled.items():
        absent = absent_cells(plain(table.column(name)), field.missing)
        lost[name] = lost[name] | absent if name in lost else absent
    return lost


def _check_target(
    target: Field | None, found: Mapping[str, Recoding | None], dropped: Collection[str], k: int, *, told: bool
) -> None:
    """Refuse to hide a class of the target unless requested, and to leave the target with one class."""
    if target is None:
        return
    recoding = found.get(target.name)
    rare = target.name in dropped or (recoding is not None and recoding.hides)
    if rare and not told:
        raise PrivacyRefusal(
            f"a class of the target {target.name!r} is held by fewer than {k} persons; add --rare pool to count it to "
            "others, --rare keep to release it as it is, or lower the level"
        )
    if target.name in dropped:
        raise PrivacyRefusal(
            f"no class of the target {target.name!r} is held by {k} persons; lower the level, choose another target, "
            "or add --rare keep"
        )


def _impute_cells(
    table: pa.Table, schema: Schema, lost: Mapping[str, Mask], rng: np.random.Generator
) -> tuple[pa.Table, dict[str, Mask]]:
    """Fill cells from similar records, and return which cells were filled; cells without a donor stay.

    Columns that a rule ties together are filled from the same record, so that the rule goes on to hold.
    """
    copied: dict[str, Mask] = {}
    for names in tied_columns(rules_within(schema), lost):
        gone = np.logical_or.reduce([lost[name] for name in names if name in lost])
        donors = np.flatnonzero(~gone)
        if not len(donors):
            continue
        origin = np.arange(len(gone))
        others = [each for each in schema.encoded if each.name not in names]
        decided = [schema[name] for name in sorted(names) if name not in lost and schema[name].kind in _LISTED]
        rows = np.flatnonzero(gone)
        tried = _draw_donors(table, decided, rows, donors, rng)
        origin[gone] = _most_similar(table, others, rows, tried, rng)
        for name in names:
            cells = table.column(name).take(pa.array(origin))
            table = table.set_column(table.column_names.index(name), name, cells)
            copied[name] = gone
    return table, copied


def _draw_donors(
    table: pa.Table, decided: Sequence[Field], rows: Codes, donors: Codes, rng: np.random.Generator
) -> Codes:
    """Random donors for each row, with its values in the columns that it keeps, if there are any."""
    if not decided:
        return donors[rng.integers(0, len(donors), (len(rows), _DONORS))]
    kept = np.zeros(table.num_rows, dtype=np.int64)
    for each in decided:
        codes = pc.dictionary_encode(plain(table.column(each.name)), null_encoding="encode").indices.to_numpy()
        kept = np.unique(kept * (int(codes.max()) + 1) + codes, return_inverse=True)[1]
    ordered = donors[np.argsort(kept[donors], kind="stable")]
    first, last = (np.searchsorted(kept[ordered], kept[rows], side=side) for side in ("left", "right"))
    nobody = first == last
    first, last = np.where(nobody, 0, first), np.where(nobody, len(ordered), last)
    return ordered[rng.integers(first[:, None], last[:, None], (len(rows), _DONORS))]


def _most_similar(
    table: pa.Table, fields: Sequence[Field], rows: Codes, tried: Codes, rng: np.random.Generator
) -> Codes:
    """The donor of each row that agrees with it in most categorical columns."""
    if len(rows) > _MOST_MATCHED:  # the cells are frequent in a table that lacks few others
        return tried[:, 0]
    agree = rng.random(tried.shape)  # breaks ties
    for each in fields:
        if each.kind in _LISTED:
            codes = pc.dictionary_encode(plain(table.column(each.name)), null_encoding="encode").indices.to_numpy()
            agree += codes[tried] == codes[rows][:, None]
    return np.asarray(tried[np.arange(len(rows)), agree.argmax(axis=1)], dtype=np.int64)
