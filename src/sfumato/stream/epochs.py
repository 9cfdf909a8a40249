"""Publication by epochs: a family's new state leaves only with enough fresh records behind it (errata AY05.10).

An epoch is run with the facts of all epochs so far.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.assess.attacks.differencing import PublicationSummary, StreamPublications
from sfumato.core.documents import from_json, write_json
from sfumato.core.errors import PrivacyLeakWarning, PrivacyRefusal
from sfumato.core.facts import ColumnsDropped, Fact, RandomnessSource, Shuffled, Stratified
from sfumato.core.groups import count_near_identical
from sfumato.core.groups.generate import generate
from sfumato.core.randomness import Randomness
from sfumato.core.records import BlockKind
from sfumato.engines.outcome import Comparison, NoComparison, Outcome, Recipe
from sfumato.engines.plan import coarsened_facts
from sfumato.methods.condense import ALGORITHMS
from sfumato.methods.condense.maintainer import GroupRows, Maintainer, PublishMarks
from sfumato.methods.condense.synthesize import generate_coded
from sfumato.options import RunOptions
from sfumato.stream.facts import EpochPublished, Maintained, PersonRowsBounded, RowsKept
from sfumato.stream.measuring import KeptSample
from sfumato.stream.rare import USUAL, hidden_schema
from sfumato.stream.settings import EpochLine, StateEntry, StateError
from sfumato.tables.cells import is_text, plain
from sfumato.tables.codec import Codec
from sfumato.tables.recoding import like_released, recode
from sfumato.tables.schema import Role, Schema
from sfumato.tables.tails import check_rare_treatment
from sfumato.version import __version__

if TYPE_CHECKING:
    from sfumato.stream.cellwise import StreamUpdate
    from sfumato.stream.session import StreamSession

__all__ = ["DueGroups", "Publication", "leaving", "published", "renew", "run_epoch"]

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
        selected = np.flatnonzero(np.isin(self.family, families))
        ends = np.cumsum(self.count)
        rows = [np.arange(ends[place] - self.count[place], ends[place]) for place in selected]
        table = self.table.take(pa.array(np.concatenate([np.empty(0, dtype=np.int64), *rows])))
        return Publication(
            table, self.family[selected], self.count[selected], self.level_max[selected], self.pseudo[selected]
        )

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
        If nothing has left before and nothing is due.
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
class DueGroups:
    """Groups that leave in their present state, with the families that they are; the owner's.

    ``held`` are the places of the categories of each group in columns of very many, None if there are no such
    columns; ``fresh`` is the least number of fresh records behind a family, 0 if none leaves.
    """

    rows: GroupRows
    held: tuple[Sequence[NDArray[np.int64]], ...] | None
    families: NDArray[np.int64]
    fresh: int


def leaving(maintainer: Maintainer, due: NDArray[np.bool_], marks: PublishMarks) -> DueGroups:
    """Groups of the families that are due, as they are now."""
    families, tally = marks.family[due], maintainer.tally
    rows = maintainer.rows(maintainer.ids[np.isin(maintainer.family, families)])
    held = None if tally is None else tuple(tally.of(group) for group in rows.ids.tolist())
    return DueGroups(rows, held, families, int(marks.fresh[due].min()) if due.any() else 0)


def published(
    left: DueGroups,
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


_DROPPED = (Role.IDENTIFIER, Role.PERSON)

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_FEWEST = 10  # rows of the sample, below which nothing is worth measuring
_TINY = 3  # mean and covariance of two records give both away, and three are not far from it


@dataclass(frozen=True, eq=False, repr=False)
class EpochDetails(StreamPublications):
    """The ledger of all epochs so far; families that left are known by their sizes.

    Where rows are kept for measuring, with the last epoch and this one, and those of the sample who came between.
    """

    ledger: tuple[EpochLine, ...] = ()


def run_epoch(session: StreamSession | StreamUpdate) -> Outcome:
    """Begin an epoch of a stream, or take up the one that was begun and not delivered."""
    before, begin = session.left(), perf_counter()
    publication, ledger = session.publish()
    settings, schema = session.settings, session.codec.schema
    randomness = Randomness(settings.seed)
    order = randomness.generator(f"order of epoch {ledger[-1].epoch}").permutation(publication.table.num_rows)
    drawn = _rounded(publication.table, settings.decimals)
    parameters = {
        "k": settings.k // settings.person_rows,
        "split": settings.split,
        "grouping": settings.grouping,
        "epoch": ledger[-1].epoch,
    }
    if settings.person is not None:
        parameters["person_rows"] = settings.person_rows
    earlier = None if before is None else _rounded(before.table, settings.decimals)
    published, dropped = hidden_schema(schema, drawn)
    seconds, sampled = perf_counter() - begin, session.measured_by()
    return Outcome(
        recipe=Recipe(
            "stream",
            parameters,
            schema,
            RunOptions(
                level=settings.level,
                strata=settings.strata,
                seed=settings.seed,
                rare=None if settings.rare == USUAL else check_rare_treatment(settings.rare),
                tails="keep" if settings.tails == "keep" else None,
            ),
            __version__,
        ),
        table=drawn.drop_columns(list(dropped)).take(pa.array(order)),
        rows_in=drawn.num_rows,
        rows_out=drawn.num_rows,
        schema=published,
        facts=_facts(session, publication, drawn, ledger, randomness, dropped),
        comparison=_like_published(_comparison(session, sampled, drawn, earlier), schema, published),
        seconds=seconds,
        workings=_workings(session, publication, ledger, sampled, None if earlier is None else (earlier, drawn)),
        texts={"epochs.json": write_json(ledger, "pretty")},
    )


def _comparison(
    session: StreamSession | StreamUpdate, sampled: KeptSample | None, drawn: pa.Table, earlier: pa.Table | None
) -> Comparison | NoComparison:
    """The rows kept for measuring on which published rows rest, beside these; or why there are none."""
    codec, settings = session.codec, session.settings
    behind = 0 if sampled is None else int(sampled.behind.sum())
    if sampled is None or behind < _FEWEST:
        return NoComparison(_why_apart(session, behind), earlier, codec)
    original = _rounded(codec.decode(sampled.values[sampled.behind]), settings.decimals)
    notes = [f"Measured on a sample: {behind} of {session.taken} records that were taken in."]
    if behind < len(sampled.behind):
        notes.append(
            f"{len(sampled.behind) - behind} more rows of the sample were left aside, for it is not known that "
            "published rows rest on them yet."
        )
    if not len(sampled.outside):
        notes.append("No row was held out of the stream yet, so there is no control group.")
    return Comparison(
        original=original,
        released=drawn,
        codec=codec,
        records=codec.encode(original, levels=sampled.levels[sampled.behind], unseen="mean"),
        outside=_rounded(codec.decode(sampled.outside), settings.decimals) if len(sampled.outside) else None,
        notes=tuple(notes),
        before=earlier,
    )


def _like_published(
    compared: Comparison | NoComparison, schema: Schema, published: Schema
) -> Comparison | NoComparison:
    """What is compared, with categories counted as published rows have them, and without columns that were dropped."""
    if isinstance(compared, NoComparison) or published == schema:
        return compared
    alike = like_released(compared.original, compared.released, schema, most=None)
    original, released = recode(compared.original, alike), recode(compared.released, alike)
    codec = Codec.fit(original, published, gaps=True, codes=True)
    levels = None if compared.records is None else compared.records.levels
    return dataclasses.replace(
        compared,
        original=original,
        released=released.select([column.field.name for column in codec.columns]),
        codec=codec,
        records=codec.encode(original, levels=levels, unseen="mean"),
        outside=None if compared.outside is None else recode(compared.outside, alike),
        before=None if compared.before is None else recode(compared.before, alike),
    )


def _why_apart(session: StreamSession | StreamUpdate, behind: int) -> str:
    if session.kept is None or not session.kept.asked:
        return "a stream keeps no raw rows, unless it is begun with --measure-rows"
    if session.kept.forgotten:
        return "the rows that were kept for measuring were deleted"
    if session.kept.vault is None:
        return "the rows kept for measuring are encrypted; give their key with --measure-key"
    return f"published rows rest on {behind} rows of the sample, and it takes {_FEWEST}"


def _workings(
    session: StreamSession | StreamUpdate,
    publication: Publication,
    ledger: tuple[EpochLine, ...],
    sampled: KeptSample | None,
    tables: tuple[pa.Table, pa.Table] | None,
) -> EpochDetails:
    """The ledger, and what the difference of two ``tables`` is tried on, if there are two and rows are kept."""
    workings = EpochDetails(sizes=publication.count, highest=publication.level_max, ledger=ledger)
    codec, epoch = session.codec, ledger[-1].epoch
    if sampled is None or tables is None:
        return workings
    rows = tuple(PublicationSummary.of_rows(codec.encode(table, unseen="mean").values) for table in tables)
    return dataclasses.replace(workings, layout=codec.layout, rows=rows, arrived=(sampled.between(epoch - 1, epoch),))


def _rounded(table: pa.Table, decimals: dict[str, int]) -> pa.Table:
    """Write numbers with as many decimals as those of the first records had; texts that are none stay as they are."""
    for name, count in decimals.items():
        place = table.column_names.index(name)
        column = table.column(place)
        if is_text(column.type):
            known = pc.fill_null(pc.match_substring_regex(column, _NUMBER), False)
            numbers = pc.if_else(known, column, pa.scalar(None, column.type)).cast(pa.float64())
            column = pc.if_else(known, pc.round(numbers, ndigits=count).cast(column.type), column)
        else:
            column = pc.round(column, ndigits=count)
        table = table.set_column(place, name, column)
    return table


def _facts(
    session: StreamSession | StreamUpdate,
    publication: Publication,
    table: pa.Table,
    ledger: tuple[EpochLine, ...],
    randomness: Randomness,
    dropped: tuple[str, ...],
) -> tuple[Fact, ...]:
    """State what was done; warn if groups are so small that their statistics are their members."""
    settings, schema, layout = session.settings, session.codec.schema, session.codec.layout
    rare, stored, tiny = session.rare, session.kept, int((publication.count <= _TINY).sum())
    if tiny:
        warnings.warn(
            f"{tiny} of {len(publication.count)} groups have {_TINY} records or fewer: their mean and covariance "
            "nearly or exactly give the members away; use a higher k, or --split strict",
            PrivacyLeakWarning,
            stacklevel=4,
        )
    return (
        RandomnessSource(randomness.mode.value, randomness.algorithm),
        ColumnsDropped(
            tuple(field.name for field in schema if field.role in _DROPPED and field.name not in session.empty),
            tuple(field.name for field in schema if field.role is Role.LEVEL),
            session.empty,
        ),
        *coarsened_facts(schema),
        *_strata_facts(settings.strata, schema, table),
        Maintained(
            algorithm=f"AY05 dynamic maintenance, started by {ALGORITHMS[settings.grouping]}",
            split=settings.split,
            k=settings.k,
            groups=len(publication.count),
            pseudo=int(publication.pseudo.sum()),
            smallest=int(publication.count.min()),
            short=int((publication.count < publication.level_max).sum()),
            tiny=tiny,
            category_columns=sum(block.kind in (BlockKind.CATEGORY, BlockKind.CODE) for block in layout),
            missing_columns=sum(block.kind is BlockKind.MISSING for block in layout),
            alike=_alike(table, publication.count, session.codec),
        ),
        *(EpochPublished(**dataclasses.asdict(line)) for line in ledger),
        *((dataclasses.replace(rare, dropped=dropped),) if rare is not None and rare.columns else ()),
        *(() if session.tails.fact is None else (session.tails.fact,)),
        *((RowsKept(stored.rows, stored.outside, stored.forgotten),) if stored is not None and stored.asked else ()),
        *(() if settings.person is None else (PersonRowsBounded(settings.person_rows),)),
        Shuffled(rows=publication.table.num_rows),
    )


def _strata_facts(strata: str | None, schema: Schema, table: pa.Table) -> tuple[Stratified, ...]:
    """State which column defines strata, with the number of its values among the rows drawn so far."""
    if strata is None:
        return ()
    values = int(pc.count_distinct(plain(table.column(strata)), mode="only_valid").as_py())
    return (Stratified(strata, values, schema[strata].role is Role.TARGET),)


def _alike(table: pa.Table, count: NDArray[np.int64], codec: Codec) -> int:
    """Rows of families that vary in no number and at most in one other column, family after family in the table."""
    numbers = {block.column for block in codec.layout if block.kind is BlockKind.NUMBER}
    columns = [
        (pc.dictionary_encode(plain(table.column(name)), null_encoding="encode").indices.to_numpy(), name in numbers)
        for name in table.column_names
    ]
    return count_near_identical(columns, np.repeat(np.arange(len(count)), count))
