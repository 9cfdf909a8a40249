"""The chain as a mechanism: each column is drawn from the leaves of a tree grown on the preceding columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arguments import offered
from sfumato.core.arrays import count_persons
from sfumato.core.errors import LevelError, OptionError
from sfumato.core.facts import Fact, Shuffled
from sfumato.core.records import (
    BlockKind,
    CellsByColumn,
    Layout,
    Records,
    RowRequest,
    cells_of_block,
    smallest_codes,
    width,
)
from sfumato.methods.chain.columns import ChainColumn, read_columns
from sfumato.methods.chain.draw import ColumnStep, DrawnCells, SourceRecords, grow_on
from sfumato.methods.chain.facts import Chained, PersonsBounded
from sfumato.methods.chain.trees import MOST_BINS, Tree
from sfumato.methods.condense import check_k, effective_levels
from sfumato.methods.protocol import MethodResult, OwnerDetails, Traits, check_parameters, rows_drawn

if TYPE_CHECKING:
    from sfumato.methods.chain.columns import ChainColumn
    from sfumato.methods.chain.draw import LeafCounts, SourceRecords
    from sfumato.methods.chain.trees import Tree

__all__ = [
    "LEAF",
    "MOST_GROWN",
    "Chain",
    "ChainRows",
    "LeafLikelihood",
    "RegrownTrees",
    "begin_rows",
    "draw_head",
    "without_cells",
]

LEAF = 50
"""People of a leaf where nothing is said."""

_AGAIN = 0.5  # share of the target's variance that a regression on all others explains where it is drawn again


@dataclass(frozen=True)
class Chain:
    """Columns drawn one after the other, each from people with similar values in the preceding columns.

    Parameters
    ----------
    k : int
        Fewest persons behind a value, or the highest level of a record: a number that fewer hold is never
        copied, a category that fewer hold does not appear. A record's level is max(k, the level it asks for).
    leaf : int
        Fewest persons alike that a cell is drawn from, the knob of the leak; never fewer than any of them asks for.
        None of them supplies more than two in ``leaf`` of what it is drawn from. Beyond 100 numbers also move the
        further the more that is.
    order : tuple of str, optional
        Columns that are drawn first. The others follow, the target before all, as they stand in the table.

    Examples
    --------
    >>> Chain(k=5, leaf=50).method
    'chain'
    """

    method: ClassVar[str] = "chain"

    k: int = 10
    leaf: int = field(
        default=LEAF,
        metadata=offered("chain, swap, downgrade: minimum number of people in a leaf of a tree.  [default: 50]"),
    )
    order: tuple[str, ...] | None = field(
        default=None, metadata=offered("chain: column to synthesize first, before the target; repeatable.")
    )

    def __post_init__(self) -> None:
        check_parameters(self)
        check_k(self.k, allow_level_1=False)
        if self.leaf < 2:
            raise OptionError("leaf must be a whole number of at least 2; the default is 50")
        if self.order is not None:
            order = tuple(self.order)
            if len(set(order)) < len(order):
                raise OptionError("a column stands twice in the order; name each once")
            object.__setattr__(self, "order", order or None)

    @property
    def traits(self) -> Traits:
        """Properties that an engine needs to know."""
        return Traits(
            synthetic=True,
            floor=max(self.k, self.leaf),
            min_frequency=self.k,
            conditional=True,
            codes=True,
            grouped=True,
        )

    def sanitize(self, records: Records, *, rng: np.random.Generator) -> MethodResult:
        """Replace the records by synthetic ones, as many or as requested, column by column."""
        from sfumato.methods.chain.columns import read_columns
        from sfumato.methods.chain.draw import SourceRecords, prepare_step

        levels = effective_levels(records.levels, self.k, allow_level_1=False)
        leaf, rare = max(self.leaf, self.k), max(int(levels.max()), records.highest)
        strata = np.unique(records.strata, return_inverse=True)[1].astype(np.int64)
        persons = None if records.persons is None else np.unique(records.persons, return_inverse=True)[1]
        _check_enough(levels, strata, persons, leaf, whole=records.among <= len(records))
        by_name = {column.name: column for column in read_columns(records, rare)}
        names, wanted = self.sequence(records), records.wanted or RowRequest(len(records))
        columns = [by_name[name] for name in names]
        codes = np.empty((len(records), len(columns)), dtype=np.uint8)
        apart = names[0] == records.target and columns[0].is_told_apart
        people = SourceRecords(codes, levels, strata, persons, rare, leaf, apart)
        rows, counts, known = _draw_columns(columns, people, wanted, width(records.layout), rng)
        again = self._redrawn_target(records, names, wanted)
        if again is not None:
            before = {place: column for place, column in enumerate(columns) if place != again}
            step = prepare_step(columns[again], before, people, rng)
            if step.regression is None or step.regression.explained < _AGAIN:
                again = None
            else:
                rows.redraw(again, step, rng)
                counts[again], known[again] = step.counts, without_cells(step)
        workings = OwnerDetails(
            likelihood=LeafLikelihood.of(known, rows), regrown=RegrownTrees.of(rows, leaf, again, apart=apart)
        )
        if again is not None:
            names = (*names[:again], *names[again + 1 :], names[again])
            counts.append(counts.pop(again))
        k = min(rare, records.public_level) or rare
        facts: tuple[Fact, ...] = (_facts_of_leaves(names, counts, people, rows, k, twice=again is not None),)
        facts = (*facts, Shuffled(rows=len(rows)), *rows_drawn(records))
        if persons is not None:
            facts = (*facts, PersonsBounded(int(persons.max()) + 1))
        nothing = np.zeros(len(rows), dtype=np.int64)
        coordinates = rows.shuffled(records.layout, rng)
        return MethodResult(
            Records(coordinates, records.layout, nothing, nothing.copy(), records.target), facts, workings
        )

    def sequence(self, records: Records) -> tuple[str, ...]:
        """Column names in the order in which they are drawn."""
        chosen = () if records.wanted is None else records.wanted.columns
        return _sequence(records, (*chosen, *(self.order or ())))

    def _redrawn_target(self, records: Records, names: tuple[str, ...], wanted: RowRequest) -> int | None:
        """Index of the target if it is redrawn given all others; None if it is last or its order was given."""
        named = {*wanted.columns, *(self.order or ())}
        if records.target is None or records.target in named or records.target == names[-1]:
            return None
        return names.index(records.target)


def _draw_columns(
    columns: Sequence[ChainColumn], people: SourceRecords, wanted: RowRequest, d: int, rng: np.random.Generator
) -> tuple[ChainRows, list[LeafCounts], list[tuple[ChainColumn, Tree]]]:
    """Rows drawn column by column, with the leaves of each column and the data they were grown from."""
    from sfumato.methods.chain.draw import prepare_step

    counts, known, head = [], [], []
    rows = begin_rows(people.strata, wanted.rows, len(columns), rng)
    for place, column in enumerate(columns):
        step = prepare_step(column, dict(enumerate(columns[:place])), people, rng)
        people.codes[:, place] = column.codes(column.cells)
        counts.append(step.counts)
        known.append(without_cells(step))
        if place >= len(wanted.columns):
            rows.add(step, rng)
            continue
        head.append(step)
        if place + 1 == len(wanted.columns):
            rows = draw_head(head, people.strata, wanted, (len(columns), d), rng)
    return rows, counts, known


def _facts_of_leaves(
    names: tuple[str, ...],
    counts: Sequence[LeafCounts],
    people: SourceRecords,
    rows: ChainRows,
    k: int,
    *,
    twice: bool,
) -> Chained:
    """Facts about the leaves that rows were drawn from; ``twice`` is the column that was redrawn, if any."""
    return Chained(
        columns=names,
        leaves=tuple(each.leaves for each in counts),
        smallest=tuple(each.smallest for each in counts),
        alike=tuple(each.alike for each in counts),
        records=len(people.levels),
        rows=len(rows),
        k=k,
        leaf=people.leaf,
        violations=sum(each.short for each in counts),
        kept=rows.copied,
        moved=rows.moved,
        regressed=tuple(name for name, each in zip(names, counts, strict=True) if each.regressed),
        twice=names[-1:] if twice else (),
    )


def _check_enough(
    levels: NDArray[np.int64], strata: NDArray[np.int64], persons: NDArray[np.int64] | None, leaf: int, *, whole: bool
) -> None:
    """Refuse strata with fewer persons than a leaf needs, in the whole table or a partition."""
    many, need = count_persons(strata, persons), np.full(int(strata.max()) + 1, leaf)
    np.maximum.at(need, strata, levels)
    short = np.flatnonzero(many < need)
    if whole and len(many) == 1 and len(short):
        who = "records" if persons is None else "persons"
        raise LevelError(
            f"there are {many[0]} {who} and a leaf needs {need[0]}; lower the level or the leaf, or add more {who}"
        )
    if len(short):
        raise LevelError(
            "a stratum has fewer people than a leaf needs; lower the level or the leaf, or leave out the strata"
        )


def _sequence(records: Records, order: tuple[str, ...]) -> tuple[str, ...]:
    """Column names in the order in which they are drawn."""
    names = [block.column for block in records.layout if block.kind is not BlockKind.MISSING]
    unknown = [name for name in order if name not in names]
    if unknown:
        raise OptionError(f"the order names {unknown[0]!r}, which is no column that is drawn; name one that is")
    head = [*order, *([] if records.target is None else [records.target])]
    return tuple(dict.fromkeys([*head, *names]))


_FEWEST = 1 << 12  # rows of a batch that is tried
_MOST_TRIES = 200  # rows that may be tried for one that is wanted


class ChainRows:
    """Rows with the cells of the columns drawn so far.

    Parameters
    ----------
    strata : ndarray of shape (n,)
        Of each row.
    width : int
        How many columns they will have.
    """

    def __init__(self, strata: NDArray[np.int64], width: int) -> None:
        self.strata = strata
        self.columns: list[ChainColumn] = []
        self.drawn: list[DrawnCells] = []
        self.codes = np.empty((len(strata), width), dtype=np.uint8)

    def __len__(self) -> int:
        return len(self.strata)

    def add(self, step: ColumnStep, rng: np.random.Generator) -> None:
        """Draw the cells of the next column."""
        made = step.draw([each.cells for each in self.drawn], self.codes, self.strata, rng)
        self.codes[:, len(self.columns)] = step.column.codes(made.cells)
        self.columns.append(step.column)
        self.drawn.append(made)

    def redraw(self, place: int, step: ColumnStep, rng: np.random.Generator) -> None:
        """Redraw the cells of a column given all others."""
        made = step.draw([each.cells for each in self.drawn], self.codes, self.strata, rng)
        self.codes[:, place], self.drawn[place] = step.column.codes(made.cells), made

    def take(self, places: NDArray[np.int64]) -> ChainRows:
        """A subset of the rows."""
        some = ChainRows(self.strata[places], self.codes.shape[1])
        some.codes[:] = self.codes[places]
        some.columns, some.drawn = list(self.columns), [each.take(places) for each in self.drawn]
        return some

    def values(self, width: int) -> NDArray[np.float64]:
        """Their coordinates; 0 for columns that are not drawn yet."""
        values = np.zeros((len(self), width))
        for column, made in zip(self.columns, self.drawn, strict=True):
            column.write(made.cells, values)
        return values

    def shuffled(self, layout: Layout, rng: np.random.Generator) -> CellsByColumn:
        """Their coordinates in random order; releases the cells to save memory."""
        order, columns = rng.permutation(len(self)), dict[str, NDArray[Any]]()
        for column in self.columns:
            cells = self.drawn.pop(0).cells[order]
            if not column.is_number:
                cells = smallest_codes(np.where(np.isnan(cells), -1.0, cells), column.block)
            columns[column.name] = cells
        return CellsByColumn(layout, columns)

    @property
    def copied(self) -> int:
        """Count of numbers copied from the original."""
        return sum(int(each.copied.sum()) for each in self.drawn)

    @property
    def moved(self) -> int:
        """Count of numbers that were moved."""
        return sum(int(each.moved.sum()) for each in self.drawn)


def begin_rows(strata: NDArray[np.int64], rows: int, width: int, rng: np.random.Generator) -> ChainRows:
    """Rows without cells, in the strata of the records; resampled if more or fewer rows are requested."""
    return ChainRows(strata if rows == len(strata) else strata[rng.integers(0, len(strata), rows)], width)


def draw_head(
    steps: Sequence[ColumnStep],
    strata: NDArray[np.int64],
    wanted: RowRequest,
    shape: tuple[int, int],
    rng: np.random.Generator,
) -> ChainRows:
    """Rows with the first columns drawn, repeated until enough rows meet the condition.

    ``shape`` gives the columns and coordinates of the complete rows.

    Raises
    ------
    OptionError
        If too few rows do.
    """
    assert wanted.meets is not None
    parts, got, tried = list[ChainRows](), 0, 0
    while got < wanted.rows:
        if tried > _MOST_TRIES * max(wanted.rows, _FEWEST):
            raise OptionError(
                f"of {tried} rows that were drawn {got} fulfil the rule of --where; ask for fewer rows, or for a rule "
                "that more people fulfil"
            )
        batch = begin_rows(strata, max(_FEWEST, 2 * (wanted.rows - got)), shape[0], rng)
        for step in steps:
            batch.add(step, rng)
        tried += len(batch)
        parts.append(batch.take(np.flatnonzero(wanted.meets(batch.values(shape[1])))))
        got += len(parts[-1])
    return _joined(parts).take(np.arange(wanted.rows))


def _joined(parts: Sequence[ChainRows]) -> ChainRows:
    whole = ChainRows(np.concatenate([part.strata for part in parts]), parts[0].codes.shape[1])
    whole.codes[:] = np.concatenate([part.codes for part in parts])
    whole.columns = list(parts[0].columns)
    whole.drawn = [
        DrawnCells(*(np.concatenate([getattr(each, name) for each in drawn]) for name in ("cells", "copied", "moved")))
        for drawn in zip(*(part.drawn for part in parts), strict=True)
    ]
    return whole


_MOST_ROWS = 200_000  # released rows that are looked at

MOST_GROWN = 50_000
"""Released rows that trees are grown on again."""


def without_cells(step: ColumnStep) -> tuple[ChainColumn, Tree]:
    """Column and tree of a step, without original cells."""
    nothing = np.empty(0)
    column = replace(step.column, cells=nothing, rare=nothing.astype(np.bool_))
    return column, replace(step.tree, labels=nothing.astype(np.int64))


@dataclass(frozen=True, eq=False, repr=False)
class LeafLikelihood:
    """Likelihood score of an attacker who knows the trees and estimates the leaves from the release.

    For each column, how often the released rows of a person's leaf have their bin, against how often all rows have it;
    the logarithms of all columns add up. More is likelier in the table, since a leaf gives back what its people have.
    """

    steps: tuple[tuple[ChainColumn, Tree], ...]
    codes: NDArray[np.uint8]

    @classmethod
    def of(cls, steps: list[tuple[ChainColumn, Tree]], rows: ChainRows) -> LeafLikelihood | None:
        """Scores of people by these rows; None if strata have separate trees."""
        return None if rows.strata.any() else cls(tuple(steps), rows.codes[:_MOST_ROWS].copy())

    def __call__(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores of people by their coordinates."""
        theirs = np.column_stack(
            [column.codes(cells_of_block(values, column.block, column.missing)) for column, _ in self.steps]
        )
        scores = np.zeros(len(values))
        nowhere, here = np.zeros(len(self.codes), dtype=np.int64), np.zeros(len(values), dtype=np.int64)
        for place, (_, tree) in enumerate(self.steps):
            released, asked = tree.leaves_of(self.codes, nowhere), tree.leaves_of(theirs, here)
            share = np.bincount(self.codes[:, place], minlength=MOST_BINS) + 0.5
            share = (share / share.sum())[theirs[:, place]]
            inside = np.bincount(released, minlength=len(tree.nodes))[asked]
            pairs, many = np.unique(released * MOST_BINS + self.codes[:, place], return_counts=True)
            wanted = asked * MOST_BINS + theirs[:, place]
            at = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
            alike = np.where(pairs[at] == wanted, many[at], 0)
            scores += np.log((alike + share) / (inside + 1)) - np.log(share)
        return scores

    def __repr__(self) -> str:
        return "Likelihood(owner only)"


@dataclass(frozen=True, eq=False, repr=False)
class RegrownTrees:
    """Likelihood score of an attacker who knows the algorithm and regrows the trees on the release."""

    columns: tuple[ChainColumn, ...]
    codes: NDArray[np.uint8]
    leaf: int
    again: int | None
    apart: bool

    @classmethod
    def of(cls, rows: ChainRows, leaf: int, again: int | None, *, apart: bool) -> RegrownTrees:
        """Scores of people by trees regrown on the rows as the original trees were grown."""
        some = rows.take(np.arange(min(len(rows), MOST_GROWN)))
        never = np.zeros(len(some), dtype=np.bool_)
        columns = (
            replace(each, cells=made.cells, rare=never) for each, made in zip(some.columns, some.drawn, strict=True)
        )
        return cls(tuple(columns), some.codes, leaf, again, apart)

    @classmethod
    def on(cls, released: Records, stated: Chained) -> RegrownTrees:
        """The same from released records and the certificate's statements alone."""
        names, twice = stated.columns, bool(stated.twice)
        by_name = {column.name: column for column in read_columns(released, 0)}
        columns = tuple(by_name[name] for name in ((*names[-1:], *names[:-1]) if twice else names))
        codes = np.column_stack([column.codes(column.cells) for column in columns])
        apart = not twice and names[0] == released.target and columns[0].is_told_apart
        return cls(columns, codes, stated.leaf, 0 if twice else None, apart)

    def __call__(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores of people by their coordinates."""
        nothing = np.zeros(len(self.codes), dtype=np.int64)
        people = SourceRecords(self.codes, nothing, nothing, None, 0, min(self.leaf, len(nothing)), self.apart)
        steps = []
        for place, each in enumerate(self.columns):
            last = len(self.columns) if place == self.again else place
            before = {other: column for other, column in enumerate(self.columns[:last]) if other != place}
            steps.append((each, grow_on(each, before, people)))
        return LeafLikelihood(tuple(steps), self.codes)(values)

    def __repr__(self) -> str:
        return "Regrown(owner only)"
