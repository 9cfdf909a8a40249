"""Propose the person column, so that levels count persons and not rows."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.arrays import Floats, Ints
from sfumato.tables.cells import absent_cells, is_text, plain, read_numbers
from sfumato.tables.contact import FREE_TEXT, is_named_id, is_named_like_id, private_text
from sfumato.tables.evidence import least_evidence
from sfumato.tables.field import Field
from sfumato.tables.schema import Kind, Role, Schema

__all__ = ["Proposal", "propose_person"]

_LEAST = 20  # values that both a key of persons and what never changes with it have more of
_CHANCE = 1e-6  # that as many repeated rows agree although nobody is in them twice
_SERIAL = 200  # persons who were numbered one by one, and not years or weeks
_DENSE = 0.9  # of the numbers from the least to the greatest that persons have who were numbered one by one
_DOUBT = 10  # rows that agree, for each key within which a value changes
_FIRST = 2_000  # rows that tell most columns apart
_SMALL = 5  # rows of the group of a typical row, of a column that is neither named nor the only sign of a person
_LARGE = 100  # rows of such a group beyond which no column is a person's unless it is named so
_SHAPED = 0.9  # of the values that hold a digit, of a column that is not named and looks like an identifier
_NUMBER_WORDS = r"[_\s.-]?(ids?|no|nr|num|number|nummer|code|key|kennung|kennzeichen|pseudonym|schl(ue|ü)ssel)"
_PERSON = re.compile(
    r"(^|[_\s.-])(user|customer|client|patient|person|employee|member|subject|student|pupil|respondent|participant"
    rf"|household|resident|insured|citizen|donor|proband)s?({_NUMBER_WORDS})?$"
    r"|^(patient|person|kunde|versicherte|mitglied|mitarbeiter|teilnehmer|befragte|bewohner|haushalt|b(ue|ü)rger)"
    rf"\w{{0,3}}({_NUMBER_WORDS})?$"
    r"|^(idcode|mrn|pseudonym|(p|h|hh|case|pat|resp)_?(id|nr))$|[a-z](Patient|Person|Customer|Client)(Id|ID|No|Nr)$",
    re.IGNORECASE,
)
_THING = re.compile(
    r"(^|[_\s.-]|haupt|neben)(diagnos[ei]s?|diagnosen|icd(10)?|atc|ops|drg|drug|medikament|wirkstoff|procedure|product|produkt"
    r"|item|article|artikel|sku|goods|ware|store|shop|filiale|branch|ward|station|abteilung|department|dept|post|plz|zip"
    r"|postleitzahl|city|town|ort|gemeinde|municipality|county|kreis|country|land|state|region|district|school|schule"
    r"|hospital|klinik|clinic|practice|praxis|device|sensor|room|raum|course|kurs|class|klasse|job|occupation|beruf"
    r"|industry|nace|isco|supplier|vendor|manufacturer|category|kategorie|type|typ)s?"
    rf"({_NUMBER_WORDS}|[_\s.-]?(name|group|gruppe))?$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Proposal:
    """A column that seems to identify persons."""

    column: str
    persons: int
    rows: int
    constant: tuple[str, ...]  # columns that never change within a value of it

    def __str__(self) -> str:
        never = "never changes" if len(self.constant) == 1 else f"and {len(self.constant) - 1} more never change"
        return f"{self.persons} values in {self.rows} rows, within which {self.constant[0]!r} {never}"


def propose_person(table: pa.Table, schema: Schema) -> Proposal | None:
    """The column that seems to identify persons; None if every row seems to be a person of its own.

    It holds more than 20 values that are named as persons or identifiers are, or look like identifiers: texts with
    digits, or whole numbers of which hardly one is left out from the least to the greatest. Some stand in several rows,
    and within each another column never changes, which chance would hardly do. A column that is not named so stands in
    groups of few rows, or two such columns do not follow from each other, as sex and year of birth do not, but the
    chapter and the name of a diagnosis do. Free text, diagnoses, postcodes and what is named as a thing say nobody, and
    what follows from a number by its size, as a class of ages does, says nothing. Of several the one that is named as
    persons are, then the one with most such columns.

    Examples
    --------
    >>> visits = pa.table({"who": [f"p{i % 40}" for i in range(120)], "born": [1950 + i % 40 for i in range(120)]})
    >>> print(propose_person(visits, Schema.infer(visits)))
    40 values in 120 rows, within which 'born' never changes
    """
    fields = [field for field in schema if field.kind in (Kind.NOMINAL, Kind.INTEGER) and field.format is None]
    coded = {field.name: _codes(table.column(field.name), field.missing) for field in schema if fields}
    coded = {name: codes for name, codes in coded.items() if codes.max(initial=0) > 0}
    found = []
    for field in fields:  # durations are nobody
        codes = coded.get(field.name, np.empty(0, dtype=np.int64))
        if codes.max(initial=0) < _LEAST or codes.max() + 1 == (codes >= 0).sum():
            continue
        named = bool(_PERSON.search(field.name))
        if not named and (field.hierarchy is not None or _THING.search(field.name)):
            continue
        if _is_free_text(table.column(field.name), field, codes):
            continue
        constant = _determined_columns(table, field, coded, named=named)
        if constant:
            found.append((named, Proposal(field.name, int(codes.max()) + 1, table.num_rows, constant)))
    return max(found, key=lambda each: (each[0], len(each[1].constant)), default=(False, None))[1]


def _is_free_text(column: pa.ChunkedArray, field: Field, codes: Ints) -> bool:
    array = plain(column)
    if not is_text(array.type) or field.kind is not Kind.NOMINAL:
        return False
    return private_text(pc.unique(array).drop_null(), int((codes >= 0).sum()), field.name) == FREE_TEXT


def _determined_columns(table: pa.Table, field: Field, coded: dict[str, Ints], *, named: bool) -> tuple[str, ...]:
    """Columns that never change within a value of this column, and suggest that it is a person."""
    spare = least_evidence(int(coded[field.name].max()) + 1) - 1
    codes, numbers, column = coded[field.name], None, table.column(field.name)
    named, dense = named or is_named_id(field.name), False
    if field.kind is Kind.INTEGER:
        numbers = _first_numbers(column, field, codes)
        dense, named = _is_dense(numbers, spare), named or is_named_like_id(field.name)
        looks = named or dense or field.role is Role.IDENTIFIER
    else:
        looks = named or field.role is Role.IDENTIFIER or _has_digits(column, spare)
    typical = _typical_group(codes)
    if not looks or (not named and typical > _LARGE):
        return ()
    constant = tuple(
        name
        for name, other in coded.items()
        if name != field.name
        and _determines(codes, other, spare)
        and (numbers is None or not _is_monotone_in(codes, numbers, other, spare))
    )
    if named or (dense and typical <= _SMALL) or not _are_nested(codes, [coded[name] for name in constant], spare):
        return constant
    return tuple(name for name in constant if coded[name].max() >= _LEAST) if typical <= _SMALL else ()


def _has_digits(column: pa.ChunkedArray, spare: int) -> bool:
    """Whether nearly all texts of a column contain a digit."""
    array = plain(column)
    if not is_text(array.type):
        return True
    distinct = pc.unique(array).drop_null()
    without = len(distinct) - int(pc.match_substring_regex(distinct, r"\d").true_count)
    return without <= max(spare, (1.0 - _SHAPED) * len(distinct))


def _typical_group(codes: Ints) -> float:
    """Group size below which half of the rows lie."""
    sizes = np.bincount(codes[codes >= 0])
    return float(np.median(np.repeat(sizes, sizes)))


def _are_nested(keys: Ints, columns: Sequence[Ints], spare: int) -> bool:
    """Whether the columns that a key determines form a chain of dependencies, except for a few keys."""
    held, first = np.unique(keys, return_index=True)
    of_keys = [column[first[int(held[0] < 0) :]] + 1 for column in columns]
    return all(
        _inconsistent_keys(one, two) <= spare or _inconsistent_keys(two, one) <= spare
        for place, one in enumerate(of_keys)
        for two in of_keys[:place]
    )


def _inconsistent_keys(keys: Ints, values: Ints) -> int:
    """Keys whose value differs from the most frequent value of equal ``keys``."""
    width = int(values.max(initial=0)) + 1
    pairs, counts = np.unique(keys * width + values, return_counts=True)
    most = np.zeros(int(keys.max(initial=0)) + 1, dtype=np.int64)
    np.maximum.at(most, pairs // width, counts)
    return len(keys) - int(most.sum())


def _first_numbers(column: pa.ChunkedArray, field: Field, codes: Ints) -> Floats:
    """The integer that each code of a column stands for; NaN if it stands for none."""
    rows = pa.array(np.unique(codes, return_index=True)[1][int(codes.min() < 0) :])
    return read_numbers(column.take(rows), field)[0]


def _is_dense(numbers: Floats, spare: int) -> bool:
    """Whether the numbers have hardly a gap from the least to the greatest, ``spare`` ones at the ends ignored."""
    known = np.sort(numbers[~np.isnan(numbers)])
    if len(known) <= max(_SERIAL, spare):
        return False
    return bool(((len(known) - spare) / (known[len(known) - 1 - spare :] - known[: spare + 1] + 1)).max() >= _DENSE)


def _is_monotone_in(keys: Ints, numbers: Floats, values: Ints, spare: int) -> bool:
    """Whether equal values are adjacent when sorted by number, as in columns derived from one."""
    held, first = np.unique(keys, return_index=True)
    along = values[first[int(held[0] < 0) :]][np.argsort(numbers)]
    runs, kinds = 1 + int((np.diff(along) != 0).sum()), len(np.unique(along))
    return 2 * runs <= kinds + len(along) or kinds >= len(along) - spare  # no evidence either way


def _codes(column: pa.ChunkedArray, missing: tuple[str, ...]) -> Ints:
    """Values of a column as numbers from 0; -1 for missing cells."""
    array = plain(column)
    codes = pc.dictionary_encode(array, null_encoding="mask").indices.fill_null(-1)
    numbers = np.asarray(codes.to_numpy(zero_copy_only=False), dtype=np.int64).copy()
    numbers[absent_cells(array, missing)] = -1
    return np.unique(numbers, return_inverse=True)[1] - int((numbers < 0).any())


def _determines(keys: Ints, values: Ints, spare: int) -> bool:
    """Whether all rows of a key share one value, except for a few keys, and more often than by chance."""
    there = keys >= 0
    for part in (slice(0, _FIRST), slice(None)):
        some, held = keys[part][there[part]], values[part][there[part]]
        pairs = np.unique(some * (int(values.max()) + 2) + held + 1)
        repeated = np.unique(some, return_counts=True)[1]
        changing = int((np.unique(pairs // (int(values.max()) + 2), return_counts=True)[1] > 1).sum())
        if changing > spare:
            return False
    if changing > int((repeated > 1).sum()) // 10:
        return False
    shares = np.bincount(held + 1) / len(held)
    alike = float(shares @ shares)
    agreeing = len(some) - len(pairs) - changing * _DOUBT
    return agreeing * math.log(alike) < math.log(_CHANCE)
