"""A fact: what was done to a table, and all that follows from it.

A method, a step before it and a vertical each define their facts where they define what they do. Nothing else in the
package lists facts: certificates, verification and reports ask each fact for its consequences.
"""

from __future__ import annotations

import dataclasses
import decimal
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeVar, overload

from sfumato.core.documents import Unparsable, fits, plain, typed, write_json
from sfumato.core.errors import BadInput, PrivacyRefusal
from sfumato.registry import load_facts

__all__ = [
    "NOTHING",
    "ONE_ROW",
    "PERSON_COLUMN",
    "RAN_AS_WRITTEN",
    "SECRET_RANDOMNESS",
    "Check",
    "Claim",
    "Context",
    "Fact",
    "GroupSizes",
    "Refused",
    "ReleasedColumns",
    "RowCheck",
    "Statements",
    "UnknownFact",
    "are_unique",
    "at_least",
    "at_most",
    "check_facts",
    "counted",
    "draw_claims",
    "fact_from_json",
    "fact_to_json",
    "has_parameters",
    "joined",
    "known_facts",
    "quoted",
    "whom_rows_describe",
]

SECRET_RANDOMNESS = "the random numbers stay secret"  # noqa: S105
"""Assumption of a claim that rests on chance. A seed is not secret, so a dry run never proves such a claim."""

ONE_ROW = "one row is one person"
PERSON_COLUMN = "the person column identifies the person of each row"
RAN_AS_WRITTEN = "the program ran as written"
NOTHING = "nothing: the released table shows it"


@dataclass(frozen=True)
class Claim:
    """A claim about a release: one sentence, what proves it, and what it assumes."""

    claim: str
    kind: Literal["proved", "assumed"] = field(default="proved", kw_only=True)
    basis: str
    assumes: str


@dataclass(frozen=True)
class Refused:
    """A claim that the facts do not support, and the reason."""

    claim: str
    reason: str


Statements = Iterator[Claim | Refused]
"""Claims and refused claims of a fact, in the order of the certificate."""


def counted(count: int, one: str, many: str) -> str:
    """Write a count with its noun, and the words after it.

    Examples
    --------
    >>> counted(1, "group has", "groups have"), counted(2, "group has", "groups have")
    ('1 group has', '2 groups have')
    """
    return f"{count} {one if count == 1 else many}"


def quoted(names: Iterable[str]) -> str:
    """Put names in quotes, so that none can be read as part of the sentence."""
    return ", ".join(map(repr, names))


def joined(parts: Sequence[str]) -> str:
    """List parts in words.

    Examples
    --------
    >>> joined(["one"]), joined(["one", "two"]), joined(["one", "two", "three"])
    ('one', 'one and two', 'one, two and three')
    """
    return ", ".join(parts) if len(parts) < 2 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def whom_rows_describe(*, by_person: bool) -> str:
    """State the assumption that makes rows into persons."""
    return PERSON_COLUMN if by_person else ONE_ROW


def at_most(number: float, digits: int = 4) -> str:
    """Round a number up to the given number of digits, for an upper bound.

    Examples
    --------
    >>> at_most(2.71828), at_least(2.71828), at_most(3.0)
    ('2.719', '2.718', '3')
    """
    return _rounded(number, digits, ROUND_CEILING)


def at_least(number: float, digits: int = 4) -> str:
    """Round a number down to the given number of digits, for a lower bound."""
    return _rounded(number, digits, ROUND_FLOOR)


def _rounded(number: float, digits: int, rounding: str) -> str:
    short = f"{number:.{digits}g}"
    if float(short) == number:
        return short
    return (
        f"{float(decimal.Context(prec=digits, rounding=rounding).create_decimal_from_float(float(number))):.{digits}g}"
    )


F = TypeVar("F", bound="Fact")

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_ANONYMOUS = Refused(
    "The table is anonymous.",
    "Anonymity depends on everything that an attacker may know. This certificate states only what was done and what "
    "follows from it.",
)


@dataclass(frozen=True)
class Check:
    """One check of a release; ``checked`` is False if the check could not be made."""

    name: str
    holds: bool
    detail: str
    checked: bool = True


class GroupSizes(NamedTuple):
    """Size of the smallest group or leaf, number of groups, and records in groups below their privacy level."""

    smallest: int
    groups: int
    violations: int


@dataclass(frozen=True)
class ReleasedColumns:
    """Columns of a released table: all, those of categories and of numbers, and those with missing cells."""

    names: tuple[str, ...]
    categories: int
    numbers: int
    missing: frozenset[str]

    def wrong_counts(self, categories: int, missing: int, most: int | None = None) -> Iterator[str]:
        """Which numbers of columns are wrong: of categories, ``most`` of them, and of those with missing cells."""
        if categories > (self.categories if most is None else most):
            yield "categorical columns"
        if not len(self.missing) <= missing <= len(self.names):
            yield "columns with missing cells"


class RowCheck(Protocol):
    """Compares the rows of a released table with a fact, batch by batch."""

    def add(self, batch: Any) -> None:
        """Read some more rows."""
        ...

    def checks(self) -> Iterable[Check]:
        """Result, when all rows were read."""
        ...


@dataclass(frozen=True)
class Fact:
    """What was done to a table, stated without any data.

    A subclass is a frozen dataclass, which documents call by the name of its class: `RowsDrawn` is "rows-drawn". It
    overrides the methods below if anything follows from it.

    Attributes
    ----------
    methods : tuple of str
        Methods that state the fact; () if any method may.
    repeatable : bool
        Whether it may be stated several times, as a line of a ledger.
    grouped, synthetic : bool
        Whether rows are made from groups of records, and whether no row descends from one record, if the fact is that
        of a method.
    resized : bool
        Whether the release may have another number of rows than there were records.
    """

    fact: ClassVar[str] = ""
    methods: ClassVar[tuple[str, ...]] = ()
    repeatable: ClassVar[bool] = False
    grouped: ClassVar[bool] = False
    synthetic: ClassVar[bool] = False
    resized: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        cls.fact = re.sub("(?<!^)(?=[A-Z])", "-", cls.__name__).lower()

    def claims(self, context: Context) -> Statements:
        """Claims that follow, and claims that a reader might make and that are refused."""
        return iter(())

    def check(self) -> bool:
        """Whether the fact is possible: ranges, and entries against each other."""
        return True

    def agrees(self, context: Context) -> bool:
        """Whether it is possible beside the other facts."""
        return True

    def fits(self, context: Context) -> bool:
        """Whether the method can have stated it with its parameters."""
        return True

    def named_columns(self) -> tuple[str, ...]:
        """Columns that it names, all of which are in the release; by default its entries ``column`` and ``columns``."""
        column, columns = getattr(self, "column", None), getattr(self, "columns", ())
        return (*(() if column is None else (column,)), *(columns if isinstance(columns, tuple) else ()))

    def dropped_columns(self) -> tuple[str, ...]:
        """Columns that it names, none of which is in the release."""
        return ()

    def derived_columns(self, names: tuple[str, ...]) -> Iterable[str]:
        """Released columns whose cells may be computed from others."""
        return ()

    def most_values(self) -> Mapping[str, int]:
        """Columns of which it bounds the number of different values, with this bound."""
        return {}

    def wrong_columns(self, released: ReleasedColumns, context: Context) -> Iterator[str]:
        """Which numbers of columns in the fact are not those of the released table."""
        return iter(())

    def owner_keys(self) -> Mapping[str, str]:
        """Fingerprint of the key that each of several owners signs the certificate with, by the owner's name."""
        return {}

    def row_check(self, schema: Any, context: Context) -> RowCheck | None:
        """Comparison with the rows of a released table of this schema."""
        return None

    def table_checks(self, file: Path, most_bytes: int | None) -> Iterable[Check]:
        """Comparison with the released file, of a table that is read as a whole."""
        return ()

    def summary(self, context: Context, file_format: str) -> tuple[int, str] | None:
        """Line about the release for its owner, with a rank; lines of a higher rank are left out first."""
        return None

    @property
    def rows_released(self) -> int | None:
        """Number of released rows, if stated."""
        return None

    @property
    def records_used(self) -> int | None:
        """Number of original records, if stated."""
        return None

    @property
    def group_sizes(self) -> GroupSizes | None:
        """Sizes of groups or leaves, if stated."""
        return None

    @property
    def privacy(self) -> Mapping[str, Any] | None:
        """Proved guarantee of differential privacy with its budget, if stated."""
        return None

    @property
    def shows_categories(self) -> bool:
        """Whether categories are released as they are."""
        return False

    @property
    def most_bytes(self) -> int:
        """Memory that its table needs beyond the usual for its rows and columns."""
        return 0


@dataclass(frozen=True)
class UnknownFact(Fact):
    """A fact that this version does not know; nothing follows from it."""

    document: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What the document calls it."""
        return str(self.document["fact"])


@dataclass(frozen=True)
class Context:
    """All facts of a release, and the method with its parameters.

    ``mechanism`` is the method, built from its parameters; None if these are checked by its facts alone.
    """

    facts: tuple[Fact, ...]
    method: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    mechanism: Any = None

    def __iter__(self) -> Iterator[Fact]:
        return iter(self.facts)

    @cached_property
    def _by_name(self) -> Mapping[str, list[Any]]:
        found = defaultdict(list)
        for each in self.facts:
            found[each.fact].append(each)
        return dict(found)

    def has(self, *kinds: type[Fact] | str) -> bool:
        """Whether a fact of one of these kinds is stated."""
        return any(_name(kind) in self._by_name for kind in kinds)

    @overload
    def all(self, kind: type[F]) -> list[F]: ...
    @overload
    def all(self, kind: str) -> list[Any]: ...
    def all(self, kind: type[Fact] | str) -> list[Any]:
        """All facts of a kind; a kind of another vertical is given by name."""
        return self._by_name.get(_name(kind), [])

    @overload
    def one(self, kind: type[F]) -> F | None: ...
    @overload
    def one(self, kind: str) -> Any: ...
    def one(self, kind: type[Fact] | str) -> Any:
        """First fact of a kind; None if there is none."""
        return next(iter(self._by_name.get(_name(kind), [])), None)

    @overload
    def the(self, kind: type[F]) -> F: ...
    @overload
    def the(self, kind: str) -> Any: ...
    def the(self, kind: type[Fact] | str) -> Any:
        """First fact of a kind.

        Raises
        ------
        PrivacyRefusal
            If there is none.
        """
        found = self.one(kind)
        if found is None:
            raise PrivacyRefusal(f"the fact {_name(kind)!r} is missing, so nothing can be certified")
        return found

    def counts_agree(self, records: int | None = None, rows: int | None = None) -> bool:
        """Whether all facts have the same records and the same rows, and as many rows as records unless resized."""
        released = _stated(rows, *(fact.rows_released for fact in self))
        used = _stated(records, *(fact.records_used for fact in self))
        together = released | used if not any(fact.resized for fact in self) else set[int]()
        return all(len(counts) <= 1 for counts in (released, used, together))


def _name(kind: type[Fact] | str) -> str:
    return kind if isinstance(kind, str) else kind.fact


def _stated(*counts: int | None) -> set[int]:
    return {count for count in counts if count is not None}


def are_unique(columns: tuple[str, ...], *beside: tuple[object, ...]) -> bool:
    """Whether there are columns, each once, and as many entries in each tuple beside them."""
    return (
        bool(columns)
        and len(set(columns)) == len(columns)
        and all(len(entries) == len(columns) for entries in beside)
        and all(entry >= 0 for entries in beside for entry in entries if isinstance(entry, int))
    )


def has_parameters(mechanism: Any, parameters: Mapping[str, Any]) -> bool:
    """Whether these are all parameters of a method, each of its type and as the method keeps them."""
    same = write_json(mechanism, "canonical") == write_json(parameters, "canonical")
    return same and fits(type(mechanism), parameters)


def check_facts(facts: Iterable[Fact]) -> None:
    """Refuse facts that contradict themselves, each other, or the method.

    Raises
    ------
    PrivacyRefusal
        Naming the fact, and never what it holds.
    """
    context = Context(tuple(facts))
    for name, count in Counter(fact.fact for fact in context if not fact.repeatable).items():
        if count > 1:
            raise PrivacyRefusal(f"the fact {name!r} occurs twice, so nothing can be certified")
    for fact in context:
        if not (_in_range(fact) and fact.check()):
            raise PrivacyRefusal(f"the fact {fact.fact!r} contradicts itself, so nothing can be certified")
    methods = [set(fact.methods) for fact in context if fact.methods]
    if methods and not set.intersection(*methods):
        raise PrivacyRefusal("the facts describe two methods, so nothing can be certified")
    for fact in context:
        if not fact.agrees(context):
            raise PrivacyRefusal(f"the fact {fact.fact!r} contradicts other facts, so nothing can be certified")
    dropped = Counter(name for fact in context for name in fact.dropped_columns())
    if max(dropped.values(), default=0) > 1 or any(
        name in dropped for fact in context for name in fact.named_columns()
    ):
        raise PrivacyRefusal("the facts contradict each other about a column, so nothing can be certified")
    if not context.counts_agree():
        raise PrivacyRefusal("the facts contradict each other about the number of rows, so nothing can be certified")


def _in_range(fact: Fact) -> bool:
    """Whether counts are not negative and numbers are finite."""
    entries = [(each.type, getattr(fact, each.name)) for each in dataclasses.fields(fact)]
    return all(
        value is None or (math.isfinite(value) and (value >= 0 or "int" not in kind))
        for kind, value in entries
        if kind in ("int", "float", "int | None", "float | None")
    )


def draw_claims(facts: Iterable[Fact]) -> tuple[tuple[Claim, ...], tuple[Refused, ...]]:
    """Draw every claim that the facts support, and refuse those that a reader might make without cause.

    Raises
    ------
    PrivacyRefusal
        If the facts contradict each other.
    """
    context = Context(tuple(facts))
    check_facts(context)
    statements = [_ANONYMOUS, *(each for fact in context for each in fact.claims(context))]
    drawn = context.one("randomness-source")
    secret = drawn is not None and drawn.mode == "release"
    claims = tuple(_with_kind(each, secret=secret) for each in statements if isinstance(each, Claim))
    return claims, tuple(each for each in statements if isinstance(each, Refused))


def _with_kind(claim: Claim, *, secret: bool) -> Claim:
    """Downgrade a claim that rests on secret randomness to assumed, unless the operating system supplied it."""
    return claim if secret or SECRET_RANDOMNESS not in claim.assumes else dataclasses.replace(claim, kind="assumed")


def fact_to_json(fact: Fact) -> dict[str, object]:
    """Write a fact as a JSON object."""
    return dict(fact.document) if isinstance(fact, UnknownFact) else {"fact": fact.fact, **plain(fact)}


def fact_from_json(document: Mapping[str, Any]) -> Fact:
    """Read a fact back; one that the package does not define is an `UnknownFact`."""
    name = document.get("fact")
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise BadInput("the certificate holds a fact without a name; the file was altered")
    kind = known_facts().get(name)
    if kind is None:
        return UnknownFact(document)
    try:
        return typed(kind, {key: value for key, value in document.items() if key != "fact"})
    except Unparsable as error:
        raise BadInput(f"the fact {kind.fact!r} has {error}; the file was altered") from None


def known_facts() -> dict[str, type[Fact]]:
    """Facts of the package by name; those of extensions are not among them."""
    modules = load_facts()
    return {kind.fact: kind for kind in Fact.__subclasses__() if kind.__module__ in modules}
