"""What every measure and every attack may look at: both tables, the rows held out, and how they were made."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.assess.columns import Cells, ColumnPair, bits_of, read_cells, read_pairs, row_keys
from sfumato.assess.sizes import Sizes, choose_sizes
from sfumato.errors import OptionError
from sfumato.facts import Fact
from sfumato.mechanism import Workings
from sfumato.records import Layout, Records
from sfumato.tables.codec import Codec
from sfumato.tables.schema import Role

__all__ = ["Study", "drawn_note", "held_out_notes", "once", "rows_alike", "sample", "study_of"]

_Matrix = NDArray[np.float64]
_Places = NDArray[np.int64]
F = TypeVar("F", bound=Fact)
T = TypeVar("T")
_FARTHEST = 1e6  # standard deviations
_FEW, _MANY = 0.02, 0.5  # shares of held-out rows, above what twins among the original's own rows explain


@dataclass(frozen=True, eq=False, repr=False)
class Study:
    """Two tables side by side, at the owner's.

    Parameters
    ----------
    pairs : tuple of ColumnPair
        Each encoded column of both tables, in its own units.
    layout : tuple of Block
        Which coordinates belong to which column.
    original, released : ndarray of shape (n, d), (m, d)
        The rows in coordinates where Euclid's distance is fair to all kinds: numbers in standard deviations of the
        original, two different categories at distance 1.
    holdout : ndarray of shape (h, d) or None
        People like the original's whom the release was not made from.
    held : tuple of Cells or None
        The same, column by column in own units.
    facts : tuple of Fact
        What the mechanism did; empty for a table made by another tool.
    workings : Workings or None
        Groups and origins of rows, where they are known.
    target : str or None
        The column that is to be predicted.
    sizes : Sizes
        How many rows are looked at.
    entropy : tuple of int
        From which each measure's own generator is made.
    """

    pairs: tuple[ColumnPair, ...]
    layout: Layout
    original: _Matrix
    released: _Matrix
    holdout: _Matrix | None
    held: tuple[Cells, ...] | None
    facts: tuple[Fact, ...]
    workings: Workings | None
    target: str | None
    sizes: Sizes
    entropy: tuple[int, ...]

    def generator(self, purpose: str) -> np.random.Generator:
        """Chance of a measure's own, so that one more measure changes no other."""
        seed = np.random.SeedSequence([*self.entropy, zlib.crc32(purpose.encode())])
        return np.random.Generator(np.random.PCG64(seed))

    def pair(self, name: str) -> ColumnPair:
        """Find a column by its name."""
        return next(pair for pair in self.pairs if pair.name == name)

    def coordinates(self, columns: Iterable[str]) -> NDArray[np.int64]:
        """Coordinates of some columns."""
        wanted = set(columns)
        blocks = [np.arange(block.start, block.stop) for block in self.layout if block.column in wanted]
        return np.concatenate(blocks) if blocks else np.empty(0, dtype=np.int64)

    def descent(self) -> tuple[_Places, _Places]:
        """Places of the released rows that descend from an original one, and of those originals."""
        origin = None if self.workings is None else self.workings.origin
        if origin is None:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        known = np.flatnonzero((origin >= 0) & (origin < len(self.original)))
        return known, origin[known]

    def fact(self, kind: type[F]) -> F | None:
        """Find what the mechanism says of one kind of deed."""
        return next((fact for fact in self.facts if isinstance(fact, kind)), None)


def once(look: Callable[[Study], T]) -> Callable[[Study], T]:
    """Let what is seen in a study be looked up once for all who ask."""
    kept: WeakKeyDictionary[Study, T] = WeakKeyDictionary()

    @functools.wraps(look)
    def seen(study: Study) -> T:
        if study not in kept:
            kept[study] = look(study)
        return kept[study]

    return seen


def sample(rows: int, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw at most so many of the rows' places without replacement, in rising order; all where there are no more."""
    return np.sort(rng.choice(rows, most, replace=False)) if rows > most else np.arange(rows)


def rows_alike(study: Study, most: int, rng: np.random.Generator) -> tuple[_Places, _Places, str]:
    """At most so many rows of the original and of the released table, and a note on how many where these are not all.

    Tables of one length are looked at in the same places, so that a copy stays a copy and a table that was changed
    row by row is compared with the rows that it came from.
    """
    rows, others = len(study.original), len(study.released)
    here = sample(rows, most, rng)
    there = here if rows == others else sample(others, most, rng)
    whole = len(here) == rows and len(there) == others
    note = f"; counted on {len(here)} original and {len(there)} released rows drawn at random"
    return here, there, "" if whole else note


def drawn_note(looked: int, rows: int, what: str = "rows") -> str:
    """Note on how many were looked at, where these are not all."""
    return f"; counted on {looked} {what} drawn at random" if looked < rows else ""


def study_of(
    original: pa.Table,
    released: pa.Table,
    codec: Codec,
    *,
    facts: tuple[Fact, ...] = (),
    workings: Workings | None = None,
    records: Records | None = None,
    holdout: pa.Table | None = None,
    budget: float | None = None,
    judged: bool = False,
    rng: np.random.Generator,
) -> Study:
    """Read both tables, and the rows held out, as measures see them."""
    outside = None if holdout is None or holdout.num_rows == 0 else holdout
    target = next((field.name for field in codec.schema.encoded if field.role is Role.TARGET), None)
    records = codec.encode(original, unseen="mean") if records is None else records
    columns = len(codec.schema.encoded)

    def within_reach(table: pa.Table) -> _Matrix:
        return _for_good(_clipped(codec.encode(table, unseen="mean").values))

    return Study(
        read_pairs(original, released, codec),
        records.layout,
        _for_good(_clipped(records.values)),
        within_reach(released),
        None if outside is None else within_reach(outside),
        None if outside is None else read_cells(outside, codec),
        facts,
        workings,
        target,
        choose_sizes(
            max(original.num_rows, released.num_rows), records.values.shape[1], columns, budget, judged=judged
        ),
        tuple(int(word) for word in rng.integers(0, 2**32, size=4)),
    )


def _for_good(values: _Matrix) -> _Matrix:
    """Rows that nobody may write to from now on, so that searches among them can share what they learn."""
    values = np.ascontiguousarray(values)
    values.setflags(write=False)
    return values


def _clipped(values: _Matrix) -> _Matrix:
    """Bring cells that lie absurdly far out to where squares of distances do not overflow."""
    if not values.size or max(abs(float(values.min())), abs(float(values.max()))) <= _FARTHEST:
        return values
    return np.clip(values, -_FARTHEST, _FARTHEST)


def held_out_notes(study: Study) -> tuple[str, ...]:
    """Say how many held-out rows stand in the original as they are; refuse rows that mostly do.

    Rows of people that the release was made from are no control: attacks would be compared with themselves. Tables of
    few values have true twins, so the share of original rows that have one is taken off first.
    """
    if study.holdout is None or not study.holdout.size or not len(study.original):
        return ()
    original = row_keys(bits_of(column) for column in study.original.T)
    held = row_keys(bits_of(column) for column in study.holdout.T)
    found = int(np.isin(held, original).sum())
    counts = np.unique(original, return_counts=True)[1]
    twins = float(counts[counts > 1].sum() / len(original))
    excess = found / len(held) - twins
    if excess > _MANY:
        raise OptionError(
            f"{found} of {len(held)} held-out rows stand in the original as they are; hold out rows that the release "
            "was not made from"
        )
    if excess > _FEW:
        return (
            f"{found} of {len(held)} held-out rows stand in the original as they are, more than its own twins explain; "
            "where these are the same people, controls are too high and gains too low.",
        )
    return ()
