"""The chain as a mechanism: each column is drawn from the leaves of a tree grown on the preceding columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arguments import option
from sfumato.core.arrays import count_persons
from sfumato.core.errors import LevelError, OptionError
from sfumato.core.facts import Fact, Shuffled
from sfumato.core.records import BlockKind, Records, RowRequest, width
from sfumato.methods.chain.facts import ChainSynthesis, PersonsBounded
from sfumato.methods.condense import check_k, effective_levels
from sfumato.methods.protocol import MethodResult, OwnerDetails, Traits, check_parameters, rows_drawn

if TYPE_CHECKING:
    from sfumato.methods.chain.columns import ChainColumn
    from sfumato.methods.chain.draw import LeafCounts, SourceRecords
    from sfumato.methods.chain.rows import ChainRows
    from sfumato.methods.chain.trees import Tree

__all__ = ["LEAF", "Chain"]

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
    leaf: int = option(LEAF, "chain, swap, downgrade: minimum number of people in a leaf of a tree.  [default: 50]")
    order: tuple[str, ...] | None = option(None, "chain: column to synthesize first, before the target; repeatable.")

    def __post_init__(self) -> None:
        check_parameters(self)
        check_k(self.k, allow_level_1=False)
        if self.leaf < 2:
            raise OptionError("leaf must be a whole number of at least 2; the default is 50")
        if self.order is not None:
            order = tuple(self.order)
            if len(set(order)) < len(order):
                raise OptionError("the order names a column twice; name each once")
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
        from sfumato.methods.chain.rows import LeafLikelihood, RegrownTrees, without_cells

        levels = effective_levels(records.levels, self.k, allow_level_1=False)
        leaf, rare = max(self.leaf, self.k), max(int(levels.max()), records.highest)
        strata = np.unique(records.strata, return_inverse=True)[1].astype(np.int64)
        persons = None if records.persons is None else np.unique(records.persons, return_inverse=True)[1]
        _check_enough(levels, strata, persons, leaf, whole=records.among <= len(records))
        by_name = {column.name: column for column in read_columns(records, rare)}
        names, wanted = self.sequence(records), records.wanted or RowRequest(len(records))
        columns = [by_name[name] for name in names]
        codes = np.column_stack([column.codes(column.cells) for column in columns])
        apart = names[0] == records.target and columns[0].is_told_apart
        people = SourceRecords(columns, codes, levels, strata, persons, rare, leaf, apart)
        rows, counts, known = _draw_columns(people, wanted, width(records.layout), rng)
        again = self._redrawn_target(records, names, wanted)
        if again is not None:
            step = prepare_step(again, [place for place in range(len(columns)) if place != again], people, rng)
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
    people: SourceRecords, wanted: RowRequest, d: int, rng: np.random.Generator
) -> tuple[ChainRows, list[LeafCounts], list[tuple[ChainColumn, Tree]]]:
    """Rows drawn column by column, with the leaves of each column and the data they were grown from."""
    from sfumato.methods.chain.draw import prepare_step
    from sfumato.methods.chain.rows import begin_rows, draw_head, without_cells

    columns = people.columns
    counts, known, head = [], [], []
    rows = begin_rows(people.strata, wanted.rows, len(columns), rng)
    for place in range(len(columns)):
        step = prepare_step(place, range(place), people, rng)
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
) -> ChainSynthesis:
    """Facts about the leaves that rows were drawn from; ``twice`` is the column that was redrawn, if any."""
    return ChainSynthesis(
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
