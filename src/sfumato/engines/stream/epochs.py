"""Publication by epochs: a family's new state leaves only with enough fresh records behind it (errata AY05.10)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.documents import from_json, write_json
from sfumato.core.errors import PrivacyRefusal
from sfumato.core.groups.generate import generate
from sfumato.engines.stream.settings import EpochLine, StateEntry, StateError
from sfumato.mechanisms.condense.maintainer import GroupRows, Maintainer, PublishMarks
from sfumato.mechanisms.condense.synthesize import generate_coded
from sfumato.tables.cells import plain
from sfumato.tables.codec import Codec

__all__ = ["Leaving", "Publication", "leaving", "published", "renew"]

_CHUNK = 1 << 22  # numbers of covariances that are drawn from at once
_ROWS = 100_000  # rows of an entry


@dataclass(frozen=True, eq=False, repr=False)
class Publication:
    """The rows that have left, by the family that each was drawn from; the families are the owner's."""

    table: pa.Table  # rows family after family
    # family, count, level_max: (f,): of each family its id, its rows, and the highest level that was inside when it
    # left
    family: NDArray[np.int64]
    count: NDArray[np.int64]
    level_max: NDArray[np.int64]
    pseudo: NDArray[np.bool_]  # (f,): whether it came from a split

    def __repr__(self) -> str:
        return f"Publication(families={len(self.family)}, rows={self.table.num_rows})"

    def of_families(self, families: NDArray[np.int64]) -> Publication:
        """Select the rows of some families, unchanged."""
        kept = np.flatnonzero(np.isin(self.family, families))
        ends = np.cumsum(self.count)
        rows = [np.arange(ends[place] - self.count[place], ends[place]) for place in kept]
        table = self.table.take(pa.array(np.concatenate([np.empty(0, dtype=np.int64), *rows])))
        return Publication(table, self.family[kept], self.count[kept], self.level_max[kept], self.pseudo[kept])

    def to_entries(self) -> list[StateEntry]:
        """Write the publication into the state."""
        marks = _Marks(*(each.tolist() for each in (self.family, self.count, self.level_max, self.pseudo)))
        entries = [StateEntry("families", "", write_json(marks).encode())]
        for number, first in enumerate(range(0, max(1, self.table.num_rows), _ROWS)):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, self.table.schema) as writer:
                writer.write_table(self.table.slice(first, _ROWS).combine_chunks())
            entries.append(StateEntry("published", f"{number:06d}", sink.getvalue().to_pybytes()))
        return entries

    @classmethod
    def from_entries(cls, families: bytes, published: dict[str, bytes]) -> Publication:
        """Read a publication back."""
        try:
            marks = from_json(_Marks, families)
            tables = [pa.ipc.open_stream(pa.py_buffer(published[key])).read_all() for key in sorted(published)]
            family, count, level_max = (
                np.asarray(each, dtype=np.int64) for each in (marks.family, marks.count, marks.level_max)
            )
            pseudo = np.asarray(marks.pseudo, dtype=np.bool_)
            table = pa.concat_tables(tables)
            table.validate(full=True)
            one_each = {each.shape for each in (family, count, level_max, pseudo)} == {(len(family),)}
            if one_each and (count >= 0).all() and sum(count.tolist()) == table.num_rows:
                return cls(table, family, count, level_max, pseudo)
        except (KeyError, TypeError, ValueError, OverflowError, OSError, pa.ArrowException):
            pass
        raise StateError("the published rows in the state cannot be read; use the version that wrote it")


@dataclass(frozen=True)
class _Marks:
    """Of each family that has left what `Publication` tells of it."""

    family: list[int]
    count: list[int]
    level_max: list[int]
    pseudo: list[bool]


def renew(
    maintainer: Maintainer,
    earlier: Publication | None,
    codec: Codec,
    epoch: int,
    rng: np.random.Generator,
    *,
    gated: bool = True,
    hide: Callable[[pa.Table], pa.Table] | None = None,
) -> tuple[Publication, EpochLine]:
    """Draw new rows for every family that is due, repeat those of the others, and note what left.

    Parameters
    ----------
    maintainer : Maintainer
        Its families that leave become one family a group.
    earlier : Publication or None
        What left last.
    gated : bool
        False lets every family leave each time and notes nothing: the difference of two such publications gives
        arrivals away. It is there to show that, and nothing else.
    hide : callable, optional
        Makes other categories of rare ones in rows that are drawn; rows that are repeated stay as they are.

    Raises
    ------
    PrivacyRefusal
        Where nothing has left before and nothing is due.
    """
    marks = maintainer.publish_marks()
    due = marks.due if gated else np.ones(len(marks.family), dtype=np.bool_)
    if not due.any() and earlier is None:
        short = f"the nearest lacks {int((marks.needed - marks.fresh).min())}" if len(due) else "there are no groups"
        raise PrivacyRefusal(f"no family of groups has enough fresh records for a first release ({short}); ingest more")
    left = leaving(maintainer, due, marks)
    if gated:
        maintainer.mark_published(left.families)
    return published(
        left, None if earlier is None else earlier.of_families(marks.family[~due]), codec, epoch, rng, hide
    )


@dataclass(frozen=True, eq=False, repr=False)
class Leaving:
    """Groups that leave in their present state, with the families that they are; the owner's.

    ``held`` are the places of the categories of each group in columns of very many, None where there are no such
    columns; ``fresh`` is the least number of fresh records behind a family, 0 where none leaves.
    """

    rows: GroupRows
    held: tuple[Sequence[NDArray[np.int64]], ...] | None
    families: NDArray[np.int64]
    fresh: int


def leaving(maintainer: Maintainer, due: NDArray[np.bool_], marks: PublishMarks) -> Leaving:
    """Groups of the families that are due, as they are now."""
    families, tally = marks.family[due], maintainer.tally
    rows = maintainer.rows(maintainer.ids[np.isin(maintainer.family, families)])
    held = None if tally is None else tuple(tally.of(group) for group in rows.ids.tolist())
    return Leaving(rows, held, families, int(marks.fresh[due].min()) if due.any() else 0)


def published(
    left: Leaving,
    staying: Publication | None,
    codec: Codec,
    epoch: int,
    rng: np.random.Generator,
    hide: Callable[[pa.Table], pa.Table] | None = None,
) -> tuple[Publication, EpochLine]:
    """Rows drawn for groups that leave, beside those that are repeated, and the line of the epoch."""
    rows = left.rows
    drawn = _drawn(rows, left.held, codec, rng)
    drawn = drawn if hide is None else hide(drawn)
    fresh = Publication(drawn, rows.ids, rows.count, rows.level_max, rows.pseudo)
    whole = _joined([fresh] if staying is None else [staying, fresh])
    repeated = len(whole.family) - len(fresh.family)
    return whole, EpochLine(epoch, len(left.families), repeated, whole.table.num_rows, left.fresh)


def _drawn(
    rows: GroupRows, held: Sequence[Sequence[NDArray[np.int64]]] | None, codec: Codec, rng: np.random.Generator
) -> pa.Table:
    """Draw as many rows as each of these groups has records, some groups at a time."""
    d = rows.mean.shape[1]
    step = max(1, _CHUNK // (4 * d * d))
    parts = [codec.decode(np.empty((0, d)))]
    for first in range(0, len(rows.ids), step):
        names = (field.name for field in dataclasses.fields(GroupRows))
        groups = GroupRows(**{name: getattr(rows, name)[first : first + step] for name in names}).groups
        if held is None:
            values = generate(groups, codec.layout, rng)
        else:
            values = generate_coded(groups, held[first : first + step], codec.layout, rng)
        parts.append(codec.decode(values))
    return pa.concat_tables([part.unify_dictionaries() for part in parts])


def _of_one_type(tables: list[pa.Table]) -> list[pa.Table]:
    """Tables with texts in all of them where a column has texts in one, as numbers that are names may be pooled."""
    mixed = [name for name in tables[0].column_names if len({table.schema.field(name).type for table in tables}) > 1]
    for name in mixed:
        place = tables[0].column_names.index(name)
        tables = [table.set_column(place, name, plain(table.column(name)).cast(pa.string())) for table in tables]
    return tables


def _joined(parts: list[Publication]) -> Publication:
    return Publication(
        pa.concat_tables(_of_one_type([part.table for part in parts])),
        np.concatenate([part.family for part in parts]),
        np.concatenate([part.count for part in parts]),
        np.concatenate([part.level_max for part in parts]),
        np.concatenate([part.pseudo for part in parts]),
    )
