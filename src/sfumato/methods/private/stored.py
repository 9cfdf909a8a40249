"""The model that leaves with a release: noisy statistics and declared domains in one canonical JSON document.

Whoever reads one must take it for hostile: every size, index and probability is checked before a row is drawn from it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from sfumato.core.arrays import Floats, Ints
from sfumato.core.documents import Unparsable, from_json, read_text, write_json
from sfumato.core.errors import BadInput, OptionError, PrivacyRefusal
from sfumato.core.randomness import Mode
from sfumato.core.records import CellsByColumn, columns_of
from sfumato.methods.private.columns import Domain, Histogram
from sfumato.methods.private.declared import DeclaredColumn
from sfumato.methods.private.draw import draw_rows
from sfumato.methods.private.model import ColumnModel, Model, PairTable
from sfumato.tables.codec import Codec
from sfumato.tables.kept_rules import DeclaredRules
from sfumato.tables.schema import Schema

__all__ = ["MODEL_FILE", "StoredModel"]

MODEL_FILE = "model.json"
_MOST_BYTES = 1 << 26
_MOST_BINS = 64  # of a column in its table: rows times bins are held at once
_MOST_CLASSES = 64
_MOST_PEOPLE = 1e12
_WHOLE = 2.0**53
_SLACK = 1e-6  # of sums of probabilities
_DO = "use the one of a release of the private chain"


@dataclass(frozen=True)
class _Histogram:
    starts: tuple[int, ...]
    shares: tuple[float, ...]
    sd: float
    total: float
    measured: int


@dataclass(frozen=True)
class _Column:
    column: int
    parents: tuple[int, ...]
    parent_bins: tuple[tuple[int, ...], ...]
    bins: tuple[int, ...]
    given: tuple[tuple[float, ...], ...]
    table: tuple[float, ...] | None
    sd: float | None


@dataclass(frozen=True)
class _Pair:
    columns: tuple[int, int]
    bins: tuple[tuple[int, ...], tuple[int, ...]]
    table: tuple[float, ...]
    sd: float


@dataclass(frozen=True)
class _Document:
    format: Literal[1]
    randomness: Mode
    schema: str
    types: tuple[str, ...]
    histograms: tuple[_Histogram, ...]
    target: int | None
    classes: tuple[int, ...]
    class_shares: tuple[float, ...]
    people: float
    sd_given: float | None
    columns: tuple[_Column, ...]
    correlations: tuple[tuple[tuple[float, ...], ...], ...] | None
    pairs: tuple[_Pair, ...]


@dataclass(frozen=True, eq=False)
class StoredModel:
    """A model, the schema of its rows, whose domains are all declared, and the Arrow types of their columns.

    ``randomness`` tells a dry run, whose noise was drawn with a seed, so that it is not for release.
    """

    schema: Schema
    types: tuple[str, ...]
    model: Model
    randomness: Mode

    def __repr__(self) -> str:
        return f"StoredModel({len(self.model.histograms)} columns)"

    @cached_property
    def codec(self) -> Codec:
        """How rows are written."""
        return _codec(self.rules, self.types)

    @property
    def rules(self) -> DeclaredRules:
        """Rules that the rows obey."""
        return DeclaredRules(self.schema)

    def draw(self, rows: int, rng: np.random.Generator, *, native: bool = False) -> pa.Table:
        """A number of rows, in random order."""
        columns = _columns(self.codec)
        drawn = draw_rows(self.model, rows, rng)
        cells = {column.domain.name: column.cells(places, rng) for column, places in zip(columns, drawn, strict=True)}
        return self.rules.complete(
            self.codec.decode(CellsByColumn(self.codec.layout, cells), native=native), self.codec
        )

    def to_json(self) -> str:
        """Write the model in its one encoding: equal models give equal texts."""
        model = self.model
        histograms = [
            {
                "starts": _plain(each.starts),
                "shares": _plain(each.shares),
                "sd": _short(each.sd),
                "total": _short(each.total),
                "measured": each.measured,
            }
            for each in model.histograms
        ]
        document = {
            "format": 1,
            "randomness": self.randomness.value,
            "schema": self.schema.to_toml(comments=False),
            "types": list(self.types),
            "histograms": histograms,
            "target": model.target,
            "classes": _plain(model.classes),
            "class_shares": _plain(model.class_shares),
            "people": _short(model.people),
            "sd_given": _short(model.sd_given),
            "columns": [_written(column) for column in model.columns],
            "correlations": None if model.correlations is None else [list(map(_plain, m)) for m in model.correlations],
            "pairs": [_written_pair(pair) for pair in model.pairs],
        }
        return write_json(document, "canonical")

    @classmethod
    def from_json(cls, text: str) -> StoredModel:
        """Read a model; nothing in it is trusted.

        Raises
        ------
        OptionError
            If the text is no model as sfumato writes it.
        """
        try:
            document = from_json(_Document, text, most=_MOST_BYTES)
            schema = Schema.from_toml(document.schema)
            columns = _columns(_codec(DeclaredRules(schema), document.types))
        except (Unparsable, BadInput, PrivacyRefusal) as error:
            raise OptionError(f"the model cannot be read ({error}); {_DO}") from None
        model = _Reading(document, tuple(column.domain for column in columns)).model()
        made = cls(schema, document.types, model, document.randomness)
        _require(made.to_json() == text, "its form")
        return made

    @classmethod
    def load(cls, path: str | Path) -> StoredModel:
        """Read a model from a file."""
        return cls.from_json(read_text(path, "model", _DO, most=_MOST_BYTES))


def _codec(rules: DeclaredRules, types: tuple[str, ...]) -> Codec:
    schema = rules.drawn
    names = [field.name for field in schema.encoded]
    _require(len(names) == len(types) > 0, "the number of columns")
    try:
        return Codec.declared(schema, dict(zip(names, map(pa.type_for_alias, types), strict=True)))
    except (ValueError, pa.ArrowException):
        raise _damaged("the type of a column") from None


def _columns(codec: Codec) -> list[DeclaredColumn]:
    return [DeclaredColumn.of(block, missing) for block, missing in columns_of(codec.layout)]


def _written(column: ColumnModel) -> dict[str, Any]:
    return {
        "column": column.column,
        "parents": list(column.parents),
        "parent_bins": list(map(_plain, column.parent_bins)),
        "bins": _plain(column.bins),
        "given": list(map(_plain, column.given)),
        "table": None if column.table is None else _plain(column.table.ravel()),
        "sd": _short(column.sd),
    }


def _written_pair(pair: PairTable) -> dict[str, Any]:
    return {
        "columns": list(pair.columns),
        "bins": list(map(_plain, pair.bins)),
        "table": _plain(pair.table),
        "sd": _short(pair.sd),
    }


def _plain(values: Floats | Ints) -> list[int | float]:
    """Numbers of a document; noisy counts, which are whole, without a point."""
    return [_short(value) for value in values.tolist()]  # type: ignore[misc]


def _short(value: float) -> int | float | None:
    """The same number without a point if it is whole; none if it is infinite."""
    if not np.isfinite(value):
        return None
    return int(value) if value == int(value) and abs(value) < _WHOLE else float(value)


def _damaged(what: str) -> OptionError:
    return OptionError(f"the model is damaged or was altered: {what} cannot be; {_DO}")


def _require(holds: object, what: str) -> None:
    if not holds:
        raise _damaged(what)


class _Reading:
    """A model from a document that nobody vouches for."""

    def __init__(self, document: _Document, domains: tuple[Domain, ...]) -> None:
        target = document.target
        _require(target is None or 0 <= target < len(domains), "the target")
        self.document, self.target = document, target
        self.domains = tuple(replace(each, ordered=False) if i == target else each for i, each in enumerate(domains))

    def model(self) -> Model:
        """The model, if all of it fits together."""
        document = self.document
        _require(len(document.histograms) == len(self.domains), "the number of histograms")
        self.histograms = tuple(map(self._histogram, document.histograms, self.domains))
        self.classes, self.class_shares = _whole(document.classes, "a class"), _shares(document.class_shares)
        last = 0 if self.target is None else len(self.histograms[self.target]) - 1
        _require(_is_ascending(self.classes, 0, last), "a class")
        _require(len(self.classes) == len(self.class_shares) <= _MOST_CLASSES, "the number of classes")
        _require(self.target is not None or len(self.classes) == 1, "the number of classes")
        _require(1 <= document.people <= _MOST_PEOPLE, "the number of people")
        columns = tuple(self._column(at) for at in range(len(document.columns)))
        drawn = {column.column for column in columns} | ({self.target} - {None})
        _require(len(drawn) == len(self.domains) == len(columns) + (self.target is not None), "the order of columns")
        model = Model(
            self.histograms,
            self.target,
            self.classes,
            self.class_shares,
            float(document.people),
            np.inf if document.sd_given is None else _deviation(document.sd_given),
            columns,
            None,
        )
        pairs = tuple(map(self._pair, document.pairs))
        _require(len({pair.columns for pair in pairs}) == len(pairs), "the pairs of columns")
        return replace(model, correlations=self._correlations(len(model.numbers)), pairs=pairs)

    def _histogram(self, stored: _Histogram, domain: Domain) -> Histogram:
        starts, shares = _whole(stored.starts, "a histogram"), _shares(stored.shares)
        _require(len(starts) == len(shares) >= 1, "a histogram")
        _require(starts[0] == -1 and _is_ascending(starts, -1, domain.size - 1), "a histogram")
        if not domain.ordered:
            _require(len(starts) == domain.size + 1, "a histogram")
        _require(abs(stored.total) <= _MOST_PEOPLE and 0 < stored.measured <= len(starts) + _MOST_BINS, "a histogram")
        return Histogram(domain, starts, shares, _deviation(stored.sd), float(stored.total), stored.measured)

    def _column(self, at: int) -> ColumnModel:
        stored = self.document.columns[at]
        _require(0 <= stored.column < len(self.domains) and stored.column != self.target, "a column")
        leaves, classes = len(self.histograms[stored.column]), len(self.classes)
        bins = _bins(stored.bins, leaves)
        _require(int(bins.max()) < _MOST_BINS, "the bins of a column")
        _require(not self.domains[stored.column].ordered or (np.diff(bins) >= 0).all(), "the bins of a column")
        _require(len(stored.given) == classes and all(len(row) == leaves for row in stored.given), "a column's counts")
        given = np.array([_shares(row) for row in stored.given])
        before = {column.column for column in self.document.columns[:at]}
        parents = set(stored.parents)
        _require(parents <= before and len(parents) == len(stored.parents), "a column's parents")
        _require(len(stored.parent_bins) == len(stored.parents), "a column's parents")
        parent_bins = tuple(
            _bins(each, len(self.histograms[parent]))
            for parent, each in zip(stored.parents, stored.parent_bins, strict=True)
        )
        if stored.table is None:
            _require(not stored.parents and stored.sd is None, "a column without a table")
            return ColumnModel(stored.column, (), (), bins, given, None, np.inf)
        sizes = [int(each.max()) + 1 for each in parent_bins]
        size, cells = int(bins.max()) + 1, classes
        for each in sizes:
            cells *= each
        _require(len(stored.table) == cells * size, "the size of a table")
        table = _finite(stored.table, "a table")
        _require(np.abs(table).max() <= _MOST_PEOPLE, "a table")
        sd = _deviation(stored.sd)
        return ColumnModel(stored.column, stored.parents, parent_bins, bins, given, table.reshape(-1, size), sd)

    def _pair(self, stored: _Pair) -> PairTable:
        first, second = stored.columns
        what = "a pair of columns"
        _require(0 <= first < second < len(self.domains) and self.target not in stored.columns, what)
        bins = _bins(stored.bins[0], len(self.histograms[first])), _bins(stored.bins[1], len(self.histograms[second]))
        _require(max(int(each.max()) for each in bins) < _MOST_BINS, what)
        cells = len(self.classes) * (int(bins[0].max()) + 1) * (int(bins[1].max()) + 1)
        _require(len(stored.table) == cells, what)
        table = _finite(stored.table, what)
        _require(np.abs(table).max() <= _MOST_PEOPLE, what)
        return PairTable((first, second), bins, table, _deviation(stored.sd))

    def _correlations(self, numbers: int) -> Floats | None:
        stored = self.document.correlations
        if stored is None:
            return None
        what = "a matrix of correlations"
        _require(len(stored) == len(self.classes), what)
        _require(all(len(m) == numbers and all(len(row) == numbers for row in m) for m in stored), what)
        matrices = np.array([[_finite(row, what) for row in matrix] for matrix in stored]).reshape(-1, numbers, numbers)
        _require(np.abs(matrices).max(initial=0.0) <= 1 + _SLACK, what)
        _require(np.allclose(matrices, matrices.transpose(0, 2, 1), atol=_SLACK), what)
        _require(np.abs(np.diagonal(matrices, axis1=1, axis2=2) - 1).max(initial=0.0) <= _SLACK, what)
        _require(numbers == 0 or np.linalg.eigvalsh(matrices).min() > 0, what)
        return matrices


def _finite(values: tuple[float, ...], what: str) -> Floats:
    array = np.array(values, dtype=np.float64)
    _require(np.isfinite(array).all(), what)
    return array


def _whole(values: tuple[int, ...], what: str) -> Ints:
    _require(all(-1 <= value < _WHOLE for value in values), what)
    return np.array(values, dtype=np.int64)


def _is_ascending(values: Ints, first: int, last: int) -> bool:
    return len(values) > 0 and bool(values[0] >= first and values[-1] <= last and (np.diff(values) > 0).all())


def _shares(values: tuple[float, ...]) -> Floats:
    array = _finite(values, "a share")
    _require(len(array) > 0 and array.min() >= 0 and array.max() <= 1 + _SLACK, "a share")
    _require(abs(array.sum() - 1) <= _SLACK, "a share")
    return array


def _bins(values: tuple[int, ...], leaves: int) -> Ints:
    """Bins of leaves, all of which are used."""
    bins = _whole(values, "a bin")
    _require(len(bins) == leaves and bins.min() >= 0 and len(np.unique(bins)) == bins.max() + 1, "a bin")
    return bins


def _deviation(value: float | None) -> float:
    _require(value is not None and 1 / _MOST_PEOPLE <= value <= _MOST_PEOPLE, "a standard deviation")
    return float(value or 0.0)
