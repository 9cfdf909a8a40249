"""Recode values to more general labels: a level of a hierarchy, pooling, lifting, or joining neighbours in order."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.arrays import Bools, Floats, Ints, count_persons, number_of_persons
from sfumato.core.errors import OptionError, SchemaError, closest_name, shown
from sfumato.tables.cells import (
    absent_cells,
    gap_of_cells,
    is_text,
    numbers_of_cells,
    plain,
    read_codes,
    write_codes,
    written_type,
)
from sfumato.tables.codec import MOST_CATEGORIES
from sfumato.tables.dates import microseconds_of_cells, unit_of
from sfumato.tables.facts import Aggregated
from sfumato.tables.field import Category, Domain, Field, Kind
from sfumato.tables.grid import label_of
from sfumato.tables.hierarchies import MOST_LEVELS, Hierarchy, parse_hierarchy, read_hierarchy
from sfumato.tables.infer import complete_field
from sfumato.tables.schema import Schema

__all__ = [
    "Codes",
    "Mask",
    "MinimumFrequencies",
    "RareTreatment",
    "Recoding",
    "coarsen",
    "coarser",
    "column_and_level",
    "fact_of_aggregation",
    "hierarchy_of",
    "known_columns",
    "known_of",
    "label_values",
    "like_released",
    "recode",
    "recode_column",
    "recode_counts",
]


def hierarchy_of(field: Field) -> Hierarchy:
    """Hierarchy of a column that has one, read from its file if needed."""
    assert field.hierarchy is not None
    found = parse_hierarchy(field.hierarchy, field.kind.value, field.name)
    return read_hierarchy(found) if isinstance(found, Path) else found


def column_and_level(text: str, names: Collection[str]) -> tuple[str, int]:
    """Column that a text names, and the hierarchy level after an @; 0 without one.

    Examples
    --------
    >>> column_and_level("postcode@2", ["postcode"]), column_and_level("a@2", ["a@2"])
    (('postcode', 2), ('a@2', 0))
    """
    name, _, level = text.rpartition("@")
    if text in names or name not in names or not re.fullmatch(r"[1-9]\d?", level, re.ASCII):
        return text, 0
    return name, int(level)


def label_values(field: Field, level: int, values: Floats) -> list[str]:
    """Labels of values at a level of the column's hierarchy; values are numbers, counted dates or category codes.

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
    """Label of a category at a level; the category itself if it already is a label of that level or above."""
    label = hierarchy.label(text, level)
    highest = hierarchy.levels or level
    wide = label == "*" and any(hierarchy.is_label(text, each) for each in range(level, highest + 1))
    return text if wide else label


def coarser(schema: Schema, levels: Iterable[tuple[str, str | None, int]]) -> Schema:
    """Schema in which columns are released at a hierarchy level: the requested one, or the column's own.

    Dates without a hierarchy take the calendar.

    Raises
    ------
    OptionError
        For a column that is not sanitized, or has no hierarchy.
    """
    fields = {field.name: field for field in schema}
    for name, hierarchy, level in levels:
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


def fact_of_aggregation(schema: Schema, left: Collection[str]) -> tuple[Aggregated, ...]:
    """Fact about the hierarchy level at which each column is released; none if no column is generalized.

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
    """A table generalized to the levels in its schema, and the schema of the result.

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
    """Labels of the distinct values of a column, in order of the values."""
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
    """Cells of a column as its hierarchy reads them; None for missing ones."""
    array = plain(column)
    absent = absent_cells(array, field.missing)
    if field.kind is Kind.NOMINAL:
        return [None if gone else cell for cell, gone in zip(array.to_pylist(), absent, strict=True)]
    if field.kind is Kind.DATE:
        moments, strange = microseconds_of_cells(array, absent, field)
        if strange.any():
            raise SchemaError(f"column {field.name!r} holds {int(strange.sum())} cells that are not dates; fix them")
        return list(pa.array(moments, mask=absent).view(pa.timestamp("us")).to_pylist())
    numbers, absent = numbers_of_cells(column, field)
    return [None if gone else number for number, gone in zip(numbers.tolist(), absent, strict=True)]


def _write(column: pa.ChunkedArray, field: Field, labels: dict[Any, str]) -> pa.ChunkedArray:
    array = plain(column)
    texts = pa.array([labels.get(value) for value in _values(column, field)], pa.string())
    absent = absent_cells(array, field.missing)
    if absent.any() and is_text(array.type):  # missing cells stay as they are written
        texts = pc.if_else(pa.array(absent), array.cast(pa.string()), texts)
    return pa.chunked_array([texts])


def known_columns(known: Iterable[str], schema: Schema) -> tuple[str, ...]:
    """Columns that an attacker is assumed to know, also from texts with several names separated by commas.

    ``postcode@2`` is a column known by its labels at the second level of its hierarchy.

    Raises
    ------
    OptionError
        If one of them is no column that is measured, or has no such level, or is named twice.
    """
    measured = [field.name for field in schema.encoded]
    texts = [text for hint in known for text in ([hint] if hint in measured else hint.split(","))]
    found = {text: column_and_level(text, measured) for text in texts}
    for text, (name, level) in found.items():
        if name not in measured:
            meant = closest_name(text.partition("@")[0], measured)
            hint = "name another" if meant is None else f"did you mean {shown(meant)}?"
            raise OptionError(f"there is no column {shown(text)} that is measured and could be known; {hint}")
        if level and schema[name].coarsened:
            raise OptionError(
                f"column {name!r} is compared at level {schema[name].coarsened} of its hierarchy already, so an "
                "attacker knows that label; name it without @"
            )
        if level:
            label_values(schema[name], level, np.empty(0))
    names = [name for name, _ in found.values()]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise OptionError(f"column {twice!r} is named twice as known; name it once")
    return tuple(found)


def known_of(known: Iterable[str], schema: Schema) -> list[str]:
    """Columns and levels that an attacker is assumed to know, restricted to what the table still has."""
    found = [column_and_level(text, schema.names) for text in known]
    left = [(name, level) for name, level in found if name in schema.names]
    wide = [bool(level) and (schema[name].hierarchy or schema[name].kind is Kind.DATE) for name, level in left]
    return [f"{name}@{level}" if wider else name for (name, level), wider in zip(left, wide, strict=True)]


RareTreatment = Literal["pool", "lift", "keep"]
_OTHER, _REST = "other", "*"

Codes = Ints
Mask = Bools


@dataclass(frozen=True, eq=False, repr=False)
class Recoding:
    """How the categories of one column are recoded.

    ``places`` says for each category before which one after it is, -1 if its cells take the category of another record;
    ``rest`` is where categories go that nobody has, -1 if they become missing cells. ``lifted`` where some became
    wider ones of a hierarchy, ``hides`` if a category that someone holds does not stay. ``after`` is None if no
    category would be left held by enough persons.
    """

    before: Field
    after: Field | None
    places: Codes
    rest: int = -1
    lifted: bool = False
    hides: bool = False

    def moved(self, column: pa.ChunkedArray) -> Bools:
        """Cells of rare categories that take another record's value."""
        codes, _ = read_codes(column, self.before)
        return np.asarray((codes >= 0) & (self.places[np.maximum(codes, 0)] < 0), dtype=np.bool_)

    def of(self, column: pa.ChunkedArray) -> pa.Array:
        """The recoded cells of a column; as texts if a new label does not fit its type."""
        assert self.after is not None
        array = plain(column)
        codes, absent = read_codes(column, self.before)
        found = np.where(absent, -1, self.rest)
        found[codes >= 0] = self.places[codes[codes >= 0]]
        kind = self._kind(column.type)
        gap = gap_of_cells(array, absent) if pa.types.is_dictionary(kind) else None
        made = write_codes(np.maximum(found, 0), found < 0, self.after, kind, gap)
        alike = made.type == array.type or (is_text(made.type) and is_text(array.type))
        if absent.any() and alike:  # missing cells stay as they are written
            return pc.if_else(pa.array(absent), array.cast(made.type), made)
        return made

    @property
    def new_labels(self) -> Bools:
        """Labels that are not among the original categories."""
        before = {label_of(each) for each in self.before.domain.categories or ()}
        after = () if self.after is None else self.after.domain.categories or ()
        return np.array([label_of(each) not in before for each in after], dtype=np.bool_)

    def without(self, labels: Sequence[int]) -> Recoding:
        """The recoding without some labels; their cells take another record's value.

        The same recoding if no label would be left.
        """
        listed = () if self.after is None else self.after.domain.categories or ()
        kept = [place for place in range(len(listed)) if place not in set(labels)]
        if self.after is None or not kept or len(kept) == len(listed):
            return self
        place_of = np.full(len(listed) + 1, -1)  # the last is that of -1
        place_of[kept] = np.arange(len(kept))
        after = _with_categories(self.after, tuple(listed[place] for place in kept))
        left = dataclasses.replace(self, after=after, places=place_of[self.places], rest=int(place_of[self.rest]))
        wider = left.new_labels
        wider[[left.rest] if left.rest >= 0 else []] = False
        return dataclasses.replace(left, lifted=bool(wider.any()))

    def words(self) -> str:
        """What happened to rare categories, in words."""
        if self.before.kind is Kind.ORDINAL:
            return "their neighbour"
        labels = () if self.after is None else self.after.domain.categories or ()
        other = [] if self.rest < 0 else [repr(labels[self.rest])]
        common = ["a common one"] if (self.places < 0).any() else []
        return " or ".join([*(["wider ones"] if self.lifted else []), *other, *common])

    def _kind(self, kind: pa.DataType) -> pa.DataType:
        own = kind.value_type if pa.types.is_dictionary(kind) else kind
        labels = () if self.after is None else self.after.domain.categories or ()
        texts = all(isinstance(category, str) for category in labels)
        if texts and not is_text(own):
            return pa.string()
        return written_type(kind)


def recode(table: pa.Table, recodings: Collection[Recoding]) -> pa.Table:
    """A table with its categories recoded, for the columns that it has."""
    for recoding in recodings:
        name = recoding.before.name
        if name in table.column_names:
            cells = pa.chunked_array([recoding.of(table.column(name))])
            table = table.set_column(table.column_names.index(name), name, cells)
    return table


@dataclass(frozen=True)
class MinimumFrequencies:
    """Minimum frequency of a category (``k``), and of a pooled label (``pooled``).

    The second is larger by a random margin of up to k, so that no one person decides whether the label appears.
    """

    k: int
    pooled: int

    @classmethod
    def drawn(cls, k: int, rng: np.random.Generator) -> MinimumFrequencies:
        """Minimum frequencies with a random margin."""
        return cls(k, k + int(rng.integers(1, k + 1)))


def recode_column(
    column: pa.ChunkedArray,
    each: Field,
    floors: MinimumFrequencies,
    way: RareTreatment | None,
    persons: Codes | None,
    most: int | None,
) -> Recoding | None:
    """Recoding of a column so that each category reaches its minimum frequency; None if none is rare."""
    codes, _ = read_codes(column, each)
    size = len(each.domain.categories or ())
    return _recode_counted(each, codes, count_persons(codes, persons, size), floors, way, persons, most)


def recode_counts(
    each: Field, frequencies: Codes, floors: MinimumFrequencies, way: RareTreatment | None
) -> Recoding | None:
    """Recoding of a column from frequencies alone.

    Nothing is given where all stay as they are.

    Examples
    --------
    >>> field = Field("town", Kind.NOMINAL, domain=Domain(categories=("Bari", "Oslo", "Ulm", "Rome")))
    >>> found = recode_counts(field, np.array([3, 20, 20, 8]), MinimumFrequencies(10, 11), "pool")
    >>> found.after.domain.categories, found.places.tolist()
    (('Oslo', 'Ulm', 'other'), [2, 0, 1, 2])
    >>> found = recode_counts(field, np.array([3, 20, 20, 0]), MinimumFrequencies(10, 11), "pool")
    >>> found.after.domain.categories, found.places.tolist()
    (('Oslo', 'Ulm'), [-1, 0, 1, -1])
    """
    cells = np.repeat(np.arange(len(frequencies)), frequencies)
    return _recode_counted(each, cells, frequencies, floors, way, None, None)


def like_released(
    original: pa.Table, released: pa.Table, schema: Schema, *, most: int | None = MOST_CATEGORIES
) -> tuple[Recoding, ...]:
    """Recode an original as its release was, so that the two can be compared.

    A category that the release lacks is its wider one there, or what was pooled there, if the release has such. Of more
    categories than ``most`` the smallest become one. To be applied to both tables.
    """
    found = []
    for each in schema.encoded:
        both = (original.column(each.name), released.column(each.name))
        if each.kind is not Kind.NOMINAL or not all(is_text(plain(column).type) for column in both):
            continue
        each = complete_field(each, both[0])
        known = [label_of(category) for category in each.domain.categories or ()]
        theirs = set(pc.unique(plain(both[1]).drop_null()).to_pylist())
        extra = sorted(theirs - set(known) - set(each.missing))
        labels = [label if label in theirs else _general_label(label, each, extra) for label in known] + extra
        if labels == known + extra and (most is None or len(labels) <= most):
            continue
        domain = Domain(each.domain.declared, categories=tuple(known + extra))
        before = dataclasses.replace(each, domain=domain)
        codes, _ = read_codes(both[0], before)
        names, inside = _encode_labels(labels, codes)
        between = dataclasses.replace(before, domain=Domain(categories=tuple(names)))
        frequencies = np.maximum(count_persons(inside, None, len(names)), 1)
        rest = _pool(between, inside, frequencies, MinimumFrequencies(1, 1), None, most)
        if rest.after is not None:
            places = rest.places[np.array([names[label] for label in labels])]
            found.append(Recoding(before, rest.after, places, rest.rest))
    return tuple(found)


def _general_label(label: str, each: Field, extra: Collection[str]) -> str:
    """Label that a release may have in place of a category it lacks; the category itself if there is none."""
    if each.hierarchy is not None and extra:
        hierarchy = hierarchy_of(each)
        for level in range(1, MOST_LEVELS + 1):
            if (wider := hierarchy.label(label, level)) in extra:
                return wider
    return next((other for other in extra if re.fullmatch(rf"{_OTHER}(_\d+)?", other)), label)


def _recode_counted(
    each: Field,
    codes: Codes,
    frequencies: Codes,
    floors: MinimumFrequencies,
    way: RareTreatment | None,
    persons: Codes | None,
    most: int | None,
) -> Recoding | None:
    size, left = len(frequencies), frequencies >= floors.k
    rare = (frequencies > 0) & ~left
    if each.kind is Kind.NOMINAL:
        if not rare.any() and (most is None or size <= most):
            return None
        recode_by = _lift if each.hierarchy is not None and way != "pool" else _pool
        found = recode_by(each, codes, frequencies, floors, persons, most)
    elif each.kind is Kind.ORDINAL:
        if left.all():
            return None
        found = _join_neighbours(each, left)
    elif rare.any():
        found = Recoding(each, each if left.any() else None, np.where(left, np.arange(size), -1))
    else:
        return None
    return dataclasses.replace(found, hides=bool(rare.any()) or found.rest >= 0)


def _join_neighbours(each: Field, enough: Mask) -> Recoding:
    """Join rare categories of an order to the nearest frequent ones."""
    listed, left = each.domain.categories or (), np.flatnonzero(enough)
    if not len(left):
        return Recoding(each, None, np.arange(len(listed)))
    places = np.abs(np.arange(len(listed))[:, None] - left[None, :]).argmin(axis=1)
    return Recoding(each, _with_categories(each, tuple(listed[place] for place in left)), places)


def _pool(
    each: Field,
    codes: Codes,
    frequencies: Codes,
    floors: MinimumFrequencies,
    persons: Codes | None,
    most: int | None = MOST_CATEGORIES,
) -> Recoding:
    """Pool rare categories as "other" if enough persons have any of them; likewise the smallest of too many.

    If fewer do, each of their cells takes the category of another record: no common category pays for a rare one.
    """
    size, known = len(frequencies), codes[codes >= 0]
    first = np.full(size, len(codes))
    np.minimum.at(first, known, np.flatnonzero(codes >= 0))
    present = np.flatnonzero(frequencies > 0)
    order = present[np.lexsort((first[present], frequencies[present]))]  # columns that go together are cut alike
    few = int((frequencies[order] < floors.k).sum())
    count = few if most is None or len(order) <= most else max(few, len(order) - (most - 1))
    pooled = np.zeros(size, dtype=np.bool_)
    pooled[order[:count]] = True
    inside = pooled[known]
    who = number_of_persons(None if persons is None else persons[codes >= 0], inside)
    if count and who < floors.pooled:  # what is beyond the most is held by more
        return _remove_rare(each, pooled, frequencies, most)
    if count == len(order):
        return Recoding(each, None, np.zeros(size, dtype=np.int64))
    return _as_other(each, pooled, frequencies, most)


def _remove_rare(each: Field, rare: Mask, frequencies: Codes, most: int | None) -> Recoding:
    """Remove rare categories; their cells take another record's value."""
    listed = each.domain.categories or ()
    all_listed = each.domain.declared and (most is None or len(listed) <= most)
    kept = np.flatnonzero(~rare if all_listed else ~rare & (frequencies > 0))
    places = np.full(len(listed), -1)
    places[kept] = np.arange(len(kept))
    left = bool((frequencies[kept] > 0).any())
    return Recoding(each, _with_categories(each, tuple(listed[place] for place in kept)) if left else None, places)


def _lift(
    each: Field, codes: Codes, frequencies: Codes, floors: MinimumFrequencies, persons: Codes | None, most: int | None
) -> Recoding:
    """Generalize rare categories level by level in the hierarchy; pool those that are still rare."""
    hierarchy, listed = hierarchy_of(each), [label_of(category) for category in each.domain.categories or ()]
    labels, rare = list(listed), (frequencies > 0) & (frequencies < floors.k)
    moved = np.zeros(len(listed), dtype=np.bool_)
    for level in range(1, MOST_LEVELS + 1):
        lifted = [hierarchy.label(listed[place], level) for place in np.flatnonzero(rare)]
        for place, label in zip(np.flatnonzero(rare), lifted, strict=True):
            labels[place] = _REST if label in each.missing else label
        moved |= rare
        names, inside = _encode_labels(labels, codes)
        places = np.array([names[label] for label in labels])
        rare = moved & (frequencies > 0) & (count_persons(inside, persons, len(names))[places] < floors.pooled)
        if all(labels[place] == _REST for place in np.flatnonzero(rare)):
            break
    between = Field(
        each.name,
        Kind.NOMINAL,
        each.role,
        Domain(categories=tuple(names)),
        each.missing,
        reason=each.reason,
        hierarchy=each.hierarchy,
    )
    wide = count_persons(inside, persons, len(names))
    wide[np.unique(places[rare])] = np.minimum(wide[np.unique(places[rare])], floors.k - 1)  # new labels need more
    rest = _pool(between, inside, wide, floors, persons, most)
    if rest.after is None:
        return Recoding(each, None, np.zeros(len(listed), dtype=np.int64))
    places = rest.places[places]
    wider = bool((moved & (places >= 0) & (places != rest.rest)).any())
    return Recoding(each, rest.after, places, rest.rest, lifted=wider)


def _encode_labels(labels: list[str], codes: Codes) -> tuple[dict[str, int], Codes]:
    """Codes of distinct labels, and that of each cell."""
    names = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    places = np.array([names[label] for label in labels])
    return names, np.where(codes >= 0, places[codes], -1)


def _as_other(each: Field, pooled: Mask, frequencies: Codes, most: int | None) -> Recoding:
    listed, declared = each.domain.categories or (), each.domain.declared and pooled.any()
    kept = np.flatnonzero(~pooled if declared and (most is None or len(listed) < most) else ~pooled & (frequencies > 0))
    labels: tuple[Category, ...] = tuple(listed[place] for place in kept)
    places = np.full(len(listed), len(kept) if pooled.any() else -1)
    places[kept] = np.arange(len(kept))
    if not pooled.any():  # too many are listed, and most of them nobody has
        return Recoding(each, _with_categories(each, labels), places)
    if not all(isinstance(label, str) for label in labels):
        labels = tuple(label_of(label) for label in labels)
    taken = {*each.missing, *(label_of(category) for category in listed)}
    after = _with_categories(each, (*labels, _free_name(taken)))
    return Recoding(each, after, places, len(kept))


def _free_name(taken: Collection[str]) -> str:
    """A name for the pooled category that is not in use.

    Examples
    --------
    >>> _free_name({"a"}), _free_name({"Other", "other_2"})
    ('other', 'other_3')
    """
    known = {name.strip().casefold() for name in taken}
    names = (_OTHER if number == 1 else f"{_OTHER}_{number}" for number in range(1, len(known) + 2))
    return next(name for name in names if name not in known)


def _with_categories(each: Field, categories: tuple[Category, ...]) -> Field:
    return dataclasses.replace(each, domain=dataclasses.replace(each.domain, categories=categories))
