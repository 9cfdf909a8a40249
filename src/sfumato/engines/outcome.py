"""Result of every engine: options, rows that may be released, how they were made, and what to compare with."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, get_type_hints

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.arguments import options_of
from sfumato.core.documents import fits, read_text, toml_entries, write_toml
from sfumato.core.errors import OptionError, shown
from sfumato.core.facts import BoundsKept, Fact
from sfumato.core.records import Records
from sfumato.methods.protocol import OwnerDetails
from sfumato.options import RunOptions, types_of_options
from sfumato.tables.codec import Codec
from sfumato.tables.grid import has_bounds
from sfumato.tables.reading import READING_OPTIONS, FileReading
from sfumato.tables.schema import Schema, field_to_document, fields_from_document, rules_from_document

if TYPE_CHECKING:
    from sfumato.assess.report import Report
    from sfumato.assess.risk.uniqueness import PopulationUniqueness
    from sfumato.engines.memory import ResolvedRun

__all__ = ["Comparison", "NoComparison", "Outcome", "Recipe", "bounds_kept"]

_FORMAT = 1
_RUNS = {
    "randomize-transactions": "sfumato transactions randomize INPUT -o FOLDER --recipe THIS, with --items and columns",
    "hide-rules": "sfumato transactions hide INPUT -o FOLDER --recipe THIS, with the rules, which it does not hold",
    "block-rules": "sfumato transactions block INPUT -o FOLDER --recipe THIS, with the rules, which it does not hold",
    "stream": "sfumato stream init FILE --state STATE --recipe THIS",
    "joint-laplace-pca": "sfumato party run --config PARTY --recipe THIS, at every owner",
    "joint-condense": "sfumato party run --config PARTY --recipe THIS, at every owner",
}
"""What runs a recipe again, if it is not sanitize."""


_OPTIONS = tuple(name for name, each in options_of(RunOptions) if each.in_recipe)


@dataclass(frozen=True, repr=False)
class Recipe:
    """A method with its parameters, options and schema. Holds observed bounds, so it stays with the owner.

    ``options`` are those that a run repeats, ``policy`` is the name of what the release was judged by, and ``reading``
    how the file was read, if not as usual. A recipe with a seed repeats a dry run to the byte; one without draws afresh
    each time.
    """

    method: str
    parameters: Mapping[str, Any]
    schema: Schema
    options: RunOptions = field(default_factory=RunOptions)
    sfumato: str = ""
    policy: str | None = None
    reading: FileReading = field(default_factory=FileReading)

    def __repr__(self) -> str:
        return f"Recipe({self.method}, {len(self.schema)} columns)"

    def to_toml(self) -> str:
        """Write the recipe as TOML."""
        run = _RUNS.get(self.method, "sfumato sanitize INPUT -o FOLDER --recipe THIS")
        note = f"Recipe of a sanitized table: {run}\nIt holds observed bounds and categories: keep it with the owner."
        values = {name: getattr(self.options, name) for name in _OPTIONS}
        given = {name: None if value is False else value for name, value in values.items()}
        entries = {"sfumato": self.sfumato, "method": self.method, **given, "policy": self.policy, **vars(self.reading)}
        rules = {"rules": list(self.schema.rules)} if self.schema.rules else {}
        columns = [field_to_document(column) for column in self.schema]
        return write_toml(
            {"format": _FORMAT, **entries, **rules, "parameters": self.parameters, "column": columns}, note
        )

    @classmethod
    def from_toml(cls, text: str) -> Recipe:
        """Read a recipe from TOML."""
        own = ("sfumato", "method", "policy", "parameters")
        known = (*own, *_OPTIONS, *READING_OPTIONS, "rules", "column")
        document = toml_entries(text, "recipe", "use the one that sanitize wrote", known)
        rules = rules_from_document(document.pop("rules", []))
        schema = Schema(fields_from_document(document.pop("column", [])), rules)
        for key in ("method", "parameters", *document):
            if key not in document or not fits(_type_of(key), document[key]):
                raise OptionError(f"the recipe's entry {key!r} is missing or of the wrong type; fix it")
        for key, value in document["parameters"].items():
            if isinstance(value, float) and not math.isfinite(value):
                raise OptionError(f"the recipe's parameter {shown(key)} is not a finite number; fix it")
        options = RunOptions(**{key: document.pop(key) for key in _OPTIONS if key in document})
        reading = FileReading(**{key: document.pop(key) for key in READING_OPTIONS if key in document})
        return cls(**document, schema=schema, options=options, reading=reading)

    @classmethod
    def load(cls, path: str | Path) -> Recipe:
        """Read a recipe from a file."""
        return cls.from_toml(read_text(path, "recipe file", "sanitize writes one as owner/recipe.toml"))


def _type_of(entry: str) -> Any:
    """Type of an entry of a recipe; of the hold-out set it repeats only the share."""
    owner = FileReading if entry in READING_OPTIONS else Recipe
    types = types_of_options(RunOptions) if entry in _OPTIONS else get_type_hints(owner)
    return float if entry == "holdout" else types[entry]


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Rows that stand beside the released ones where it is measured; they are raw, and stay with the owner.

    Parameters
    ----------
    original, released : pyarrow.Table
        Rows that were sanitized, or some of them, and what they became.
    codec : Codec
        Fitted on the original.
    records : Records, optional
        The original as the mechanism saw it; by default as the codec encodes it.
    outside : pyarrow.Table, optional
        Rows of people whom the release was not made from.
    notes : tuple of str
        What a reader must know of these rows.
    before : pyarrow.Table, optional
        What left in the epoch before, of a stream.
    linked : ndarray, optional
        Released person whom each released row belongs to, where rows of a person stay together.
    workings : Workings, optional
        How these rows were made, if they are not all of the table.
    standings : tuple of PopulationUniqueness
        How these people stand in the whole tables, column by column, if they are not all.
    """

    original: pa.Table
    released: pa.Table
    codec: Codec
    records: Records | None = None
    outside: pa.Table | None = None
    notes: tuple[str, ...] = ()
    before: pa.Table | None = None
    linked: NDArray[np.int64] | None = None
    workings: OwnerDetails | None = None
    standings: tuple[PopulationUniqueness, ...] = ()

    def __repr__(self) -> str:
        return "Comparison(owner only)"


@dataclass(frozen=True, eq=False, repr=False)
class NoComparison:
    """Why a release cannot be compared with raw rows.

    Parameters
    ----------
    reason : str
    before : pyarrow.Table, optional
        What left in the epoch before, of a stream.
    codec : Codec, optional
        Of that, and of the rows published now.
    """

    reason: str
    before: pa.Table | None = None
    codec: Codec | None = None

    def __repr__(self) -> str:
        return f"Apart({self.reason})"


class SeparateComparison(Protocol):
    """Raw data that are no table of records, beside what was released of them; they have measures of their own."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know of them."""
        ...

    def assess(self, facts: Sequence[Fact], *, judged: bool, rng: np.random.Generator) -> Report:
        """Report of the utility and disclosure risk of the release."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Outcome:
    """What came of a run, whatever engine carried it; nothing is certified, measured or written yet.

    Parameters
    ----------
    recipe : Recipe
        Options of the run.
    table : pyarrow.Table, Path or None
        The released rows, or the file that holds them; None if they are elsewhere, as on a cluster.
    rows_in : int, optional
        None if it must not be stated.
    rows_out : int
    schema : Schema
        Of the released table; only what it declares leaves.
    facts : tuple of Fact
        What was done.
    comparison : Comparison, SeparateComparison or NoComparison
        What it may be compared with, or why there is nothing.
    workings : Workings, optional
        How, for the owner alone.
    texts : mapping of str to str
        Further files that stay with the owner, by name.
    public_texts : mapping of str to str
        Further files that leave, by name.
    created : str, optional
        When, where several owners had to agree on it.
    seconds : float, optional
        How long the mechanism took; None for a table that another tool made.
    sent : int, optional
        Bytes that owners sent each other, where several made it.
    together : bool
        Several owners write the same release, so that a page about the part of one stays with that one.
    resolved : ResolvedRun, optional
        The table as the mechanism saw it, for shadow releases of the same plan; None if it cannot be run again.
    """

    recipe: Recipe
    table: pa.Table | Path | None
    rows_in: int | None
    rows_out: int
    schema: Schema
    facts: tuple[Fact, ...]
    comparison: Comparison | SeparateComparison | NoComparison
    workings: OwnerDetails = field(default_factory=OwnerDetails)
    texts: Mapping[str, str] = field(default_factory=dict)
    public_texts: Mapping[str, str] = field(default_factory=dict)
    created: str | None = None
    seconds: float | None = 0.0
    together: bool = False
    sent: int | None = None
    resolved: ResolvedRun | None = None

    def read_by(self, reading: FileReading) -> Outcome:
        """The outcome of a run whose file was read so."""
        return dataclasses.replace(self, recipe=dataclasses.replace(self.recipe, reading=reading))

    @property
    def compared_workings(self) -> OwnerDetails:
        """How the rows were made that are compared."""
        some = self.comparison.workings if isinstance(self.comparison, Comparison) else None
        return self.workings if some is None else some

    def __repr__(self) -> str:
        return f"Outcome({self.recipe.method}, {self.rows_out} rows)"


def bounds_kept(schema: Schema, noised: frozenset[str]) -> tuple[Fact, ...]:
    """Columns that got noise and were held by declared bounds, or by the ends of an order."""
    held = tuple(field.name for field in schema if field.name in noised and has_bounds(field))
    return (BoundsKept(held),) if held else ()
