"""The schema of a table: its columns in order, as TOML that a person can edit."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sfumato.core.documents import (
    CommentedValue,
    DocumentMismatch,
    Inline,
    plain,
    read_text,
    toml_entries,
    typed,
    write_toml,
)
from sfumato.core.errors import OptionError, SchemaError, no_column, printable, shown, spelled
from sfumato.core.pages import html_table, text_table
from sfumato.tables.field import DURATION_FORMATS, FATE, DateStep, Domain, Field, Kind, Role

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "DateStep",
    "Domain",
    "Field",
    "Kind",
    "Role",
    "Schema",
    "check_columns",
    "check_extra",
    "check_lacking",
    "field_to_document",
    "fields_from_document",
    "missing_marks",
    "rules_from_document",
]

_FORMAT = 1
_NOTE = """Schema of a table, for sfumato. Edit it and pass it back with --schema.
kind: {kinds}
role: {roles}
domain: source = "declared" is public knowledge (your statement) and is released;
        source = "observed" was read off the data and stays with the owner.
        low, high, step, units for numbers and dates; categories for the rest, in order where ordinal.
missing: texts that mean a missing cell. format: a date format, or "0.00" for a fixed number of decimals."""
_HIERARCHY_NOTE = """
hierarchy: wider labels for rare values, or for all with coarsened = 1, 2, ...: "prefix", "prefix 3 2", "icd10" or
        "file NAME" for categories, "calendar" for dates, "intervals 10 50" for numbers."""
_DURATION_NOTE = f"""
        Whole seconds are durations with one of {", ".join(f'"{form}"' for form in DURATION_FORMATS)}."""
_REPAIR_NOTE = """
repair: true, and cells that do not fit become missing, or are rounded to the step; without it they are an error."""
_RULES_NOTE = """rules that every row obeys: "a <= b", "c = a + b", "c = a - b", "a -> b" (a decides b).
They are kept in synthetic rows; remove those that hold by accident."""

_WRONG = {
    "kind": f"column {{0}} has no known kind; choose one of {', '.join(Kind)}",
    "role": f"column {{0}} has no known role; choose one of {', '.join(Role)}",
    "step": f"column {{0}} has no known step; choose one of {', '.join(DateStep)}",
    "repair": "'repair' of column {0} is neither true nor false; write repair = true, or leave it out",
    "coarsened": "'coarsened' of column {0} is not a whole number; write the level of its hierarchy",
    "missing": "'missing' of column {0} is not a list of texts; write it as [\"?\"]",
    "domain": "the domain of column {0} is not a table; write it as {{ low = 0, high = 1 }}",
    "source": "the domain of column {0} has an unknown source; say 'declared' or 'observed'",
    "categories": 'the categories of column {0} are not a list; write them as ["a", "b"]',
}
"""What is wrong with an entry, by its name; all others are texts."""


@dataclass(frozen=True)
class _DomainEntries:
    """Domain of a column in TOML; the column's kind checks bounds and categories."""

    source: Literal["declared", "observed"] = "declared"
    low: Any = None
    high: Any = None
    step: Any = None
    categories: tuple[Any, ...] | None = None
    units: str | None = None


@dataclass(frozen=True)
class _ColumnEntries:
    """A column in TOML."""

    name: str
    kind: Kind
    role: Role = Role.CONFIDENTIAL
    missing: tuple[str, ...] = ()
    format: str | None = None
    hierarchy: str | None = None
    coarsened: int = 0
    repair: bool = False
    reason: str = ""
    domain: _DomainEntries | None = None


def _column(document: dict[str, object]) -> dict[str, object]:
    """TOML entries of a column: the reason as a comment, the domain on its own line."""
    reason, domain = document.pop("reason", None), document.pop("domain", None)
    if reason:
        document["name"] = CommentedValue(document["name"], f"why: {reason}")
    return {**document, "domain": Inline(domain)} if isinstance(domain, dict) else document


def field_to_document(field: Field) -> dict[str, object]:
    """A field as plain values; a dropped column keeps no value read from the data."""
    dropped = field.role in (Role.IDENTIFIER, Role.PERSON) and not field.domain.declared
    document = plain(dataclasses.replace(field, domain=Domain()) if dropped else field)
    domain = document.pop("domain")
    source = {"source": "declared" if domain.pop("declared") else "observed"}
    return {**document, "domain": source | domain} if domain or field.domain.declared else document


def rules_from_document(rules: Any) -> tuple[str, ...]:
    """Read rules from TOML values."""
    if not isinstance(rules, list) or not all(isinstance(rule, str) for rule in rules):
        raise SchemaError('the schema\'s rules are not a list of texts; write them as rules = ["a <= b"]')
    return tuple(rules)


def fields_from_document(columns: Any) -> tuple[Field, ...]:
    """Read fields from TOML values."""
    if not isinstance(columns, list) or not all(isinstance(column, dict) for column in columns):
        raise SchemaError("the schema's columns are not written as [[column]]; write one such table a column")
    return tuple(_field(column, place) for place, column in enumerate(columns, 1))


def _field(document: dict[str, object], place: int) -> Field:
    name = document.get("name")
    if not isinstance(name, str):
        raise SchemaError(f"column number {place} of the schema has no name; give it one")
    try:
        column = typed(_ColumnEntries, document)
        entries = dict(vars(column.domain)) if column.domain is not None and document["domain"] else None
        if entries is not None and entries["step"] is not None and column.kind is Kind.DATE:
            entries["step"] = typed(DateStep, entries["step"])
    except DocumentMismatch as wrong:
        if wrong.problem == "unknown":
            known = ", ".join(sorted(wrong.hint.__dataclass_fields__))
            raise SchemaError(f"column {name!r} has an unknown entry {wrong.entry!r}; known are {known}") from None
        words = _WRONG.get(wrong.entry or "step", f"{wrong.entry!r} of column {{0}} is not a text; write it in quotes")
        raise SchemaError(words.format(repr(name))) from None
    domain = Domain() if entries is None else Domain(declared=entries.pop("source") == "declared", **entries)
    return Field(**{**vars(column), "domain": domain})


_LONGEST_MARK = 200
_WIDEST = 120  # characters of a cell of the printed form
_ENCODED = (Role.CONFIDENTIAL, Role.TARGET, Role.WEIGHT)
_SINGLE = (Role.TARGET, Role.LEVEL, Role.PERSON, Role.WEIGHT)
_UNUSUAL = (Role.PERSON, Role.WEIGHT)


@dataclass(frozen=True, repr=False)
class Schema:
    """The columns of a table in order, and the rules that every row obeys.

    Its printed form says what will happen to each column and why; it shows no observed bound or category.

    Examples
    --------
    >>> print(Schema((Field("age", Kind.INTEGER, reason="whole numbers"),)))
    column  role          kind     what happens  why
    age     confidential  integer  sanitized     whole numbers
    """

    fields: tuple[Field, ...]
    rules: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(self.fields))
        object.__setattr__(self, "rules", tuple(self.rules))
        twice = [(name, times) for name, times in Counter(self.names).items() if times > 1]
        if twice:
            raise SchemaError(f"column {twice[0][0]!r} stands {twice[0][1]} times in the schema; name it once")
        for role in _SINGLE:
            having = [field.name for field in self.fields if field.role is role]
            if len(having) > 1:
                raise SchemaError(f"{len(having)} columns have the role {role.value}; give it to one only")
        if self.rules:
            from sfumato.tables.rules import read_rules  # needs pyarrow, which few callers of a schema do

            read_rules(self.rules, self.names)

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __getitem__(self, name: str) -> Field:
        field = self._by_name.get(name)
        if field is None:
            raise OptionError(no_column(name, self.names))
        return field

    @cached_property
    def _by_name(self) -> dict[str, Field]:
        return {field.name: field for field in self.fields}

    def __repr__(self) -> str:
        return f"Schema({len(self)} columns)"

    def __str__(self) -> str:
        return self.describe()

    @property
    def names(self) -> tuple[str, ...]:
        """Column names."""
        return tuple(field.name for field in self.fields)

    @property
    def encoded(self) -> tuple[Field, ...]:
        """Columns that a method transforms."""
        return tuple(field for field in self.fields if field.role in _ENCODED)

    @property
    def released(self) -> tuple[Field, ...]:
        """Columns of the release."""
        return tuple(field for field in self.fields if field.role in (*_ENCODED, Role.PUBLIC))

    @property
    def weight(self) -> Field | None:
        """The survey weight, if a column has that role."""
        return next((field for field in self.fields if field.role is Role.WEIGHT), None)

    @property
    def monthly(self) -> tuple[str, ...]:
        """Released date columns with a resolution of a month."""
        return tuple(
            field.name for field in self.encoded if field.kind is Kind.DATE and field.domain.step is DateStep.MONTH
        )

    def by_days(self, *but: str) -> Schema:
        """Schema with the monthly columns, except some, at the resolution of their cells."""
        days = {name: dataclasses.replace(self[name].domain, step=None) for name in self.monthly if name not in but}
        fields = (
            dataclasses.replace(field, domain=days[field.name]) if field.name in days else field for field in self
        )
        return dataclasses.replace(self, fields=tuple(fields))

    @property
    def target(self) -> Field | None:
        """The class or response, if a column has that role."""
        return next((field for field in self.fields if field.role is Role.TARGET), None)

    def with_role(self, role: Role, *names: str) -> Schema:
        """Schema with a role assigned to columns; a column that had the unique role before becomes confidential.

        A person column that another takes the place of is dropped as an identifier.
        """
        chosen = {self[name].name for name in names}
        single = role in _SINGLE and bool(chosen)
        fields = []
        for field in self.fields:
            why = field.reason.partition("; ")[0]
            if field.name in chosen:
                reason = f"{why}; {role.value}, as specified" if why else f"{role.value}, as specified"
                fields.append(dataclasses.replace(field, role=role, reason=reason))
            elif single and field.role is role:
                left = Role.IDENTIFIER if role is Role.PERSON else Role.CONFIDENTIAL
                fields.append(dataclasses.replace(field, role=left, reason=why))
            else:
                fields.append(field)
        return dataclasses.replace(self, fields=tuple(fields))

    def with_missing(self, marks: Iterable[str]) -> Schema:
        """Schema in which every column has these missing marks, and none of them as a category."""
        marks = tuple(marks)
        if not marks:
            return self
        fields = []
        for field in self.fields:
            categories = field.domain.categories
            if categories is not None:
                categories = tuple(each for each in categories if str(each) not in marks)
            fields.append(
                dataclasses.replace(
                    field,
                    missing=tuple(dict.fromkeys((*field.missing, *marks))),
                    domain=dataclasses.replace(field.domain, categories=categories),
                )
            )
        return dataclasses.replace(self, fields=tuple(fields))

    def without_reasons(self) -> Schema:
        """Schema without the reasons of its decisions, as read back from a file."""
        return dataclasses.replace(self, fields=tuple(dataclasses.replace(field, reason="") for field in self.fields))

    def without_target(self) -> Schema:
        """Schema without a target."""
        fields = (
            dataclasses.replace(field, role=Role.CONFIDENTIAL) if field.role is Role.TARGET else field for field in self
        )
        return dataclasses.replace(self, fields=tuple(fields))

    def without_rules(self) -> Schema:
        """Schema without rules between columns."""
        return dataclasses.replace(self, rules=())

    def to_declare(self) -> Schema:
        """Template of declared domains: kinds and formats stay, and no bound, category or mark from the data does."""
        declared = Domain(declared=True)
        return Schema(tuple(dataclasses.replace(field.of_domain(declared), missing=()) for field in self))

    def public_part(self) -> Schema:
        """The part that is released: released columns with declared domains only."""
        fields = (each.of_domain(each.domain if each.domain.declared else Domain()) for each in self.released)
        return Schema(tuple(fields))

    @property
    def dropped(self) -> dict[str, str]:
        """Reason for each column that is not released, by name."""
        return {
            field.name: printable(spelled(field.reason)) or f"its role in the schema is {field.role.value}"
            for field in self
            if field.is_dropped
        }

    def describe(self, *, domains: bool = False, width: int | None = None) -> str:
        """Show the columns as a text table.

        Parameters
        ----------
        domains : bool
            Show bounds too. Observed bounds are data: only for the owner's eyes.
        width : int, optional
            Characters of a line; a wider table says all but name and kind in one column, over several lines.
        """
        head, rows = self._lines(domains=domains)
        lines = text_table(head, rows)
        if width is not None and max(map(len, lines)) > width:
            bounds = [_bounds_words(field) if domains else "" for field in self]
            brief = [
                [name, kind, (f"{fate}: {why}" if why else fate) + more]
                for (name, _, kind, *_, fate, why), more in zip(rows, bounds, strict=True)
            ]
            lines = text_table(["column", "kind", "what happens, and why"], brief, width)
        kept = ["", "rules that every row obeys; synthetic rows obey them too:"] if self.rules else []
        return "\n".join([*lines, *kept, *(f"  {_cell(rule)}" for rule in self.rules)])

    def _lines(self, *, domains: bool) -> tuple[list[str], list[list[str]]]:
        head = ["column", "role", "kind", *(["domain"] if domains else []), "what happens", "why"]
        rows = [
            [
                _cell(field.name),
                field.role.value,
                field.kind.value,
                *([_cell(field.domain.describe())] if domains else []),
                field.fate,
                printable(spelled(field.reason)),
            ]
            for field in self.fields
        ]
        return head, rows

    def _repr_html_(self) -> str:
        head, rows = self._lines(domains=False)
        return html_table(f"Schema of {len(self)} columns", rows, head)

    @property
    def digest(self) -> str:
        """SHA-256 of the schema's TOML form without comments."""
        return hashlib.sha256(self.without_reasons().to_toml().encode()).hexdigest()

    def to_toml(self, *, comments: bool = True) -> str:
        """Write the schema as TOML that a person can edit, or without ``comments`` for another program."""
        if not comments:
            rules = {"rules": list(self.rules)} if self.rules else {}
            return write_toml(
                {"format": _FORMAT, **rules, "column": [field_to_document(field) for field in self.without_reasons()]}
            )
        kinds = ", ".join(kind.value for kind in Kind)
        listed = [role for role in Role if role not in _UNUSUAL or any(field.role is role for field in self)]
        roles = ", ".join(f"{role.value} ({FATE[role].split(';')[0]})" for role in listed)
        columns = [_column(field_to_document(field)) for field in self]
        note = _NOTE + (_DURATION_NOTE if any(field.format in DURATION_FORMATS for field in self) else "")
        note += _HIERARCHY_NOTE if any(field.hierarchy for field in self) else ""
        note += _REPAIR_NOTE if any(field.repair for field in self) else ""
        head = write_toml({}, note.format(kinds=kinds, roles=roles))
        entries = {"rules": CommentedValue(list(self.rules), _RULES_NOTE)} if self.rules else {}
        return f"{head}\n{write_toml({'format': _FORMAT, **entries, 'column': columns})}"

    @classmethod
    def from_toml(cls, text: str) -> Schema:
        """Read a schema from TOML; an error for an unknown key or value names the column."""
        document = toml_entries(text, "schema", "fix it there", ("rules", "column"), error=SchemaError)
        return cls(fields_from_document(document.get("column", [])), rules_from_document(document.get("rules", [])))

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema from a TOML file."""
        return cls.from_toml(read_text(path, "schema file", "write one with 'sfumato inspect'"))

    @classmethod
    def infer(
        cls,
        frame: Any,
        *,
        identifiers: Iterable[str] = (),
        target: str | None = None,
        person: str | None = None,
        missing: Iterable[str] = (),
    ) -> Schema:
        """Propose a schema for a pandas, polars or pyarrow table, with the reason of each decision.

        What a column is, its step and the rules between columns follow from at least 10 persons: fewer, where that
        were more than one in ten of those who have a value. Cells that do not fit then are repaired in a run. A row is
        a person unless the column ``person`` says whom it is about. Texts in ``missing`` mean a missing cell in every
        column, besides the usual marks and those that are found.
        """
        from sfumato.tables.contact import codes_of_persons
        from sfumato.tables.frames import to_arrow
        from sfumato.tables.grid import repair_table
        from sfumato.tables.infer import infer_schema
        from sfumato.tables.rules import with_found_rules

        marks = missing_marks(None, missing)
        table, dropped = to_arrow(frame, marks)[0], (*identifiers, *(() if person is None else (person,)))
        persons = None if person is None else codes_of_persons(table.column(person))
        schema = infer_schema(table, dropped, persons=persons, missing=marks).with_role(Role.IDENTIFIER, *dropped)
        schema = schema.with_role(Role.TARGET, target) if target is not None else schema
        return with_found_rules(repair_table(table, schema), schema, persons)


def missing_marks(schema: Schema | str | Path | None, missing: Iterable[str] = ()) -> tuple[str, ...]:
    """Missing marks for reading a file: the given ones, and those of a schema or its file."""
    if schema is not None and not isinstance(schema, Schema):
        schema = Schema.load(schema)
    marks = [mark.strip() for mark in missing]
    if any("\n" in mark or len(mark) > _LONGEST_MARK for mark in marks):
        raise OptionError(f"a missing mark is one line of at most {_LONGEST_MARK} characters; shorten it")
    return tuple(dict.fromkeys((*marks, *(mark for field in schema or () for mark in field.missing))))


def _bounds_words(field: Field) -> str:
    """Bounds of a column in words, appended to its description."""
    domain = field.domain
    return "" if domain.low is None and domain.high is None else f"; {domain.describe()}"


def _cell(text: str) -> str:
    return text if text.isprintable() and len(text) <= _WIDEST else shown(text)


def check_columns(table: pa.Table, schema: Schema) -> None:
    """Refuse a table that lacks a column of the schema or has an unknown one."""
    check_lacking(table, list(schema.names))
    check_extra(table, schema)


def check_lacking(table: pa.Table, needed: list[str]) -> None:
    """Refuse a table that lacks a needed column."""
    present = set(table.column_names)
    lacking = [name for name in needed if name not in present]
    if lacking:
        raise OptionError(
            f"the table lacks {len(lacking)} columns of the schema, the first is {lacking[0]!r}; use its own schema"
        )


def check_extra(table: pa.Table, schema: Schema) -> None:
    """Refuse a table with a column that the schema does not have."""
    known = set(schema.names)
    extra = [name for name in table.column_names if name not in known]
    if extra:
        raise OptionError(
            f"the table has {len(extra)} columns that the schema does not know, the first is {extra[0]!r}; add them "
            "to the schema"
        )
